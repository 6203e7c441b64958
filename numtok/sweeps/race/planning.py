"""The plan of a race, as a function of what was measured: which candidates take part, and how many
steps they get per round."""

from typing import NamedTuple

from numtok.settings.race import Config
from numtok.sweeps.parallel import Parallelism
from numtok.sweeps.race.plan import LEAST, Candidate, Plan, RaceShape, Time, entered, rounds_of

_LONG = 1200.0  # seconds from which the last round has three finalists instead of two
_PASSES, _EPOCHS = 300, 1_000  # most epochs of texts, and of a table
_LEAST_CAP = 500  # steps that are always allowed


class Measurements(NamedTuple):
    """Measurements from before the first round.

    candidates
        The candidates that can be trained, in the order in which they are preferred.
    unfit
        Reasons why others cannot be trained, keyed by label.
    unmeasured
        Number of candidates that were not measured for lack of time.
    time
        The time left after measuring.
    """

    candidates: list[Candidate]
    unfit: dict[str, str]
    unmeasured: int
    time: Time


def plan_of(
    measured: Measurements,
    shape: RaceShape,
    *,
    threads: int,
    train_rows: int,
    test: str,
    rows: tuple[int | None, int | None],
    guesses: dict[str, float],
) -> Plan:
    """Return the plan of a race of the measured candidates that fit into the time.

    ``train_rows`` is the number of rows to train on; :class:`Plan` describes the other arguments.
    """
    paces = [candidate.pace for candidate in measured.candidates]
    least = [LEAST[candidate.unit] for candidate in measured.candidates]
    count = entered(measured.time, paces, shape, least)
    candidates = measured.candidates[:count]
    most = [_most(candidate, train_rows) for candidate in candidates]
    *rounds, last = rounds_of(measured.time, paces[:count], shape, most)
    return Plan(
        candidates=candidates,
        rounds=rounds,
        last=last,
        seeds=shape.seeds,
        threads=threads,
        beside=measured.time.overhead,
        test=test,
        rows=rows,
        guesses=guesses,
        unfit=measured.unfit,
        left_out=measured.unmeasured + len(paces) - count,
    )


def _most(candidate: Candidate, train_rows: int) -> int:
    """Return the largest number of steps or epochs: beyond it, models memorize the rows."""
    if candidate.unit == "epochs":
        return _EPOCHS
    return max(_LEAST_CAP, _PASSES * -(-train_rows // candidate.batch))


def time_of(config: Config, parallel: Parallelism) -> Time:
    """Return the time available to a race, before the overhead of a run is measured."""
    return Time(config.seconds, 0.0, parallel.jobs)


def shape_of(config: Config, is_table: bool) -> RaceShape:
    """Return the numbers of finalists, seeds and learning rates.

    There are 3 finalists, or 2 in a short race. The default number of rates is 1 for tables, where
    no other rate was consistently better, and 2 for texts, where three times the default rate is
    often better within a few hundred steps.
    """
    finalists = 3 if config.seconds >= _LONG else 2
    return RaceShape(finalists, config.seeds, config.rates or (1 if is_table else 2))
