"""Baselines of a report: predictions without a model."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import util
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import ensemble
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.normalizers.base import NORMALIZERS, Moments, fit
from numtok.encoding.schemes.base import SCHEMES, Failure
from numtok.encoding.texts import Texts
from numtok.evaluation import baselines, target_features
from numtok.evaluation.predict import AUTOREGRESSIVE, LEFT_TO_RIGHT, PARALLEL
from numtok.evaluation.queries import queries_of
from numtok.evaluation.rows import Rows
from numtok.evaluation.seen_values import SeenValues
from numtok.evaluation.target_features import AnchoredRows
from numtok.store.artifact import Artifact
from tests.cases import case
from tests.fakemodels import codec, samples

pytestmark = pytest.mark.integration

TRAIN = [f"{a} and {37 * a % 41} give {3 * a - 2 * (37 * a % 41) + 0.5}" for a in range(40)]
TEST = ["4 and 7 give 2.5", "100 and 1 give 300", "2 and 8 give -9.123456"]
EVERY = 3  # numbers of each row
Values = NDArray[np.float64]


@pytest.fixture(autouse=True)
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one thread for gradient boosting: several are slow on a busy machine."""
    monkeypatch.setenv("NUMTOK_THREADS", "1")


@pytest.fixture(autouse=True)
def nothing_is_boosted_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "_boosted", {})


def rows(scheme: str, texts: Sequence[str], *places: int) -> EncodedSplit:
    """Encode texts whose targets are the numbers at the indices ``places`` of each."""
    targets = [EVERY * row + index for row in range(len(texts)) for index in places]
    return samples(scheme, texts, targets=targets)


def baselines_of(
    test: EncodedSplit,
    train: EncodedSplit | None = None,
    mean: float | None = None,
    *,
    of: Codec | None = None,
    one_by_one: bool = False,
    fill: str = PARALLEL,
) -> dict[str, NDArray[np.float64]]:
    queries = queries_of(test, one_by_one)
    built = baselines.baselines(
        of or codec("p1000"), test, queries, train=train, train_mean=mean, fill=fill
    )
    predictions = dict(built)
    if train is not None:
        fitted = baselines.fitted_baselines(by_order(train), by_order(test), queries)
        predictions |= fitted.values
    return predictions


def by_order(split: EncodedSplit) -> AnchoredRows:
    """Put the k-th number of each row that is not a target into field k."""
    fields = np.full(len(split.numbers), -1)
    for row in range(len(split)):
        numbers = np.arange(*split.number_rows[row : row + 2])
        more = np.setdiff1d(numbers, split.targets)
        fields[more] = np.arange(len(more))
    chosen = Rows(cast(Artifact, None), "", split, np.arange(len(split)))  # nothing is read
    return AnchoredRows(chosen, fields)


def reasons(test: EncodedSplit, train: EncodedSplit) -> list[str]:
    queries = queries_of(test, False)
    return baselines.fitted_baselines(by_order(train), by_order(test), queries).notes


def test_values_of_a_target_that_was_not_learnt_are_none_and_those_nearby_all_numbers() -> None:
    """A baseline uses whatever numbers the train split has."""
    train = rows("xval", ["3 1 2", "5 4 2"], 2)
    assert SeenValues.of(train, "other") is None
    reference, nearby = SeenValues.of(train, "number"), SeenValues.nearby(train, "other")
    assert reference is not None and nearby is not None
    assert (reference.values.tolist(), nearby.values.tolist()) == ([2], [1, 2, 3, 4, 5])


# --- quantization ------------------------------------------------------------------------------


def test_quantization_is_what_the_scheme_makes_of_the_truth() -> None:
    """Encoding and decoding each true value separately gives the same result, bit for bit."""
    for normalize in ["none", "scale:5", "affine", "signed-log"]:
        for scheme in list(SCHEMES):
            with case(normalize, scheme):
                texts = ["1.23456 2 3", "-0.00098765 0 4.44449", "7 1e30 -1e-30"]
                numbers = np.array([float(word) for text in texts for word in text.split()])
                normalizer = fit(NORMALIZERS.build(normalize), Moments.of(numbers))
                row = replace(codec(scheme), normalizer=normalizer)
                test = encoded(row, texts)
                wanted = np.array([1, 3, 5, 7, 8])
                names = pa.array(["answer"] * len(wanted))
                some = replace(test, targets=wanted, target_row=wanted // EVERY, target_name=names)
                predictions = baselines_of(test, of=row)["quantization"]
                np.testing.assert_array_equal(
                    baselines_of(some, of=row)["quantization"], predictions[wanted]
                )
                for number, value in enumerate(numbers.tolist()):
                    alone = encoded(row, [repr(value)])
                    tokens = alone.tokens.astype(np.uint32) - np.uint32(row.number_first)
                    decoded = row.decode_numbers(tokens, alone.number_length, alone.channel)
                    expected = decoded.values[0] if decoded.failures[0] == Failure.NONE else np.nan
                    np.testing.assert_array_equal(predictions[number], expected)


def encoded(row: Codec, texts: Sequence[str]) -> EncodedSplit:
    """Encode texts with a normalizing codec."""
    column = Texts.of(pa.array(texts, pa.string()))
    built = row.encode(column, row.find(column), None)
    plain = samples("digits", texts)
    return replace(
        plain,
        tokens=built.tokens,
        token_rows=built.token_rows.astype(np.int64),
        number_start=built.number_start,
        number_length=built.number_length,
        channel=built.channel,
    )


def test_quantization_by_hand() -> None:
    predictions = baselines_of(samples("p1000", ["1.23456 and -0.0019996 and 1e20 and 0"]))[
        "quantization"
    ]
    np.testing.assert_array_equal(predictions, [1.23, -0.002, np.nan, 0.0])  # 1e20 overflows


# --- values seen in training -------------------------------------------------------------------


def test_without_a_train_split_there_are_no_baselines_that_need_one() -> None:
    test = rows("p1000", TEST, 2)
    assert list(baselines_of(test)) == ["quantization"]
    predictions = baselines_of(test, mean=1.25)
    assert list(predictions) == ["quantization", "mean"]
    assert predictions["mean"].tolist() == [1.25] * 3


@given(st.data())
def test_nearest_is_the_nearest_value_seen(data: st.DataObject) -> None:
    number = st.integers(-9, 9).map(lambda n: n / 2) | st.sampled_from(["1e400", "1e300"])
    train_values = data.draw(st.lists(number, min_size=1, max_size=12))
    queries = data.draw(st.lists(number, min_size=1, max_size=12))
    test, train = (
        samples("xval", [str(row) for row in values]) for values in (queries, train_values)
    )
    reference = [float(value) for value in train_values if np.isfinite(float(value))]
    predictions = baselines_of(test, train)["nearest"]
    for value, near in zip(map(float, queries), predictions.tolist(), strict=True):
        if not reference:
            assert np.isnan(near)
        elif np.isfinite(value):
            assert near in reference
            assert abs(near - value) == min(abs(row - value) for row in reference)


def test_nearest_knows_targets_alone() -> None:
    """The 4 of a test row occurs in the train split, but never as a target."""
    test = samples("p1000", ["1 and 4 give 4"], targets=[2])
    train = samples("p1000", ["4 and 4 give 9", "4 and 4 give -1"], targets=[2, 5])
    assert baselines_of(test, train)["nearest"].tolist() == [9.0]


# --- the mean by the number of tokens -----------------------------------------------------------


def test_the_mean_by_the_number_of_tokens_by_hand() -> None:
    # Targets of one character: 7 and 5; of three: 123 and 2.5. None has two, so the mean of all
    # targets is used.
    train = rows("digits", ["1 2 7", "33 4 5", "5 6 123", "7 8 2.5", "9 9 1e400"], 2)
    test = rows("digits", ["1 1 3", "1 1 44", "1 1 0.1", "1 1 99999999"], 2)
    expected = [6.0, 137.5 / 4, 62.75, 137.5 / 4]
    for fill in (PARALLEL, LEFT_TO_RIGHT):  # both see all masks
        predictions = baselines_of(test, train, of=codec("digits"), fill=fill)
        assert predictions["length"].tolist() == expected


def test_lengths_are_told_by_masks_and_where_they_differ_alone() -> None:
    test, train, of = rows("digits", TEST, 2), rows("digits", TRAIN, 2), codec("digits")
    assert list(baselines_of(test, train, of=of))[:3] == ["quantization", "median", "length"]
    assert "length" not in baselines_of(test, train, of=of, fill=AUTOREGRESSIVE)
    assert "length" not in baselines_of(test, of=of)
    test, train = rows("p1000", TEST, 2), rows("p1000", TRAIN, 2)
    assert "length" not in baselines_of(test, train)


def test_the_median_is_that_of_the_target_or_of_all_targets() -> None:
    texts = ["1 2 10", "3 4 20", "55 6 70"]
    both = rows("digits", texts, 0, 2)
    train = replace(both, target_name=pa.array(["a", "b"] * 3))
    assert baselines_of(train, train)["median"].tolist() == [3, 20] * 3
    other = replace(both, target_name=pa.array(["a", "c"] * 3))
    assert baselines_of(other, train)["median"].tolist() == [3, 15] * 3
    in_turn = samples("digits", ["8 99"])
    assert baselines_of(in_turn, samples("digits", ["1 2 9"]))["median"].tolist() == [2, 2]


def test_lengths_of_each_target_tell_of_its_own_values() -> None:
    texts = ["1 2 10", "3 4 20", "55 6 7"]
    both, names = rows("digits", texts, 0, 2), ["a", "b"] * 3
    train = replace(both, target_name=pa.array(names))
    predictions = baselines_of(train, train, of=codec("digits"))["length"]
    assert predictions.tolist() == [2.0, 15.0, 2.0, 15.0, 55.0, 7.0]
    in_turn = samples("digits", ["8 99"])  # no target: means of 2 3 4 6 7 1 and of 10 20 55
    assert baselines_of(in_turn, train, of=codec("digits"))["length"].tolist() == [23 / 6, 85 / 3]


@given(st.lists(st.integers(-9999, 9999), min_size=1, max_size=30))
def test_on_the_rows_it_was_learnt_from_the_length_is_no_worse_than_the_mean(
    values: list[int],
) -> None:
    train = samples("digits", list(map(str, values)), targets=range(len(values)))
    predictions = baselines_of(train, train, of=codec("digits"))["length"]
    truth = np.array(values, np.float64)
    error = np.square(predictions - truth).mean()
    assert error <= np.square(truth.mean() - truth).mean() * (1 + 1e-12) + 1e-12


# --- fits --------------------------------------------------------------------------------------


def test_linear_is_least_squares_on_the_other_numbers_of_the_row() -> None:
    random = np.random.default_rng(0)
    values = np.round(random.normal(0, 10, (50, EVERY)), 3)
    texts = [" and ".join(map(str, row)) for row in values.tolist()]
    train, test = (rows("p1000", part, 1) for part in (texts[:40], texts[40:]))
    x, y = np.column_stack([np.ones(50), values[:, [0, 2]]]), values[:, 1]
    weights, *_ = np.linalg.lstsq(x[:40], y[:40], rcond=None)
    assert baselines_of(test, train)["linear"] == pytest.approx(x[40:] @ weights)


def test_numbers_near_the_ends_of_float64_can_be_fitted() -> None:
    texts = [f"{n}e306 and {n % 7}e-300 give {2 * n + n % 7}" for n in range(1, 41)]
    train, test = rows("digits", texts[:30], 2), rows("digits", texts[30:], 2)
    truth = test.numbers[test.targets]
    assert baselines_of(test, train)["linear"] == pytest.approx(truth)


def test_a_column_that_never_changes_does_no_harm() -> None:
    train = rows("p1000", [f"{n} and 5 give {2 * n}" for n in range(9)], 2)
    predictions = baselines_of(rows("p1000", ["20 and 5 give 40", "1 and 6 give 2"], 2), train)
    assert predictions["linear"].tolist() == pytest.approx([40.0, 2.0])


def test_an_infinite_feature_is_missing_and_an_infinite_target_is_not_fitted() -> None:
    train = rows("digits", [*TRAIN, "3 and 3 give 1e400"], 2)
    predictions = baselines_of(rows("digits", [*TEST, "-1e400 and 3 give 4"], 2), train)
    median = sorted(range(40))[19]
    assert predictions["linear"] == pytest.approx([-1.5, 298.5, -9.5, 3 * median - 2 * 3 + 0.5])
    assert np.isfinite(predictions["boosted"]).all()


def test_boosted_is_better_than_linear_where_the_task_is_not_linear() -> None:
    texts = [f"{a} and {b} give {abs(a - b)}" for a in range(22) for b in range(22)]
    order = np.random.default_rng(0).permutation(len(texts))
    train, test = (rows("p1000", [texts[i] for i in part], 2) for part in np.split(order, [400]))
    predictions, truth = baselines_of(test, train), test.numbers[test.targets]
    error = {
        name: float(np.square(predictions[name] - truth).mean()) for name in ("linear", "boosted")
    }
    assert error["boosted"] < 0.1 * error["linear"]
    baselines._boosted.clear()
    np.testing.assert_array_equal(predictions["boosted"], baselines_of(test, train)["boosted"])


def test_without_scikit_learn_there_is_no_boosted_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    test, train = rows("p1000", TEST, 2), rows("p1000", TRAIN, 2)
    assert list(baselines_of(test, train)) == [
        "quantization",
        "median",
        "nearest",
        "linear",
        "boosted",
    ]

    def find_spec(name: str) -> Any:
        return None if name == "sklearn" else util.find_spec(name)

    monkeypatch.setattr(baselines, "find_spec", find_spec)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)  # an import would fail
    assert list(baselines_of(test, train)) == ["quantization", "median", "nearest", "linear"]


def test_boosted_keeps_to_the_threads_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fits use one thread."""
    train_values: list[int] = []
    fit = ensemble.HistGradientBoostingRegressor.fit

    def counting(self: Any, *arguments: Any) -> Any:
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "openmp"]
        train_values.extend(pool["num_threads"] for pool in pools)
        return fit(self, *arguments)

    monkeypatch.setattr(ensemble.HistGradientBoostingRegressor, "fit", counting)
    for threads, several, used in (("1", 1 << 20, 1), ("3", 1 << 20, 1), ("2", 0, 2)):
        monkeypatch.setenv("NUMTOK_THREADS", threads)
        monkeypatch.setattr(baselines, "_SEVERAL_THREADS", several)
        baselines_of(rows("p1000", TEST, 2), rows("p1000", TRAIN, 2))
        assert set(train_values) == {used}
        train_values.clear()


def test_what_was_boosted_before_is_not_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    fit = ensemble.HistGradientBoostingRegressor.fit

    def counting(self: Any, x: Any, y: Any) -> Any:
        fits.append(len(x))
        return fit(self, x, y)

    monkeypatch.setattr(ensemble.HistGradientBoostingRegressor, "fit", counting)
    monkeypatch.setattr(baselines, "_MOST_TREES", 2)
    test, train = rows("p1000", TEST, 2), rows("p1000", TRAIN, 2)
    first = baselines_of(test, train)["boosted"]
    for scheme in ("p1000", "xval"):  # both have the same numbers
        again = baselines_of(rows(scheme, TEST, 2), rows(scheme, TRAIN, 2))["boosted"]
        np.testing.assert_array_equal(again, first)
    assert len(fits) == 1
    for fewer in (1, 2):
        baselines_of(test, rows("p1000", TRAIN[:-fewer], 2))
    baselines_of(test, train)  # the oldest of three is no longer cached
    assert len(fits) == 4


def last_of_each(texts: Sequence[str]) -> EncodedSplit:
    ends = samples("p1000", texts).number_rows[1:] - 1
    return samples("p1000", texts, targets=ends.tolist())


def test_rows_that_lack_a_number_are_fitted_with_a_missing_value() -> None:
    """The target is 5 if the second number is missing, otherwise the sum."""
    texts = [f"{a} and {b} give {a + b}" for a in range(9) for b in range(9)]
    lacking = [f"{a} give 5" for a in range(9)]
    test = last_of_each(["20 and 3 give 0", "4 give 0", "1 and 2 and 3 give 0"])
    predictions = baselines_of(test, last_of_each([*texts, *lacking]))
    # Least squares with an indicator: rows without the number have an intercept of their own.
    assert predictions["linear"][0] == pytest.approx(23, abs=2)
    assert predictions["linear"][1] == pytest.approx(5, abs=1.5)
    assert predictions["boosted"][1] == pytest.approx(5, abs=1.5)
    assert np.isfinite([predictions["linear"], predictions["boosted"]]).all()


def test_a_fit_that_cannot_be_says_why() -> None:
    many = " ".join(map(str, range(target_features._MOST_FEATURES + 2)))
    for test, train, words in [
        (["3"], ["4", "5"], "no other number"),
        (TEST, TRAIN[:2], "too few"),
        ([many], [many, many], "fields"),
    ]:
        with case(test, train):
            built = last_of_each(test), last_of_each(train)
            assert list(baselines_of(*built)) == ["quantization", "median", "nearest"]
            [reason] = reasons(*built)
            assert "number" in reason and words in reason
    assert reasons(last_of_each(TEST), last_of_each(TRAIN)) == []
    assert len(reasons(samples("p1000", TEST), samples("p1000", TRAIN))) == 1


# --- several numbers of a row ------------------------------------------------------------------


def features_of(split: EncodedSplit) -> Values:
    built = target_features._features((by_order(split), np.arange(len(split.targets))))
    assert not isinstance(built, target_features.NotFitted)
    return built[0]


def test_features_are_the_numbers_that_are_no_target() -> None:
    assert features_of(rows("p1000", TEST, 0, 2)).tolist() == [[7]] * 2 + [[1]] * 2 + [[8]] * 2


def test_every_target_name_has_a_fit_of_its_own() -> None:
    """One target is 100 times the feature, the other its negative."""
    texts = [f"{n} and {100 * n} give {-n}" for n in range(1, 31)]
    train, test = rows("p1000", texts[:20], 1, 2), rows("p1000", texts[20:], 1, 2)
    names = pa.array(["large", "turned"] * 20), pa.array(["large", "turned"] * 10)
    predictions = baselines_of(
        replace(test, target_name=names[1]), replace(train, target_name=names[0])
    )
    assert predictions["linear"] == pytest.approx(test.numbers[test.targets])


def test_without_targets_the_mean_of_each_place_is_a_baseline() -> None:
    train = samples("p1000", ["1 and 20", "3 and 40 and 500", "none", "1e308 and 1e400"])
    test = samples("p1000", ["7 and 8 and 9 and 10", "no", "6"])
    predictions = baselines_of(test, train, 0.5)["place"]
    large = (1 + 3 + 1e308) / 3
    np.testing.assert_allclose(predictions, [large, 30, 500, np.nan, large], rtol=1e-12)
    assert "place" not in baselines_of(rows("p1000", TEST, 2), rows("p1000", TRAIN, 2))


def test_where_every_number_is_asked_for_in_turn_nothing_is_fitted() -> None:
    predictions = baselines_of(samples("p1000", TEST), samples("p1000", TRAIN))
    assert list(predictions) == ["quantization", "median", "place", "nearest"]


@pytest.mark.parametrize("places", [(2,), (0, 2)])
def test_baselines_do_not_depend_on_how_the_model_is_asked(places: tuple[int, ...]) -> None:
    test, train = rows("p1000", TEST, *places), rows("p1000", TRAIN, *places)
    masked, autoregressive = (
        baselines_of(test, train, 1.0, one_by_one=one_by_one) for one_by_one in (False, True)
    )
    assert list(masked) == ["quantization", "mean", "median", "nearest", "linear", "boosted"]
    assert list(masked) == list(autoregressive)
    for name, values in masked.items():
        np.testing.assert_array_equal(values, autoregressive[name])


def test_a_number_that_is_two_targets_has_the_features_of_one() -> None:
    built = samples("p1000", TEST[:2], targets=[2, 5])
    twice = replace(built, targets=np.array([2, 2, 5]), target_row=np.array([0, 0, 1]))
    index, _, values = target_features._others(by_order(twice), np.arange(2))
    assert (index.tolist(), values.tolist()) == ([0, 0, 1, 1], [4, 7, 100, 1])


def test_the_rows_that_are_fitted_have_a_limit_and_are_from_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    training: list[list[float]] = []

    def fit(x: Values, y: Values, queries: Values) -> Values:
        training.append(y.tolist())
        return np.zeros(len(queries))

    monkeypatch.setattr(baselines, "linear", fit)
    monkeypatch.setattr(target_features, "_FITTED_ON", 40)
    other = [f"{n} and {n * n} give 77" for n in range(40)]
    baselines_of(rows("p1000", TEST, 2), rows("p1000", [*TRAIN, *other], 2))
    [values] = training
    assert len(values) == 40
    assert 10 < values.count(77) < 30


# --- several targets of one name, baselines of rows -----------------------------------------------


def lines(number: int, step: float) -> str:
    """Return arithmetic progressions, ``0 2 4; 1 4 7 10; ...``; the last numbers are targets."""
    some = range(2 + number % 3)
    return "; ".join(
        " ".join(f"{k + (number % 5 + k + step) * j:g}" for j in range(4 + k % 2)) for k in some
    )


def last_of_each_list(texts: Sequence[str], **own: list[float]) -> EncodedSplit:
    places = np.cumsum([len(row.split()) for text in texts for row in text.split(";")]) - 1
    built = samples("p1000", texts, targets=places.tolist())
    return replace(built, floors={name: np.array(v) for name, v in own.items()})


def test_of_several_targets_of_a_name_each_is_fitted_on_the_numbers_before_it() -> None:
    """The number of features is the smallest gap between targets: three here."""
    train = last_of_each_list([lines(number, 0) for number in range(40)])
    test = last_of_each_list([lines(number, 0.5) for number in range(5)])
    truth = test.numbers[test.targets]
    assert target_features._gaps(test, np.arange(4)).tolist() == [3, 4, 3, 4]
    built = target_features._features(
        (by_order(train), np.arange(9)), (by_order(test), np.arange(2))
    )
    assert not isinstance(built, target_features.NotFitted)
    features, queries = built
    assert (features.shape, queries.tolist()) == ((9, 3), [[0, 0.5, 1], [2.5, 4, 5.5]])
    assert baselines_of(test, train)["linear"] == pytest.approx(truth)


def test_rows_bring_baselines_along_and_fits_are_given_them() -> None:
    """The target is the difference of two baselines, which are the only useful features."""
    random = np.random.default_rng(0)

    def made(count: int, *names: str) -> EncodedSplit:
        values = np.round(random.normal(0, 9, (count, 2)), 2)
        texts = [f"{b - a:.2f}" for a, b in values.tolist()]
        split = last_of_each_list(texts)
        return replace(split, floors=dict(zip(names, values.T, strict=False)))

    train, test = made(60, "first", "second"), made(9, "first", "second")
    predictions = baselines_of(test, train, 1.0)
    names = ["first", "second", "nearest", "linear", "boosted"]
    assert list(predictions) == ["quantization", "mean", "median", *names]
    np.testing.assert_array_equal(predictions["first"], test.floors["first"])
    assert predictions["linear"] == pytest.approx(test.numbers)
    assert list(baselines_of(test)) == ["quantization", "first", "second"]
    other = baselines_of(test, made(60, "first"))  # not in the train split, so not a feature
    assert "second" in other and other["linear"] != pytest.approx(test.numbers, abs=1)


@pytest.mark.parametrize("where", ["train", "test"])
def test_a_baseline_of_the_rows_that_some_numbers_lack_is_a_feature_with_missing_values(
    where: str,
) -> None:
    train = last_of_each_list([lines(number, 0) for number in range(40)])
    test = last_of_each_list([lines(3, 0.5)])
    own = [row.numbers[row.targets] for row in (train, test)]  # the true values
    own[where == "test"][0] = np.nan
    predictions = baselines_of(
        replace(test, floors={"known": own[1]}), replace(train, floors={"known": own[0]})
    )
    assert np.isfinite([predictions["linear"], predictions["boosted"]]).all()
    assert predictions["linear"][1:] == pytest.approx(test.numbers[test.targets][1:])
    np.testing.assert_array_equal(predictions["known"], own[1])
