"""CSV as people save it: other separators, other encodings."""

import pytest

from numtok.data.reading.first_bytes import MARK
from numtok.data.tables.file import CsvForm, csv_form, csv_strings, parsed
from numtok.errors import DataError
from tests.cases import case


def test_the_header_decides_the_separator_and_the_columns_the_decimal_mark() -> None:
    for text, form, columns in (
        ("a,b\n1,0.5\n", CsvForm(), {"a": [1], "b": [0.5]}),
        ("a;b\n0,25;1\n1,5;2\n", CsvForm(";", ","), {"a": [0.25, 1.5], "b": [1, 2]}),
        ("a;b\n2.100,25;1\n", CsvForm(";", ","), {"a": ["2.100,25"], "b": [1]}),
        ("a;b\n1,234;2\n", CsvForm(";", ","), {"a": [1.234], "b": [2]}),
        ("a;b\n0.25;1\n1.5;2\n", CsvForm(";", "."), {"a": [0.25, 1.5], "b": [1, 2]}),
        ("a;b\n3;red\n4;blue\n", CsvForm(";", "."), {"a": [3, 4], "b": ["red", "blue"]}),
        # 1.234 means 1234 if other columns have decimal commas, so it is not read as 1.234
        ("a;b\n0,5;1.234\n", CsvForm(";", ","), {"a": [0.5], "b": ["1.234"]}),
        ("a,b;c\n1,2\n", CsvForm(), {"a": [1], "b;c": [2]}),
        ("\na;b\n0,5;2\n", CsvForm(";", ","), {"a": [0.5], "b": [2]}),
        ('"a;b"\n1\n', CsvForm(";", "."), {"a;b": [1]}),
        ("a;b\n$5;1.500\n€7;2.250\n", CsvForm(";", "."), {"a": ["$5", "€7"], "b": [1.5, 2.25]}),
        ("a;b\n5 €;1\n7,50 €;2\n", CsvForm(";", ","), {"a": ["5 €", "7,50 €"], "b": [1, 2]}),
        ("a\tb\n0.25\tx, y\n", CsvForm("\t", "."), {"a": [0.25], "b": ["x, y"]}),
        ("a, b\tc\n1\t2\n", CsvForm("\t", "."), {"a, b": [1], "c": [2]}),
        ("\ta\n0\t0,5\n", CsvForm("\t", ","), {"": [0], "a": [0.5]}),
    ):
        marked = MARK + text.replace("\n", "\r\n").encode()
        for data in (text.encode(), marked, text.replace("\n", "\r").encode()):
            with case(data=data):
                assert csv_form(data) == form
                assert parsed("a.csv", data).to_pydict() == columns
    assert CsvForm().note is None
    assert "';'" in str(CsvForm(";", ",").note) and "by tabs" in str(CsvForm("\t").note)


def test_text_in_another_encoding_is_named_with_its_line() -> None:
    data = "a,b\n1,x\n2,Köln\n".encode("cp1252")
    with pytest.raises(DataError, match=r"a\.csv:3: not UTF-8"):
        csv_strings("a.csv", data, skip=True)


def test_utf_16_is_named() -> None:
    for encoding in ("utf-16", "utf-16-le"):
        with case(encoding=encoding), pytest.raises(DataError, match=r"a\.csv is UTF-16"):
            parsed("a.csv", "a,b\n1,2\n".encode(encoding))


def test_lines_of_rows_that_are_skipped_and_kept() -> None:
    text = 'a,b\n1,"x\ny"\n\n2\n3,"5"" tall",5\n6,7" wide\n8,9\n'
    for newline in ("\n", "\r\n", "\r"):
        with case(newline):
            rows = csv_strings("a.csv", text.replace("\n", newline).encode(), skip=True)
            assert rows.table["a"].to_pylist() == ["1", "6", "8"]
            assert [rows.line(row) for row in range(3)] == [2, 7, 8]
            assert list(rows.problems()) == [
                (5, "the row has 1 cell, but the header has 2"),
                (6, "the row has 3 cells, but the header has 2"),
            ]


def test_a_row_that_a_carriage_return_breaks_is_not_skipped() -> None:
    with pytest.raises(DataError, match=r"a\.csv:3: .*carriage return"):
        csv_strings("a.csv", b"a,b\n1,2\n3,x\ry\n", skip=True)
