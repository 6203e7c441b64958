"""Notations around numbers: which are counted, and which get a note."""

from collections import Counter

from numtok.analysis.profiling.notations import (
    JOINED,
    NUMBERS,
    SPACED,
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
        ("dash", ["\u20137 deg", "at \u20117", "(\u20137)"], ["211\u2013348", "-7", "\u2014 7"]),
        ("bracket", ["(6.25) loss", "(12)", "7- credit", "7-"], ["f(6)", "6-7", "x (6 kg)"]),
        ("uncertainty", ["6.021(14)"], ["f(6)", "6 (14)", "6(a)"]),
        ("thousands", ["2,047.5", "1,234,567.25"], ["2,047", "2, 047.5", "20475,047.5", "a,047.5"]),
        ("suffix", ["3.1k", "7M users", "$2B"], ["3 k", "3km", "7MB", "5m"]),
        (JOINED, ["7%"], ["7 %", "7"]),
        (SPACED, ["7 %"], ["7%", "7  %"]),
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


def test_a_policy_that_reads_a_notation_leaves_nothing_to_note() -> None:
    assert counted("2,047.5", policy="thousands")["thousands"] == 0
    assert counted("7%", "7 %", policy="percent")[JOINED] == 1


def test_notes_are_on_what_is_not_rare() -> None:
    counts = counted("<0.2 and 2,047.5", "3% and 3 %", *["8"] * 100)
    notes = list(notation_notes(counts))
    assert len(notes) == 3
    assert "--numbers thousands" in notes[1] and "with percent" in notes[2]
    many = counts + Counter({NUMBERS: 10_000})
    assert list(notation_notes(many)) == [] == list(notation_notes(Counter()))
    assert list(notation_notes(counted("8 and 3%", "9"))) == []


def test_the_first_numbers_stand_for_many() -> None:
    column = Texts.of(["<1 " * 30_000])
    spans = column.find(NumeralPolicy())
    counts = count_notations(column, spans)
    assert counts["censored"] == counts[NUMBERS] < len(spans.starts)
