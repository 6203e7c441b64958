"""Streaming statistics and samples match NumPy on all of the data, however it is divided."""

import math
from collections import Counter
from dataclasses import astuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.analysis.profiling import field_statistics as tallies
from numtok.analysis.profiling.field_statistics import Distinct, NumberStatistics
from numtok.analysis.profiling.unit import Counted
from numtok.encoding.number_sample import ROWS_KEPT, Sample
from numtok.encoding.row_keys import KEPT
from tests.cases import case
from tests.counted import count, figures, labels, tally
from tests.encoding.test_fields import divided

_LITERALS = st.one_of(
    st.integers(-(10**22), 10**22).map(str),
    st.integers(-20, 20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=2).map(str),
    st.sampled_from(["0", "-0", "0.0", "1200", "0.0120", "1e400", "-1e-400", "5e-324"]),
)
_ROWS = st.lists(st.lists(_LITERALS, min_size=1, max_size=6), min_size=1, max_size=12)
_ONE_FIELD = "[{}, 0, 0, 0, 0, 0, 0, 0, 0]"  # too long to be a tuple


def rows_of(found: list[list[str]]) -> list[str]:
    """Return each row as a list too long to be a tuple, so that all numbers are in one field."""
    return [_ONE_FIELD.format(", ".join(row)) for row in found]


def digits_of(literal: str) -> int:
    """Return the number of significant digits, without zeros at either end; 20 if more than 19."""
    _, digits, _ = Decimal(literal).as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    return 20 if len(written) > 19 and written[19:].strip("0") else len(written.rstrip("0"))


@pytest.mark.integration
@given(_ROWS, st.data())
def test_statistics_are_those_of_all_numbers(
    literals: list[list[str]], data: st.DataObject
) -> None:
    rows = rows_of(literals)
    found = tally(count(divided(data, rows)))
    every = [literal for row in literals for literal in row] + ["0"] * 8 * len(rows)
    values = np.array([float(literal) for literal in every])
    exact = [Decimal(literal) for literal in every]
    held = np.isfinite(values) & ~((values == 0) & np.array([one != 0 for one in exact]))
    assert found.numbers == len(every)
    assert found.zero == sum(one == 0 for one in exact)
    assert found.negative == sum(one < 0 for one in exact)
    assert found.outside == (~held).sum()
    short = [one for one, text in zip(exact, every, strict=True) if digits_of(text) < 20]
    whole = sum(one == one.to_integral_value() for one in short if abs(one) < Decimal("1e390"))
    assert found.integer == whole + sum(one > Decimal("1e390") for one in short)

    moments = found.moments
    assert (moments.low, moments.high) == (values[held].min(), values[held].max())
    size = np.abs(values[held]).max()
    mean = float(sum(map(Fraction, values[held].tolist())) / int(held.sum()))
    assert math.isclose(moments.mean, mean, rel_tol=1e-9, abs_tol=1e-12 * size + 1e-300)
    if size < 1e150:  # squares of larger ones overflow float64
        assert math.isclose(
            moments.deviation, values[held].std(), rel_tol=1e-6, abs_tol=1e-7 * size
        )

    assert found.digits.tolist() == _counted([digits_of(one) for one in every if Decimal(one)], 21)
    nonzero = np.abs(values[held & (values != 0)])
    if len(nonzero):
        assert found.least == nonzero.min()
        assert found.most == nonzero.max()
    decades = [min(max(one.adjusted() + 80, 0), 159) for one in exact if one]
    assert found.decades.tolist() == _counted(decades, 160)
    assert dict(zip(found.distinct.values, found.distinct.counts, strict=True)) == Counter(
        values.tolist()
    )


def _counted(sizes: list[int], width: int) -> list[int]:
    found: list[int] = np.bincount(np.array(sizes, np.int64), minlength=width).tolist()
    return found


def test_digits_decimals_and_decades_are_of_the_literal() -> None:
    for literal, digits, decimals, decade in [
        ("1200", 2, 0, 3),
        ("0.0120", 2, 4, -2),
        ("6.30", 2, 2, 0),
        ("-101325", 6, 0, 5),
        ("1.5e-7", 2, 8, -7),
        ("15e3", 2, 0, 4),
        ("0.1234567890123456789", 19, 19, -1),
        ("12345678901234567890123", 20, 0, 22),
        ("1e-90", 1, 20, -80),
        ("1e90", 1, 0, 79),
    ]:
        with case(literal, digits, decimals, decade):
            found = tally(count([[[f"[{literal}]"]]]))
            assert np.flatnonzero(found.digits).tolist() == [digits]
            assert np.flatnonzero(found.decimals).tolist() == [decimals]
            assert np.flatnonzero(found.decades).tolist() == [decade - tallies.FIRST_DECADE]


def many(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", parts: int) -> Counted:
    """Count values in rows of ten, all in one field, in ``parts`` units of two batches."""
    rows = [f"[{', '.join(map(repr, row))}]" for row in values.reshape(-1, 10).tolist()]
    size = len(rows) // parts
    units = [rows[k * size : (k + 1) * size] for k in range(parts)]
    return count([[unit[: size // 3], unit[size // 3 :]] for unit in units])


def test_many_distinct_values_are_estimated_the_same_in_any_division() -> None:
    generator = np.random.default_rng(1)
    values = generator.normal(5.0, 2.0, 60_000)
    whole, divided = many(values, 1), many(values, 3)
    one, other = tally(whole), tally(divided)
    assert not one.distinct.exact
    assert abs(one.distinct.number - 60_000) < 0.1 * 60_000
    for mine, theirs in zip(
        one.distinct.__dict__.values(), other.distinct.__dict__.values(), strict=True
    ):
        assert np.array_equal(mine, theirs)
    exact = (*tallies._SUMMED, "before", "least", "most")
    assert [getattr(one, name) for name in exact] == [getattr(other, name) for name in exact]
    assert one.digits.tolist() == other.digits.tolist()
    assert np.allclose(astuple(one.moments), astuple(other.moments), rtol=1e-12)
    assert math.isclose(one.moments.mean, values.mean(), rel_tol=1e-12)
    assert math.isclose(one.moments.deviation, values.std(), rel_tol=1e-12)


def test_counts_of_the_values_that_are_kept_are_complete() -> None:
    generator = np.random.default_rng(2)
    values = generator.integers(0, 3000, 60_000).astype(np.float64)
    found = tally(many(values, 3)).distinct
    assert len(found.hashes) == KEPT
    expected = Counter(values.tolist())
    assert all(
        expected[value] == times
        for value, times in zip(found.values.tolist(), found.counts.tolist(), strict=True)
    )


@given(st.lists(st.floats(allow_nan=False).map(lambda value: value + 0.0), min_size=1))
def test_values_come_back_from_their_hashes(values: list[float]) -> None:
    held = [value for value in values if math.isfinite(value)]
    rows = [f"[{', '.join([*map(repr, held), *['1'] * 9])}]"]
    found = tally(count([[rows]])).distinct
    assert sorted(found.values.tolist()) == sorted({*held, 1.0})


def test_no_value_is_the_neutral_element() -> None:
    nothing = Distinct(np.empty(0, np.uint64), np.empty(0, np.int64))
    some = tally(count([[["[1, 2, 2]"] * 3, ["[3]"]]])).distinct
    both = nothing.merged(some)
    assert both.hashes.tolist() == some.hashes.tolist()
    assert both.counts.tolist() == some.counts.tolist()
    assert (nothing.number, nothing.exact) == (0, True)


def written(sample: Sample) -> list[str]:
    return [sample.literals.at(k) for k in range(len(sample))]


# --- samples -----------------------------------------------------------------------------------


def test_a_sample_of_few_numbers_is_all_of_them() -> None:
    rows = ["[1.50, 2]", "[1.50, 2]", "[3, 4]"]
    (first, second) = figures(count([[rows]])).values()
    assert (first.sampled, first.quartiles) == (3, (1.5, 1.5, 3.0))
    assert (second.common, second.common_share, second.common_exact) == (2.0, 2 / 3, True)
    sample = count([[rows[:1]], [rows[1:]]]).sample
    assert sorted(written(sample)) == ["1.50", "1.50", "2", "2", "3", "4"]
    assert sample.weights.tolist() == [1] * 6


def test_equal_rows_of_one_id_are_in_a_sample_together() -> None:
    rows = ["[1.50, 2]", "[1.50, 2]", "[3, 4]"]
    sample = count([[rows[:1]], [rows[1:]]], same_ids=True).sample
    assert sorted(written(sample)) == ["1.50", "2", "3", "4"]
    assert sorted(sample.weights.tolist()) == [1, 1, 2, 2]


def test_rows_of_one_id_that_differ_in_sign_or_exponent_are_in_a_sample_apart() -> None:
    rows = ["[7e-13]", "[7e-12]", "[-7e-13]", "[+7e-13]", "[700000]", "[7e-13]"]
    sample = count([[rows]], same_ids=True).sample
    assert sorted(written(sample)) == sorted(rows[k][1:-1] for k in range(5))
    assert sorted(sample.weights.tolist()) == [1, 1, 1, 1, 2]


def test_a_sample_is_the_same_in_any_division_and_like_the_whole() -> None:
    generator = np.random.default_rng(3)
    values = generator.normal(0.0, 1.0, 60_000).round(6)
    one, other = many(values, 1).sample, many(values, 3).sample
    assert len(one) == KEPT
    assert one.hashes.tolist() == other.hashes.tolist()
    literals = written(one)
    assert literals == written(other)
    drawn = np.array([float(literal) for literal in literals])
    # The mean and standard deviation of 1,024 samples have standard errors of 0.031 and 0.022.
    assert abs(drawn.mean()) < 0.1
    assert abs(drawn.std() - 1) < 0.08
    assert set(literals) <= {repr(value) for value in values.tolist()}


@pytest.mark.integration
def test_a_sample_of_many_equal_rows_of_one_id_is_complete() -> None:
    rows = [f'{{"a": {k}, "b": [{k}.5, 1, 2, 3, 4, 5, 6, 7, 8]}}' for k in range(10)] * 2000
    rows += [f'{{"c": {k}}}' for k in range(20_000)]
    found = count([[rows]], same_ids=True)
    names = {label: node for node, label in labels(found).items()}
    few, many = found.sample.at(names["a"]), found.sample.at(names["c"])
    assert sorted(written(few)) == [str(k) for k in range(10)]
    assert few.weights.tolist() == [2000] * 10
    assert len(found.sample.at(names["b[]"])) == 90
    assert len(many) == KEPT
    assert many.weights.tolist() == [1] * KEPT
    apart = count([[rows[k::7]] for k in range(7)], same_ids=True).sample
    assert sorted(apart.hashes.tolist()) == sorted(found.sample.hashes.tolist())


def test_a_value_that_most_rows_have_is_as_frequent_in_the_sample() -> None:
    rows = [f"[{k}.25]" if k % 5 < 2 else "[0]" for k in range(30_000)]
    (field,) = figures(count([[rows]])).values()
    assert (field.zero, field.common, field.common_exact) == (0.6, 0.0, False)
    assert abs(field.common_share - 0.6) < 3.5 * 0.0153  # the standard error of 1,024 samples
    assert field.quartiles is not None
    assert field.quartiles[:2] == (0.0, 0.0)


def test_a_number_too_long_for_the_sample_is_counted_all_the_same() -> None:
    found = count([[["[" + "7" * 2000 + "]", "[5]"]]])
    assert tally(found).numbers == 2
    assert written(found.sample) == ["5"]


def test_rows_that_have_a_field_are_counted_exactly_while_they_are_few() -> None:
    rows = ['{"a": [1, 2]}', '{"a": [3]}', '{"b": 4}', '{"b": 4}', "{}", "none"]
    found = figures(count([[rows[:2]], [rows[2:]]]))
    assert {name: (field.rows, field.rows_exact) for name, field in found.items()} == {
        "a[]": (2, True),  # not 3: two of its numbers are in the first row
        "b": (2, True),
    }


def test_rows_that_have_a_field_of_its_own_are_counted_exactly_however_many() -> None:
    rows = [
        f'{{"a": {k}, "b": {{"c": [{k}, {k}]}}}}' if k % 4 else f'["{k}", 1]' for k in range(8000)
    ]
    rows[:2] = ['{"rare": 1, "z": "1 2 3"}', '{"rare": 2}']
    for units in ([[rows]], [[rows[:777]], [rows[777:3000], rows[3000:]]]):
        found = figures(count(units))
        assert {name: (field.rows, field.rows_exact) for name, field in found.items()} == {
            "[0]": (1999, True), "[1]": (1999, True), "a": (5999, True), "b.c[0]": (5999, True),
            "b.c[1]": (5999, True), "rare": (2, True), "z": (1, True),
        }  # fmt: skip
    texts = [f"it was {k} and {k}, or {k}" if k % 3 else f"it was {k}" for k in range(6000)]
    found = figures(count([[texts[:500]], [texts[500:]]]))
    assert [(field.rows, field.rows_exact) for field in found.values()] == [
        (4000, True), (4000, True), (4000, True), (2000, True),
    ]  # fmt: skip


def test_rows_that_have_a_field_are_at_least_one_and_no_more_than_its_numbers() -> None:
    rows = [f'{{"a": [1, {k}], "rare": []}}' for k in range(4000)] + [
        '{"rare": [1]}',
        '{"rare": [1, 2]}',
    ]
    field = figures(count([[rows]]))["rare[]"]
    assert (field.numbers, field.rows_exact) == (3, False)
    assert 1 <= field.rows <= 3


def test_rows_that_have_a_field_are_estimated_where_they_are_many() -> None:
    rows = [
        f'{{"a": [{k}, 1], "b": [{k}.5]}}' if k % 4 else f'{{"a": [{k}]}}' for k in range(8000)
    ] + ['{"b": [1, 2]}']
    one, other = (
        figures(count(units)) for units in ([[rows]], [[rows[:777]], [rows[777:3000], rows[3000:]]])
    )
    assert not one["a[]"].rows_exact
    # 512 rows of 8,000: the standard error of the fraction 0.75 is 0.019.
    assert abs(one["b[]"].rows - 6000) < 3.5 * 0.019 * 8000
    assert one["b[]"].rows == other["b[]"].rows
    assert ROWS_KEPT == 512


def test_rows_with_equal_numbers_at_other_keys_are_told_apart() -> None:
    found = figures(count([[['{"a": 5}', '{"b": 5}', '{"a": 5}']]]))
    assert {name: field.rows for name, field in found.items()} == {"a": 2, "b": 1}


def test_statistics_of_nothing_are_empty() -> None:
    found = count([[["", "none"]], [[]]])
    assert (found.tallies, len(found.sample), found.rows, found.rows_with_numbers) == ({}, 0, 2, 0)


def test_the_mean_of_the_largest_numbers_is_a_number() -> None:
    found = tally(count([[["[1.7e308, -1.7e308, 1.7e308, 1.7e308, 0, 0, 0, 0, 0, 0]"]]]))
    assert found.moments.mean == pytest.approx(3.4e307, rel=1e-9)
    (field,) = figures(count([[["[1.7e308, -1.7e308, 1, 1, 0, 0, 0, 0, 0, 0]"]]])).values()
    assert (field.low, field.high, field.deviation) == (-1.7e308, 1.7e308, None)


def test_a_spread_too_small_for_its_squares_is_not_known() -> None:
    (field,) = figures(
        count([[["[1e-320, 2e-310, 1, 1, 1, 1, 1, 1, 1]".replace(" 1", " 3e-315")]]])
    ).values()
    assert (field.low, field.high, field.deviation) == (1e-320, 2e-310, None)
    (field,) = figures(count([[["[1e-320, 1e-320, 1e-320]", "[1e-320]"]]])).values()
    assert field.deviation == 0.0


def test_outside_numbers_leave_the_moments_alone() -> None:
    found: NumberStatistics = tally(count([[["[1e400, 1, 1, 3, 3, 1, 1, 3, 3]"]]]))
    assert (found.moments.count, found.moments.mean, found.moments.deviation) == (8, 2.0, 1.0)
