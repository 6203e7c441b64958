"""Records of files in each format, and the kinds of their columns."""

import gzip
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.reading.split_rule import SplitRule
from numtok.data.records.columns import column_of
from numtok.data.records.dates import date_format, dates_of, iso_texts
from numtok.data.records.notation import notation_of, usual_notation
from numtok.data.records.reader import has_fields, read_records, records_of
from numtok.data.records.splits import in_order, splits_of
from numtok.data.records.template import proposals, template_of
from numtok.data.records.typed import date_parts, typed_columns
from numtok.errors import DataError, UsageError
from numtok.sweeps.race.splitting import split_of_records


@pytest.mark.parametrize(
    ("values", "decimal", "plain"),
    [
        (["1.50", "-2e3", " 7 "], ".", ["1.50", "-2e3", "7"]),
        (["1,234.50", "12,345", "9"], ".", ["1234.50", "12345", "9"]),
        (["$1,200", "$3.50", None], ".", ["1200", "3.50", None]),
        (["12 €", "1,000 €"], ".", ["12", "1000"]),
        (["12 345.6", "7"], ".", ["12345.6", "7"]),
        (["0,5", "-3"], ",", ["0.5", "-3"]),
        (["1.234,5", "2"], ",", ["1234.5", "2"]),
        (["-$5", "$ -7", "8", "+9 $"], ".", ["-5", "-7", "8", "+9"]),
        (["1.234,50 €", "€7", "-8,5\xa0€", "9"], ",", ["1234.50", "7", "-8.5", "9"]),
    ],
)
def test_numbers_of_a_column_keep_their_digits(
    values: list[str], decimal: str, plain: list[str]
) -> None:
    column = pa.array(values)
    notation = notation_of(column, decimal)
    assert notation is not None and notation.plain(column).to_pylist() == plain


def test_integers_in_a_file_with_decimal_commas_have_the_default_notation() -> None:
    whole, grouped = (
        notation_of(pa.array(values), ",") for values in (["3", "12"], ["3", "1.200"])
    )
    assert whole is not None and not whole.description
    assert grouped is not None and grouped.plain(pa.array(["1.200"])).to_pylist() == ["1200"]


def test_a_notation_must_read_every_value_unless_most_count() -> None:
    column = pa.array(["1,234", "5", "n.a."])
    assert notation_of(column) is None
    usual = usual_notation(column)
    assert usual is not None and usual.plain(column).to_pylist() == ["1234", "5", None]
    assert usual_notation(pa.array(["a", "b"])) is None
    assert notation_of(pa.array([None, None], pa.string())) is None


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", ["1", "2.5", None], "number"),
        ("id", [str(row) for row in range(50)], "id"),
        ("sku", [f"AB-{row:05d}" for row in range(50)], "id"),
        ("smiles", ["C" * row + "O" for row in range(1, 121)], "text"),
        ("note", [f"the {row}th visit was short" for row in range(50)], "text"),
        ("color", ["red", "blue"] * 20, "category"),
        ("sold", ["2024-01-31", "2023-12-01"], "date"),
        ("sold", ["Jun 12 1998", "Aug 07 1998", None], "date"),
        ("sold", ["31/12/2020", "01/02/2021"], "date"),
        ("sold", ["2013-02-28T22:11:09Z", None], "date"),
        ("sold", ["Thu Feb 28 22:11:09 +0000 2013"], "date"),
        ("same", ["a", "a", "a"], "constant"),
        ("none", [None, None], "empty"),
        ("flag", ["true", "false", "true"], "category"),
    ],
)
def test_kinds_of_columns(name: str, values: list[str], kind: str) -> None:
    assert column_of(name, pa.array(values, pa.string())).kind == kind


@pytest.mark.parametrize(
    ("values", "numbered", "rounded"),
    [
        ([f"{307_000_000_000_000_001 + 7**5 * row}" for row in range(50)], True, True),
        ([f"{4_917_000_000 + 7919 * row}" for row in range(50)], True, False),
        ([f"{row}" for row in range(1, 51)], True, False),
        ([f"{row}" for row in range(700, 1100)], True, False),
        ([f"{year}" for year in range(1950, 2020)], False, False),
        ([f"{5 * row**3}" for row in range(50)], False, False),
        (["307000000000000001", "307000000000000002"] * 20, False, True),
        ([f"{row}.5" for row in range(50)], False, False),
        (["9007199254740992", "18014398509481984"] * 20, False, False),
    ],
)
def test_integers_that_may_name_rows(values: list[str], numbered: bool, rounded: bool) -> None:
    column = column_of("n", pa.array(values))
    assert (column.numbered, column.rounded) == (numbered, rounded)
    assert column.kind == ("id" if numbered and rounded else "number")


def test_integers_that_may_name_rows_are_proposed_for_removal(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"{307_000_000_000_000_001 + row},{row + 1},{row**2},{row}" for row in range(50)]
    path.write_text("\n".join(["code,n,square,y", *rows]) + "\n")
    records = read_records(str(path))
    notes = proposals(list(records.columns.values()), template_of(records, ["y"]))
    assert [("--drop code" in note, "2^53" in note) for note in notes] == [
        (True, True),
        (False, False),
    ]
    assert "--drop n" in notes[1]
    assert not proposals(list(records.columns.values()), template_of(records, ["y"], ["square"]))


def test_json_records_keep_literals_and_flatten_objects(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    lines = [
        '{"a": 1.50, "specs": {"ram": 16, "tags": ["x", 2.0]}, "ok": true}',
        "",
        '{"a": 1e400, "late": "é", "ok": null}',
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    records = read_records(str(path))
    assert records.names == ["a", "specs.ram", "specs.tags", "ok", "late"]
    assert records.table.to_pylist() == [
        {"a": "1.50", "specs.ram": "16", "specs.tags": '["x", 2.0]', "ok": "true", "late": None},
        {"a": "1e400", "specs.ram": None, "specs.tags": None, "ok": None, "late": "é"},
    ]
    assert records.where(1) == f"{path}:3"
    assert has_fields(str(path), ["late"]) and not has_fields(str(path), ["specs"])


def test_the_formats_agree(tmp_path: Path) -> None:
    columns = {"n": [1.5, 2.0, None], "word": ["a", None, "c, d"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text('n,word\n1.5,a\n2.0,\n,"c, d"\n')
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tables = [
        read_records(str(tmp_path / f"a.{end}")).table.to_pylist()
        for end in ("parquet", "csv", "jsonl")
    ]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0][1] == {"n": "2.0", "word": None}


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floats_have_the_digits_of_their_type(kind: str) -> None:
    values = np.array([0.13, -0.44, 3, np.nan, 1e-5], kind)
    column = pa.chunked_array([pa.array(values), pa.array([None], pa.from_numpy_dtype(kind))])
    strings = records_of(pa.table({"x": column}), "X").column("x").to_pylist()
    assert strings == ["0.13", "-0.44", "3.0", None, "1e-05", None]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": NaN}', ("a.jsonl:1", "NaN")),
        ('{"a": 1}\n[1]', ("a.jsonl:2", "object")),
        ('{"a": 1, "a": 2}', ("a.jsonl:1", "appears twice")),
        ('{"a": "\\ud800"}', ("a.jsonl:1", "surrogate")),
        ("\n", ("a.jsonl is empty",)),
    ],
)
def test_bad_json_is_refused_with_its_line(
    tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(DataError) as error:
        read_records(str(tmp_path / "a.jsonl"))
    assert all(word in str(error.value) for word in words)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name, word in (("a.xlsx", "unknown format"), ("gone.csv", "not found"), ("-", "standard")):
        with pytest.raises(UsageError, match=word):
            read_records(name if name == "-" else str(tmp_path / name))


def test_splits_by_a_date_follow_the_calendar(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_text("when,y\nDec 31 1998,1\nJan 02 1999,2\nFeb 01 2000,3\n")
    records = read_records(str(path))
    assert in_order(records, "when").to_pylist() == ["1998-12-31", "1999-01-02", "2000-02-01"]
    rule = SplitRule.parse("by=when,validation=1999-01-01,test=2000-01-01")
    assert splits_of(records, rule) == ["train", "validation", "test"]
    with pytest.raises(UsageError, match=r"wehn.*when"):
        splits_of(records, SplitRule.parse("by=wehn,test=1"))


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("%d/%m/%Y %H:%M", "05/06/2021"),
        ("%m/%d/%Y %I:%M %p", "06/05/2021"),
        ("%d/%m/%y %H:%M", "05/06/2021"),
        ("%d.%m.%Y", "2021-06-05"),
    ],
)
def test_the_first_day_of_a_split_is_read_as_the_column(
    tmp_path: Path, form: str, start: str
) -> None:
    days = [datetime(2021, 5, 25), datetime(2021, 6, 4), datetime(2021, 6, 5)]
    path = tmp_path / "days.csv"
    path.write_text("when\n" + "".join(f"{day.strftime(form)}\n" for day in days))
    rule = SplitRule.parse(f"by=when,test={start}")
    assert splits_of(read_records(str(path)), rule) == ["train", "train", "test"]


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("2013-02-28T22:11:09Z", "2013-02-28T22:11:09"),
        ("2013-02-28 22:11:09+00:00", "2013-02-28T22:11:09"),
        ("2013-02-28T22:11:09-0330", "2013-03-01T01:41:09"),
        ("2013-02-28T22:11Z", "2013-02-28T22:11:00"),
        ("2013-02-28 22:11:09 UTC", "2013-02-28T22:11:09"),
        ("2013-02-28 22:11:09.123", "2013-02-28T22:11:09.123000"),
        ("2013-02-28T22:11:09.123456789z", "2013-02-28T22:11:09.123456"),
        ("Fri Mar 01 00:11:09 +0200 2013", "2013-02-28T22:11:09"),
        ("28.02.2013 22:11", "2013-02-28T22:11:00"),
    ],
)
def test_timestamps_are_read_in_utc(written: str, utc: str) -> None:
    values = pa.array([written, None])
    form = date_format(values)
    assert form is not None
    assert iso_texts(dates_of(values, form)).to_pylist() == [utc, None]


@pytest.mark.parametrize("value", ["2013-02-30T22:11Z", "2013-02-28T25:00Z", "at 2013-02-28", "1"])
def test_invalid_timestamps_are_not_dates(value: str) -> None:
    assert date_format(pa.array(["2013-02-28", value])) is None


def test_years_of_two_digits_are_those_of_1969_to_2068() -> None:
    for form, days in (
        ("%m/%d/%y", ["5/25/79", "1/2/03", "12/31/68"]),
        ("%d.%m.%y", ["25.5.79", "2.1.03", "31.12.68"]),
    ):
        column = pa.array(days)
        assert date_format(column) == form
        assert iso_texts(dates_of(column, form)).to_pylist() == [
            "1979-05-25", "2003-01-02", "2068-12-31",
        ]  # fmt: skip


def test_rows_with_time_zones_are_split_in_time_order(tmp_path: Path) -> None:
    path = tmp_path / "tweets.csv"
    path.write_text(
        "at,y\n2013-03-01T00:30:00+02:00,1\n2013-02-28T22:45:00Z,2\n2013-02-28T19:00:00-04:00,3\n"
    )
    records = read_records(str(path))
    rule = SplitRule.parse("by=at,validation=2013-03-01T00:45:00+02:00,test=2013-02-28 22:50:00Z")
    assert splits_of(records, rule) == ["train", "validation", "test"]
    table = typed_columns(str(path), path.read_bytes(), skip=False).table
    days = date_parts(table["at"].combine_chunks())["days"]
    assert np.diff(days.to_numpy() * 24 * 60) == pytest.approx([15.0, 15.0], abs=1e-4)


def test_a_race_splits_rows_with_time_zones_by_time(tmp_path: Path) -> None:
    path = tmp_path / "tweets.csv"
    path.write_text("at,y\n" + "".join(f"2013-02-{d:02d}T22:11:09Z,{d}\n" for d in range(1, 29)))
    rule = split_of_records(read_records(str(path)), "y").rule
    assert rule is not None and rule.startswith("by=at,")


def test_own_splits_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("split,y\ntest,1\n,2\n")
    assert splits_of(read_records(str(path)), None) == ["test", "train"]
    path.write_text("split,y\ntest,1\nMy test,2\n")
    with pytest.raises(DataError, match=r"rows\.csv:3: .*My test.*--drop split"):
        splits_of(read_records(str(path)), None)


def test_dates_become_numbers(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text('sold,price\n31.12.2020,"9,475"\n01.01.2021,12\n')
    typed = typed_columns(str(path), path.read_bytes(), skip=False)
    table = typed.table
    assert table["price"].to_pylist() == [9475.0, 12.0]
    assert len(typed.notes) == 2 and typed.date_formats == {"sold": "%d.%m.%Y"}
    parts = date_parts(table["sold"].combine_chunks())
    assert {name: values.to_pylist() for name, values in parts.items()} == {
        "year": [2020.0, 2021.0],
        "day of year": [366.0, 1.0],
        "weekday": [3.0, 4.0],
        "days": [18627.0, 18628.0],
    }


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_days_include_fractions_of_seconds(unit: str) -> None:
    dates = pa.array([datetime(2021, 1, 1, 12, 0, 0, 500_000), None], pa.timestamp(unit))
    assert date_parts(dates)["days"].to_pylist() == [18628.5 + 0.5 / 86_400, None]
    if unit != "ns":  # nanoseconds end in 2262
        far = pa.array([datetime(2400, 1, 1, 6)], pa.timestamp(unit))
        assert date_parts(far)["days"].to_pylist() == [157054.25]


def test_kinds_are_those_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('x,y\n"1,200",1\n7,2\n8,\n')
    records = read_records(str(path))
    some = records.take(pa.array([False, True, True])).take(pa.array([True, False]))
    assert some.columns == records.columns
    assert some.columns["y"].missing == 1 and some.plain("x").to_pylist() == ["7"]


@pytest.mark.parametrize(
    "header", ["a,b", '"a",b', "\ufeffa,b", "\n\na,b", '"a\n1",b', " a,b", "NA,b"]
)
def test_columns_of_a_csv_are_strings_with_any_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n007,1.50\n,true\n", encoding="utf-8")
    records = read_records(str(path))
    assert records.column(records.names[0]).to_pylist() == ["007", None]
    assert records.column("b").to_pylist() == ["1.50", "true"]
