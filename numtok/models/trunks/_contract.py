"""Checks that every trunk must pass: ``numtok check trunk NAME``.

The trunk is built at its ``checked_at`` settings, for everything that ``sight`` allows, and applied
to random vectors in rows of different lengths, or to random features if it takes columns.
"""

from collections.abc import Iterator
from typing import cast, get_args

import torch
from torch import Tensor, nn

from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    expect,
    expect_kind,
    expect_tensor,
    only,
    require,
    wrong,
)
from numtok.models.made_up import on_another_device
from numtok.models.presets import TrainingDefaults
from numtok.models.trunks.base import (
    TRUNKS,
    CachedModule,
    ColumnModule,
    ColumnTrunk,
    FirstNorm,
    Sight,
    TokenTrunk,
    Trunk,
    TrunkCache,
    TrunkModule,
    with_context,
)

_LENGTHS = (9, 4, 1)  # tokens of each row
_LONGEST = max(_LENGTHS)
_CONTEXT = 16
_INPUTS = 5  # columns


def _sights(trunk: TokenTrunk) -> tuple[bool, ...]:
    """Return the values of ``causal`` that the trunk supports."""
    return {"either": (True, False), "earlier": (True,)}.get(trunk.sight, (False,))


def _module(trunk: TokenTrunk, causal: bool, seed: int) -> TrunkModule:
    torch.default_generator.manual_seed(seed)
    module = with_context(trunk, _CONTEXT).build(causal)
    return cast(TrunkModule, expect_kind(trunk, "build", module, TrunkModule).eval())


def _columns(trunk: Trunk, seed: int) -> tuple[ColumnModule, Tensor]:
    torch.default_generator.manual_seed(seed)
    module = cast(ColumnTrunk, trunk).build(_INPUTS)
    expect_kind(trunk, "build", module, ColumnModule).eval()
    return module, torch.randn(4, _INPUTS)


def _modules(trunk: TokenTrunk, seed: int) -> Iterator[tuple[str, TrunkModule]]:
    for causal in _sights(trunk):
        yield "causal" if causal else "not causal", _module(trunk, causal, seed)


def _rows(trunk: Trunk, seed: int) -> tuple[Tensor, Tensor]:
    """Return vectors [B, L, D], and which of them are real."""
    drawn = torch.Generator().manual_seed(seed)
    x_BLD = torch.randn(len(_LENGTHS), _LONGEST, trunk.width, generator=drawn)
    return x_BLD, torch.arange(_LONGEST) < torch.tensor(_LENGTHS)[:, None]


def _near(actual: Tensor, other: Tensor) -> bool:
    return torch.allclose(actual, other, rtol=1e-4, atol=1e-4)


def check_declarations(trunk: Trunk, seed: int) -> None:
    """All declarations exist, and each property has its type."""
    check_declared(trunk, "declarations", revision=int, source=str)
    expect_kind(trunk, "width", trunk.width, int)
    check_settings(TRUNKS, trunk, "declarations")
    require(trunk, "declarations", trunk.width > 0, f"width: got {trunk.width}, expected above 0")
    if not isinstance(trunk, TokenTrunk):
        return
    if isinstance(trunk, TrainingDefaults):
        rate = expect_kind(trunk, "learning_rate", trunk.learning_rate, float)
        require(trunk, "declarations", 0 < rate < 1, f"learning_rate: got {rate}, expected 0 to 1")
    expect_kind(trunk, "context", trunk.context, int, type(None))
    if trunk.sight not in get_args(Sight):
        wrong(trunk, "sight", repr(trunk.sight), f"one of {', '.join(map(repr, get_args(Sight)))}")
    context = with_context(trunk, _CONTEXT).context
    expect(trunk, "declarations", "a context of 0 is taken from the data", context != 0, True)


def check_states(trunk: Trunk, seed: int) -> None:
    """States are finite and have the right shape; equal seeds give equal weights."""
    if not isinstance(trunk, TokenTrunk):
        columns, x_NI = _columns(trunk, seed)
        states = expect_tensor(columns, "forward", columns(x_NI), (len(x_NI), trunk.width))
        finite = bool(states.isfinite().all())
        return expect(trunk, "states", "all are finite", finite, True)
    x_BLD, real_BL = _rows(trunk, seed)
    for sight, module in _modules(trunk, seed):
        states = expect_tensor(module, "forward", module(x_BLD, real_BL), tuple(x_BLD.shape))
        finite = bool(states[real_BL].isfinite().all())
        expect(trunk, "states", f"{sight}: all are finite", finite, True)
        again = _module(trunk, sight == "causal", seed).state_dict()
        same = all(torch.equal(weight, again[name]) for name, weight in module.state_dict().items())
        expect(trunk, "states", f"{sight}: equal weights for equal seeds", same, True)


def check_rows(trunk: Trunk, seed: int) -> None:
    """A row's states depend neither on other rows nor on padding."""
    if not isinstance(trunk, TokenTrunk):
        columns, x_NI = _columns(trunk, seed)
        alone = torch.cat([columns(x_I[None]) for x_I in x_NI])
        return expect(
            trunk, "rows", "same state alone and in a batch", _near(alone, columns(x_NI)), True
        )
    x_BLD, real_BL = _rows(trunk, seed)
    for sight, module in _modules(trunk, seed):
        whole = module(x_BLD, real_BL)
        for row, length in enumerate(_LENGTHS):
            alone = module(x_BLD[row : row + 1, :length], None)[0]
            same = _near(alone, whole[row, :length])
            what = f"{sight}: same states for a row of {length} tokens alone and among longer rows"
            expect(trunk, "rows", what, same, True)


@only(TokenTrunk)
def check_sight(trunk: TokenTrunk, seed: int) -> None:
    """A causal state sees the tokens up to its own, any other also the later ones."""
    x_BLD, _ = _rows(trunk, seed)
    other_BLD = x_BLD.clone()
    other_BLD[:, -1] = x_BLD[:, -1].flip(1)
    for sight, module in _modules(trunk, seed):
        first, changed = (module(vectors, None) for vectors in (x_BLD, other_BLD))
        if sight == "causal":
            same = _near(first[:, :-1], changed[:, :-1])
            what = "causal: earlier states do not depend on the last token"
            expect(trunk, "sight", what, same, True)
        else:
            first, changed = first[:, :-1], changed[:, :-1]
        what = f"{sight}: a state does not depend on the last token that it sees"
        expect(trunk, "sight", what, torch.equal(first[:, -1], changed[:, -1]), False)


@only(TokenTrunk)
def check_asked(trunk: TokenTrunk, seed: int) -> None:
    """Queried states equal those of the whole row."""
    x_BLD, real_BL = _rows(trunk, seed)
    asked_BQ = torch.tensor([[2, 8], [3, 0], [0, 0]])
    for sight, module in _modules(trunk, seed):
        whole, some = module(x_BLD, real_BL), module(x_BLD, real_BL, asked_BQ)
        expect_tensor(module, "forward", some, (*asked_BQ.shape, trunk.width))
        wanted = whole[torch.arange(len(_LENGTHS))[:, None], asked_BQ]
        expect(
            trunk, "asked", f"{sight}: same states at queried positions", _near(some, wanted), True
        )


@only(TokenTrunk)
@torch.no_grad()
def check_cache(trunk: TokenTrunk, seed: int) -> None:
    """A module with a cache computes the states of the whole row from it, also for copied rows."""
    if True not in _sights(trunk):
        return
    module, (x_BLD, _) = _module(trunk, True, seed), _rows(trunk, seed)
    if not isinstance(module, CachedModule):
        return
    prompt, length_B = 3, torch.tensor([3, 2, 1])
    cache = module.cache(len(x_BLD), _LONGEST)
    expect_kind(module, "cache", cache, TrunkCache)
    states = module.extend(x_BLD[:, :prompt], cache)
    cache.rewind(length_B, prompt)
    whole = module(x_BLD, None)
    expect(trunk, "cache", "states of first tokens", _near(states, whole[:, :prompt]), True)
    rows = torch.tensor([2, 0])
    cache = cache.take(rows, cache.tokens)
    expect(trunk, "cache", "number of copied rows", cache.rows, len(rows))
    for step in range(3):
        at = length_B[rows] + step
        states = module.extend(x_BLD[rows, at][:, None], cache)[:, 0]
        expect(trunk, "cache", "states of further tokens", _near(states, whole[rows, at]), True)
    again = module.cache(len(x_BLD), _LONGEST, cache)
    expect(trunk, "cache", "tokens in a cache that reuses memory", again.longest, 0)


def check_device(trunk: Trunk, seed: int) -> None:
    """The trunk's module runs on devices other than the CPU."""
    if not isinstance(trunk, TokenTrunk):
        columns, x_NI = _columns(trunk, seed)
        return on_another_device(columns, lambda module, device: module(x_NI.to(device)))
    x_BLD, real_BL = _rows(trunk, seed)
    for _, module in _modules(trunk, seed):
        on_another_device(module, lambda moved, device: moved(x_BLD.to(device), real_BL.to(device)))


def check_gradients(trunk: Trunk, seed: int) -> None:
    """Every weight has a gradient, and so have the inputs, which train the embedder."""
    modules: list[tuple[str, nn.Module, tuple[Tensor, ...]]] = []
    if isinstance(trunk, TokenTrunk):
        x_BLD, real_BL = _rows(trunk, seed)
        built = _modules(trunk, seed)
        modules += [(f"{sight}: ", module, (x_BLD, real_BL)) for sight, module in built]
    else:
        columns, x_NI = _columns(trunk, seed)
        modules.append(("", columns, (x_NI,)))
    for sight, module, (x, *more) in modules:
        states = module(x.requires_grad_(), *more)
        (states * torch.linspace(-1, 1, states.numel()).reshape(states.shape)).sum().backward()
        tensors = [("its inputs", x), *module.named_parameters()]
        lost = [name for name, tensor in tensors if tensor.requires_grad and tensor.grad is None]
        message = f"{sight}got no gradient for {', '.join(lost)}"
        require(trunk, "gradients", not lost, message)


@only(TokenTrunk)
def check_recompute(trunk: TokenTrunk, seed: int) -> None:
    """Recomputed states have the same gradient."""
    if not trunk.recomputes:
        return
    x_BLD, real_BL = _rows(trunk, seed)
    for sight, module in _modules(trunk, seed):
        gradients = []
        for module.recompute in (False, True):
            module.zero_grad()
            module(x_BLD, real_BL).square().sum().backward()
            gradients.append([weight.grad for weight in module.parameters()])
        same = all(map(_near, *gradients))
        expect(trunk, "recompute", f"{sight}: equal gradients", same, True)


@only(TokenTrunk)
def check_facts(trunk: TokenTrunk, seed: int) -> None:
    """The weights that its module reports match its parameters."""
    for sight, module in _modules(trunk, seed):
        weights = sum(weight.numel() for weight in module.parameters())
        positions = expect_kind(module, "position_weights", module.position_weights(), int)
        expect_kind(module, "in_turn", module.in_turn(), list)
        message = f"{sight}: got {positions} weights of positions, out of {weights} in total"
        require(trunk, "facts", 0 <= positions <= weights, message)
        if (first := module.first_norm()) is not None:
            expect_kind(module, "first_norm", first, FirstNorm)
            positions = first.positions
            expect_tensor(module, "first_norm", positions, (None, trunk.width), finite=True)


CHECKS = checks_of(__name__)
