"""Notations around numbers: which are counted, and which get a note."""

from collections import Counter

from numtok.analysis.profiling.notations import (
    NUMBERS,
    count_notations,
    notation_notes,
)
from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy
from tests.cases import each


def counted(*texts: str, policy: str = "default") -> Counter[str]:
    column = Texts.of(list(texts))
    spans = column.find(NumeralPolicy.parse(policy))
    return count_notations(column, spans)


@each(
    ("name", "those", "others"),
    [
        ("censored", ["<0.2", "> 500", "p<0.05"], ["a 0.2", "<b 5", "=5", "5 > x"]),
        ("code", ["zip 00412", "0071.5"], ["0.25", "04:05", "0", "100", "2,047.5"]),
        ("uncertainty", ["6.021(14)"], ["f(6)", "6 (14)", "6(a)"]),
    ],
)  # fmt: skip
def test_a_notation_is_counted_where_it_is_and_nowhere_else(
    name: str, those: list[str], others: list[str]
) -> None:
    for text in those:
        assert counted(text)[name] == 1, text
    for text in others:
        assert counted(text)[name] == 0, text
    assert counted(*those, *others)[name] == len(those)


def test_texts_do_not_see_each_other() -> None:
    assert counted("<", "5", "%", "1,", "212.5", "(", "7", ")") == {NUMBERS: 4} | dict.fromkeys(
        set(counted("5")) - {NUMBERS}, 0
    )
    assert counted("none", "") == Counter()


def test_notes_are_on_what_is_not_rare() -> None:
    counts = counted("<0.2 and 00412", *["8"] * 100)
    assert len(list(notation_notes(counts))) == 2
    many = counts + Counter({NUMBERS: 10_000})
    assert list(notation_notes(many)) == [] == list(notation_notes(Counter()))
    assert list(notation_notes(counted("8 and 3%", "9"))) == []


def test_the_first_numbers_stand_for_many() -> None:
    column = Texts.of(["<1 " * 30_000])
    spans = column.find(NumeralPolicy())
    counts = count_notations(column, spans)
    assert counts["censored"] == counts[NUMBERS] < len(spans.starts)
