"""Heads that predict bins: their losses and probabilities are those of the papers' formulas."""

import numpy as np
import pytest
import torch
from scipy.stats import truncnorm

from numtok.models.heads.base import TokenReader
from tests.cases import each
from tests.fakeheads import PLAIN, value_head

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
