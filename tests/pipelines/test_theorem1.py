"""Theorem 1 of Decoding-based Regression: the risk of a histogram of N samples, and of heads."""

import importlib.util
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "pipelines" / "decoding-regression-figure2.py"


@pytest.fixture(scope="module")
def figure2() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figure2", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("rows", "bits"), [(256, 2), (1024, 4), (1024, 8), (4096, 6)])
def test_the_risk_of_a_histogram_is_the_exact_expression(
    figure2: ModuleType, rows: int, bits: int
) -> None:
    """The mean over hundreds of runs matches, within its standard error."""
    runs = [figure2.risk(figure2.histogram(figure2.drawn(rows, seed), bits)) for seed in range(400)]
    error = np.std(runs, ddof=1) / np.sqrt(len(runs))
    assert abs(np.mean(runs) - figure2.expected(bits, rows)) < 4 * error
    assert error < 0.02 * figure2.expected(bits, rows)


@pytest.mark.parametrize("bits", range(3, 13))
def test_the_formula_of_the_theorem_is_within_five_percent(figure2: ModuleType, bits: int) -> None:
    assert figure2.formula(bits, 16384) == pytest.approx(figure2.expected(bits, 16384), rel=0.05)


def test_the_risk_of_the_true_masses_is_the_bias_alone(figure2: ModuleType) -> None:
    mass = figure2.masses(6)
    assert figure2.risk(mass * 64) == pytest.approx(figure2.expected(6, 10**15), rel=1e-6)


def test_a_riemann_head_that_is_fitted_to_the_end_is_the_histogram(figure2: ModuleType) -> None:
    head = figure2.table_head("riemann:8")
    values = figure2.drawn(512, 0)
    fit = figure2.fitted(values, head, seed=0, epochs=150)
    found = figure2.estimated(fit, 3)
    np.testing.assert_allclose(found, figure2.histogram(values, 3), atol=0.05)


def test_one_decoder_is_an_estimator_with_every_number_of_bits(figure2: ModuleType) -> None:
    """Figure 3: each level has the masses of the next finer one, two cells at a time."""
    head = figure2.table_head("decoder:nd,base=2,length=4,layers=1,heads=1,width=8")
    values = figure2.drawn(256, 0)
    levels = figure2.levels(figure2.fitted(values, head, seed=0, epochs=5), 4)
    assert [len(level) for level in levels] == [2, 4, 8, 16]
    for coarse, fine in pairwise(levels):
        np.testing.assert_allclose(fine.reshape(-1, 2).mean(axis=1), coarse, rtol=1e-9)
    assert levels[0].mean() == pytest.approx(1, abs=1e-9)
    assert len(figure2.figure3(256, 3, 1).panels) == 3
