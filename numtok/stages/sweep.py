"""Sweep: a grid of data, encodings, trainings and seeds -> reports, and one table a data set.

Data and encodings are made first, one after the other. Then every run, a
training and its evaluation, is a unit of its own: runs are done side by side, in
any order, and one that fails is told at the end. All of it are artifacts, so a
sweep that was stopped goes on where it stood, and shares what it makes with
other sweeps and with the commands.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch

from numtok.config import threads
from numtok.engines.local import run_units
from numtok.errors import NumtokError, UsageError
from numtok.metrics.base import METRICS
from numtok.registry import spec_of
from numtok.reports import REPORT
from numtok.stages import compare, encode, eval, gen, train
from numtok.stages._experiments import Spent, spent
from numtok.stages._reports import Evaluation, read
from numtok.stages._sweep_file import Point, Select, Sweep, read_sweep
from numtok.store import Store


@dataclass(frozen=True)
class Config:
    """What ``numtok sweep`` was asked for; ``jobs`` runs go on side by side."""

    file: str
    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"--jobs {self.jobs} is not possible; at least 1 is needed")


#: What some runs have in common: the value of each axis in which they do not differ.
Shared = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Run:
    """One training and its evaluation, and where on the axes it stands."""

    index: int
    data: int  # index of the data set
    point: Point
    train: train.Config
    eval: eval.Config

    def without(self, axes: Iterable[str]) -> Shared:
        """What the run shares with those that differ only in these axes."""
        left_out = set(axes)
        return tuple((name, value) for name, value in self.point.items() if name not in left_out)


class Outcome(NamedTuple):
    """What became of a run: a report, or why there is none."""

    run: Run
    report: str | None
    problem: NumtokError | None = None


class Failed(NamedTuple):
    """Something that was not made: where on the axes, and why."""

    label: str
    problem: NumtokError


class Pick(NamedTuple):
    """The best of some candidates: what they share, what was chosen, its mean validation figure.

    ``reached`` is None where nothing was to be reached.
    """

    label: str
    chosen: str
    figure: float | None
    reached: bool | None
    spent: Spent | None


class Dataset(NamedTuple):
    """One data set: its place on the axes, and its comparison."""

    label: str
    comparison: compare.Comparison


class Result(NamedTuple):
    """All of a sweep."""

    datasets: list[Dataset]
    picks: list[Pick]
    failed: list[Failed]
    runs: int


#: Told what was done, how many runs of those under way are done, and how many there are: both 0
#: while data are made.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SweepUnit:
    """Does one run, in any process. An error that a user can cause is a result, not raised."""

    root: Path
    threads: int  # of each run

    def __call__(self, run: Run) -> Outcome:
        with _environment("NUMTOK_THREADS", str(self.threads)):
            return self._done(run)

    def _done(self, run: Run) -> Outcome:
        store = Store(self.root, lambda text: None)
        try:
            model = train.run(run.train, store, lambda update: None).artifact
            report = eval.run(
                replace(run.eval, model=model.ref), store, lambda what, done, total: None
            )
        except NumtokError as error:
            return Outcome(run, None, error)
        return Outcome(run, report.artifact.ref)


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Make whatever of a sweep is not there yet, and compare.

    Raises UsageError for a file that is not understood; what goes wrong with single runs is in
    the result.
    """
    sweep = read_sweep(Path(config.file))
    failed: list[Failed] = []
    runs = list(_runs(sweep, store, progress, failed))
    jobs, per_run = _jobs(config.jobs)
    evaluate = _Runner(SweepUnit(store.root, per_run), jobs, progress, failed)
    picks: list[Pick] = []
    if sweep.select is not None:
        runs, picks = _Selection(sweep, sweep.select, evaluate, store).choose(runs)
    reports = evaluate(runs)
    datasets = []
    for index, (point, _) in enumerate(sweep.data):
        refs = tuple(ref for one in runs if one.data == index and (ref := reports.get(one.index)))
        if refs:
            comparison = compare.run(replace(sweep.compare, reports=refs), store)
            datasets.append(Dataset(label_of(point.items()), comparison))
    return Result(datasets, picks, failed, len(runs))


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """A variable of the environment for as long as the block lasts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _jobs(asked: int | None) -> tuple[int, int]:
    """How many runs side by side, by default one a core, or one with a GPU, and the threads of
    each, so that the cores are shared."""
    cores = threads() or os.cpu_count() or 1
    jobs = asked or (1 if torch.cuda.is_available() else cores)
    return jobs, max(1, cores // jobs)


def _inputs(source: tuple[str, ...] | gen.Config, store: Store) -> tuple[str, ...]:
    """What ``encode`` reads."""
    if not isinstance(source, gen.Config):
        return source
    return (gen.run(source, store, lambda *_: None).ref,)


def _runs(sweep: Sweep, store: Store, progress: Progress, failed: list[Failed]) -> Iterator[Run]:
    """Make the data and encode them; every run that this allows."""
    count = 0
    for index, (data_point, source) in enumerate(sweep.data):
        label = label_of(data_point.items())
        progress(f"data {label}".rstrip(), 0, 0)
        try:
            inputs = _inputs(source, store)
        except NumtokError as error:
            failed.append(Failed(label, error))
            continue
        for encode_point, encoding in sweep.encode:
            point = {**data_point, **encode_point}
            progress(f"encoding {label_of(point.items())}", 0, 0)
            try:
                result = encode.run(replace(encoding, inputs=inputs), store, lambda *_: None)
            except NumtokError as error:
                failed.append(Failed(label_of(point.items()), error))
                continue
            for train_point, training in sweep.train:
                for eval_point, evaluation in sweep.eval:
                    yield Run(
                        count,
                        index,
                        {**point, **train_point, **eval_point},
                        replace(training, encoded=result.ref),
                        replace(evaluation, encoded=result.ref),
                    )
                    count += 1


@dataclass(frozen=True)
class _Runner:
    """Called with runs: does them side by side, and gives the report of each by its index."""

    work: SweepUnit
    jobs: int
    progress: Progress
    failed: list[Failed]

    def __call__(self, runs: Sequence[Run]) -> dict[int, str]:
        reports: dict[int, str] = {}
        known = {one.label for one in self.failed}
        outcomes = run_units(self.work, runs, self.jobs)
        for done, outcome in enumerate(outcomes, 1):
            label = label_of(outcome.run.point.items())
            failure = f": {outcome.problem}" if outcome.problem else ""
            self.progress(f"{label}{failure}", done, len(runs))
            if outcome.report is not None:
                reports[outcome.run.index] = outcome.report
            elif label not in known and outcome.problem is not None:
                self.failed.append(Failed(label, outcome.problem))
        return reports


class _Candidate(NamedTuple):
    """Runs that differ only in the seed, and how they did on the validation split."""

    runs: list[Run]
    evaluations: list[Evaluation]
    figure: float | None  # the mean over the seeds; None where one has none


@dataclass(frozen=True)
class _Selection:
    """Chooses among candidates by their figures on the validation split, and nothing else."""

    sweep: Sweep
    select: Select
    evaluate: _Runner
    store: Store

    def choose(self, runs: Sequence[Run]) -> tuple[list[Run], list[Pick]]:
        """The runs to evaluate on the test split, and how they were chosen.

        Successive halving where something is to be reached: all candidates of a group at the
        smallest budget, the better half of them at the next, until one is good enough.
        """
        rungs = sorted({self._rung(one) for one in runs})
        apart = [*self.select.over, *self.sweep.seeds, *self._budgets]
        groups: dict[Shared, list[Run]] = {}
        for one in runs:
            groups.setdefault(one.without(apart), []).append(one)
        best: dict[Shared, _Candidate] = {}
        for rung in rungs:
            waiting = {key: group for key, group in groups.items() if not self._reached(best, key)}
            here = {
                key: [one for one in group if self._rung(one) == rung]
                for key, group in waiting.items()
            }
            for key, candidates in self._ranked(here).items():
                best[key] = candidates[0]
                kept = candidates[: -(-len(candidates) // 2)]
                alive = {self._place(one.runs[0]) for one in kept}
                groups[key] = [one for one in groups[key] if self._place(one) in alive]
        chosen = [one for candidate in best.values() for one in candidate.runs]
        return chosen, [self._pick(key, candidate) for key, candidate in best.items()]

    @property
    def _budgets(self) -> list[str]:
        """The axis that is climbed, if one is."""
        budget = self.sweep.budget if self.select.reach is not None else None
        return [] if budget is None else [budget]

    def _rung(self, run: Run) -> tuple[float, ...]:
        return tuple(float(run.point[name]) for name in self._budgets)

    def _place(self, run: Run) -> Shared:
        """Where a run stands among the candidates of its group."""
        return tuple((name, run.point[name]) for name in self.select.over)

    def _ranked(self, groups: Mapping[Shared, Sequence[Run]]) -> dict[Shared, list[_Candidate]]:
        """Run all, and rank the candidates of each group, the best first."""
        every = [
            replace(one, eval=replace(one.eval, split=self.select.split))
            for group in groups.values()
            for one in group
        ]
        reports = self.evaluate(every)
        found = {index: read(self.store.resolve(ref, {REPORT})) for index, ref in reports.items()}
        ranked = {}
        for key, group in groups.items():
            candidates: dict[Shared, list[Run]] = {}
            for one in group:
                candidates.setdefault(self._place(one), []).append(one)
            measured = [self._measured(those, found) for those in candidates.values()]
            ranked[key] = sorted(measured, key=self._badness)
        return ranked

    def _measured(self, runs: list[Run], found: Mapping[int, Evaluation]) -> _Candidate:
        evaluations = [found[one.index] for one in runs if one.index in found]
        values = [one.report.metrics[self._metric].value for one in evaluations]
        known = [value for value in values if value is not None]
        complete = len(known) == len(runs)
        return _Candidate(runs, evaluations, sum(known) / len(known) if complete else None)

    @property
    def _metric(self) -> str:
        return spec_of(METRICS.build(self.select.metric))

    @property
    def _sign(self) -> int:
        return -1 if METRICS.build(self.select.metric).better == "higher" else 1

    def _badness(self, candidate: _Candidate) -> float:
        return math.inf if candidate.figure is None else self._sign * candidate.figure

    def _reached(self, best: Mapping[Shared, _Candidate], key: Shared) -> bool:
        if self.select.reach is None or key not in best:
            return False
        return self._badness(best[key]) <= self._sign * self.select.reach

    def _pick(self, key: Shared, best: _Candidate) -> Pick:
        others = {name for name, _ in key} | set(self.sweep.seeds)
        chosen = [(name, value) for name, value in best.runs[0].point.items() if name not in others]
        return Pick(
            label_of(key),
            label_of(chosen),
            best.figure,
            None if self.select.reach is None else self._reached({key: best}, key),
            spent(best.evaluations) if best.evaluations else None,
        )


def label_of(point: Iterable[tuple[str, str]]) -> str:
    """``scheme=xval, lr=0.001``"""
    return ", ".join(f"{name}={value}" for name, value in point)
