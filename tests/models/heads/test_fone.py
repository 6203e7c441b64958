"""The head ``fone``: digits from pairs of coordinates."""

import numpy as np
import pytest
import torch

from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.models.heads.base import HEADS, ValueHead, ValueReader
from numtok.numerals.column import Numerals
from tests.cases import each
from tests.fakeheads import PLAIN, value_head

NUMBERS = [17.5, -0.00001, 1234567890.12345, -9999999999.99999, 0.0]


def said(of: ValueHead, numbers: list[float], width: int = 40) -> tuple[ValueReader, torch.Tensor]:
    """Return a reader, and parameters that predict these numbers with certainty."""
    targets = of.targets(np.array(numbers))
    digits = np.eye(10)[targets[:, 1:]] * 400 - 200
    minus = targets[:, :1] * 400 - 200
    parameters = np.concatenate([minus, digits.reshape(len(numbers), -1)], axis=1)
    return of.build(width), torch.from_numpy(parameters).float()


def test_targets_are_the_digits() -> None:
    made = value_head("fone,whole=2,decimals=1").targets(np.array([17.5, -3.04, 1e30, np.nan]))
    assert made.tolist() == [[0, 1, 7, 5], [1, 0, 3, 0], [0, 9, 9, 9], [0, 0, 0, 0]]


@each(("bases", "seven", "logits"), [("10", [7 / 10], (1, -1)), ("2+5", [7 / 2, 7 / 5], (2, 0))])
def test_the_logits_of_a_digit(bases: str, seven: list[float], logits: tuple[int, int]) -> None:
    """Golden numbers of the public code: the logits of 7 and 2, from the coordinates of 7.

    With the bases 2 and 5, the digits 7 and 2 agree modulo 5 and differ modulo 2.
    """
    reader = value_head(f"fone,whole=1,decimals=0,bases={bases}").build(8)
    reader.norm = torch.nn.Identity()
    turns = 2 * np.pi * np.array(seven)
    coordinates = np.stack([np.cos(turns), np.sin(turns)], axis=1).ravel()
    hidden = torch.zeros(1, 8)
    hidden[0, : len(coordinates)] = torch.from_numpy(coordinates)
    read = reader(hidden)[0, 1:].tolist()
    assert (read[7], read[2]) == pytest.approx(logits, abs=1e-6)


def test_what_is_learnt_is_what_is_said() -> None:
    """All fifteen digits stay, even where the paper's decoding loses some (17.50001, 1009.09)."""
    rng = np.random.default_rng(0)
    many = (rng.integers(0, 10**15, 3000) * rng.choice([-1, 1], 3000) / 10**5).tolist()
    reader, parameters = said(value_head("fone"), [*NUMBERS, 17.5, 1, 3, 1000, *many])
    expected = [*NUMBERS, 17.5, 1, 3, 1000, *many]
    assert reader.point(parameters).tolist() == expected
    assert reader.predictive(parameters, {}, PLAIN).mode().tolist() == expected


@each(("whole", "decimals"), [(15, 0), (10, 5), (5, 10), (0, 15), (1, 14)])
def test_fifteen_digits_are_kept_wherever_the_point_is(whole: int, decimals: int) -> None:
    """Digits survive from the literal to the channel, to the digit targets, and back."""
    spec = f"fone,whole={whole},decimals={decimals}"
    units = np.random.default_rng(whole).integers(1, 10**15, 300)
    literals = [f"{unit}e-{decimals}" for unit in [1, 10**15 - 1, *units.tolist()]]
    channel = SCHEMES.build(spec).encode(Numerals.of_literals(literals)).channel if whole else None
    values = np.array([float(one) for one in literals])
    if channel is not None:
        assert channel.tolist() == values.tolist()
    reader, parameters = said(value_head(spec), values.tolist())
    assert reader.point(parameters).tolist() == values.tolist()


def test_a_distribution_of_sure_digits_is_that_number() -> None:
    reader, parameters = said(value_head("fone"), NUMBERS)
    sure = reader.predictive(parameters, {}, PLAIN)
    assert sure.median() == pytest.approx(NUMBERS, abs=1e-9, rel=1e-15)
    assert sure.mean() == pytest.approx(NUMBERS, abs=1e-9, rel=1e-14)
    assert np.exp(sure.log_density(np.array(NUMBERS))) == pytest.approx([1e5] * len(NUMBERS))


def test_a_digit_is_read_from_its_own_two_coordinates() -> None:
    """The last decimal uses the first two coordinates: a pair at the angle 2 pi j / 10 means j."""
    of = value_head("fone,whole=2,decimals=1")
    reader = of.build(8)
    state, turns = torch.zeros(1, 8), 2 * torch.pi * torch.tensor([5, 7, 1]) / 10
    state[0, :6:2], state[0, 1:6:2], state[0, 6] = turns.cos(), turns.sin(), -1.0
    with torch.no_grad():
        assert reader.point(reader(state)).tolist() == [17.5]


def test_losses_are_the_mean_over_places_and_sign() -> None:
    of = value_head("fone,whole=2,decimals=1")
    reader, targets = of.build(8), torch.from_numpy(of.targets(np.array([17.5])))
    even = torch.zeros(1, 31)
    expected = (3 * np.log(10) + np.log(2)) / 4
    assert reader.losses(even, targets).tolist() == pytest.approx([expected])


@each("spec", ["fone,whole=11,decimals=5", "fone,whole=0,decimals=0"])
def test_more_digits_than_float64_holds_are_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="15 digits"):
        HEADS.build(spec)


def test_a_state_that_is_too_narrow_is_refused() -> None:
    with pytest.raises(UsageError, match="31 coordinates"):
        value_head("fone").build(30)


def test_what_has_more_digits_is_not_representable() -> None:
    values = np.array([999.4, -999.6, 0.0])
    assert value_head("fone,whole=3,decimals=0").representable(values).tolist() == [
        True,
        False,
        True,
    ]
