"""Heads that predict bins: their losses and probabilities follow the papers' formulas."""

import cmath
import math

import numpy as np
import pytest
import torch
from scipy.stats import truncnorm

from numtok.models.common_heads import HistogramReader
from numtok.models.heads.base import TokenReader
from tests.cases import each
from tests.fakeheads import PLAIN, value_head

# Logits of 4 bins, of the 4 edges between 5 bins, or of a_0 = 0.3 + 2i and a_1 = -1.2 + 0.1i.
LOGITS = torch.tensor([[0.3, -1.2, 2.0, 0.1]])


@each(
    ("value", "ratio", "expected"),
    [
        (0.4, 0.75, [0.198814, 0.499808, 0.270564, 0.030815]),
        (0.0, 0.75, [0.817578, 0.174762, 0.007597, 0.000063]),
        (0.25, 1e-6, [0.5, 0.5, 0.0, 0.0]),  # on an edge
    ],
)
def test_hl_gauss_learns_the_masses_of_a_truncated_gaussian(
    value: float, ratio: float, expected: list[float]
) -> None:
    spread = ratio / 4
    ends = truncnorm(-value / spread, (1 - value) / spread, loc=value, scale=spread)
    np.testing.assert_allclose(np.diff(ends.cdf(np.arange(5) / 4)), expected, atol=1e-6)

    head = value_head(f"hl-gauss:4,ratio={ratio}")
    targets = torch.from_numpy(head.targets(np.array([value])))
    loss = head.build(3).losses(LOGITS, targets)
    cross_entropy = -float(np.array(expected) @ LOGITS.log_softmax(dim=1).numpy()[0])
    assert loss.item() == pytest.approx(cross_entropy, abs=1e-5)


def test_hl_gauss_predicts_the_mean_of_the_bin_centers() -> None:
    reader = value_head("hl-gauss:4").build(3)
    mass = LOGITS.softmax(dim=1).numpy()[0]
    mean = float(mass @ np.array([0.125, 0.375, 0.625, 0.875]))
    assert reader.point(LOGITS)[0] == pytest.approx(mean, abs=1e-6)
    assert reader.predictive(LOGITS, {}, PLAIN).median()[0] != reader.point(LOGITS)[0]


def test_the_tokens_of_hl_gauss_are_those_of_riemann() -> None:
    values = np.array([-3.0, 0.0, 0.2, 0.25, 0.999, 1.0, 7.0])
    losses = []
    for spec in ("riemann:4", "hl-gauss:4"):
        head = value_head(spec)
        reader, targets = head.build(3), torch.from_numpy(head.targets(values))
        assert isinstance(reader, TokenReader)
        losses.append(reader.token_losses(LOGITS.expand(7, -1), targets))
    torch.testing.assert_close(losses[0], losses[1])


def test_the_fourier_head_has_the_density_of_its_autocorrelation() -> None:
    """c_1 = a_1 conj(a_0) and c_0 = |a_0|^2 + |a_1|^2; bin centers at -0.75, -0.25, 0.25, 0.75."""
    ratio = (-0.16 + 2.43j) / 5.54
    heights = [0.5 + (ratio * cmath.exp(1j * math.pi * x)).real for x in (-0.75, -0.25, 0.25, 0.75)]
    np.testing.assert_allclose(heights, [0.830579, 0.789735, 0.169421, 0.210265], atol=1e-6)
    reader = value_head("fourier:4,frequencies=1").build(3)
    assert isinstance(reader, HistogramReader)
    expected = (np.array(heights) / sum(heights) + 1e-5) / (1 + 4e-5)
    found = reader.log_mass(LOGITS).exp().numpy()[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@each("frequencies", [1, 2, 7])
def test_the_fourier_head_follows_the_formulas_of_the_paper(frequencies: int) -> None:
    """Expected values use explicit sums of complex numbers in double precision."""
    random, bins, count = np.random.default_rng(frequencies), 10, frequencies + 1
    parameters = random.standard_normal(2 * count)
    a = parameters[:count] + 1j * parameters[count:]
    c = [sum(a[m + k] * a[m].conj() for m in range(count - k)) for k in range(count)]
    centers = (np.arange(bins) + 0.5) / bins * 2 - 1
    series = [c[k] / c[0].real * np.exp(1j * math.pi * k * centers) for k in range(1, count)]
    heights = 0.5 + np.sum(series, axis=0).real
    mass = heights / heights.sum() + 1e-5
    penalty = 4 * math.pi**2 * sum(k**2 * abs(c[k]) ** 2 for k in range(count))

    given = torch.from_numpy(parameters)[None]
    targets = torch.tensor([[3]])
    for gamma in (0.0, 0.25):
        head = value_head(f"fourier:{bins},frequencies={frequencies},gamma={gamma}")
        assert head.has_density == (gamma == 0)
        loss = head.build(5).losses(given, targets).item()
        density = bins * mass[3] / mass.sum()
        assert loss == pytest.approx(gamma * penalty - math.log(density), rel=1e-6, abs=1e-6)


def test_fourier_predictions_do_not_depend_on_other_numbers() -> None:
    reader = value_head("fourier:64").build(8)
    parameters = reader(torch.randn(70, 8)).detach()
    together = reader.predictive(parameters, {}, PLAIN).mean()
    alone = [reader.predictive(row[None], {}, PLAIN).mean()[0] for row in parameters]
    assert together.tolist() == alone


def test_the_ordinal_head_multiplies_conditional_probabilities() -> None:
    """The sigmoids of the logits are 0.574443, 0.231475, 0.880797 and 0.524979."""
    head = value_head("ordinal:5")
    reader = head.build(3)
    assert isinstance(reader, HistogramReader)
    found = reader.log_mass(LOGITS).exp().numpy()[0]
    np.testing.assert_allclose(found, [0.425557, 0.441473, 0.01585, 0.055634, 0.061485], atol=1e-6)
    questions = [(0.574443, 1), (0.231475, 1), (0.880797, 0)]  # 0.5 is in the third bin
    loss = -sum(math.log(p if above else 1 - p) for p, above in questions)
    targets = torch.from_numpy(head.targets(np.array([0.5])))
    assert reader.losses(LOGITS, targets).item() == pytest.approx(loss - math.log(5), abs=1e-5)


def test_the_median_of_the_ordinal_head_is_in_the_class_of_corn() -> None:
    """The example of ``corn_label_from_logits`` in coral-pytorch, whose result is 1 and 3."""
    logits = [[14.152, -6.1942, 0.47710, 0.96850], [65.667, 0.303, 11.500, -4.524]]
    points = value_head("ordinal:5").build(3).point(torch.tensor(logits))
    assert np.floor(5 * points).tolist() == [1, 3]


def test_the_ordinal_head_starts_with_equal_probabilities() -> None:
    reader = value_head("ordinal:7").build(3)
    assert isinstance(reader, HistogramReader)
    mass = reader.log_mass(reader(torch.zeros(1, 3))).exp()
    torch.testing.assert_close(mass, torch.full((1, 7), 1 / 7))
