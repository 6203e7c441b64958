"""Numbers in text: which ones are found, their values, and their rounding.

Each part is compared with an oracle that shares no code with it: the scanner with a slow
implementation of docs/reference/numbers.md (:mod:`tests.numerals.reading`) and with xVal's own
pattern, values with ``float()``, rounding with ``decimal``.
"""

import json
import math
import random
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.numerals._identifiers import OTHER_ZEROS
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.decimals import read, round_half_even
from numtok.numerals.literals import plain_literal, resolution, round_literal, value_of
from numtok.numerals.notations.numbers import rewrite_numbers
from numtok.numerals.notations.units import CURRENCIES, QUANTITIES, UNITS
from numtok.numerals.policy import PRESETS, SINGLE, NumeralPolicy
from numtok.numerals.scan import scan
from tests.cases import case, each
from tests.messages import Says
from tests.numerals.reading import HASH, OTHER, reference
from tests.numerals.reading import read as read_slowly
from tests.numerals.test_golden import scanned

ERA5 = Path(__file__).resolve().parents[3] / "shared/data/text/era5-uk-2019-03.jsonl"

# --- what is a number --------------------------------------------------------------------------


def xval_reference(text: str) -> list[str]:
    pattern = re.compile(r"(?<!')-?\d+(\.\d+)?([eE][-+]?\d+)?(?!'|\d)", re.ASCII)
    return [match[0] for match in pattern.finditer(text)]


FRAGMENTS = [
    *"0123459", *"..--++eExXboO__,,%%", *"'\")](]{}", *" aZn$^", "−", "°", "’", "”", "“", "–",
    "é", "×", "÷", "À", "Կ", "\u053f", "\u0540", "\u0301", "²", "µ", "第", "章", "５", "😀",
    *"TafAF:", "T05:06", "٣", "𝟗", "550e8400-e29b-", "41d4-a716-", "446655440000", "1234e567",
    "12", "234", ",567", "0x1", "1e5", "e-3", "1.5", ".25", "''", "[NUM]", "\u0092", "\u0099",
]  # fmt: skip
FRAGMENTS += [
    "‑", "⁵", "⁻", "10", "10^", "½", "⅓", "/", "/", "k", "K", "M", "bn", " bn", " million", "USD",
    "Na", "pH", "SO", "cm", "(", "($", ")", ") ", "- ", "1,234", "'234", " 234", "\u00a0234",
    "_234", ",34", "1/2", "3 1/2", "x10^", "×10", "10⁵", "．", "，", "％", " %", "40x60", "*", " ",
]  # fmt: skip
# Words between numbers, so that texts have several passages (notations/passages.py).
FRAGMENTS += [
    " the rest of the committee ", " that we met in that room on ", " minutes of a day\n", "\r\n\t",
    " antidisestablishmentarianism ", " a b c d e f g h i j k l m n o p ", "\x0b", " and ", " in ",
]  # fmt: skip
WORDS = (*CURRENCIES, *QUANTITIES, *UNITS)
ALL_POLICIES = [
    *map(NumeralPolicy.parse, ("default", "xval", "thousands,percent", *SINGLE, *PRESETS)),
    NumeralPolicy.parse(
        "thousands,percent,suffixes,fractions,units,dimensions,unicode,"
        "groups=apostrophe+space+underscore+indian,signs=dash+paren+trailing"
    ),
    NumeralPolicy.parse("eu,unicode,fractions,signs=paren+trailing+dash"),
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join) | st.text(max_size=8)
columns = st.lists(texts, min_size=1, max_size=5)
policies = st.sampled_from(ALL_POLICIES)


def expected(column: Iterable[str], policy: NumeralPolicy) -> list[list[str]]:
    """Return the numbers of each text under a policy, by the slow implementation."""
    if policy.rule == "xval":
        return [xval_reference(text) for text in column]
    flags = policy.flags()
    return [[number for number, _ in read_slowly(text, flags, WORDS)] for text in column]


@given(columns, policies)
@example(["1", ".5", "e3", "-4", "%", ",234"], NumeralPolicy(thousands=True, percent=True))
def test_the_scanner_follows_the_published_rule(column: list[str], policy: NumeralPolicy) -> None:
    assert scanned(column, policy) == expected(column, policy)


@given(columns, policies)
def test_schemes_see_the_notation_of_the_rule(column: list[str], policy: NumeralPolicy) -> None:
    assume(policy.rule == "default")
    texts = Texts.of(column)
    spans = texts.find(policy)
    literals = [spans.literals.at(index) for index in range(len(spans.starts))]
    slowly = (read_slowly(text, policy.flags(), WORDS) for text in column)
    assert literals == [literal for numbers in slowly for _, literal in numbers]
    assert spans.numerals().values.tolist() == [value_of(literal) for literal in literals]


def test_the_digits_of_other_scripts_are_those_of_unicode() -> None:
    zeros = OTHER_ZEROS.tolist()
    for zero in zeros:
        digits = map(chr, range(zero, zero + 10))
        assert [unicodedata.digit(char) for char in digits] == list(range(10))
    if unicodedata.unidata_version == "14.0.0":
        assert len(OTHER) == 10 * len(zeros)


@given(columns)
@example(["1", "'2", "'", "3'4", "5e6'", "-7", "1.25'", "1.5e33'", "'-8"])
def test_the_xval_policy_is_the_published_pattern(column: list[str]) -> None:
    assert scanned(column, NumeralPolicy("xval")) == [xval_reference(text) for text in column]


def _random_texts(count: int) -> list[str]:
    rng = random.Random(count)
    return ["".join(rng.choices(FRAGMENTS, k=rng.randrange(14))) for _ in range(count)]


@each("policy", ALL_POLICIES)
def test_thousands_of_random_texts_in_one_column_read_as_the_rules_say(
    policy: NumeralPolicy,
) -> None:
    column = _random_texts(3_000)
    assert scanned(column, policy) == expected(column, policy)


@pytest.mark.slow
@each("policy", ALL_POLICIES)
def test_a_million_random_texts_read_as_the_rules_say(policy: NumeralPolicy) -> None:
    column = _random_texts(1_000_000)
    assert scanned(column, policy) == expected(column, policy)


@each("text", ["⅓", "1/3", ",⅓", "⅓-", "(⅓)", "⅓%"])
def test_texts_of_fractions_alone_have_room_for_their_digits(text: str) -> None:
    policy = NumeralPolicy.parse("thousands,percent,fractions,signs=paren+trailing")
    texts = Texts.of(pa.array([text] * 100, pa.string()))
    rewritten = rewrite_numbers(texts.data, texts.rows, policy)
    assert rewritten.rows[-1] == len(rewritten.data)


def test_a_column_that_starts_inside_its_buffer_does_not_see_what_is_around_it() -> None:
    text = "x1.5−7.25é8'9"
    data = np.frombuffer(text.encode(), np.uint8)
    for begin in range(len(text)):
        for end in range(begin, len(text) + 1):
            rows = [len(text[:cut].encode()) for cut in (begin, end)]
            starts, ends, counts = scan(data, np.array(rows, np.int32), NumeralPolicy())
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            found = [data[start:stop].tobytes().decode() for start, stop in spans]
            assert found == reference(text[begin:end])
            assert counts.tolist() == [len(found)]


@each("spec", ["thousands,percent", "xval"])
@each(
    "fragment",
    ["1", "1,", ",234", "1.", "1_", "-1", "1e", "5%", "0x", "'", "1'", "''", ".1e1", "1a", "-a1"],
)
def test_long_repetitions_take_linear_time(spec: str, fragment: str) -> None:
    # Quadratic time would take minutes.
    text = "1" + fragment * (300_000 // len(fragment)) + "5'"
    scanned([text], NumeralPolicy.parse(spec))


# --- the policy as a setting -------------------------------------------------------------------


@each("policy", [*ALL_POLICIES, NumeralPolicy(not_numbers=("dates", "run [0-9]+"))])
def test_spec_and_settings_of_a_policy_give_it_back(policy: NumeralPolicy) -> None:
    assert NumeralPolicy.parse(policy.spec(), policy.not_numbers) == policy
    settings = json.loads(json.dumps(policy.settings()))
    assert NumeralPolicy.from_settings(settings) == policy


@each(
    ("spec", "same"),
    [
        ("default,thousands=no,percent=no", "default"),
        ("no-thousands,no-percent", "default"),
        ("default,percent,thousands", "thousands,percent"),
        ("default,thousands=yes,percent=yes", "thousands,percent"),
        ("signs=dash,paren", "signs=dash+paren"),
        ("groups=space+apostrophe", "groups=apostrophe+space"),
        ("code,groups=none", "dimensions"),
        ("eu,no-percent", "thousands,decimal=comma,groups=space"),
        ("eu,decimal=point", "thousands,percent,groups=space"),
    ],
)
def test_a_spec_is_shortened(spec: str, same: str) -> None:
    assert NumeralPolicy.parse(spec).spec() == same


@each(
    ("spec", "parts"),
    [
        ("numgpt", ("'numgpt'", "default", "xval")),
        ("default,thousand=yes", ("'thousand'", "'thousands'")),
        ("default,percent=true", ("percent", "yes or no", "'true'")),
        ("xval,percent=yes", ("'xval'", "'default'")),
        ("default:3", ("'default:3'", "'default'")),
        ("default,percent=no,percent=yes", ("'percent' twice",)),
        ("groups=dot", ("groups", "apostrophe, space", "'dot'")),
        ("decimal=dot", ("decimal", "point or comma", "'dot'")),
        ("", ("''",)),
    ],
)
def test_a_wrong_policy_is_refused_with_what_is_allowed(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        NumeralPolicy.parse(spec)


@each("zone", ["", "("])
def test_a_wrong_zone_is_refused_with_the_names(zone: str, says: Says) -> None:
    with says.raises(UsageError, "--not-numbers", "dates", "regular expression"):
        NumeralPolicy(not_numbers=(zone,))


def test_a_zone_of_words_is_refused_as_a_misspelled_name(says: Says) -> None:
    for zone, name in (
        ("idz", "ids"),
        ("date", "dates"),
        ("ids,dates", "repeat"),
        ("date|row-id", "repeat"),
    ):
        with case(zone), says.raises(UsageError, "--not-numbers", repr(zone), name, "versions"):
            NumeralPolicy(not_numbers=(zone,))
    texts = [
        ("3 million and 5", "million"),
        ("1e5 and 7", "e"),
        ("-5 and 7", "-"),
        ("1 or 2", "or 2"),
    ]
    for text, zone in texts:  # these overlap numbers
        with case(zone):
            policy = NumeralPolicy.parse("suffixes", (zone,))
            assert len(scanned([text], policy)[0]) == 1


def test_settings_of_another_revision_are_refused(says: Says) -> None:
    with says.raises(UsageError, "revision 1", "revision 3", "Encode the data again"):
        NumeralPolicy.from_settings(NumeralPolicy().settings() | {"revision": 1})


# --- values ------------------------------------------------------------------------------------


def parsed(literals: list[str]) -> NDArray[np.float64]:
    return read(*Literals.of(literals))[0]


def assert_same_bits(literals: list[str]) -> None:
    """Check that literals with and without a minus have the value of ``float()``, bit for bit."""
    expected = np.array([float(literal) for literal in literals])
    for sign, values in (("", expected), ("-", -expected)):
        found = parsed([sign + literal for literal in literals])
        wrong = np.flatnonzero(found.view(np.uint64) != values.view(np.uint64))
        assert not len(wrong), [
            (sign + literals[n], found[n].hex(), values[n].hex()) for n in wrong[:5].tolist()
        ]


def random_reprs(rng: np.random.Generator, count: int) -> list[str]:
    """Return ``repr`` of finite floats with random bits, without their sign."""
    floats = (rng.integers(0, 2**63, count, np.uint64)).view(np.float64)
    return [repr(value) for value in floats[np.isfinite(floats)].tolist()]


def random_subnormals(rng: np.random.Generator, count: int) -> list[str]:
    bits = rng.integers(0, 2**52, count, np.uint64) >> rng.integers(0, 52, count, np.uint64)
    floats = bits.view(np.float64).tolist()
    return [repr(value) for value in floats] + [f"{value:.17e}" for value in floats]


def random_long_digits(rng: np.random.Generator, count: int) -> list[str]:
    """Return literals of 17 to 40 digits, with points and exponents anywhere."""
    pool = "".join(map(str, rng.integers(0, 10, 41 * count + 1).tolist()))
    lengths = rng.integers(17, 41, count).tolist()
    points = rng.integers(0, 41, count).tolist()
    exponents = rng.integers(-350, 330, count).tolist()
    forms = rng.integers(0, 3, count).tolist()
    literals = []
    for n, (length, point, exponent, form) in enumerate(
        zip(lengths, points, exponents, forms, strict=True)
    ):
        digits = pool[41 * n : 41 * n + length]
        if form:
            digits = f"{digits[:point]}.{digits[point:]}" if 0 < point < length else f".{digits}"
        literals.append(digits if form == 1 else f"{digits}e{exponent}")
    return literals


_EXACT = Context(prec=2000, Emin=-(10**6), Emax=10**6)


def around(middle: Decimal) -> Iterator[str]:
    """Yield a decimal and its neighbors in the last place, also with one more digit."""
    sign, digits, exponent = middle.as_tuple()
    assert sign == 0 and isinstance(exponent, int)
    whole = int("".join(map(str, digits)))
    for value, power in ((whole, exponent), (whole * 10, exponent - 1)):
        for neighbour in (value - 1, value, value + 1):
            yield f"{neighbour}e{power}"
    yield format(middle, "f")


def halfway(lower: float) -> Decimal:
    """Return the exact midpoint of a float >= 0 and the next one up (2^1024 above the largest)."""
    upper = math.nextafter(lower, math.inf)
    above = Decimal(2**1024) if math.isinf(upper) else Decimal(upper)
    return _EXACT.divide(_EXACT.add(Decimal(lower), above), Decimal(2))


def random_halfway_cases(rng: np.random.Generator, count: int) -> Iterator[str]:
    patterns = rng.integers(0, 0x7FF0 << 48, count, np.uint64)
    patterns[: count // 4] >>= np.uint64(11)  # some subnormals
    for lower in patterns.view(np.float64).tolist():
        middle = halfway(lower)
        assert 2 * Fraction(middle) == Fraction(lower) + Fraction(math.nextafter(lower, math.inf))
        yield from around(middle)
        digits = str(middle).partition("E")[0].replace(".", "")
        for length in (17, 18, 19, 20, 21, 25):  # truncated: slightly below the midpoint
            cut = Context(prec=length, rounding="ROUND_DOWN", Emin=-(10**6)).plus(middle)
            if len(digits) > length:
                yield from around(cut)


def random_short_ties(rng: random.Random, count: int) -> Iterator[str]:
    """Yield literals of up to 19 digits, exponent -4 to 23, at or next to a tie of two floats."""
    for _ in range(count):
        power = rng.randrange(-4, 24)
        odd = rng.randrange(2**53, 2**54) | 1  # 54 bits: one too many
        if power < 0:
            written = odd * 5**-power  # odd / 2^-power
        else:
            written = (odd // 5**power) | 1
            if (written * 5**power).bit_length() != 54:
                continue
        if len(str(written)) <= 19:
            for neighbour in (written - 1, written, written + 1):
                yield f"{neighbour}e{power}"


def ends_of_the_range() -> Iterator[str]:
    largest, smallest, normal = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308
    for value in (largest, smallest, normal, math.nextafter(normal, 0), 1.0, 2.0**53, 1e23):
        yield from around(Decimal(value))
        yield from around(halfway(value))
        yield from around(halfway(math.nextafter(value, 0)))
    yield from around(halfway(0.0))
    yield from around(Decimal(2) ** 1024)
    for mantissa in ("1", "9", "0", "0.0", "17976931348623157", "49406564584124654"):
        for exponent in (*range(-345, -300), *range(290, 312), -400, 400, 99999, -99999):
            yield f"{mantissa}e{exponent}"


def long_zeros() -> Iterator[str]:
    for count in (1, 17, 18, 19, 20, 100, 307, 308, 309, 322, 323, 324, 325, 400, 5_000, 150_000):
        zeros = "0" * count
        yield f"0.{zeros}1"
        yield f".{zeros}123456789012345678901234"
        yield f"1{zeros}"
        yield f"1{zeros}.{zeros}1e-{count}"
        yield f"1{zeros}e-{count + 300}"
        yield f"1{zeros}e-{count}"
        yield f"0.{zeros}1e{count}"
        yield f"0.{zeros}1E+{count + 300}"
        yield f"{zeros}12.5e-2"
        yield f"{zeros}.{zeros}"
        yield f"123.25{zeros}"
        yield f"9007199254740993.{zeros}"  # a tie
        yield f"9007199254740993.{zeros}1"  # just above it
        yield f"1e{zeros}5"
        yield f"1e-{zeros}5"
        yield f"0e{zeros}999"
    for digits in ("9" * 30, "9" * 5_000):
        for mantissa in ("1", "0", "0.000", "123456789012345678901234567890"):
            yield f"{mantissa}e{digits}"
            yield f"{mantissa}e-{digits}"


def test_values_are_those_of_float() -> None:
    rng = np.random.default_rng(1)
    ties = list(random_short_ties(random.Random(5), 20_000))
    assert len(ties) > 20_000
    assert_same_bits([*random_reprs(rng, 30_000), *random_subnormals(rng, 10_000), *ties])
    assert_same_bits([*ends_of_the_range(), *long_zeros()])


@pytest.mark.integration
def test_values_of_many_digits_and_half_way_between_two_floats_are_those_of_float() -> None:
    assert_same_bits(random_long_digits(np.random.default_rng(2), 50_000))
    assert_same_bits(list(random_halfway_cases(np.random.default_rng(4), 1_000)))


LITERAL = re.compile(r"([0-9]{1,25}(\.[0-9]{1,25})?|\.[0-9]{1,9})([eE][-+]?[0-9]{1,4})?")


@given(st.from_regex(LITERAL, fullmatch=True))
def test_values_of_any_literal_are_those_of_float(literal: str) -> None:
    assert_same_bits([literal])


# --- written decimals: an oracle that reads every form -----------------------------------------


def exact(literal: str) -> Fraction:
    """Return the exact number of a literal; exponents must be moderate."""
    plain = literal.replace("\u2212", "-").replace(",", "")
    divisor = 1
    if plain.endswith("%"):
        plain, divisor = plain[:-1], 100
    return Fraction(plain if "." not in plain[-1:] else plain + "0") / divisor


def rounded_by_decimal(literal: str, digits: int) -> tuple[bool, int, int]:
    """Return sign, mantissa of ``digits`` digits, and exponent, by fixed-exponent ``decimal``."""
    plain = literal.replace("\u2212", "-").replace(",", "").lower()
    percent = plain.endswith("%")
    number = Decimal(plain.removesuffix("%"))
    if number.is_zero():
        return number.is_signed(), 0, 0
    exponent = number.adjusted() - digits + 1
    units = _EXACT.scaleb(number.copy_abs(), -exponent)
    mantissa = int(units.to_integral_value(ROUND_HALF_EVEN, _EXACT))
    if mantissa == 10**digits:
        mantissa, exponent = mantissa // 10, exponent + 1
    return number.is_signed(), mantissa, exponent - 2 * percent


def rounded(literals: list[str], digits: int) -> list[tuple[bool, int, int]]:
    _, significands = read(*Literals.of(literals))
    negative = significands.negative
    mantissa, exponent = round_half_even(significands, digits)
    return list(zip(negative.tolist(), mantissa.tolist(), exponent.tolist(), strict=True))


def assert_rounded(literals: list[str], digits: Iterable[int] = range(1, 19)) -> None:
    column = Numerals.of_literals(literals)
    for count in digits:
        expected = [rounded_by_decimal(literal, count) for literal in literals]
        assert rounded(literals, count) == expected
        assert [round_literal(literal, count) for literal in literals] == expected
        found = column.rounded(count)
        assert list(zip(*(part.tolist() for part in found), strict=True)) == expected


@st.composite
def numerals(draw: st.DrawFn) -> str:
    """Generate a number in any form that the policy reads."""
    sign = draw(st.sampled_from(["", "-", "+", "\u2212"]))
    digits = draw(st.text("0123459", min_size=1, max_size=24))
    form = draw(st.sampled_from(["integer", "fraction", "point first", "groups", "bare point"]))
    exponent = draw(st.sampled_from(["", "e", "E"]))
    if exponent or form == "bare point":
        power = draw(st.integers(-400, 400))
        exponent = (
            f"{exponent or 'e'}{draw(st.sampled_from(['', '+'])) if power >= 0 else ''}{power}"
        )
    percent = draw(st.sampled_from(["", "%"]))
    if form == "fraction":
        point = draw(st.integers(0, len(digits)))
        digits = f"{digits[:point] or '0'}.{digits[point:] or '0'}"
    elif form == "point first":
        digits = f".{digits}"
    elif form == "groups":
        first = draw(st.integers(1, 999))
        groups = draw(st.lists(st.integers(0, 999), min_size=1, max_size=6))
        digits = f"{first}{''.join(f',{group:03}' for group in groups)}"
    elif form == "bare point":
        digits = f"{digits}."
    return f"{sign}{digits}{exponent}{percent}"


@given(st.lists(numerals(), min_size=1, max_size=20), st.integers(1, 18))
def test_rounding_is_that_of_decimal(literals: list[str], digits: int) -> None:
    assert_rounded(literals, [digits])


@given(numerals())
def test_every_form_is_found_whole_and_has_the_nearest_value(literal: str) -> None:
    assume(not HASH.fullmatch(literal.strip("+-\u2212%")))
    assert scanned([f"x = {literal}; "], NumeralPolicy(thousands=True, percent=True)) == [[literal]]
    number = exact(literal)
    try:
        nearest = number.numerator / number.denominator  # correctly rounded, by Python's integers
    except OverflowError:
        nearest = math.inf if number > 0 else -math.inf
    value = parsed([literal])[0]
    assert value == nearest == value_of(literal) == float(plain_literal(literal))
    assert math.copysign(1, value) == (-1 if literal[0] in "-\u2212" else 1)


def test_a_carry_is_right_at_every_precision() -> None:
    for digits in range(1, 19):
        nines = "9" * digits
        literals = [
            f"9.{nines[1:]}6",
            f"-{nines}5",
            f"0.000{nines}7",
            f"{nines}.5e-7",
            f"{nines}9%",
        ]
        for literal, result in zip(literals, rounded(literals, digits), strict=True):
            assert result[1] == 10 ** (digits - 1), literal
        assert rounded([nines, f"{nines}4"], digits) == [
            (False, int(nines), 0),
            (False, int(nines), 1),
        ]
        assert_rounded(literals, [digits])
    assert rounded(["9.996"], 3) == [(False, 100, -1)]


def test_ties_go_to_even_and_a_digit_further_on_breaks_them() -> None:
    rng = random.Random(8)
    literals = []
    for digits in range(1, 19):
        for kept in {rng.randrange(10 ** (digits - 1), 10**digits) for _ in range(20)}:
            zeros = "0" * rng.randrange(30)
            literals += [f"{kept}5", f"{kept}5{zeros}", f"{kept}.5{zeros}1", f"{kept}4{'9' * 30}"]
            literals += [f"0.{zeros}{kept}5e{rng.randrange(-20, 20)}", f"−{kept}.5{zeros}%"]
    assert_rounded(literals)
    assert rounded(["0.1425", "-0.1435", "0.14350000000000001", "2.5", "3.5"], 3)[:3] == [
        (False, 142, -3),
        (True, 144, -3),
        (False, 144, -3),
    ]
    assert rounded(["2.5", "3.5"], 1) == [(False, 2, 0), (False, 4, 0)]


def test_long_literals_zeros_and_signs_round_exactly() -> None:
    literals = [
        *random_long_digits(np.random.default_rng(9), 300),
        *["0", "-0", "+0", "0.000", "-0e5", "000", "0%", "-0,000", "−0.0"],
        *["007", "+5", "−5", "1,234,567.5", "-12,345%", "5.e3", ".5", "-.05e-300", "1e400"],
        *[f"0.{'0' * 500}{'12345' * 100}", f"{'12345' * 100}{'0' * 500}", f"{'9' * 1500}.5"],
    ]
    assert_rounded(literals)


def test_exponents_beyond_all_bounds_round_as_a_thousand_million() -> None:
    literals = ["1.26e" + "9" * 30, "1.26e-" + "9" * 30, "5e" + "9" * 5_000 + "%", "1e999999999%"]
    for digits in (1, 2, 18):
        assert rounded(literals, digits) == [round_literal(literal, digits) for literal in literals]
    assert rounded(literals[:2], 2) == [(False, 13, 10**9 - 1), (False, 13, -(10**9) - 1)]
    assert parsed(literals).tolist() == [math.inf, 0.0, math.inf, math.inf]
    assert [value_of(literal) for literal in literals] == [math.inf, 0.0, math.inf, math.inf]


@each("digits", [0, -1, 19])
def test_a_number_of_digits_that_does_not_fit_is_refused(digits: int, says: Says) -> None:
    with says.raises(ValueError, f"got {digits}", "1 to 18"):
        rounded(["1"], digits)


# --- columns of numbers ------------------------------------------------------------------------


def written(column: Numerals) -> list[str]:
    return [column.literals.at(n) for n in range(len(column))]


@given(st.lists(st.floats()))
def test_without_literals_the_repr_of_a_value_is_its_literal(values: list[float]) -> None:
    column = Numerals(np.array(values, np.float64))
    assert len(column) == len(values)
    assert written(column) == [repr(value) for value in values]
    finite = [value for value in values if math.isfinite(value)]
    assert parsed([repr(value) for value in finite]).tolist() == finite


@given(st.lists(numerals()))
def test_literals_come_back_as_written_with_their_values(literals: list[str]) -> None:
    column = Numerals.of_literals(literals)
    assert written(column) == literals
    bits = column.values.view(np.uint64)
    assert bits.tolist() == parsed(literals).view(np.uint64).tolist()


def test_literals_that_are_no_digits_have_mantissa_zero() -> None:
    column = Numerals.of_literals(["nan", "inf", "-inf"])
    assert np.isnan(column.values[0]) and column.values[1:].tolist() == [math.inf, -math.inf]
    assert column.rounded(3).mantissa.tolist() == [0, 0, 0]
    assert [part.tolist() for part in column.out_of_float64()] == [[False] * 3] * 2
    with pytest.raises(ValueError, match="could not convert"):
        Numerals.of_literals(["five"])


def test_out_of_float64_names_literals_whose_value_is_infinite_or_zero() -> None:
    literals = ["1e400", "-1e400", "1e-400", "-1e-400%", "0", "-0e9", "1e308", "5e-324", "nan"]
    above, below = Numerals.of_literals(literals).out_of_float64()
    assert [literals[n] for n in np.flatnonzero(above)] == ["1e400", "-1e400"]
    assert [literals[n] for n in np.flatnonzero(below)] == ["1e-400", "-1e-400%"]
    above, below = Numerals(np.array([math.inf, 0.0, math.nan, 1.0])).out_of_float64()
    assert not above.any() and not below.any()


def test_other_values_become_what_is_written_but_what_never_fitted_stays() -> None:
    source = Numerals.of_literals(["1e400", "-1e400", "1e-400", "7.0", "inf", "0.1435", "0"])
    column = source.with_values(source.values / 10)
    tenth = repr(0.1435 / 10)
    assert written(column) == ["1e400", "-1e400", "1e-400", "0.7", "inf", tenth, "0.0"]
    assert written(source)[3] == "7.0"
    above, below = column.out_of_float64()
    assert np.flatnonzero(above).tolist() == [0, 1]
    assert np.flatnonzero(below).tolist() == [2]
    assert column.rounded(1).mantissa.tolist() == [1, 1, 1, 7, 0, 1, 0]


def test_finite_numbers_whose_other_values_do_not_fit_count_as_out_of_range() -> None:
    source = Numerals.of_literals(["1e308", "-1e308", "1", "inf", "nan"])
    with np.errstate(over="ignore"):
        column = source.with_values(source.values * 10)
    assert written(column) == ["1e400", "-1e400", "10.0", "inf", "nan"]
    above, below = column.out_of_float64()
    assert np.flatnonzero(above).tolist() == [0, 1]
    assert not below.any()


def test_values_of_kernels_and_of_python_agree_bit_for_bit_on_zeros() -> None:
    assert [struct.pack("<d", value) for value in parsed(["-0", "0", "-0e5", "−0.0%", "+0"])] == [
        struct.pack("<d", value) for value in (-0.0, 0.0, -0.0, -0.0, 0.0)
    ]


# --- real data ---------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.skipif(not ERA5.exists(), reason=f"the real weather data are not at {ERA5}")
def test_real_weather_data_have_their_537_zeros_and_3_2_percent_of_ties() -> None:
    with ERA5.open(encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    found = [
        literal for row in scanned([r["text"] for r in rows], NumeralPolicy()) for literal in row
    ]
    assert_same_bits([literal for literal in found if literal[0] != "-"])
    values = parsed(found)
    assert values.tolist() == [float(literal) for literal in found]
    assert int((values == 0).sum()) == 537

    distinct = sorted(set(found))
    expected = {literal: rounded_by_decimal(literal, 3) for literal in distinct}
    assert dict(zip(distinct, rounded(distinct, 3), strict=True)) == expected
    # The results of rounding the float64 instead of the literal.
    of_float = {
        literal: rounded_by_decimal(str(Decimal(float(literal))), 3) for literal in distinct
    }
    differ = {literal for literal in distinct if of_float[literal] != expected[literal]}
    share = sum(literal in differ for literal in found) / len(found)
    print(f"{len(found)} numbers, {share:.2%} round differently as a float64")
    assert "-0.1435" in differ
    assert 0.031 < share < 0.033


@each(
    ("literal", "unit"),
    [
        ("42", 1.0),
        ("-60.20", 0.01),
        ("5.", 1.0),
        (".5", 0.1),
        ("1.5e3", 100.0),
        ("1.5E-3", 0.0001),
        ("1,234.5%", 0.001),
        ("\u22127", 1.0),
        ("1e400", math.inf),
        ("1e-400", 0.0),
    ],
)
def test_the_resolution_is_a_unit_of_the_last_written_digit(literal: str, unit: float) -> None:
    assert resolution(literal) == unit


@each("literal", ["nan", "inf", "-inf", "", "."])
def test_what_has_no_digits_has_no_resolution(literal: str, says: Says) -> None:
    with says.raises(ValueError, repr(literal)):
        resolution(literal)
