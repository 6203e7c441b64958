"""The embedder ``fourier``: continuous, and exact over sixteen decades of either sign."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.inputs import single
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import MASK
from numtok.models.vocabulary import Vocabulary
from numtok.seeds import generator
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import batch, codec, model
from tests.messages import Says

one_thread = fakemodels.one_thread

NUM = 3  # any token
WIDTH = 64
DECADES = np.arange(-8.0, 8.01, 0.125)
MAGNITUDES = 10**DECADES


def built(spec: str = "fourier", width: int = WIDTH) -> nn.Module:
    torch.manual_seed(0)
    return EMBEDDERS.build(spec).build(Vocabulary(size=8), width)


def bare() -> nn.Module:
    """Return an embedder that outputs its 24 features: zero token vectors and an identity map."""
    of = built(width=24)
    with torch.no_grad():
        of.get_parameter("table.weight").zero_()
        of.get_parameter("linear.weight").copy_(torch.eye(24))
    return of


def seen(of: nn.Module, values: Any) -> NDArray[np.float64]:
    """Return the vectors [n, width] of ``[NUM]`` with these values."""
    row = torch.tensor(np.atleast_1d(values), dtype=torch.float32)[None]
    vectors: Tensor = of(torch.full(row.shape, NUM), row)
    return vectors[0].detach().double().numpy()


def coordinate(values: Any) -> NDArray[np.float64]:
    return np.asarray(np.sign(values) * np.log1p(np.abs(values) / 1e-8))


# --- features -----------------------------------------------------------------------------------


def test_features_are_sines_and_cosines_of_the_signed_logarithm() -> None:
    """Frequencies double. The first covers half a turn from -1e8 to 1e8."""
    values = np.array([-1e8, -60.2, -1e-8, 0.0, 2e-6, 0.5, 1.0, 3.0, 1e8])
    turns = 2.0 ** np.arange(12) * math.pi / (2 * coordinate(1e8))
    angles = (coordinate(values) - coordinate(1.0))[:, None] * turns
    expected = np.concatenate([np.sin(angles), np.cos(angles) - 1], axis=1)
    np.testing.assert_allclose(seen(bare(), values), expected, atol=0.03)
    # Rounding to float32 affects the highest frequencies most.
    np.testing.assert_allclose(seen(bare(), values)[:, :6], expected[:, :6], atol=1e-4)
    assert turns[0] * (coordinate(1e8) - coordinate(-1e8)) == pytest.approx(math.pi)


def test_the_vector_of_a_number_is_that_of_its_token_and_a_map_of_the_features() -> None:
    of = built()
    values = np.array([-60.2, 0.0, 1e5])
    features = seen_features(of, values)
    weight = of.get_parameter("linear.weight").detach().double().numpy()
    token = of.get_parameter("table.weight")[NUM].detach().double().numpy()
    np.testing.assert_allclose(seen(of, values), token + features @ weight.T, atol=1e-6)


def seen_features(of: nn.Module, values: NDArray[np.float64]) -> NDArray[np.float64]:
    caught: list[Tensor] = []
    of.get_submodule("linear").register_forward_hook(lambda _, given, out: caught.append(given[0]))
    seen(of, values)
    return caught[0][0].double().numpy()


def test_a_number_that_is_1_is_a_number_as_any_other() -> None:
    """Vectors of x and 1.01 x are equally far apart for any x, including 1."""
    steps = [np.linalg.norm(np.diff(seen(bare(), [x, 1.01 * x]), axis=0)) for x in (1, 1e-3, 1e5)]
    assert steps == pytest.approx([steps[0]] * 3, rel=2e-3)
    assert steps[0] > 0.1


@each("factor", [1.001, 1.05, 2.0, 1000.0])
def test_equal_ratios_are_equal_distances_at_every_magnitude(factor: float) -> None:
    lower = np.geomspace(1e-5, 9e7 / factor, 40)
    for sign in (-1, 1):
        apart = np.linalg.norm(
            seen(bare(), sign * lower) - seen(bare(), sign * lower * factor), 2, 1
        )
        assert apart == pytest.approx(np.full(40, apart[-1]), rel=0.02)


# --- continuous ---------------------------------------------------------------------------------

finite = st.floats(-1e9, 1e9, width=32)


@given(finite, finite)
def test_numbers_that_are_near_have_vectors_that_are_near(x: float, y: float) -> None:
    """Vectors differ by at most the coordinates' distance times the norm of the frequencies."""
    steepest = math.sqrt(sum(4.0**k for k in range(12))) * math.pi / (2 * coordinate(1e8))
    u = coordinate(np.clip([x, y], -1e8, 1e8))
    apart = float(np.linalg.norm(np.diff(seen(bare(), [x, y]), axis=0)))
    assert apart <= steepest * abs(u[1] - u[0]) + 0.03  # for rounding


def test_vectors_go_through_zero_with_one_slope() -> None:
    h = 1e-11
    below, zero, above = seen(bare(), [-h, 0.0, h])
    assert np.abs(above - below).max() < 0.2
    # Differences of the highest frequencies are too small for float32 to give slopes.
    slopes = np.stack([zero - below, above - zero])[:, 8:12] / h
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=0.1)
    assert np.array_equal(*seen(bare(), [-0.0, 0.0]))


# --- exact --------------------------------------------------------------------------------------


def read_back(of: nn.Module, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of layer-normalized vectors.

    Invert the linear map, then read the angle of each frequency. Low frequencies select the turn of
    higher ones.
    """
    weight = of.get_parameter("linear.weight").detach().double().numpy()
    token = of.get_parameter("table.weight")[NUM].detach().double().numpy()
    basis = np.column_stack([weight, token])
    parts = vectors @ np.linalg.pinv(basis - basis.mean(axis=0)).T
    features = parts[:, :-1] / parts[:, -1:]  # before the norm, the token has coefficient 1
    sines, cosines = features[:, :12], features[:, 12:] + 1
    turns = 2.0 ** np.arange(12) * math.pi / (2 * coordinate(1e8))
    # From -1e8 to 1e8, the first angle goes from -3/4 pi to 1/4 pi.
    u = np.arctan2(sines[:, 0], cosines[:, 0]) / turns[0]
    for k in range(1, 12):
        angle = np.arctan2(sines[:, k], cosines[:, k])
        u = (angle + 2 * math.pi * np.rint((u * turns[k] - angle) / (2 * math.pi))) / turns[k]
    u += coordinate(1.0)
    return np.asarray(np.sign(u) * 1e-8 * np.expm1(np.abs(u)))


@each("sign", [-1, 1])
def test_value_and_sign_are_read_back_over_sixteen_decades_behind_a_layer_norm(sign: int) -> None:
    of = built()
    values = sign * MAGNITUDES
    normed = F.layer_norm(torch.from_numpy(seen(of, values)), (WIDTH,)).numpy()
    np.testing.assert_allclose(read_back(of, normed), values, rtol=1e-3)


def test_numbers_of_all_magnitudes_and_signs_and_zero_are_apart_behind_a_layer_norm() -> None:
    values = np.concatenate([-MAGNITUDES[::-1], [0.0], MAGNITUDES])
    normed = F.layer_norm(torch.from_numpy(seen(built(), values)), (WIDTH,))
    apart = torch.cdist(normed, normed) + 100 * torch.eye(len(values))
    assert apart.min() > 1.0  # vectors have length 8


@each(("x", "like"), [(1e9, 1e8), (-3e38, -1e8), (math.inf, 1e8)])
def test_what_lies_beyond_the_largest_is_like_it(x: float, like: float) -> None:
    assert np.array_equal(*seen(built(), [x, like]))


def test_what_is_no_number_stays_none() -> None:
    """A failed prediction is not embedded as an ordinary number."""
    assert np.isnan(seen(built(), [math.nan])).all()


def test_a_wider_range_is_resolved_where_asked_for() -> None:
    apart = [
        float(np.linalg.norm(np.diff(seen(built(spec), [1e20, 1e25]), axis=0)))
        for spec in ("fourier", "fourier,largest=1e30")
    ]
    assert apart[0] == 0
    assert apart[1] > 0.01


# --- in a model ---------------------------------------------------------------------------------


def states(of: Model, texts: list[str]) -> Tensor:
    one = batch("xval", texts)
    tokens, values = torch.from_numpy(one.tokens), torch.from_numpy(single(one.values()))
    return of.hidden(tokens, values, None).detach()


def test_only_numbers_have_values_beside_them() -> None:
    """Numbers beyond float32 have their own token and channel value 1, so they are looked up."""
    of = model("xval", "mlm", embedder="fourier")
    one = batch("xval", ["a -60.2 1e400 1"])
    number = codec("xval").number_first
    inside = of.embedder(torch.from_numpy(one.tokens), torch.from_numpy(single(one.values())))[0]
    table = of.embedder.get_parameter("table.weight")
    alike = (inside == table[torch.from_numpy(one.tokens[0])]).all(dim=1).tolist()
    assert one.tokens[0].tolist()[2::2] == [number, codec("xval").number_first + 6, number]
    assert alike == [True, True, False, True, True, True, True]


def test_a_masked_number_does_not_show_its_value() -> None:
    of = model("xval", "mlm:targets", embedder="fourier")
    found = []
    for answer in ("6", "-1e7"):
        one = OBJECTIVES.build("mlm:targets").example(
            batch("xval", [f"2 * 3 = {answer}"], targets=[2]), generator(0)
        )
        assert one.tokens[0, -1] == MASK
        shown = of.given(one)
        found.append(of.hidden(shown.tokens, shown.values, shown.real))
    assert torch.equal(*found)


@each("positions", ["learned", "sinusoidal", "rotary"])
def test_a_model_sees_every_magnitude_with_any_kind_of_positions(positions: str) -> None:
    size = f"nano,layers=2,heads=2,width=16,positions={positions}"
    of = model("xval", "mlm", size=size, embedder="fourier")
    texts = [f"{sign}{x:.3g}" for sign in ("", "-") for x in 10.0 ** np.arange(-6, 8)] + ["0"]
    last = states(of, texts)[:, 0]
    apart = torch.cdist(last, last) + 100 * torch.eye(len(texts))
    assert apart.min() > 0.1


def test_the_value_is_not_rounded_to_bfloat16() -> None:
    of = built()
    tokens, values = torch.full((1, 3), NUM), torch.tensor([[1.001, 1.002, 1e7]])
    with torch.autocast("cpu", torch.bfloat16):
        rounded = of(tokens, values)
    assert rounded.dtype == torch.float32
    assert torch.equal(rounded, of(tokens, values))


# --- settings -----------------------------------------------------------------------------------


@each(
    ("spec", "parts"),
    [
        ("fourier:0", ("frequencies must be from 1 to 20",)),
        ("fourier:21", ("frequencies must be from 1 to 20",)),
        *(
            (
                f"fourier,smallest={a},largest={b}",
                (f"smallest={a} and largest={b}", "1e-37 to 1e38"),
            )
            for a, b in [("0", "1"), ("2", "1"), ("1", "inf"), ("1e-10", "1e+30"), ("nan", "1")]
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with says.raises(UsageError, *parts):
        EMBEDDERS.build(spec)


@each("spec", ["fourier,largest=1e38,smallest=1", "fourier:20", "fourier:1"])
def test_the_widest_settings_keep_numbers_finite_and_rising(spec: str) -> None:
    values = seen(built(spec), 10.0 ** np.arange(-7.0, 38.0))
    assert np.isfinite(values).all()
    used = slice(8, None) if "38" in spec else slice(0, 15)
    assert all(not np.array_equal(a, b) for a, b in pairwise(values[used]))
