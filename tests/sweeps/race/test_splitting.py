"""Splitting rows for a race by time, by cluster, or by a hash."""

import json
from pathlib import Path
from typing import Any

import pytest

from numtok.data.tables.table import read_table_of
from numtok.errors import UsageError
from numtok.stages import encode, table
from numtok.store.store import Store
from numtok.sweeps.race.race import Config, RaceResult, run
from numtok.sweeps.race.splitting import by_time
from tests.cases import each


def entered(folder: Path, path: str, **more: Any) -> RaceResult:
    """Return the result of a dry run, which prepares data but trains nothing."""
    store = Store(folder / "artifacts")
    return run(Config((path,), dry_run=True, **more), store, lambda _: None, lambda _: None)


def rows(folder: Path, **fields: Any) -> str:
    path = folder / "rows.jsonl"
    lines = [
        {"text": f"it is {k}.5 now", **{name: of(k) for name, of in fields.items()}}
        for k in range(200)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return str(path)


@each(
    ("name", "times", "expected"),
    [
        (
            "day",
            {f"2020-01-{k:02d}": 1 for k in range(1, 21)},
            ("2020-01-14", "2020-01-17", "2020-01-18"),
        ),
        ("t", {str(k): 1 for k in range(20)}, ("13", "16", "17")),  # sorted as numbers, not text
        # No value is left for calibration between validation and test.
        ("t", {**{str(k): 1 for k in range(20)}, "14": 6}, ("15", "", "17")),
        ("t", {str(k): 1 for k in range(9)}, "'t' has only 9 different values"),
        ("t", {"0": 1}, "'t' has only 1 different value "),
        ("t", {f"{k} o'clock": 1 for k in range(20)}, "'t' has the value \"0 o'clock\""),
        ("t", {**{str(k): 1 for k in range(20)}, "19": 1000}, "'t' has too many rows"),
        ("a,b", {str(k): 1 for k in range(20)}, "'a,b' cannot be written"),
    ],
)
def test_splits_begin_where_times_say(
    name: str, times: dict[str, int], expected: tuple[str, str, str] | str
) -> None:
    """Rows are split at these values of the field, or the reason against it is given."""
    split = by_time(name, times)
    if isinstance(expected, str):
        assert split.rule is None and split.refusals[0].startswith(expected)
    else:
        names = ("validation", "calibration", "test")
        starts = [f"{each}={start}" for each, start in zip(names, expected, strict=True) if start]
        assert split == (",".join([f"by={name}", *starts]), ())


def test_rows_with_a_time_are_split_by_it(tmp_path: Path) -> None:
    path = rows(tmp_path, group=lambda k: {"year": 1900 + k // 2, "kind": "a"})
    result = entered(tmp_path, path)
    assert result.rows == (130, 24, 30)
    assert any(
        "by=year,validation=1965,calibration=1977,test=1985" in note for note in result.notes
    )


def test_encode_splits_by_a_group_and_a_table_by_a_column(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    path = rows(tmp_path, group=lambda k: {"year": 1900 + k} if k else {})
    split = "by=year,validation=1950,test=2050"
    made = encode.run(encode.Config((path,), scheme="xval", split=split), store, lambda *_: None)
    assert made.artifact is not None
    counts = made.artifact.manifest.counts
    assert [counts[f"rows_{name}"] for name in ("train", "validation", "test")] == [50, 100, 50]
    csv = tmp_path / "table.csv"
    csv.write_text("year,y\n" + "".join(f"{1900 + k},{k % 9}\n" for k in range(200)))
    found = table.run(table.Config(str(csv), target="y", split=split), store).artifact
    assert len(read_table_of(found).split("test")) == 50
    with pytest.raises(UsageError, match=r"'yaer'\. Did you mean 'year'"):
        table.run(table.Config(str(csv), target="y", split="by=yaer,test=3"), store)


@pytest.mark.parametrize(
    ("years", "why"),
    [
        ([2000 + k // 40 for k in range(200)], "'Year' has only 5 different values"),
        ([*range(2000, 2060), *[2060] * 140], "'Year' has too many rows in its last values"),
        (["", *range(2000, 2199)], "'Year' is missing in 1 row"),
    ],
)
def test_why_a_table_is_not_split_by_time_is_noted(
    tmp_path: Path, years: list[Any], why: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("Year,y\n" + "".join(f"{year},{k % 9}\n" for k, year in enumerate(years)))
    notes = entered(tmp_path, str(path), target="y").notes
    assert any(note.startswith("Rows are not split by time: " + why) for note in notes)
    given = entered(tmp_path, str(path), target="y", split="validation=0.2,test=0.2")
    assert not any("by time" in note for note in given.notes)


def test_why_texts_are_not_split_by_time_is_noted(tmp_path: Path) -> None:
    path = rows(tmp_path, group=lambda k: {"Year": 2000 + k // 40, "kind": "a"})
    assert any("'Year' has only 5" in note for note in entered(tmp_path, path).notes)


def test_a_time_split_that_the_user_chose_has_no_note(tmp_path: Path) -> None:
    split = "by=year,validation=1970,test=1985"
    path = rows(tmp_path, group=lambda k: {"year": 1900 + k // 2})
    csv = tmp_path / "table.csv"
    csv.write_text("year,y\n" + "".join(f"{1900 + k // 2},{k % 9}\n" for k in range(200)))
    for result in (
        entered(tmp_path, path, split=split),
        entered(tmp_path, str(csv), target="y", split=split),
    ):
        assert result.rows == (140, 30, 30)
        assert not any("by time" in note for note in result.notes)


def test_rows_of_clusters_are_not_split_by_time(tmp_path: Path) -> None:
    path = rows(tmp_path, group=lambda k: {"year": 1900 + k}, cluster=lambda k: f"c{k // 4}")
    result = entered(tmp_path, path)
    assert not any("(--split by=" in note for note in result.notes)
    assert any("'year' may differ within a cluster" in note for note in result.notes)
    assert 160 < sum(result.rows) < 200 and all(count % 4 == 0 for count in result.rows)


@pytest.mark.parametrize("column", ["date", "when"])
def test_a_table_with_dates_is_split_by_them(tmp_path: Path, column: str) -> None:
    """Dates are recognized by their values, whatever the column's name."""
    path = tmp_path / "table.csv"
    lines = [f"2020-{1 + k // 20:02d}-{1 + k % 20:02d},{k},{k % 7}" for k in range(200)]
    path.write_text("\n".join([f"{column},x,y", *lines]) + "\n")
    result = entered(tmp_path, str(path), target="y")
    assert result.rows == (130, 24, 30)
    assert any(f"--split by={column}" in note for note in result.notes)
