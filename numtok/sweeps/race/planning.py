"""How the plan of a race is made: seconds a step are measured, and rounds are made of the time."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from numtok.declaration import command_line
from numtok.encoding.scheme_spec import scheme_of
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.presets import preset
from numtok.settings import eval
from numtok.settings import train as train_settings
from numtok.settings.race import Config
from numtok.stages import train
from numtok.stages.train import VALIDATION
from numtok.store.artifact import Artifact
from numtok.store.engines.engine import Engine
from numtok.store.store import Store
from numtok.sweeps.race.candidates import Entrant
from numtok.sweeps.race.entrants import Encodings, Entered, predicted_rows
from numtok.sweeps.race.plan import (
    LATER_ROUNDS,
    LEAST,
    PLAN,
    RACE,
    Candidate,
    LaterRounds,
    Plan,
    Progress,
    RaceProgress,
    Round,
    Time,
    entered,
    rounds_of,
    shortened,
)
from numtok.sweeps.race.skill import medians
from numtok.sweeps.runs import Run, RunUnit, Side, with_threads
from numtok.training.device import device_of
from numtok.training.trained_table import FittingRecipe

REVISION = 6
_LONG = 1200.0  # seconds from which three are in the last round, and not two
_MEASURING = 0.15  # of the time, for all paces together
_PREPARING = 0.25  # of the time, for them and for encoding what is measured
_LONGEST_LOOK, _SHORTEST_LOOK = 2.0, 0.05  # seconds a pace is measured for
#: Of texts, from the smallest: the largest with enough steps in the last round is taken.
_SIZES = ("nano,layers=2,width=64", "nano", "micro")
_ENOUGH_STEPS, _ENOUGH_ROWS = 2_000, (5_000, 100_000)  # of each size but the first
_TABLE_PRESET = "mlp"
_BATCHES = range(4, 8)  # powers of two: 16 to 128 rows
_STEPS_A_PASS = 40  # through the train split, at least, where a batch may be so small
_TOKENS, _FEWEST = 1 << 13, 4  # a step of long rows, in the shortest encoding; rows it has still
_PASSES, _EPOCHS = 300, 1_000  # through the train split, at most: of texts, of a table
_LEAST_CAP = 500  # steps that are always allowed
_APART = 3.0  # times a learning rate is the next one


@dataclass(kw_only=True)
class Planning:
    """Measures the seconds per step of each candidate where runs are done, and makes a plan of the
    time that is left since ``started``."""

    config: Config
    there: Entered
    data: Encodings
    store: Store
    side: Side
    progress: Progress
    started: float
    engine: Engine = field(init=False)

    def stored(self) -> Artifact:
        """Return the plan, made if it does not exist.

        Its parent is the data of the first candidate, which has the same rows as all others.
        """
        settings: dict[str, Any] = {
            "stage": "race",
            "revision": REVISION,
            "seconds": self.config.seconds,
            "seeds": self.config.seeds,
            "rates": self._tried,
            "preset": self.config.preset,
            "target": self.config.target,
            "test": self.there.test,
            "device": "cuda" if self.side.gpu else device_of(self.config.device).type,
            "entries": [msgspec.to_builtins(one) for one in self.there.entries],
        }
        parents = [self.data.of(self.there.entries[0]).as_parent()]
        command = ["numtok", "race", *command_line(self.config)]
        with self.store.draft(RACE, self.there.name, settings, parents, command) as draft:
            if isinstance(draft, Artifact):
                return draft
            with self.side.workers(self.store.spool) as self.engine:
                plan = self.plan()
            PLAN.write(draft.path, plan)
            return draft.publish({"candidates": len(plan.candidates)}, {})

    def replanned(
        self,
        number: int,
        before: Round,
        slowdown: float,
        *,
        plan: Plan,
        stored: Artifact,
        deadline: float,
    ) -> list[Round]:
        """Return the rounds after the round ``number``, which took ``slowdown`` seconds per second
        planned: shorter if the machine is slower than the plan assumes.

        They are a child of the ``stored`` plan, so a resumed race has the same rounds.

        deadline
            By ``time.monotonic``; at least half of the time is for the rounds, as in the plan.
        """
        settings = {"stage": "race-rounds", "revision": REVISION, "round": number}
        name = f"{stored.name}-round-{number + 1}"
        command = ["numtok", "race", *command_line(self.config)]
        with self.store.draft(RACE, name, settings, [stored.as_parent()], command) as draft:
            if isinstance(draft, Artifact):
                return LATER_ROUNDS.read(draft.path).rounds
            planned = [*plan.rounds, plan.last][number:]
            left = max(1.0, deadline - time.monotonic())
            paces = [one.pace * slowdown for one in plan.candidates]
            there_is = Time(left, plan.beside * slowdown, self.side.jobs)
            rounds = shortened(there_is, planned, before, paces, plan.seeds)
            LATER_ROUNDS.write(draft.path, LaterRounds(slowdown=slowdown, rounds=rounds))
            draft.publish({"rounds": len(rounds)}, {})
        if rounds != planned:
            line = f"runs took {slowdown:.1f} times as long as planned; later rounds are shorter"
            self.progress(RaceProgress(line, "planning the later rounds"))
        return rounds

    def plan(self) -> Plan:
        """Raises what stopped the first candidate where none can be trained."""
        assert self.side.threads is not None  # of a race they are always said
        first = self.data.of(self.there.entries[0])
        rows = predicted_rows(first, self.there)
        size = self._size()
        paces, unfit = self._paced(size)
        beside = self._beside(next(iter(paces)), size, rows[0])
        left = self.config.seconds - (time.monotonic() - self.started)
        there_is = Time(max(left, self.config.seconds / 2), beside, self.side.jobs)
        measured = list(paces.items())
        if self.there.of_table:  # none is more usual than others
            measured.sort(key=lambda one: one[1])
        paced, least = [pace for _, pace in measured], LEAST[self._unit]
        shape, tried = (finalists_of(self.config), self.config.seeds), self._tried
        count = entered(there_is, paced, *shape, least, tried)
        *rounds, last = rounds_of(there_is, paced[:count], *shape, self._most, tried)
        return Plan(
            unit=self._unit,
            preset=size,
            batch=self._batch,
            candidates=[
                Candidate(
                    label=entry.label,
                    data=self.data.of(entry).ref,
                    scheme=entry.scheme,
                    options=self._options(entry),
                    pace=pace,
                    rates=self._rates(size, entry),
                )
                for entry, pace in measured[:count]
            ],
            rounds=rounds,
            last=last,
            seeds=self.config.seeds,
            threads=self.side.threads,
            beside=beside,
            test=self.there.test,
            rows=rows,
            guesses=medians(first),
            unfit=unfit,
            left_out=len(self.there.entries) - len(unfit) - count,
        )

    @property
    def _unit(self) -> Literal["steps", "epochs"]:
        return "epochs" if self.there.of_table else "steps"

    def _paced(self, size: str) -> tuple[dict[Entrant, float], dict[str, str]]:
        """Seconds a step of each candidate that can be trained, and why others cannot.

        Each is measured twice, one after the other, where there is time, and the quicker one
        counts: what else runs on the machine makes steps slower and none quicker. Where there is no
        time for all, the first ones are encoded and measured, as many as are in the last round at
        least.
        """
        began, most = time.monotonic(), _PREPARING * self.config.seconds
        paces: dict[Entrant, float] = {}
        unfit: dict[str, str] = {}
        problem: UsageError | None = None
        entries, jobs = self.there.entries, self.side.jobs
        for done in range(0, len(entries), jobs):
            late = time.monotonic() - began > most
            if late and len(paces) >= finalists_of(self.config):
                return paces, unfit
            for entry, pace in self._paces(entries, size, done):
                if isinstance(pace, float):
                    paces[entry] = pace
                else:  # what does not go together
                    problem = problem or pace
                    unfit[entry.label] = str(pace)
                    self.progress(RaceProgress(f"{entry.label} is out: {pace}", "measuring"))
        if not paces:
            assert problem is not None
            raise problem
        again: dict[Entrant, float] = {}
        entries = list(paces)
        for done in range(0, len(entries), jobs):
            if time.monotonic() - began > most:  # some alone would seem quicker than others
                return paces, unfit
            for entry, pace in self._paces(entries, size, done):
                assert isinstance(pace, float)
                again[entry] = min(paces[entry], pace)
        return again, unfit

    def _beside(self, entry: Entrant, size: str, rows: int | None) -> float:
        """Seconds that a run takes beside its training, as many at once as later, measured in a
        store that is thrown away: of second ones, since the first do what is done once."""
        shortest, seconds = {self._unit: 1}, 0.0
        device, jobs = self.config.device, self.side.jobs
        self.progress(RaceProgress("", "measuring a whole run"))
        with self.store.spool() as folder:
            for turn in range(2):
                runs = []
                for seed in range(turn * jobs, (turn + 1) * jobs):
                    learn = training(
                        self.data.of(entry),
                        self._options(entry),
                        size,
                        self._batch,
                        device,
                        seed=seed,
                        **shortest,
                    )
                    ask = eval.Config(
                        model="", data=learn.data, split=VALIDATION, rows=rows, device=device
                    )
                    runs.append(Run(index=0, table="", point={}, train=learn, eval=ask))
                began = time.monotonic()
                for outcome in self.engine.run(RunUnit(folder, self.side.threads), runs):
                    if outcome.problem is not None:
                        raise outcome.problem
                seconds = time.monotonic() - began
        return seconds

    def _size(self) -> str:
        """As asked for; else the largest one for which there are rows, and steps."""
        if self.config.preset is not None:
            return self.config.preset
        if self.there.of_table:
            return _TABLE_PRESET
        found, first = _SIZES[0], self.there.entries[0]
        for size, least in zip(_SIZES[1:], _ENOUGH_ROWS, strict=True):
            if self.there.rows[0] < least:
                break
            [(_, pace)] = self._paces([first], size, 0)
            if not isinstance(pace, float):
                raise pace
            paces = [pace] * len(self.there.entries)
            shape, tried = (finalists_of(self.config), self.config.seeds), self._tried
            there_is = time_of(self.config, self.side)
            *_, last = rounds_of(there_is, paces, *shape, _ENOUGH_STEPS, tried)
            if last.steps[0] < _ENOUGH_STEPS:
                break
            found = size
        return found

    @property
    def _tried(self) -> int:
        return rates_of(self.config, self.there.of_table)

    def _rates(self, size: str, entry: Entrant) -> list[float]:
        """The usual rate of such a model of that size, then others on both sides of it, farther
        and farther away; to three digits, so that they can be said."""
        usual = FittingRecipe.learning_rate
        if not self.there.of_table:
            embedder = entry.embedder or scheme_of(entry.scheme).parts[0]
            usual = preset(size).rate_with(EMBEDDERS.build(embedder))
        factors = [_APART ** ((k + 1) // 2 * (-1) ** (k + 1)) for k in range(self._tried)]
        return [float(f"{usual * factor:.3g}") for factor in factors]

    def _paces(
        self, entries: Sequence[Entrant], size: str, first: int
    ) -> list[tuple[Entrant, float | UsageError]]:
        """Seconds a step of as many candidates as train at once, from the ``first`` on: measured at
        once, with others behind the last of them; or why one cannot be trained."""
        entered = len(self.there.entries)
        share = _MEASURING * self.config.seconds * self.side.jobs / (4 * entered)
        limit = min(_LONGEST_LOOK, max(_SHORTEST_LOOK, share))
        some = list(islice(cycle(entries), first, first + self.side.jobs))
        data = [self.data.of(one) for one in some]
        labels = ", ".join(one.label for one in some)
        self.progress(RaceProgress("", f"measuring {labels}", first, len(entries)))
        settings = [
            training(of, self._options(one), size, self._batch, self.config.device)
            for one, of in zip(some, data, strict=True)
        ]
        unit = PaceUnit(self.store.root, self.side.threads, limit)
        found = zip(some, self.engine.in_order(unit, settings), strict=True)
        return list(found)[: len(entries) - first]

    def _options(self, entry: Entrant) -> dict[str, str]:
        """Those of ``numtok train`` that set a candidate apart."""
        found = {
            "head": entry.head,
            "objective": entry.objective,
            "embedder": entry.embedder,
        }
        if self.there.of_table:
            found = {"head": entry.scheme, "normalize": entry.normalize}
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def _batch(self) -> int:
        """Rows a step: fewer where the train split would be gone through in a few, or rows are so
        long that there would be few steps; of a small model these decide what is learnt."""
        fits = [1 << k for k in _BATCHES if (1 << k) * _STEPS_A_PASS <= self.there.rows[0]]
        batch = max(fits, default=1 << _BATCHES[0])
        if not self.there.of_table:  # the first candidate is the one of the fewest tokens
            counts = self.data.of(self.there.entries[0]).manifest.counts
            while batch > _FEWEST and batch * counts["tokens"] > _TOKENS * counts["rows"]:
                batch //= 2
        return batch

    @property
    def _most(self) -> int:
        """Steps, or epochs, at most: beyond them rows are learnt by heart."""
        if self.there.of_table:
            return _EPOCHS
        return max(_LEAST_CAP, _PASSES * -(-self.there.rows[0] // self._batch))


def training(
    data: Artifact, options: Mapping[str, str], size: str, batch: int, device: str, **more: Any
) -> train_settings.Config:
    """The settings of a training: a candidate's ``options``, what all share, and ``more``."""
    settings = {**more, **options}
    return train_settings.Config(
        data=str(data.path), preset=size, batch=batch, device=device, **settings
    )


@dataclass(frozen=True)
class PaceUnit:
    """Measures for so many seconds what a step takes, in any process."""

    root: Path
    threads: int | None
    limit: float

    def __call__(self, settings: train_settings.Config) -> float | UsageError:
        """Seconds a step, or an epoch, of what these settings train; what is wrong with them."""
        store = Store(self.root, lambda note: None, any_name=True)
        try:
            with with_threads(self.threads):
                return train.pace(settings, store, self.limit)
        except UsageError as error:
            return error


def time_of(config: Config, side: Side) -> Time:
    """The time there is, as far as that is known before anything is measured."""
    return Time(config.seconds, 0.0, side.jobs)


def rates_of(config: Config, of_table: bool) -> int:
    """How many learning rates each tries: as asked for; of tables one, since no other one was found
    to be better throughout, while in a few hundred steps of texts three times as much often is."""
    return config.rates or (1 if of_table else 2)


def finalists_of(config: Config) -> int:
    """How many are in the last round."""
    return 3 if config.seconds >= _LONG else 2
