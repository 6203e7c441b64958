"""How many runs of a sweep or race go on side by side, where, and what each has of its machine."""

from collections.abc import Sequence
from typing import NamedTuple

from numtok.config import threads
from numtok.errors import UsageError
from numtok.machine import cores
from numtok.settings.race import Config as RaceConfig
from numtok.store.engines.engine import LOCAL, Engine, Spool, cluster
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import ClusterNode, check_processes, gpu_slots
from numtok.sweeps.plan import Sweep
from numtok.training.device import device_count, device_of, threads_alone

_FINALISTS = 2  # of a race, at least


class Side(NamedTuple):
    """How many runs go on side by side, the threads of each, and what there is to say of it.

    gpus
        As of :class:`Workers`.
    engine, gpu
        Where that is done; whether each run has a GPU of a cluster of its own.
    """

    jobs: int
    threads: int | None
    note: str = ""
    gpus: Sequence[str] = ()
    engine: str = LOCAL
    gpu: bool = False

    def workers(self, spool: Spool) -> Engine:
        """That do the runs; ``spool`` is the store's."""
        if self.engine == LOCAL:
            return Workers(self.jobs, self.gpus)
        return cluster(self.engine, self.jobs, spool, self.threads or 1, self.gpu)


def side_by_side(sweep: Sweep, asked: int | None) -> Side:
    """As many jobs as asked for; else one a GPU, or one a core, so that cores are shared, and one
    alone where runs would disturb each other: where their budget is a time, or the file says which
    GPU they use.

    The same for the whole of a sweep however much of it is left, because what a run learns
    depends, in its last digits, on the number of threads.
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
    """As many jobs as asked for; else one for each GPU, or as many as the CPUs of all nodes are
    enough for, and one a node where their budget is a time.

    A run has a GPU of its own where there are any, unless the file says ``cpu``, and as many
    threads as ``NUMTOK_THREADS`` says. Without that it has one, so that what it learns does not
    depend on the cluster, to the last digit; beside a GPU its part of the CPUs there; all of a node
    where its budget is a time.
    """
    gpu = {one.device for one in sweep.trainings} != {"cpu"}
    return _on_nodes(nodes, asked, engine, gpu=gpu, timed=sweep.timed, most=sweep.size)


def race_side(config: RaceConfig, nodes: Sequence[ClusterNode]) -> Side:
    """Of the runs of a race, whose budgets are steps: as many as asked for; else one a GPU, or one
    a core, as far as the last round has so many, which learn more in all than one on all cores; on
    a cluster as of a sweep.

    The number of threads is always said: it is a part of the plan, so that a race has the same
    result wherever it goes on.
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
