"""numtok.TextRegressor: the conventions of scikit-learn, predictions, and errors."""

import copy
import importlib
import pickle
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import numtok
from numtok import TextRegressor
from numtok.errors import UsageError
from numtok.library import text_regressor as module
from numtok.training.model_files import read_model
from tests import fakemodels
from tests.cases import case, each
from tests.messages import Says

pytestmark = pytest.mark.integration
one_thread = fakemodels.one_thread

TINY = "nano,layers=1,width=32"
SIDES = range(2, 12)
TEXTS = [f"a room of {a} m by {b} m" for a in SIDES for b in SIDES]
AREAS = np.array([a * b for a in SIDES for b in SIDES])
#: Each gets its distribution, if any, in another way: value head, mantissa, list of all numbers.
PARTS = {
    "scalar": {},
    "mixture": {"head": "mdn:2"},
    "answers": {"normalize": "scale:5,by=answer"},
    "numgpt": {"scheme": "numgpt"},
    "tokens": {"scheme": "p1000,exponents=-2..2"},
    "digits": {"scheme": "digits"},
}


def tiny(**changes: Any) -> TextRegressor:
    settings: dict[str, Any] = {"preset": TINY, "steps": 12, "batch": 32, "learning_rate": 3e-3}
    return TextRegressor(**settings | changes)


@cache
def fitted(parts: str) -> TextRegressor:
    """Return a model fitted to the rooms, shared by tests: do not fit it again."""
    return tiny(**PARTS[parts]).fit(TEXTS, AREAS)


@pytest.fixture
def empty_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a folder for temporary files, which must be empty after the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


# --- the conventions of scikit-learn --------------------------------------------------------------

#: Checks of check_estimator that do not apply, with the reason.
NOT_APPLICABLE = {
    "check_methods_sample_order_invariance": "float32 sums of a batch depend on its size",
    "check_methods_subset_invariance": "float32 sums of a batch depend on its size",
    "check_regressor_data_not_an_array": "the names of a frame's columns are part of the text",
}


def test_the_conventions_of_scikit_learn_hold() -> None:
    model = tiny(steps=90, preset="nano,layers=1,width=64")
    check_estimator(model, on_skip=None, expected_failed_checks=NOT_APPLICABLE)


@each("parts", PARTS)
def test_a_fitted_model_survives_pickling_and_copying(parts: str, empty_temp: Path) -> None:
    model = fitted(parts)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict(TEXTS), model.predict(TEXTS))


def test_a_clone_with_the_same_random_state_is_the_same_model(empty_temp: Path) -> None:
    model = tiny(random_state=3).fit(TEXTS, AREAS)
    again = clone(model).fit(TEXTS, AREAS)
    np.testing.assert_array_equal(again.predict(TEXTS), model.predict(TEXTS))
    other = tiny(random_state=4).fit(TEXTS, AREAS)
    assert not np.array_equal(other.predict(TEXTS), model.predict(TEXTS))


def test_numpy_numbers_are_parameters_as_in_a_grid_of_values() -> None:
    grid = {"steps": np.array([12]), "batch": np.arange(32, 33), "learning_rate": np.array([3e-3])}
    found = GridSearchCV(tiny(), grid, cv=2).fit(TEXTS, AREAS)
    np.testing.assert_array_equal(found.predict(TEXTS), fitted("scalar").predict(TEXTS))


def test_fitting_prints_nothing_and_leaves_pytorchs_generator(
    capsys: pytest.CaptureFixture[str], empty_temp: Path
) -> None:
    before = torch.get_rng_state()
    tiny().fit(TEXTS, AREAS)
    assert torch.equal(torch.get_rng_state(), before)
    assert capsys.readouterr() == ("", "")


def test_it_is_cross_validated_in_a_pipeline() -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    model = make_pipeline(lower, tiny(preset="nano,layers=1,width=64", steps=150))
    texts = [text.upper() for text in TEXTS]
    scores = cross_val_score(model, texts, AREAS, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.shape == (3,) and np.median(scores) > 0.5


FRAME = pd.DataFrame(
    {
        "wood": ["oak", "elm", None, "ash"] * 25,
        "width": [a for a in SIDES for _ in SIDES],
        "note": ["red, tall", 'so "big"'] * 50,
    }
)


@each("bare", ["texts", "frame"])
def test_weights_are_those_of_the_commands(bare: str, tmp_path: Path) -> None:
    x = pd.DataFrame({"x": TEXTS}) if bare == "texts" else FRAME
    x.assign(y=AREAS).to_csv(tmp_path / "a.csv", index=False)
    store, split = tmp_path / "store", "validation=0.2,calibration=0.15,seed=5"
    more = {"text_field": "x"} if bare == "texts" else {}
    encoded = numtok.encode(
        tmp_path / "a.csv", target="y", scheme="xval", split=split, store=store, **more
    )
    settings: dict[str, Any] = {"preset": TINY, "steps": 6, "batch": 16, "head": "mdn:2"}
    trained = numtok.train(encoded, seed=5, **settings)
    weights = read_model(trained._artifact, torch.device("cpu")).model.state_dict()
    model = TextRegressor(**settings, validation=0.2, calibration=0.15, random_state=5)
    model.fit(TEXTS if bare == "texts" else x, AREAS)
    own = model.fitted_.model.state_dict()
    assert own.keys() == weights.keys()
    assert all(torch.equal(own[name], weights[name]) for name in own)
    if bare == "frame":
        predicted = numtok.predict(trained, x, interval=0.9)
        np.testing.assert_allclose(model.predict(x), predicted["predicted"], rtol=1e-5)
        quantiles = np.column_stack([predicted["q05"], predicted["q95"]])
        np.testing.assert_allclose(model.predict_quantiles(x, [0.05, 0.95]), quantiles, rtol=1e-5)
        ends = np.column_stack([predicted["interval_low"], predicted["interval_high"]])
        assert np.isfinite(ends).all()
        np.testing.assert_allclose(model.predict_interval(x), ends, rtol=1e-5)
        loaded = numtok.load(trained.ref, store=store)
        prompts = [
            f"wood: {row.wood}\nwidth: {row.width}\nnote: {row.note}\ny: [?]"
            for row in x[x.wood.notna()].itertuples()
        ]
        numbers = [row.numbers[0]["interval"] for row in loaded.predict(prompts, interval=0.9)]
        np.testing.assert_allclose(numbers, ends[x.wood.notna()], rtol=1e-5)


# --- inputs ---------------------------------------------------------------------------------------


def test_texts_may_be_any_sequence() -> None:
    model = fitted("mixture")
    expected = model.predict(TEXTS)
    columns: dict[str, Any] = {
        "tuple": tuple(TEXTS),
        "array": np.array(TEXTS),
        "objects": np.array(TEXTS, object),
        "one column": np.array(TEXTS)[:, None],
        "pandas": pd.Series(TEXTS),
        "polars": pl.Series(TEXTS),
        "arrow": pa.chunked_array([TEXTS]),
    }
    for name, texts in columns.items():
        with case(name):
            np.testing.assert_array_equal(model.predict(texts), expected)


def test_rows_of_all_kinds_of_frames_are_the_same_texts() -> None:
    model = tiny(steps=3).fit(FRAME, AREAS)
    assert model.feature_names_in_.tolist() == ["wood", "width", "note"]
    assert model.fitted_.codec.template is not None
    assert model.fitted_.codec.template.fields == ["wood", "width", "note"]
    frames: dict[str, Any] = {
        "index": FRAME.set_index(np.arange(1000, 1100)),
        "categories": FRAME.astype({"wood": "category"}),
        "polars": pl.from_pandas(FRAME),
        "arrow": pa.Table.from_pandas(FRAME),
        "datasets": pytest.importorskip("datasets").Dataset.from_pandas(FRAME),
    }
    for name, frame in frames.items():
        with case(name):
            np.testing.assert_array_equal(model.predict(frame), model.predict(FRAME))
            again = tiny(steps=3).fit(frame, AREAS)
            np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))


def test_a_prediction_does_not_depend_on_other_rows() -> None:
    frame = pd.DataFrame({"income": [f"{area:,}" for area in 100 * AREAS]})
    model = tiny(steps=60).fit(frame, AREAS)
    odd = pd.DataFrame({"income": ["8,200", "1,500", "unknown"]})
    np.testing.assert_allclose(model.predict(odd)[:2], model.predict(odd[:2]), rtol=1e-4)


def test_columns_of_an_array_have_names_in_the_text() -> None:
    numbers = np.column_stack([AREAS / 7, AREAS])
    model = tiny(steps=3).fit(numbers, AREAS)
    assert model.n_features_in_ == 2
    assert model.fitted_.codec.template is not None
    assert model.fitted_.codec.template.fields == ["x0", "x1"]


def test_a_frame_may_have_a_column_named_y() -> None:
    frame = FRAME.rename(columns={"width": "y"})
    assert tiny(steps=3).fit(frame, AREAS).predict(frame).shape == (100,)


def test_a_column_named_split_is_a_feature() -> None:
    frame = FRAME.rename(columns={"wood": "split", "note": "a, b"}).assign(same=1)
    codec = tiny(steps=3).fit(frame, AREAS).fitted_.codec
    assert codec.template is not None and codec.template.fields == ["split", "width", "a, b"]


# --- predictions ----------------------------------------------------------------------------------


@each("parts", [parts for parts in PARTS if parts != "digits"])
def test_quantiles_and_distributions_agree(parts: str) -> None:
    model = fitted(parts)
    low, middle, high = model.predict_quantiles(TEXTS, [0.125, 0.5, 0.875]).T
    assert (low < high).all()
    distribution = model.predict_distribution(TEXTS)
    np.testing.assert_allclose(distribution.median(), middle)
    np.testing.assert_allclose(distribution.point(), model.predict(TEXTS))


def noisy(rows: int, seed: int = 0) -> tuple[list[str], NDArray[np.float64]]:
    """Return texts with a number, and a target that no Gaussian describes."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 60, rows)
    target = random.choice([-100, 100], rows) + random.normal(0, 1 + sizes / 5)
    return [f"a board of {size} cm" for size in sizes], target


def coverage(model: Any, texts: Any, target: Any) -> float:
    low, high = model.predict_interval(texts, 0.8).T
    return float(np.mean((low <= target) & (target <= high)))


@each("parts", ["scalar", "digits"])
def test_intervals_of_a_bad_model_cover_what_they_promise(parts: str) -> None:
    texts, target = noisy(1400)
    new, truth = noisy(1000, seed=1)
    model = tiny(**PARTS[parts], calibration=0.5).fit(texts, target)
    # With 700 calibration rows, three standard deviations of the coverage are 0.06.
    assert abs(coverage(model, new, truth) - 0.8) < 0.06
    if parts == "scalar":
        low, high = model.predict_quantiles(new, [0.1, 0.9]).T
        assert abs(np.mean((low <= truth) & (truth <= high)) - 0.8) > 0.1
    wide = model.predict_interval(new[:50], 0.99)
    narrow = model.predict_interval(new[:50], 0.5)
    assert (wide[:, 0] < narrow[:, 0]).all() and (narrow[:, 1] < wide[:, 1]).all()


def test_coverage_is_cross_validated() -> None:
    texts, target = noisy(1500)
    model = clone(tiny(steps=3, calibration=0.4))
    scores = cross_val_score(model, texts, target, scoring=coverage, cv=3)
    assert abs(scores.mean() - 0.8) < 0.06
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, model).fit([text.upper() for text in texts], target)
    assert coverage(pipeline[-1], texts, target) == pytest.approx(0.8, abs=0.06)


def test_intervals_need_calibration_rows() -> None:
    texts, target = noisy(60)
    model = tiny(steps=3, calibration=0.05).fit(texts, target)
    with pytest.warns(UserWarning, match="at least 9 calibration rows"):
        assert np.isinf(model.predict_interval(texts)).all()
    assert np.isfinite(
        tiny(steps=3, calibration=0.5).fit(texts, target).predict_interval(texts)
    ).all()
    without = tiny(steps=3, calibration=0).fit(texts, target)
    with pytest.raises(ValueError, match=r"calibration is 0. Fit with calibration=0\.1"):
        without.predict_interval(texts)


def test_many_rows_are_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("mixture")
    whole = model.predict(TEXTS)
    monkeypatch.setattr(module, "_AT_ONCE", 7)
    np.testing.assert_allclose(model.predict(TEXTS), whole, rtol=1e-5)


def test_the_point_may_be_chosen_after_fitting() -> None:
    model = copy.deepcopy(fitted("mixture"))
    distribution = model.predict_distribution(TEXTS)
    for point in ("median", "mean", "mode"):
        chosen = model.set_params(point=point).predict(TEXTS)
        np.testing.assert_array_equal(chosen, getattr(distribution, point)())


def test_numbers_written_digit_by_digit_have_points_but_no_distribution(says: Says) -> None:
    model = fitted("digits")
    assert model.predict(TEXTS).shape == (100,)
    with says.raises(ValueError, "token by token", "head='mdn:5'"):
        model.predict_quantiles(TEXTS, [0.5])


def test_order_of_rows_is_kept_although_their_lengths_differ() -> None:
    model = tiny(preset=f"{TINY},context=48").fit(TEXTS, AREAS)
    texts = [TEXTS[0], "a very long room of 3 m by 4 m and of many words", *TEXTS[50:53]]
    alone: NDArray[np.float64] = np.concatenate([model.predict([text]) for text in texts])
    np.testing.assert_allclose(model.predict(texts), alone, rtol=1e-4)


# --- errors ---------------------------------------------------------------------------------------


def test_parameters_that_are_not_possible_are_named(says: Says) -> None:
    cases: list[tuple[str, Any, tuple[str, ...]]] = [
        ("steps", 0, ("steps must be above 0 (got 0)",)),
        ("steps", "10", ("steps must be an integer",)),
        ("batch", 0, ("batch must be above 0",)),
        ("learning_rate", 2.0, ("learning_rate must be above 0 and below 1",)),
        ("validation", 1.0, ("validation == 1.0",)),
        ("calibration", -0.1, ("calibration == -0.1",)),
        ("calibration", 0.9, ("validation + calibration", "0.1 + 0.9")),
        ("point", "middle", ("point 'middle'", "mean, median, mode")),
        ("scheme", "xvall", ("scheme 'xvall'", "xval")),
        ("head", "mdm:5", ("head 'mdm'", "mdn")),
        ("preset", "nanno", ("preset 'nanno'", "nano")),
        ("normalize", "affin", ("normalizer 'affin'", "affine")),
        ("device", "tpu", ("device", "'tpu'")),
    ]
    for name, given, parts in cases:
        with case(f"{name}={given}"), says.raises(ValueError, *parts):
            tiny(**{name: given}).fit(TEXTS, AREAS)


def test_data_that_cannot_be_used_are_named(says: Says, empty_temp: Path) -> None:
    missing = np.where(AREAS == 4, np.nan, AREAS)
    own: list[tuple[Any, Any, tuple[str, ...]]] = [
        (TEXTS, np.full(100, 7), ("y is 7 in every row",)),
        (list(range(100)), AREAS, ("X must contain texts", "reshape")),
        (FRAME.assign(mixed=[1, "b"] * 50), AREAS, ("X cannot be read", "mixed")),
        (pd.DataFrame({"a": [1] * 100}), AREAS, ("X: no field is left",)),
    ]
    for x, y, parts in own:
        with case(parts[0]), says.raises(ValueError, *parts):
            tiny().fit(x, y)
    for x, y, part in (
        (TEXTS, missing, "Input y contains NaN"),
        (TEXTS[:50], AREAS, "inconsistent numbers of samples"),
        (TEXTS[:1], AREAS[:1], "a minimum of 2 is required by TextRegressor"),
    ):
        with case(part), pytest.raises(ValueError, match=part):
            tiny().fit(x, y)


def test_what_differs_from_fit_is_an_error(says: Says) -> None:
    with pytest.raises(NotFittedError):
        tiny().predict(TEXTS)
    model = fitted("mixture")
    with pytest.raises(ValueError, match="X has 2 features, but TextRegressor is expecting 1"):
        model.predict(np.array([TEXTS, TEXTS]).T)
    with says.raises(ValueError, "X: row 2", "context", "preset"):
        model.predict([TEXTS[0], "word " * 500])
    with pytest.raises(ValueError, match="level == 1"):
        model.predict_interval(TEXTS, 1.0)
    with says.raises(ValueError, "levels must lie between 0 and 1"):
        model.predict_quantiles(TEXTS, [0.5, 1.0])


def test_without_scikit_learn_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("numtok.sklearn", "numtok.library.text_regressor"):
        monkeypatch.delitem(sys.modules, name)
    with says.raises(UsageError, "`pip install scikit-learn`"):
        importlib.import_module("numtok.library.text_regressor")
