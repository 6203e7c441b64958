"""A trained model as a class of transformers, read from what ``numtok export`` wrote."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from numtok.encoding.codec import Codec
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
from numtok.models.trunks.base import CachedModule, TrunkCache
from numtok.settings.predict import Config
from numtok.stored_json import convert
from numtok.training.model_json import Trained
from numtok.training.transformers_folder import MODEL_TYPE, NETWORK, TransformersConfig, writes


class NumtokConfig(PreTrainedConfig):
    """All of a model but its weights: ``numtok`` holds a :class:`TransformersConfig`."""

    model_type = MODEL_TYPE

    def __init__(self, numtok: dict[str, Any] | None = None, **settings: Any) -> None:
        self.numtok = numtok
        super().__init__(**settings)

    def parsed(self) -> TransformersConfig:
        """What ``numtok`` says; UsageError where it says nothing, or nothing that can be."""
        if self.numtok is None:
            raise UsageError(
                "a NumtokConfig is of a trained model; read it from the folder that "
                "`numtok export MODEL --format transformers` writes"
            )
        try:
            return convert(self.numtok, TransformersConfig)
        except ValueError as error:
            raise UsageError(f"the config is of no model of numtok ({error})") from None


@dataclass
class RowsRead:
    """The B rows that a model has read, if its tokens alone say what it writes.

    trunk
        Keys and values.
    before
        [B, T]: the tokens of each row, padded on the left, from which digit positions follow.
    """

    model: Model
    trunk: TrunkCache
    before: NDArray[np.int64]

    @classmethod
    def of(cls, model: Model, tokens_BL: Tensor, length_B: Tensor) -> "tuple[RowsRead, Tensor]":
        """The beginnings of rows, pads behind them; and [B, 1, D], the state of each last token."""
        trunk = model.cached_trunk.cache(len(tokens_BL), model.settings.context)
        read = cls(model, trunk, np.zeros((len(tokens_BL), 0), np.int64))
        states = read._read(tokens_BL, length_B[:, None] - 1)
        trunk.rewind(length_B, tokens_BL.shape[1])
        read.before = flush_right(read.before, length_B.cpu().numpy())
        return read, states

    def extend(self, tokens_B1: Tensor) -> Tensor:
        """[B, 1, D]: the state of a token more of each row.

        Raises DataError where the model reads no longer rows.
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
        """Go on with these rows (int64[B]), of which one may come twice: a search for beams."""
        self.trunk = self.trunk.take(rows, self.trunk.tokens)
        self.before = self.before[rows.cpu().numpy()]


def _too_long(tokens: int, model: Model) -> DataError:
    """The error of a row that the model does not read."""
    return DataError(
        f"a row has {tokens:,} tokens, the model reads {model.settings.context:,}; cut it, or give "
        "generate a max_length"
    )


@dataclass
class NumtokOutput(ModelOutput):
    """What a model says of each token.

    logits
        [B, L, vocabulary], of a causal model those of the next token; of one that says labels
        [B, classes].
    last_hidden_state
        [B, L, D], what the logits and the numbers are read from.
    cache
        What was read, where that was to be kept; logits and states are then of the last token of
        each row alone.
    """

    logits: Tensor | None = None
    last_hidden_state: Tensor | None = None
    cache: RowsRead | None = None


class NumtokModel(PreTrainedModel):
    """A model that numtok has trained, for texts as a :class:`NumtokTokenizer` gives them.

    >>> tokenizer = AutoTokenizer.from_pretrained("rooms")
    >>> model = AutoModel.from_pretrained("rooms")
    >>> model.predict(["A room of 3 m by 4.5 m has [?] square metres."], tokenizer)[0].numbers
    [{'literal': '13.52871', 'value': 13.52871, 'q05': 13.1, ...}]

    network
        The model as the rest of numtok has it.
    """

    config_class = NumtokConfig
    base_model_prefix = ""
    main_input_name = "input_ids"

    def __init__(self, config: NumtokConfig) -> None:
        super().__init__(config)
        self._known = config.parsed()
        network = self._known.model()
        self.add_module(NETWORK, network)
        self.network: Model = network
        table = network.get_parameter(network.vectors)
        self._tied_weights_keys = {
            f"{NETWORK}.{name}": f"{NETWORK}.{network.vectors}"
            for name, one in network.named_parameters(remove_duplicate=False)
            if one is table and name != network.vectors
        }
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Parts are as they were built; but where they were built without memory, to be loaded,
        what is computed and not loaded is still to be."""
        computed = dict(module.named_buffers(recurse=False))
        names = [name for name, one in self.network.named_modules() if one is module]
        if computed and names:
            made = self._known.model().get_submodule(names[0])
            for name, one in computed.items():
                one.copy_(made.get_buffer(name))

    def get_input_embeddings(self) -> nn.Module:
        """The table of tokens."""
        return self.network.get_submodule(self.network.vectors.rpartition(".")[0])

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        values: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> NumtokOutput:
        """Of rows [B, L]; pads stand before them or behind them.

        values
            [B, L]: what stands beside each token, as the tokenizer gives it; None: 1 everywhere.
            Embedders that see all digits of a number take them from float64.

        Raises DataError for rows that are longer than the model reads.
        """
        values = torch.ones(input_ids.shape) if values is None else values
        real = _are_tokens(input_ids, attention_mask)
        at, before, from_first = self._places(real)
        tokens, mask = input_ids.gather(1, from_first), real.gather(1, from_first)
        beside = values.to(from_first.device, torch.float32).gather(1, from_first)
        exact = values.cpu().gather(1, from_first.cpu())
        known = self.network.of_host(tokens.cpu().numpy(), exact.numpy())
        states = self.network.hidden(tokens, beside, None if mask.all() else mask, None, known)
        back = ((at - before) % at.shape[1])[..., None].expand(-1, -1, states.shape[2])
        states = states.gather(1, back)
        if self.network.settings.classes:
            last = (at * real).argmax(dim=1)
            rows = torch.arange(len(last), device=last.device)
            return NumtokOutput(self.network.class_head(states[rows, last]), states)
        logits = self.network.token_head(states.flatten(0, 1))
        return NumtokOutput(logits.unflatten(0, states.shape[:2]), states)

    def _places(self, real: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of rows [B, L]: places [1, L], how many pads stand before each [B, 1], and where its
        tokens are, the first one first [B, L]."""
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
        """What the model says of each text, for the numbers written ``[?]``, or its label, as
        ``numtok predict`` says it: with quantiles, in the units of the text.

        Raises DataError for what is no column of texts, a text without ``[?]`` and one that is too
        long, UsageError for what the model cannot be asked.
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
        asked = _Exported(
            str(self.name_or_path), self.network, tokenizer.codec, self._known.trained
        )
        predictor = TextPredictor(asked, mode)
        rows = [Query.of_text(text) for text in Texts.of(texts).strings()]
        return predictor.say(rows, lambda note: None)


class NumtokForCausalLM(NumtokModel, GenerationMixin):
    """The same of a model that writes token by token: ``generate`` writes on behind a text, whose
    numbers the tokenizer's ``decode`` reads."""

    def __init__(self, config: NumtokConfig) -> None:
        super().__init__(config)
        if not writes(self.network):
            raise UsageError(
                "this model writes no text by its tokens alone: it is masked, or numbers have a "
                "value beside them; load it by AutoModel, and ask it by model.predict"
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
        """As of any model; ``use_cache``: keep what is read, in ``cache``, with which the next
        token of each row comes alone."""
        if not use_cache or not isinstance(self.network.trunk, CachedModule):
            return super().forward(input_ids, attention_mask, values)
        if cache is not None:
            states = cache.extend(input_ids)
        else:
            real = _are_tokens(input_ids, attention_mask)
            _, _, from_first = self._places(real)
            tokens = input_ids.gather(1, from_first)
            cache, states = RowsRead.of(self.network, tokens, real.sum(dim=1))
        logits = self.network.token_head(states.flatten(0, 1))
        return NumtokOutput(logits.unflatten(0, states.shape[:2]), states, cache)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # a cache of its own, which the first pass gives

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        cache: RowsRead | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The last token of each row, where the others are in the cache; else whole rows."""
        asked = {"attention_mask": attention_mask, "use_cache": use_cache, "cache": cache}
        return {"input_ids": input_ids if cache is None else input_ids[:, -1:]} | asked


def _are_tokens(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """bool[B, L]: what is no pad."""
    return input_ids != PAD if attention_mask is None else attention_mask.bool()


@dataclass(frozen=True)
class _Exported:
    """A model that is asked."""

    ref: str
    model: Model
    codec: Codec
    trained: Trained
