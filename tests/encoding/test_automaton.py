"""The table of states of a scheme, compared with the scheme's own answers for each prefix."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from numtok.encoding.automaton import Automaton, automaton
from numtok.encoding.grid import ascending
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.plugins import add_plugin_folders
from tests.cases import each
from tests.fakeheads import listed
from tests.messages import Says

SPECS = [
    "nd,base=3,length=3",
    "hamming,length=4",
    "ud,base=2,exponent=1,mantissa=2",
    "ud,base=3,exponent=1,mantissa=2,point=edge",
    "ud,base=2,exponent=1,mantissa=1,repeat=2",
    "p10,digits=2,exponents=-1..0",
    "p1000,exponents=0..0",
    "fp15,exponents=-1..0",
]


def walked(of: Automaton, path: tuple[int, ...]) -> int:
    """Return the state after a prefix of a number, -1 if it is not one."""
    state = 0
    for token in path:
        if state >= 0:
            state = int(of.next[state, token])
    return state


@each("spec", SPECS[:6])
def test_exactly_the_finite_numbers_can_be_walked(spec: str) -> None:
    numbers, of = listed(spec), automaton(SCHEMES.build(spec))
    beginnings: list[tuple[int, ...]] = [()]
    for _ in range(numbers.scheme.tokens_per_number or 0):
        beginnings = [
            (*path, token)
            for path in beginnings
            for token in np.flatnonzero(of.next[walked(of, path)] >= 0).tolist()
        ]
    assert sorted(beginnings) == sorted(numbers.paths)


@each("spec", SPECS)
def test_the_states_of_whole_numbers_are_those_before_each_token(spec: str) -> None:
    of = automaton(SCHEMES.build(spec))
    random, tokens, states = np.random.default_rng(0), [], []
    for _ in range(50):
        state, path, before = 0, [], []
        for _ in range(of.scheme.tokens_per_number or 0):
            before.append(state)
            path.append(int(random.choice(np.flatnonzero(of.next[state] >= 0))))
            state = int(of.next[state, path[-1]])
        assert state == 0  # after the last token
        tokens.append(path)
        states.append(before)
    np.testing.assert_array_equal(of.states(np.array(tokens)), states)


@each("spec", SPECS)
def test_the_order_of_tokens_is_that_of_the_values_they_lead_to(spec: str) -> None:
    scheme = SCHEMES.build(spec)
    of = automaton(scheme)
    assert of.ordered == (ascending(scheme, ()) is not None)
    for state, (order, rank) in enumerate(zip(of.order, of.rank, strict=True)):
        np.testing.assert_array_equal(order[rank], np.arange(len(order)))
        possible = of.next[state][order] >= 0
        assert (np.diff(possible.astype(int)) <= 0).all()  # allowed tokens come first
    if of.ordered:
        some = listed(spec).paths[::3]
        for path in [one[:place] for one in some for place in range(len(one))]:
            state = walked(of, path)
            there = of.order[state][of.next[state][of.order[state]] >= 0].tolist()
            ends = [scheme.interval((*path, token)) for token in there]
            assert all(one.high <= other.low for one, other in pairwise(ends))


def test_beginnings_that_go_on_alike_are_one_state() -> None:
    assert len(automaton(SCHEMES.build("nd,base=10,length=6")).next) == 6
    # States record the sign and the exponent; after those, only the sign and zero.
    assert len(automaton(SCHEMES.build("ud")).next) < 70
    assert len(automaton(SCHEMES.build("ud,base=10,exponent=2,mantissa=8")).next) < 90


@each("spec", ["digits", "xval"])
def test_a_scheme_without_a_fixed_number_of_tokens_is_refused(spec: str, says: Says) -> None:
    with says.raises(UsageError, f"'{spec}'", "nd or ud"):
        automaton(SCHEMES.build(spec))


FORGETFUL = '''"""forgetful: every beginning may go on otherwise."""

from dataclasses import dataclass

from numtok.encoding.schemes.base import Next
from numtok.encoding.schemes.nd import ND


@dataclass(frozen=True)
class Forgetful(ND):
    def next(self, prefix: tuple[int, ...]) -> Next:
        return ND.next(self, prefix)._replace(state=None)
'''


def test_too_many_states_are_refused(
    plugins: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    (plugins / "schemes" / "forgetful.py").write_text(FORGETFUL, "utf-8")
    add_plugin_folders([plugins])
    monkeypatch.setattr("numtok.encoding.automaton._MOST_STATES", 100)
    assert len(automaton(SCHEMES.build("forgetful,base=2,length=6")).next) == 63
    with says.raises(UsageError, "'forgetful,base=2,length=7'", "100 states", "nd or ud"):
        automaton(SCHEMES.build("forgetful,base=2,length=7"))
