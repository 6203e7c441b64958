"""Engine that runs independent units of work on the nodes of a Ray cluster.

Each unit is run as a Ray task. If its process or its node dies, Ray runs the task again elsewhere,
from the start. This process is the driver of a Ray job. When the driver ends for any reason, Ray
ends all processes of the job; the cluster keeps running.

The files that units read and write must be available at the same paths on all nodes. To verify
this, a token is written to a folder in the store, and every process reads it before its first unit.
Processes also change to the working directory of this process, because paths may be relative.
"""

import os
import pickle
import secrets
import socket
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from numtok import files
from numtok.errors import NumtokError, StoreError, UsageError
from numtok.names import counted
from numtok.plugins import add_plugin_folders, plugin_folders
from numtok.registry import import_plugins_from_everywhere
from numtok.store.engines._ray_cluster import PATIENCE, alive, connection, nodes
from numtok.store.engines.workers import (
    AGAIN,
    ClusterNode,
    Result,
    Unit,
    completed,
    ordered,
    worked,
)
from numtok.store.provenance import libraries
from numtok.version import __version__

RETRIES = 3  # per unit whose process died
_TOKEN = "token"  # name of a file
_ENVIRONMENT = ("NUMTOK_", "GOMP_", "AWS_", "GOOGLE_")  # prefixes of variables that units may read

_prepared = ""  # in a worker: the token of the context it has entered
_work: tuple[str, Callable[[Any], Any] | None] = "", None  # in a worker: name and unpickled work


class RayTasks:
    """Engine that runs units of work in up to ``count`` Ray tasks, for the duration of a ``with``
    block.

    address
        Address of the head node; None for the cluster that contains this machine.
    count
        Maximum number of tasks. If None, the cluster's capacity at the start determines it.
    spool
        Function that opens a temporary folder in the store.
    cpus, gpu
        Number of CPUs per task, and whether each task gets one GPU, which is device 0 within the
        task.
    """

    def __init__(
        self,
        address: str | None,
        count: int | None,
        spool: Callable[[], AbstractContextManager[Path]],
        cpus: int = 1,
        gpu: bool = False,
    ) -> None:
        self._address = address
        self._count = count
        self._spool = spool
        self._cpus = cpus
        self._gpu = gpu
        self._open = ExitStack()
        self._place: _Place | None = None
        self._under_way: dict[Future[Any], Any] = {}  # futures, and Ray's names of their results

    @property
    def count(self) -> int:
        """Maximum number of units that run at the same time."""
        if self._count is None:
            self._connect()
            self._count = max(1, sum(self._room(node) for node in nodes()))
        return self._count

    def start(self, soon: type, units: int) -> None:
        """Check that all nodes can access the store, and start processes that import the modules
        that the class ``soon`` needs."""
        held = self._sent(soon)
        for _ in range(min(self.count, units)):
            self._submitted(self._task(_prepare), held)

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in order of completion.

        The first exception in a unit is raised, and the remaining units are canceled. Raises
        StoreError if a process died in every attempt, or if a node cannot access the store.
        """
        if not units:
            return
        submit = self._submitting(work)
        for future in completed(submit, units, self.count):
            yield _result(future)

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Yield results as :meth:`run` does, but in the order of ``units``. ``units`` is consumed
        lazily, only a few units ahead of the results."""
        waiting = iter(units)
        if not (begun := list(islice(waiting, 1))):
            return
        submit = self._submitting(work)
        for future in ordered(submit, chain(begun, waiting), self.count):
            yield _result(future)

    def _submitting(self, work: Callable[[Any], Any]) -> Callable[[Any], Future[Any]]:
        return partial(self._submitted, self._task(_do), self._sent(work))

    def _task(self, function: Callable[..., Any]) -> Any:
        return _task(
            function,
            num_cpus=self._cpus,
            num_gpus=int(self._gpu),
            max_retries=RETRIES,
            scheduling_strategy="SPREAD",
        )

    def _connect(self) -> "_Place":
        """Join the cluster, and check that each node sees the same files as this process."""
        if self._place is None:
            # If this fails, __exit__ cancels the checks before it ends the connection. Without one,
            # Ray would connect again to cancel them.
            self._open.enter_context(connection(self._address))
            self._check_room()
            place = _Place.of(self._open.enter_context(self._spool()))
            files.write_atomic(place.token_file, place.token.encode())
            self._check_nodes(_Held.of(place, _nothing))
            self._place = place
        return self._place

    def _room(self, node: ClusterNode) -> int:
        """Return the number of tasks that fit on a node."""
        cpus = node.cpus // self._cpus
        return min(cpus, node.gpus) if self._gpu else cpus

    def _check_room(self) -> None:
        if not any(map(self._room, nodes())):
            needed = f"{counted(self._cpus, 'CPU')}{' and a GPU' * self._gpu}"
            cpus = ", ".join(f"{node.name} {node.cpus}" for node in nodes())
            raise UsageError(
                f"no node of the Ray cluster has {needed}, which each unit needs (CPUs: {cpus}). "
                "Reduce NUMTOK_THREADS, or start larger nodes"
            )

    def _check_nodes(self, held: "_Held") -> None:
        """Check the store and the versions on each node; ignore nodes that die meanwhile."""
        checks = []
        for node in alive():
            on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = _task(_prepare, num_cpus=0, max_retries=0, scheduling_strategy=on_node)
            checks.append(self._submitted(task, held))
        for check in checks:
            with suppress(_Died):
                _result(check)

    def _sent(self, work: Callable[[Any], Any]) -> "_Held":
        return _Held.of(self._connect(), work)

    def _submitted(self, task: Any, *arguments: Any) -> Future[Any]:
        name = task.remote(*arguments)
        future: Future[Any] = name.future()
        self._under_way[future] = name
        future.add_done_callback(self._under_way.pop)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all running units."""
        under_way = dict(self._under_way)
        for name in under_way.values():
            ray.cancel(name, force=True)
        # A disconnected node would not answer.
        wait(under_way, PATIENCE)
        self._place = None
        self._open.close()


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Context of this process, which the processes that run its units must share.

    versions
        Versions of numtok, Python and libraries.
    """

    token_file: Path
    token: str
    folder: Path
    environment: Mapping[str, str]
    plugins: tuple[Path, ...]
    versions: Mapping[str, str]

    @classmethod
    def of(cls, spool: Path) -> Self:
        return cls(
            token_file=spool / _TOKEN,
            token=secrets.token_hex(16),
            folder=Path.cwd(),
            environment=_environment(),
            plugins=plugin_folders(),
            versions=_versions(),
        )

    def enter(self) -> None:
        """Enter the context. Raises StoreError if the store is not visible, and UsageError if
        versions differ."""
        for name, here in _versions().items():
            if here != (wanted := self.versions.get(name, "none")):
                raise UsageError(
                    f"node {_this_node()} of the Ray cluster has {name} {here}, but this command "
                    f"has {wanted}. Install the same versions on all nodes"
                )
        for name in _environment():
            del os.environ[name]
        os.environ.update(self.environment)
        try:
            os.chdir(self.folder)
            token = files.read_bytes(self.token_file, len(self.token)).decode()
        except (OSError, StoreError) as error:
            raise self._elsewhere(str(error)) from None
        if token != self.token:
            raise self._elsewhere(f"{self.token_file} is a different file")
        add_plugin_folders(self.plugins)
        import_plugins_from_everywhere()

    def _elsewhere(self, why: str) -> StoreError:
        store = self.folder / self.token_file.parents[1]
        return StoreError(
            f"node {_this_node()} of the Ray cluster does not see the store {store} ({why}). Use "
            "--store with a folder on a file system that all nodes mount at the same path, and run "
            "numtok in such a folder"
        )


class _Held(NamedTuple):
    """Arguments of a task in addition to its unit. Ray sends the large part to each node once.

    place, work
        Names by which a process recognizes what it already has.
    content
        Ray's reference to a :class:`_Place` and the pickled work. It is in a list, because Ray
        would otherwise resolve it for each task.
    """

    place: str
    work: str
    content: list[Any]

    @classmethod
    def of(cls, place: _Place, work: Callable[[Any], Any]) -> Self:
        content = ray.put((place, pickle.dumps(work)))
        return cls(place.token, secrets.token_hex(8), [content])


class _Died(StoreError):
    """Raised if a process died in every attempt."""


def _task(function: Callable[..., Any], **options: Any) -> Any:
    return ray.remote(function).options(**options)


def _result(future: Future[Any]) -> Any:
    """Return the result of a task, or raise its error."""
    try:
        result, error = future.result()
    except RayTaskError as failure:
        if "ModuleNotFoundError" not in str(failure):
            raise
        raise UsageError(
            "a node of the Ray cluster cannot run numtok: "
            f"{str(failure).strip().splitlines()[-1]}. Install the same numtok on all nodes"
        ) from None
    except RayError as failure:
        why = type(failure).__name__
        raise _Died(
            f"a worker process died {RETRIES + 1} times (killed, out of memory, or with its node: "
            f"{why}). {AGAIN}"
        ) from None
    if error is not None:
        raise error
    return result


# --- in a worker -------------------------------------------------------------------------------


def _do(held: _Held, unit: Any) -> tuple[Any, Exception | None]:
    """Run a unit; return its result or its error, because Ray would wrap raised errors."""
    try:
        return worked(_entered(held), unit), None
    except Exception as error:
        return None, _with_traceback(error)


def _prepare(held: _Held) -> tuple[None, Exception | None]:
    """Prepare for the work; return the error if that fails."""
    try:
        _entered(held)
    except Exception as error:
        return None, _with_traceback(error)
    return None, None


def _entered(held: _Held) -> Callable[[Any], Any]:
    """Enter the context and return the work, which is kept together with everything it has read."""
    global _prepared, _work
    if held.work != _work[0]:
        place, pickled = ray.get(held.content[0])
        if held.place != _prepared:
            place.enter()
            _prepared = held.place
        _work = held.work, worked(pickle.loads, pickled)
    assert _work[1] is not None
    return _work[1]


def _with_traceback(error: Exception) -> Exception:
    """Add the traceback of a bug as a note, because it is not sent between processes."""
    if not isinstance(error, NumtokError):
        error.add_note("".join(traceback.format_exception(error)))
    return error


def _nothing(unit: object) -> None:
    """Do nothing: the work of a check."""


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key.startswith(_ENVIRONMENT)}


def _versions() -> dict[str, str]:
    return {"numtok": __version__, **libraries()}


def _this_node() -> str:
    return socket.gethostname()
