"""The published tables: what their files may hold, and each value against the paper's text."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from numtok.errors import UsageError
from numtok.published import Table, names, published

PAPER = Path(__file__).parents[2] / "shared/papers/000_0e3e68c57ec0abb5.txt"
XVAL = [f"xval/table{number}" for number in (1, 2, 3, 4, 5)]
SCHEMES = {"p10", "p1000", "b1999", "fp15", "xval"}
QUANTITIES = {"adjusted-r2", "mse", "r2", "tokens-per-number", "train-hours", "vocabulary"}


def test_the_tables_of_the_xval_paper_are_there() -> None:
    assert set(XVAL) <= set(names())


@pytest.mark.parametrize("name", names())
def test_every_cell_stands_in_a_column_and_every_table_says_its_doubts(name: str) -> None:
    table = published(name)
    columns = [column.name for column in table.columns]
    assert len(columns) == len(set(columns))
    assert all(list(cells) == columns for cells in table.rows.values())
    assert {column.metric for column in table.columns} <= QUANTITIES
    assert set(table.rows) <= SCHEMES
    sentences = [table.caption, *table.doubts]
    assert table.doubts
    assert all(sentence.endswith(".") and len(sentence) <= 100 for sentence in sentences)


def _printed(text: str) -> tuple[Decimal, Decimal | None, bool]:
    """A cell as the paper's text has it: value, share of invalid outputs, and the dagger."""
    if days := re.fullmatch(r"(?:(\d+)d )?(\d+)h", text):
        return Decimal(24 * int(days[1] or 0) + int(days[2])), None, False
    match = re.fullmatch(r"([\d.]+)(?:×10\^\{-(\d)\})?(†?)(?: \(([\d.]+)%\))?", text)
    assert match, text
    value = Decimal(match[1]).scaleb(-int(match[2] or 0))
    return value, Decimal(match[4]) / 100 if match[4] else None, bool(match[3])


def _rows_of_the_paper(number: int) -> dict[str, list[str]]:
    """The lines below a caption that begin with the name of a scheme."""
    text = PAPER.read_text("utf-8").partition(f"\nTable {number}:")[2]
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, *cells = line.rstrip("\t").split("\t")
        if cells and name.lower() in SCHEMES and name.lower() not in rows:
            rows[name.lower()] = cells
        elif rows and not line:
            return rows
    raise AssertionError(f"Table {number} is not in the paper")


@pytest.mark.skipif(not PAPER.exists(), reason="the text of the paper is not at hand")
@pytest.mark.parametrize("name", XVAL)
def test_every_value_is_the_one_in_the_paper(name: str) -> None:
    table = published(name)
    rows = _rows_of_the_paper(int(name[-1]))
    assert set(rows) == set(table.rows)
    for scheme, cells in table.rows.items():
        printed = [_printed(text) for text in rows[scheme][-len(cells) :]]
        told = [(cell.value, cell.invalid, cell.footnote is not None) for cell in cells.values()]
        assert told == printed
        assert [str(value) for value, *_ in told] == [str(value) for value, *_ in printed]


def test_values_keep_the_digits_that_were_printed() -> None:
    assert str(published("xval/table3").rows["p1000"]["3 operands"].value) == "0.990"
    assert published("xval/table5").rows["p10"]["a_1 (OoD)"].invalid == Decimal("0.01")


def _message(name: str, row: str | None = None, column: str | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        table: Table = published(name)
        table.row(row) if row else table.column(str(column))
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_an_unknown_name_gives_the_nearest_match() -> None:
    assert _message("xval/tabel3").startswith(
        "unknown published table 'xval/tabel3'; did you mean 'xval/table3'? known: xval/table1, "
    )
    assert _message("xval/table3", column="2 operand") == (
        "unknown column '2 operand'; did you mean '2 operands'? "
        "known: 2 operands, 3 operands, 4 operands"
    )
    assert _message("xval/table3", row="b1999") == (
        "unknown row 'b1999'; known: fp15, p10, p1000, xval; "
        "xVal (Golkar et al. 2023), Table 3 has no other"
    )
