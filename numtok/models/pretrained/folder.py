"""Model folders as written by the transformers library: config, weights, tokenizer.

Weights are only read from safetensors files (one file or several shards), because other formats
could run code.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from numtok import documents, files
from numtok.encoding.model_folder import PREFIX, TOKENIZER, model_folder
from numtok.errors import UsageError
from numtok.models.pretrained.architecture import canonical, config_of, facts, is_removed, quiet
from numtok.models.trunks.base import PretrainedWeights

CONFIG = "config.json"
_WHOLE, _INDEX, _ADAPTER = (
    "model.safetensors",
    "model.safetensors.index.json",
    "adapter_config.json",
)
_WANTED = (CONFIG, TOKENIZER, "*.safetensors", _INDEX)
_NEEDED = (CONFIG, "*.safetensors")
_LARGEST_INDEX = 64 << 20  # bytes


@dataclass(frozen=True)
class PretrainedFolder:
    """A folder that contains a pretrained model. ``shown`` is the folder's name in messages, such
    as ``--preset hf:gpt2``."""

    path: Path
    shown: str

    @classmethod
    def of(
        cls, source: str, option: str = "--preset", more_wanted: Sequence[str] = ()
    ) -> "PretrainedFolder":
        """Open a folder, given its path or a hub ID. Raises UsageError if it contains no model.

        option
            Option that names the folder, for messages.
        more_wanted
            Patterns for the names of further files to download, such as those of a tokenizer.
        """
        wanted = (*_WANTED, *more_wanted)
        path, shown = model_folder(source, wanted, _NEEDED), f"{option} {PREFIX}{source}"
        if not (path / CONFIG).is_file():
            adapter = ". It has an adapter: merge that into its model, and save the whole model"
            raise UsageError(
                f"{shown}: the folder has no {CONFIG}"
                + (adapter if (path / _ADAPTER).is_file() else ". Write one with save_pretrained")
            )
        return cls(path, shown)

    def architecture(self) -> str:
        """Return the architecture of the model (see :mod:`numtok.models.pretrained.architecture`).
        Raises UsageError if it cannot be a trunk."""
        architecture = self.config()
        with self.naming():
            facts(architecture)
        return architecture

    def config(self) -> str:
        """Return the architecture of the model, which may be one that cannot be a trunk.

        Raises UsageError if ``config.json`` is not a JSON object.
        """
        shown = f"{self.shown}: {CONFIG}"
        config = documents.json(documents.read(self.path / CONFIG, shown), shown)
        if not isinstance(config, dict):
            raise UsageError(f"{shown} must be a JSON object. Write one with save_pretrained")
        return canonical(config)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Context manager that names this folder in errors about its architecture."""
        try:
            yield
        except UsageError as error:
            raise UsageError(str(error).replace("--preset hf", self.shown, 1)) from None

    def digest(self) -> str:
        """Return a SHA-256 digest of the weight files, sorted by name."""
        return _digest(tuple((path, *_state(path)) for path in self.weight_files()))

    def weight_files(self) -> list[Path]:
        """Return the paths of the weight files, sorted by name.

        Raises UsageError if no weights can be read.
        """
        if (self.path / _ADAPTER).is_file():
            raise UsageError(
                f"{self.shown}: the folder has an adapter next to its model. Merge it into the "
                "model, and save the whole model"
            )
        if (self.path / _WHOLE).is_file():
            return [self.path / _WHOLE]
        if (self.path / _INDEX).is_file():
            return self._shards()
        pickled = sorted([*self.path.glob("*.bin"), *self.path.glob("*.pt")])
        if pickled:
            raise UsageError(
                f"{self.shown}: the weights are pickled ({pickled[0].name}), which can run code. "
                "Save them as safetensors, on a machine that trusts the folder: "
                "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
        raise UsageError(
            f"{self.shown}: the folder has no weights ({_WHOLE}, or {_INDEX} and its shards). "
            "Download them, or add random=yes to the preset for random ones"
        )

    def _shards(self) -> list[Path]:
        shown = f"{self.shown}: {_INDEX}"
        index = documents.json(documents.read(self.path / _INDEX, shown, _LARGEST_INDEX), shown)
        places: Any = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise UsageError(f"{shown} names no shards. Write one with save_pretrained")
        names = sorted({str(name) for name in places.values()})
        for name in names:
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise UsageError(f"{shown} names {name!r}, which is not a shard in the folder")
            if not (self.path / name).is_file():
                raise UsageError(f"{self.shown}: the shard {name} is missing. Download it")
        return [self.path / name for name in names]

    def read(self, architecture: str) -> PretrainedWeights:
        """Read the weights, as float32 on the host. Raises UsageError if weights are missing or
        have the wrong shapes.

        The files are read with transformers, because the names in the files may differ from the
        names in the module.
        """
        self.weight_files()
        of = facts(architecture)
        with quiet():
            from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

            kind: Any = AutoModelForCausalLM if of.causal else AutoModelForMaskedLM
            try:
                whole, loading = kind.from_pretrained(
                    self.path,
                    config=config_of(architecture),
                    dtype=torch.float32,
                    use_safetensors=True,
                    local_files_only=True,
                    trust_remote_code=False,
                    output_loading_info=True,
                )
            except Exception as error:  # many types, depending on what is wrong with a file
                why = " ".join(str(error).split())[:200]
                raise UsageError(f"{self.shown}: the weights cannot be read ({why})") from None
        base = whole.base_model
        words, outputs = base.get_input_embeddings(), whole.get_output_embeddings()
        table, scaled = words.weight, type(words) is not nn.Embedding
        missing = {*loading["missing_keys"]}
        names = {id(tensor): name for name, tensor in whole.named_parameters()}
        trunk = {name: tensor for name, tensor in base.named_parameters() if tensor is not table}
        lost = [name for name, tensor in trunk.items() if names[id(tensor)] in missing]
        if lost := [name for name in lost if not is_removed(name)]:
            raise UsageError(
                f"{self.shown}: the weights lack {len(lost)} tensors, the first {lost[0]!r}; they "
                f"do not match {CONFIG}"
            )
        if names[id(table)] in missing:
            raise UsageError(f"{self.shown}: the weights have no token vectors")
        own = None if outputs is None else outputs.weight
        if own is not None and ((own is table and not scaled) or names[id(own)] in missing):
            own = None
        vectors = words(torch.arange(len(table))) if scaled else table
        return PretrainedWeights(
            {name: tensor.detach() for name, tensor in trunk.items() if not is_removed(name)},
            vectors.detach(),
            None if own is None else own.detach(),
        )

    def tokenizer(self) -> Path | None:
        """Return the path of the folder's ``tokenizer.json``; None if it has none."""
        path = self.path / TOKENIZER
        return path if path.is_file() else None


def _state(path: Path) -> tuple[int, int, int]:
    """Return values that change when a file changes."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=16)
def _digest(weight_files: tuple[tuple[Any, ...], ...]) -> str:
    """Compute the digest, cached for unchanged files, because presets are parsed often."""
    digests = [files.sha256_file(path)[0] for path, *_ in weight_files]
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )
