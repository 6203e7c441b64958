"""The runs of a sweep or race: a training and its evaluation each, side by side, in any order.

A run that is there already is found without a process of its own; the others are
units for the engine. An error that a user can cause is a run's outcome: it stops
no other run.
"""

import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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

_FINALISTS = 2  # of a race, at least


class Side(NamedTuple):
    """Number of parallel runs, threads per run, and a note on the choice.

    gpus
        The GPUs, as :class:`Workers` takes them.
    engine, gpu
        The engine of the runs, and whether each run has its own GPU on a cluster.
    """

    jobs: int
    threads: int | None
    note: str = ""
    gpus: Sequence[str] = ()
    engine: str = LOCAL
    gpu: bool = False

    def workers(self, spool: Spool) -> Engine:
        """Return the engine of the runs; ``spool`` makes folders in the store."""
        if self.engine == LOCAL:
            return Workers(self.jobs, self.gpus)
        return cluster(self.engine, self.jobs, spool, self.threads or 1, self.gpu)


def side_by_side(sweep: Sweep, asked: int | None) -> Side:
    """Choose the jobs of a sweep on this machine: ``asked``, or one per GPU, or one per core.

    Only one runs at a time if parallel runs would disturb each other: if their budget is a time, or
    the file names the GPU. The choice does not depend on how much of the sweep is left, because the
    last digits of what a run learns depend on its number of threads.
    """
    most = threads() or cores()
    used = [device_of(one.device) for one in sweep.trainings]
    gpus = min((device_count("all", one) for one in used if one.type == "cuda"), default=0)
    jobs = _asked(asked) or min(gpus or (1 if sweep.timed else most), sweep.size)
    note = ""
    if sweep.timed and jobs > max(1, gpus):
        better = f"better --jobs {max(1, gpus)}"
        note = f", which makes each of them slower: their budget is a time, {better}"
    elif sweep.timed and jobs == 1:
        note = ", as their budget is a time"
    slots = gpu_slots(jobs, gpus) if gpus > 1 else ()
    return Side(jobs, None if jobs == 1 else max(1, most // jobs), note, slots)


def on_cluster(sweep: Sweep, asked: int | None, engine: str, nodes: Sequence[ClusterNode]) -> Side:
    """Choose the jobs of a sweep on a cluster: ``asked``, or one per GPU, or as many as the CPUs of
    all nodes can run, or one per node if their budget is a time.

    A run has its own GPU if there are any, unless the file says ``cpu``, and ``NUMTOK_THREADS``
    threads. If that is not set, it has one thread, so that the last digits of what it learns do not
    depend on the cluster; with a GPU, its part of the node's CPUs; a whole node if its budget is a
    time.
    """
    gpu = {one.device for one in sweep.trainings} != {"cpu"}
    return _on_nodes(nodes, asked, engine, gpu=gpu, timed=sweep.timed, most=sweep.size)


def race_side(config: RaceConfig, nodes: Sequence[ClusterNode]) -> Side:
    """Choose the jobs of a race: ``--jobs``, or one per GPU, or one per core, up to the size of the
    last round; on a cluster as in a sweep. Budgets are steps, and several runs train more steps in
    the same time than one run on all cores.

    The number of threads is always set: the plan stores it, so a race has the same result on
    whichever machine it resumes.
    """
    if config.engine != LOCAL:
        return _on_nodes(nodes, config.jobs, config.engine, gpu=config.device != "cpu")
    device = device_of(config.device)
    if device.type == "cpu" and config.devices not in ("1", "all"):
        raise UsageError(
            f"--devices {config.devices} needs GPUs, and this race runs on the CPU. Leave it "
            "out; --jobs sets the number of parallel runs"
        )
    there = device_count(config.devices, device)
    cores = threads_alone()
    usual = min(cores, _FINALISTS * config.seeds) if device.type == "cpu" else there
    jobs = _asked(config.jobs) or usual
    slots = gpu_slots(jobs, there) if device.type == "cuda" and there > 1 else ()
    each = max(1, cores // jobs)
    return Side(jobs, each, gpus=slots)


def _asked(jobs: int | None) -> int | None:
    """``--jobs`` on this machine, checked."""
    return None if jobs is None else check_processes("jobs", jobs)


def _on_nodes(
    nodes: Sequence[ClusterNode],
    asked: int | None,
    engine: str,
    *,
    gpu: bool,
    timed: bool = False,
    most: int | None = None,
) -> Side:
    """``most`` is how many runs there are, None for any number; ``gpu`` whether they may use
    one."""
    gpu = gpu and any(node.gpus for node in nodes)
    able = [node for node in nodes if node.gpus or not gpu]
    if gpu:
        each = min(max(1, node.cpus // node.gpus) for node in able)
    else:
        each = min((node.cpus for node in able), default=1) if timed else 1
    each = threads() or each
    if gpu:
        room = sum(node.gpus for node in able)
    else:
        room = len(able) if timed else sum(node.cpus // each for node in able)
    jobs = asked or max(1, room if most is None else min(room, most))
    return Side(jobs, each, engine=engine, gpu=gpu)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training and its evaluation, where on the axes it stands, and in which table."""

    index: int
    table: str
    point: Point
    train: train.Config
    eval: eval.Config


class Failed(NamedTuple):
    """Something that was not made: where on the axes, and why."""

    label: str
    problem: NumtokError


class Bug(NumtokError):
    """A run failed in a way that no user can cause; ``trace`` is the traceback."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message, trace)
        self.trace = trace

    def __str__(self) -> str:
        return str(self.args[0])


class RunOutcome(NamedTuple):
    """What became of a run: the folder of its report, or why there is none."""

    run: Run
    report: Path | None
    problem: NumtokError | None = None


class OthersLeft(Exception):
    """So many runs that belong to other parts are not there yet."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class SweepProgress(NamedTuple):
    """What was done last; of the runs under way how many are done, and about how long the others
    take. ``total`` is 0 while data are made and compared."""

    what: str
    done: int = 0
    total: int = 0
    seconds_left: float | None = None


Progress = Callable[[SweepProgress], None]


@dataclass(frozen=True)
class RunUnit:
    """Does a run, in any process. With ``make`` false Absent is raised for one that is not there.

    ``threads`` is how many it uses, None for as many as the environment allows.
    """

    root: Path
    threads: int | None = None
    make: bool = True

    def __call__(self, run: Run) -> RunOutcome:
        store = Store(self.root, lambda note: None, any_name=True, make=self.make)
        with with_threads(self.threads):
            try:
                report = _report(run, store)
            except NumtokError as error:
                return RunOutcome(run, None, error)
            except Absent:
                raise
            except Exception as error:  # nor shall this lose the runs that go on beside it
                if (fault := fault_of(error)) is not None:
                    return RunOutcome(run, None, fault)
                told = f"this is a bug; please report it with its traceback: {error!r}"
                return RunOutcome(run, None, Bug(told, traceback.format_exc()))
        return RunOutcome(run, report.path)


def _report(run: Run, store: Store) -> Artifact:
    """Train and evaluate."""
    model = train.run(run.train, store, lambda update: None).artifact
    asked = replace(run.eval, model=str(model.path))
    return eval.run(asked, store, lambda what, done, total: None).artifact


@contextmanager
def with_threads(count: int | None) -> Iterator[None]:
    """NUMTOK_THREADS for as long as the block lasts."""
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
    """Of a bug, or of a plugin's code."""
    print(getattr(problem, "trace", ""), end="", file=sys.stderr)


def _in_rounds(runs: Sequence[Run]) -> list[Run]:
    """First one run of each model, then another of each: two of one model, side by side, would
    wait until it is trained."""
    before = Counter[str]()
    rounds = []
    for run in runs:
        rounds.append(before[repr(run.train)])
        before[repr(run.train)] += 1
    return [run for _, run in sorted(zip(rounds, runs, strict=True), key=lambda one: one[0])]


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Called with runs: does those that are left, and gives the report of each by its index.

    With a ``part``, "3/8", only those of every eighth model, from the third on; raises OthersLeft
    where others are not there then. ``each`` is told what became of each run. ``engine`` does them,
    which is the side's own where there is none.
    """

    root: Path
    side: Side
    progress: Progress
    failed: list[Failed]
    part: str | None = None
    each: Callable[[RunOutcome], None] = lambda outcome: None
    engine: Engine | None = None

    def __call__(self, runs: Sequence[Run]) -> dict[int, Path]:
        if not runs:
            return {}
        look, outcomes, left, of_others = RunUnit(self.root, make=False), [], [], 0
        mine = self._mine(runs)
        for run in runs:
            try:
                outcome = look(run)
            except Absent:
                outcome = None
            # What cannot be done here, a node with a GPU may do.
            if outcome is not None and (outcome.report or self.side.engine == LOCAL):
                outcomes.append(outcome)
            elif repr(run.train) in mine:
                left.append(run)
            else:
                of_others += 1
        found = len(outcomes)
        splits = " and ".join(sorted({run.eval.split for run in runs}))
        told = f"{len(runs)} run{'s' if len(runs) > 1 else ''} on {splits}"
        refused = sum(one.problem is not None for one in outcomes)
        told += f", {found - refused} of them there already" if found > refused else ""
        told += f", {refused} cannot be" if refused else ""
        told += f", {of_others} left to other parts" if of_others else ""
        if len(left) > 1:
            jobs = "one" if self.side.jobs == 1 else min(self.side.jobs, len(left))
            told += f"; {jobs} at a time{self.side.note}"
        self.progress(SweepProgress(told, found, len(runs)))
        for outcome in outcomes:
            self.each(outcome)
        for run, _, problem in outcomes:
            if problem is not None:  # now, not in hours
                _show_trace(problem)
                self.progress(SweepProgress(f"{label_of(run.point)}: {problem}", found, len(runs)))
        started = time.monotonic()
        work = RunUnit(self.root, self.side.threads)
        engine = self.engine
        with (
            nullcontext(engine) if engine else self.side.workers(Store(self.root).spool) as workers
        ):
            for outcome in workers.run(work, _in_rounds(left)):
                outcomes.append(outcome)
                self.each(outcome)
                _show_trace(outcome.problem)
                done = len(outcomes)
                seconds = (time.monotonic() - started) / (done - found) * (len(runs) - done)
                failure = f": {outcome.problem}" if outcome.problem else ""
                label = label_of(outcome.run.point)
                self.progress(SweepProgress(f"{label}{failure}", done, len(runs), seconds))
        for run, _, problem in outcomes:
            if problem is not None:
                self.failed.append(Failed(label_of(run.point), problem))
        if of_others:
            raise OthersLeft(of_others)
        return {run.index: report for run, report, _ in outcomes if report is not None}

    def _mine(self, runs: Sequence[Run]) -> set[str]:
        """The models of this part: all evaluations of one are done by the process that trains
        it."""
        models = list(dict.fromkeys(repr(run.train) for run in runs))
        k, m = (1, 1) if self.part is None else map(int, self.part.split("/"))
        return set(models[k - 1 :: m])
