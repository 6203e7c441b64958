"""numvalue and numerologic: marks between the characters of numbers."""

from itertools import pairwise

import numpy as np

from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from tests.cases import each
from tests.encoding.schemes.test_digits import read
from tests.fakemodels import codec, samples
from tests.messages import Says


def row(scheme: str, text: str) -> str:
    """Return the tokens of a whole text, joined."""
    one, of = codec(scheme), samples(scheme, [text])
    names = [*one.vocabulary()["special"], *one.scheme.vocabulary()]
    names += [chr(byte) for byte in range(256)]
    return "".join(names[token] for token in of.tokens)


def test_the_parts_of_a_fraction_have_a_prefix_each() -> None:
    assert row("numvalue", "5/6 + 1") == "<num>5/<num>6 + <num>1"
    assert row("numvalue", "(-5/16) / (8/9)") == "(<num>-5/<num>16) / (<num>8/<num>9)"
    assert row("numerologic", "5/16 = x") == "{1:5}/{2:16} = x"


def test_mantissa_and_exponent_have_a_prefix_each() -> None:
    assert row("numvalue", "9.65e42 + 7E-10") == "<num>9.65e<num>42 + <num>7E<num>-10"
    assert row("numerologic", "9.65e42 + 7E-10") == "{1.2:9.65}e{2:42} + {1:7}E-{2:10}"


def test_outputs_alone_are_counted_from_where_the_answer_begins() -> None:
    text = "12 + 3.5 = 15.5, or 1.55e1"
    of = samples("numerologic:answer", [text, "12 = 12"], answers=[11, -1])
    one = codec("numerologic:answer")
    names = [*one.vocabulary()["special"], *one.scheme.vocabulary()]
    names += [chr(byte) for byte in range(256)]
    written = [
        "".join(names[token] for token in of.tokens[slice(*bounds)])
        for bounds in pairwise(of.token_rows.tolist())
    ]
    assert written == ["12 + 3.5 = {2.1:15.5}, or {1.2:1.55}e{1:1}", "12 = 12"]
    for row, (first, end) in enumerate(pairwise(of.number_rows.tolist())):
        tokens = of.tokens[slice(*of.token_rows[row : row + 2].tolist())].astype(np.uint32)
        numbers = of.number_start[first:end], of.number_length[first:end]
        assert one.decode(tokens, *numbers) == (text, "12 = 12")[row]


def test_both_forms_are_read_where_outputs_alone_are_counted() -> None:
    for tokens in ("- 0 . 5", "- { 1 . 1 : 0 . 5 }"):
        assert read("numerologic:answer", tokens) == ("NONE", "-0.5")
    assert read("numerologic:answer", "{ 2 : 7 1")[0] == "MALFORMED"


def test_numbers_that_cannot_be_chosen_are_one_line(says: Says) -> None:
    with says.raises(UsageError, "numerologic: numbers must be all or answer (got 'some')"):
        SCHEMES.build("numerologic:some")


@each(
    ("number", "written"),
    [
        ("71", "digits: 2 number: 7 1"),
        ("-71.5", "digits: 2 decimals: 1 number: - 7 1 . 5"),
        ("1.25e-12", "digits: 1 decimals: 2 number: 1 . 2 5 e digits: 2 number: - 1 2"),
        ("5.E+7", "digits: 1 decimals: 0 number: 5 . E digits: 1 number: + 7"),
        ("1,234%", "digits: 4 number: 1 , 2 3 4 %"),
        ("inf", "+INF"),
    ],
)
def test_counts_can_be_described_in_words(number: str, written: str) -> None:
    """Counts are in the words of the baseline of Value-Aware, Section 4.2."""
    for spec in ("numerologic,form=words", "numerologic:answer,form=words"):
        one = SCHEMES.build(spec)
        encoded = one.encode(Numerals.of_literals([number]))
        names = one.vocabulary()
        assert " ".join(names[token] for token in encoded.tokens) == written
        decoded = one.decode(encoded.tokens, encoded.lengths)
        assert decoded.literal(0) == number
        assert read(spec, written) == ("NONE", number)
    assert read("numerologic:answer,form=words", "- 0 . 5") == ("NONE", "-0.5")
    assert read("numerologic,form=words", "- 0 . 5")[0] == "MALFORMED"


def test_numbers_that_follow_each_other_keep_their_marks() -> None:
    one = SCHEMES.build("numerologic")
    encoded = one.encode(Numerals.of_literals(["1", "nan", "-2.5e3", "4"]))
    assert encoded.lengths.tolist() == [5, 1, 16, 5]
    names = [one.vocabulary()[token] for token in encoded.tokens]
    assert "".join(names) == "{1:1}NAN-{1.1:2.5}e{1:3}{1:4}"


@each(
    ("tokens", "expected"),
    [
        ("<num> - 5", ("NONE", "-5")),
        ("<num> 1 . 5 e <num> 3", ("NONE", "1.5e3")),
        ("<num> 1 . 5 e 3", ("MALFORMED", "1.5e3")),
        ("5", ("MALFORMED", "5")),
        ("<num>", ("MALFORMED", "")),
        ("8 8 3 e", ("MALFORMED", "883e")),
        ("<num> 5 <num> 6", ("MALFORMED", "56")),
        ("- <num> 5", ("MALFORMED", "-5")),
        ("NAN", ("NONE", "nan")),
    ],
)
def test_a_prefix_stands_before_each_part_or_the_number_is_none(
    tokens: str, expected: tuple[str, str]
) -> None:
    assert read("numvalue", tokens) == expected


@each(
    ("tokens", "expected"),
    [
        ("{ 2 : 7 1 }", ("NONE", "71")),
        ("{ 9 . 9 : 7 1 }", ("NONE", "71")),  # wrong counts are ignored
        ("- { 1 . 1 : 0 . 5 }", ("NONE", "-0.5")),
        ("{ 1 : 5 . } e { 1 : 3 }", ("NONE", "5.e3")),
        ("{ 1 : 5 . }", ("MALFORMED", "5.")),
        ("{ : 5 }", ("MALFORMED", "5")),
        ("{ 1 : 5", ("MALFORMED", "5")),
        ("{ 2 : 7 1 } }", ("MALFORMED", "71")),
        ("{ 2 : 7 1 { 2 : 7 1 }", ("MALFORMED", "7171")),
        ("{ 7 1 }", ("MALFORMED", "")),  # it is unknown which digits are counts
        ("7 1", ("MALFORMED", "71")),
    ],
)
def test_digits_are_read_whatever_was_counted(tokens: str, expected: tuple[str, str]) -> None:
    assert read("numerologic", tokens) == expected
