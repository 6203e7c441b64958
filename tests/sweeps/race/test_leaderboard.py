"""Intervals on the leaderboard of a race."""

import numpy as np
import pytest

from numtok.metrics.base import Predictions
from numtok.sweeps.race.leaderboard import _over_seeds


def answers(noise: int, size: int = 60) -> Predictions:
    truth = np.arange(float(size))
    return Predictions.of(truth, truth + np.random.default_rng(noise).normal(0, 5, size))


def test_a_model_and_a_baseline_with_equal_answers_have_equal_intervals() -> None:
    """A model has seeds and a baseline has none, and both are in one column."""
    for name in ("mae", "r2"):
        baseline, model = (_over_seeds(name, [answers(0)] * seeds) for seeds in (1, 3))
        assert baseline.low is not None and baseline.high is not None
        assert (model.value, model.low, model.high) == pytest.approx(
            (baseline.value, baseline.low, baseline.high)
        )


def test_seeds_that_differ_widen_an_interval() -> None:
    near = answers(1)
    far = near._replace(prediction=near.truth + 20 * (near.prediction - near.truth))
    alike, apart = _over_seeds("mae", [near] * 3), _over_seeds("mae", [near, near, far])
    assert None not in (alike.low, alike.high, apart.low, apart.high)
    assert (apart.low or 0) < (alike.high or 0) < (apart.value or 0) < (apart.high or 0)
