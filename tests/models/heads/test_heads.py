"""Heads: their densities equal the analytic ones, and their losses equal those densities.

Each head is given the true probabilities of a target, so that only bookkeeping can be wrong.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from numtok.encoding.normalizers.base import (
    NORMALIZERS,
    Chained,
    FittedNormalizer,
    Moments,
    Scaling,
    fit,
)
from numtok.errors import UsageError
from numtok.models.distributions.decoded import DecoderDistribution
from numtok.models.distributions.predictive import Predictive
from numtok.models.flops import regressor_flops
from numtok.models.heads.base import HEADS, CalibratedReader
from numtok.models.number_heads import calibration_of
from numtok.models.regressor import Regressor
from numtok.models.trunks.mlp import Mlp
from numtok.training.features import Features
from numtok.training.trained_table import FittedTable, FittingRecipe, Preparation
from tests.cases import each
from tests.fakeheads import PLAIN, SIGNED_LOG, Floats, Told, listed, value_head
from tests.fakemodels import CPU, one_thread
from tests.messages import Says

__all__ = ["one_thread"]

SPECS = [
    "pointwise",
    "pointwise,sigmoid=yes",
    "scalar",
    "riemann:32",
    "hl-gauss:32",
    "fourier:32",
    "ordinal:32",
    "mdn:3",
    "decoder:ud",
    "decoder:nd",
]


# --- targets -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A known distribution of normalized values: its distribution function and density."""

    cdf: Callable[[float], float]
    density: Callable[[float], float]


def _stairs(y: float) -> float:
    """Return the distribution function with mass 0.25 on [0, 1/2) and 0.75 on [1/2, 1]."""
    return float(np.interp(y, [0, 0.5, 1], [0, 0.25, 1]))


UNIFORM = Target(lambda y: min(max(y, 0.0), 1.0), lambda y: 1.0)
STAIRS = Target(_stairs, lambda y: 0.5 if y < 0.5 else 1.5)
CAUCHY = Target(  # an arc tangent that keeps its digits in the tails
    lambda y: math.atan2(1.0, -y) / math.pi, lambda y: 1 / (math.pi * (1 + y * y))
)


def between(target: Target, low: float, high: float) -> float:
    """Return the mass between two values, computed in the tail that keeps its digits."""
    if low > 0 and target is CAUCHY:
        low, high = -high, -low
    return target.cdf(high) - target.cdf(low)


CODECS = [
    "nd,base=2,length=6",
    "nd,base=10,length=2,point=edge",
    "nd,base=4,length=3,point=centre",
    "nd,base=3,length=3,point=nearest",
    "hamming,length=5",
    "ud,base=10,exponent=1,mantissa=2",
    "ud,base=2,exponent=2,mantissa=3,point=edge",
]


def told_masses(spec: str, target: Target) -> Floats:
    """Return the true probability of each cell, divided by their sum: float64[m]."""
    masses = np.array([between(target, low, high) for low, high in listed(spec).ends.tolist()])
    masses /= masses.sum()
    return np.asarray(masses, np.float64)


def spread_over(one: DecoderDistribution, count: int) -> DecoderDistribution:
    """Return the same distribution ``count`` times."""
    return DecoderDistribution(one.reader, one.parameters.expand(count, -1), one.scaling)


@each("spec", CODECS)
@each("target", [UNIFORM, STAIRS, CAUCHY])
@each("scaling", [PLAIN, SIGNED_LOG])
def test_a_decoder_that_is_told_the_truth_has_its_density(
    spec: str, target: Target, scaling: Scaling
) -> None:
    numbers, masses = listed(spec), told_masses(spec, target)
    with np.errstate(divide="ignore"):
        reader = Told(numbers, np.log(masses)[None])
    some = np.random.default_rng(0).choice(np.flatnonzero(masses > 0), 60)
    low, high = numbers.ends[some].T
    scaled = low + (high - low) * np.random.default_rng(1).uniform(0.01, 0.99, len(some))
    if scaling is SIGNED_LOG:
        kept = np.abs(scaled) < 100
        some, scaled, low, high = some[kept], scaled[kept], low[kept], high[kept]
    one = spread_over(DecoderDistribution(reader, reader.rows, scaling), len(some))
    found = one.log_density(scaling.inverse(scaled))
    # The mean density of the cell in normalized units, times the slope in raw units.
    slope = -np.log(np.log(10) * 10 ** np.abs(scaled)) if scaling is SIGNED_LOG else 0.0
    np.testing.assert_allclose(found, np.log(masses[some] / (high - low)) + slope, atol=1e-6)
    narrow = (target is UNIFORM and spec.startswith(("nd", "hamming"))) or (
        target is STAIRS and spec in ("nd,base=2,length=6", "nd,base=4,length=3,point=centre")
    )
    if narrow:  # no cell contains a jump, so the density is exact
        truth = np.log([target.density(y) for y in scaled.tolist()]) + slope
        np.testing.assert_allclose(found, truth, atol=1e-6)


def test_with_fine_cells_the_density_is_that_of_a_heavy_tail() -> None:
    spec = "ud,base=10,exponent=1,mantissa=3"
    numbers = listed(spec)
    reader = Told(numbers, np.log(told_masses(spec, CAUCHY))[None])
    values = np.array([-3e7, -12.34, -0.5, 1e-3, 0.7, 1.234, 5e5])
    found = spread_over(DecoderDistribution(reader, reader.rows, PLAIN), len(values)).log_density(
        values
    )
    truth = np.log([CAUCHY.density(y) for y in values.tolist()])
    np.testing.assert_allclose(found, truth, atol=2e-2)
    assert np.abs(found - truth).mean() < 5e-3


def expected_nll(one: Predictive, target: Target, bins: int) -> float:
    """Return the mean NLL over the target; both are constant within equal bins of [0, 1]."""
    centres = (np.arange(bins) + 0.5) / bins
    mass = np.array([between(target, k / bins, (k + 1) / bins) for k in range(bins)])
    return float(mass @ -one.log_density(centres))


@each("bins", [2, 7, 256])
@each("target", [UNIFORM, STAIRS, CAUCHY])
def test_a_histogram_that_is_told_the_truth_has_its_density(target: Target, bins: int) -> None:
    mass = np.array([between(target, k / bins, (k + 1) / bins) for k in range(bins)])
    mass /= mass.sum()
    reader = value_head(f"riemann:{bins}").build(3)
    logits = torch.from_numpy(np.log(mass)).expand(bins, -1)
    one = reader.predictive(logits, {}, PLAIN)
    centres = (np.arange(bins) + 0.5) / bins
    np.testing.assert_allclose(one.log_density(centres), np.log(mass * bins), atol=1e-6)
    if target is UNIFORM:
        assert expected_nll(one, target, bins) == pytest.approx(0, abs=1e-9)
    if target is STAIRS and bins % 2 == 0:
        entropy = -(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
        assert expected_nll(one, target, bins) == pytest.approx(entropy, abs=1e-9)


def test_a_value_on_the_edge_of_two_bins_is_in_the_upper_one() -> None:
    found = value_head("riemann:4").targets(np.array([0, 0.2, 0.25, 0.5, 0.75, 1]))
    assert found.tolist() == [[0], [0], [1], [2], [3], [3]]


def test_every_value_has_the_density_of_the_bin_that_it_is_learnt_as() -> None:
    # Targets on a grid lie on bin edges, except for rounding.
    head = value_head("riemann:100")
    for start, step in ((0.0, 0.1), (0.1, 0.006), (-7.3, 1e-3), (1e6, 0.25), (0.7, 1 / 3)):
        values = start + step * np.arange(101, dtype=np.float64)
        scaling = fit(NORMALIZERS.build("unit"), Moments.of(values))
        bins = head.targets(scaling.forward(values))[:, 0]
        np.testing.assert_array_equal(bins[[0, 100]], [0, 99])
        assert (np.diff(bins) >= 0).all()
        logits = torch.from_numpy(np.random.default_rng(0).standard_normal(100)).expand(101, -1)
        found = head.build(3).predictive(logits, {}, scaling).log_density(values)
        width = (values[-1] - values[0]) / 100
        expected = logits.log_softmax(dim=1)[0].numpy()[bins] - math.log(width)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@each("scaling", [PLAIN, SIGNED_LOG])
def test_a_mixture_that_is_told_the_truth_has_its_density(scaling: Scaling) -> None:
    weights, centers, deviations = [0.2, 0.5, 0.3], [-1.0, 0.1, 2.0], [0.5, 1e-3, 3.0]
    raw = [math.log(d) if d < 1 else d - 1 for d in deviations]  # the inverse of ELU + 1
    raw = [math.expm1(one) if one < 0 else one for one in raw]  # ELU, which is inverted below
    reader = value_head("mdn:3").build(4)
    before = [math.log1p(one) if one < 0 else one for one in raw]
    parameters = torch.tensor([[*map(math.log, weights), *centers, *before]], dtype=torch.float64)
    scaled = np.array([-2.0, 0.0999, 0.1, 0.5, 3.0, 7.0])
    one = reader.predictive(parameters.expand(6, -1), {}, scaling)
    parts = zip(weights, centers, deviations, strict=True)
    density = sum(
        w * np.exp(-(((scaled - c) / d) ** 2) / 2) / (d * math.sqrt(2 * math.pi))
        for w, c, d in parts
    )
    slope = -np.log(np.log(10) * 10 ** np.abs(scaled)) if scaling is SIGNED_LOG else 0.0
    found = one.log_density(scaling.inverse(scaled))
    np.testing.assert_allclose(found, np.log(density) + slope, atol=1e-6)


@each("spec", ["mdn:2", "riemann:20"])
def test_a_head_of_two_peaks_predicts_one_of_them(spec: str) -> None:
    """With 70% near 0.2 and 30% near 0.8, there is no mass near the mean."""
    parameters = [*np.log([0.7, 0.3]), 0.2, 0.8, *np.log([0.01, 0.01])]
    if spec == "riemann:20":
        parameters = np.log([*[1e-9] * 4, 0.7, *[1e-9] * 11, 0.3, *[1e-9] * 3]).tolist()
    reader, one = value_head(spec).build(4), torch.tensor([parameters], dtype=torch.float64)
    assert abs(reader.point(one)[0] - 0.2) < 0.05
    assert abs(reader.predictive(one, {}, PLAIN).mode()[0] - 0.2) < 0.05
    told_nothing = reader.point(torch.full_like(one, torch.nan))
    assert np.isnan(told_nothing).all()


def test_the_mode_of_a_histogram_is_its_densest_bin() -> None:
    """Equal bins of log10(1 + x) widen tenfold per unit."""
    log_mass = torch.log(torch.tensor([[0.4, 0.6]], dtype=torch.float64))
    one = value_head("riemann:2").build(4).predictive(log_mass, {}, SIGNED_LOG)
    assert one.mode()[0] == SIGNED_LOG.inverse(np.array([0.25]))[0]


@each("spec", ["scalar", "pointwise", "mdn:2", "numgpt"])
def test_a_target_beyond_float32_is_counted_and_not_learnt_as_zero(spec: str) -> None:
    head, values = value_head(spec), np.array([1.5, 1e300, -4e38, np.nan, -np.inf])
    assert head.representable(values).tolist() == [True, False, False, False, False]
    most = np.finfo(np.float32).max
    assert head.targets(values)[:, 0].tolist() == [1.5, most, -most, 0, 0]


@each("spec", ["pointwise", "pointwise,sigmoid=yes", "scalar"])
def test_a_point_has_a_gaussian_of_its_validation_error(spec: str) -> None:
    reader = value_head(spec).build(4)
    parameters = torch.tensor([[0.25], [0.5], [-1.0]])
    truth = np.array([0.5, 0.25, -0.5])
    assert isinstance(reader, CalibratedReader)
    calibration = reader.calibrate(parameters, truth)
    assert calibration == {"deviation": pytest.approx(math.sqrt((0.0625 + 0.0625 + 0.25) / 3))}
    d = calibration["deviation"]
    for scaling in (PLAIN, SIGNED_LOG):
        found = reader.predictive(parameters, calibration, scaling).log_density(
            scaling.inverse(truth)
        )
        t = (truth - np.array([0.25, 0.5, -1.0])) / d
        slope = -np.log(np.log(10) * 10 ** np.abs(truth)) if scaling is SIGNED_LOG else 0.0
        expected = -(t**2) / 2 - math.log(d * math.sqrt(2 * math.pi)) + slope
        np.testing.assert_allclose(found, expected, atol=1e-6)
    exact = reader.calibrate(torch.tensor([[0.5]]), np.array([0.5]))
    assert exact["deviation"] > 0  # a prediction without error also has a density


# --- densities integrate to 1 --------------------------------------------------------------------


def integral(one: Predictive, row: int, edges: Floats, rows: Callable[[int], Predictive]) -> float:
    """Integrate the density of raw values over all spans between edges (Gauss-Legendre)."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    low, high = edges[:-1, None], edges[1:, None]
    points = (low + high) / 2 + (high - low) / 2 * nodes
    heights = np.exp(rows(points.size).log_density(points.ravel())).reshape(points.shape)
    return float((heights @ weights * (edges[1:] - edges[:-1]) / 2).sum())


@cache
def stretched() -> Scaling:
    """Return signed logarithms of -20 to 500, scaled to [0, 1]."""
    signed = FittedNormalizer(NORMALIZERS.build("signed-log"), {})
    ends = signed.forward(np.array([-20.0, 500.0]))
    return Chained(signed, fit(NORMALIZERS.build("unit"), Moments.of(ends)))


@each(
    ("spec", "scaling"),
    [
        *((spec, PLAIN) for spec in CODECS),
        # Numbers of ud are not fractions of a range.
        *((spec, stretched()) for spec in CODECS if not spec.startswith("ud")),
    ],
)
def test_a_decoders_density_integrates_to_one(spec: str, scaling: Scaling) -> None:
    numbers = listed(spec)
    logs = np.random.default_rng(0).standard_normal((1, len(numbers.paths)))
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    reader = Told(numbers, logs)
    one = DecoderDistribution(reader, reader.rows, scaling)
    scaled = np.unique(np.concatenate([numbers.ends.ravel(), stretched().forward(np.zeros(1))]))
    edges = scaling.inverse(scaled)
    assert integral(one, 0, edges, lambda n: spread_over(one, n)) == pytest.approx(1, abs=1e-6)


@each("scaling", [PLAIN, stretched()])
@each(
    "spec", ["riemann:2", "riemann:100", "fourier:50", "ordinal:20", "mdn:4", "pointwise", "scalar"]
)
def test_a_heads_density_integrates_to_one(spec: str, scaling: Scaling) -> None:
    reader = value_head(spec).build(6)
    torch.manual_seed(0)
    with torch.no_grad():
        parameters = reader(torch.randn(1, 6))
    calibration = {"deviation": 0.3}

    def rows(count: int) -> Predictive:
        return reader.predictive(parameters.expand(count, -1), calibration, scaling)

    grid = np.linspace(0, 1, 101) if value_head(spec).bounded else np.linspace(-14, 15, 4001)
    grid = np.unique(np.append(grid, stretched().forward(np.zeros(1))))
    total = integral(rows(1), 0, scaling.inverse(grid), rows)
    assert total == pytest.approx(1, abs=1e-6)


# --- losses are densities ------------------------------------------------------------------------


@each("scaling", [PLAIN, stretched()])
@each("spec", ["riemann:32", "fourier:32", "ordinal:32", "mdn:3"])
def test_the_loss_is_the_negative_log_density_of_the_normalised_number(
    spec: str, scaling: Scaling
) -> None:
    head = value_head(spec)
    torch.manual_seed(1)
    reader = head.build(6)
    with torch.no_grad():
        parameters = reader(3 * torch.randn(50, 6))
    scaled = np.random.default_rng(0).random(50)
    raw = scaling.inverse(scaled)
    losses = reader.losses(parameters, torch.from_numpy(head.targets(scaling.forward(raw))))
    density = reader.predictive(parameters, {}, scaling).log_density(raw)
    expected = density - scaling.log_slope(raw)
    if head.bounded and not scaling.linear:  # each bin is uniform in raw units
        edges = scaling.inverse(np.arange(33) / 32)
        place = np.minimum((scaled * 32).astype(int), 31)
        expected = density + np.log(np.diff(edges)[place] * 32)
    np.testing.assert_allclose(losses.detach(), -expected, atol=2e-5)


@each("spec", SPECS)
def test_a_bounded_head_has_no_density_outside_its_range(spec: str) -> None:
    head = value_head(spec)
    reader = head.build(8)
    parameters = reader(torch.randn(5, 8)).detach()
    calibration = calibration_of(reader, parameters, np.array([0.0, 0.25, 1.0, 7.0, -3.0]))
    assert bool(calibration) == isinstance(reader, CalibratedReader)
    one = reader.predictive(parameters, calibration, PLAIN)
    outside = one.log_density(np.array([-3.0, -0.5, 1.5, 7.0, 100.0]))
    assert np.isinf(outside).all() == head.bounded


@each("spec", SPECS)
def test_the_operations_of_a_head_are_those_that_torch_counts(spec: str) -> None:
    head = value_head(spec)
    model = Regressor(7, Mlp(2, 16), head)
    learnt = torch.from_numpy(head.targets(np.full(3, 0.5)))
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter, torch.no_grad():
        model.losses(torch.zeros(3, 7), learnt)
    assert counter.get_total_flops() == regressor_flops(model, 3)


def test_components_begin_spread_over_the_range() -> None:
    reader = value_head("mdn:4").build(3)
    parameters: Tensor = reader(torch.zeros(1, 3))
    assert parameters[0, 4:8].tolist() == [-0.375, -0.125, 0.125, 0.375]


@each(
    ("spec", "parts"),
    [
        ("riemann:1", ("bins must be from 2 to 1,048,576",)),
        ("mdn:0", ("components must be from 1 to 10,000",)),
        ("scalar,layers=3", ("layers must be from 1 to 2",)),
    ],
)
def test_impossible_settings_are_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with says.raises(UsageError, *parts):
        HEADS.build(spec)


# --- sizes ---------------------------------------------------------------------------------------

CODECS_OF_THE_PAPER = ["ud,base=4,exponent=4,mantissa=8", "ud", "nd,base=8,length=8"]


def share(codec: str, trunk: Mlp) -> float:
    """Return the fraction of a model's parameters in its decoder (1 layer of width 32)."""
    head = value_head(f"decoder:{codec},layers=1,heads=1,width=32")
    total, mine = Regressor(10, trunk, head).parameter_counts()
    return mine / total


@each("codec", CODECS_OF_THE_PAPER)
@each(
    ("layers", "width", "least", "most"),
    [
        *((2, 256, 0.24, 0.25), (2, 512, 0.10, 0.11)),  # more than the paper states
        *((5, 256, 0, 0.10), (3, 512, 0, 0.10), (2, 2048, 0, 0.10), (5, 2048, 0, 0.10)),
    ],
)
def test_the_small_decoder_has_less_than_a_tenth_of_the_parameters_of_most_models(
    codec: str, layers: int, width: int, least: float, most: float
) -> None:
    assert least < share(codec, Mlp(layers, width)) < most


# --- fitted --------------------------------------------------------------------------------------


def fitted(spec: str, target: Floats, learning_rate: float, patience: int) -> FittedTable:
    """Return a model of a target that does not depend on the only feature."""
    columns = Features(np.ones((len(target), 1)), [])
    recipe = FittingRecipe(epochs=200, patience=patience, batch=256, learning_rate=learning_rate)
    head = value_head(spec)
    preparation = Preparation.of(
        columns,
        target,
        None,
        head=head,
        trunk=Mlp(1, 16),
        normalizer=NORMALIZERS.build(head.normalizer),
        recipe=recipe,
        device=CPU,
    )
    return preparation.finished()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("spec", "learning_rate", "patience", "within"),
    [
        ("riemann:16", 2e-3, 5, 0.02),
        ("decoder:nd,base=2,length=6", 2e-3, 5, 0.02),
        ("mdn:32", 5e-3, 20, 0.05),  # Gaussians are slow to fit a uniform density
    ],
)
def test_fitted_to_the_uniform_the_likelihood_is_that_of_the_uniform(
    spec: str, learning_rate: float, patience: int, within: float
) -> None:
    random = np.random.default_rng(0)
    target = random.random(4000)
    target[:2] = 0.0, 1.0
    one = fitted(spec, target, learning_rate, patience).predictive(Features(np.ones((4000, 1)), []))
    nll = -float(one.log_density(random.random(4000)).mean())
    assert abs(nll) < within
