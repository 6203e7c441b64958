"""NumGPT's numbers: exponents and mantissas of literals as written, their embedding, and DICE."""

import doctest
import importlib
import json
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.base import SCHEMES, Encoded, Failure, Outcome, splits_numbers
from numtok.encoding.schemes.numgpt import NumGPTScheme
from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.column import Numerals
from numtok.numerals.policy import NumeralPolicy
from numtok.seeds import generator
from numtok.stages.explain import run as explain
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import batch, codec, model
from tests.messages import Says

one_thread = fakemodels.one_thread

WIDTH = 8


def encoded(literals: Sequence[str], spec: str = "numgpt") -> Encoded:
    return SCHEMES.build(spec).encode(Numerals.of_literals(literals))


def written(literal: str, spec: str = "numgpt") -> tuple[str, float]:
    """Return the token and the channel of one number."""
    scheme, made = SCHEMES.build(spec), encoded([literal], spec)
    assert made.channel is not None
    return scheme.vocabulary()[made.tokens[0]], float(made.channel[0])


def read(pairs: Sequence[tuple[str, float]], spec: str = "numgpt") -> list[str]:
    """Decode tokens and channels to literals, or to the names of failures."""
    scheme = SCHEMES.build(spec)
    tokens = np.array([scheme.vocabulary().index(token) for token, _ in pairs], np.uint32)
    channel = np.array([value for _, value in pairs], np.float32)
    found = scheme.decode(tokens, np.ones(len(pairs), np.int32), channel)
    return [
        Failure(failure).name.lower() if failure else found.literal(index)
        for index, failure in enumerate(found.failures.tolist())
    ]


# --- the scheme ---------------------------------------------------------------------------------


@each("name", ["base", "_channel", "_literals"])
def test_the_examples_are_right(name: str) -> None:
    module = importlib.import_module(f"numtok.encoding.schemes.{name}")
    found = doctest.testmod(module, extraglobs={"np": np})
    assert found.attempted > 0
    assert not found.failed


def test_the_paper_counts_23_exponents() -> None:
    scheme = SCHEMES.build("numgpt")
    names = scheme.vocabulary()
    assert scheme.paper_vocabulary_size == 23
    assert names[:3] + names[20:23] == ("E-8", "E-7", "E-6", "E12", "UNDERFLOW", "OVERFLOW")
    assert names[23:] == ("NAN", "+INF", "-INF")  # required by the contract


@each(
    ("literal", "token", "mantissa"),
    [
        ("-123", "E2", -1.23),  # Equation 1
        ("2300", "E3", 2.3),
        ("0.23", "E-1", 2.3),
        ("1000", "E3", 1.0),
        ("999.9999999999999999999", "E2", 9.999999046325684),  # 1000 in float64 and float32
        ("0.00099999999999999999999999", "E-4", 9.999999046325684),
        ("9.99999999999", "E0", 9.999999046325684),
        ("0", "E0", 0.0),
        ("-0", "E0", -0.0),
        ("1e12", "E12", 1.0),
        ("9.5e12", "E12", 9.5),
        ("2.5e13", "OVERFLOW", 2.5),
        ("-2.5e-9", "UNDERFLOW", -2.5),
        ("1e400", "OVERFLOW", 1.0),
        ("-3e-400", "UNDERFLOW", -3.0),
        ("inf", "+INF", 1.0),
        ("-inf", "-INF", 1.0),
        ("nan", "NAN", 1.0),
    ],
)
@each("spec", ["numgpt", "dice"])
def test_exponent_and_mantissa_are_those_of_the_digits_as_written(
    spec: str, literal: str, token: str, mantissa: float
) -> None:
    found, channel = written(literal, spec)
    assert found == token
    assert channel == np.float32(mantissa)
    assert math.copysign(1, channel) == math.copysign(1, mantissa)


def test_thousands_and_percent_are_read_by_the_numeral_policy_as_in_the_paper() -> None:
    policy = NumeralPolicy.parse("thousands,percent")
    for literal, token, channel, value in (
        ("2,300", "E3", 2.3, "2300.0"),
        ("23%", "E-1", 2.3, "0.23"),
        ("2300", "E3", 2.3, "2300.0"),
    ):
        (found,) = explain(literal, ("numgpt",), policy)
        assert found.tokens == (token,)
        assert found.channel == np.float32(channel)
        assert found.decoded == value


def test_numbers_of_one_exponent_share_a_token_and_differ_in_the_channel() -> None:
    made = encoded(["1", "-1", "9.75", "0"])
    assert len(set(made.tokens.tolist())) == 1
    assert made.channel is not None
    assert made.channel.tolist() == [1, -1, 9.75, 0]
    assert made.outcomes.tolist() == [Outcome.NUMBER] * 4


def test_a_channel_that_leaves_its_range_is_read_as_it_stands() -> None:
    pairs = [("E3", 0.5), ("E0", 12.0), ("E2", -0.0), ("E-8", 1e-30), ("E12", 1e30)]
    found = read(pairs)
    assert found[:3] == ["500.0", "12.0", "-0.0"]
    assert [float(one) for one in found[3:]] == pytest.approx([1e-38, 1e42], rel=1e-6)


def test_under_and_overflow_and_what_is_no_token_are_named() -> None:
    assert read([("UNDERFLOW", 1.5), ("OVERFLOW", -2.0), ("NAN", 3.0), ("+INF", 3.0)]) == [
        *("underflow", "overflow"),
        *("nan", "inf"),
    ]
    scheme = SCHEMES.build("numgpt")
    beyond = scheme.decode(np.array([26], np.uint32), np.ones(1, np.int32), np.ones(1, np.float32))
    assert beyond.failures.tolist() == [Failure.MALFORMED]
    with pytest.raises(ValueError, match="needs the value channel"):
        scheme.decode(np.array([0], np.uint32), np.ones(1, np.int32))


@given(st.integers(-999_999, 999_999), st.integers(-8, 6), st.sampled_from(["numgpt", "dice"]))
def test_numbers_of_six_digits_come_back_exactly(digits: int, power: int, spec: str) -> None:
    literal = f"{digits}e{power}"
    if digits:
        assume(math.floor(math.log10(abs(digits) + 0.5)) + power >= -8)
    token, channel = written(literal, spec)
    assert read([(token, channel)], spec) == [repr(float(literal))]


@given(st.floats(1e-8, 9.99e12))
def test_what_comes_back_is_written_as_the_same_again(value: float) -> None:
    token, channel = written(repr(value))
    (again,) = read([(token, channel)])
    assert float(again) == pytest.approx(value, rel=2.0**-23)
    assert written(again) == (token, channel)


def test_the_channel_times_the_factor_is_the_number() -> None:
    literals = ["-123", "0", "4.5e-7", "3e14", "-3e14", "1e-20"]
    made, factors = encoded(literals), NumGPTScheme().factors
    assert made.channel is not None
    products = made.channel * factors[made.tokens]
    np.testing.assert_allclose(products, [-123, 0, 4.5e-7, np.inf, -np.inf, 0], rtol=1e-6)
    assert np.isnan(factors[-3:]).all()
    assert [
        splits_numbers(SCHEMES.build(name)) for name in ("numgpt", "dice", "xval", "p1000")
    ] == [
        *(True, True),
        *(False, False),
    ]


@each("exponents", ["1..3", "-5..-1", "-291..0", "0..291"])
@each("name", ["numgpt", "dice"])
def test_exponents_that_cannot_be_are_refused(name: str, exponents: str, says: Says) -> None:
    with says.raises(UsageError, "exponents", f"got {exponents}", "-290..290"):
        SCHEMES.build(f"{name},exponents={exponents}")


def test_a_range_without_angles_is_refused_before_numbers_are_encoded(says: Says) -> None:
    with says.raises(UsageError, "range", "got 5", "from a number to a larger"):
        SCHEMES.build("dice,range=5")


def test_text_around_numbers_comes_back() -> None:
    one = codec("numgpt")
    column = Texts.of(pa.array(["eggs weigh -60.25 g, or 1000"]))
    made = one.encode(column, one.find(column))
    back = one.decode(
        made.tokens.astype(np.uint32), made.number_start, made.number_length, made.channel
    )
    assert back == "eggs weigh -60.25 g, or 1000.0"
    assert json.loads(one.to_json())["scheme"]["exponents"] == "-8..12"


# --- embedding of numbers -----------------------------------------------------------------------


def vocabulary(scheme: str) -> Vocabulary:
    return Vocabulary.of(codec(scheme))


def built(spec: str, scheme: str = "numgpt", width: int = WIDTH) -> nn.Module:
    torch.manual_seed(0)
    return EMBEDDERS.build(spec).build(vocabulary(scheme), width)


def number_vectors(
    of: nn.Module, literals: Sequence[str], scheme: str = "numgpt"
) -> NDArray[np.float64]:
    """Return the vectors that the embedder gives: [n, width]."""
    made = encoded(literals, scheme)
    assert made.channel is not None
    tokens = torch.from_numpy(made.tokens.astype(np.int64))[None] + codec(scheme).number_first
    vectors: Tensor = of(tokens, torch.from_numpy(made.channel)[None])
    return vectors[0].detach().double().numpy()


def numerals(of: nn.Module, literals: Sequence[str], scheme: str = "numgpt") -> Tensor:
    """Return NE(n): [n, d]."""
    caught: list[Tensor] = []
    hook = of.get_submodule("numerals").register_forward_hook(
        lambda _, given, out: caught.append(out)
    )
    number_vectors(of, literals, scheme)
    hook.remove()
    return caught[0][0].detach().double()


def weight(of: nn.Module, name: str) -> NDArray[np.float64]:
    return of.get_parameter(name).detach().double().numpy()


@each("sigma", [0.5, 5.0])
def test_mantissas_are_seen_by_their_distances_from_prototypes(sigma: float) -> None:
    """Equations 3 and 4: 48 prototypes from -10 to 10, among 64 coordinates."""
    of = built(f"numgpt,sigma={sigma}")
    literals = ["-123", "1000", "0", "0.0725"]
    prototypes = [20 / 47 * i - 10 for i in range(48)]
    expected = [
        [math.exp(-((mantissa - q) ** 2) / sigma**2) for q in prototypes]
        for mantissa in (-1.23, 1.0, 0.0, 7.25)
    ]
    np.testing.assert_allclose(numerals(of, literals)[:, 16:].numpy(), expected, atol=1e-5)


def test_exponents_have_vectors_of_their_own_and_so_have_under_and_overflow() -> None:
    """Equation 2, with 23 entries: 21 exponents, one below them and one above."""
    of = built("numgpt")
    table = weight(of, "numerals.exponents.weight")
    assert table.shape == (23, 16)
    literals = ["1e-9", "1e-8", "0", "-123", "5e12", "5e13"]
    found = numerals(of, literals)[:, :16].numpy()
    np.testing.assert_allclose(found, table[[0, 1, 9, 11, 21, 22]], atol=1e-7)


def test_token_and_numeral_are_fused_by_one_linear_map() -> None:
    """Equation 6: [TE, NE] W_b. TE is one vector for all numerals, NE is one for all text."""
    of = built("numgpt,dimensions=16,sigma=2")
    w_b = np.concatenate([weight(of, "from_token.weight").T, weight(of, "from_numeral.weight").T])
    assert w_b.shape == (WIDTH + 16, WIDTH)
    literals = ["-123", "4.5", "7e20"]
    ne = numerals(of, literals).numpy()
    te = np.tile(weight(of, "numeral"), (3, 1))
    np.testing.assert_allclose(
        number_vectors(of, literals), np.concatenate([te, ne], axis=1) @ w_b, atol=1e-6
    )
    texts = torch.tensor([[1, 2, 40, 100]])
    te = weight(of, "table.weight")[texts[0]]
    ne = np.tile(weight(of, "text"), (4, 1))
    found = of(texts, torch.ones(1, 4))[0].detach().double().numpy()
    np.testing.assert_allclose(found, np.concatenate([te, ne], axis=1) @ w_b, atol=1e-6)


def test_nan_and_infinities_are_looked_up_as_text_is() -> None:
    of = built("numgpt")
    found = number_vectors(of, ["nan", "inf", "-inf"])
    first = codec("numgpt").number_first + 23
    texts = of(torch.arange(first, first + 3)[None], torch.full((1, 3), 9.0))[0]
    np.testing.assert_array_equal(found, texts.detach().double().numpy())


def test_a_whole_number_beside_one_token_is_divided_by_its_own_power_of_ten() -> None:
    """With xval, mantissas and exponents have the same vectors if float32 holds the power."""
    of = built("numgpt", "xval")
    table = weight(of, "numerals.exponents.weight")
    powers = range(-12, 17)
    found = numerals(of, [f"1e{power}" for power in powers], "xval").numpy()
    places = [min(max(power + 9, 0), 22) for power in powers]
    np.testing.assert_allclose(found[:, :16], table[places], atol=1e-7)
    one = numerals(built("numgpt"), ["1"])[0, 16:].numpy()
    np.testing.assert_allclose(found[:, 16:], np.tile(one, (len(powers), 1)), atol=2e-6)
    literals = ["-123", "0", "-0.0725", "9.75e11", "3.5e-30"]
    other = built("numgpt")
    with torch.no_grad():
        other.get_parameter("numerals.exponents.weight").copy_(torch.from_numpy(table))
    torch.testing.assert_close(
        numerals(of, literals, "xval"), numerals(other, literals), atol=1e-5, rtol=0
    )


@given(st.floats(2.0**-120, 2.0**120, width=32))
def test_mantissas_of_whole_numbers_are_from_1_to_10(value: float) -> None:
    of = EMBEDDERS.build("numgpt").build(vocabulary("xval"), WIDTH).get_submodule("numerals")
    place, mantissa = of._divided(torch.tensor([[value, -value]]))  # type: ignore[operator]
    assert 1 <= mantissa[0, 0] < 10.00001
    assert mantissa[0, 1] == -mantissa[0, 0]
    assert place[0, 0] == place[0, 1]


def test_values_are_not_rounded_to_bfloat16() -> None:
    for spec in ("numgpt", "dice"):
        of = built(spec)
        of.get_parameter("numeral").data.zero_()
        tokens = torch.full((1, 3), codec("numgpt").number_first + 8)
        values = torch.tensor([[1.001, 1.002, 9.5]])
        with torch.autocast("cpu", torch.bfloat16):
            rounded = of(tokens, values)
        assert rounded.dtype == torch.float32
        assert torch.equal(rounded, of(tokens, values))


def test_a_masked_number_does_not_show_its_mantissa() -> None:
    of = model("numgpt", "mlm:targets")
    one = batch("numgpt", ["2 * 3 = 6", "2 * 3 = 7"], targets=[2, 5])
    shown = of.given(OBJECTIVES.build("mlm:targets").example(one, generator(0)))
    hidden = of.hidden(shown.tokens, shown.values, shown.real)
    assert torch.equal(hidden[0], hidden[1])


# --- embedders of other systems -----------------------------------------------------------------


def test_scaled_multiplies_the_vector_of_the_exponent_by_the_mantissa() -> None:
    of = built("scaled")
    row = codec("numgpt").number_first + 8 + 2
    table = weight(of, "table.weight")
    np.testing.assert_allclose(
        number_vectors(of, ["-123", "0"]), [-1.23 * table[row], 0 * table[0]]
    )


def test_fourier_adds_features_of_the_whole_number_to_the_vector_of_its_exponent() -> None:
    of, whole = built("fourier"), built("fourier", "xval")
    literals = ["-123", "1", "4.5e-6", "0", "8e7", "3e14", "-3e14"]
    found = number_vectors(of, literals)
    table = weight(of, "table.weight")
    rows = encoded(literals).tokens + codec("numgpt").number_first
    with torch.no_grad():
        whole.get_parameter("linear.weight").copy_(of.get_parameter("linear.weight"))
        whole.get_parameter("table.weight").zero_()
    features = number_vectors(whole, literals, "xval")
    np.testing.assert_allclose(found, table[rows] + features, atol=1e-4)
    assert np.isfinite(found).all()


def test_lookup_sees_the_exponent_alone() -> None:
    found = number_vectors(built("lookup"), ["123", "-999", "1000"])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


# --- DICE ---------------------------------------------------------------------------------------


def angles(value: float, span: float, size: int = 64) -> list[float]:
    t = math.pi * value / span
    return [math.sin(t) ** k * math.cos(t) for k in range(size - 1)] + [math.sin(t) ** size]


@each("scheme", ["numgpt", "xval"])
def test_dice_turns_the_angle_of_the_whole_number_by_an_orthonormal_basis(scheme: str) -> None:
    of = built("dice", scheme)
    basis = of.get_submodule("numerals").get_buffer("basis").double()
    torch.testing.assert_close(basis @ basis.T, torch.eye(64).double(), atol=1e-5, rtol=0)
    values = [-123.0, 0.0, 2500.0, 5000.0, 9999.0]
    expected = np.array([angles(value, 10_000) for value in values])
    found = numerals(of, [repr(value) for value in values], scheme).numpy() @ basis.T.numpy()
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_dice_keeps_the_range_and_the_seed_that_are_asked_for() -> None:
    of = built("dice,range=-5..15,dimensions=8,seed=3")
    basis = of.get_submodule("numerals").get_buffer("basis").double()
    found = numerals(of, ["7", "-4"]).numpy() @ basis.T.numpy()
    np.testing.assert_allclose(found, [angles(7, 20, 8), angles(-4, 20, 8)], atol=1e-5)
    others = [built(f"dice,dimensions=8,seed={seed}") for seed in (0, 0, 1)]
    bases = [one.get_submodule("numerals").get_buffer("basis") for one in others]
    assert torch.equal(bases[0], bases[1])
    assert not torch.equal(bases[0], bases[2])


def test_dice_goes_around_beyond_its_range_or_stays_at_its_end() -> None:
    around = numerals(built("dice"), ["20001", "1"])
    torch.testing.assert_close(around[0], around[1], atol=2e-5, rtol=0)
    held = numerals(built("dice,clip=yes"), ["20001", "10000", "-3", "0"])
    torch.testing.assert_close(held[0::2], held[1::2])


@each("clip", ["yes", "no"])
def test_dice_has_a_number_that_overflows_at_the_end_of_its_range(clip: str) -> None:
    found = numerals(built(f"dice,clip={clip}"), ["7e13", "10000", "-7e13", "0", "1e-20"])
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[2], found[3])
    torch.testing.assert_close(found[4], found[3])


def test_nothing_of_dice_is_learnt_but_the_map_and_the_shared_halves() -> None:
    names = {name for name, _ in built("dice").named_parameters()}
    fused = {"table.weight", "numeral", "text", "from_token.weight", "from_numeral.weight"}
    assert names == fused
    more = {name for name, _ in built("numgpt").named_parameters()}
    assert more == fused | {"numerals.exponents.weight"}


# --- settings -----------------------------------------------------------------------------------


@each(
    ("spec", "parts"),
    [
        ("numgpt,dimensions=66", ("dimensions must", "a multiple of 4", "got 66")),
        ("numgpt,dimensions=0", ("dimensions must", "a multiple of 4", "got 0")),
        ("numgpt,sigma=0", ("sigma must be above 0 and finite",)),
        ("numgpt,sigma=inf", ("sigma must be above 0 and finite",)),
        ("numgpt,exponents=-37..3", ("exponents must", "-36..37", "got -37..3")),
        ("dice,dimensions=1", ("dimensions must", "at least 2", "got 1")),
        ("dice,range=5", ("range", "got 5", "from a number to a larger")),
        ("dice,range=7..3", ("range 7..3", "must not exceed the last")),
        ("dice,seed=-1", ("seed must", "at least 0", "got -1")),
    ],
)
def test_settings_that_cannot_be_are_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with says.raises(UsageError, *parts):
        EMBEDDERS.build(spec)


@each("name", ["numgpt", "dice"])
def test_numbers_without_a_value_beside_them_are_refused(name: str, says: Says) -> None:
    with says.raises(UsageError, f"--embedder {name}", "--embedder lookup"):
        EMBEDDERS.build(name).build(vocabulary("p1000"), WIDTH)
