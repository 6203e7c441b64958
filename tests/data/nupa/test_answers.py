"""NUPA scores of whole answers, computed by hand, and the tables made from them."""

import doctest
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from numtok.analysis import nupa_tables
from numtok.analysis.nupa_tables import MEASURES, Scored, tables
from numtok.data.nupa import answers, keys, wording
from numtok.data.nupa.answers import in_notation, score
from numtok.data.tasks import _nupa_answers, _nupa_operands
from numtok.errors import DataError, UsageError
from numtok.evaluation.report_files import ReportPredictions
from numtok.metrics.base import METRICS, Predictions, Z, ends
from numtok.stages import nupa as stage
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell

SUMS = "add_Integer_Integer_Integer"
LONG = "max_Integer_Integer_Integer"
RATIOS = "add_Fraction_Fraction_Fraction"


def test_digits_are_compared_at_their_places() -> None:
    for truth, said, expected in [
        # (exact, same number, matched digits, all digits, d-length, d-length by parts)
        ("1287", "1287", (True, True, 4, 4, 0, 0)),
        ("1287", "287", (False, False, 3, 4, 1, 1)),  # aligned at the units
        ("1287", "12870", (False, False, 0, 4, 1, 1)),
        ("1287", "91287", (False, False, 4, 4, 1, 1)),  # extra digits cost nothing
        ("5", "05", (False, True, 1, 1, 1, 1)),
        ("10.5", "10.52", (False, False, 3, 3, 1, 1)),  # decimals align from the left
        ("10.52", "10.5", (False, False, 3, 4, 1, 1)),
        ("10.5", "1.25", (False, False, 0, 3, 0, 2)),  # lengths that cancel
        ("1.0", "1.00", (False, True, 2, 2, 1, 1)),
        ("7/13", "17/3", (False, False, 2, 3, 0, 2)),
        ("1/2", "2/4", (False, True, 0, 2, 0, 0)),
        ("1/2", "1/0", (False, False, 1, 2, 0, 0)),
        ("1.23e45", "1.23e5", (False, False, 4, 5, 1, 1)),  # exponents align from the right
        ("1.23e4", "11.2e4", (False, False, 3, 4, 0, 2)),
        ("1.5e3", "1.5E3", (True, True, 3, 3, 0, 0)),
        ("5.0e-1", "5.00e-1", (False, True, 3, 3, 1, 1)),
    ]:
        for rule in answers.RULES:
            with case(truth, said, expected, rule):
                exact, equal, matched, digits, *lengths = expected
                found = score(truth, said, rule)
                assert tuple(found) == (True, exact, equal, matched / digits, *lengths)


def test_an_answer_is_found_by_a_rule() -> None:
    for truth, said, published, chat, strict in [
        ("12", "12", True, True, True),
        ("12", " 12\n", True, True, True),
        ("12", "12.5", True, True, None),  # the rest is ignored
        ("12", "12 apples", True, True, None),
        ("12", "It is 12", None, None, None),  # only at the start
        ("12", "-12", None, None, None),
        ("12", "12\nAdd two numbers: 3 + 4 = 7", True, True, None),
        ("12", "7 + 5 = 12", False, False, None),  # an = in an answer has no meaning
        ("12", "So. The answer is 12.", None, True, None),
        ("12", "12. The answer is 13", True, False, None),
        ("5.0", "5", None, None, None),
        ("7/13", "7 / 13", None, None, None),
        ("1.5e3", "1.5e-3", True, True, False),  # signs are ignored
        ("1.5e3", "1.5e+3", True, True, True),
        ("1.5e3", "1500.0", None, None, None),
        ("12", "", None, None, None),
        ("12", None, None, None, None),
        ("12", "٣", None, None, None),
    ]:
        with case(truth, said, published, chat, strict):
            digits = sum(map(str.isdigit, truth))
            for rule, expected in zip(answers.RULES, (published, chat, strict), strict=True):
                got = score(truth, said, rule)
                if expected is None:  # no answer: no digit matches, and all are missing
                    assert tuple(got) == (False, False, False, 0, digits, digits)
                else:
                    assert (got.valid, got.exact) == (True, expected)


def test_signs_of_exponents_are_left_out_of_values_too_unless_strict() -> None:
    for said, equal in (("5.00e1", True), ("5.0e1", True), ("50.0e1", False)):
        assert score("5.0e-1", said, "published").equal is equal
        assert not score("5.0e-1", said, "strict").equal


def test_numbers_too_long_to_be_worked_out_are_not_the_same() -> None:
    for said in ("9" * 5000, "1" * 5001):
        assert not score("12", said, "strict").equal
    assert not score("1.5e3", "1.5e99999", "strict").equal
    assert not score("1/2", f"1/{'0' * 30}", "strict").equal


def test_a_truth_of_no_form_is_compared_as_a_whole() -> None:
    assert score("yes", " yes ", "published").exact
    assert score("yes", "I think. The answer is yes", "published-chat").exact
    assert tuple(score("-12", " -12", "published")) == (True, True, True, 1, 0, 0)
    assert tuple(score("-12", "-1", "strict")) == (True, False, False, 0, 1, 1)
    assert tuple(score("yes", None, "strict")) == (False, False, False, 0, 0, 0)


def test_the_metrics_are_the_means_of_the_scores() -> None:
    made = Predictions.of_texts(
        ["1287", "10.5", "1/2", "1.5e3"], ["1287 or so", "1.25", "2/4", None], sample=np.arange(4)
    )
    expected = {
        "answer-exact-match": 1 / 4,
        "answer-exact-match,by=value": 2 / 4,
        "answer-exact-match,rule=strict": 0,
        "answer-exact-match,rule=strict,by=value": 1 / 4,
        "answer-digit-match": (1 + 0 + 0 + 0) / 4,
        "answer-d-length": (0 + 0 + 0 + 3) / 4,
        "answer-d-length,parts=yes": (0 + 2 + 0 + 3) / 4,
        "answer-d-length,rule=strict": (4 + 0 + 0 + 3) / 4,
        "answered": 3 / 4,
        "answered,rule=strict": 2 / 4,
    }
    for spec, value in expected.items():
        assert METRICS.build(spec).plain(made) == pytest.approx(value), spec


def test_a_rule_that_there_is_not_is_refused(says: Says) -> None:
    for name in ("answer-exact-match", "answer-digit-match", "answer-d-length", "answered"):
        with says.raises(UsageError, f"{name}: rule ", "published-chat or strict", "loose"):
            METRICS.build(f"{name},rule=loose")
    with says.raises(UsageError, "answer-exact-match: by ", "text or value", "digits"):
        METRICS.build("answer-exact-match,by=digits")


# --- tables --------------------------------------------------------------------------------------


def scored(*rows: tuple[str, int, str, str | None]) -> Scored:
    """Score rows of task key, digit key, true answer and given answer."""
    found = [score(truth, said, "strict") for _, _, truth, said in rows]
    return Scored(
        [task for task, *_ in rows],
        np.array([digits for _, digits, *_ in rows]),
        np.array([[getattr(one, name) for name in MEASURES.values()] for one in found], float),
    )


def test_the_three_means_weigh_answers_tasks_and_strata() -> None:
    made = tables(
        scored(
            (SUMS, 3, "10", "10"),
            (SUMS, 3, "11", "11"),
            (SUMS, 3, "12", "21"),
            (SUMS, 4, "13", None),
            (RATIOS, 1, "1/2", "1/2"),
        )
    )
    exact = made.means[0]
    assert exact.measure == "exact match"
    assert exact.micro.value == pytest.approx(3 / 5)
    assert exact.of_tasks.value == pytest.approx((2 / 4 + 1) / 2)
    assert exact.of_strata.value == pytest.approx((2 / 3 + 0 + 1) / 3)
    # The first stratum has a variance of (2/3 * 1/3) / (3 - 1) and a weight of 3/5. The other two,
    # of one answer each, have a pooled variance of 1/2 and weights of 1/5. Wilson's interval uses
    # the number of answers with the same variance.
    n = 3 / 5 * 2 / 5 / (9 / 25 * 1 / 9 + 2 * 1 / 25 * 1 / 2)
    assert (exact.micro.low, exact.micro.high) == pytest.approx(ends(3 / 5, n))
    assert [(part.name, part.n) for part in made.digits] == [("1", 1), ("3", 3), ("4", 1)]
    assert [(part.name, part.n) for part in made.operations] == [("add", 5)]
    assert [part.name for part in made.strata] == [f"{RATIOS} 1", f"{SUMS} 3", f"{SUMS} 4"]
    wrong = {"exact match": 0, "the same number": 0, "digit match": 0, "answered": 0}
    assert made.digits[2].means == wrong | {"d-length": 2, "d-length by parts": 2}


def test_ranges_depend_on_how_long_numbers_of_a_task_get() -> None:
    rows = [(SUMS, digits, "12", "12" if digits in (4, 9) else "13") for digits in (4, 5, 9, 20)]
    rows += [(LONG, digits, "12", "12" if digits == 10 else "no") for digits in (5, 10, 11, 61)]
    long, short = sorted(tables(scored(*rows)).tasks, key=lambda task: task.name, reverse=True)[
        ::-1
    ]
    short, long = (short, long) if short.name == SUMS else (long, short)
    assert short.ranges == {"S": 1, "M": 0, "L": 1, "XL": 0}
    assert (short.inside, short.outside, short.exact) == (0.5, 0.5, 0.5)
    assert long.ranges == {"S": 0.5, "M": 0, "L": None, "XL": 0}
    assert long.inside == pytest.approx(1 / 3)
    assert long.outside == 0


def test_well_learned_is_the_largest_digit_key_that_reaches_all_bounds() -> None:
    rows: list[tuple[str, int, str, str | None]] = []
    for digits, said in ((3, "12"), (4, "99"), (5, "12"), (6, "19")):
        rows += [(SUMS, digits, "12", said)] * 9 + [(SUMS, digits, "12", "12")]
    rows += [(SUMS, 7, "12", "12")] * 8 + [(SUMS, 7, "12", "123456789")] * 2
    (task,) = tables(scored(*rows)).tasks
    assert task.well_learned == 5  # 7 reaches only 0.8; 4 fails, but gaps are allowed
    assert task.has_performance == 6  # 7 is 1.4 digits off
    (nothing,) = tables(scored((SUMS, 3, "12", None))).tasks
    assert nothing.well_learned is nothing.has_performance is None


def test_figures_of_answers_that_are_all_right_are_exactly_one() -> None:
    rows = [(SUMS, digits, "12", "12") for digits in range(3, 20) for _ in range(digits)]
    for mean in tables(scored(*rows, (RATIOS, 1, "1/2", "1/2"))).means[:3]:
        for one in (mean.micro, mean.of_tasks, mean.of_strata):
            assert (one.value, one.high) == (1, 1)
        n = len(rows) + 1
        assert mean.micro.low == pytest.approx(n / (n + Z**2))


@pytest.mark.integration
@pytest.mark.parametrize(("strata", "of_each"), [(40, 1), (20, 1), (20, 2), (4, 5)])
@pytest.mark.parametrize("chance", [0.5, 0.95])
def test_intervals_hold_the_mean_of_other_questions(
    strata: int, of_each: int, chance: float
) -> None:
    """The coverage is nearly nominal: Wilson's intervals for such small samples are slightly
    off."""
    random = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        right = random.random((strata, of_each)) < chance
        rows = [
            (LONG, digits, "12", "12" if one else "13")
            for digits, each in enumerate(right.tolist(), 1)
            for one in each
        ]
        exact = tables(scored(*rows)).means[0].micro
        assert exact.low is not None and exact.high is not None
        held += exact.low <= chance <= exact.high
    assert held >= 88


def report(
    *rows: tuple[str, int, str, str | None], task: str = RATIOS, **more: str
) -> ReportPredictions:
    """Return the predictions of a report: id, position, true number and predicted number."""
    ids, positions, truths, said = zip(*rows, strict=True)
    columns = {
        "id": ids,
        "target": ["answer"] * len(ids),
        "position": positions,
        "truth_literal": truths,
        "prediction_literal": said,
        "valid": [one is not None for one in said],
        "group_task": [task] * len(ids),
        "group_digits": ["3"] * len(ids),
    }
    columns = {name: column for name, column in columns.items() if name not in more}
    return ReportPredictions("a report", pa.table(columns), Predictions.of([], []))


def test_the_numbers_of_a_reports_row_are_one_answer() -> None:
    rows = (("b", 7, "3", "3.0"), ("a", 5, "13", "31"), ("a", 4, "7", "7.0"), ("b", 8, "4", None))
    assert sorted(stage._of_numbers(report(*rows))) == [
        (RATIOS, "3", "3/4", None),
        (RATIOS, "3", "7/13", "7/31"),
    ]
    (one,) = stage._of_numbers(report(("a", 0, "12", "12.0"), task=SUMS))
    assert one == (SUMS, "3", "12", "12")
    assert stage._notes(report(*rows))[0].startswith("Denominators were predicted after the true")
    assert stage._notes(report(*rows, task=SUMS)) == []


def test_reports_that_are_not_of_the_benchmark_are_one_line(says: Says) -> None:
    row = ("a", 0, "12", "12")
    with says.raises(
        UsageError, "lacks the groups task and digits", "`numtok gen nupa`", "`numtok fetch nupa`"
    ):
        list(stage._of_numbers(report(row, group_task="none")))
    for task, wanted in ((RATIOS, 2), ("add_ten", 1)):
        with says.raises(DataError, f"row a of task {task} must have {wanted} ", "(got 1)"):
            list(stage._of_numbers(report(row, task=task)))


# --- the command ---------------------------------------------------------------------------------

SPEC = "nupa,tasks=add,digits=3,train=0,validation=0,test=2,prompt=short"
DATA = ("gen", SPEC, "--name", "small")


def asked(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.glob("artifacts/data/small/*/test-00000.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def given(folder: Path, *lines: object) -> str:
    path = folder / "said.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


def test_answers_of_any_model_are_scored(numtok: Shell, tmp_path: Path) -> None:
    numtok(*DATA)
    rows = asked(tmp_path)
    assert len(rows) == 8
    said = [{"id": row["id"], "answer": f"{row['gold']} or so"} for row in rows]
    said[0]["answer"] = "I do not know"
    said[1]["answer"] = f"{rows[1]['text']}\nAdd two numbers: 1 + 1 = 2"  # repeats the question
    said[2]["answer"] = f" {rows[2]['gold']} = {rows[2]['gold']}"
    path = given(tmp_path, *said)
    scoring = ("score", path, "--truth", "small", "--benchmark", "nupa")
    found = json.loads(numtok(*scoring, "--json").out)
    assert (found["n"], found["rule"], found["notes"]) == (8, "published", [])
    assert found["tables"]["means"][0]["micro"]["value"] == 7 / 8
    assert [part["name"] for part in found["tables"]["operations"]] == ["add"]
    strict = json.loads(numtok(*scoring, "--rule", "strict", "--json").out)
    assert strict["tables"]["means"][5]["measure"] == "answered"
    for name in ("micro", "of_tasks", "of_strata"):
        of_eight = dict(zip(("low", "high"), ends(0, 8), strict=True))
        assert strict["tables"]["means"][5][name] == {"value": 0, "n": 8, **of_eight}
    csv = numtok(*scoring, "--format", "csv").out.splitlines()
    assert csv[0] == "table,of,measure,n,figure,low,high"
    task = "add_ScientificNotation_ScientificNotation_ScientificNotation"
    assert f"tasks,{task},well-learned digits,2,3,," in csv
    given(tmp_path, *said[:6])
    printed = numtok(*scoring).out
    assert "6 answers of small@" in printed and "6 of 8 rows have an answer." in printed
    former = numtok("nupa", "small", "--answers", path)
    assert (former.code, former.out) == (0, printed)
    assert former.err == "numtok: numtok nupa is now numtok score --benchmark nupa\n"


def test_answers_that_do_not_fit_are_one_line(numtok: Shell, tmp_path: Path, says: Says) -> None:
    ref = numtok(*DATA).out.strip()
    first = asked(tmp_path)[0]["id"]
    seven, one = {"id": "7", "answer": "1"}, {"id": first, "answer": "1"}

    def refused(path: str, code: int, *parts: str, options: tuple[str, ...] = ()) -> None:
        ran = numtok("score", path, "--truth", "small", "--benchmark", "nupa", *options)
        says.refused(ran, code, *parts)

    cases: list[tuple[list[object], list[str]]] = [
        ([], [" has no answers"]),
        ([seven], [": 1 of 1 ids", f"split 'test' of {ref}", "'7'"]),
        ([one, one], [f":2: id {first!r} occurs twice"]),
        ([{"id": 7, "answer": "1"}], [":1: 'id' must be a string (got an integer)", '"answer"']),
    ]
    for lines, (place, *parts) in cases:
        path = given(tmp_path, *lines)
        refused(path, 3, f"{path}{place}", *parts)
    packed = tmp_path / "twice.jsonl.gz"
    packed.write_bytes(gzip.compress(b'\n{"id": "7", "id": "7", "answer": "1"}\n'))
    refused(str(packed), 3, f"{packed}:2: the key 'id' appears twice")
    absent = f"{ref} has no split 'ood-a'"
    refused(given(tmp_path), 2, absent, options=("--split", "ood-a"))
    for options, parts in (
        (("--rule", "last-number"), ["'last-number'", "published"]),
        (("--rule", "strict", "--rule", "published"), ["one --rule", "got 2"]),
        (("--metric", "mae"), ["--metric", "--benchmark nupa"]),
        (("--answers", "other.jsonl"), ["--answers", "--truth"]),
    ):
        refused(given(tmp_path, one), 2, *parts, options=options)


def test_values_are_written_as_the_true_answer_is() -> None:
    for truth, said, expected in [
        ("12", "12", "12"),
        ("12", "012", "012"),  # unchanged if the notation is that of the true answer
        ("12", "12.0", "12"),
        ("12", "1.2e1", "12"),
        ("12", "-12.0", "-12"),
        ("12", "11.7", "12"),  # rounded to the nearest integer
        ("12", "-0.2", "0"),
        ("0.5", "5e-1", "0.5"),
        ("0.5", "5", "5.0"),
        ("1.5e3", "1500.0", "1.5e3"),
        ("1.5e3", "0.0", "0.0e0"),
        ("1.5e3", "1e+300", "1.0e300"),
        ("12", None, None),
        ("12", "inf", "inf"),
        ("12", "+overflow", "+overflow"),
    ]:
        assert in_notation(truth, said) == expected, (truth, said, expected)


def test_a_value_in_float32_has_seven_digits() -> None:
    for truth, said, expected in [
        ("18", "17.999999876320363", "18"),
        ("52.3", "52.29999923706055", "52.3"),
        ("0.5", "0.5000000149011612", "0.5"),
        ("1.5e3", "1500.0000223517", "1.5e3"),
        ("1234567890", "1234567936.0", "1234568000"),
    ]:
        assert in_notation(truth, said, 7) == expected, (truth, said, expected)


def test_the_examples_are_true() -> None:
    for module in (
        *(answers, keys, wording, stage, nupa_tables),
        *(_nupa_answers, _nupa_operands),
    ):
        assert doctest.testmod(module).failed == 0, module.__name__
