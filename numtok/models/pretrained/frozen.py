"""Frozen pretrained models that turn texts into hidden states: causal models, and encoders.

More models can be frozen than can be a trunk: nothing is decoded from their tokens, so any
tokenizer works, and the encoder of an encoder-decoder is enough. Weights come from safetensors
files or from one GGUF file, whose quantized weights are converted to float32. Code in a folder is
never run.
"""

import hashlib
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from numtok import files
from numtok.data.tables.text_features import Pooling
from numtok.encoding.model_folder import PREFIX, TOKENIZER
from numtok.errors import NumtokError, UsageError, is_out_of_memory, needing
from numtok.models.pretrained.architecture import (
    cannot,
    canonical,
    config_of,
    context_of,
    first_run,
    is_causal,
    is_removed,
    quiet,
)
from numtok.models.pretrained.folder import PretrainedFolder

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedConfig

_TOKENIZERS = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "tokenizer.model"),
    "sentencepiece.bpe.model",
)
_GGUF = ".gguf"
_NEAR = 1e-3  # largest difference of equal states, as a fraction of their largest coordinate
_LONGEST = 2048  # tokens of a text, for models that read more: attention takes their square


@dataclass(frozen=True)
class FrozenSource:
    """A pretrained model that has not been loaded.

    folder
        Folder of the model.
    gguf
        Name of its GGUF file; None if the weights are safetensors.
    """

    folder: PretrainedFolder
    gguf: str | None

    @classmethod
    def of(cls, source: str, option: str = "--model") -> "FrozenSource":
        """Find a model, given its folder, a hub id, or a GGUF file; ``hf:`` may precede it.

        ``option`` is the option that names the model, for messages. Raises UsageError if there is
        no such model.
        """
        source = source.removeprefix(PREFIX)
        path = Path(source).expanduser()
        if path.suffix == _GGUF and path.is_file():
            return cls(PretrainedFolder(path.parent, f"{option} {source}"), path.name)
        names = sorted(file.name for file in path.glob(f"*{_GGUF}")) if path.is_dir() else []
        if not names or (path / "config.json").is_file():
            return cls(PretrainedFolder.of(source, option, _TOKENIZERS), None)
        if len(names) > 1:
            raise UsageError(
                f"{option} {source} has {len(names)} GGUF files. Name one: {path / names[0]}"
            )
        return cls(PretrainedFolder(path, f"{option} {source}"), names[0])

    @property
    def stem(self) -> str:
        """Name of the folder, the hub id or the GGUF file, without its path and extension."""
        if self.gguf is not None:
            return Path(self.gguf).stem
        return Path(self.folder.shown.partition(PREFIX)[2]).name

    def files(self) -> list[Path]:
        """Return the files that hidden states depend on, sorted by name: weights, config and
        tokenizer. Raises UsageError if no weights can be read."""
        if self.gguf is not None:
            return [self.folder.path / self.gguf]
        named = [self.folder.path / name for name in ("config.json", TOKENIZER, *_TOKENIZERS)]
        return sorted([*self.folder.weight_files(), *filter(Path.is_file, named)])

    def digest(self) -> tuple[str, int]:
        """Return a SHA-256 digest of the files, and their total size in bytes."""
        found = [(path.name, *files.sha256_file(path)) for path in self.files()]
        lines = "".join(f"{name} {digest}\n" for name, digest, _ in found)
        return hashlib.sha256(lines.encode()).hexdigest(), sum(size for *_, size in found)

    def quantized(self) -> str | None:
        """Return the type of the weights in a GGUF file, such as ``Q4_1``; None for safetensors.

        Raises UsageError if the file is damaged, or if the package ``gguf`` is not installed.
        """
        if self.gguf is None:
            return None
        with needing(f"{self.folder.shown} (GGUF)", "gguf"):
            from gguf import GGUFReader, LlamaFileType
        try:
            field = GGUFReader(self.folder.path / self.gguf).fields["general.file_type"]
            return LlamaFileType(field.contents()).name.removeprefix("MOSTLY_")
        except Exception as error:  # the reader checks nothing
            raise self._unreadable("file", error) from None

    def load(self, pooling: Pooling, device: torch.device) -> "FrozenModel":
        """Load the model. Raises UsageError if it cannot be read, or does not read texts."""
        self.files()  # also refuses pickled weights
        with self.folder.naming(), quiet():
            module, causal = self._module()
            tokenizer = self._tokenizer()
        module = module.to(device).eval().requires_grad_(False)
        words = cast(Any, module).get_input_embeddings().num_embeddings
        if words < tokenizer.get_vocab_size():
            raise UsageError(
                f"{self.folder.shown}: the tokenizer has {tokenizer.get_vocab_size():,} tokens, "
                f"but the model {words:,}. Use the model's own tokenizer"
            )
        context = min(context_of(module) or _LONGEST, _LONGEST)
        tokenizer.no_padding()
        # The end of a text matters for the last state, and the start for the mean.
        tokenizer.enable_truncation(context, direction="left" if pooling == "last" else "right")
        model = FrozenModel(module=module, tokenizer=tokenizer, causal=causal, pooling=pooling)
        with self.folder.naming(), first_run(cast(Any, module).config.model_type):
            depends = model.depends_on_padding()
        if depends:
            raise UsageError(
                f"{self.folder.shown}: its hidden states depend on padding, and so on the texts "
                "in a batch. Use another model, such as BERT or RoBERTa"
            )
        return model

    def _module(self) -> tuple[nn.Module, bool]:
        """Return the model, and whether it is causal."""
        from transformers import AutoModel

        if self.gguf is None:
            config = config_of(self.folder.config())
            kind, causal = _class_for(config)
            how = {"config": config, "use_safetensors": True}
        else:
            kind, causal, how = AutoModel, True, {"gguf_file": self.gguf}
        try:
            with redirect_stderr(StringIO()):  # a bar of its own while it dequantizes
                module, loading = kind.from_pretrained(
                    self.folder.path,
                    dtype=torch.float32,
                    local_files_only=True,
                    trust_remote_code=False,
                    output_loading_info=True,
                    **how,
                )
        except Exception as error:  # many types, depending on what is wrong with a file
            raise self._unreadable("weights", error) from None
        if lost := sorted(name for name in loading["missing_keys"] if not is_removed(name)):
            raise UsageError(
                f"{self.folder.shown}: the weights lack {len(lost)} tensors, the first "
                f"{lost[0]!r}; they do not match config.json. Save the whole model"
            )
        if self.gguf is not None:
            causal = is_causal(canonical(module.config.to_dict()))
        module.config.use_cache = False
        return module, causal

    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer
        from transformers import AutoTokenizer

        path, how = self.folder.path, {} if self.gguf is None else {"gguf_file": self.gguf}
        try:
            if self.gguf is None and (path / TOKENIZER).is_file():
                return Tokenizer.from_file(str(path / TOKENIZER))
            auto: Any = AutoTokenizer
            made = auto.from_pretrained(path, local_files_only=True, trust_remote_code=False, **how)
            return cast("Tokenizer", made.backend_tokenizer)
        except Exception as error:  # a missing file, package or key
            raise self._unreadable("tokenizer", error) from None

    def _unreadable(self, what: str, error: Exception) -> NumtokError:
        if isinstance(error, NumtokError):
            return error
        if is_out_of_memory(error):
            raise error
        why = " ".join(str(error).split())[:200]
        return UsageError(f"{self.folder.shown}: the {what} cannot be read ({why})")


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenModel:
    """A pretrained model whose weights do not change.

    module
        Module of transformers, which maps token ids to hidden states.
    causal
        True if each state depends only on the tokens up to its own position.
    """

    module: nn.Module
    tokenizer: "Tokenizer"
    causal: bool
    pooling: Pooling

    @cached_property
    def width(self) -> int:
        """Number of values in a hidden state."""
        return self.pooled([[self._empty]]).shape[1]

    def depends_on_padding(self) -> bool:
        """Return whether the state of a text changes if a longer text is in the same batch."""
        short, long = [self._empty] * 2, [self._empty] * 5
        alone_D, padded_D = self.pooled([short])[0], self.pooled([short, long])[0]
        return bool((padded_D - alone_D).abs().max() > _NEAR * alone_D.abs().max())

    def tokens(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        """Return the token ids of each text, and the number of texts that were cut because they are
        longer than the model's context."""
        encoded = self.tokenizer.encode_batch([*texts])
        ids = [one.ids or [self._empty] for one in encoded]
        return ids, sum(bool(one.overflowing) for one in encoded)

    @torch.no_grad()
    def pooled(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the pooled hidden state of each row of token ids, float32[n, width] on the CPU."""
        device = next(self.module.parameters()).device
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.full((len(rows), int(lengths.max())), self._padding)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        ids, mask, lengths = (tensor.to(device) for tensor in (ids, mask, lengths))
        states: Tensor = self.module(input_ids=ids, attention_mask=mask.long())[0]
        if self.pooling == "last":
            return states[torch.arange(len(rows), device=device), lengths - 1].cpu()
        total = (states * mask[..., None]).sum(dim=1)
        return (total / lengths[:, None]).cpu()

    @property
    def _padding(self) -> int:
        """Id of padding, by which RoBERTa numbers positions."""
        padding = getattr(cast(Any, self.module).config, "pad_token_id", None)
        return padding if isinstance(padding, int) and padding >= 0 else 0

    @property
    def _empty(self) -> int:
        """Id that stands for a text without tokens."""
        start = getattr(cast(Any, self.module).config, "bos_token_id", None)
        return start if isinstance(start, int) else self._padding


def _class_for(config: "PreTrainedConfig") -> tuple[Any, bool]:
    """Return the class of transformers that reads a model, and whether the model is causal.

    Raises UsageError for models that are quantized or do not read texts.
    """
    from transformers import AutoModel, AutoModelForTextEncoding
    from transformers.models.auto.modeling_auto import MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES

    kind = config.model_type
    if getattr(config, "quantization_config", None):
        raise cannot(kind, "has quantized weights")
    if config.is_encoder_decoder:
        if kind in MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES:
            return AutoModelForTextEncoding, False
        raise cannot(kind, "has an encoder that transformers does not run without its decoder")
    if config.sub_configs:
        raise cannot(kind, "consists of several models, for example for images or audio")
    return AutoModel, is_causal(canonical(config.to_dict()))
