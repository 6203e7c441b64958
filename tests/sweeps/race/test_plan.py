"""Rounds of a race: numbers of candidates, durations and steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.sweeps.race.plan import (
    RaceShape,
    Time,
    entered,
    expected,
    rounds_of,
    seconds_of,
    shortened,
)
from tests.cases import each


@each(
    ("count", "finalists", "sizes"),
    [(18, 3, [18, 6, 3]), (4, 3, [4, 3]), (3, 3, [3]), (2, 3, [2]), (1, 2, [1])],
)
def test_a_third_goes_on_until_few_are_left(count: int, finalists: int, sizes: list[int]) -> None:
    assert RaceShape(finalists, seeds=1).sizes(count) == sizes


@given(st.integers(1, 200), st.integers(1, 5), st.integers(1, 5), st.floats(1, 1e5))
def test_rounds_take_the_time_there_is(
    count: int, finalists: int, seeds: int, seconds: float
) -> None:
    """All rounds together use 90% of the time. They take longer only if the last round would
    otherwise be shorter than the round before it."""
    shape = RaceShape(finalists, seeds)
    sizes = shape.sizes(count)
    times = seconds_of(Time(seconds, 0, 1), sizes, shape)
    assert times == sorted(times)
    runs = [*sizes[:-1], sizes[-1] * seeds]
    spent = sum(size * each for size, each in zip(runs, times, strict=True))
    assert spent == pytest.approx(0.9 * seconds) or times[-1] == times[-2]


def test_what_runs_take_beside_training_is_taken_off_but_half_of_the_time_is_trained() -> None:
    alone, beside, most = (
        seconds_of(Time(100, each, 1), [2], RaceShape(2, 1)) for each in (0, 5, 1000)
    )
    assert [*alone, *beside, *most] == pytest.approx([45, 30, 25])
    assert seconds_of(Time(100, 0, 4), [2], RaceShape(2, 1)) == [180]  # four parallel runs


def test_steps_are_by_the_pace_of_each_and_not_beyond_what_is_worth_it() -> None:
    first, last = rounds_of(
        Time(1000, 0, 1), [1.0, 2.0, 1e9, 1e-9], RaceShape(2, 1), most=[500] * 4
    )
    assert (first.size, last.size) == (4, 2)
    assert first.steps == [112, 56, 1, 500] and last.steps == [225, 112, 1, 500]


def test_a_slower_machine_shortens_later_rounds_to_the_time_that_is_left() -> None:
    paces = [0.01, 0.02, 0.04, 0.01, 0.01, 0.02, 0.03, 0.02, 0.01]
    first, *later = rounds_of(Time(1000, 0, 1), paces, RaceShape(2, 3), most=[10**6] * len(paces))
    assert len(later) == 2
    unhurried = shortened(Time(1000, 0, 1), later, first, paces, seeds=3)
    assert unhurried == later
    slower = [2 * pace for pace in paces]
    left = 1000 - 2 * first.size * first.seconds
    rounds = shortened(Time(left, 0, 1), later, first, slower, seeds=3)
    runs = [rounds[0].size, 3 * rounds[1].size]
    for place, pace in enumerate(slower):
        spent = sum(n * one.steps[place] * pace for n, one in zip(runs, rounds, strict=True))
        assert 0.8 * left < spent <= left
        steps = [one.steps[place] for one in (first, *rounds)]
        assert steps == sorted(steps) and steps[-1] < later[-1].steps[place]
    assert [one.steps for one in shortened(Time(1, 0, 1), later, first, slower, 3)] == [
        first.steps,
        first.steps,
    ]


def test_only_as_many_are_entered_as_there_is_time_for() -> None:
    paces, shape = [0.1] * 40, RaceShape(3, 3)
    assert entered(Time(1e6, 1, 1), paces, shape, least=[60] * 40) == 40
    few = entered(Time(100, 1, 1), paces, shape, least=[60] * 40)
    assert 3 <= few < 40
    assert entered(Time(100, 1, 1), paces, shape, least=[1000] * 40) == 3
    assert entered(Time(1, 1, 1), paces[:1], shape, least=[60] * 40) == 1


def test_a_dry_run_says_how_many_train_how_long() -> None:
    told = expected(Time(100, 0, 1), 9, RaceShape(3, 2))
    assert [(one.size, one.rates, one.seeds) for one in told] == [(9, 1, 1), (3, 1, 2)]
    assert [one.seconds for one in told] == [5, 7.5]


def test_rates_are_tried_in_the_first_round_and_there_is_one() -> None:
    told = expected(Time(100, 0, 1), 9, RaceShape(3, 2, 3))
    assert [(one.size, one.rates, one.seeds) for one in told] == [(9, 3, 1), (3, 1, 2)]
    spent = [one.size * one.rates * one.seeds * one.seconds for one in told]
    assert spent == pytest.approx([45, 45])
    few = expected(Time(100, 0, 1), 2, RaceShape(3, 2, 3))
    assert [(one.size, one.rates, one.seeds) for one in few] == [(2, 3, 1), (2, 1, 2)]
    paces = [0.1] * 40
    alone, tried = (
        entered(Time(1000, 1, 1), paces, RaceShape(3, 3, rates), [60] * 40) for rates in (1, 3)
    )
    assert tried < alone
