"""Checks that every head must pass: ``numtok check head NAME``.

They use random hidden states, and values inside and outside of the range that a head is trained on.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    described,
    expect,
    expect_array,
    expect_kind,
    expect_tensor,
    fail,
    only,
    require,
    wrong,
)
from numtok.encoding.normalizers.base import NORMALIZERS, no_scaling
from numtok.errors import UsageError
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Calibration,
    Head,
    TokenHead,
    TokenReader,
    ValueHead,
    ValueReader,
    learns_unit_interval,
)
from numtok.models.made_up import accepted, on_another_device
from numtok.models.vocabulary import Vocabulary

_WIDTH = 32
_VALUES = np.array([0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 7.0, -3.0])  # normalized
_N = len(_VALUES)
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_PLAIN = no_scaling()
_STEPS = 300  # enough to minimize the losses of free parameters


class _Made(NamedTuple):
    """A reader with random weights, and its results for random states."""

    reader: ValueReader
    hidden_ND: Tensor
    parameters_NP: Tensor
    targets_NW: Tensor


def _made(head: ValueHead, seed: int) -> _Made:
    torch.default_generator.manual_seed(seed)
    reader: ValueReader = expect_kind(head, "build", head.build(_WIDTH), ValueReader)
    hidden_ND = torch.randn(_N, _WIDTH, requires_grad=True)
    parameters_NP = expect_tensor(reader, "forward", reader(hidden_ND), (_N, None), dtype="float32")
    _expect_gradient(reader, "forward", parameters_NP)
    return _Made(reader, hidden_ND, parameters_NP, torch.from_numpy(_targets(head, _VALUES)))


def _targets(head: ValueHead, values: NDArray[np.float64]) -> NDArray[Any]:
    targets: NDArray[Any] = expect_array(
        head,
        "targets",
        head.targets(values),
        (len(values), None),
        dtype="float32|int64",
        finite=True,
    )
    return targets


def _expect_gradient(reader: ValueReader, member: str, got: Tensor) -> None:
    """Raise a break for a detached result, which could not be trained."""
    if not got.requires_grad:
        wrong(reader, member, "a Tensor without a gradient", "one computed from its input")


def _losses(reader: ValueReader, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
    losses = reader.losses(parameters_NP, targets_NW)
    expect_tensor(reader, "losses", losses, (len(parameters_NP),))
    _expect_gradient(reader, "losses", losses)
    return losses


def _predictive(head: ValueHead, seed: int) -> Predictive:
    drawn = _made(head, seed)
    parameters_NP = drawn.parameters_NP.detach()
    calibration: Calibration = {}
    if isinstance(drawn.reader, CalibratedReader):
        calibration = _calibration(drawn.reader, parameters_NP)
    elif hasattr(drawn.reader, "calibrate"):
        kind = type(drawn.reader).__name__
        message = (
            f"got {kind}.calibrate, which is never called; derive {kind} from CalibratedReader"
        )
        fail(head, "predictive", message)
    result = drawn.reader.predictive(parameters_NP, calibration, _PLAIN)
    predictive: Predictive = expect_kind(drawn.reader, "predictive", result, Predictive)
    return predictive


def _calibration(reader: CalibratedReader, parameters_NP: Tensor) -> Calibration:
    calibration: Calibration = reader.calibrate(parameters_NP, _VALUES)
    expect_kind(reader, "calibrate", calibration, dict)
    for name, value in calibration.items():
        if not isinstance(value, float) or not math.isfinite(value):
            wrong(reader, "calibrate", f"{name!r}: {described(value)}", "finite floats by name")
    if not calibration:
        wrong(reader, "calibrate", "nothing", "floats by name, as for each CalibratedReader")
    return calibration


def check_declarations(head: Head, seed: int) -> None:
    """All declarations exist, and each property has its type."""
    check_declared(head, "declarations", revision=int, source=str)
    description = expect_kind(head, "describe", head.describe(), str)
    require(head, "declarations", description, "describe: got '', expected a description")
    if isinstance(head, ValueHead):
        for name in ("exact", "has_density", "bounded"):
            expect_kind(head, name, getattr(head, name), bool)
        spec = expect_kind(head, "normalizer", head.normalizer, str)
        try:
            NORMALIZERS.build(spec)
        except UsageError as error:
            wrong(head, "normalizer", repr(spec), f"the spec of a normalizer ({error})")
    check_settings(HEADS, head, "declarations")


@only(TokenHead)
def check_tokens(head: TokenHead, seed: int) -> None:
    """States become logits of every token, for the tokens of each accepted scheme."""
    expect_kind(head, "per_token", head.per_token, bool)

    def made(vocabulary: Vocabulary) -> nn.Module:
        words = nn.Linear(_WIDTH, vocabulary.size, bias=False)
        return head.tokens(words, vocabulary, _WIDTH)

    for scheme, vocabulary, module in accepted(head, "tokens", made):
        logits = expect_kind(head, "tokens", module, nn.Module)(torch.randn(5, _WIDTH))
        member = f"tokens, for {scheme},"
        expect_tensor(head, member, logits, (5, vocabulary.size), finite=True)


@only(ValueHead)
def check_targets(head: ValueHead, seed: int) -> None:
    """Targets are finite, one row per value; ``representable`` is False for NaN and infinities."""
    values = np.append(_VALUES, [1e30, -1e30, 1e-30])
    _targets(head, values)
    representable = head.representable(values)
    expect_array(head, "representable", representable, (len(values),), dtype="bool")
    odd = head.representable(np.array([np.nan, np.inf, -np.inf, 0.5])).tolist()
    expect(head, "targets", "nan, inf, -inf and 0.5 are representable", odd, [False] * 3 + [True])


@only(ValueHead)
def check_losses(head: ValueHead, seed: int) -> None:
    """Each number has one finite loss, independent of the other numbers."""
    drawn = _made(head, seed)
    losses = _losses(drawn.reader, drawn.parameters_NP, drawn.targets_NW).detach()
    finite = bool(losses.isfinite().all())
    require(head, "losses", finite, f"got {losses.tolist()}, expected finite losses")
    for at in (slice(0, 3), slice(5, 6)):
        alone = _losses(
            drawn.reader, drawn.reader(drawn.hidden_ND[at]), drawn.targets_NW[at]
        ).detach()
        near = alone.shape == losses[at].shape and torch.allclose(alone, losses[at], 1e-4, 1e-5)
        what = f"got {alone.tolist()} for some alone, expected {losses[at].tolist()} as in a batch"
        require(head, "losses", near, what)


@only(ValueHead)
def check_device(head: ValueHead, seed: int) -> None:
    """The head's reader runs on devices other than the CPU."""
    drawn = _made(head, seed)

    def run(reader: ValueReader, device: str) -> None:
        parameters_NP = reader(drawn.hidden_ND.detach().to(device))
        reader.losses(parameters_NP, drawn.targets_NW.to(device))

    on_another_device(drawn.reader, run)


@only(ValueHead)
def check_gradients(head: ValueHead, seed: int) -> None:
    """The losses have gradients for every weight and for the hidden states."""
    drawn = _made(head, seed)
    _losses(drawn.reader, drawn.parameters_NP, drawn.targets_NW).sum().backward()  # type: ignore[no-untyped-call]
    every = {"the hidden states": drawn.hidden_ND, **dict(drawn.reader.named_parameters())}
    for name, weight in every.items():
        if weight.requires_grad:
            got = weight.grad is not None and bool(weight.grad.isfinite().all())
            require(head, "gradients", got, f"got none for {name}, expected a finite gradient")


@only(ValueHead)
def check_token_losses(head: ValueHead, seed: int) -> None:
    """A head that predicts tokens returns their mean cross-entropy."""
    drawn = _made(head, seed)
    if isinstance(drawn.reader, TokenReader):
        written = expect_kind(
            drawn.reader, "tokens_per_number", drawn.reader.tokens_per_number, int
        )
        require(head, "token losses", written > 0, f"tokens_per_number: got {written}")
        losses = drawn.reader.token_losses(drawn.parameters_NP.detach(), drawn.targets_NW)
        expect_tensor(drawn.reader, "token_losses", losses, (_N,))
        above = bool((losses >= 0).all())
        require(head, "token losses", above, f"got {losses.tolist()}, expected at least 0")


@only(ValueHead)
def check_point(head: ValueHead, seed: int) -> None:
    """Each number has one point, independent of the other numbers."""
    drawn = _made(head, seed)
    parameters_NP = drawn.parameters_NP.detach()
    points = drawn.reader.point(parameters_NP)
    expect_array(drawn.reader, "point", points, (_N,), dtype="float64")
    alone = drawn.reader.point(parameters_NP[2:4])
    near = np.allclose(alone, points[2:4], rtol=1e-5, atol=1e-6, equal_nan=True)
    what = f"got {alone.tolist()} for two alone, expected {points[2:4].tolist()} as in a batch"
    require(head, "point", near, what)


@only(ValueHead)
def check_predictive(head: ValueHead, seed: int) -> None:
    """Every result of the distribution has its shape."""
    predictive = _predictive(head, seed)
    sample = predictive.sample(5, np.random.default_rng(seed))
    expect_array(predictive, "sample", sample, (_N, 5), dtype="float64")
    quantiles = predictive.quantiles(_LEVELS)
    expect_array(predictive, "quantiles", quantiles, (_N, len(_LEVELS)), dtype="float64")
    for member, arguments in {
        "log_density": (_VALUES,),
        "log_interval": (_VALUES - 0.5, _VALUES + 0.5),
        "log_recorded": (_VALUES, 0.5),
        "cdf": (_VALUES,),
        "crps": (_VALUES,),
        "mode": (),
        "mean": (),
        "median": (),
    }.items():
        expect_array(
            predictive, member, getattr(predictive, member)(*arguments), (_N,), dtype="float64"
        )


@only(ValueHead)
def check_cdf(head: ValueHead, seed: int) -> None:
    """The distribution function rises from 0 to 1, and quantiles invert it."""
    predictive = _predictive(head, seed)
    n = len(_VALUES)
    grid = np.array([-1e9, -50.0, -2.0, -0.5, 0.0, 0.2, 0.5, 0.8, 1.0, 3.0, 50.0, 1e9])
    cdf: NDArray[np.float64] = np.array([predictive.cdf(np.full(n, value)) for value in grid])
    inside = bool(((cdf >= 0) & (cdf <= 1 + 1e-9)).all())
    require(head, "cdf", inside, f"got values from {cdf.min()} to {cdf.max()}, expected 0 to 1")
    rises = bool((np.diff(cdf, axis=0) >= -1e-9).all())
    require(head, "cdf", rises, f"got a falling one: {cdf[:, 0].tolist()} at {grid.tolist()}")
    quantiles = predictive.quantiles(_LEVELS)
    ordered = bool((np.diff(quantiles, axis=1) >= 0).all())
    require(head, "cdf", ordered, f"got falling quantiles: {quantiles[0].tolist()}")
    for level, column in zip(_LEVELS, quantiles.T, strict=True):
        finite = np.isfinite(column)
        points = np.where(finite, column, 0.0)
        reach = 1e-6 * np.maximum(1, np.abs(points))
        above, below = predictive.cdf(points + reach), predictive.cdf(points - reach)
        good = (above >= level - 1e-5) & (below <= level + 1e-5)
        what = f"quantile {level}: got {column.tolist()}, where the cdf is {above.tolist()}"
        require(head, "cdf", bool(good[finite].all()), what)


@only(ValueHead)
def check_scores(head: ValueHead, seed: int) -> None:
    """An interval's probability, if known, is at most the difference of the cdf, and CRPS is at
    least 0."""
    predictive = _predictive(head, seed)
    low, high = _VALUES - 0.4, _VALUES + 0.6
    probability = np.exp(predictive.log_interval(low, high))
    apart = predictive.cdf(high) - predictive.cdf(low)
    defined = ~np.isnan(probability)
    # The mass of invalid predictions is in no interval, and the cdf is conditional on validity.
    near = probability[defined] <= apart[defined] + 1e-4
    what = f"intervals: got {probability.tolist()}, expected at most {apart.tolist()}"
    require(head, "scores", bool(near.all()), what)
    crps = predictive.crps(_VALUES)
    good = bool((crps >= -1e-9).all())
    require(head, "scores", good, f"crps: got {crps.tolist()}, expected at least 0")


@only(ValueHead)
def check_read_back(head: ValueHead, seed: int) -> None:
    """A head predicts what it is trained on: at minimal losses, the point has the same targets.

    Free parameters replace the network's output. The point must be at least as close to the value
    as the nearest value with different targets.
    """
    values = _apart(head)
    targets = head.targets(values)
    points = _learned(head, seed, targets)
    again = head.targets(points)
    same = np.isclose(again, targets, rtol=0.05, atol=0.05).all(axis=1)
    wrong = [f"{value:g} as {point:g}" for value, point in zip(values, points, strict=True)]
    examples = ", ".join(text for text, good in zip(wrong, same, strict=True) if not good)
    require(
        head, "read back", same.all(), f"at minimal losses, it predicts {examples}: other targets"
    )
    differs = (targets[:, None] != targets).any(axis=2)
    apart = np.abs(values[:, None] - values)
    reach = np.where(differs, apart, np.inf).min(axis=1)
    require(head, "read back", differs.any(), "got the same targets for all values")
    near = np.abs(points - values) <= reach
    examples = ", ".join(text for text, good in zip(wrong, near, strict=True) if not good)
    require(head, "read back", near.all(), f"at minimal losses, it predicts {examples}")


def _apart(head: ValueHead) -> NDArray[np.float64]:
    """Return values that are well separated and representable, in [0, 1] if the head needs that."""
    every = np.array([-3.0, 0.0, 1.0, 7.0])
    if learns_unit_interval(head):
        every = np.array([0.1, 0.25, 0.5, 0.9])
    elif head.exact:
        every = np.append(every, [40.0, 123.0])
    return every[head.representable(every)]


def _learned(head: ValueHead, seed: int, targets_NW: NDArray[Any]) -> NDArray[np.float64]:
    """Return the points after minimizing the losses over free parameters and reader weights."""
    torch.default_generator.manual_seed(seed)
    reader, targets = head.build(_WIDTH), torch.from_numpy(targets_NW)
    free_NP = reader(torch.randn(len(targets), _WIDTH)).detach().requires_grad_()
    groups = [{"params": [free_NP], "lr": 0.5}, {"params": list(reader.parameters()), "lr": 0.01}]
    optimizer = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, _STEPS)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        reader.losses(free_NP, targets).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return reader.point(free_NP.detach())


CHECKS = checks_of(__name__)
