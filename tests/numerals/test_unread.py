"""Digits outside numbers: their count, their shapes, and the note about them."""

import unicodedata

import numpy as np

from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.reading import read_text
from numtok.numerals.unread import KEPT_SHAPES, SAMPLED, UnreadDigits, count_unread
from tests.cases import each
from tests.numerals.test_golden import scanned

MIXED = [
    *("T36.8 and 12", "utf8", "x1 x22 0x1F 1_000", "1.2.3", "", "no digits", "-4.5e-3"),
    *("٣.5 and ３", "9c01ab7 5", "120e4500-9b1d-4c2e-8a77-001122334455 7", "α2 第5章"),
]


def counted(texts: list[str], policy: str = "default", sampled: int = SAMPLED) -> UnreadDigits:
    column = Texts.of(texts)
    starts, ends, *_ = column.find(NumeralPolicy.parse(policy))
    return count_unread(*column, starts, ends, sampled)


@each("policy", ["default", "xval"])
def test_all_digits_are_counted_and_those_that_no_number_holds(policy: str) -> None:
    found = counted(MIXED, policy)
    every = sum(unicodedata.category(char) == "Nd" for text in MIXED for char in text)
    numbers = scanned(MIXED, NumeralPolicy.parse(policy))
    read = sum(char in "0123456789" for row in numbers for literal in row for char in literal)
    assert (found.digits, found.unread) == (every, every - read)


def test_words_are_counted_once_by_their_shape() -> None:
    found = counted(["T36.8 T40.1 Ca2", "9c01ab7 120e4500-9b1d-4c2e-8a77-001122334455"])
    assert found.shapes == {"T0.0": 2, "Ca0": 1, "a hash": 1, "a UUID": 1}


def test_later_columns_count_all_digits_but_sample_few_words() -> None:
    unread = UnreadDigits()
    for texts in (["T1 7"] * 2 * SAMPLED, ["K2 7"] * 2 * SAMPLED):
        unread.merge(counted(texts, sampled=unread.next_sample))
    assert (unread.digits, unread.unread) == (8 * SAMPLED, 4 * SAMPLED)
    assert unread.shapes["T0"] == SAMPLED
    assert 0 < unread.shapes["K0"] < SAMPLED / 10


@each(
    ("text", "advice"),
    [
        ("T36.8", "space before"),
        ("0xFF1", "decimal"),
        ("25_000", "underscores"),
        ("10.1.0.9", "addresses"),
        ("９", "ASCII"),
        ("9c01ab7", "identifiers"),
        ("120e4500-9b1d-4c2e-8a77-001122334455", "identifiers"),
    ],
)
def test_the_note_says_what_would_read_a_shape(text: str, advice: str) -> None:
    note = counted([text, "7"]).note()
    assert note is not None and advice in note


def test_the_note_has_the_three_commonest_shapes() -> None:
    note = counted(["T1 T2 T3 Ca1 Ca2 K1 K2 pH1"]).note()
    assert note is not None
    assert "8 of 8 digits (100%)" in note and "pH0" not in note
    assert all(shape in note for shape in ("T0", "Ca0", "K0"))
    assert counted(["12 and 3.5"]).note() is None


def test_counts_of_parts_add_up_to_those_of_the_whole() -> None:
    whole, parts = counted(MIXED), UnreadDigits()
    for text in MIXED:
        parts.merge(counted([text]))
    assert parts == whole and parts.commonest() == whole.commonest()
    many = UnreadDigits(100, 100, {f"x{name}": 1 for name in range(100)})
    assert len(many.commonest().shapes) == KEPT_SHAPES


def test_a_column_that_starts_inside_its_buffer_counts_only_its_own_texts() -> None:
    data = np.frombuffer(b"x1 y22 33", np.uint8)
    none = np.empty(0, np.int32)
    found = count_unread(data, np.array([3, 6], np.int32), none, none)
    assert (found.digits, found.unread, found.shapes) == (2, 2, {"y0": 1})


# --- one text ----------------------------------------------------------------------------------


@each("policy", ["default", "thousands,percent", "xval"])
def test_a_reading_is_what_the_scanner_finds_and_nothing_is_left_out(policy: str) -> None:
    for text in MIXED:
        reading = read_text(text, NumeralPolicy.parse(policy))
        assert [one.literal for one in reading.numbers] == scanned(
            [text], NumeralPolicy.parse(policy)
        )[0]
        spans = [(number.start, number.end) for number in reading.numbers]
        spans += [(word.start, word.end) for word in reading.unread]
        covered = {at for start, end in spans for at in range(start, end)}
        digits = {at for at, char in enumerate(text) if unicodedata.category(char) == "Nd"}
        assert digits <= covered
        for number in reading.numbers:
            assert text[number.start : number.end] == number.literal
        for word in reading.unread:
            assert text[word.start : word.end] == word.text and word.reason and word.advice
        assert reading.marked().replace("«", "").replace("»", "") == text


def test_offsets_are_in_characters_and_values_are_exact() -> None:
    reading = read_text("é第2.5–é7 1,250.5% 😀x3", NumeralPolicy(thousands=True, percent=True))
    assert [(one.literal, one.value) for one in reading.numbers] == [
        *(("2.5", 2.5), ("1,250.5%", 12.505)),
    ]
    assert [(one.text, one.reason) for one in reading.unread] == [
        *(("é7", "the digits follow a letter"), ("x3", "the digits follow a letter")),
    ]
    assert read_text("no digits", NumeralPolicy()) == ("no digits", (), ())


def test_only_a_zone_that_overlaps_a_word_is_the_reason() -> None:
    reading = read_text("x1 run 12", NumeralPolicy(not_numbers=(r"(?=\d)", r"run \d+")))
    reasons = {word.text: (word.reason, word.advice) for word in reading.unread}
    assert reasons["x1"][0] == "the digits follow a letter"
    assert reasons["12"] == ("in a zone without numbers", r"--not-numbers run \d+")
