"""hf: a pretrained model of transformers, causal or masked: ``--preset hf:FOLDER_OR_ID``."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from numtok.declaration import LEARNT, setting
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

#: What is built where no model is named: small, to be checked.
_SMALL = architectures.canonical(
    {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    | {"vocab_size": 300, "bos_token_id": 299, "eos_token_id": 299}
)
#: Maps to queries and values, as architectures call them, some of all three in one (Hu et al. 2022,
#: Section 7.1: these two are the best of few).
_ADAPTED = frozenset(
    {
        *("q_proj", "v_proj", "query", "value", "q_lin", "v_lin", "c_attn", "query_key_value"),
        *("qkv_proj", "Wqkv", "query_proj", "value_proj", "in_proj"),
    }
)

_ADAPTER = "default"  # what the matrices are called beside those maps


@dataclass(frozen=True)
class Hf(PretrainedTrunk, TrainingDefaults):
    """A model that others have trained, to be trained further or to be kept as it is.

    The artifact of a model holds all its weights, and is read without the folder that they came
    from. Text tokens have the model's own vectors; those of special and number tokens are new.

    architecture
        The model's config, as canonical JSON.
    sha256
        Of the files of its weights; empty where they are drawn.
    tune
        ``full``: all is trained. ``lora``: small matrices beside its maps to queries and values,
        whose products are added to them (Hu et al. 2022). ``heads``: nothing of it. In the last two
        its weights and its vectors of text tokens stay as they are; embedder, heads and the vectors
        of new tokens are trained.
    rank
        Of the matrices of ``lora``.
    rows
        How vectors of new tokens begin: ``drawn`` as its own are distributed, or ``digits``, the
        mean of those of the characters that write the token.
    random
        Draw its weights anew, to see what they were worth.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "transformers; LoRA: Hu et al. (2022), arXiv 2106.09685"
    recomputes: ClassVar[bool] = True
    architecture: str = field(default=_SMALL, metadata=LEARNT)
    sha256: str = field(default="", metadata=LEARNT)
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
        """``gpt2-1a2b3c4d``."""
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
            f"a {self._facts.kind}, which adds no positions: layer norm would take the value away, "
            "since it is seen only beside one; give another --embedder, such as fourier, or a "
            "model that adds them, such as GPT-2"
        )

    def uses(self) -> dict[str, object]:
        return {"architecture": self.architecture}

    def build(self, causal: bool) -> TrunkModule:
        return _Pretrained(self)

    @torch.no_grad()
    def begin(self, module: TrunkModule, weights: PretrainedWeights) -> None:
        own, tensors = cast(_Pretrained, module).own(), weights.trunk
        shapes, others = ({n: tuple(t.shape) for n, t in of.items()} for of in (own, tensors))
        if shapes != others:
            name = min(dict(shapes.items() ^ others.items()))
            raise ValueError(f"{name} is {others.get(name)}, expected {shapes.get(name)}")
        for name, one in own.items():
            one.copy_(tensors[name])

    @torch.no_grad()
    def whole(
        self, module: TrunkModule, vectors_VD: Tensor, outputs_VD: Tensor
    ) -> nn.Module | None:
        if not self._facts.causal:  # a masked model has more between its states and its tokens
            return None
        weights: dict[str, Tensor] = {**cast(_Pretrained, module).own()}
        for name, part in cast(_Pretrained, module).model.named_modules():
            if hasattr(part, "get_delta_weight"):  # a map with LoRA matrices
                added = cast(Any, part).get_delta_weight(_ADAPTER)
                weights[f"{name}.weight"] = weights[f"{name}.weight"] + added
        return architectures.whole(self.architecture, weights, vectors_VD, outputs_VD)


class _Pretrained(CachedModule):
    """A module of transformers, which is given vectors and gives its last hidden states.

    A row stands at the model's first positions, and pads behind it.
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
        """A causal one needs no ``real_BL``: what comes behind a row's end is never looked at."""
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
            name.replace(".base_layer.", "."): one
            for name, one in self.model.named_parameters()
            if ".lora_" not in name
        }

    def in_turn(self) -> list[nn.Module]:
        return architectures.blocks(self.model, self._of.layers)

    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> Cache:
        tokens = tokens if self._of.context is None else min(tokens, self._of.context)
        if spent is not None:
            return cast(Cache, spent).resized(rows, tokens)
        of = self._of
        # Its heads are those of keys, whose width need not be a share of that of states.
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
        """What is seen, as the model's attention has it: added to what is compared, or a bool."""
        if cast(Any, self.model).config._attn_implementation == "sdpa":
            return seen_BHLT
        least = torch.finfo(x_BLD.dtype).min
        return torch.zeros_like(seen_BHLT, dtype=x_BLD.dtype).masked_fill(~seen_BHLT, least)

    def position_weights(self) -> int:
        return self._of.position_weights

    def first_norm(self) -> FirstNorm | None:
        """Seen by looking: what the first norm is given of vectors of zeros is what the model adds
        to all; where it is given something else of others, it is no such norm."""
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
    """Put matrices of that rank beside the maps to queries and values; only these are trained.

    UsageError where an architecture calls none of its maps so.
    """
    with needing("--preset hf:...,tune=lora", "transformers and peft"):
        from peft import LoraConfig, inject_adapter_in_model
    maps = {
        name: module
        for name, module in model.named_modules()
        if name.rpartition(".")[2] in _ADAPTED and hasattr(module, "weight")
    }
    if not maps:
        raise architectures.cannot(kind, "has no maps to queries and values by a known name")
    inject_adapter_in_model(
        LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            target_modules=[*maps],
            fan_in_fan_out=any(type(one).__name__ == "Conv1D" for one in maps.values()),
        ),
        model,
        adapter_name=_ADAPTER,
    )
