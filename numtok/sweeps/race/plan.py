"""The plan of a race: its candidates, its rounds, and the steps per round.

Seconds per step are measured before the first round and converted to steps, and the plan is stored.
After each round, the later rounds are shortened if the machine is slower than planned. The
shortened rounds are stored next to the plan. The result of a race depends only on its data, the
plan and the stored rounds, so a resumed or repeated race has the same result.

Rounds are successive halving (Jamieson and Talwalkar 2016; Hyperband, Li et al. 2018): in each
round, the remaining candidates train from scratch for the same time, and the best third advances.
In the first round, each candidate tries a few learning rates and keeps the best one. Half of the
time is reserved for the last round, in which several seeds of each finalist are trained.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from numtok.stored_json import Natural, Positive, StoredJson

Unit = Literal["steps", "epochs"]
RACE = "race"  # the kind of artifact
FORMAT = 1
ETA = 3  # one in ETA candidates advances
_SAFE = 0.9  # fraction of the remaining time that is planned; validation runs come on top
_FURTHER = 2  # further evaluations of a run of the last round
_LAST = 0.5  # fraction of the training time for the last round
#: Fewest steps of the median candidate in the first round; fewer show no differences.
LEAST = {"steps": 60, "epochs": 5}


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A candidate of a race.

    data
        REF of the training data.
    scheme
        Spec of the scheme or, for tables, of the head.
    options
        Options of ``numtok train`` that differ between candidates, keyed by name: head, objective
        and embedder; for tables, head and normalize.
    preset, batch
        Further options of ``numtok train``, which most candidates share.
    unit
        Unit of the budget: steps for texts, epochs for tables.
    pace
        Measured seconds per unit.
    rates
        Learning rates tried in the first round, starting with the default. All candidates have the
        same number of rates.
    """

    label: str
    data: str
    scheme: str
    options: dict[str, str]
    preset: str
    batch: Positive
    unit: Unit
    pace: float
    rates: list[float]


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A planned round: the number of candidates, the seconds per run, and the steps of each
    candidate in the plan, including eliminated candidates."""

    size: Positive
    seconds: float
    steps: list[Positive]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that determines a race, except the data.

    rounds, last
        Rounds on the validation split, and the last round, in which each finalist trains with
        ``seeds`` seeds and is also evaluated on the test split.
    threads
        Threads per run.
    beside
        Measured seconds that a run takes in addition to its training.
    rows
        Number of rows to predict in the validation and in the test split; None for all.
    unfit, left_out
        Reasons why candidates cannot be trained, keyed by label, and the number of candidates left
        out for lack of time.
    guesses
        Median of each target in the train split, used as the reference for skill if reports have no
        fields. The key "" maps to the median over all targets, or over all numbers if the data has
        no targets.

    Raises ValueError if a round does not match the candidates.
    """

    format: int = FORMAT
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
        if any(len(planned.steps) != count or planned.size > count for planned in rounds):
            raise ValueError(f"a round does not have the {count} candidates")
        counts = {len(candidate.rates) for candidate in self.candidates}
        if len(counts) != 1 or counts == {0}:
            raise ValueError("candidates must have the same number of rates, at least one")
        if self.tried > 1 and not self.rounds:
            raise ValueError("no round tries the rates")
        if "" not in self.guesses:
            raise ValueError("the median of all numbers is missing")

    @property
    def tried(self) -> int:
        """Number of learning rates that each candidate tries in the first round."""
        return len(self.candidates[0].rates)


class LaterRounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rounds that remain after a finished round, including the last one, fitted to the
    remaining time.

    slowdown
        Seconds that the finished round took per planned second.
    """

    format: int = FORMAT
    slowdown: float
    rounds: list[Round]


class Expected(msgspec.Struct, frozen=True):
    """Estimate of a round, made before any step is measured: the number of candidates, the numbers
    of learning rates and seeds per candidate, and the seconds per run."""

    size: int
    rates: int
    seeds: int
    seconds: float


PLAN = StoredJson(name="plan.json", kind=Plan, newest=FORMAT)
LATER_ROUNDS = StoredJson(name="rounds.json", kind=LaterRounds, newest=FORMAT)


class RaceShape(NamedTuple):
    """Number of candidates in the last round, of the seeds that each of them trains there, and of
    the learning rates that each candidate tries in the first round."""

    finalists: int
    seeds: int
    rates: int = 1

    def sizes(self, count: int) -> list[int]:
        """Return the number of candidates in each round, including the last. With several learning
        rates, at least one round precedes the last.

        >>> three, two = RaceShape(3, seeds=1), RaceShape(2, seeds=1)
        >>> three.sizes(18), two.sizes(5), three.sizes(2), three._replace(rates=2).sizes(2)
        ([18, 6, 3], [5, 2], [2], [2, 2])
        """
        sizes = [count]
        while sizes[-1] > self.finalists:
            sizes.append(max(self.finalists, math.ceil(sizes[-1] / ETA)))
        return [*sizes, count] if self.rates > 1 and len(sizes) == 1 else sizes


def _runs_of(sizes: Sequence[int], seeds: int, rates: int = 1) -> list[int]:
    """Return the number of training runs of each round."""
    runs = list(sizes)
    runs[0] *= rates
    runs[-1] *= seeds
    return runs


class Time(NamedTuple):
    """The time available to a race: the total seconds, the seconds that each run takes in addition
    to its training, and the number of parallel runs."""

    seconds: float
    overhead: float
    jobs: int

    def training(self, runs: Sequence[int]) -> float:
        """Return the total seconds that remain for training if the rounds have this many runs. At
        least half of the time remains.

        Runs of the last round are also evaluated on the calibration rows and on the test split.
        """
        total = self.seconds * self.jobs
        evaluations = sum(runs) + _FURTHER * runs[-1]
        return max(0.5, _SAFE - evaluations * self.overhead / total) * total


def seconds_of(time: Time, sizes: Sequence[int], shape: RaceShape) -> list[float]:
    """Return the training seconds per run in each round.

    The last round gets half of the training time, and the others share the rest equally. A run of
    the last round is at least as long as a run of the round before it.

    >>> seconds_of(Time(1200, overhead=3, jobs=1), [18, 6, 3], RaceShape(3, seeds=2))
    [13.25, 39.75, 79.5]
    """
    runs = _runs_of(sizes, shape.seeds, shape.rates)
    total = time.training(runs)
    if len(sizes) == 1:
        return [total / runs[0]]
    each = (1 - _LAST) * total / (len(sizes) - 1)
    seconds = [each / count for count in runs[:-1]]
    return [*seconds, max(_LAST * total / runs[-1], seconds[-1])]


def expected(time: Time, count: int, shape: RaceShape) -> list[Expected]:
    """Return the rounds to expect for ``count`` candidates if there is time for all of them."""
    sizes = shape.sizes(count)
    once = [1] * len(sizes)
    rates, seeds = _runs_of(once, 1, shape.rates), _runs_of(once, shape.seeds)
    return list(map(Expected, sizes, rates, seeds, seconds_of(time, sizes, shape)))


def rounds_of(
    time: Time, paces: Sequence[float], shape: RaceShape, most: Sequence[int]
) -> list[Round]:
    """Return the rounds, including the last, for candidates that take ``paces`` seconds per step.
    No run has more steps than ``most`` of its candidate."""
    sizes = shape.sizes(len(paces))
    return [
        Round(
            size,
            seconds,
            [
                min(limit, max(1, int(seconds / pace)))
                for limit, pace in zip(most, paces, strict=True)
            ],
        )
        for size, seconds in zip(sizes, seconds_of(time, sizes, shape), strict=True)
    ]


def shortened(
    time: Time, rounds: Sequence[Round], before: Round, paces: Sequence[float], seeds: int
) -> list[Round]:
    """Return the given rounds, including the last, shortened proportionally to fit the remaining
    time.

    ``paces`` are the current seconds per step, and ``before`` is the round that just finished. No
    run gets more steps than planned, or fewer than in the round before.
    """
    runs = _runs_of([later.size for later in rounds], seeds)
    planned = sum(count * later.seconds for count, later in zip(runs, rounds, strict=True))
    factor = time.training(runs) / planned
    return [
        Round(
            later.size,
            later.seconds * min(1.0, factor),
            [
                min(most, max(least, int(later.seconds * factor / pace)))
                for most, least, pace in zip(later.steps, before.steps, paces, strict=True)
            ],
        )
        for later in rounds
    ]


def entered(time: Time, paces: Sequence[float], shape: RaceShape, least: Sequence[int]) -> int:
    """Return the number of candidates, taken in the given order, for which there is time.

    At least half of the candidates must get their ``least`` steps in the first round. At least as
    many candidates as finalists are kept.

    >>> paces, least = [0.1] * 40, [60] * 40
    >>> [entered(Time(seconds, 1, 1), paces, RaceShape(3, 3), least) for seconds in (1000, 6)]
    [27, 3]
    """
    for count in range(len(paces), shape.finalists, -1):
        wanted = least[:count]
        first, *_ = rounds_of(time, paces[:count], shape, most=wanted)
        if 2 * sum(steps >= few for steps, few in zip(first.steps, wanted, strict=True)) >= count:
            return count
    return min(shape.finalists, len(paces))


class CandidateState(NamedTuple):
    """State of a candidate during a race.

    state
        ``waiting``, ``running``, ``done`` or ``failed`` in the current round; ``out`` if it was
        eliminated.
    steps, unit
        Number of steps or epochs in its last round, and which of them.
    skill
        Skill on the validation split after its last round; None before it is first scored.
    """

    label: str
    state: str
    steps: int
    skill: float | None
    unit: Unit = "steps"


class RaceProgress(NamedTuple):
    """Progress of a race.

    line
        A line about finished work that stays on the screen; may be empty.
    doing, done, total
        Description of the current work, the amount done, and the total amount.
    standings
        State of each candidate, once the candidates are known.
    """

    line: str
    doing: str
    done: int = 0
    total: int = 0
    standings: Sequence[CandidateState] = ()


Progress = Callable[[RaceProgress], None]
