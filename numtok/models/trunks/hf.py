"""hf: a pretrained causal or masked language model from the transformers library, ``--preset
hf:FOLDER_OR_ID``."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from numtok.declaration import LEARNED, setting
from numtok.errors import needing
from numtok.models.attention import Cache, Shape
from numtok.models.presets import TrainingDefaults
from numtok.models.pretrained import architecture as architectures
from numtok.models.pretrained.folder import PretrainedFolder
from numtok.models.trunks.base import (
    CachedModule,
    FirstNorm,
    PretrainedTrunk,
    PretrainedWeights,
    Sight,
    TrunkCache,
    TrunkModule,
    asked_states,
)

#: A small model, built if none is named, for checks.
_SMALL = architectures.canonical(
    {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    | {"vocab_size": 300, "bos_token_id": 299, "eos_token_id": 299}
)
#: Names of query and value projections in various architectures, some of all three in one (Hu et
#: al. 2022, Section 7.1: these two are the best choice of few).
_ADAPTED = frozenset(
    {
        *("q_proj", "v_proj", "query", "value", "q_lin", "v_lin", "c_attn", "query_key_value"),
        *("qkv_proj", "Wqkv", "query_proj", "value_proj", "in_proj"),
    }
)

_ADAPTER = "default"  # name of the LoRA matrices


@dataclass(frozen=True)
class Hf(PretrainedTrunk, TrainingDefaults):
    """A pretrained model from the transformers library, to be fine-tuned or frozen.

    The artifact of a trained model contains all weights, so the original folder is no longer
    needed. Text tokens keep the model's own vectors; special tokens and number tokens get new ones.

    architecture
        The model's config, as canonical JSON.
    sha256
        Digest of the model's weight files; empty if the weights are random.
    tune
        ``full`` trains all weights. ``lora`` trains low-rank matrices that are added to the query
        and value projections (Hu et al. 2022). ``heads`` trains none of the pretrained weights.
        With ``lora`` or ``heads``, the pretrained weights, including the text-token vectors, are
        frozen; the embedder, the heads and the new token vectors are trained.
    rank
        Rank of the matrices that ``lora`` adds.
    rows
        Initial vectors of new tokens. ``drawn`` samples them from the distribution of the model's
        own vectors; ``digits`` initializes each number token to the mean of its characters'
        vectors.
    random
        Use random instead of pretrained weights, as a baseline.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "transformers; LoRA: Hu et al. (2022), arXiv 2106.09685"
    recomputes: ClassVar[bool] = True
    architecture: str = field(default=_SMALL, metadata=LEARNED)
    sha256: str = field(default="", metadata=LEARNED)
    tune: str = setting("full", choices=("full", "lora", "heads"))
    rank: int = setting(8, at_least=1)
    rows: str = setting("drawn", choices=("drawn", "digits"))
    random: bool = False

    def of(self, source: str) -> "Hf":
        folder = PretrainedFolder.of(source)
        weights = "" if self.random else folder.digest()
        return replace(self, architecture=folder.architecture(), sha256=weights)

    def weights(self, source: str) -> PretrainedWeights | None:
        return None if self.random else PretrainedFolder.of(source).read(self.architecture)

    @property
    def words(self) -> int:
        return 0 if self.random else self._facts.words

    @property
    def by_digits(self) -> bool:
        return self.rows == "digits"

    @property
    def title(self) -> str:
        """Model type and the start of the model's digest, such as ``gpt2-1a2b3c4d`` or
        ``gpt2-random``."""
        return "-".join([self._facts.kind, self.sha256[:8] or "random"])

    @property
    def _facts(self) -> architectures.Facts:
        return architectures.facts(self.architecture)

    @property
    def learning_rate(self) -> float:
        return 2e-4 if self.tune == "full" else 1e-3

    @property
    def tied(self) -> bool:
        return self._facts.tied

    @property
    def width(self) -> int:
        return self._facts.width

    @property
    def context(self) -> int | None:
        return self._facts.context

    @property
    def sight(self) -> Sight:
        return "earlier" if self._facts.causal else "all"

    @property
    def keeps_vectors(self) -> bool:
        return self.tune != "full"

    @property
    def length_is_lost(self) -> str | None:
        if self._facts.position_weights:
            return None
        return (
            f"a {self._facts.kind}, which adds no positions: layer norm would discard the value. "
            "Use another --embedder, such as fourier, or a model that adds positions, such as GPT-2"
        )

    def uses(self) -> dict[str, object]:
        return {"architecture": self.architecture}

    def build(self, causal: bool) -> TrunkModule:
        return _Pretrained(self)

    @torch.no_grad()
    def begin(self, module: TrunkModule, weights: PretrainedWeights) -> None:
        own, tensors = cast(_Pretrained, module).own(), weights.trunk
        shapes, pretrained = ({n: tuple(t.shape) for n, t in of.items()} for of in (own, tensors))
        if shapes != pretrained:
            name = min(dict(shapes.items() ^ pretrained.items()))
            raise ValueError(f"{name} is {pretrained.get(name)}, expected {shapes.get(name)}")
        for name, weight in own.items():
            weight.copy_(tensors[name])

    @torch.no_grad()
    def whole(
        self, module: TrunkModule, vectors_VD: Tensor, outputs_VD: Tensor
    ) -> nn.Module | None:
        if not self._facts.causal:  # a masked model has further layers before its output
            return None
        weights: dict[str, Tensor] = {**cast(_Pretrained, module).own()}
        for name, part in cast(_Pretrained, module).model.named_modules():
            if hasattr(part, "get_delta_weight"):  # a layer with LoRA matrices
                added = cast(Any, part).get_delta_weight(_ADAPTER)
                weights[f"{name}.weight"] = weights[f"{name}.weight"] + added
        return architectures.whole(self.architecture, weights, vectors_VD, outputs_VD)


class _Pretrained(CachedModule):
    """A module of transformers that maps vectors to its last hidden states.

    A row is at the model's first positions, followed by padding.
    """

    def __init__(self, trunk: Hf) -> None:
        super().__init__()
        self._of = architectures.facts(trunk.architecture)
        self._has_run = False
        self.model: nn.Module = architectures.build(trunk.architecture)
        if trunk.keeps_vectors:
            self.model.requires_grad_(False)
        if trunk.tune == "lora":
            _adapt(self.model, trunk.rank, self._of.kind)

    def forward(
        self, x_BLD: Tensor, real_BL: Tensor | None, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """A causal model does not need ``real_BL``: it never attends to padding after a row."""
        model = cast(Any, self.model)
        if self.recompute != model.is_activation_checkpointing:
            if self.recompute:
                model.activation_checkpointing_enable({"use_reentrant": False})
            else:
                model.activation_checkpointing_disable()
        mask = None if self._of.causal or real_BL is None else real_BL.long()
        with nullcontext() if self._has_run else architectures.first_run(self._of.kind):
            states = model(inputs_embeds=x_BLD, attention_mask=mask, use_cache=False)[0]
        self._has_run = True
        return _at(states, asked_BQ)

    def own(self) -> dict[str, nn.Parameter]:
        """Return the parameters of the pretrained model, by their names in transformers."""
        return {
            name.replace(".base_layer.", "."): weight
            for name, weight in self.model.named_parameters()
            if ".lora_" not in name
        }

    def in_turn(self) -> list[nn.Module]:
        return architectures.blocks(self.model, self._of.layers)

    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> Cache:
        tokens = tokens if self._of.context is None else min(tokens, self._of.context)
        if spent is not None:
            return cast(Cache, spent).resized(rows, tokens)
        of = self._of
        # Its heads are those of keys, whose width need not be the states' width over their number.
        shape = Shape(
            layers=of.layers, heads=of.heads, width=of.heads * of.head_width, context=tokens
        )
        return Cache(shape, rows, tokens, next(self.model.parameters()))

    def extend(self, x_BLD: Tensor, cache: TrunkCache, asked_BQ: Tensor | None = None) -> Tensor:
        from numtok.models.pretrained.cache import FilledCache

        store, length, device = cast(Cache, cache), x_BLD.shape[1], x_BLD.device
        first = not store.longest
        if first:
            at_BL = torch.arange(length, device=device)[None]
            seen_BLT = torch.ones(1, length, length, dtype=torch.bool, device=device).tril()
        else:
            most = store.tokens if self._of.context is None else self._of.context
            at_BL = store.length.clamp(max=most - 1)[:, None]
            places_T = torch.arange(store.longest + 1, device=device)
            seen_BLT = (places_T <= store.length[:, None])[:, None]
        model = cast(Any, self.model)
        states = model(
            inputs_embeds=x_BLD,
            attention_mask=self._mask(seen_BLT[:, None], x_BLD),
            position_ids=at_BL.expand(len(x_BLD), -1),
            use_cache=True,
            cache=FilledCache(store),
        )[0]
        if not first:
            cache.rewind(store.length + 1, min(store.longest + 1, store.tokens))
        return _at(states, asked_BQ)

    def _mask(self, seen_BHLT: Tensor, x_BLD: Tensor) -> Tensor:
        """Return the mask in the form of the model's attention: added to the scores, or a bool."""
        if cast(Any, self.model).config._attn_implementation == "sdpa":
            return seen_BHLT
        least = torch.finfo(x_BLD.dtype).min
        return torch.zeros_like(seen_BHLT, dtype=x_BLD.dtype).masked_fill(~seen_BHLT, least)

    def position_weights(self) -> int:
        return self._of.position_weights

    def first_norm(self) -> FirstNorm | None:
        """Detect the norm by running the model.

        Its input for zero vectors is what the model adds to all vectors. If its input for other
        vectors is not their sum with that, it is not such a norm.
        """
        context = self._of.context if self._of.position_weights else 1
        x_BLD = torch.randn(2, context or 1, self._of.width, generator=torch.Generator())
        x_BLD[0] = 0
        x_BLD = x_BLD.to(next(self.model.parameters()).device)
        norm, found_BLD = architectures.first_norm_of(self.model, x_BLD)
        if norm is None or not torch.allclose(found_BLD[1], x_BLD[1] + found_BLD[0], atol=1e-4):
            return None
        return FirstNorm(norm, found_BLD[0])


def _at(states_BLD: Tensor, asked_BQ: Tensor | None) -> Tensor:
    return states_BLD if asked_BQ is None else asked_states(states_BLD, asked_BQ)


def _adapt(model: nn.Module, rank: int, kind: str) -> None:
    """Add LoRA matrices of the given rank to query and value projections; only these are trained.

    Raises UsageError if the architecture has no projections with known names.
    """
    with needing("--preset hf:...,tune=lora", "transformers and peft"):
        from peft import LoraConfig, inject_adapter_in_model
    maps = {
        name: module
        for name, module in model.named_modules()
        if name.rpartition(".")[2] in _ADAPTED and hasattr(module, "weight")
    }
    if not maps:
        raise architectures.cannot(kind, "has no query and value projections with known names")
    inject_adapter_in_model(
        LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            target_modules=[*maps],
            fan_in_fan_out=any(type(layer).__name__ == "Conv1D" for layer in maps.values()),
        ),
        model,
        adapter_name=_ADAPTER,
    )
