"""Decoder heads, checked against all numbers of small codecs.

Exact answers (density, distribution function, quantiles, intervals, mode) come from readers with
given probabilities. What depends on a transformer is checked on one with random weights.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from numtok.encoding import grid
from numtok.encoding.automaton import automaton
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Scaling
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.models.attention import Shape
from numtok.models.distributions import decoded
from numtok.models.distributions.decoded import DecoderDistribution
from numtok.models.distributions.decoder_cells import cells, nearest_tokens
from numtok.models.distributions.sampling import Sampling
from numtok.models.heads._decoder import DecoderReader
from numtok.models.heads.base import HEADS
from tests.cases import each
from tests.fakeheads import PLAIN, SIGNED_LOG, Floats, Listed, Told, listed, value_head
from tests.fakemodels import one_thread
from tests.messages import Says

__all__ = ["one_thread"]

NORMALISED = [
    "nd,base=2,length=5",
    "nd,base=3,length=3,point=edge",
    "nd,base=4,length=3,point=centre",
    "nd,base=10,length=2,point=nearest",
]
UNNORMALISED = [
    "ud,base=2,exponent=1,mantissa=2",
    "ud,base=3,exponent=1,mantissa=2,point=centre",
    "ud,base=3,exponent=1,mantissa=1,point=edge",
]
ORDERED = NORMALISED + UNNORMALISED
DRAWN = [
    "hamming,length=4",
    "nd,base=2,length=2,repeat=3",
    "ud,base=2,exponent=1,mantissa=1,repeat=3",
]
SIZES = {"small": (2, 2, 16), "1 x 32": (1, 1, 32), "3 x 128": (3, 4, 128)}
LEVELS = [1e-9, 0.001, 0.1, 0.25, 0.5, 0.77, 0.999, 1 - 1e-9]


@cache
def log_masses(spec: str, rows: int = 3, spread: float = 2.0, seed: int = 0) -> Floats:
    """Return random log-probabilities of all numbers of a codec; each row sums to 1."""
    random = np.random.default_rng(seed)
    logs = spread * random.standard_normal((rows, len(listed(spec).paths)))
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    return np.asarray(logs)


def told(spec: str, logs: Floats, scaling: Scaling = PLAIN) -> DecoderDistribution:
    """Return the distributions of a reader with these log-probabilities."""
    reader = Told(listed(spec), logs)
    return DecoderDistribution(reader, reader.rows, scaling)


def inside(numbers: Listed, seed: int = 1) -> Floats:
    """Return a value inside each cell: float64[m]."""
    low, high = numbers.ends.T
    values: Floats = low + (high - low) * np.random.default_rng(seed).uniform(0.05, 0.95, len(low))
    return values


def all_at(
    one: DecoderDistribution,
    question: Callable[[DecoderDistribution], Callable[..., Floats]],
    *at: Floats,
) -> Floats:
    """Return the answers of each row about every value: float64[n, values]."""
    rows, count = len(one.parameters), len(at[0])
    repeated = one.parameters.repeat_interleave(count, dim=0)
    many = DecoderDistribution(one.reader, repeated, one.scaling)
    return question(many)(*(np.tile(part, rows) for part in at)).reshape(rows, count)


@cache
def random_reader(spec: str, size: str = "small", masked: bool = True) -> DecoderReader:
    """Return a decoder with weights so large that its output differs from token to token."""
    torch.manual_seed(3)
    scheme = SCHEMES.build(spec)
    layers, heads, width = SIZES[size]
    context = scheme.tokens_per_number or 0
    shape = Shape(layers=layers, heads=heads, width=width, context=context)
    reader = DecoderReader(5, scheme, automaton(scheme), shape, masked)
    with torch.no_grad():
        for parameter in reader.parameters():
            if parameter.dim() == 2:
                parameter.mul_(8)
    return reader.eval()


def random_parameters(reader: DecoderReader, rows: int) -> torch.Tensor:
    hidden = torch.from_numpy(np.random.default_rng(5).standard_normal((rows, 5))).float()
    with torch.no_grad():
        made: torch.Tensor = reader(hidden)
    return made


# --- exact answers ---------------------------------------------------------------------------


@each("spec", ORDERED + DRAWN)
def test_the_density_is_the_numbers_own_probability_over_the_width_of_its_cell(spec: str) -> None:
    numbers, logs = listed(spec), log_masses(spec)
    one = told(spec, logs)
    values = inside(numbers)
    tokens = nearest_tokens(numbers.scheme, values)[0]
    place = [numbers.paths.index(tuple(path)) for path in tokens.tolist()]
    low, high = numbers.ends[place].T
    assert ((low < values) & (values < high)).all()
    found = all_at(one, lambda d: d.log_density, values)
    np.testing.assert_allclose(found, logs[:, place] - np.log(high - low), atol=1e-9)


@each("scaling", [PLAIN, SIGNED_LOG])
@each("spec", ORDERED)
def test_the_distribution_function_is_the_sum_of_all_cells_below(
    spec: str, scaling: Scaling
) -> None:
    numbers, logs = listed(spec), log_masses(spec)
    one = told(spec, logs, scaling)
    ends = np.unique(numbers.ends)
    points = np.concatenate([ends, inside(numbers), [ends[0] - 1, ends[-1] + 1, -np.inf, np.inf]])
    raw = scaling.inverse(points)
    expected = np.stack([np.exp(logs) @ numbers.shares(-np.inf, point) for point in points], axis=1)
    found = all_at(one, lambda d: d.cdf, raw)
    np.testing.assert_allclose(found, expected, atol=1e-9 if scaling is PLAIN else 1e-8)
    assert np.isnan(one.cdf(np.full(3, np.nan))).all()


@each("scaling", [PLAIN, SIGNED_LOG])
@each("spec", ORDERED)
def test_a_quantile_is_where_the_sum_of_all_cells_reaches_its_level(
    spec: str, scaling: Scaling
) -> None:
    numbers, logs = listed(spec), log_masses(spec)
    order = np.argsort(numbers.ends[:, 0])
    low, high = numbers.ends[order].T
    expected = np.empty((3, len(LEVELS)))
    for row in range(3):
        mass = np.exp(logs[row, order])
        through = np.cumsum(mass)
        for at, level in enumerate(LEVELS):
            cell = min(int(np.searchsorted(through, level)), len(mass) - 1)
            share = (level - (through[cell] - mass[cell])) / mass[cell]
            expected[row, at] = low[cell] + share * (high[cell] - low[cell])
    found = scaling.forward(told(spec, logs, scaling).quantiles(LEVELS).ravel()).reshape(3, -1)
    widest = (high - low).max()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7 * widest)


@each("spec", ORDERED)
def test_an_interval_has_what_the_distribution_function_gains_on_it(spec: str) -> None:
    numbers, logs = listed(spec), log_masses(spec)
    one = told(spec, logs)
    values = inside(numbers)
    low, high = np.sort(
        np.random.default_rng(2).permuted(np.stack([values, values[::-1]]), axis=1), 0
    )
    gain = all_at(one, lambda d: d.cdf, high) - all_at(one, lambda d: d.cdf, low)
    found = np.exp(all_at(one, lambda d: d.log_interval, low, high))
    np.testing.assert_allclose(found, gain, atol=1e-9)


@each("spec", ORDERED)
def test_a_tiny_interval_and_a_tiny_probability_keep_their_digits(spec: str) -> None:
    numbers, logs = listed(spec), log_masses(spec, 1, 300.0)  # down to e^-1500
    one = told(spec, logs)
    middles = inside(numbers)
    low, high = numbers.ends.T
    spans = [
        (middles, middles + 1e-9 * (high - low)),  # within one cell
        (np.roll(np.sort(middles), 1)[1:], np.sort(middles)[1:]),  # across one edge of a cell
        (np.sort(middles)[:-3], np.sort(middles)[3:]),  # across whole cells
    ]
    for starts, stops in spans:
        found = all_at(one, lambda d: d.log_interval, starts, stops)[0]
        for start, stop, log in zip(starts.tolist(), stops.tolist(), found.tolist(), strict=True):
            with localcontext() as context:
                context.prec = 60
                total = Decimal(0)
                for (first, last), mass in zip(
                    numbers.ends.tolist(), logs[0].tolist(), strict=True
                ):
                    shared = Decimal(min(stop, last)) - Decimal(max(start, first))
                    if shared > 0:
                        total += Decimal(mass).exp() * shared / (Decimal(last) - Decimal(first))
                assert log == pytest.approx(float(total.ln()), abs=1e-5, rel=1e-9)


def test_an_interval_that_normalised_values_do_not_tell_apart_has_its_probability() -> None:
    scaling = FittedNormalizer(NORMALIZERS.build("unit"), {"low": -1e9, "width": 2e9})
    one = told("nd,base=10,length=3", log_masses("nd,base=10,length=3", 1), scaling)
    at, half = np.array([1e-5]), np.array([1e-12])
    expected = one.log_density(at)[0] + math.log(2e-12)
    assert one.log_recorded(at, half)[0] == pytest.approx(expected, abs=1e-6)


def test_the_crps_of_numbers_at_the_end_of_float64_is_finite() -> None:
    spec = "nd,base=2,length=5"
    scaling = FittedNormalizer(NORMALIZERS.build("scale:5"), {"factor": 1 / 1.7e308})
    one = told(spec, log_masses(spec, 1), scaling)
    with np.errstate(all="raise"):
        assert np.isfinite(one.crps(np.array([1e307]))).all()
        assert np.isfinite(one.mean()).all()


def test_an_interval_that_is_none_has_no_probability() -> None:
    one = told("nd,base=2,length=5", log_masses("nd,base=2,length=5"))
    low, high = np.array([0.5, 0.5, np.nan]), np.array([0.5, 0.25, 0.5])
    np.testing.assert_array_equal(one.log_interval(low, high), [-np.inf, -np.inf, np.nan])
    everything = one.log_interval(np.full(3, -np.inf), np.full(3, np.inf))
    np.testing.assert_allclose(everything, 0, atol=1e-12)
    np.testing.assert_array_equal(one.log_interval(np.full(3, 1.5), np.full(3, 1e300)), -np.inf)


@each("spec", [*ORDERED, "hamming,length=4"])
def test_beams_find_the_most_probable_number(spec: str) -> None:
    numbers = listed(spec)
    for seed in range(10):
        logs = log_masses(spec, 3, 1.0, seed)
        modes = told(spec, logs).mode()
        np.testing.assert_array_equal(modes, numbers.values[logs.argmax(axis=1)])


def test_one_beam_takes_the_most_probable_token_each_time() -> None:
    # 00 0.31, 01 0.29, 10 0.39, 11 0.01: greedy decoding starts with 0, but the mode is 10.
    logs = np.log([[0.31, 0.29, 0.39, 0.01], [0.1, 0.2, 0.3, 0.4]])
    reader = Told(listed("nd,base=2,length=2"), logs)
    assert reader.beams(reader.rows, 1)[0].tolist() == [[[0, 0]], [[1, 1]]]
    tokens, log_p = reader.beams(reader.rows, 16)
    assert tokens[:, 0].tolist() == [[1, 0], [1, 1]]
    np.testing.assert_allclose(log_p[:, :4], np.sort(logs)[:, ::-1])
    np.testing.assert_array_equal(reader.point(reader.rows), [0.125, 0.875])
    np.testing.assert_array_equal(told("nd,base=2,length=2", logs).mode(), [0.625, 0.875])


@each("spec", ORDERED)
def test_mean_and_crps_are_close_to_those_of_the_cells(spec: str) -> None:
    numbers, logs = listed(spec), log_masses(spec, 3, 0.5)
    one = told(spec, logs)
    low, high = numbers.ends.T
    mass, spread = np.exp(logs), np.ptp(numbers.ends)
    np.testing.assert_allclose(one.mean(), mass @ ((low + high) / 2), atol=0.02 * spread)
    grid = np.linspace(low.min() - 1, high.max() + 1, 4001)
    below = np.stack([mass @ numbers.shares(-np.inf, point) for point in grid], axis=1)
    truth = np.quantile(low, [0.1, 0.5, 1.0])
    expected = np.trapezoid((below - (grid >= truth[:, None])) ** 2, grid, axis=1)
    np.testing.assert_allclose(one.crps(truth), expected, atol=0.01 * spread)


# --- values outside the range of a codec ---------------------------------------------------------


@each("spec", [*NORMALISED, "hamming,length=4"])
def test_a_value_outside_the_range_has_no_density_and_is_learnt_as_the_nearest_cell(
    spec: str,
) -> None:
    numbers = listed(spec)
    one = told(spec, log_masses(spec, 4))
    outside = np.array([-1e-6, 1 + 1e-6, -np.inf, 1e300])
    np.testing.assert_array_equal(one.log_density(outside), -np.inf)
    assert np.isfinite(one.log_density(np.array([0.0, 1.0, 0.0, 1.0]))).all()
    tokens, beyond = nearest_tokens(numbers.scheme, outside)
    ends, none = nearest_tokens(numbers.scheme, np.array([0.0, 1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(tokens, ends)
    assert beyond.all() and not none.any()


@each("spec", UNNORMALISED)
def test_what_is_too_large_is_learnt_as_the_largest_and_what_is_too_small_as_zero(
    spec: str,
) -> None:
    scheme = listed(spec).scheme
    smallest, largest = scheme.bounds
    values = np.array([1e300, -np.inf, smallest / 9, -smallest / 9, np.nan])
    same = np.array([largest, -largest, 0.0, 0.0, 0.0])
    tokens, beyond = nearest_tokens(scheme, values)
    np.testing.assert_array_equal(tokens, nearest_tokens(scheme, same)[0])
    assert beyond.tolist() == [True, True, False, False, True]


@each("spec", UNNORMALISED)
def test_zero_has_the_gap_between_the_smallest_numbers_as_its_cell(spec: str) -> None:
    numbers = listed(spec)
    zero = numbers.paths.index(tuple(nearest_tokens(numbers.scheme, np.zeros(1))[0][0].tolist()))
    low, high = numbers.ends[zero]
    others = np.delete(numbers.ends, zero, axis=0)
    assert (low, high) == (others[others < 0].max(), others[others > 0].min())
    logs = log_masses(spec)
    one = told(spec, logs)
    np.testing.assert_allclose(one.log_density(np.zeros(3)), logs[:, zero] - math.log(high - low))
    gained = one.cdf(np.full(3, high)) - one.cdf(np.full(3, low))
    np.testing.assert_allclose(gained, np.exp(logs[:, zero]), atol=1e-12)


@each("spec", ["ud", "ud,base=2,exponent=4,mantissa=8", "p10", *ORDERED, *DRAWN])
def test_the_cells_of_many_numbers_are_those_of_the_scheme_one_by_one(spec: str) -> None:
    scheme = listed(spec).scheme
    random = np.random.default_rng(0)
    values = np.concatenate([random.random(200), random.standard_cauchy(200), [0.0, 1.0]])
    tokens, _ = nearest_tokens(scheme, values)
    expected = np.array([scheme.interval(tuple(path)) for path in tokens.tolist()])
    np.testing.assert_array_equal(np.column_stack(grid.cells(scheme, tokens)), expected)
    zeros = expected[:, 0] == expected[:, 1]
    low, high = cells(scheme, tokens)
    np.testing.assert_array_equal(np.column_stack([low, high])[~zeros], expected[~zeros])
    assert (low < high).all()


# --- samples -------------------------------------------------------------------------------------


def chi_square(drawn: Floats, values: Floats, expected: Floats) -> None:
    """Compare samples of few values with their probabilities; impossible values must not occur."""
    order = np.argsort(values)
    found = np.searchsorted(values[order], drawn)
    np.testing.assert_array_equal(values[order][found], drawn)
    counts, wanted = np.bincount(found, minlength=len(values)), expected[order] * len(drawn)
    assert (counts[wanted == 0] == 0).all()
    rare = wanted < 5
    pooled = (
        np.append(counts[~rare], counts[rare].sum()),
        np.append(wanted[~rare], wanted[rare].sum()),
    )
    some = pooled[1] > 0
    statistic = float((((pooled[0] - pooled[1]) ** 2)[some] / pooled[1][some]).sum())
    freedom = int(some.sum()) - 1
    assert statistic <= freedom + 5 * math.sqrt(2 * freedom)


@each("spec", [*ORDERED, "hamming,length=4"])
def test_samples_follow_the_distribution(spec: str) -> None:
    numbers, logs = listed(spec), log_masses(spec).copy()
    logs[:, ::3] = -np.inf  # impossible numbers
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    drawn = told(spec, logs).sample(5000, np.random.default_rng(0))
    for row in range(3):
        chi_square(drawn[row], numbers.values, np.exp(logs[row]))


def by_hand(sampling: Sampling, chances: Floats) -> Floats:
    """Return the probabilities of one token after sampling options, by definition: float64[V]."""
    p: Floats = chances ** (1 / sampling.temperature)
    falling = np.argsort(-p, kind="stable").tolist()
    if sampling.top_k:
        p[falling[sampling.top_k :]] = 0
    p /= p.sum()
    if sampling.top_p < 1:
        total, kept = 0.0, []
        for token in falling:
            if total < sampling.top_p:
                kept.append(token)
            total += p[token]
        p[[token for token in falling if token not in kept]] = 0
    p /= p.sum()
    return p


SAMPLINGS = [
    Sampling(temperature=0.5),
    Sampling(temperature=3.0),
    Sampling(top_k=1),
    Sampling(top_k=2),
    Sampling(top_p=0.6),
    Sampling(temperature=2.0, top_k=3, top_p=0.8),
]


@each("sampling", SAMPLINGS)
@each("spec", ["nd,base=4,length=3,point=centre", UNNORMALISED[0]])
def test_draws_are_changed_token_by_token(spec: str, sampling: Sampling) -> None:
    numbers, logs = listed(spec), log_masses(spec, 1)
    reader = Told(numbers, logs)
    expected = np.ones(len(numbers.paths))
    for number, path in enumerate(numbers.paths):
        for place, token in enumerate(path):
            chances = np.exp(reader.following(0, path[:place]))
            expected[number] *= by_hand(sampling, chances)[token]
    drawn = DecoderDistribution(reader, reader.rows, PLAIN).drawn(
        4000, np.random.default_rng(1), sampling
    )
    chi_square(drawn[0], numbers.values, expected)


def test_of_equal_tokens_no_more_than_k_are_kept() -> None:
    logs = torch.full((1, 5), math.log(0.2), dtype=torch.float64)
    assert int((Sampling(top_k=2).of(logs) > -torch.inf).sum()) == 2
    logs[0, 0] = -torch.inf
    assert int((Sampling(top_k=9).of(logs) > -torch.inf).sum()) == 4


@each(
    ("settings", "parts"),
    [
        ({"temperature": 0.0}, ("--temperature", "above 0", "got 0.0")),
        ({"top_k": -1}, ("--top-k", "0 (all) or more", "got -1")),
        ({"top_p": 1.5}, ("--top-p", "above 0, up to 1", "got 1.5")),
    ],
)
def test_an_impossible_sampling_is_refused(
    settings: dict[str, float], parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        Sampling(**settings)  # type: ignore[arg-type]


@each("spec", DRAWN)
def test_without_an_order_answers_come_from_draws(spec: str) -> None:
    numbers, logs = listed(spec), log_masses(spec)
    one = told(spec, logs)
    point = float(np.median(numbers.values))
    expected = np.exp(logs) @ (numbers.values <= point)
    np.testing.assert_allclose(one.cdf(np.full(3, point)), expected, atol=4 / math.sqrt(4 * 512))
    assert np.isin(one.quantiles([0.1, 0.5]), numbers.values).all()
    assert np.isnan(one.log_interval(np.zeros(3), np.ones(3))).all()
    assert one.sample(7, np.random.default_rng(0)).shape == (3, 7)


# --- a transformer -------------------------------------------------------------------------------


@each("size", list(SIZES))
@each("spec", ["ud", "nd,base=4,length=6", "hamming,length=5,repeat=2"])
def test_reading_token_by_token_gives_what_reading_at_once_gives(spec: str, size: str) -> None:
    reader = random_reader(spec, size)
    parameters = random_parameters(reader, 6)
    values = np.abs(np.random.default_rng(7).standard_normal(40)) / 4
    tokens = torch.from_numpy(nearest_tokens(reader.scheme, values)[0])
    which = torch.arange(40) % 6
    states = torch.from_numpy(reader.automaton.states(tokens.numpy()))
    with torch.no_grad():
        at_once = reader.log_probabilities(parameters[which], tokens, states)
    assert float(at_once.exp().max(dim=2).values.std()) > 0.01  # outputs differ between tokens
    begun, now = reader.begun(parameters), which
    for place in range(tokens.shape[1]):
        np.testing.assert_allclose(begun.log_p[now], at_once[:, place], rtol=1e-5, atol=1e-5)
        if place + 1 < tokens.shape[1]:
            now = begun.extend(now, tokens[:, place])


@each("spec", [*ORDERED, *DRAWN, "ud,base=8,exponent=2,mantissa=3", "p10"])
def test_whatever_the_weights_only_numbers_are_said_and_share_a_probability_of_one(
    spec: str,
) -> None:
    reader = random_reader(spec)
    parameters = random_parameters(reader, 4)
    one = DecoderDistribution(reader, parameters, PLAIN)
    for sampling in (Sampling(), Sampling(temperature=100.0)):
        assert np.isfinite(one.drawn(300, np.random.default_rng(0), sampling)).all()
    assert np.isfinite(one.mode()).all()
    if len(listed(spec).paths) < 5000:
        paths = torch.tensor(listed(spec).paths)
        states = torch.from_numpy(reader.automaton.states(paths.numpy()))
        with torch.no_grad():
            logs = reader.log_probabilities(parameters[:1].expand(len(paths), -1), paths, states)
        chosen = logs.gather(2, paths[:, :, None])[:, :, 0]
        assert float(chosen.sum(dim=1).exp().sum()) == pytest.approx(1, abs=1e-9)


@each("spec", ["ud", "nd,base=10,length=4", UNNORMALISED[0]])
def test_of_a_transformer_quantiles_and_distribution_function_are_of_one_mind(spec: str) -> None:
    reader = random_reader(spec)
    one = DecoderDistribution(reader, random_parameters(reader, 1), PLAIN)
    levels = np.linspace(0.01, 0.99, 60)
    quantiles = one.quantiles(levels.tolist())[0]
    np.testing.assert_allclose(all_at(one, lambda d: d.cdf, quantiles)[0], levels, atol=1e-5)


@pytest.mark.parametrize("spec", ["ud", UNNORMALISED[0], "hamming,length=4"])
def test_answers_do_not_depend_on_how_many_rows_are_worked_out_at_a_time(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = random_reader(spec)
    parameters = random_parameters(reader, 7)
    values = np.linspace(0.01, 0.9, 7)

    def answers() -> list[Floats]:
        one = DecoderDistribution(reader, parameters, PLAIN)
        drawn = one.sample(9, np.random.default_rng(0))
        return [drawn, one.log_density(values), one.cdf(values), one.mode()]

    whole = answers()
    monkeypatch.setattr(decoded, "_AT_ONCE", 20)
    monkeypatch.setattr(decoded, "_FOLLOWED", 3)
    for one, other in zip(whole, answers(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_no_rows_have_no_answers() -> None:
    reader = random_reader("ud")
    one = DecoderDistribution(reader, random_parameters(reader, 0), PLAIN)
    nothing = np.empty(0)
    assert (
        one.log_density(nothing).shape == one.cdf(nothing).shape == one.crps(nothing).shape == (0,)
    )
    assert one.log_interval(nothing, nothing).shape == one.mode().shape == (0,)
    assert one.quantiles([0.5]).shape == (0, 1)
    assert one.sample(3, np.random.default_rng(0)).shape == (0, 3)


# --- training ------------------------------------------------------------------------------------


@each("spec", ["ud", "nd,base=2,length=5", "hamming,length=4"])
def test_the_loss_is_the_probability_of_the_tokens_and_token_losses_their_mean(spec: str) -> None:
    reader = random_reader(spec)
    parameters = random_parameters(reader, 20)
    values = np.random.default_rng(0).random(20)
    learnt = torch.from_numpy(value_head(f"decoder:{spec}").targets(values))
    tokens = torch.from_numpy(nearest_tokens(reader.scheme, values)[0])
    with torch.no_grad():
        losses = reader.losses(parameters, learnt)
        means = reader.token_losses(parameters, learnt)
    low, high = cells(reader.scheme, tokens.numpy())
    density = DecoderDistribution(reader, parameters, PLAIN).log_density(values)
    np.testing.assert_allclose(losses, -(density + np.log(high - low)), rtol=1e-5)
    np.testing.assert_allclose(means * tokens.shape[1], losses, rtol=1e-6)


@each(
    ("setting", "expected"), [("", 9 * math.log(13)), (",masked=yes", math.log(3 * 2 * 9 * 10**6))]
)
def test_the_loss_of_a_token_that_is_as_likely_as_any_other(setting: str, expected: float) -> None:
    """Golden number: -log p of 3.25 for equal logits.

    The public code normalizes over all signs, digits and zero. With ``masked``, only allowed tokens
    count: 3 (two signs or zero), 2 exponent signs, 9 first digits, and six times 10 other digits.
    """
    reader = value_head(f"decoder:ud,base=10,exponent=2,mantissa=5{setting}").build(4)
    assert isinstance(reader, DecoderReader)
    with torch.no_grad():
        reader.out.weight.zero_()
        reader.out.bias.zero_()
    targets = value_head("decoder:ud,base=10,exponent=2,mantissa=5").targets(np.array([3.25]))
    losses = reader.losses(torch.zeros(1, 32), torch.from_numpy(targets))
    assert losses.item() == pytest.approx(expected)


def test_a_loss_that_is_not_masked_counts_what_cannot_follow() -> None:
    masked, free = random_reader("ud"), random_reader("ud", masked=False)
    learnt = torch.from_numpy(value_head("decoder:ud").targets(np.array([3.25, -1e7, 0.0])))
    parameters = random_parameters(masked, 3)
    assert free.load_state_dict(masked.state_dict())
    with torch.no_grad():
        assert (free.losses(parameters, learnt) > masked.losses(parameters, learnt)).all()
        tokens, states = learnt.chunk(2, dim=1)
        assert torch.equal(
            free.log_probabilities(parameters, tokens, states),
            masked.log_probabilities(parameters, tokens, states),
        )


@each(
    ("spec", "parts"),
    [
        ("decoder:nd,mantissa=3", ("mantissa=3", "nd", "base, length, repeat")),
        ("decoder:p10,base=3", ("base=3", "p10", "its settings: none")),
        ("decoder:digits", ("'digits'", "such as nd or ud")),
        ("decoder:ud,width=33", ("width", "got 33", "multiple of 2")),
    ],
)
def test_settings_that_the_codec_has_not_are_refused(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        HEADS.build(spec)


def tokens_of(spec: str, values: list[float]) -> NDArray[np.int64]:
    """Return the tokens that a decoder is trained to output for the given values."""
    return nearest_tokens(listed(spec).scheme, np.array(values))[0]


def test_two_numbers_in_one_cell_are_one_number() -> None:
    same = tokens_of("nd,base=10,length=2", [0.301, 0.309])
    assert same.tolist() == [[3, 0], [3, 0]]
