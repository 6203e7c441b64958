"""How the runs of a sweep or race are executed in parallel, on this machine or on a cluster."""

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

_FINALISTS = 2  # fewest candidates in the last round of a race


class Parallelism(NamedTuple):
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


def sweep_parallelism(sweep: Sweep, requested: int | None) -> Parallelism:
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
    return Parallelism(jobs, None if jobs == 1 else max(1, most // jobs), note, slots)


def cluster_parallelism(
    sweep: Sweep, requested: int | None, engine: str, nodes: Sequence[ClusterNode]
) -> Parallelism:
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


def race_parallelism(config: RaceConfig, nodes: Sequence[ClusterNode]) -> Parallelism:
    """Return the number of parallel runs of a race, and their threads and GPUs.

    ``--jobs`` sets the number of parallel runs. The default is one per GPU or, without GPUs, one
    per core, but at most twice the number of seeds. On a cluster, the defaults are the same as in
    :func:`cluster_parallelism`, except that they are not limited by the number of runs.

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
    return Parallelism(jobs, each, gpus=slots)


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
) -> Parallelism:
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
    return Parallelism(jobs, each, engine=engine, gpu=gpu)
