"""The plan of a race: who takes part, in which rounds, for how many steps.

Seconds per step are measured before the first round and turned into steps, and the plan is stored.
After each round the later rounds are shortened if the machine turned out to be slower, and these
rounds are stored next to the plan. A race is a function of what is stored and its data: a resumed
or repeated race has the same result.

Rounds are successive halving (Jamieson and Talwalkar 2016; Hyperband, Li et al. 2018): in each, all
that are left train anew for the same time, and a third goes on. In the first each trains at the
same few learning rates, and goes on with the one that was best for it. Half of the time is for the
last round, in which few are left and several seeds are trained of each.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from numtok.stored_json import Natural, Positive, StoredJson

RACE = "race"  # the kind of artifact
FORMAT = 1
ETA = 3  # of so many one goes on
_SAFE = 0.9  # of the time that is left is shared out: looks at the validation split come on top
_LAST = 0.5  # of the training, the last round
#: In the first round, of the one in the middle: fewer tell nothing.
LEAST = {"steps": 60, "epochs": 5}


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One that takes part.

    data
        REF of what it learns from.
    scheme
        Or the head, of tables.
    options
        Of ``numtok train``, beside those that all share, by name: head, normalize, objective.
    pace
        Seconds a step, or an epoch of a table, as measured.
    rates
        Learning rates of the first round, the usual one first; each has as many.
    """

    label: str
    data: str
    scheme: str
    options: dict[str, str]
    pace: float
    rates: list[float]


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many train in a round, each for so many seconds; what these are in steps for each
    candidate of the plan, whether it is still there or not."""

    size: Positive
    seconds: float
    steps: list[Positive]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that a race depends on beside its data.

    unit
        What budgets are in.
    preset, batch
        Of ``numtok train`` that all share.
    rounds, last
        On the validation split; on the test split, with ``seeds`` of each.
    threads
        Of each run.
    beside
        Seconds that a run takes in addition to its training, as measured.
    rows
        Of the validation and of the test split, that are predicted; None: all.
    unfit, left_out
        By label why a candidate cannot be trained, and for how many there was no time.
    guesses
        By target the median of the train split, which skill is measured against where reports have
        no slots; under "" that of all numbers.

    Raises ValueError for rounds of other candidates.
    """

    format: int = FORMAT
    unit: Literal["steps", "epochs"]
    preset: str
    batch: Positive
    candidates: list[Candidate]
    rounds: list[Round]
    last: Round
    seeds: Positive
    threads: Positive
    beside: float
    test: str
    rows: tuple[Positive | None, Positive | None]
    guesses: dict[str, float]
    unfit: dict[str, str]
    left_out: Natural

    def __post_init__(self) -> None:
        count = len(self.candidates)
        rounds = [*self.rounds, self.last]
        if any(len(one.steps) != count or one.size > count for one in rounds):
            raise ValueError(f"a round is not of the {count} candidates")
        tried = {len(one.rates) for one in self.candidates}
        if len(tried) != 1 or tried == {0}:
            raise ValueError("candidates have other numbers of rates, or none")
        if self.tried > 1 and not self.rounds:
            raise ValueError("their rates are tried in no round")
        if "" not in self.guesses:
            raise ValueError("it has no median of all numbers")

    @property
    def tried(self) -> int:
        """How many learning rates each candidate tries."""
        return len(self.candidates[0].rates)


class LaterRounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rounds after a round, the last one at the end, as they fit the time that was left.

    slowdown
        Seconds that the round took per second planned.
    """

    format: int = FORMAT
    slowdown: float
    rounds: list[Round]


class Expected(msgspec.Struct, frozen=True):
    """A round before a step is measured: how many would train, at how many rates and with how many
    seeds each, for how long."""

    size: int
    rates: int
    seeds: int
    seconds: float


PLAN = StoredJson(name="plan.json", kind=Plan, newest=FORMAT)
LATER_ROUNDS = StoredJson(name="rounds.json", kind=LaterRounds, newest=FORMAT)


def fields_of(count: int, finalists: int, rates: int = 1) -> list[int]:
    """How many take part in each round, the last one at the end; of several rates there is one
    before it at least.

    >>> fields_of(18, 3), fields_of(5, 2), fields_of(2, 3), fields_of(2, 3, rates=2)
    ([18, 6, 3], [5, 2], [2], [2, 2])
    """
    sizes = [count]
    while sizes[-1] > finalists:
        sizes.append(max(finalists, math.ceil(sizes[-1] / ETA)))
    return [*sizes, count] if rates > 1 and len(sizes) == 1 else sizes


def _runs_of(sizes: Sequence[int], seeds: int, rates: int) -> list[int]:
    """How many trainings each round has."""
    found = list(sizes)
    found[0] *= rates
    found[-1] *= seeds
    return found


class Time(NamedTuple):
    """The time there is: seconds, what a run takes beside its training, and how many go on side by
    side."""

    seconds: float
    beside: float
    jobs: int

    def training(self, runs: int) -> float:
        """Seconds of training that so many runs have together, half of them at least."""
        return max(0.5, _SAFE - runs * self.beside / (self.seconds * self.jobs)) * (
            self.seconds * self.jobs
        )


def seconds_of(time: Time, sizes: Sequence[int], seeds: int, rates: int = 1) -> list[float]:
    """What each run of each round has: of the last round, half of the training, and of the others
    as much as each other; no run has less than those of the round before.

    >>> seconds_of(Time(1200, beside=5, jobs=1), [18, 6, 3], seeds=2)
    [12.916666666666666, 38.75, 77.5]
    """
    runs = _runs_of(sizes, seeds, rates)
    total = time.training(sum(runs))
    if len(sizes) == 1:
        return [total / runs[0]]
    each = (1 - _LAST) * total / (len(sizes) - 1)
    found = [each / count for count in runs[:-1]]
    return [*found, max(_LAST * total / runs[-1], found[-1])]


def expected(time: Time, count: int, finalists: int, seeds: int, rates: int = 1) -> list[Expected]:
    """The rounds of so many candidates, if there is time for all of them."""
    sizes = fields_of(count, finalists, rates)
    of_rates, of_seeds = _runs_of([1] * len(sizes), 1, rates), _runs_of([1] * len(sizes), seeds, 1)
    return list(map(Expected, sizes, of_rates, of_seeds, seconds_of(time, sizes, seeds, rates)))


def rounds_of(
    time: Time, paces: Sequence[float], finalists: int, seeds: int, most: int, rates: int = 1
) -> list[Round]:
    """The rounds, the last one at the end, of candidates of which a step takes so many seconds
    each; ``most`` steps at most."""
    sizes = fields_of(len(paces), finalists, rates)
    return [
        Round(size, seconds, [min(most, max(1, int(seconds / pace))) for pace in paces])
        for size, seconds in zip(sizes, seconds_of(time, sizes, seeds, rates), strict=True)
    ]


def shortened(
    time: Time, rounds: Sequence[Round], before: Round, paces: Sequence[float], seeds: int
) -> list[Round]:
    """Shorten rounds, the last one at the end, to the time that is left, in the same proportion.

    ``paces`` are seconds per step by now, ``before`` is the round just done. No run gets more steps
    than planned, or fewer than in the round before.
    """
    runs = _runs_of([one.size for one in rounds], seeds, 1)
    planned = sum(count * one.seconds for count, one in zip(runs, rounds, strict=True))
    factor = time.training(sum(runs)) / planned
    return [
        Round(
            one.size,
            one.seconds * min(1.0, factor),
            [
                min(most, max(least, int(one.seconds * factor / pace)))
                for most, least, pace in zip(one.steps, before.steps, paces, strict=True)
            ],
        )
        for one in rounds
    ]


def entered(
    time: Time, paces: Sequence[float], finalists: int, seeds: int, least: int, rates: int = 1
) -> int:
    """How many of the candidates, the first ones, there is time for: as many as leave the one in
    the middle at least so many steps, and as many as are in the last round.

    >>> paces = [0.1] * 40
    >>> [entered(Time(seconds, 1, 1), paces, 3, seeds=3, least=60) for seconds in (1000, 6)]
    [27, 3]
    """
    for count in range(len(paces), finalists, -1):
        first, *_ = rounds_of(time, paces[:count], finalists, seeds=seeds, most=least, rates=rates)
        if statistics.median(first.steps) >= least:
            return count
    return min(finalists, len(paces))


class CandidateState(NamedTuple):
    """One candidate while it races.

    state
        ``waiting``, ``running``, ``done`` or ``failed`` in this round; ``out`` after earlier ones.
    steps
        Number of steps in its last round.
    skill
        Skill on the validation split after its last round; None before the first is scored.
    """

    label: str
    state: str
    steps: int
    skill: float | None


class RaceProgress(NamedTuple):
    """A line to keep about what has just ended (or an empty one), the current work and how much of
    it is done, and the candidates once they are known. ``unit`` is the unit of their steps.
    """

    line: str
    doing: str
    done: int = 0
    total: int = 0
    standings: Sequence[CandidateState] = ()
    unit: str = "steps"


Progress = Callable[[RaceProgress], None]
