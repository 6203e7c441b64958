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

from numtok.config import threads
from numtok.errors import NumtokError, UsageError
from numtok.machine import cores
from numtok.plugins import fault_of
from numtok.settings.race import Config as RaceConfig
from numtok.stages import eval, train
from numtok.store.artifact import Artifact
from numtok.store.engines.engine import LOCAL, Engine, Spool, cluster
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import ClusterNode, check_processes, gpu_slots
from numtok.store.store import Absent, Store
from numtok.sweeps.plan import Point, Sweep, label_of
from numtok.training.device import device_count, device_of, threads_alone

_FINALISTS = 2  # fewest candidates in the last round of a race


class Side(NamedTuple):
    """How runs are executed in parallel: the number of runs at a time, the threads per run, and a
    note on this choice.

    gpus
        The GPUs, in the form that :class:`Workers` takes.
    engine
        Name of the engine that executes the runs.
    gpu
        True if each run has its own GPU on a cluster.
    """

    jobs: int
    threads: int | None
    note: str = ""
    gpus: Sequence[str] = ()
    engine: str = LOCAL
    gpu: bool = False

    def workers(self, spool: Spool) -> Engine:
        """Return the engine that executes the runs. ``spool`` creates temporary folders in the
        store."""
        if self.engine == LOCAL:
            return Workers(self.jobs, self.gpus)
        return cluster(self.engine, self.jobs, spool, self.threads or 1, self.gpu)


def side_by_side(sweep: Sweep, requested: int | None) -> Side:
    """Return the number of parallel runs of a sweep on this machine, and their threads and GPUs.

    ``requested`` is the number of parallel runs. The default is one per GPU or, without GPUs, one
    per core. The default never exceeds the number of runs in the sweep.

    The default is a single run at a time if parallel runs would slow each other down: if their
    budget is in minutes and they run on the CPU, or if the sweep file names a single GPU. The
    default does not depend on the number of unfinished runs, because the last digits of results
    depend on the number of threads.
    """
    most = threads() or cores()
    used = [device_of(training.device) for training in sweep.trainings]
    counts = (device_count("all", device) for device in used if device.type == "cuda")
    gpus = min(counts, default=0)
    jobs = _checked_jobs(requested) or min(gpus or (1 if sweep.timed else most), sweep.size)
    note = ""
    if sweep.timed and jobs > max(1, gpus):
        note = f", which makes each slower; with a budget in minutes, use --jobs {max(1, gpus)}"
    elif sweep.timed and jobs == 1:
        note = ", because the budget is in minutes"
    slots = gpu_slots(jobs, gpus) if gpus > 1 else ()
    return Side(jobs, None if jobs == 1 else max(1, most // jobs), note, slots)


def on_cluster(
    sweep: Sweep, requested: int | None, engine: str, nodes: Sequence[ClusterNode]
) -> Side:
    """Return the number of parallel runs of a sweep on a cluster, and their threads and GPUs.

    ``requested`` is the number of parallel runs. The default is one per GPU. Without GPUs, it is
    the number of runs that fit on the CPUs of all nodes, or one per node if the budget is in
    minutes. The default never exceeds the number of runs in the sweep.

    Each run has its own GPU if there are any, unless the sweep file sets the device to ``cpu`` for
    all models. NUMTOK_THREADS sets the number of threads per run. By default, a run with a GPU gets
    its share of the node's CPUs, and a run on CPUs whose budget is in minutes gets a whole node.
    Other runs have one thread, so that the last digits of results do not depend on the cluster.
    """
    gpu = {training.device for training in sweep.trainings} != {"cpu"}
    return _on_nodes(nodes, requested, engine, gpu=gpu, timed=sweep.timed, most=sweep.size)


def race_side(config: RaceConfig, nodes: Sequence[ClusterNode]) -> Side:
    """Return the number of parallel runs of a race, and their threads and GPUs.

    ``--jobs`` sets the number of parallel runs. The default is one per GPU or, without GPUs, one
    per core, but at most twice the number of seeds. On a cluster, the defaults are the same as in
    :func:`on_cluster`, except that they are not limited by the number of runs.

    Parallel runs save time, because budgets are in steps: several runs together train more steps in
    the same time than one run on all cores. The number of threads is always set and is stored in
    the race's plan, so that the result is the same on any machine on which the race resumes.
    """
    if config.engine != LOCAL:
        return _on_nodes(nodes, config.jobs, config.engine, gpu=config.device != "cpu")
    device = device_of(config.device)
    if device.type == "cpu" and config.devices not in ("1", "all"):
        raise UsageError(
            f"--devices {config.devices} needs GPUs, but this race runs on the CPU. To set the "
            "number of parallel runs: --jobs"
        )
    gpus = device_count(config.devices, device)
    cores = threads_alone()
    default = min(cores, _FINALISTS * config.seeds) if device.type == "cpu" else gpus
    jobs = _checked_jobs(config.jobs) or default
    slots = gpu_slots(jobs, gpus) if device.type == "cuda" and gpus > 1 else ()
    each = max(1, cores // jobs)
    return Side(jobs, each, gpus=slots)


def _checked_jobs(jobs: int | None) -> int | None:
    """Return ``jobs`` after checking it against this machine."""
    return None if jobs is None else check_processes("jobs", jobs)


def _on_nodes(
    nodes: Sequence[ClusterNode],
    requested: int | None,
    engine: str,
    *,
    gpu: bool,
    timed: bool = False,
    most: int | None = None,
) -> Side:
    """Return the number of parallel runs on the given nodes, and their threads and GPUs.

    ``most`` is the number of runs, or None if it is not limited. ``gpu`` is True if runs may use a
    GPU.
    """
    gpu = gpu and any(node.gpus for node in nodes)
    able = [node for node in nodes if node.gpus or not gpu]
    if gpu:
        each = threads() or min(max(1, node.cpus // node.gpus) for node in able)
        room = sum(node.gpus for node in able)
    elif timed:
        each = threads() or min((node.cpus for node in able), default=1)
        room = len(able)
    else:
        each = threads() or 1
        room = sum(node.cpus // each for node in able)
    jobs = requested or max(1, room if most is None else min(room, most))
    return Side(jobs, each, engine=engine, gpu=gpu)


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
    side: Side
    engine: Engine
    progress: Progress
    failed: list[Failed]
    part: str | None = None
    each: Callable[[RunOutcome], None] = lambda outcome: None

    def __call__(self, runs: Sequence[Run]) -> dict[int, Path]:
        if not runs:
            return {}
        look, outcomes, left, of_others = RunUnit(self.root, make=False), [], [], 0
        own_models = self._own_models(runs)
        for run in runs:
            try:
                outcome = look(run)
            except Absent:
                outcome = None
            # A run that is impossible here may be possible on a node with a GPU.
            if outcome is not None and (outcome.report or self.side.engine == LOCAL):
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
        work = RunUnit(self.root, self.side.threads)
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
            jobs = "one" if self.side.jobs == 1 else min(self.side.jobs, left)
            message += f"; {jobs} at a time{self.side.note}"
        return message

    def _own_models(self, runs: Sequence[Run]) -> set[str]:
        """Return the models of this part. A model is evaluated only by the part that trains it."""
        models = list(dict.fromkeys(repr(run.train) for run in runs))
        k, m = (1, 1) if self.part is None else map(int, self.part.split("/"))
        return set(models[k - 1 :: m])
