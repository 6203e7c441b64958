"""digits: chunks, reversed digits, and padding with zeros."""

import numpy as np

from numtok.encoding.schemes.base import SCHEMES, Failure
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from tests.cases import each
from tests.messages import Says


def written(spec: str, *literals: str) -> list[str]:
    """Return the tokens of numbers that are encoded together."""
    one = SCHEMES.build(spec)
    names, encoded = one.vocabulary(), one.encode(Numerals.of_literals(literals))
    ends = np.cumsum(encoded.lengths)
    return [
        " ".join(names[token] for token in encoded.tokens[end - length : end])
        for end, length in zip(ends.tolist(), encoded.lengths.tolist(), strict=True)
    ]


def read(spec: str, tokens: str) -> tuple[str, str]:
    one = SCHEMES.build(spec)
    ids = [one.vocabulary().index(token) for token in tokens.split()]
    found = one.decode(np.array(ids, np.uint32), np.array([len(ids)], np.int32))
    return Failure(found.failures[0]).name, found.literal(0)


@each(
    ("spec", "literal", "tokens"),
    [
        ("digits:2", "12345", "1 23 45"),
        ("digits:3", "1234.5678", "1 234 . 567 8"),
        ("digits:3", "-12345e-1234", "- 12 345 e - 1 234"),
        ("digits:3", "1,234,567", "1 , 234 , 567"),
        ("digits:2", "1,234", "1 , 2 34"),
        ("digits:3", ".0005", ". 000 5"),
        ("digits,reverse=yes", "-60.25", "- 0 6 . 5 2"),
        ("digits,reverse=yes", "1.5e-12", "1 . 5 e - 2 1"),
        ("digits:3,reverse=yes", "1234.5678", "234 1 . 8 567"),
        ("digits,pad=4", "7", "0 0 0 7"),
        ("digits,pad=4", "-1.5e7", "- 0 0 0 1 . 5 e 7"),
        ("digits,pad=3", "12345", "1 2 3 4 5"),
        ("digits,pad=6", "1,234", "1 , 2 3 4"),
        ("digits,pad=3", ".5", ". 5"),
        ("digits:3,reverse=yes,pad=6", "1234", "234 001"),
        ("triads", "1234567.8901", "1 234 567 . 890 1"),
        ("triads:left", "1234567.8901", "123 456 7 . 890 1"),
        ("triads:left", "1e-1234", "1 e - 123 4"),
        ("tst", "1234567.8901", "1 m 234 k 567 . 890 p 1 pp"),
        ("tst", "-1,234.5e-6789", "- 1 k , 234 . 5 p e - 6 789"),
        (
            "tst",
            "0.1234567890123456789",
            "0 . 123 p 456 pp 789 ppp 012 pppp 345 ppppp 678 ppppp 9 ppppp",
        ),
        ("tst", "1234567890123456789012", "1 q 234 q 567 q 890 t 123 b 456 m 789 k 012"),
        ("tst", ".12%", ". 12 p %"),
    ],
)
def test_digits_are_cut_turned_and_filled_up(spec: str, literal: str, tokens: str) -> None:
    # Other numbers in the same call have no effect.
    assert written(spec, "9", literal, "nan", "88")[1] == tokens
    assert read(spec, tokens) == ("NONE", literal)


def test_numbers_that_stand_side_by_side_are_cut_apart() -> None:
    assert written("digits:3", "1234", "nan", "56", "-7.25") == ["1 234", "NAN", "56", "- 7 . 25"]
    assert written("digits,reverse=yes", "12", "34") == ["2 1", "4 3"]
    assert written("digits:3") == []


@each(("literal", "read_back"), [("007", "7"), ("-000", "-0"), ("0007", "0007"), ("0.50", "0.50")])
def test_zeros_of_a_number_as_long_as_filled_up_are_taken_for_those_that_fill(
    literal: str, read_back: str
) -> None:
    (tokens,) = written("digits,pad=3", literal)
    assert read("digits,pad=3", tokens) == ("NONE", read_back)


@each(
    "tokens",
    ["1 234", "1 k", "1 k 23", "1 k 234 k 567", "1 m 234 567", "1 k , 234 , 567", "1 m , 234 k 567",
     "1 234 k 567", "1 k 234 . 5", "0 . 5 pp", "0 . 12 p 3 pp", "1 e 2 k 000"],
)  # fmt: skip
def test_marks_of_magnitude_that_do_not_fit_the_digits_are_no_number(tokens: str) -> None:
    assert read("tst", tokens)[0] == "MALFORMED"


def test_other_chunks_are_read_all_the_same() -> None:
    assert read("digits:3", "1 2 345") == ("NONE", "12345")
    assert read("digits:3", "1 . . 2")[0] == "MALFORMED"


def test_a_chunk_is_a_token_for_each_number_of_so_many_digits() -> None:
    sizes = [SCHEMES.build(f"digits:{size}").paper_vocabulary_size for size in (1, 2, 3)]
    assert sizes == [18, 118, 1118]


@each(
    ("spec", "parts"),
    [
        ("digits:0", ("chunk must be from 1 to 3",)),
        ("digits:4", ("chunk must be from 1 to 3",)),
        ("digits,pad=-1", ("pad must be from 0 to 1,000",)),
    ],
)
def test_settings_that_cannot_be_are_one_line(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        SCHEMES.build(spec)
