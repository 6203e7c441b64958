"""``numtok report``: a report printed again, with published numbers next to it."""

import csv
import io
import json
import shlex
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.cli.output.figures import amount, duration, interval, metric_cells, number, share
from numtok.cli.output.printing import Format, Sheet, print_parts
from numtok.cli.output.report import _across, best_line, headline_metrics, skill
from numtok.evaluation.prediction_table import rows_by_value
from numtok.reports import REPORT_FILE, BestBaseline, Figure, Report
from numtok.row import in_order
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cases import case
from tests.fakereports import Fake, make
from tests.messages import Says
from tests.shell import Shell


@pytest.fixture
def xval(tmp_path: Path) -> Artifact:
    return make(Store(tmp_path / "artifacts"), Fake("xval", noise=1, settings={"objective": "ar"}))


@pytest.fixture
def fp15(tmp_path: Path) -> Artifact:
    return make(Store(tmp_path / "artifacts"), Fake("fp15", noise=5, invalid=3))


def words(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines()]


# --- one report --------------------------------------------------------------------------------


def test_a_report_says_what_was_evaluated(numtok: Shell, fp15: Artifact) -> None:
    code, out, err = numtok("report", "report-fp15-0")
    assert (code, err) == (0, "")
    lines = words(out)
    assert lines[:7] == [
        f"report {fp15.ref}: fp15, seed 0",
        "model model-fp15@0123456789abcdef on the test split of",
        "arithmetic-fp15@0123456789abcdef",
        "200 rows, 200 numbers; fill order: all; constrained: yes",
        "invalid predictions: 1.5%; they count as the training mean, 1.5",
        "invalid without constrained decoding: 0.3%",
        "settings: scheme: fp15; head: token; objective: mlm:targets; steps: 1000",
    ]
    assert "Note: The operands were drawn as the task says, not as the paper did." in lines
    for row in ("training FLOPs 3.1e15", "training time 1.67 min", "in embeddings 700,000"):
        assert row in lines


def test_figures_over_valid_numbers_stand_beside_where_some_are_invalid(
    numtok: Shell, fp15: Artifact, xval: Artifact
) -> None:
    lines = words(numtok("report", fp15.ref)[1])
    assert "metric n all numbers valid only" in lines, "each interval is below its value"
    at = next(row for row, line in enumerate(lines) if line.startswith("mse 200 "))
    assert lines[at + 1].count(" to ") == 2
    assert "metric n all numbers 95% interval" in words(numtok("report", xval.ref)[1])


def test_eight_metrics_are_shown_unless_all_are_asked_for(numtok: Shell, xval: Artifact) -> None:
    report = msgspec.json.decode((xval.path / REPORT_FILE).read_bytes(), type=Report)
    assert len(report.metrics) <= 8 and "--all-metrics" not in numtok("report", xval.ref).out
    more = {f"relative-error-over,limit={n}": report.metrics["mse"] for n in range(1, 12)}
    many = msgspec.structs.replace(report, metrics=report.metrics | more)
    shown = headline_metrics(many)
    assert len(shown) == 8 and {"r2", "mse"} <= set(shown)
    assert shown == [name for name in many.metrics if name in shown]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["none", None, "x", "none"], {"(none)": [1], "none": [0, 3], "x": [2]}),
        ([None, "10", "9", None], {"9": [2], "10": [1], "none": [0, 3]}),
        ([], {}),
    ],
)
def test_rows_without_a_value_are_apart_from_those_called_none(
    values: list[str | None], expected: dict[str, list[int]]
) -> None:
    found = rows_by_value(pa.chunked_array([pa.array(values, pa.string())]))
    assert list(found) == list(in_order(expected))
    assert {value: rows.tolist() for value, rows in found.items()} == expected


def test_groups_baselines_and_skill_are_told(numtok: Shell, xval: Artifact) -> None:
    lines = words(numtok("report", xval.ref)[1])
    assert lines[lines.index("by operands") + 3] == "n 67 67"
    report = msgspec.json.decode((xval.path / REPORT_FILE).read_bytes(), type=Report)
    mse, baseline = report.metrics["mse"].value, report.baselines["mean"]["mse"].value
    assert mse is not None and baseline is not None
    assert "metric model quantization mean" in lines
    [told] = [line for line in lines if line.startswith("model's skill (mse)")]
    assert told.endswith(f" {number(1 - mse / baseline)}")
    assert 0.999 < 1 - mse / baseline < 1
    assert "Skill is 1 - error / error of the baseline." in " ".join(lines)


BEST = BestBaseline(
    name="tfidf",
    metric="mae",
    value=0.123,
    difference=Figure(0.0312, 0.0118, 0.0507, 90),
    better="baseline",
)


def test_the_best_baseline_is_named_with_the_difference_to_it(numtok: Shell) -> None:
    told = "Best baseline: tfidf (mae 0.123); model minus baseline: 0.031, 95% interval 0.012 to "
    assert best_line(BEST).startswith(f"{told}0.051.") and "does not beat" in best_line(BEST)
    replace = msgspec.structs.replace
    assert "does not beat" in best_line(replace(BEST, better=None))
    beaten = best_line(replace(BEST, better="model"))
    assert "beats" in beaten and "does not" not in beaten
    of_share = replace(BEST, metric="accuracy", value=0.5)
    assert "(accuracy 50%)" in best_line(of_share) and "1.2 to 5.1 pp" in best_line(of_share)
    report = make(Store(Path("artifacts")), Fake("xval", best=(("", BEST),)))
    assert best_line(BEST) in " ".join(words(numtok("report", report.ref).out))


@pytest.mark.parametrize("parts", [2, 3, 4, 20])
def test_few_parts_stand_side_by_side_and_many_below_each_other(
    parts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"mse": Figure(2.0, 1.0, 3.0, 9), "r2": Figure(0.5, 0.4, 0.6, 9)}
    found = {f"p{number}": figures for number in range(parts)}
    print_parts([_across("kind", found)])
    lines = words(capsys.readouterr().out)
    assert lines[0] == "by kind"
    if parts < 4:
        assert lines[1].replace(" 95%", "").removesuffix(" interval") == " ".join(
            ["metric", *found]
        )
        assert lines[3] == " ".join(["n", *["9"] * parts])
    else:
        assert lines[1] == "kind n mse 95% r2 95%"
        assert lines[3 : 3 + parts] == [
            f"{part} 9 2.0 1.0 to 3.0 0.50 0.40 to 0.60" for part in found
        ]


@pytest.mark.parametrize(
    ("baseline", "told"),
    [
        (Figure(0.999, 0.997, 1.0, 1000), "-"),  # one error in a thousand: none in some resamples
        (Figure(1.0, 1.0, 1.0, 1000), "-"),
        (Figure(0.99, 0.983, 0.996, 1000), "-49"),
        (None, "-"),
    ],
)
def test_a_baseline_that_may_be_perfect_gives_no_skill(baseline: Figure | None, told: str) -> None:
    assert skill("accuracy", 0.5, baseline) == told


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_number_of_a_report_or_comparison_is_folded(
    numtok: Shell, xval: Artifact, fp15: Artifact, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    report = msgspec.json.decode((fp15.path / REPORT_FILE).read_bytes(), type=Report)
    for arguments in (["report", fp15.ref], ["compare", fp15.ref, xval.ref]):
        out = numtok(*arguments).out
        assert max(map(len, out.splitlines())) <= columns
        if arguments[0] == "report":
            for name, measured in report.metrics.items():
                _, (cell,), _ = metric_cells(name, [measured])
                assert cell.value in out and cell.between in out
        else:
            assert out.startswith("r2: split test, ") and "xval" in out.splitlines()[3]


@pytest.mark.parametrize("table", ["xval/table2", "xval/table3"])
def test_tables_fit_80_columns(numtok: Shell, fp15: Artifact, table: str) -> None:
    column = ("--column", "3 digits") if table == "xval/table2" else ()
    code, out, _ = numtok("report", fp15.ref, "--against", table, *column)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80


def test_json_is_the_whole_report(numtok: Shell, xval: Artifact) -> None:
    found = json.loads(numtok("report", xval.ref, "--json")[1])
    assert (found["schema"], found["ref"]) == (1, xval.ref)
    assert found["report"] == json.loads((xval.path / REPORT_FILE).read_bytes())
    assert found["timing"] == {"train_seconds": 100.0, "eval_seconds": 2.0}
    assert "published" not in found
    found = json.loads(numtok("report", xval.ref, "--json", "--against", "xval/table3")[1])
    cell = found["published"]["cells"][0]
    assert (cell["column"], cell["where"], cell["cell"]["value"]) == (
        "2 operands",
        "operands=2",
        "0.99998",
    )


def test_csv_has_one_row_a_figure(numtok: Shell, fp15: Artifact) -> None:
    out = numtok("report", fp15.ref, "--format", "csv", "--against", "xval/table3")[1]
    rows = {
        (row["part"], row["value"], row["metric"]): row for row in csv.DictReader(io.StringIO(out))
    }
    assert rows["all", "", "mse"]["n"] == "200"
    assert rows["valid", "", "mse"]["n"] == "197"
    assert rows["group operands", "2", "r2"]["n"] == "67"
    assert rows["baseline", "mean", "mae"]["low"]
    assert rows["all", "", "invalid"]["figure"] == "0.015"
    assert rows["cost", "", "train-seconds"]["figure"] == "100.0"
    assert rows["printed in xval/table3", "4 operands", "r2"]["figure"] == "0.935"


def test_markdown_has_whole_tables(numtok: Shell, xval: Artifact) -> None:
    out = numtok("report", xval.ref, "--format", "md")[1]
    assert "\nby operands\n\n| metric | 2 | 3 | 4 |\n| --- | --- | --- | --- |\n" in out


def test_markdown_has_the_notes_of_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts([Sheet("kinds", ["kind"], [["a"]], note="one\ntwo"), ["three"]], Format.MD)
    assert capsys.readouterr().out.endswith("| a |\n\none\ntwo\n\nthree\n")


# --- published numbers -------------------------------------------------------------------------


def test_published_numbers_stand_beside_the_groups_they_are_of(
    numtok: Shell, xval: Artifact
) -> None:
    lines = words(numtok("report", xval.ref, "--against", "xval/table3")[1])
    start = lines.index("next to xval/table3: xVal (Golkar et al. 2023), Table 3")
    assert [lines[start + 3 + index].split()[-1] for index in range(3)] == [
        "0.99998",
        "0.99994",
        "0.99998",
    ]
    assert lines[start + 3].startswith("2 operands r2 0.999")
    assert "Differs: objective is ar for xval, but mlm:targets in the paper." in lines
    assert "Doubt: The table has no row for B1999." in lines
    assert "Measured over all numbers of the report." not in lines


def test_a_row_and_a_column_can_be_named(numtok: Shell, xval: Artifact, fp15: Artifact) -> None:
    _, out, _ = numtok(
        *("report", xval.ref, "--against", "xval/table5", "--row", "p10"),
        *("--column", "a_1 (OoD)"),
    )
    lines = words(out)
    assert any(
        line.startswith("a_1 (OoD) mse ") and line.endswith("0.0076 (1% invalid)") for line in lines
    )
    assert "Measured over all numbers of the report." in lines
    lines = words(numtok("report", fp15.ref, "--against", "xval/table5", "--column", "Δt")[1])
    assert any(line.endswith(" 0.0065 †") for line in lines)
    assert "† Δt: some outliers that were mistaken for another value." in lines


def test_a_printed_deviation_stands_behind_its_value(numtok: Shell, xval: Artifact) -> None:
    table = "--against", "decoding-regression/table3"
    _, out, _ = numtok("report", xval.ref, *table, "--row", "bike", "--column", "ND")
    lines = words(out)
    assert "ND token-nll - 0.10 ± 0.01" in lines
    assert any(
        line.startswith("Doubt: UD and ND agree with mean cross-entropies") for line in lines
    )
    _, out, _ = numtok("report", xval.ref, *table, "--column", "MDN")
    assert "MDN range-nll - -" in words(out)  # a scheme is not a data set


@pytest.mark.parametrize(
    ("table", "column", "measured", "printed"),
    [
        ("xval/table1", "tokens per number", "3", "1"),
        ("xval/table1", "vocabulary", "-", "1"),
        ("xval/table4", "equal samples: hours", "0.02778", "9"),
        ("xval/table2", "3 digits", "1.00", "0.9986"),
    ],
)
def test_other_quantities_than_metrics_stand_beside(
    numtok: Shell, xval: Artifact, table: str, column: str, measured: str, printed: str
) -> None:
    lines = words(numtok("report", xval.ref, "--against", table, "--column", column)[1])
    row = [line for line in lines if line.startswith(f"{column} ")][-1]
    assert row.endswith(f" {printed}")
    if table != "xval/table2":
        assert f" {measured} {printed}" in row


def test_what_cannot_be_put_beside_is_a_usage_error(
    numtok: Shell, xval: Artifact, says: Says
) -> None:
    table = "--against xval/table3"
    for words, *told in (
        ("--row p10", "--row and --column", "--against"),
        ("--against xval/table5", "--against xval/table5", "--column: a_1, a_1 (OoD), e_1, "),
        (f"{table} --column '2 operand'", "'2 operand'. Did you mean '2 operands'? Known: 2 op"),
        (f"{table} --row b1999", "row 'b1999'. Known: fp15, p10, p1000, xval", "Table 3"),
        (f"{table}3", "'xval/table33'. Did you mean 'xval/table3'?"),
    ):
        with case(words):
            code, out, err = numtok("report", xval.ref, *shlex.split(words))
            assert (code, out, err.count("\n")) == (2, "", 1)
            says(err, "numtok: ", *told)


def test_another_kind_of_artifact_is_refused(numtok: Shell, tmp_path: Path, says: Says) -> None:
    with Store(tmp_path / "artifacts").draft("data", "toy", {}, [], ["x"]) as draft:
        assert not isinstance(draft, Artifact)
        draft.publish({}, {})
    code, out, err = numtok("report", "toy")
    assert (code, out) == (2, "")
    says(err, "numtok: expected a report, but 'toy' is unencoded data")


# --- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.99998, "1 - 2e-5"),
        (0.99994, "0.9999"),
        (0.9999999988, "1 - 1.2e-9"),
        (0.6071, "0.6071"),
        (-3.21, "-3.21"),
        (0.0, "0"),
        (1.0, "1"),
        (12345.6, "12,350"),
        (999_996.0, "1e6"),
        (0.00099, "9.9e-4"),
        (1.2e-5, "1.2e-5"),
        (-1e300, "-1e300"),
        (None, "-"),
    ],
)
def test_a_number_is_short_and_near_1_long_enough(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.99912, 0.99893, 0.99931, "0.99912 [0.99893, 0.99931]"),
        (0.99998, 0.99997, 0.99999, "0.999980 [0.999970, 0.999990]"),
        (-3.2, -10, 0.5, "-3.2 [-10.0, 0.5]"),
        (-0.404, -4.1, 1.2, "-0.4 [-4.1, 1.2]"),
        (12080, 7239, 18622, "12,100 [7,200, 18,600]"),
        (0.0317, -2.4, 2.5, "0.032 [-2.4, 2.5]"),
        (0.315, -24, 0.4, "0.32 [-24, 0.40]"),
        (-0.2, -0.21, 30, "-0.20 [-0.21, 30]"),
        (0.0, -24, 0.4, "0 [-24, 0]"),
        (123.4, 100, 150, "123 [100, 150]"),
        (-0.00001, -0.001, 0.001, "-1e-5 [-0.0010, 0.0010]"),
        (-1e8, -3e8, -2e7, "-1e8 [-3e8, -2e7]"),
        (2e-5, 1e-5, 3.2e-5, "2e-5 [1e-5, 3.2e-5]"),
        (0.3, 0.3, 0.3, "0.3"),
        (0.04, 0.04, 0.04 + 1e-17, "0.04"),
        (0.5, None, None, "0.5"),
        (0.0, 0.0, 0.0, "0"),
    ],
)
def test_an_interval_has_the_digits_it_leaves_certain(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert interval(value, low, high) == text


@given(st.lists(st.floats(-1e12, 1e12), min_size=3, max_size=3).map(sorted))
def test_what_is_printed_is_within_a_third_of_the_width(ends: list[float]) -> None:
    low, value, high = ends
    text = interval(value, low, high)
    printed = float(text.value.replace(",", ""))
    assert abs(printed - value) <= max((high - low) / 3, 1e-3 * abs(value))
    if text.ends:
        assert printed != 0 or abs(value) <= 1e-12 * max(map(abs, ends))
        shown = [float(end.replace(",", "")) for end in text.ends]
        assert shown[0] <= printed <= shown[1]


def test_a_column_of_scores_is_shown_as_complements_if_one_saturates() -> None:
    assert metric_cells("r2", [0.95, 0.969]) == ("r2", ["0.95", "0.969"], [])
    heading, cells, baselines = metric_cells("r2", [0.999907, 0.969], [1.0, -0.5])
    assert (heading, cells, baselines) == ("1 - r2", ["9.3e-5", "0.031"], ["0", "1.5"])
    assert [cell.key for cell in cells] == [0.999907, 0.969], "sorted by the score itself"
    wide = Figure(0.9991, 0.9987, 0.9994, 500)
    assert metric_cells("r2", [wide])[1] == ["0.00090 [0.00060, 0.00130]"]


def test_fractions_are_percentages() -> None:
    exact = Figure(0.875, 0.8412, 0.9031, 500)
    assert metric_cells("exact-match", [exact, 0.5, None])[1] == ["87.5% [84.1, 90.3%]", "50%", "-"]


def test_costs_have_units() -> None:
    assert [amount(count) for count in (0, 999, 1000, 1_280_000, 2.5e9, 3e15)] == [
        *("0", "999", "1,000", "1.28M", "2.5G", "3e15"),
    ]
    assert [duration(seconds) for seconds in (None, 0.5, 90, 5400)] == [
        *("-", "0.5 s", "1.5 min", "1.5 h"),
    ]
    assert [share(part) for part in (None, 0.0123, 0.0)] == ["-", "1.23%", "0%"]
