"""Measurement of the candidates of a race: seconds per step, and the overhead of a run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from numtok.encoding.scheme_spec import scheme_of
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.presets import preset
from numtok.settings import train as train_settings
from numtok.settings.race import Config
from numtok.stages import train
from numtok.stages.train import VALIDATION
from numtok.store.engines.engine import Engine
from numtok.store.store import Store
from numtok.sweeps.parallel import Parallelism
from numtok.sweeps.race.candidates import Entrant
from numtok.sweeps.race.entrants import Encodings, Entered
from numtok.sweeps.race.plan import (
    LEAST,
    Candidate,
    Progress,
    RaceProgress,
    RaceShape,
    Time,
    entered,
    rounds_of,
)
from numtok.sweeps.race.planning import Measurements, time_of
from numtok.sweeps.race.run_settings import evaluating, training
from numtok.sweeps.runs import Run, RunUnit, quiet_store, with_threads
from numtok.training.trained_table import FittingRecipe

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
_APART = 3.0  # ratio of neighboring learning rates


@dataclass(kw_only=True)
class Measuring:
    """Measures the candidates on the machines that execute the runs. The race began at
    ``started``."""

    config: Config
    entered: Entered
    data: Encodings
    store: Store
    parallel: Parallelism
    progress: Progress
    started: float
    engine: Engine
    shape: RaceShape

    def measure(self, rows: int | None) -> Measurements:
        """Measure candidates in their order, until no further one fits into the time. ``rows`` is
        the number of rows to predict in the validation split.

        If no candidate can be trained, the error of the first one is raised.
        """
        paces, unfit, overhead = self._paced(rows)
        return Measurements(
            candidates=[self._candidate(entry, pace) for entry, pace in paces.items()],
            unfit=unfit,
            unmeasured=len(self.entered.entries) - len(unfit) - len(paces),
            time=self._time(overhead),
        )

    def _time(self, overhead: float) -> Time:
        """Return the time left, at least half of the total."""
        left = self.config.seconds - (time.monotonic() - self.started)
        return Time(max(left, self.config.seconds / 2), overhead, self.parallel.jobs)

    def _all_fit(self, paces: Mapping[Entrant, float], overhead: float) -> bool:
        """Return whether there is time for every measured candidate."""
        least = [LEAST[entry.unit] for entry in paces]
        found = entered(self._time(overhead), list(paces.values()), self.shape, least)
        return found == len(paces)

    def _candidate(self, entry: Entrant, pace: float) -> Candidate:
        return Candidate(
            label=entry.label,
            data=self.data.of(entry).ref,
            scheme=entry.scheme,
            options=entry.options,
            preset=self._preset(entry),
            batch=self._batch(entry),
            unit=entry.unit,
            pace=pace,
            rates=self._rates(entry),
        )

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
            if len(paces) >= self.shape.finalists:
                late = time.monotonic() - began > most
                if late or not self._all_fit(paces, overhead):
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

        The runs are executed in parallel, like later ones, in a temporary store. The second set
        counts, because the first includes work that is done only once.
        """
        shortest: dict[str, Any] = {entry.unit: 1}
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
            *_, last = rounds_of(available, paces, self.shape, [_ENOUGH_STEPS] * len(paces))
            if last.steps[0] < _ENOUGH_STEPS:
                break
            chosen = size
        return chosen

    def _rates(self, entry: Entrant) -> list[float]:
        """Return the default rate of a candidate, then rates on alternating sides of it, ever
        farther away, rounded to three digits.
        """
        default = FittingRecipe.learning_rate
        if entry.table is None:
            embedder = entry.embedder or scheme_of(entry.scheme).parts[0]
            default = preset(self._size).rate_with(EMBEDDERS.build(embedder))
        factors = [_APART ** ((k + 1) // 2 * (-1) ** (k + 1)) for k in range(self.shape.rates)]
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
        data, batch = self.data.of(entry), self._batch(entry)
        size = size or self._preset(entry)
        return training(data, entry.options, size, batch, self.config.device, **more)

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
