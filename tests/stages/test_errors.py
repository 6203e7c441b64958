"""``numtok diagnose`` and the frequencies figure: errors in the parts of numbers."""

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from numtok.analysis.figures.base import FIGURES
from numtok.analysis.figures.frequencies import Frequencies, panel_of
from numtok.errors import UsageError
from numtok.evaluation.number_parts import KINDS, NumberParts, PartShares, by_chance
from numtok.metrics.base import Predictions
from numtok.stages.errors import Config, ReportErrors, report_errors, run
from numtok.stages.figure import picture_of
from numtok.store.store import Store
from tests.chain import csv_rows, there
from tests.fakereports import Fake, make
from tests.messages import Says
from tests.shell import Shell

Pairs = dict[tuple[str, str | None], int]
NOTHING = Config(("r",))


def answers(pairs: Pairs, per_sample: int = 1) -> Predictions:
    """Return this many numbers per (truth, prediction) pair. None means no number was predicted; it
    counts as 0."""
    rows = [pair for pair, count in pairs.items() for _ in range(count)]
    truths, found = [one for one, _ in rows], [one for _, one in rows]
    return Predictions(
        np.array(truths, np.float64),
        np.array([one or "0" for one in found], np.float64),
        np.array([one is not None for one in found]),
        truths,
        found,
        sample=np.arange(len(rows)) // per_sample,
    )


def of(pairs: Pairs) -> ReportErrors:
    return report_errors(NOTHING, "p1000", "r@1", answers(pairs))


def shares(found: ReportErrors) -> dict[str, float | None]:
    return {error.kind: error.share.value for error in found.errors if error.share.value}


@pytest.mark.parametrize(
    ("literal", "parts"),
    [
        ("-0.0602", ("-", "602", "E-4")),
        ("1", ("", "100", "E-2")),
        ("9.996", ("", "100", "E-1")),
        ("0.1435", ("", "144", "E-3")),  # a tie, to even
        ("-0.0", ("", "0", "")),
        ("1,234.5%", ("", "123", "E-1")),
    ],
)
def test_numbers_are_written_in_parts(literal: str, parts: tuple[str, str, str]) -> None:
    assert NumberParts.of(literal, 3) == parts
    # Numbers are counted without their signs.
    two = [NumberParts.of("-2", 1), NumberParts.of("2", 1)]
    assert PartShares.of(two).number == {"2E0": 1.0}


def test_each_wrong_part_has_a_kind_of_its_own() -> None:
    # 1.001 is right to three digits.
    pairs = {"1.001": 4, "2.00": 1, "0.100": 2, "-1.00": 1, "-2.00": 1, None: 1}
    found = of({("1.00", given): count for given, count in pairs.items()})
    assert shares(found) == {
        "right": 0.4, "mantissa": 0.1, "exponent": 0.2, "sign": 0.1, "several": 0.1,
        "no number": 0.1,
    }  # fmt: skip
    squares = {error.kind: error.of_squares for error in found.errors}
    whole = 4e-6 + 1 + 2 * 0.81 + 4 + 9 + 1
    assert squares["exponent"] == pytest.approx(2 * 0.81 / whole)
    assert sum(value or 0 for value in squares.values()) == pytest.approx(1)


def test_shares_of_zero_of_one_digit_and_of_no_errors() -> None:
    # Zero instead of another number is wrong in several parts.
    assert shares(of({("1.0", "0"): 1, ("0", "0.0"): 1})) == {"several": 0.5, "right": 0.5}
    # With one digit, 0.1 is not a neighbor of 1.
    two = answers({("1", "0.1"): 1, ("9", "10"): 1})
    found = report_errors(Config(("r",), None, 1), "", "", two)
    assert shares(found) == {"right": 0.5, "exponent": 0.5}
    found = of({("1.0", "1.0"): 2})
    assert [error.of_squares for error in found.errors] == [None] * len(KINDS)
    assert found.surplus == []


@pytest.mark.parametrize(
    ("truth", "found", "kind"),
    [
        ("0.999", "1.00", "right"),
        ("-1.00", "-0.999", "right"),
        ("99.94", "99.96", "right"),  # with three digits: 999E-1 and 100E0
        ("0.999", "-1.00", "several"),
        ("0.998", "1.00", "several"),
        ("0.999", "1.01", "several"),
        ("0.998", "0.999", "mantissa"),
        ("0.999", "10.0", "several"),
        ("1.00", "0.100", "exponent"),
        ("0", "1e-9", "several"),
    ],
)
def test_neighbors_around_a_power_of_ten(truth: str, found: str, kind: str) -> None:
    assert shares(of({(truth, found): 1})) == {kind: 1.0}
    assert shares(of({(found, truth): 1})) == {kind: 1.0}


def test_intervals_draw_whole_samples() -> None:
    pairs: Pairs = {("1.0", "1.0"): 60, ("1.0", "2.0"): 60}
    widths = []
    for per_sample in (1, 20):
        found = report_errors(NOTHING, "", "", answers(pairs, per_sample))
        [right] = [error.share for error in found.errors if error.kind == "right"]
        assert right.value == 0.5
        widths.append(there(right.high) - there(right.low))
    assert widths[1] > 2 * widths[0]


def test_parts_drawn_apart_show_as_their_most_common_combination() -> None:
    # Half of the mantissas are 100 and half of the exponents E-3, but 0.100 is rare (Figure 4).
    pairs: Pairs = {("1.00", "0.100"): 45, ("0.234", "0.234"): 25}
    found = of(pairs | {("0.567", "0.567"): 25, ("0.100", "0.100"): 5})
    common = there(found.commonest)
    assert (common.number, common.truth, common.predicted) == ("100E-3", 0.05, 0.5)
    assert common.of_squares == pytest.approx(1)
    assert shares(found) == {"right": 0.55, "exponent": 0.45}
    [size] = found.surplus
    assert (size.number, size.truth, size.predicted) == ("100E-3", 0.05, 0.5)
    distances = {one.part: one.value for one in found.distances}
    assert distances["mantissa"] == pytest.approx(0)
    assert (distances["exponent"], distances["number"]) == pytest.approx((0.45, 0.45))


def test_what_chance_does_to_frequencies_is_told() -> None:
    rng = np.random.default_rng(0)
    truths = [f"{value:.2e}" for value in rng.uniform(1, 9, 2000)]
    drawn = rng.permutation(truths)
    one = Predictions.of(
        np.array(truths, np.float64),
        np.array(drawn, np.float64),
        truth_literal=truths,
        prediction_literal=drawn.tolist(),
    )
    distance = report_errors(NOTHING, "", "", one).distances[2]
    assert distance.value == 0  # the same numbers in another order
    assert there(distance.by_chance) > 0.1
    again = [f"{value:.2e}" for value in rng.uniform(1, 9, 2000)]
    other = one._replace(prediction=np.array(again, np.float64), prediction_literal=again)
    fresh = report_errors(NOTHING, "", "", other).distances[2]
    assert fresh.value == pytest.approx(there(fresh.by_chance), rel=0.1)


@pytest.mark.parametrize("m", [1, 30, 200])
def test_the_level_of_chance_is_the_mean_over_all_divisions(m: int) -> None:
    rng = np.random.default_rng(0)
    n = 50
    both = np.concatenate([rng.zipf(1.5, n + m).clip(max=40)])

    def apart(drawn: np.ndarray) -> float:
        one, other = (np.bincount(part, minlength=41) / len(part) for part in np.split(drawn, [n]))
        return float(np.abs(one - other).sum()) / 2

    expected = np.mean([apart(rng.permutation(both)) for _ in range(4000)])
    true, predicted = (
        {str(one): float((part == one).mean()) for one in set(part.tolist())}
        for part in np.split(both, [n])
    )
    assert by_chance(true, predicted, n, m) == pytest.approx(expected, rel=0.02)


def test_few_predictions_are_further_off_by_chance() -> None:
    numbers = [f"{k}.00" for k in range(1, 10)]
    truths: Pairs = {(one, None): 50 for one in numbers}
    few, many = (
        there(of(truths | {(one, one): times for one in numbers}).distances[2].by_chance)
        for times in (1, 100)
    )
    assert few > 3 * many


def test_a_large_report_takes_no_more_than_its_values() -> None:
    shares_of = {str(k): 1e-5 for k in range(100_000)}
    assert by_chance(shares_of, shares_of, 10**5, 10**5) == pytest.approx(0.5, abs=1e-5)


def test_all_predictions_may_be_no_numbers() -> None:
    found = of({("1.0", None): 3})
    assert shares(found) == {"no number": 1}
    assert there(found.commonest).predicted == 0
    assert found.surplus == []
    assert {(one.value, one.by_chance) for one in found.distances} == {(None, None)}


def test_zeros_have_no_exponent_to_be_combined() -> None:
    found = of({("0", "0"): 6, ("1.00", "1.00"): 3, ("0.234", "0.234"): 2})
    assert there(found.commonest).number == "100E-2"
    assert of({("0", "0.0"): 2}).commonest is None
    found = of({("1.00", "0"): 6, ("0.234", "1.00"): 2, ("0.5", "0.234"): 2})
    zero = found.surplus[0]
    assert (zero.number, zero.predicted, zero.independent) == ("0", 0.6, None)
    # Of the nonzero predictions, half have the mantissa 100 and half have the exponent E-2.
    common = there(found.commonest)
    assert common.number == "100E-2"
    assert common.independent == pytest.approx(0.4 * 0.5 * 0.5)


def test_errors_may_be_large() -> None:
    found = of({("1.0", "1e300"): 1, ("1.0", "2.0"): 1})
    assert {error.kind: error.of_squares for error in found.errors}["several"] == 0
    assert [error.of_squares for error in found.errors if error.kind == "exponent"] == [1.0]


def test_impossible_options(says: Says) -> None:
    for option, given, bounds in (("digits", 0, "from 1 to 17"), ("top", 201, "from 1 to 200")):
        with says.raises(UsageError, f"--{option} must be {bounds} (got {given})"):
            Config(("r",), None, **{option: given})
    for setting, bounds in (
        ("part=sign", "mantissa, exponent or number"),
        ("digits=0", "from 1 to 17"),
        ("top=0", "from 1 to 200"),
    ):
        name, _, value = setting.partition("=")
        with says.raises(UsageError, f"frequencies: {name} must be {bounds}", value):
            FIGURES.build(f"frequencies,{setting}")


# --- the command and the figure ------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


def test_reports_are_told_by_what_sets_them_apart(store: Store) -> None:
    fakes = Fake("p1000", noise=1.0, seed=0), Fake("p1000", noise=30.0, seed=1)
    near, far = run(Config(tuple(make(store, fake).ref for fake in fakes)), store).errors
    assert (near.label, far.label) == ("p1000, seed=0", "p1000, seed=1")
    assert near.numbers == 200
    assert (shares(far).get("right") or 0) < (shares(near)["right"] or 0) < 1


def test_reports_of_one_model_are_compared_number_by_number(store: Store) -> None:
    first, second = (
        make(store, Fake("p1000", noise=0.3, noise_seed=way, invalid=5 * way), f"fill-{way}").ref
        for way in (0, 1)
    )
    other = make(store, Fake("p10", noise=0.3)).ref
    found = run(Config((first, other, second)), store)
    assert [one.kind for one in found.differences] == list(KINDS)
    before, after = found.errors[0], found.errors[2]
    pairs = {(one.label, one.reference) for one in found.differences}
    assert pairs == {(after.label, before.label)}
    for one, then, now in zip(found.differences, before.errors, after.errors, strict=True):
        ours = there(one.share.value)
        assert ours == pytest.approx(there(now.share.value) - there(then.share.value))
        assert there(one.share.low) <= ours <= there(one.share.high)
    lost = found.differences[-1].share
    assert (lost.value, lost.n) == (0.025, 200)
    same = run(Config((first, first)), store).differences
    assert [(one.share.value, one.share.low, one.share.high) for one in same] == [(0, 0, 0)] * 6
    assert run(Config((first, other)), store).differences == []


def test_an_unknown_target_is_refused(store: Store, says: Says) -> None:
    ref = make(store, Fake()).ref
    with says.raises(UsageError, ref, "'answr'. Did you mean 'answer'? Known: answer"):
        run(Config((ref,), target="answr"), store)


def test_the_command_prints_tables_that_fit(store: Store, numtok: Shell) -> None:
    ref = make(store, Fake("p1000", invalid=10)).ref
    arguments = ["diagnose", ref, "--target", "answer", "--top", "2"]
    out = numtok(*arguments).out
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"no number +5\.0+%", out)
    assert "predicted too often" in out
    (one,) = msgspec.json.decode(numtok(*arguments, "--json").out)["errors"]
    assert [error["kind"] for error in one["errors"]] == list(KINDS)
    rows = csv_rows(numtok(*arguments, "--format", "csv").out)
    parts = [row["of"] for row in rows if row["kind"] == "distance"]
    assert parts == ["mantissa", "exponent", "number"]
    assert len([row for row in rows if row["kind"] == "surplus"]) == 2
    again = make(store, Fake("p1000", noise_seed=1), name="again").ref
    assert "same model and numbers" in numtok("errors", ref, again).out
    rows = csv_rows(numtok("errors", ref, again, "--format", "csv").out)
    differences = [row for row in rows if row["kind"] == "difference"]
    assert [row["of"] for row in differences] == list(KINDS)
    assert all(row["reference"] for row in differences)


def test_the_figure_shows_the_most_frequent_first(store: Store) -> None:
    panel = panel_of("p1000", "number", {"1E0": 0.5, "2E0": 0.5}, {"3E0": 0.9, "1E0": 0.1}, 2)
    assert panel.y.names == ("3E0", "1E0")
    ordered = panel_of("p1000", "exponent", {"E-1": 0.2, "E2": 0.5, "": 0.1, "E10": 0.2}, {}, 3)
    assert ordered.y.names == ("E-1", "E2", "E10")
    ref = make(store, Fake()).ref
    picture = picture_of(Frequencies(part="exponent", target="answer"), [ref], store)
    assert [panel.y.label for panel in picture.panels] == ["exponent"]
    for mark in picture.panels[0].marks:  # for the true values and the predictions
        assert float(np.sum(mark.lengths)) == pytest.approx(1)  # type: ignore[union-attr]
    assert len(picture.panels[0].marks) == 2
