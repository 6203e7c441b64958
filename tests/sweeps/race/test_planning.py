"""Plans of a race, as functions of measurements."""

from typing import Any

import pytest

from numtok.settings.race import Config
from numtok.sweeps.race.plan import Candidate, Plan, RaceShape, Time, Unit
from numtok.sweeps.race.planning import Measurements, plan_of, shape_of


def candidate(pace: float, unit: Unit = "steps", batch: int = 16) -> Candidate:
    return Candidate(
        label=f"{unit} of {pace} s",
        data="encoded@0123456789abcdef",
        scheme="p10",
        options={},
        preset="nano",
        batch=batch,
        unit=unit,
        pace=pace,
        rates=[0.002],
    )


def plan(
    candidates: list[Candidate], seconds: float, overhead: float = 0.0, **measured: Any
) -> Plan:
    facts = {"unfit": {}, "unmeasured": 0, **measured}
    return plan_of(
        Measurements(candidates=candidates, time=Time(seconds, overhead, 1), **facts),
        RaceShape(2, seeds=3),
        threads=1,
        train_rows=1000,
        test="test",
        rows=(None, None),
        guesses={"": 0.0},
    )


def test_candidates_without_time_for_their_fewest_steps_are_left_out_last_first() -> None:
    """Those that were not measured are left out, too; those that cannot be trained are not."""
    measured = [candidate(0.1 + index / 1000) for index in range(9)]
    unfit = {"bpe": "needs text"}
    whole = plan(measured, 1e5, unfit=unfit)
    assert (whole.candidates, whole.left_out, whole.unfit) == (measured, 0, unfit)
    part = plan(measured, 60.0, unfit=unfit, unmeasured=5)
    kept = len(part.candidates)
    assert 2 <= kept < 9
    assert (part.candidates, part.left_out) == (measured[:kept], 9 - kept + 5)
    least = plan(measured, 0.01)  # as many as there are finalists
    assert (least.candidates, least.rounds, least.last.steps) == (measured[:2], [], [1, 1])


@pytest.mark.parametrize(
    ("unit", "batch", "most"),
    [("steps", 16, 300 * 63), ("steps", 128, 300 * 8), ("epochs", 16, 1000)],
)
def test_no_run_passes_over_the_rows_more_often_than_is_useful(
    unit: Unit, batch: int, most: int
) -> None:
    fast = plan([candidate(1e-9, unit, batch)] * 4, 1000.0)
    assert {*fast.last.steps, *fast.rounds[0].steps} == {most}


def test_the_overhead_of_runs_takes_time_from_training() -> None:
    measured = [candidate(0.01), candidate(0.02)]
    alone, beside = plan(measured, 100.0), plan(measured, 100.0, overhead=2.0)
    assert (alone.beside, beside.beside) == (0.0, 2.0)
    assert beside.last.steps < alone.last.steps


def test_longer_races_have_more_finalists_and_texts_try_more_rates() -> None:
    def shape(minutes: float, is_table: bool, **more: Any) -> RaceShape:
        return shape_of(Config(("rows",), minutes=minutes, seeds=4, **more), is_table)

    assert [shape(19, False), shape(20, True)] == [RaceShape(2, 4, 2), RaceShape(3, 4, 1)]
    assert shape(1, True, rates=3) == RaceShape(2, 4, 3)
