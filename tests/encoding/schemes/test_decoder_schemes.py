"""nd, ud and hamming, compared with the paper and with exact fractions; their cells."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.encoding.grammar import Grammar, Support
from numtok.encoding.grid import ascending, cells
from numtok.encoding.schemes._radix import exponents_of
from numtok.encoding.schemes.base import SCHEMES, Bounds, Failure, Outcome, Scheme
from numtok.encoding.schemes.hamming import Hamming
from numtok.encoding.schemes.nd import ND
from numtok.encoding.schemes.ud import UD
from numtok.errors import UsageError
from numtok.models.distributions.intervals import Intervals
from numtok.numerals.column import Numerals
from tests.cases import each
from tests.encoding.schemes.test_schemes import read_back, written
from tests.messages import Says

POINTS = ("edge", "centre", "nearest")
BASES = range(2, 37)


def most_digits(base: int) -> int:
    return max(count for count in range(1, 51) if base**count <= 2**50)


bases = st.integers(2, 36)
points = st.sampled_from(POINTS)
nds = bases.flatmap(lambda base: st.builds(ND, st.just(base), st.integers(1, most_digits(base)),
                                           points))  # fmt: skip
uds = bases.flatmap(lambda base: st.builds(UD, st.just(base), st.integers(1, 10),
                                           st.integers(1, most_digits(base)), points))  # fmt: skip
hammings = st.builds(Hamming, st.integers(1, 50), points)
finite = st.floats(allow_nan=False, allow_infinity=False)
SMALL = (
    *("nd,base=2,length=3", "nd,base=3,length=2,point=nearest", "nd,base=10,length=2,point=edge"),
    *("ud,base=2,exponent=2,mantissa=3", "ud,base=3,exponent=1,mantissa=2,point=edge"),
    *("ud,base=10,exponent=1,mantissa=1", "ud,base=4,exponent=2,mantissa=1,point=centre"),
    # Ten binary digits reach 1023, but float64 limits exponents to 1022.
    "ud,base=2,exponent=10,mantissa=1",
)


def encoded(scheme: Scheme, values: list[float]) -> NDArray[np.int64]:
    """Encode numbers that have no literals: int64[n, width]."""
    tokens = scheme.encode(Numerals(np.array(values, np.float64))).tokens
    return tokens.reshape(len(values), -1).astype(np.int64)


def decoded(scheme: Scheme, table: NDArray[np.int64]) -> NDArray[np.float64]:
    """Decode whole numbers: float64[n], NaN if a row is not a number."""
    lengths = np.full(len(table), table.shape[1], np.int32)
    return scheme.decode(table.astype(np.uint32).ravel(), lengths).values


def listed(scheme: Scheme) -> list[tuple[int, ...]]:
    """Return every number of a scheme, in the order of ``ascending``."""
    paths: list[tuple[int, ...]] = [()]
    for _ in range(scheme.tokens_per_number or 0):
        following = [ascending(scheme, path) for path in paths]
        assert all(order is not None for order in following)
        paths = [
            (*path, token)
            for path, order in zip(paths, following, strict=True)
            if order is not None
            for token in order.tolist()
        ]
    return paths


# --- the paper ---------------------------------------------------------------------------------


def test_the_example_of_the_paper_is_cut_off_and_ours_is_rounded() -> None:
    literal = "1.23456789e-222"
    assert written(UD(10, 3, 4, "edge"), literal) == ["+", "-", "2", "2", "2", "1", "2", "3", "4"]
    assert written(UD(10, 3, 4), literal) == ["+", "-", "2", "2", "2", "1", "2", "3", "5"]
    assert read_back(UD(10, 3, 4, "edge"), literal) == "1.234e-222"
    assert read_back(UD(10, 3, 4, "centre"), literal) == "1.2345e-222"
    assert read_back(UD(10, 3, 4), literal) == "1.235e-222"


def test_three_hamming_bits_are_the_list_of_the_paper() -> None:
    scheme = Hamming(3, "edge")
    words = ["".join(written(scheme, repr(cell / 8))) for cell in range(8)]
    assert words == ["000", "001", "010", "100", "011", "101", "110", "111"]


@each("length", [1, 2, 5, 11])
def test_hamming_words_are_sorted_by_their_ones_and_then_their_value(length: int) -> None:
    words = sorted(range(2**length), key=lambda word: (word.bit_count(), word))
    table = np.array([[word >> place & 1 for place in reversed(range(length))] for word in words])
    cells = (np.arange(2**length) + 0.5) / 2**length
    np.testing.assert_array_equal(encoded(Hamming(length), cells.tolist()), table)
    np.testing.assert_array_equal(decoded(Hamming(length), table), cells)


def test_digits_are_those_of_the_expansion_in_the_base() -> None:
    for base, fraction, digits in ((2, 5 / 8, "1 0 1"), (3, 0.5, "1 1 1"), (16, 0.75, "C 0 0")):
        assert " ".join(written(ND(base, 3), repr(fraction))) == digits


@each(
    ("point", "cells", "values"),
    [
        ("edge", [0, 0.25, 0.5, 0.75, 1], [0, 0.25, 0.5, 0.75]),
        ("centre", [0, 0.25, 0.5, 0.75, 1], [0.125, 0.375, 0.625, 0.875]),
        ("nearest", [0, 1 / 6, 3 / 6, 5 / 6, 1], [0, 1 / 3, 2 / 3, 1]),
    ],
)
def test_a_point_says_where_cells_lie_and_what_is_read(
    point: str, cells: list[float], values: list[float]
) -> None:
    scheme = ND(2, 2, point)
    table = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    low, high = scheme.cells(table)
    assert ([*low.tolist(), high[-1]], high[:-1].tolist()) == (cells, cells[1:-1])
    assert decoded(scheme, table).tolist() == values
    np.testing.assert_array_equal(encoded(scheme, cells[:-1]), table)  # edges are in the cell above
    assert written(scheme, "1") == ["1", "1"]


# --- round trips -------------------------------------------------------------------------------


def within(scheme: Scheme, value: float) -> None:
    """Check that a number decodes within the declared error, and that re-encoding is stable."""
    table = encoded(scheme, [value])
    [got] = decoded(scheme, table)
    scale = 1.0 if scheme.error.absolute else abs(value)
    assert abs(got - value) <= (scheme.error.size + 2**-51) * scale
    np.testing.assert_array_equal(encoded(scheme, [got]), table)
    low, high = scheme.interval(tuple(table[0].tolist()))
    assert low <= value <= high and low <= got <= high


@given(st.one_of(nds, hammings), st.floats(0, 1))
def test_a_number_of_the_unit_interval_is_read_back_within_the_error(
    scheme: Scheme, value: float
) -> None:
    within(scheme, value)


@given(uds, st.one_of(finite, st.floats(1e-9, 1e9), st.integers(-(10**6), 10**6).map(float)))
def test_a_number_is_read_back_within_the_error(scheme: UD, value: float) -> None:
    low, high = scheme.bounds
    assume(low <= abs(value) <= high)
    within(scheme, value)


@given(nds.filter(lambda scheme: scheme.base <= 16), st.data())
def test_the_ends_of_cells_are_fractions(scheme: ND, data: st.DataObject) -> None:
    cell = data.draw(st.integers(1, scheme.count - 1))
    shift = Fraction(scheme.point == "nearest", 2)
    end = float((cell - shift) / (scheme.count - 2 * shift))
    digits = [cell // scheme.base**place % scheme.base for place in reversed(range(scheme.length))]
    assert encoded(scheme, [end]).tolist() == [digits]
    assert encoded(scheme, [math.nextafter(end, 0)]).tolist() != [digits]
    assert scheme.interval(tuple(digits)).low == end


def exactly(value: float, base: int, digits: int, point: str) -> tuple[int, int]:
    """Return mantissa and exponent of a positive number, computed with exact fractions."""
    exact, exponent = Fraction(value), 0
    while exact >= Fraction(base) ** (exponent + 1):
        exponent += 1
    while exact < Fraction(base) ** exponent:
        exponent -= 1
    quotient = exact / Fraction(base) ** (exponent - digits + 1)
    mantissa = round(quotient) if point == "nearest" else math.floor(quotient)
    return (
        (base ** (digits - 1), exponent + 1) if mantissa == base**digits else (mantissa, exponent)
    )


@given(
    uds.filter(lambda scheme: scheme.base != 10),
    st.one_of(st.floats(1e-6, 1e9), st.integers(1, 10**7).map(float), st.floats(1e-300, 1e300)),
)
def test_ud_rounds_as_fractions_do(scheme: UD, value: float) -> None:
    mantissa, exponent = exactly(value, scheme.base, scheme.mantissa, scheme.point)
    low, high = scheme.bounds
    assume(exponent in scheme.exponents and low <= value <= high)
    if scheme.point != "nearest":  # floats nearest to the upper end of a cell are in the next
        ends = [Fraction(scheme.base) ** (exponent - scheme.mantissa + 1) * (mantissa + 1)]
        ends += [Fraction(scheme.base) ** (exponent + 1)]
        assume(value not in map(float, ends))
    sign, lowered, *digits = (token - 2 for token in encoded(scheme, [value])[0].tolist())
    kept, size = digits[scheme.exponent :], digits[: scheme.exponent]
    found = [sum(d * scheme.base**k for k, d in enumerate(part[::-1])) for part in (kept, size)]
    assert (sign, found) == (-2, [mantissa, abs(exponent)])
    assert lowered == (-1 if exponent < 0 else -2)


def test_ties_go_to_the_even_mantissa() -> None:
    assert [read_back(UD(2, 3, 2), value) for value in ("2.5", "3.5", "5", "7")] == [
        *("2.0", "4.0", "4.0", "8.0"),
    ]
    assert [read_back(UD(mantissa=3), value) for value in ("0.1435", "0.1445", "1.2350000001")] == [
        *("0.144", "0.144", "1.24"),
    ]


@each("point", ["nearest", "edge"])
@each("base", BASES)
def test_every_power_of_the_base_that_float64_has_is_exact(base: int, point: str) -> None:
    known = exponents_of(base)
    powers = [float(Fraction(base) ** e) for e in range(known.first, known.last + 1)]
    assert powers[0] / base < np.finfo(np.float64).tiny
    assert powers[-1] > np.finfo(np.float64).max / base**2
    for mantissa in (1, 2, most_digits(base)):
        scheme = UD(base, 10, mantissa, point)
        table = encoded(scheme, powers + [-power for power in powers])
        assert table[:, 12:].tolist() == [[3] + [2] * (mantissa - 1)] * len(table)
        assert decoded(scheme, table).tolist() == powers + [-power for power in powers]


def test_what_cannot_be_written_is_named() -> None:
    numbers = ["1.0000001", "1e400", "-1e-300", "-5", "inf", "-inf", "nan", "-0", "1e-400", "1"]
    outcomes = [
        *(Outcome.POSITIVE_OVERFLOW, Outcome.POSITIVE_OVERFLOW, Outcome.NEGATIVE_OVERFLOW),
        *(Outcome.NEGATIVE_OVERFLOW, Outcome.POSITIVE_INFINITY, Outcome.NEGATIVE_INFINITY),
        *(Outcome.NAN, Outcome.NUMBER, Outcome.NUMBER, Outcome.NUMBER),
    ]
    for scheme in (ND(), ND(repeat=2), Hamming()):
        assert scheme.encode(Numerals.of_literals(numbers)).outcomes.tolist() == outcomes
    numbers = ["1e100", "9.99951e99", "9.9994e99", "-1e-100", "9.99951e-100", "0", "-0", "nan"]
    assert [read_back(UD(), number) for number in numbers] == [
        *("overflow", "overflow", "9.999e+99", "underflow", "1e-99", "0.0", "0.0", "nan"),
    ]
    assert read_back(UD(exponent=3), "1e307") == "1e+307"
    assert read_back(UD(exponent=3), "1e308") == "overflow"  # 9.999e308 is beyond float64


# --- cells -------------------------------------------------------------------------------------


@each("spec", SMALL)
def test_cells_in_order_ascend_and_cover_the_line(spec: str) -> None:
    scheme = SCHEMES.build(spec)
    low, high = cells(scheme, np.array(listed(scheme)))
    assert np.isnan(low[-1]) and np.isnan(high[-1])  # NAN
    assert (low[0], high[-2]) == (-math.inf, math.inf)
    np.testing.assert_array_equal(low[1:-1], high[:-2])
    points = low[low == high]
    assert points.tolist() == [-math.inf, *[0.0] * (not scheme.unit_interval), math.inf]


@each("spec", SMALL)
def test_every_number_is_written_in_one_way(spec: str) -> None:
    scheme = SCHEMES.build(spec)
    table = np.array(listed(scheme))
    values = decoded(scheme, table)
    finite = np.isfinite(values)
    assert finite.sum() == len(table) - (5 if scheme.unit_interval else 7)  # extras except ZERO
    np.testing.assert_array_equal(encoded(scheme, values[finite].tolist()), table[finite])
    allowed: list[tuple[int, ...]] = [()]
    for _ in range(table.shape[1]):
        allowed = [
            (*path, token)
            for path in allowed
            for token in np.flatnonzero(scheme.next(path).allowed).tolist()
        ]
    assert sorted(allowed) == sorted(map(tuple, table.tolist()))


@each("spec", SMALL)
def test_the_cell_of_a_prefix_holds_those_of_all_that_begin_so(spec: str) -> None:
    scheme = SCHEMES.build(spec)
    table = np.array(listed(scheme))[:-1]
    low, high = cells(scheme, table)
    for length in range(1, table.shape[1]):
        prefixes, first = np.unique(table[:, :length], axis=0, return_index=True)
        lows, highs = cells(scheme, prefixes)
        np.testing.assert_array_equal(lows, low[first])
        last = len(table) - 1 - np.unique(table[::-1, :length], axis=0, return_index=True)[1]
        np.testing.assert_array_equal(highs, high[last])


@given(uds, finite, finite)
def test_cells_are_in_the_order_of_numbers(scheme: UD, one: float, other: float) -> None:
    table = encoded(scheme, sorted([one, other]))
    low, high = cells(scheme, table)
    assert np.array_equal(table[0], table[1]) or high[0] <= low[1]


def test_cells_of_nothing_are_none() -> None:
    low, high = ND().cells(np.empty((0, 4), np.int64))
    assert low.shape == high.shape == (0,)


@each("spec", ["hamming", "nd,repeat=2", "ud,repeat=3", "p10", "digits"])
def test_a_scheme_whose_prefixes_are_no_intervals_has_no_order(spec: str) -> None:
    assert ascending(SCHEMES.build(spec), ()) is None


def test_negative_numbers_have_their_order_reversed() -> None:
    scheme = UD(4, 1, 2)
    names = scheme.vocabulary()

    def order(*prefix: str) -> list[str]:
        found = ascending(scheme, tuple(names.index(name) for name in prefix))
        assert found is not None
        return [names[token] for token in found.tolist()]

    assert order() == [
        *("-INF", "-OVERFLOW", "-", "-UNDERFLOW", "ZERO", "+UNDERFLOW", "+", "+OVERFLOW", "+INF"),
        "NAN",
    ]
    assert (order("+"), order("-")) == (["-", "+"], ["+", "-"])
    assert (order("+", "+"), order("-", "+")) == (list("0123"), list("3210"))
    assert (order("+", "-"), order("-", "-")) == (list("321"), list("123"))  # -0 is written as +0
    assert (order("+", "+", "1"), order("-", "+", "1")) == (list("123"), list("321"))
    assert order("NAN") == ["NAN"]


@each("spec", ["nd,base=3,length=3", "ud,base=3,exponent=1,mantissa=2"])
def test_the_order_gives_the_distribution_function_digit_by_digit(spec: str) -> None:
    """The mass below a cell is the sum over the tokens that precede its token at each position."""
    scheme = SCHEMES.build(spec)
    support = Support.of(Grammar(scheme))
    logits = np.random.default_rng(0).standard_normal(
        (1, support.paths.shape[1], len(scheme.vocabulary()))
    )
    mass = np.exp(support.log_probabilities(logits)[0])
    distribution = Intervals(
        low=support.low, high=support.high, values=support.values, log_mass=np.log(mass[None])
    )
    for place in range(0, len(mass) - 1, 7):
        path, below, here = tuple(support.paths[place].tolist()), 0.0, 1.0
        for position, token in enumerate(path):
            order = ascending(scheme, path[:position])
            assert order is not None
            shares = np.exp(logits[0, position, order])
            shares /= shares.sum()
            rank = order.tolist().index(token)
            below, here = below + here * shares[:rank].sum(), here * shares[rank]
        assert here == pytest.approx(mass[place], rel=1e-9)
        assert below == pytest.approx(mass[:place].sum(), abs=1e-12)
        if support.low[place] < support.high[place] < math.inf:
            share = (below + here) / (1 - mass[-1])  # conditional on not being NaN
            got = distribution.cdf(support.high[place : place + 1])[0]
            atom = mass[place + 1] / (1 - mass[-1])  # the next cell may be the atom at zero
            zero = support.low[place + 1] == support.high[place + 1]
            assert got == pytest.approx(share + atom * zero, abs=1e-9)


# --- several copies ----------------------------------------------------------------------------


@given(
    st.sampled_from(["nd,base=3,length=4", "hamming,length=5", "ud,base=5,exponent=2,mantissa=3"]),
    st.integers(2, 9),
    st.integers(0, 2**32),
)
def test_a_majority_of_right_tokens_at_each_position_is_enough(
    spec: str, repeat: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    plain, scheme = SCHEMES.build(spec), SCHEMES.build(f"{spec},repeat={repeat}")
    values = [*rng.random(3).tolist(), 7e30, math.nan]
    right, wrong = encoded(plain, values), encoded(plain, [*rng.random(4).tolist(), 0.5])
    width = right.shape[1]
    assert scheme.tokens_per_number == width * repeat
    np.testing.assert_array_equal(encoded(scheme, values), np.tile(right, repeat))
    copies = np.tile(right[:, None], (1, repeat, 1))
    for row in range(len(values)):
        specials = (
            right[row, 0] >= plain.paper_vocabulary_size
            or wrong[row, 0] >= plain.paper_vocabulary_size
        )
        for place in range(width):
            bad = rng.permutation(repeat)[: (repeat - 1) // 2]
            if specials:  # an extra repeats one token; otherwise, the copy is malformed
                copies[row, : (repeat - 1) // 2] = wrong[row]
            elif not isinstance(plain, UD) or place >= 4:  # exponent digits depend on each other
                copies[row, bad, place] = wrong[row, place]
    table = copies.reshape(len(values), -1)
    np.testing.assert_array_equal(decoded(scheme, table), decoded(plain, right))
    np.testing.assert_array_equal(cells(scheme, table), cells(plain, right))


def test_a_tie_goes_to_the_copy_that_was_written_first() -> None:
    table = np.array([[1, 2, 3, 4], [1, 2, 1, 4], [3, 4, 1, 2]])
    assert decoded(ND(length=2, point="edge", repeat=2), table).tolist() == [0.12, 0.12, 0.34]


def test_a_copy_that_is_no_number_makes_the_whole_malformed() -> None:
    scheme = ND(length=2, repeat=3)
    table = np.array([[1, 2, 1, 2, 1, 10], [1, 2, 10, 10, 1, 2], [1, 2, 1, 2, 1, 99]])
    found = scheme.decode(table.astype(np.uint32).ravel(), np.full(3, 6, np.int32))
    expected = [Failure.MALFORMED, Failure.NONE, Failure.MALFORMED]
    assert found.failures.tolist() == expected


def test_an_exponent_that_only_the_votes_make_is_an_overflow_or_an_underflow() -> None:
    scheme = UD(10, 3, 1, repeat=5)
    names = scheme.vocabulary()

    def special(name: str) -> tuple[int, ...]:
        return (names.index(name),) * 30

    def read(*exponents: str) -> tuple[float | Failure, Bounds]:
        copies = " ".join(f"+ {' '.join(exponent)} 1" for exponent in exponents)
        tokens = tuple(names.index(name) for name in copies.split())
        found = scheme.decode(np.array(tokens, np.uint32), np.array([30], np.int32))
        failure = Failure(found.failures[0])
        return failure or float(found.values[0]), scheme.interval(tokens)

    # Votes per digit: 3 (twice), 9 (three times), 0.
    differing = ("300", "301", "290", "190", "090")
    assert read(*("+" + one for one in differing)) == (
        *(Failure.OVERFLOW, scheme.interval(special("+OVERFLOW"))),
    )
    assert read(*("-" + one for one in differing)) == (
        *(Failure.UNDERFLOW, scheme.interval(special("+UNDERFLOW"))),
    )
    assert read("-001", "-100", "+000", "-010", "+307") == (1.0, Bounds(0.95, 1.5))  # exponent -0
    assert read("+390", "+300", "+300", "+300", "+300")[0] == Failure.MALFORMED


def test_several_copies_have_no_exact_distribution(says: Says) -> None:
    with says.raises(UsageError, "nd,base=2,length=2,repeat=2", "Use samples"):
        Support.of(Grammar(SCHEMES.build("nd,base=2,length=2,repeat=2")))


# --- settings ----------------------------------------------------------------------------------


@each(
    ("spec", "parts"),
    [
        ("nd,base=1", ("base", "got 1", "2 to 36")),
        ("nd,length=0", ("length", "got 0", "1 to 15")),
        ("nd,base=2,length=51", ("length", "got 51", "1 to 50")),
        ("nd,repeat=0", ("repeat", "got 0", "1 to 15")),
        ("nd,point=center", ("'center'", "'centre'")),
        ("ud,base=37", ("base", "got 37", "2 to 36")),
        ("ud,exponent=0", ("exponent", "got 0", "1 to 10")),
        ("ud,mantissa=16", ("mantissa", "got 16", "1 to 15")),
        ("hamming,length=51", ("length", "got 51", "1 to 50")),
        ("hamming,base=2", ("'base'", "known")),
    ],
)
def test_a_setting_that_is_not_possible_is_refused(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        SCHEMES.build(spec)


def test_vocabularies_are_signs_digits_and_extras() -> None:
    assert ND(4).vocabulary() == (*"0123", "NAN", "+INF", "-INF", "+OVERFLOW", "-OVERFLOW")
    assert UD(16).vocabulary()[:18] == (*"+-", *"0123456789ABCDEF")
    assert [
        (one.paper_vocabulary_size, one.tokens_per_number) for one in (ND(), UD(), Hamming())
    ] == [
        *((10, 4), (12, 8), (2, 8)),
    ]
    bounds = [one.bounds for one in (UD(), UD(point="edge"), UD(2, 1, 3))]
    assert bounds == [(1e-99, 9.999e99), (1e-99, math.nextafter(1e100, 0)), (0.5, 3.5)]
    assert all(low < high for low, high in pairwise(sorted(UD(3).bounds)))
