"""Scores of answers, compared with plain Python: metrics, p-values and corrections."""

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.errors import DataError
from numtok.evaluation.answer_scores.answer_files import Answers
from numtok.evaluation.answer_scores.scores import AnswerScores, Scoring
from numtok.evaluation.answer_scores.significance import (
    detectable_difference,
    holm,
    permutation_test,
)
from numtok.settings.score import Config
from tests.messages import Says


def scored(
    truths: list[str],
    clusters: list[str] | None = None,
    settings: Config | None = None,
    **models: Sequence[str | None],
) -> AnswerScores:
    scoring = Scoring.of(settings or Config(("x",)))
    where = [f"gold:{row}" for row in range(len(truths))]
    answers = Answers(where, truths, where, models, clusters)
    return scoring.score(*scoring.read(answers))


def metrics_of(scores: AnswerScores, model: int, rule: str) -> dict[str, float | None]:
    [own] = [own for own in scores.models[model].rules if own.rule == rule]
    return {name: figure.value for name, figure in own.metrics.items()}


def test_metrics_are_those_of_their_definitions() -> None:
    truths = ["40", "2.50", "-8", "1000", "7"]
    said = ["about 41", "**2.496**", "8", None, "seven"]
    found = metrics_of(scored(truths, a=said), 0, "last-number")
    assert found["number-generation-ratio"] == 3 / 5
    assert found["exact-match"] == 0
    assert found["rounded-match"] == 1 / 5  # 2.496 rounds to 2.50
    assert found["median-relative-error"] == 2.0  # 0.025, 0.0016, 2, infinite, infinite
    assert found["digit-match"] == pytest.approx((1 / 2 + 1 / 3 + 1) / 5)
    logs = [abs(math.log10(41 / 40)), abs(math.log10(2.496 / 2.5))]
    assert found["lmae,skip=yes"] == pytest.approx(statistics.mean(logs))
    digits = [-math.log10(1 / 81) / 15, -math.log10(0.004 / 4.996) / 15]
    assert found["log-smape"] == pytest.approx(sum(digits) / 5)


def test_strict_wants_the_form_of_the_true_value() -> None:
    truths = ["12", "12", "12", "12.5", "1,200", "3"]
    said = ["12", "12.0", "+12", "12.50", "1,200", "**3**"]
    scores = scored(truths, a=said)
    assert metrics_of(scores, 0, "strict")["exact-match"] == 3 / 6
    assert metrics_of(scores, 0, "strict")["number-generation-ratio"] == 3 / 6
    assert metrics_of(scores, 0, "last-number")["exact-match"] == 1


def test_values_are_compared_as_decimals() -> None:
    truths = ["0.1", "9007199254740993", "1e-400"]
    said = ["0.1000000000000000001", "9007199254740992", "2e-400"]
    assert metrics_of(scored(truths, a=said), 0, "strict")["exact-match"] == 0
    assert metrics_of(scored(truths, a=truths), 0, "strict")["exact-match"] == 1


def test_models_are_compared_with_the_first_row_by_row() -> None:
    truths = [str(n) for n in range(40)]
    base = [truth if n < 20 else "x" for n, truth in enumerate(truths)]
    better = [truth if n < 30 else "x" for n, truth in enumerate(truths)]
    worse = [truth if n < 19 else "x" for n, truth in enumerate(truths)]
    settings = Config(("x",), rules=("last-number",), metrics=("exact-match",))
    scores = scored(truths, settings=settings, a=base, b=better, c=worse)
    first, second = scores.comparisons
    assert (first.model, first.reference, first.rule) == ("b", "a", "last-number")
    assert first.difference.value == pytest.approx(10 / 40)
    assert first.p == pytest.approx(2 / 2**10) and first.p_holm == pytest.approx(4 / 2**10)
    assert second.difference.value == pytest.approx(-1 / 40)
    assert second.p == 1 and second.p_holm == 1
    low, high = first.difference.low, first.difference.high
    assert low is not None and high is not None and 0 < low < 10 / 40 < high


def test_clusters_widen_intervals_and_p_values() -> None:
    truths, clusters = ["1"] * 60, [str(n // 10) for n in range(60)]
    one: list[str | None] = ["1" if n // 10 % 2 else "2" for n in range(60)]
    two: list[str | None] = ["1" if n // 10 % 3 else "2" for n in range(60)]
    alone = scored(truths, a=one, b=two)
    grouped = scored(truths, clusters, a=one, b=two)
    assert grouped.clusters == 6 and alone.clusters is None

    def width(scores: AnswerScores) -> float:
        figure = scores.models[0].rules[2].metrics["exact-match"]
        assert figure.low is not None and figure.high is not None
        return figure.high - figure.low

    assert width(grouped) > 1.5 * width(alone)
    by_row, by_cluster = alone.comparisons[2], grouped.comparisons[2]
    assert by_row.p is not None and by_cluster.p is not None and by_row.p < by_cluster.p
    assert by_row.detectable is not None and by_cluster.detectable is not None
    assert by_row.detectable < by_cluster.detectable


def test_metrics_that_are_no_means_have_no_p_value() -> None:
    settings = Config(("x",), compare_by="median-relative-error")
    scores = scored(["1", "2", "3"], settings=settings, a=["1", "2", "4"], b=["2", "4", "5"])
    assert {one.p for one in scores.comparisons} == {None}
    assert {one.p_holm for one in scores.comparisons} == {None}


def test_true_values_that_are_no_number_are_refused_or_left_out(says: Says) -> None:
    with says.raises(DataError, "gold:1: ", "'3 of 4'", "--truth-rule"):
        scored(["1", "3 of 4"], a=["1", "1"])
    with says.raises(DataError, "gold:0: ", "1e400", "float64"):
        scored(["1e400"], a=["1"])
    scores = scored(["1", "3 of 4"], settings=Config(("x",), on_error="skip"), a=["1", "1"])
    assert (scores.rows, list(scores.left_out.values())) == (1, [1])
    last = Config(("x",), truth_rule="last-number")
    assert metrics_of(scored(["3 of 4"], settings=last, a=["4"]), 0, "strict")["exact-match"] == 1


# --- significance ------------------------------------------------------------------------------


def enumerated(totals: list[float]) -> float:
    """Return the fraction of all swaps whose difference is at least as large."""
    observed = abs(sum(totals))
    sums = [
        abs(sum(sign * total for sign, total in zip(signs, totals, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(totals))
    ]
    return sum(one >= observed - 1e-9 for one in sums) / len(sums)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_p_is_the_fraction_of_swaps(values: list[int]) -> None:
    differences = np.array(values, np.float64)
    assert permutation_test(differences) == pytest.approx(enumerated(list(map(float, values))))


@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 4)), min_size=1, max_size=12))
def test_clusters_are_swapped_whole(rows: list[tuple[int, int]]) -> None:
    differences = np.array([value for value, _ in rows], np.float64)
    clusters = np.array([cluster for _, cluster in rows])
    totals = [float(differences[clusters == one].sum()) for one in set(clusters.tolist())]
    assert permutation_test(differences, clusters) == pytest.approx(enumerated(totals))


def test_random_swaps_and_the_normal_distribution_agree() -> None:
    generator = np.random.default_rng(5)
    for n in (60, 1999, 2000):
        differences = generator.normal(2 / math.sqrt(n), 1, n)
        z = differences.sum() / math.sqrt(float(np.square(differences).sum()))
        expected = 2 * statistics.NormalDist().cdf(-abs(z))
        assert permutation_test(differences) == pytest.approx(expected, abs=0.02)


def test_models_that_answer_alike_do_not_differ() -> None:
    assert permutation_test(np.zeros(10)) == 1
    assert permutation_test(np.array([0.1, 0.2, -0.3])) == 1  # their sum is not 0 in float64
    assert detectable_difference(np.zeros(10)) is None
    assert detectable_difference(np.ones(1)) is None


def test_a_difference_of_the_detectable_size_is_found_four_times_in_five() -> None:
    generator = np.random.default_rng(3)
    size = detectable_difference(generator.normal(0, 1, 4000))
    assert size is not None
    found = [permutation_test(generator.normal(size, 1, 4000)) < 0.05 for _ in range(400)]
    assert 0.72 < np.mean(found) < 0.88


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_the_step_down_procedure(values: list[float]) -> None:
    adjusted = holm(values)
    for level in (0.01, 0.05, 0.5):
        rejected: set[int] = set()
        for rank, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
            if values[index] * (len(values) - rank) > level:
                break
            rejected.add(index)
        below = {index for index, p in enumerate(adjusted) if p is not None and p <= level}
        assert below == rejected
