"""Table columns as network inputs: missing, unknown, constant and huge values."""

import warnings

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.errors import DataError
from numtok.training import features
from numtok.training.features import Features, Inputs
from tests.cases import each
from tests.messages import Says

Rows = list[list[float]]


def numbers(rows: Rows) -> Features:
    return Features(np.array(rows, np.float64), [])


def category(values: list[str | None]) -> Features:
    return Features(np.empty((len(values), 0)), [pa.array(values, pa.string())])


def test_inputs_that_take_too_much_memory_are_refused(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(features, "_LEAST_ROOM", 4000)
    monkeypatch.setattr(features, "memory", lambda: 0)
    few = category([str(k % 10) for k in range(100)])
    assert Inputs.fit(few).of(few).shape == (100, 10)
    many = category([str(k) for k in range(100)])
    with says.raises(DataError, "40,000 bytes", "(4,000)", "numtok table --drop NAME"):
        Inputs.fit(many).of(many)


def test_numbers_are_centred_and_scaled_by_the_train_split_alone() -> None:
    inputs = Inputs.fit(numbers([[1.0], [3.0], [5.0]]))
    again = inputs.of(numbers([[3.0], [9.0]]))
    np.testing.assert_allclose(again, [[0.0], [6 / np.sqrt(8 / 3)]], rtol=1e-6)
    assert again.dtype == np.float32


def test_a_missing_number_becomes_the_mean_and_sets_its_indicator() -> None:
    inputs = Inputs.fit(numbers([[1.0, 4.0], [np.nan, 6.0], [3.0, 8.0]]))
    assert inputs.indicators == [True, False] and inputs.width == 3
    row_inputs = inputs.of(numbers([[np.nan, 6.0], [2.0, np.nan]]))
    # A column without missing training values has no indicator, so a missing value is the mean.
    np.testing.assert_array_equal(row_inputs, [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])


def test_a_category_that_the_train_split_has_not_sets_nothing() -> None:
    inputs = Inputs.fit(category(["b", "a", None, "b"]))
    assert inputs.values == [["a", "b"]]
    row_inputs = inputs.of(category(["a", "c", None, "b"]))
    assert row_inputs.tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    nothing = Inputs.fit(category([None, None]))
    assert nothing.width == 0 and nothing.of(category(["a"])).shape == (1, 0)


@each("value", [0.0, 0.1, -7.3, 1e300, 5e-324])
def test_a_constant_column_only_loses_its_mean(value: float) -> None:
    inputs = Inputs.fit(numbers([[value]] * 7))
    assert inputs.of(numbers([[value]])).tolist() == [[0.0]]
    assert inputs.of(numbers([[value + 2.0]])).tolist() == [[pytest.approx(value + 2.0 - value)]]


def test_an_empty_column_is_an_indicator_that_is_always_set() -> None:
    inputs = Inputs.fit(numbers([[np.nan], [np.nan]]))
    assert inputs.of(numbers([[np.nan], [2.5]])).tolist() == [[0.0, 1.0], [2.5, 0.0]]


# For larger values, the difference of two overflows float64.
anything = st.floats(-8e307, 8e307)


@given(st.lists(anything, min_size=2, max_size=20), anything)
def test_whatever_the_numbers_inputs_are_finite_and_none_is_far_off(
    column: list[float], other: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train = numbers([[value] for value in column])
        inputs = Inputs.fit(train)
        scaled, beyond = inputs.of(train), inputs.of(numbers([[other]]))
    assert np.isfinite(scaled).all() and (np.abs(scaled) <= np.sqrt(len(column)) * 1.001).all()
    assert abs(float(beyond[0, 0])) <= 1e6
    if np.ptp(np.array(column, np.longdouble)) > 1e-6 * np.abs(column).max() > 1e-300:
        assert float(np.square(scaled.astype(np.float64)).mean()) == pytest.approx(1, rel=1e-3)


def test_a_value_far_beyond_the_train_split_does_not_overflow_on_its_way() -> None:
    inputs = Inputs.fit(numbers([[1.0], [2.0]]))
    assert inputs.of(numbers([[1e300], [-1.7e308]])).tolist() == [[1e6], [-1e6]]


def test_the_constants_are_kept_as_they_are() -> None:
    columns = Features(np.array([[0.1, np.nan], [1 / 3, 2.0]]), [pa.array(["x", "é"])])
    inputs = Inputs.fit(columns)
    again = msgspec.json.decode(msgspec.json.encode(inputs), type=Inputs)
    assert again == inputs
    assert again.of(columns).tobytes() == inputs.of(columns).tobytes()


def test_rows_are_taken_in_the_order_asked_for() -> None:
    columns = Features(np.arange(6.0).reshape(3, 2), [pa.array(["a", None, "c"])])
    taken = columns.take(np.array([2, 0, 2]))
    assert taken.numbers.tolist() == [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]
    assert taken.categories[0].to_pylist() == ["c", "a", "c"]
