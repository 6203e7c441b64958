"""Pages of ``compare``, ``sweep`` and ``profile``: what they contain, and how much."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from numtok.analysis.panels import fields
from numtok.analysis.picture import BarMarks, LineMark
from numtok.cli.output.comparison import baseline_name
from numtok.cli.output.pages.write import _cell, html, table_rows
from numtok.cli.output.printing import Format, Sheet
from numtok.cli.output.race import print_race
from numtok.stages.compare import Baseline
from numtok.store.store import Store
from tests.cases import case
from tests.fakepages import (
    EVIL,
    FAKES,
    SAMPLE,
    charts,
    compared,
    of_comparison,
    of_profile,
    of_race,
    of_report,
    of_sweep,
    parts,
    race_result,
    rows,
)
from tests.fakereports import Fake
from tests.shell import Shell


def test_a_comparison_has_the_rows_first_on_which_experiments_are_farthest_apart(
    tmp_path: Path,
) -> None:
    held = rows(of_comparison(tmp_path))
    assert len(held.rows) == 200
    assert list(held.columns) == ["field", "true", "closest", "farthest", "distance", "text"]
    far = [_cell(row.cells[-1]).key for row in held.rows]
    assert far == sorted(far, key=lambda one: -(one or 0))
    first = held.rows[0]
    assert [_cell(cell).text for cell in first.cells[-2:]] == ["none", "-"]
    assert "label:xval" in first.picks  # without a number, and so the farthest
    assert {key.partition(":")[0] for key in first.picks} >= {"field", "all-size", "label"}
    filters = dict(held.filters)
    assert {f"field:{EVIL}", "field:answer", "field:width", "all-size:0"} <= filters.keys()


def test_of_many_rows_a_part_is_held_and_that_is_said(tmp_path: Path) -> None:
    fakes = tuple(replace(fake, count=2500) for fake in FAKES[2:])
    held = rows(of_comparison(tmp_path, fakes))
    assert len(held.rows) == 2000
    assert held.text.startswith("2,000 of 2,500 rows: a quarter with the largest differences")


def test_a_comparison_has_every_kind_of_chart(tmp_path: Path) -> None:
    found = charts(of_comparison(tmp_path))
    costs = {"all-cost-train_seconds"}
    errors = {"all-size", "all-coverage", "all-fields"}
    assert {name for name in found if "metric" not in name} == costs | errors
    fields_chart = found["all-fields"].panel
    assert fields_chart.y.names == ("answer", EVIL, "width")
    marks = [mark for mark in fields_chart.marks if isinstance(mark, BarMarks)]
    assert [mark.label for mark in marks] == ["p1000", "xval", "fp15"]
    assert len({mark.places[0] for mark in marks}) == 3
    assert (np.abs([mark.places[0] for mark in marks]) < 0.5).all()
    sizes = [mark for mark in found["all-size"].panel.marks if isinstance(mark, LineMark)]
    assert {mark.picks[0] for mark in sizes} == {"all-size:0"}


def test_the_leaderboard_has_the_best_first_and_marks_it(tmp_path: Path) -> None:
    sheets = [part for part in parts(of_comparison(tmp_path)) if isinstance(part, Sheet)]
    board, costs = sheets[0], next(one for one in sheets if one.title.startswith("costs"))
    assert board.picks == costs.picks == ["label:xval", "label:p1000", "label:fp15"]
    first, second, *_, heading, limit = table_rows(board)[:7]
    assert [one.cells[0].text for one in (first, second)] == ["xval", "p1000 (2 seeds)"]
    assert 1 in first.best and 1 not in second.best
    assert first.cells[1].aside.startswith("[")
    assert heading.heading and not limit.heading
    assert limit.cells[0].text.strip() == "quantization (p1000)"
    assert not limit.best and not limit.pick


def test_the_name_of_a_baseline_stays_short() -> None:
    few, many = ([f"xval, head=mdn:{k}" for k in range(count)] for count in (2, 9))
    names = [baseline_name(Baseline("quantization", schemes, {})) for schemes in ([], few, many)]
    assert names[:2] == ["quantization", f"quantization ({few[0]}, {few[1]})"]
    assert names[2] == f"quantization ({many[0]}, {many[1]} and 7 others)"


def test_a_sweep_of_many_test_sets_has_tables_of_all_and_charts_of_some(tmp_path: Path) -> None:
    page = of_sweep(tmp_path, 8)
    boards = [
        one for one in parts(page)
        if isinstance(one, Sheet) and one.title.startswith("split test")
    ]  # fmt: skip
    assert len(boards) == 8
    assert {name.split("-")[1] for name in charts(page)} == set("012345")
    assert "first 6 of 8 test sets have charts and rows." in page.lead
    held = rows(page)
    assert held.columns[0] == "test set"
    assert {row.cells[0] for row in held.rows} == {f"set {k} {EVIL}" for k in range(6)}
    assert len(held.rows) <= 2000
    assert len({row.picks[1] for row in held.rows if "size" in row.picks[1]}) > 6  # per set


def test_a_race_says_what_was_chosen_why_and_what_was_not(tmp_path: Path) -> None:
    page = of_race(tmp_path)
    assert page.title.startswith("xval, chosen from 3 candidates for ")
    assert "less error than mean" in page.lead
    assert page.following is not None and page.following[1].startswith("numtok predict ")
    tables = {part.title: part for part in parts(page) if isinstance(part, Sheet)}
    board, costs, errors, rounds, fields, verdicts = tables.values()
    assert [row[0] for row in board.rows] == ["xval *", "p1000", "(mean)", "(median)"]
    assert [row[0] for row in costs.rows] == ["xval", "p1000"]
    assert list(errors.columns) == ["field", "xval *", "p1000", "(mean)"]
    assert {row[0] for row in errors.rows} == {"answer", EVIL, "width"}
    assert [row[0] for row in rounds.rows] == ["xval", "p1000", "fp15"]
    budget = "round 1: steps or epochs"
    assert list(rounds.columns) == ["candidate", budget, "round 1: skill", "rate"]
    assert [row[0] for row in fields.rows] == ["answer", EVIL, "width"]
    assert [row[0] for row in verdicts.rows] == ["p1000", "xval", "fp15", "nd", "p10"]
    assert [row[1] for row in verdicts.rows] == ["raced", "raced", "raced", "not started", "no"]
    assert {
        "bpe was ruled out: what it needs is not there",
        "There was no time for 1 candidate.",
    } <= {*page.notes}
    found = charts(page)
    assert set(found) == {"skill", "last-cost-train_seconds", "last-size", "last-coverage",
                          "last-fields"}  # fmt: skip
    assert dict(page.legend) == {"xval": 0, "p1000": 1, "fp15": 2}
    assert rows(page).rows


def test_budgets_of_heads_on_tables_are_epochs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = race_result(Store(tmp_path))
    assert result.planned is not None
    first, *others = result.planned.candidates
    mixed = [msgspec.structs.replace(first, unit="epochs"), *others]
    planned = msgspec.structs.replace(result.planned, candidates=mixed)
    print_race(msgspec.structs.replace(result, planned=planned), Format.CSV, quiet=False)
    found = [
        (row["label"] == first.label, row["metric"])
        for row in csv.DictReader(io.StringIO(capsys.readouterr().out))
        if row["kind"] == "round 1"
    ]
    assert (True, "epochs") in found and (False, "steps") in found
    assert (True, "steps") not in found and (False, "epochs") not in found


def test_a_profile_of_many_fields_and_schemes_is_a_small_page_and_says_what_it_leaves_out(
    tmp_path: Path,
) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "wide.jsonl"
    lines = [
        {f"field{k}": round(float(value), 3) for k, value in enumerate(row)}
        for row in random.normal(0, 100, (200, 30))
    ]
    path.write_text("".join(json.dumps({"text": json.dumps(line)}) + "\n" for line in lines))
    schemes = tuple(f"p1000,exponents=-{k}..{k}" for k in range(5, 8 + fields.SCHEMES))
    page = of_profile(tmp_path, path, schemes)
    written = html(page)
    assert len(written.encode()) < 3_000_000
    signs = re.findall(r'<path d="[^"]+" style="fill:var\(--c\d\)"/>', written)
    assert len(signs) == len(set(signs)) == fields.SCHEMES  # color and shape distinguish all
    drawn = [name for name in charts(page) if name.startswith("field-")]
    assert len(drawn) == fields.FIELDS
    values = page.sections[-1].text
    assert "8 of 30 fields are drawn" in values
    assert f"{fields.SCHEMES} of " in values and "are drawn" in values
    assert len(page.legend) == fields.SCHEMES


def test_a_profile_says_what_is_lost(tmp_path: Path) -> None:
    page = of_profile(tmp_path, schemes=("p10", "xval"))
    assert page.notes
    assert [name for name, _ in page.legend] == ["p10", "xval"]


def test_a_report_claims_that_rows_were_training_data_or_not_only_if_that_is_known(
    tmp_path: Path,
) -> None:
    own, other = "arithmetic-p1000@0123456789abcdef", "other@0123456789abcdef"
    fake = Fake(training_data=own)
    train = replace(fake, split="train")
    init = {"init.preset": "nano", "init.data": own}
    unknown = "200 rows. Intervals"
    for place, (case_of, lead) in enumerate(
        [
            (fake, "rows that it was not trained on."),
            (train, "rows of its training data."),
            (replace(fake, settings=init), "rows that it was not trained on."),
            (replace(fake, settings=init | {"init.data": other}), unknown),
            (replace(fake, settings=init | {"init.init.data": other}), unknown),
            (replace(train, settings=init | {"init.data": other}), "rows of its training data."),
            (replace(fake, settings={"preset": "hf:gpt2"}), unknown),
            (replace(fake, settings=init | {"init.preset": "hf:gpt2"}), unknown),
            (replace(fake, training_data=other), unknown),
            (replace(train, training_data=other), unknown),
            (replace(fake, training_data=None), unknown),
            (replace(train, training_data=None), unknown),
        ]
    ):
        with case(case_of):
            assert lead in of_report(tmp_path / str(place), case_of).lead


def test_each_command_writes_its_page_beside_what_it_prints(numtok: Shell, tmp_path: Path) -> None:
    refs = compared(Store(Path("artifacts")))
    for words in (
        ["report", refs[0]],
        ["compare", *refs],
        ["profile", str(SAMPLE), "--scheme", "p10"],
    ):
        with case(words):
            ran = numtok(*words, "--html", "page.html")
            assert (ran.code, ran.err.splitlines()[-1]) == (0, "numtok: page in page.html")
            assert ran.out
            page = Path("page.html").read_text()
            assert f"numtok {words[0]}</p>" in page
