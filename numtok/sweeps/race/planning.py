"""Plan a race: measure the seconds per step of each candidate, and divide the time into rounds."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from numtok.encoding.scheme_spec import scheme_of
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.presets import preset
from numtok.setting_words import command_line
from numtok.settings import eval
from numtok.settings import train as train_settings
from numtok.settings.race import Config
from numtok.stages import train
from numtok.stages.train import VALIDATION
from numtok.store.artifact import Artifact
from numtok.store.engines.engine import Engine
from numtok.store.store import Store
from numtok.sweeps.parallel import Parallelism
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
    RaceShape,
    Round,
    Time,
    Unit,
    entered,
    rounds_of,
    shortened,
)
from numtok.sweeps.race.skill import medians
from numtok.sweeps.runs import Run, RunUnit, quiet_store, with_threads
from numtok.training.device import device_of
from numtok.training.trained_table import FittingRecipe

REVISION = 9
_LONG = 1200.0  # seconds from which the last round has three finalists instead of two
_MEASURING = 0.15  # fraction of the time to measure all paces
_PREPARING = 0.25  # fraction of the time to measure paces and to encode the data for that
_LONGEST_MEASUREMENT, _SHORTEST_MEASUREMENT = 2.0, 0.05  # seconds to measure a pace
#: Presets of text models, the smallest first: the largest with enough steps in the last round.
_SIZES = ("nano,layers=2,width=64", "nano", "micro")
_ENOUGH_STEPS, _ENOUGH_ROWS = 2_000, (5_000, 100_000)  # for each size but the first
_TABLE_PRESET = "mlp"
_BATCHES = range(4, 8)  # powers of two: 16 to 128 rows
_STEPS_A_PASS = 40  # fewest steps per epoch of the train split, if the batch can be that small
_TOKENS, _FEWEST = 1 << 13, 4  # tokens per step, in the shortest encoding, and rows of a batch
_PASSES, _EPOCHS = 300, 1_000  # most epochs of texts, and of a table
_LEAST_CAP = 500  # steps that are always allowed
_APART = 3.0  # ratio of neighboring learning rates


@dataclass(kw_only=True)
class Planning:
    """Measures the seconds per step of each candidate, on the machines that execute the runs, and
    plans the remaining time. The race began at ``started``."""

    config: Config
    entered: Entered
    data: Encodings
    store: Store
    parallel: Parallelism
    progress: Progress
    started: float
    engine: Engine = field(init=False)

    def stored(self) -> Artifact:
        """Return the artifact with the plan. If it does not exist, the plan is made and stored.

        The parents of the artifact are the data of the first candidate for texts and the tables:
        all candidates have the same rows.
        """
        settings: dict[str, Any] = {
            "stage": "race",
            "revision": REVISION,
            "seconds": self.config.seconds,
            "seeds": self.config.seeds,
            "rates": self._shape.rates,
            "preset": self.config.preset,
            "target": self.config.target,
            "test": self.entered.test,
            "device": "cuda" if self.parallel.gpu else device_of(self.config.device).type,
            "entries": [msgspec.to_builtins(entry) for entry in self.entered.entries],
        }
        parents = [artifact.as_parent() for artifact in self._first_data()]
        command = ["numtok", "race", *command_line(self.config)]
        with self.store.draft(RACE, self.entered.name, settings, parents, command) as draft:
            if isinstance(draft, Artifact):
                return draft
            with self.parallel.workers(self.store.spool) as self.engine:
                plan = self.plan()
            PLAN.write(draft.path, plan)
            return draft.publish({"candidates": len(plan.candidates)}, {})

    def _first_data(self) -> list[Artifact]:
        firsts = {entry.table: entry for entry in reversed(self.entered.entries)}
        return [self.data.of(entry) for entry in reversed(firsts.values())]

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
        """Return the rounds that remain after the round ``number``, shortened if the machine is
        slower than planned.

        The rounds are stored as a child of the ``stored`` plan, so that a resumed race has the same
        rounds.

        before
            The round that just finished.
        slowdown
            Seconds that its runs took per planned second.
        deadline
            End of the race on the clock of ``time.monotonic``.
        """
        settings = {"stage": "race-rounds", "revision": REVISION, "round": number}
        name = f"{stored.name}-round-{number + 1}"
        command = ["numtok", "race", *command_line(self.config)]
        with self.store.draft(RACE, name, settings, [stored.as_parent()], command) as draft:
            if isinstance(draft, Artifact):
                return LATER_ROUNDS.read(draft.path).rounds
            planned = [*plan.rounds, plan.last][number:]
            left = max(1.0, deadline - time.monotonic())
            paces = [candidate.pace * slowdown for candidate in plan.candidates]
            available = Time(left, plan.beside * slowdown, self.parallel.jobs)
            rounds = shortened(available, planned, before, paces, plan.seeds)
            LATER_ROUNDS.write(draft.path, LaterRounds(slowdown=slowdown, rounds=rounds))
            draft.publish({"rounds": len(rounds)}, {})
        if rounds != planned:
            line = f"runs took {slowdown:.1f} times as long as planned; shortening later rounds"
            self.progress(RaceProgress(line, "planning the later rounds"))
        return rounds

    def plan(self) -> Plan:
        """Measure the candidates, and return the plan of the rounds.

        If no candidate can be trained, the error of the first one is raised.
        """
        assert self.parallel.threads is not None  # a race always sets them
        first = self.data.of(self.entered.entries[0])
        rows = predicted_rows(self.data, self.entered)
        paces, unfit, overhead = self._paced(rows[0])
        count, available = self._fitting(paces, overhead)
        measured = list(paces.items())[:count]
        paced = [pace for _, pace in measured]
        most = [self._most(entry) for entry, _ in measured]
        *rounds, last = rounds_of(available, paced, self._shape, most)
        return Plan(
            candidates=[
                Candidate(
                    label=entry.label,
                    data=self.data.of(entry).ref,
                    scheme=entry.scheme,
                    options=self._options(entry),
                    preset=self._preset(entry),
                    batch=self._batch(entry),
                    unit=unit_of(entry),
                    pace=pace,
                    rates=self._rates(entry),
                )
                for entry, pace in measured
            ],
            rounds=rounds,
            last=last,
            seeds=self.config.seeds,
            threads=self.parallel.threads,
            beside=overhead,
            test=self.entered.test,
            rows=rows,
            guesses=medians(first),
            unfit=unfit,
            left_out=len(self.entered.entries) - len(unfit) - count,
        )

    def _fitting(self, paces: Mapping[Entrant, float], overhead: float) -> tuple[int, Time]:
        """Return the number of measured candidates for which there is time, and the time."""
        left = self.config.seconds - (time.monotonic() - self.started)
        available = Time(max(left, self.config.seconds / 2), overhead, self.parallel.jobs)
        least = [LEAST[unit_of(entry)] for entry in paces]
        return entered(available, list(paces.values()), self._shape, least), available

    def _paced(self, rows: int | None) -> tuple[dict[Entrant, float], dict[str, str], float]:
        """Return the seconds per step of the first candidates that can be trained, the reasons why
        others cannot, and the seconds that a run takes in addition to its training.

        Candidates are measured in their order, until no further one fits into the time. If time is
        left, each is measured twice, and the faster result counts: other work on the machine only
        slows steps down.
        """
        began, most = time.monotonic(), _PREPARING * self.config.seconds
        paces: dict[Entrant, float] = {}
        unfit: dict[str, str] = {}
        problem: UsageError | None = None
        overhead = 0.0
        entries, jobs = self.entered.entries, self.parallel.jobs
        for done in range(0, len(entries), jobs):
            if len(paces) >= self._shape.finalists:
                late = time.monotonic() - began > most
                if late or self._fitting(paces, overhead)[0] < len(paces):
                    break
            for entry, pace in self._paces(entries, done):
                if isinstance(pace, float):
                    paces[entry] = pace
                else:  # incompatible settings
                    problem = problem or pace
                    unfit[entry.label] = str(pace)
                    self.progress(RaceProgress(f"{entry.label} is out: {pace}", "measuring"))
            if paces and not overhead:
                overhead = self._overhead(next(iter(paces)), rows)
        if not paces:
            assert problem is not None
            raise problem
        again: dict[Entrant, float] = {}
        entries = list(paces)
        for done in range(0, len(entries), jobs):
            if time.monotonic() - began > most:  # two measurements for all, or one for all
                return paces, unfit, overhead
            for entry, pace in self._paces(entries, done):
                assert isinstance(pace, float)
                again[entry] = min(paces[entry], pace)
        return again, unfit, overhead

    def _overhead(self, entry: Entrant, rows: int | None) -> float:
        """Return the seconds that a run takes in addition to its training.

        As many runs as later are measured in parallel, in a temporary store; the second set
        counts, because the first includes work that is done only once.
        """
        shortest: dict[str, Any] = {unit_of(entry): 1}
        jobs, seconds = self.parallel.jobs, 0.0
        self.progress(RaceProgress("", "measuring the overhead of a run"))
        with self.store.spool() as folder:
            for turn in range(2):
                runs = []
                for seed in range(turn * jobs, (turn + 1) * jobs):
                    learn = self._training(entry, seed=seed, **shortest)
                    ask = evaluating(learn.data, VALIDATION, rows, self.config.device)
                    runs.append(Run(index=0, table="", point={}, train=learn, eval=ask))
                began = time.monotonic()
                for outcome in self.engine.run(RunUnit(folder, self.parallel.threads), runs):
                    if outcome.problem is not None:
                        raise outcome.problem
                seconds = time.monotonic() - began
        return seconds

    def _preset(self, entry: Entrant) -> str:
        """Return the preset of a candidate: the chosen one, if it has the right kind."""
        if entry.table is not None:
            return self.entered.table_preset or _TABLE_PRESET
        return self._size

    @cached_property
    def _size(self) -> str:
        """Preset for texts: the chosen one, else the largest one with enough rows and steps."""
        if self.entered.text_preset is not None:
            return self.entered.text_preset
        chosen = _SIZES[0]
        first = self.entered.first_text
        for size, least in zip(_SIZES[1:], _ENOUGH_ROWS, strict=True):
            if self.entered.rows[0] < least:
                break
            [(_, pace)] = self._paces([first], 0, size)
            if not isinstance(pace, float):
                raise pace
            paces = [pace] * len(self.entered.entries)
            available = time_of(self.config, self.parallel)
            *_, last = rounds_of(available, paces, self._shape, [_ENOUGH_STEPS] * len(paces))
            if last.steps[0] < _ENOUGH_STEPS:
                break
            chosen = size
        return chosen

    @property
    def _shape(self) -> RaceShape:
        return shape_of(self.config, self.entered.is_table)

    def _rates(self, entry: Entrant) -> list[float]:
        """Return the default rate of a candidate, then rates on alternating sides of it, ever
        farther away, rounded to three digits.
        """
        default = FittingRecipe.learning_rate
        if entry.table is None:
            embedder = entry.embedder or scheme_of(entry.scheme).parts[0]
            default = preset(self._size).rate_with(EMBEDDERS.build(embedder))
        factors = [_APART ** ((k + 1) // 2 * (-1) ** (k + 1)) for k in range(self._shape.rates)]
        return [float(f"{default * factor:.3g}") for factor in factors]

    def _paces(
        self, entries: Sequence[Entrant], first: int, size: str | None = None
    ) -> list[tuple[Entrant, float | UsageError]]:
        """Measure as many candidates as train in parallel, starting with index ``first``, with the
        preset ``size`` or their own.

        Return the seconds per step of each candidate, or the error if it cannot be trained. If
        fewer candidates remain than train in parallel, the first candidates are measured again, and
        these results are dropped.
        """
        entered = len(self.entered.entries)
        share = _MEASURING * self.config.seconds * self.parallel.jobs / (4 * entered)
        limit = min(_LONGEST_MEASUREMENT, max(_SHORTEST_MEASUREMENT, share))
        measured = list(islice(cycle(entries), first, first + self.parallel.jobs))
        settings = [self._training(entry, size) for entry in measured]  # texts are encoded first
        labels = "; ".join(entry.label for entry in measured)
        self.progress(RaceProgress("", f"measuring the speed of {labels}", first, len(entries)))
        unit = PaceUnit(self.store.root, self.parallel.threads, limit)
        paces = zip(measured, self.engine.in_order(unit, settings), strict=True)
        return list(paces)[: len(entries) - first]

    def _training(
        self, entry: Entrant, size: str | None = None, **more: Any
    ) -> train_settings.Config:
        """Return the settings of a training run of a candidate, with the preset ``size`` or its
        own."""
        data, options, batch = self.data.of(entry), self._options(entry), self._batch(entry)
        size = size or self._preset(entry)
        return training(data, options, size, batch, self.config.device, **more)

    def _options(self, entry: Entrant) -> dict[str, str]:
        """Return the options of ``numtok train`` that differ between candidates."""
        options = {
            "head": entry.head,
            "objective": entry.objective,
            "embedder": entry.embedder,
        }
        if entry.table is not None:
            options = {"head": entry.scheme, "normalize": entry.normalize}
        return {name: value for name, value in options.items() if value is not None}

    def _batch(self, entry: Entrant) -> int:
        """Return the number of rows per step.

        It is smaller if an epoch would have only a few steps, or if rows are so long that there
        would be few steps: with a small model, the number of steps matters most.
        """
        fits = [1 << k for k in _BATCHES if (1 << k) * _STEPS_A_PASS <= self.entered.rows[0]]
        batch = max(fits, default=1 << _BATCHES[0])
        if entry.table is None:  # the first text candidate has the fewest tokens
            counts = self.data.of(self.entered.first_text).manifest.counts
            while batch > _FEWEST and batch * counts["tokens"] > _TOKENS * counts["rows"]:
                batch //= 2
        return batch

    def _most(self, entry: Entrant) -> int:
        """Return the largest number of steps or epochs: beyond it, models memorize the rows."""
        if entry.table is not None:
            return _EPOCHS
        return max(_LEAST_CAP, _PASSES * -(-self.entered.rows[0] // self._batch(entry)))


def unit_of(entry: Entrant) -> Unit:
    """Return the unit of a candidate's budget: epochs on tables, steps on texts."""
    return "steps" if entry.table is None else "epochs"


def training(
    data: Artifact, options: Mapping[str, str], size: str, batch: int, device: str, **more: Any
) -> train_settings.Config:
    """Return the settings of a training run on ``data``: the ``options`` of a candidate, the
    settings shared by all candidates, and ``more``."""
    settings = {**more, **options}
    return train_settings.Config(
        data=str(data.path), preset=size, batch=batch, device=device, **settings
    )


def evaluating(data: str, split: str, rows: int | None, device: str) -> eval.Config:
    """Return the settings of an evaluation. It leaves out the baselines, which a race fits once for
    all candidates."""
    return eval.Config(model="", data=data, split=split, rows=rows, baselines="no", device=device)


@dataclass(frozen=True)
class PaceUnit:
    """Callable that trains for ``limit`` seconds, in this process or in a worker, to measure the
    seconds per step."""

    root: Path
    threads: int | None
    limit: float

    def __call__(self, settings: train_settings.Config) -> float | UsageError:
        """Return the seconds per step (or epoch) of these settings, or the error that they
        raise.
        """
        try:
            with with_threads(self.threads):
                return train.pace(settings, quiet_store(self.root), self.limit)
        except UsageError as error:
            return error


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
