"""Verdicts on printed orderings and statements, from measurements in files."""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from docs.site.results import fidelity
from numtok.errors import DataError
from numtok.evaluation.fidelity.counts import read_fidelity
from numtok.evaluation.fidelity.measured import (
    COLUMNS,
    MeasuredLine,
    Pooled,
    by_cell,
    pool,
    read_measurements,
)
from numtok.evaluation.fidelity.orderings import printed_orderings
from numtok.evaluation.fidelity.verdicts import Judgment, OrderingVerdict, judge, tie_limits, welch
from numtok.evaluation.published import names, published
from tests.shell import Shell

ROOT = Path(__file__).resolve().parents[2]


def line(row: str, value: float, sd: float = 0.01, **other: Any) -> MeasuredLine:
    place = {"table": "xval/table3", "column": "2 operands", "setting": "paper", "source": "test"}
    numbers: dict[str, Any] = {"value": value, "sd": sd, "n": 3, "examples": 100}
    return MeasuredLine(row=row, **{**place, **numbers, **other})


def judged(*lines: MeasuredLine, column: str = "2 operands") -> Judgment:
    """Return the judgment on xval > p10 in Table 3 of xVal."""
    [pair] = [
        pair
        for pair in printed_orderings("xval/table3")
        if (pair.higher.row, pair.lower.row, pair.higher.column) == ("xval", "p10", column)
    ]
    return judge(pair, by_cell(lines))


@pytest.mark.parametrize(
    ("xval", "p10", "verdict"),
    [
        ({"value": 0.99}, {"value": 0.9}, OrderingVerdict.REPRODUCED),
        ({"value": 0.8}, {"value": 0.9}, OrderingVerdict.CONTRADICTED),
        ({"value": 0.9001, "sd": 1e-4}, {"value": 0.9, "sd": 1e-3}, OrderingVerdict.TIE),
        ({"value": 0.95, "sd": 0.2}, {"value": 0.9}, OrderingVerdict.UNDECIDED),
        ({"value": 0.99, "n": 1, "sd": 0}, {"value": 0.9}, OrderingVerdict.ONE_SEED),
        (
            {"value": 0.99, "setting": "ar"},
            {"value": 0.9, "setting": "ar"},
            OrderingVerdict.OTHER_SETTING,
        ),
        ({"value": 0.99, "setting": "ar"}, {"value": 0.9}, OrderingVerdict.NOT_RUN),
        ({"value": 0.99, "examples": 50}, {"value": 0.9}, OrderingVerdict.NOT_RUN),
    ],
)
def test_verdicts(xval: dict[str, Any], p10: dict[str, Any], verdict: OrderingVerdict) -> None:
    assert judged(line("xval", **xval), line("p10", **p10)).verdict is verdict


def test_the_budget_with_most_seeds_counts_then_the_largest() -> None:
    lines = [line("xval", 0.99, examples=100), line("p10", 0.9, examples=100)]
    lines += [line("xval", 0.7, examples=200), line("p10", 0.9, examples=200)]
    assert judged(*lines).examples == 200
    lines += [line("xval", 0.99, sd=0, n=1, examples=100), line("p10", 0.9, n=4, examples=100)]
    most = judged(*lines)
    assert (most.examples, most.seeds, most.verdict) == (100, 4, OrderingVerdict.REPRODUCED)
    other = [line("xval", 0.1, n=9, setting="ar"), line("p10", 0.9, n=9, setting="ar")]
    assert judged(*lines, *other).verdict is OrderingVerdict.REPRODUCED, (
        "the paper's setting counts"
    )


def test_a_budget_may_end_with_a_smaller_batch() -> None:
    lines = [line("xval", 0.99, n=2, examples=479_104), line("xval", 0.99, n=1, examples=480_000)]
    found = judged(*lines, line("p10", 0.9, examples=480_000))
    assert (found.seeds, found.verdict) == (3, OrderingVerdict.REPRODUCED)


def test_pooled_lines_are_those_of_all_seeds() -> None:
    values = np.random.default_rng(0).normal(size=7)
    parts = [values[:3], values[3:6], values[6:]]
    lines = [
        line(
            "p10", float(part.mean()), float(part.std(ddof=1)) if len(part) > 1 else 0, n=len(part)
        )
        for part in parts
    ]
    pooled = pool(lines)
    assert pooled.n == 7
    assert pooled.mean == pytest.approx(values.mean()) and pooled.sd == pytest.approx(
        values.std(ddof=1)
    )
    single = pool([line("p10", 10.0, 0, n=1), line("p10", 1000.0, 0, n=1)], logarithmic=True)
    assert single.mean == pytest.approx(2) and single.sd == pytest.approx(math.sqrt(2))


def test_intervals_are_welchs() -> None:
    first, second = np.random.default_rng(1).normal([[1.0], [0.5]], [[1.0], [0.3]], (2, 5))
    difference, half = welch(
        *(Pooled(len(x), float(x.mean()), float(x.std(ddof=1))) for x in (first, second))
    )
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert half is not None
    assert [difference - half, difference + half] == pytest.approx([expected.low, expected.high])


def test_every_metric_of_a_published_table_has_a_tie_limit() -> None:
    used = {column.metric for name in names() for column in published(name).columns}
    assert used <= set(tie_limits())


def test_heads_are_compared_within_a_data_set_and_schemes_within_a_column() -> None:
    pairs = printed_orderings("decoding-regression/table3")
    assert all(pair.higher.row == pair.lower.row for pair in pairs)
    assert "MDN" not in {pair.higher.column for pair in pairs}, "its metric is another one"
    assert all(pair.higher.column == pair.lower.column for pair in printed_orderings("xval/table5"))
    logs = {pair.higher.column for pair in printed_orderings("xval/table5") if pair.logarithmic}
    assert "a_1" in logs


def written(folder: Path, lines: Sequence[Sequence[object]], claims: str = "claims = []\n") -> Path:
    (folder / "papers").mkdir()
    with (folder / "papers/xval.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *lines])
    (folder / "claims.toml").write_text(claims)
    return folder


GOOD = ("table3", "xval", "2 operands", "paper", 100, 3, 0.99, 0.01, "test")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: "table33"}, "table33"),
        ({1: "xvall"}, "xvall"),
        ({2: "9 operands"}, "9 operands"),
        ({5: 1}, "sd must be given exactly if n is above 1"),
        ({7: ""}, "sd must be given exactly if n is above 1"),
        ({6: "high"}, "xval.csv:2"),
        ({6: "nan"}, "finite"),
        ({3: ""}, "setting and source"),
    ],
)
def test_bad_measurements_name_file_and_line(
    tmp_path: Path, change: dict[int, object], words: str
) -> None:
    row = [change.get(index, value) for index, value in enumerate(GOOD)]
    with pytest.raises(DataError, match=words) as raised:
        read_measurements(written(tmp_path, [row]) / "papers")
    assert "xval.csv:2" in str(raised.value)


CLAIMS = """\
[[claims]]
paper = "xval"
where = "Table 3"
claim = "xVal is best."
why = "too few steps"
checks = [
    { table = "xval/table3", column = "2 operands", higher = "xval", lower = "p10" },
    { table = "xval/table3", column = "2 operands", higher = "xval", lower = "p1000" },
]

[[claims]]
paper = "xval"
where = "Section 5"
claim = "xVal is continuous."
verdict = "not run"
"""


def test_statements_are_as_good_as_their_worst_ordering(numtok: Shell) -> None:
    other = (*GOOD[:1], "p10", *GOOD[2:6], 0.5, *GOOD[7:])
    better = (*GOOD[:1], "p1000", *GOOD[2:6], 1.5, *GOOD[7:])
    Path("results").mkdir()
    folder = written(Path("results"), [GOOD, other, better], CLAIMS)
    fidelity = read_fidelity(folder)
    assert [claim.verdict for claim in fidelity.claims] == ["contradicted", "not run"]
    pairs = {(each.judgment.higher, each.judgment.lower) for each in fidelity.contradictions}
    assert pairs == {("xval", "p1000"), ("p10", "p1000")}
    causes = {each.judgment.higher: each.why for each in fidelity.contradictions}
    assert causes == {"xval": "too few steps", "p10": "open"}
    assert fidelity.total.printed == sum(len(printed_orderings(name)) for name in names())
    shown = numtok("fidelity", "results", "--json")
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["total"]["verdicts"]["contradicted"] == 2
    rows = list(csv.DictReader(io.StringIO(numtok("fidelity", "results", "--format", "csv").out)))
    assert len(rows) == fidelity.total.printed
    assert numtok("fidelity", "nowhere").code == 2


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ("[[claims]]\npaper = 'xval'\nwhere = ''\nclaim = 'A.'\n", "either checks or a verdict"),
        (
            "[[claims]]\npaper = 'xval'\nwhere = ''\nclaim = 'A.'\nverdict = 'reproduced'\n",
            "verdict",
        ),
        ("[[claims]\n", "claims.toml"),
    ],
)
def test_a_verdict_is_never_written_by_hand(tmp_path: Path, claims: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_fidelity(written(tmp_path, [GOOD], claims))


@pytest.mark.integration
def test_reports_are_added_once_to_the_measurements(numtok: Shell) -> None:
    run = (
        "gen arithmetic --rows 200 --operands 2 --split test=0.3 --name sums",
        "encode sums --scheme p1000 --name e",
        "train e --preset nano,layers=1,width=16,heads=2 --steps 2 --batch 8 --name m",
        "eval m --name r",
    )
    for words in run:
        assert (ran := numtok(*words.split())).code == 0, ran.err
    written(Path(), [GOOD])
    recording = ("compare", "r", "--against", "xval/table3", "--record", "papers")
    for _ in range(2):
        assert (ran := numtok(*recording)).code == 0, ran.err
        assert "values of xval/table3 in papers" in ran.out + ran.err
    [old, new] = sorted(read_measurements(Path("papers")), key=lambda line: line.row, reverse=True)
    assert (old.row, old.value, old.source) == ("xval", 0.99, "test")
    place = (new.row, new.column, new.setting, new.examples, new.n)
    assert place == ("p1000", "2 operands", "paper", 16, 1)
    assert new.source.startswith("r@")
    assert numtok("compare", "r", "--record", "papers").code == 2


def test_the_page_shows_the_stored_measurements(numtok: Shell) -> None:
    page = numtok("fidelity", str(ROOT / "docs/results"), "--format", "md")
    assert page.code == 0, page.err
    assert page.out.startswith("# Fidelity\n")
    assert fidelity().splitlines()[4:] == page.out.splitlines()[4:]
