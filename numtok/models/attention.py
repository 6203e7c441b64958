"""A transformer, used as a trunk and, in a smaller version, in heads that decode numbers.

It has pre-norm blocks with GELU, as in GPT-2 (Radford et al. 2019; xVal, Appendix A), and causal or
bidirectional attention. Positions are represented by vectors added to the embeddings (learned, or
sinusoidal as in Vaswani et al. 2017), by rotations of queries and keys (Su et al. 2021), or not at
all (Kazemnejad et al. 2023).

Shapes: B rows, L tokens, Q queried tokens, D width, H heads, E = D / H, T tokens in a cache.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from numtok.errors import UsageError
from numtok.models.trunks.base import CachedModule, FirstNorm, TrunkCache, asked_states

POSITIONS = ("learned", "sinusoidal", "rotary", "none")
_INIT = 0.02  # standard deviation of initial weights, as in GPT-2
# Pairs of a query and a key, over all rows and heads. Above _MANY, which takes a gigabyte per
# layer, attention with dropout on a CPU is computed in parts of _PART.
_MANY, _PART = 1 << 26, 1 << 22


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Size and settings of a transformer.

    context
        Maximum number of tokens per row.
    positions
        How positions are represented: one of :data:`POSITIONS`.
    """

    layers: int
    heads: int
    width: int
    context: int
    positions: str = "learned"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for what, least in (("layers", 1), ("heads", 1), ("width", 1), ("context", 0)):
            if getattr(self, what) < least:
                raise UsageError(f"{what} must be at least {least} (got {getattr(self, what)})")
        if self.width % (2 * self.heads):
            raise UsageError(
                f"width must be a multiple of {2 * self.heads} for {self.heads} heads "
                f"(got {self.width})"
            )
        if self.positions not in POSITIONS:
            raise UsageError(
                f"positions must be one of {', '.join(POSITIONS)} (got {self.positions!r})"
            )
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout must be at least 0 and below 1 (got {self.dropout})")

    @property
    def adds_positions(self) -> bool:
        """True if positions are represented by vectors that are added to the embeddings."""
        return self.positions in ("learned", "sinusoidal")


class Cache(TrunkCache):
    """Cached keys and values of the tokens that a causal transformer has read."""

    def __init__(
        self, shape: Shape, rows: int, tokens: int, like: Tensor, memory: Tensor | None = None
    ) -> None:
        self._shape = shape
        self._rows = torch.arange(rows, device=like.device)
        # One more token takes writes after a full row.
        size = (shape.layers, 2, rows, shape.heads, tokens + 1, shape.width // shape.heads)
        if memory is None or memory.numel() < math.prod(size):
            # Zeroed: masked values have no weight, but 0 times NaN would be NaN.
            memory = like.new_zeros(math.prod(size))
        self._memory = memory
        self._store = memory[: math.prod(size)].view(size)
        self.length = torch.zeros(rows, dtype=torch.int64, device=like.device)
        self.longest = 0

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def tokens(self) -> int:
        return self._store.shape[4] - 1

    def resized(self, rows: int, tokens: int) -> "Cache":
        """Return an empty cache for ``rows`` rows of ``tokens`` tokens, reusing the memory of this
        cache if it is large enough.

        This cache must not be used afterwards.
        """
        return Cache(self._shape, rows, tokens, self._memory, self._memory)

    def take(self, rows: Tensor, tokens: int, spent: "Cache | None" = None) -> "Cache":
        """Return a copy of the given rows (int64[b]), with room for ``tokens`` tokens in each row.

        ``rows`` may contain repetitions. The copy reuses the memory of the ``spent`` cache if it is
        large enough.
        """
        memory = None if spent is None else spent._memory
        taken = Cache(self._shape, len(rows), tokens, self._memory, memory)
        filled = min(self.longest, self.tokens, tokens)
        taken._store[..., :filled, :] = self._store[..., :filled, :].index_select(2, rows)
        taken.length, taken.longest = self.length[rows], self.longest
        return taken

    def put(self, layer: int, k_BHLE: Tensor, v_BHLE: Tensor) -> tuple[Tensor, Tensor]:
        """Write the keys and values of new tokens in one layer: L tokens per row if the cache is
        empty, otherwise one token per row.

        Return the keys and values of all tokens that the new tokens may attend to, [B, H, T, E]
        each.
        """
        k_BHTE, v_BHTE = self._store[layer]
        if not self.longest:
            k_BHTE[:, :, : k_BHLE.shape[2]] = k_BHLE
            v_BHTE[:, :, : v_BHLE.shape[2]] = v_BHLE
            return k_BHLE, v_BHLE
        at_B = self.length.clamp(max=self.tokens)
        k_BHTE[self._rows, :, at_B] = k_BHLE[:, :, 0]
        v_BHTE[self._rows, :, at_B] = v_BHLE[:, :, 0]
        return k_BHTE[:, :, : self.longest + 1], v_BHTE[:, :, : self.longest + 1]


class Transformer(CachedModule):
    """Module that maps embedded tokens to hidden states.

    With ``recompute``, each block except the last stores only its input during training and is
    recomputed in the backward pass. This requires less memory but a third more computation; the
    results are the same.
    """

    def __init__(self, shape: Shape, causal: bool) -> None:
        super().__init__()
        self.shape = shape
        self.causal = causal
        if shape.positions == "learned":
            self.positions = nn.Parameter(torch.empty(shape.context, shape.width))
            nn.init.normal_(self.positions, std=_INIT)
        elif shape.positions == "sinusoidal":
            table = _sinusoids(shape.context, shape.width)
            self.register_buffer("positions", table, persistent=False)
        elif shape.positions == "rotary":
            half = shape.width // shape.heads // 2
            self.register_buffer("angles", _angles(shape.context, half), persistent=False)
        self.blocks = nn.ModuleList(_Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)

    def forward(
        self, x_BLD: Tensor, real_BL: Tensor | None, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """Return hidden states [B, L, D], or [B, Q, D] at the positions ``asked_BQ``.

        ``real_BL`` is False for padding. A causal transformer ignores it, because tokens never
        attend to padding at the end of a row. The last block is computed only at the queried
        positions.
        """
        at_L = torch.arange(x_BLD.shape[1], device=x_BLD.device)
        mask = None if real_BL is None or self.causal else real_BL[:, None, None, :]
        return self._states(x_BLD, at_L, _Seen(mask, self.causal), asked_BQ)

    def in_turn(self) -> list[nn.Module]:
        return [*self.blocks]

    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> Cache:
        tokens = min(tokens, self.shape.context)
        if spent is not None:
            return cast(Cache, spent).resized(rows, tokens)
        return Cache(self.shape, rows, tokens, self.norm.weight)

    def extend(self, x_BLD: Tensor, cache: TrunkCache, asked_BQ: Tensor | None = None) -> Tensor:
        cache = cast(Cache, cache)
        if not cache.longest:
            at_L = torch.arange(x_BLD.shape[1], device=x_BLD.device)
            return self._states(x_BLD, at_L, _Seen(None, True), asked_BQ, cache)
        read = torch.arange(cache.longest + 1, device=x_BLD.device)
        mask = (read <= cache.length[:, None])[:, None, None]
        at_B1 = cache.length[:, None].clamp(max=self.shape.context - 1)
        states_BLD = self._states(x_BLD, at_B1, _Seen(mask, False), None, cache)
        cache.rewind(cache.length + 1, min(cache.longest + 1, cache.tokens))
        return states_BLD

    def _states(
        self,
        x_BLD: Tensor,
        at: Tensor,
        visible: "_Seen",
        asked_BQ: Tensor | None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Run all blocks over vectors at positions ``at``, [L] or [B, L].

        Only the last block skips positions that are not queried: later blocks read the others.
        """
        if self.shape.adds_positions:
            x_BLD = x_BLD + self.positions[at]
        turn = self._turn(at)
        *blocks, last = cast(list[_Block], self.blocks)
        for layer, block in enumerate(blocks):
            arguments = (x_BLD, turn, visible, None if cache is None else (cache, layer))
            if self.recompute and cache is None and torch.is_grad_enabled():
                x_BLD = cast(Tensor, checkpoint(block, *arguments, use_reentrant=False))
            else:
                x_BLD = block(*arguments)
        queried = None
        if asked_BQ is not None:
            if visible.causal:
                visible = _Seen((at <= asked_BQ[:, :, None])[:, None], False)
            queried = _Asked(asked_BQ, self._turn(asked_BQ))
        cached = None if cache is None else (cache, len(blocks))
        return cast(Tensor, self.norm(last(x_BLD, turn, visible, cached, queried)))

    def _turn(self, at: Tensor) -> Tensor | None:
        """Return the rotation angles [.., L, E / 2] at each position, if positions are rotary."""
        return cast(Tensor, self.angles)[at] if self.shape.positions == "rotary" else None

    def position_weights(self) -> int:
        return self.positions.numel() if self.shape.positions == "learned" else 0

    def first_norm(self) -> FirstNorm:
        norm = cast(_Block, self.blocks[0]).norm_attention
        if self.shape.adds_positions:
            return FirstNorm(norm, self.positions.detach())
        return FirstNorm(norm, norm.weight.new_zeros(1, self.shape.width))


class _Seen(NamedTuple):
    """The tokens that each token attends to: the tokens of the mask, or all up to itself."""

    mask: Tensor | None
    causal: bool


class _Asked(NamedTuple):
    """Queried positions [B, Q], and the rotation there, if any."""

    at_BQ: Tensor
    turn: Tensor | None

    def of(self, x_BLD: Tensor) -> Tensor:
        """Return the vectors at these positions, [B, Q, D]."""
        return asked_states(x_BLD, self.at_BQ)


class _Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.dropout = shape.dropout
        width = shape.width
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        # Each block adds twice to the residual stream; this keeps its size (GPT-2, Section 2.3).
        for linear, std in (
            (self.qkv, _INIT),
            (self.up, _INIT),
            (self.out, _INIT / math.sqrt(2 * shape.layers)),
            (self.down, _INIT / math.sqrt(2 * shape.layers)),
        ):
            nn.init.normal_(linear.weight, std=std)
            nn.init.zeros_(linear.bias)

    def forward(
        self,
        x_BLD: Tensor,
        turn: Tensor | None,
        visible: _Seen,
        cached: tuple[Cache, int] | None = None,
        queried: _Asked | None = None,
    ) -> Tensor:
        """Compute the states at all positions, so Q is L, or at those of ``queried``."""
        normed_BLD = self.norm_attention(x_BLD)
        if queried is None:
            q_BHQE, k_BHLE, v_BHLE = self._heads(normed_BLD, 0, 3)
            turn_q = turn
        else:
            (q_BHQE,) = self._heads(queried.of(normed_BLD), 0, 1)
            k_BHLE, v_BHLE = self._heads(normed_BLD, 1, 3)
            turn_q, x_BLD = queried.turn, queried.of(x_BLD)
        if turn is not None and turn_q is not None:
            q_BHQE, k_BHLE = _rotated(q_BHQE, turn_q), _rotated(k_BHLE, turn)
        if cached is not None:
            cache, layer = cached
            k_BHLE, v_BHLE = cache.put(layer, k_BHLE, v_BHLE)
        dropout = self.dropout if self.training else 0.0
        y_BHQE = _attended(q_BHQE, k_BHLE, v_BHLE, visible=visible, dropout=dropout)
        y_BQD = self.out(y_BHQE.transpose(1, 2).flatten(2))
        x_BQD = x_BLD + F.dropout(y_BQD, self.dropout, self.training)
        y_BQD = self.down(F.gelu(self.up(self.norm_mlp(x_BQD))))
        return x_BQD + F.dropout(y_BQD, self.dropout, self.training)

    def _heads(self, x_BLD: Tensor, first: int, end: int) -> tuple[Tensor, ...]:
        """Return queries (0), keys (1) and values (2) from ``first`` to ``end``, [B, H, L, E]
        each."""
        B, L, D = x_BLD.shape
        if (first, end) == (0, 3):  # without a slice, whose gradient would be copied into zeros
            projected = self.qkv(x_BLD)
        else:
            rows = slice(first * D, end * D)
            projected = F.linear(x_BLD, self.qkv.weight[rows], self.qkv.bias[rows])
        return tuple(
            part.view(B, L, self.heads, D // self.heads).transpose(1, 2)
            for part in projected.chunk(end - first, dim=-1)
        )


def _attended(
    q_BHQE: Tensor, k_BHLE: Tensor, v_BHLE: Tensor, *, visible: _Seen, dropout: float
) -> Tensor:
    """``F.scaled_dot_product_attention``; in float32 on CPUs, where bfloat16 takes ten times as
    long, mostly for the gradient."""
    mask, causal = visible
    if q_BHQE.device.type != "cpu":
        return F.scaled_dot_product_attention(
            q_BHQE, k_BHLE, v_BHLE, attn_mask=mask, dropout_p=dropout, is_causal=causal
        )
    with torch.autocast("cpu", enabled=False):
        qkv = q_BHQE.float(), k_BHLE.float(), v_BHLE.float()
        pairs = q_BHQE[..., 0].numel() * k_BHLE.shape[2]
        if dropout and pairs > _MANY and torch.is_grad_enabled():
            attended = _InParts.apply(*qkv, mask, causal, dropout)  # type: ignore[no-untyped-call]
            return cast(Tensor, attended)
        return F.scaled_dot_product_attention(*qkv, mask, dropout, causal)


class _InParts(torch.autograd.Function):
    """Attention for a few queries at a time, each part recomputed for its gradient.

    With dropout, CPUs only have the plain attention, which keeps several numbers per pair of
    tokens: with 5,000 tokens most of the memory. Here memory grows linearly with the tokens.
    Outputs are allocated before the parts, because an allocation between them could fragment
    memory, so that each part would need new space.
    """

    @staticmethod
    def forward(
        context: Any,
        q_BHQE: Tensor,
        k_BHLE: Tensor,
        v_BHLE: Tensor,
        mask: Tensor | None,
        causal: bool,
        dropout: float,
    ) -> Tensor:
        context.save_for_backward(q_BHQE, k_BHLE, v_BHLE, mask)
        context.causal, context.dropout, context.state = causal, dropout, torch.get_rng_state()
        y_BHQE = torch.empty_like(q_BHQE)
        for part, keys, mask_of_part in _parts(q_BHQE, k_BHLE, mask, causal):
            y_BHQE[:, :, part] = F.scaled_dot_product_attention(
                q_BHQE[:, :, part], k_BHLE[:, :, keys], v_BHLE[:, :, keys], mask_of_part, dropout
            )
        return y_BHQE

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_BHQE: Tensor) -> tuple[Tensor | None, ...]:
        q_BHQE, k_BHLE, v_BHLE, mask = context.saved_tensors
        grads = torch.empty_like(q_BHQE), torch.zeros_like(k_BHLE), torch.zeros_like(v_BHLE)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(context.state)  # the same dropout mask
            for part, keys, mask_of_part in _parts(q_BHQE, k_BHLE, mask, context.causal):
                q, k, v = (
                    whole[:, :, some].detach().requires_grad_()
                    for whole, some in ((q_BHQE, part), (k_BHLE, keys), (v_BHLE, keys))
                )
                y = F.scaled_dot_product_attention(q, k, v, mask_of_part, context.dropout)
                gradients = torch.autograd.grad(y, (q, k, v), grad_BHQE[:, :, part])
                grads[0][:, :, part] = gradients[0]
                grads[1][:, :, keys] += gradients[1]
                grads[2][:, :, keys] += gradients[2]
        return *grads, None, None, None


def _parts(
    q_BHQE: Tensor, k_BHLE: Tensor, mask: Tensor | None, causal: bool
) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Yield some queries, the keys that they may attend to, and the mask between them."""
    queries, keys = q_BHQE.shape[2], k_BHLE.shape[2]
    size = max(1, _PART // (q_BHQE[..., 0, 0].numel() * keys))
    for first in range(0, queries, size):
        part = slice(first, min(first + size, queries))
        if causal:
            at = torch.arange(part.stop)
            yield part, slice(part.stop), at <= at[part, None]
        elif mask is None or mask.shape[2] == 1:
            yield part, slice(keys), mask
        else:  # the mask has a row per query
            yield part, slice(keys), mask[:, :, part]


def _sinusoids(context: int, width: int) -> Tensor:
    """Return interleaved sines and cosines, of wavelengths from 2 pi to 20,000 pi (Vaswani et al.,
    3.5).

    Scaled to the initial size of learned positions, so that embeddings are not dominated by them.
    """
    angles = _angles(context, width // 2)
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(context, width)
    return table * (_INIT * math.sqrt(2))


def _angles(context: int, half: int) -> Tensor:
    """[context, half]: position times 10,000^(-k / half)."""
    rates = torch.exp(torch.arange(half) * (-math.log(10_000) / half))
    return torch.arange(context)[:, None] * rates


def _rotated(x_BHLE: Tensor, turn: Tensor) -> Tensor:
    """Rotate each pair of coordinates by its angle; ``turn`` is [L, E / 2] or [B, L, E / 2]."""
    angle = turn if turn.dim() == 2 else turn[:, None]
    x, y = x_BHLE.chunk(2, dim=-1)
    sin, cos = angle.sin().to(x.dtype), angle.cos().to(x.dtype)
    return torch.cat([x * cos - y * sin, x * sin + y * cos], dim=-1)
