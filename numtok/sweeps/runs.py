"""The runs of a sweep or race. Each run trains and evaluates one model; runs are executed in
parallel, in any order.

Existing results are reused without starting a process; the other runs are units of work for the
engine. An error that a user can cause is recorded as the outcome of its run and does not stop other
runs.
"""

import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from numtok.errors import NumtokError
from numtok.plugins import fault_of
from numtok.stages import eval, train
from numtok.store.artifact import Artifact
from numtok.store.engines.engine import LOCAL, Engine
from numtok.store.store import Absent, Store
from numtok.sweeps.parallel import Parallelism
from numtok.sweeps.plan import Point, label_of


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a sweep or race: the training and evaluation of a model.

    index
        Number of the run, which identifies it among all runs.
    table
        Label of the comparison that includes the run.
    point
        The run's values on the axes of the sweep.
    """

    index: int
    table: str
    point: Point
    train: train.Config
    eval: eval.Config


class Failed(NamedTuple):
    """Failure to produce a result: the label of the result, and the error."""

    label: str
    problem: NumtokError


class Bug(NumtokError):
    """Error that is caused by a bug rather than by the user. ``trace`` is its traceback."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message, trace)
        self.trace = trace

    def __str__(self) -> str:
        return str(self.args[0])


class RunOutcome(NamedTuple):
    """Outcome of a run: the folder of its report, or the error."""

    run: Run
    report: Path | None
    problem: NumtokError | None = None


class OthersLeft(Exception):
    """Raised if ``count`` runs that belong to other parts of a sweep have no results yet."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class SweepProgress(NamedTuple):
    """Progress of a sweep.

    what
        Message about the latest work.
    done, total
        Number of finished runs, and total number of runs. ``total`` is 0 while data is prepared or
        results are compared.
    seconds_left
        Estimated remaining time; None if unknown.
    """

    what: str
    done: int = 0
    total: int = 0
    seconds_left: float | None = None


Progress = Callable[[SweepProgress], None]


@dataclass(frozen=True)
class RunUnit:
    """Callable that trains and evaluates the model of a :class:`Run`, in this process or in a
    worker.

    threads
        Number of threads; None for the default of the environment.
    make
        If False, raise Absent for a run without a stored result instead of executing it.
    """

    root: Path
    threads: int | None = None
    make: bool = True

    def __call__(self, run: Run) -> RunOutcome:
        store = quiet_store(self.root, make=self.make)
        with with_threads(self.threads):
            try:
                report = _report(run, store)
            except NumtokError as error:
                return RunOutcome(run, None, error)
            except Absent:
                raise
            except Exception as error:  # parallel runs must not be lost
                if (fault := fault_of(error)) is not None:
                    return RunOutcome(run, None, fault)
                message = f"this is a bug; please report it with its traceback: {error!r}"
                return RunOutcome(run, None, Bug(message, traceback.format_exc()))
        return RunOutcome(run, report.path)


def quiet_store(root: Path, *, make: bool = True) -> Store:
    """Open a store for many runs: it drops notes, which would be too many, and finds artifacts
    under any name. If ``make`` is false, it makes no artifacts."""
    return Store(root, lambda note: None, any_name=True, make=make)


def _report(run: Run, store: Store) -> Artifact:
    """Train and evaluate a model; return the report."""
    model = train.run(run.train, store, lambda update: None).artifact
    config = replace(run.eval, model=str(model.path))
    return eval.run(config, store, lambda what, done, total: None).artifact


@contextmanager
def with_threads(count: int | None) -> Iterator[None]:
    """Context manager that sets the environment variable NUMTOK_THREADS to ``count``, unless
    ``count`` is None."""
    before = os.environ.get(name := "NUMTOK_THREADS")
    if count is not None:
        os.environ[name] = str(count)
    try:
        yield
    finally:
        if count is not None and before is None:
            del os.environ[name]
        elif before is not None:
            os.environ[name] = before


def _show_trace(problem: NumtokError | None) -> None:
    """Print the traceback of a bug or of a plugin's error."""
    print(getattr(problem, "trace", ""), end="", file=sys.stderr)


def _in_rounds(runs: Sequence[Run]) -> list[Run]:
    """Order runs so that the first run of every model precedes the second run of any model.

    Parallel runs of the same model would all wait for its training.
    """
    before = Counter[str]()
    rounds = []
    for run in runs:
        rounds.append(before[repr(run.train)])
        before[repr(run.train)] += 1
    return [run for _, run in sorted(zip(rounds, runs, strict=True), key=lambda pair: pair[0])]


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Callable that executes the given runs, except runs whose results exist already. It returns
    the folder of each report, keyed by the index of the run.

    failed
        List to which failed runs are appended.
    part
        Part of the sweep to execute. "3/8" stands for the runs of every eighth model, starting with
        the third. OthersLeft is raised if runs of other parts have no results yet.
    each
        Function that is called with every outcome.
    """

    root: Path
    parallel: Parallelism
    engine: Engine
    progress: Progress
    failed: list[Failed]
    part: str | None = None
    each: Callable[[RunOutcome], None] = lambda outcome: None

    def __call__(self, runs: Sequence[Run]) -> dict[int, Path]:
        if not runs:
            return {}
        lookup, outcomes, left, of_others = RunUnit(self.root, make=False), [], [], 0
        own_models = self._own_models(runs)
        for run in runs:
            try:
                outcome = lookup(run)
            except Absent:
                outcome = None
            # A run that is impossible here may be possible on a node with a GPU.
            if outcome is not None and (outcome.report or self.parallel.engine == LOCAL):
                outcomes.append(outcome)
            elif repr(run.train) in own_models:
                left.append(run)
            else:
                of_others += 1
        known = len(outcomes)
        message = self._summary(runs, outcomes, len(left), of_others)
        self.progress(SweepProgress(message, known, len(runs)))
        for outcome in outcomes:
            self.each(outcome)
        for run, _, problem in outcomes:
            if problem is not None:  # reported now, not after hours of training
                _show_trace(problem)
                self.progress(SweepProgress(f"{label_of(run.point)}: {problem}", known, len(runs)))
        started = time.monotonic()
        work = RunUnit(self.root, self.parallel.threads)
        for outcome in self.engine.run(work, _in_rounds(left)):
            outcomes.append(outcome)
            self.each(outcome)
            _show_trace(outcome.problem)
            done = len(outcomes)
            seconds = (time.monotonic() - started) / (done - known) * (len(runs) - done)
            failure = f": {outcome.problem}" if outcome.problem else ""
            label = label_of(outcome.run.point)
            self.progress(SweepProgress(f"{label}{failure}", done, len(runs), seconds))
        for run, _, problem in outcomes:
            if problem is not None:
                self.failed.append(Failed(label_of(run.point), problem))
        if of_others:
            raise OthersLeft(of_others)
        return {run.index: report for run, report, _ in outcomes if report is not None}

    def _summary(
        self, runs: Sequence[Run], known: Sequence[RunOutcome], left: int, of_others: int
    ) -> str:
        """Return a message about the runs, those with known outcomes, and the remaining ones."""
        splits = " and ".join(sorted({run.eval.split for run in runs}))
        refused = sum(outcome.problem is not None for outcome in known)
        message = f"{len(runs)} run{'s' * (len(runs) > 1)} on {splits}"
        message += f", {len(known) - refused} cached" if len(known) > refused else ""
        message += f", {refused} failed" if refused else ""
        message += f", {of_others} left to other parts" if of_others else ""
        if left > 1:
            jobs = "one" if self.parallel.jobs == 1 else min(self.parallel.jobs, left)
            message += f"; {jobs} at a time{self.parallel.note}"
        return message

    def _own_models(self, runs: Sequence[Run]) -> set[str]:
        """Return the models of this part. A model is evaluated only by the part that trains it."""
        models = list(dict.fromkeys(repr(run.train) for run in runs))
        k, m = (1, 1) if self.part is None else map(int, self.part.split("/"))
        return set(models[k - 1 :: m])
