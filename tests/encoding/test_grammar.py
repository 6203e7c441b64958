"""The grammar, compared with the scheme, and probabilities, compared with plain sums."""

import math
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.encoding.grammar import Grammar, Paths, Support
from numtok.encoding.grid import GridScheme
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.encoding.schemes.base import SCHEMES, Next, Scheme
from numtok.encoding.schemes.p1000 import P1000
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.plugins import add_plugin_folders
from tests.cases import each
from tests.messages import Says

PLUGINS = Path(__file__).parents[1] / "plugins"
FIXED = ["p10", "p1000", "b1999", "fp15", "p10,digits=2,exponents=-1..1"]
SMALL = "p10,digits=1,exponents=0..1"
LITERALS = ["-60.2", "0", "nan", "inf", "1e400", "-1e-400", "9.996", "1e-7", "3", "-125"]


def encoded(scheme: Scheme, literals: list[str]) -> list[tuple[int, ...]]:
    """Return the tokens of each number."""
    tokens, lengths = scheme.encode(Numerals.of_literals(literals))[:2]
    return [tuple(part.tolist()) for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def padded(paths: list[tuple[int, ...]]) -> NDArray[np.int64]:
    """Return paths padded with -1: int64[n, longest]."""
    width = max(map(len, paths))
    return np.array([(*path, *[-1] * (width - len(path))) for path in paths], np.int64)


@cache
def listed(spec: str) -> tuple[Scheme, Support]:
    """Return a scheme and its support, cached because listing it is slow."""
    scheme = SCHEMES.build(spec)
    return scheme, Support.of(Grammar(scheme))


def check_grammar(scheme: Scheme) -> None:
    """Check that the grammar agrees with the scheme for every prefix of some numbers."""
    prefixes = [path[:k] for path in encoded(scheme, LITERALS) for k in range(len(path) + 1)]
    grammar = Grammar(scheme)
    states = grammar.states(prefixes)
    expected = [scheme.next(prefix) for prefix in prefixes]
    np.testing.assert_array_equal(grammar.masks(states), [one.allowed for one in expected])
    np.testing.assert_array_equal(grammar.may_end(states), [one.may_end for one in expected])
    assert sorted(set(states.tolist())) == list(range(len(grammar)))
    check_paths(grammar)


def check_paths(grammar: Grammar) -> None:
    """Check numbers token by token; finished ones stay as they are. Then keep only some of them."""
    tokens = padded(encoded(grammar.scheme, LITERALS))
    paths, which = Paths(grammar, len(tokens)), np.arange(len(tokens))
    for place in range(tokens.shape[1] + 1):
        prefixes = [tuple(t for t in row[:place] if t >= 0) for row in tokens[which].tolist()]
        np.testing.assert_array_equal(paths.states(), grammar.states(prefixes))
        if place == 1:
            paths.keep(np.array([8, 0, 3, 0]))
            which = which[[8, 0, 3, 0]]
        if place < tokens.shape[1]:
            paths.extend(tokens[which, place])


# --- the grammar -------------------------------------------------------------------------------


@each("name", SCHEMES.names())
def test_the_grammar_says_what_the_scheme_says(name: str) -> None:
    check_grammar(SCHEMES.build(name))


@pytest.mark.parametrize("name", ["decade", "rns", "shortest"])
def test_the_grammar_of_a_plugin_says_what_the_plugin_says(plugins: Path, name: str) -> None:
    add_plugin_folders([PLUGINS])
    check_grammar(SCHEMES.build(name))


def test_no_prefixes_have_no_answers() -> None:
    grammar = Grammar(P1000())
    states = grammar.states([])
    assert grammar.masks(states).shape == (0, 926)
    assert grammar.may_end(states).shape == (0,)


def asked_of_p1000(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Record the prefixes passed to ``P1000.next``."""
    asked: list[tuple[int, ...]] = []
    answer = P1000.next

    def noted(scheme: P1000, prefix: tuple[int, ...]) -> Next:
        asked.append(prefix)
        return answer(scheme, prefix)

    monkeypatch.setattr(P1000, "next", noted)
    return asked


def test_a_scheme_is_asked_once_for_each_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_of_p1000(monkeypatch)
    prefixes = [(sign, mantissa) for sign in range(2) for mantissa in range(2, 902)]
    assert len(np.unique(Grammar(P1000()).states(prefixes * 3))) == 1
    assert sorted(asked) == prefixes


# --- the support -------------------------------------------------------------------------------


@each("spec", FIXED)
def test_a_support_lists_every_number_once_with_its_interval_and_value(spec: str) -> None:
    scheme, support = listed(spec)
    width = support.paths.shape[1]
    assert isinstance(scheme, GridScheme) and width == scheme.tokens_per_number
    ordinary = set(product(*(ids.tolist() for ids in scheme.ids)))
    extras = {
        (token,) * width for token in range(scheme.paper_vocabulary_size, len(scheme.vocabulary()))
    }
    paths = [tuple(path) for path in support.paths.tolist()]
    assert len(paths) == len(ordinary) + 8
    assert set(paths) == ordinary | extras
    for place in range(0, len(paths), 97):
        tokens, lengths = support.paths[place].astype(np.uint32), np.array([width], np.int32)
        bounds = support.low[place], support.high[place]
        np.testing.assert_array_equal(bounds, scheme.interval(paths[place]))
        value = scheme.decode(tokens, lengths).values[0]
        np.testing.assert_array_equal(support.values[place], value)


@each("spec", FIXED)
def test_the_numbers_of_a_support_ascend_without_gap_and_nan_is_last(spec: str) -> None:
    support = listed(spec)[1]
    assert np.isnan(support.low[-1])
    ends = list(zip(support.low[:-1].tolist(), support.high[:-1].tolist(), strict=True))
    assert (ends[0], ends[-1]) == ((-math.inf, -math.inf), (math.inf, math.inf))
    assert all(one[1] == other[0] for one, other in pairwise(ends))


def test_a_support_in_raw_units_has_its_normalisation_undone() -> None:
    support = Support.of(Grammar(SCHEMES.build(SMALL)))
    raw = support.raw(FittedNormalizer(NORMALIZERS.build("affine"), {"mean": 7, "deviation": 2}))
    np.testing.assert_array_equal(raw.low, support.low * 2 + 7)
    np.testing.assert_array_equal(raw.high, support.high * 2 + 7)
    np.testing.assert_array_equal(raw.values, support.values * 2 + 7)
    assert raw.paths is support.paths


REFUSED = [
    ("xval", ("'xval'", "a head that predicts values")),
    ("digits", ("'digits'", "Use samples")),
    ("p10,digits=15", ("'p10,digits=15'", "1,000,000", "fewer digits")),
]


@pytest.mark.integration
@pytest.mark.parametrize(("spec", "parts"), REFUSED)
def test_a_scheme_whose_numbers_cannot_be_listed_is_refused(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        Support.of(Grammar(SCHEMES.build(spec)))


# --- probabilities -----------------------------------------------------------------------------


def plain_log_probability(
    scheme: Scheme, logits: NDArray[np.float64], path: tuple[int, ...]
) -> float:
    """Sum log-softmaxes over the allowed tokens, subtracting the largest logit in each."""
    total = 0.0
    for position, token in enumerate(path):
        allowed = scheme.next(path[:position]).allowed
        scores = [s for s, ok in zip(logits[position].tolist(), allowed, strict=True) if ok]
        largest = max(scores)
        norm = math.fsum(math.exp(score - largest) for score in scores)
        total += float(logits[position, token]) - largest - math.log(norm)
    return total


@each("scale", [0.0, 1.0, 1e4])
@each("spec", [SMALL, "b1999,exponents=0..1", "fp15,exponents=3..3"])
def test_log_probabilities_are_the_plain_sums(spec: str, scale: float) -> None:
    scheme, support = listed(spec)
    shape = 3, support.paths.shape[1], len(scheme.vocabulary())
    logits = scale * np.random.default_rng(0).standard_normal(shape)
    found = support.log_probabilities(logits)
    for row, place in product(range(3), range(0, len(support.paths), len(support.paths) // 10)):
        expected = plain_log_probability(scheme, logits[row], tuple(support.paths[place].tolist()))
        assert found[row, place] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@each("scale", [1.0, 30.0, 1e6])
@each("spec", FIXED)
def test_the_probabilities_of_all_numbers_sum_to_one(spec: str, scale: float) -> None:
    scheme, support = listed(spec)
    shape = 3, support.paths.shape[1], len(scheme.vocabulary())
    logits = np.random.default_rng(1).standard_normal(shape).astype(np.float32) * np.float32(scale)
    found = support.log_probabilities(logits)
    assert found.shape == (3, len(support.paths))
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, rtol=1e-12)


def test_a_scheme_from_outside_the_package_has_a_support(plugins: Path) -> None:
    add_plugin_folders([PLUGINS])
    scheme = SCHEMES.build("logarithm")
    support = Support.of(Grammar(scheme))
    assert len(support.paths) == len(scheme.vocabulary())
    logits = np.random.default_rng(4).standard_normal((2, 1, len(scheme.vocabulary())))
    found = support.log_probabilities(logits)
    order = support.paths[:, 0]
    np.testing.assert_allclose(np.diff(found), np.diff(logits[:, 0, order]), atol=1e-12)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)
