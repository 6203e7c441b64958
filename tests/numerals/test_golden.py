"""The scanner, compared with the tables of docs/reference/numbers.md, read from the page itself."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numtok.encoding.texts import Texts
from numtok.numerals.column import Literals
from numtok.numerals.literals import value_of
from numtok.numerals.notations.units import CURRENCIES, QUANTITIES, UNITS
from numtok.numerals.policy import PRESETS, NumeralPolicy
from numtok.numerals.zones import NAMED
from tests.cases import each

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/numbers.md"
_SPAN = re.compile(r"`([^`]+)`")


def scanned(texts: Sequence[str], policy: NumeralPolicy) -> list[list[str]]:
    """Return the numbers that the scanner finds in a column of texts, as written."""
    column = Texts.of(list(texts))
    starts, ends, counts, _ = column.find(policy)
    assert len(starts) == len(ends) == counts.sum()
    found = list(map(Literals(column.data, starts, ends).at, range(len(starts))))
    bounds = np.cumsum([0, *counts.tolist()]).tolist()
    return [found[bounds[row] : bounds[row + 1]] for row in range(len(texts))]


class Case(NamedTuple):
    group: str
    text: str
    cells: list[str]


def _cases(heading: str) -> list[Case]:
    """Return the rows of all tables whose header is ``heading``."""
    cases: list[Case] = []
    group, inside = "", False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            group = line.strip("# ")
        if not line.startswith("|"):
            inside = False
        elif line == heading:
            inside = True
        elif inside and not line.startswith("|---"):
            text, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            cases.append(Case(group, text.removeprefix("`").removesuffix("`"), cells))
    return cases


def _numbers(cell: str) -> list[str]:
    found = _SPAN.findall(cell)
    assert " ".join(f"`{number}`" for number in found) == cell or (cell == "none" and not found)
    return found


PLAIN = _cases("| text | numbers | `xval` | why |")
OPTIONS = _cases("| text | options | numbers | values |")
ZONES = _cases("| text | zones | numbers |")


@each("case", PLAIN)
def test_the_scanner_reads_what_the_page_says(case: Case) -> None:
    default, xval, _ = case.cells
    expected = _numbers(default)
    assert scanned([case.text], NumeralPolicy()) == [expected]
    expected_by_xval = expected if xval == "same" else _numbers(xval)
    assert scanned([case.text], NumeralPolicy("xval")) == [expected_by_xval]
    if xval != "same":
        assert expected != expected_by_xval, "say `same`"


@each("case", OPTIONS)
def test_the_flags_read_what_the_page_says(case: Case) -> None:
    options, numbers, values = case.cells
    policy = NumeralPolicy.parse(options.replace(" ", ","))
    expected = _numbers(numbers)
    spans = Texts.of([case.text]).find(policy)
    assert scanned([case.text], policy) == [expected]
    wanted = [float(value) for value in values.split()]
    assert spans.numerals().values.tolist() == wanted
    assert [value_of(spans.literals.at(index)) for index in range(len(wanted))] == wanted


@each("case", ZONES)
def test_zones_leave_the_numbers_that_the_page_says(case: Case) -> None:
    zones, numbers = case.cells
    names = zones.split() if set(zones.split()) <= set(NAMED) else [zones]
    assert scanned([case.text], NumeralPolicy(not_numbers=tuple(names))) == [_numbers(numbers)]


def test_the_page_lists_the_units_and_the_presets() -> None:
    page = PAGE.read_text("utf-8")
    for words in (CURRENCIES, QUANTITIES, UNITS):
        assert " ".join(f"`{word}`" for word in words) in page
    for name, spec in PRESETS.items():
        assert f"| `{name}` | `{spec}` |" in page


@each("rule", ["default", "xval"])
def test_the_whole_table_as_one_column_reads_the_same_as_row_by_row(rule: str) -> None:
    texts = ["", *(case.text for case in PLAIN), ""]
    policy = NumeralPolicy(rule)
    assert scanned(texts, policy) == [scanned([text], policy)[0] for text in texts]


def test_the_page_has_its_tables_and_no_case_twice() -> None:
    assert len(PLAIN) >= 70
    assert len(OPTIONS) >= 90
    assert len({case.text for case in PLAIN}) == len(PLAIN)
    assert len({(case.text, case.cells[0]) for case in OPTIONS}) == len(OPTIONS)


def test_the_characters_that_look_alike_are_the_ones_meant() -> None:
    texts = {case.text for case in PLAIN}
    assert {"\u22125", "1\u22125", "1\u20135", "\uff15", "\u0663", "e\u03015", "\xe95"} <= texts


#: Cases that no later version of the page may change.
SETTLED = {
    "(1.42-8.20)": ["1.42", "8.20"],
    "(1.42 - 8.20)": ["1.42", "8.20"],
    "[1,-2]": ["1", "-2"],
    "of -5 degrees": ["-5"],
    "planet0": [],
    "x1": [],
    "utf8": [],
    "'a'-5": ["5"],
    '"-3.5"': ["-3.5"],
    "1e5": ["1e5"],
    "10km": ["10"],
}


@each("text", SETTLED)
def test_the_settled_cases_are_on_the_page_with_their_results(text: str) -> None:
    (case,) = [case for case in PLAIN if case.text == text]
    assert _numbers(case.cells[0]) == SETTLED[text]
