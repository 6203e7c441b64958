"""Published tables: the content of their files, and each value against the paper's text."""

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.encoding.schemes.base import SCHEMES as EVERY_SCHEME
from numtok.errors import UsageError
from numtok.evaluation.comparison.beside_published import row_of
from numtok.evaluation.published import PublishedTable, names, published
from numtok.metrics.base import METRICS
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.presets import shortest
from numtok.registry import spec_of
from numtok.reports import Report
from tests.cases import case

PAPERS = Path(__file__).parents[3] / "shared/papers"
PAPER = PAPERS / "000_0e3e68c57ec0abb5.txt"
DECODING = PAPERS / "002_7e38cd198fbc9dd0.txt"
NUMVALUE = PAPERS / "001_aec2db9f39ff9651.txt"
NUMVALUE_ROWS = ("standard-transformer", "numerologic", "numvalue-mlp", "numvalue-rnn")
NUMGPT = PAPERS / "003_e366f0d081961b3a.txt"
LIKELIHOODS = {"decoding-regression/table2": 11, "decoding-regression/table3": 25}
HEADS = ("MDN", "UD", "ND", "Riemann")
XVAL = [f"xval/table{number}" for number in (1, 2, 3, 4, 5)]
SCHEMES = {"p10", "p1000", "b1999", "fp15", "xval"}
QUANTITIES = {*METRICS.names(), "tokens-per-number", "train-hours", "vocabulary"}


def test_the_tables_of_the_papers_are_there() -> None:
    assert {*XVAL, *LIKELIHOODS, "decoding-regression/table1"} <= set(names())


def test_every_cell_stands_in_a_column_and_every_table_says_its_doubts() -> None:
    for name in names():
        with case(name):
            table = published(name)
            columns = [column.name for column in table.columns]
            assert len(columns) == len(set(columns))
            assert all(list(cells) == columns for cells in table.rows.values())
            assert {column.metric for column in table.columns} <= QUANTITIES
            assert all(re.fullmatch("[a-z0-9-]+", row) for row in table.rows)
            assert name not in XVAL or set(table.rows) <= SCHEMES
            sentences = [table.caption, *table.doubts]
            assert table.doubts
            assert all(sentence.endswith(".") and len(sentence) <= 100 for sentence in sentences)


def _printed(text: str) -> tuple[Decimal, Decimal | None, bool]:
    """Parse a printed cell: value, percentage of invalid outputs, and whether it has a dagger."""
    if days := re.fullmatch(r"(?:(\d+)d )?(\d+)h", text):
        return Decimal(24 * int(days[1] or 0) + int(days[2])), None, False
    match = re.fullmatch(r"([\d.]+)(?:×10\^\{-(\d)\})?(†?)(?: \(([\d.]+)%\))?", text)
    assert match, text
    value = Decimal(match[1]).scaleb(-int(match[2] or 0))
    return value, Decimal(match[4]) / 100 if match[4] else None, bool(match[3])


def _rows_of_the_paper(number: int) -> dict[str, list[str]]:
    """Return the lines below a caption that begin with the name of a scheme."""
    text = PAPER.read_text("utf-8").partition(f"\nTable {number}:")[2]
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, *cells = line.rstrip("\t").split("\t")
        if cells and name.lower() in SCHEMES and name.lower() not in rows:
            rows[name.lower()] = cells
        elif rows and not line:
            return rows
    raise AssertionError(f"Table {number} is not in the paper")


@pytest.mark.skipif(not PAPER.exists(), reason="needs the text of the paper")
def test_every_value_is_the_one_in_the_paper() -> None:
    for name in XVAL:
        with case(name):
            table = published(name)
            rows = _rows_of_the_paper(int(name[-1]))
            assert set(rows) == set(table.rows)
            for scheme, cells in table.rows.items():
                printed = [_printed(text) for text in rows[scheme][-len(cells) :]]
                expected = [
                    (cell.value, cell.invalid, cell.footnote is not None) for cell in cells.values()
                ]
                assert expected == printed
                assert [str(value) for value, *_ in expected] == [
                    str(value) for value, *_ in printed
                ]


def _lines_of_the_paper(heading: str) -> list[list[str]]:
    """Return the lines of cells below the line with this beginning."""
    text = DECODING.read_text("utf-8").partition(heading)[2].partition("\n")[2]
    lines = text.partition("\n\n")[0].splitlines()
    return [line.rstrip("\t").split("\t") for line in lines]


@pytest.mark.skipif(not DECODING.exists(), reason="needs the text of the paper")
def test_every_likelihood_is_the_one_in_the_paper() -> None:
    for name in list(LIKELIHOODS):
        with case(name):
            table = published(name)
            heading = "Dataset\tMDN" if name.endswith("2") else "Dataset\tMixture Density Network"
            printed = {
                row.lower().replace(" ", ""): [tuple(cell.split(" \\pm ")) for cell in cells]
                for row, *cells in _lines_of_the_paper(heading)
            }
            expected = {
                row: [(str(cells[head].value), str(cells[head].deviation)) for head in HEADS]
                for row, cells in table.rows.items()
            }
            assert expected == printed
            assert len(expected) == LIKELIHOODS[name]


def test_one_table_of_likelihoods_is_a_part_of_the_other() -> None:
    part, whole = map(published, LIKELIHOODS)
    assert {row: whole.rows[row] for row in part.rows} == part.rows
    assert part.columns == whole.columns


@pytest.mark.skipif(not DECODING.exists(), reason="needs the text of the paper")
def test_every_rank_correlation_is_the_one_in_the_paper_in_hundredths() -> None:
    table = published("decoding-regression/table1")
    [dimensions, *lines] = _lines_of_the_paper("Regression Head\tInput Dimension")
    assert [column.group["dimension"] for column in table.columns] == dimensions[1:]
    printed = {row.lower().replace(" ", "-"): cells for row, *cells in lines}
    expected = {
        row: [str(cells[column.name].value.scaleb(2)) for column in table.columns]
        for row, cells in table.rows.items()
    }
    assert expected == printed


@pytest.mark.skipif(not NUMVALUE.exists(), reason="needs the text of the paper")
def test_every_value_of_value_aware_is_the_one_in_the_paper() -> None:
    for number in [1, 2, 6]:
        with case(number):
            table = published(f"numvalue/table{number}")
            columns = [column.name for column in table.columns]
            expected = [
                [str(table.rows[row][name].value) for name in columns] for row in NUMVALUE_ROWS
            ]
            if number != 1:  # the paper has methods in columns
                expected = [
                    [name, *cells]
                    for name, cells in zip(columns, zip(*expected, strict=True), strict=True)
                ]
            text = re.sub("</?[bu]>", "", NUMVALUE.read_text("utf-8"))
            printed = [line.split("\t") for line in text.splitlines()]
            for cells in expected:
                assert any(line[-len(cells) :] == cells for line in printed), cells


# Row names in the tables of NumGPT; the last two rows of each table are pretrained models.
ROWS_OF_NUMGPT = {"MAJ": "majority", "GPT with DICE": "dice"}


def _cells_of_numgpt(number: int) -> dict[str, list[tuple[str, str]]]:
    """Return means and standard deviations above a table's caption, by row name."""
    text = NUMGPT.read_text("utf-8").partition(f"\nTable {number}: ")[0]
    lines = text[text.rindex("| Model ") :].splitlines()[2:]
    rows: dict[str, list[tuple[str, str]]] = {}
    pretrained = False
    for line in lines:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        pretrained |= name.startswith("Pre-train")
        cells = [re.sub(r"[$<>b/{}]|\s", "", cell).replace("\\pm", "±") for cell in cells]
        if name and cells and cells[0]:
            row = ROWS_OF_NUMGPT.get(name, name.lower().replace(" ", "-"))
            pairs = [cell.partition("±")[::2] for cell in cells if cell]
            rows[row + "-pretrained" * pretrained] = [(mean, apart) for mean, apart in pairs]
    return rows


@pytest.mark.skipif(not NUMGPT.exists(), reason="needs the text of the paper")
def test_every_value_of_numgpt_is_the_one_in_the_paper() -> None:
    """Percentages in the paper are fractions here."""
    for number in [1, 2, 3]:
        with case(number):
            table, printed = published(f"numgpt/table{number}"), _cells_of_numgpt(number)
            places = 0 if number == 3 else 2

            def told(value: Decimal | None, places: int = places) -> str:
                return "" if value is None else str(value.scaleb(places))

            assert {
                row: [(told(cell.value), told(cell.deviation)) for cell in cells.values()]
                for row, cells in table.rows.items()
            } == printed
            assert len(printed) == {1: 6, 2: 13, 3: 4}[number]
            assert set(table.row_of.values()) <= set(printed)


def test_values_keep_the_digits_that_were_printed() -> None:
    assert str(published("xval/table3").rows["p1000"]["3 operands"].value) == "0.990"
    bike = published("decoding-regression/table3").rows["bike"]
    assert (str(bike["ND"].value), str(bike["UD"].deviation)) == ("0.10", "0.00")
    assert published("xval/table5").rows["p10"]["a_1 (OoD)"].invalid == Decimal("0.01")


def test_what_xval_masks_in_training_is_what_the_paper_says() -> None:
    """Arithmetic trains on answers only, JSON on all tokens (Sections 3.1 to 3.3)."""
    for name in XVAL[1:]:
        with case(name):
            masks = "targets" if name in ("xval/table2", "xval/table3") else "tokens"
            assert published(name).setup == {"objective": f"mlm:{masks}"}


def test_what_a_table_states_is_spelt_as_reports_spell_it() -> None:
    """Otherwise a setting would be reported as different from itself."""
    for name in names():
        with case(name):
            table = published(name)
            build: dict[str, Callable[[str], object]] = {
                "objective": OBJECTIVES.build,
                "embedder": EMBEDDERS.build,
                "scheme": EVERY_SCHEME.build,
                "normalize": NORMALIZERS.build,
            }
            assert set(table.row_setup) <= set(table.rows)
            for stated in (table.setup, *table.row_setup.values()):
                for key, spec in stated.items():
                    same = shortest(spec) if key == "preset" else spec_of(build[key](spec))
                    assert same == spec


def _message(name: str, row: str | None = None, column: str | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        table: PublishedTable = published(name)
        table.row(row) if row else table.column(str(column))
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_model_has_its_own_row_whatever_its_data_are_called() -> None:
    table = published("numgpt/table2")
    for data, scheme, row in [
        ("numeracy600k-numgpt@1", "numgpt", "bigru"),
        ("titles@1", "numgpt", "bigru"),
        ("numeracy600k-bpe@1", "bpe", "bigru"),
    ]:
        report = SimpleNamespace(data=data, scheme=scheme, configuration={"preset": "bigru"})
        assert row_of(table, cast(Report, report)) == row, data


def test_an_unknown_name_gives_the_nearest_match() -> None:
    assert _message("xval/tabel3").startswith(
        "unknown published table 'xval/tabel3'. Did you mean 'xval/table3'?"
    )
    assert _message("xval/table3", column="2 operand") == (
        "unknown column '2 operand'. Did you mean '2 operands'? "
        "Known: 2 operands, 3 operands, 4 operands"
    )
    assert _message("xval/table3", row="b1999").startswith(
        "unknown row 'b1999'. Known: fp15, p10, p1000, xval. xVal (Golkar et al. 2023), Table 3"
    )
