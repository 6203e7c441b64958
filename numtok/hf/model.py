"""Trained models as transformers classes, loaded from the folders that ``numtok export`` writes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from numtok.encoding.texts import Texts
from numtok.errors import DataError, UsageError
from numtok.evaluation.labels import LabelOptions
from numtok.evaluation.predict import AUTOREGRESSIVE, PARALLEL, Options
from numtok.evaluation.prediction_mode import Mode
from numtok.evaluation.text_rows import Query, RowPrediction, TextPredictor
from numtok.hf.tokenizer import NumtokTokenizer
from numtok.models.batches import PAD, flush_right
from numtok.models.heads.base import default_point
from numtok.models.model import Model
from numtok.models.precision import InFloat32
from numtok.models.trunks.base import CachedModule, TrunkCache
from numtok.settings.predict import Config
from numtok.stored_json import convert
from numtok.training.model_files import ModelInMemory
from numtok.training.transformers_folder import MODEL_TYPE, NETWORK, TransformersConfig, writes


class NumtokConfig(PreTrainedConfig):
    """Transformers configuration of a trained model. ``numtok`` is a dict with the fields of a
    :class:`TransformersConfig`."""

    model_type = MODEL_TYPE

    def __init__(self, numtok: dict[str, Any] | None = None, **settings: Any) -> None:
        self.numtok = numtok
        super().__init__(**settings)

    def parsed(self) -> TransformersConfig:
        """Return ``numtok`` as a :class:`TransformersConfig`. Raises UsageError if it is missing or
        invalid."""
        if self.numtok is None:
            raise UsageError(
                "a NumtokConfig must describe a trained model. Load it from a folder that "
                "`numtok export MODEL --format transformers` wrote"
            )
        try:
            return convert(self.numtok, TransformersConfig)
        except ValueError as error:
            raise UsageError(f"the config is not that of a numtok model ({error})") from None


@dataclass
class RowsRead:
    """Cached state of B rows that a model has read, for generating further tokens.

    Only models that predict tokens without values are supported.

    trunk
        Cached keys and values.
    before
        int64[B, T], tokens of each row so far, padded on the left. Digit positions are computed
        from them.
    """

    model: Model
    trunk: TrunkCache
    before: NDArray[np.int64]

    @classmethod
    def of(cls, model: Model, tokens_BL: Tensor, length_B: Tensor) -> "tuple[RowsRead, Tensor]":
        """Read the first tokens of each row. Return the state and the hidden state of each row's
        last token.

        ``tokens_BL`` is padded on the right, and ``length_B`` is the number of tokens in each row.
        The hidden states are [B, 1, D].
        """
        trunk = model.cached_trunk.cache(len(tokens_BL), model.settings.context)
        read = cls(model, trunk, np.zeros((len(tokens_BL), 0), np.int64))
        states = read._read(tokens_BL, length_B[:, None] - 1)
        trunk.rewind(length_B, tokens_BL.shape[1])
        read.before = flush_right(read.before, length_B.cpu().numpy())
        return read, states

    def extend(self, tokens_B1: Tensor) -> Tensor:
        """Read one more token of each row and return its hidden state, [B, 1, D].

        Raises DataError if the rows become longer than the model's context.
        """
        if self.trunk.longest >= self.model.settings.context:
            raise _too_long(self.trunk.longest + 1, self.model)
        return self._read(tokens_B1)

    def _read(self, tokens_BL: Tensor, asked_BQ: Tensor | None = None) -> Tensor:
        """Run ``Model.extend`` on tokens without values."""
        tokens = tokens_BL.cpu().numpy()
        ones = torch.ones(tokens_BL.shape, device=tokens_BL.device)
        known = self.model.of_host(tokens, np.ones(tokens.shape), self.before)
        self.before = np.concatenate([self.before, tokens], axis=1)
        return self.model.extend(tokens_BL, ones, self.trunk, asked_BQ, known)

    def reorder_cache(self, rows: Tensor) -> None:
        """Keep the rows at the indices ``rows`` (int64[B]). Beam search may select a row several
        times."""
        self.trunk = self.trunk.take(rows, self.trunk.tokens)
        self.before = self.before[rows.cpu().numpy()]


def _too_long(tokens: int, model: Model) -> DataError:
    """Return the error for a row that exceeds the model's context."""
    return DataError(
        f"a row has {tokens:,} tokens, but the model's context is {model.settings.context:,}. "
        "Shorten it, or pass generate a max_length"
    )


@dataclass
class NumtokOutput(ModelOutput):
    """Output of a :class:`NumtokModel`.

    logits
        [B, L, vocabulary], for the next token if the model is causal; [B, classes] for a
        classifier.
    last_hidden_state
        [B, L, D], the states from which tokens and numbers are predicted.
    cache
        Cache to pass to the next step if ``use_cache`` was set. In this case, only the logits and
        the state of the last token in each row are returned.
    """

    logits: Tensor | None = None
    last_hidden_state: Tensor | None = None
    cache: RowsRead | None = None


class NumtokModel(InFloat32, PreTrainedModel):
    """Model trained with numtok. Its inputs come from a :class:`NumtokTokenizer`.

    >>> tokenizer = AutoTokenizer.from_pretrained("rooms")
    >>> model = AutoModel.from_pretrained("rooms")
    >>> model.predict(["A room of 3 m by 4.5 m has [?] square metres."], tokenizer)[0].numbers
    [{'literal': '13.52871', 'value': 13.52871, 'q05': 13.1, ...}]

    network
        The underlying numtok model.
    """

    config_class = NumtokConfig
    base_model_prefix = ""
    main_input_name = "input_ids"

    def __init__(self, config: NumtokConfig) -> None:
        super().__init__(config)
        self._exported = config.parsed()
        network = self._exported.model()
        self.add_module(NETWORK, network)
        self.network: Model = network
        table = network.get_parameter(network.vectors)
        self._tied_weights_keys = {
            f"{NETWORK}.{name}": f"{NETWORK}.{network.vectors}"
            for name, parameter in network.named_parameters(remove_duplicate=False)
            if parameter is table and name != network.vectors
        }
        self.post_init()

    @classmethod
    def from_pretrained(cls, *paths: Any, **settings: Any) -> "NumtokModel":
        """Load an exported model, in float32 whatever ``dtype`` is passed."""
        return super().from_pretrained(*paths, **settings | {"dtype": torch.float32})

    def _init_weights(self, module: nn.Module) -> None:
        """Fill computed buffers, which are empty after building on the meta device.

        All other weights keep their values: they were initialized when built or are loaded.
        """
        computed = dict(module.named_buffers(recurse=False))
        names = [name for name, child in self.network.named_modules() if child is module]
        if computed and names:
            built = self._exported.model().get_submodule(names[0])
            for name, buffer in computed.items():
                buffer.copy_(built.get_buffer(name))

    def get_input_embeddings(self) -> nn.Module:
        """Return the module that embeds tokens."""
        return self.network.get_submodule(self.network.vectors.rpartition(".")[0])

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        values: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> NumtokOutput:
        """Compute logits and hidden states for tokens [B, L], padded on the left or on the right.

        values
            [B, L], the value that accompanies each token, as returned by the tokenizer. If None,
            all values are 1. Embedders that use all digits of a number need float64.

        Raises DataError if a row exceeds the model's context.
        """
        values = torch.ones(input_ids.shape) if values is None else values
        real = _are_tokens(input_ids, attention_mask)
        at, before, from_first = self._positions(real)
        tokens, mask = input_ids.gather(1, from_first), real.gather(1, from_first)
        value = values.to(from_first.device, torch.float32).gather(1, from_first)
        exact = values.cpu().gather(1, from_first.cpu())
        inputs = self.network.of_host(tokens.cpu().numpy(), exact.numpy())
        states = self.network.hidden(tokens, value, None if mask.all() else mask, None, inputs)
        back = ((at - before) % at.shape[1])[..., None].expand(-1, -1, states.shape[2])
        states = states.gather(1, back)
        if self.network.settings.classes:
            last = (at * real).argmax(dim=1)
            rows = torch.arange(len(last), device=last.device)
            return NumtokOutput(self.network.class_head(states[rows, last]), states)
        logits = self.network.token_head(states.flatten(0, 1))
        return NumtokOutput(logits.unflatten(0, states.shape[:2]), states)

    def _positions(self, real: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return positions [1, L], left-padding lengths [B, 1] and token positions [B, L].

        Token positions list each row's tokens, starting with its first one.
        """
        count = real.shape[1]
        if count > self.network.settings.context:
            raise _too_long(count, self.network)
        at = torch.arange(count, device=real.device)[None]
        before = real.long().argmax(dim=1, keepdim=True)
        return at, before, (at + before) % count

    def predict(
        self,
        texts: Any,
        tokenizer: NumtokTokenizer,
        *,
        point: str | None = None,
        decode: str = "constrained",
    ) -> list[RowPrediction]:
        """Predict the numbers marked ``[?]`` in each text, or the label of each text (see ``numtok
        predict``).

        Predicted numbers have quantiles and are in the units of the text.

        Raises DataError if ``texts`` is not a column of texts, or if a text is too long, contains a
        character that the model cannot read, or contains no ``[?]`` although numbers are predicted.
        Raises UsageError for options that do not apply to the model.
        """
        config = Config(model="", text=("",), point=point, decode=decode)
        causal = self.network.objective.causal
        mode: Mode = LabelOptions(config.batch)
        if not self.network.settings.classes:
            mode = Options(
                fill=AUTOREGRESSIVE if causal else PARALLEL,
                constrained=decode == "constrained",
                point=point or default_point(self.network.head),
                draws=config.draws,
                batch=config.batch,
            )
        exported = ModelInMemory(
            ref=str(self.name_or_path),
            model=self.network,
            codec=tokenizer.codec,
            trained=self._exported.trained,
        )
        predictor = TextPredictor(exported, mode)
        rows = [Query.of_text(text) for text in Texts.of(texts).strings()]
        return predictor.predict(rows, lambda note: None)


class NumtokForCausalLM(NumtokModel, GenerationMixin):
    """Model trained with numtok, which generates text token by token with ``generate``.

    The tokenizer's ``decode`` turns generated number tokens into digits.
    """

    def __init__(self, config: NumtokConfig) -> None:
        super().__init__(config)
        if not writes(self.network):
            raise UsageError(
                "this model cannot generate text: it is masked, or its numbers have values next to "
                "tokens. Load it with AutoModel and call model.predict"
            )

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        values: Tensor | None = None,
        return_dict: bool | None = None,
        use_cache: bool | None = None,
        cache: RowsRead | None = None,
    ) -> NumtokOutput:
        """Compute logits and hidden states, as :meth:`NumtokModel.forward` does.

        If ``use_cache`` is set, the output has a ``cache``. Pass it to the next call, together with
        ``input_ids`` [B, 1], the next token of each row.
        """
        if not use_cache or not isinstance(self.network.trunk, CachedModule):
            return super().forward(input_ids, attention_mask, values)
        if cache is not None:
            states = cache.extend(input_ids)
        else:
            real = _are_tokens(input_ids, attention_mask)
            _, _, from_first = self._positions(real)
            tokens = input_ids.gather(1, from_first)
            cache, states = RowsRead.of(self.network, tokens, real.sum(dim=1))
        logits = self.network.token_head(states.flatten(0, 1))
        return NumtokOutput(logits.unflatten(0, states.shape[:2]), states, cache)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # the first forward pass returns numtok's own cache

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        cache: RowsRead | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Return the arguments of :meth:`forward`. With a cache, ``input_ids`` is reduced to the
        last token of each row."""
        rest = {"attention_mask": attention_mask, "use_cache": use_cache, "cache": cache}
        return {"input_ids": input_ids if cache is None else input_ids[:, -1:]} | rest


def _are_tokens(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Return bool[B, L]: True for tokens, False for padding."""
    return input_ids != PAD if attention_mask is None else attention_mask.bool()
