"""Run independent units on the nodes of a Ray cluster.

A unit is a task. Where the process that does it dies, alone or with its node, Ray has another one
do it, from the start: what is lost is time. This process is the driver of a job, and Ray ends all
processes of the job when the driver has ended, whatever it ended of; the cluster stays.

What units read and write must be files that all nodes see by the same names. A folder in the store
holds a token, which every process compares before its first unit; it also enters the folder that
this process works in, since paths may be relative.
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
from numtok.plugins import add_plugin_folders, plugin_folders
from numtok.registry import import_plugins_from_everywhere
from numtok.store.engines._ray_cluster import PATIENCE, alive, connection, nodes
from numtok.store.engines._under_way import AGAIN, Result, Unit, completed, ordered, worked
from numtok.store.engines.workers import ClusterNode
from numtok.store.provenance import libraries
from numtok.version import __version__

RETRIES = 3  # of a unit whose process died
_TOKEN = "token"  # a file
_ENVIRONMENT = ("NUMTOK_", "GOMP_", "AWS_", "GOOGLE_")  # what units may read of it begins so

_prepared = ""  # in a worker: for whose units
_work: tuple[str, Callable[[Any], Any] | None] = "", None  # in a worker: its name, and as it is


class RayTasks:
    """Up to ``count`` tasks side by side, for as long as a ``with`` block lasts.

    address
        Where the head of the cluster listens; None: the cluster that this machine is a node of.
    count
        None: as many as the cluster has room for at the start.
    spool
        Opens a folder in the store.
    cpus, gpu
        What each task has of its node: so many CPUs, and perhaps a GPU, which it sees as device 0.
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
        self._asked = count
        self._spool = spool
        self._cpus = cpus
        self._gpu = gpu
        self._open = ExitStack()
        self._place: _Place | None = None
        self._under_way: dict[Future[Any], Any] = {}  # futures, and Ray's names of their results

    @property
    def count(self) -> int:
        """How many units are done side by side, at most."""
        if self._asked is None:
            self._connect()
            self._asked = max(1, sum(self._room(node) for node in nodes()))
        return self._asked

    def start(self, soon: type, units: int) -> None:
        """Look whether all nodes see the store, and have processes import what work of the class
        ``soon`` needs."""
        held = self._sent(soon)
        for _ in range(min(self.count, units)):
            self._submitted(self._task(_look), held)

    def run(self, work: Callable[[Unit], Result], units: Sequence[Unit]) -> Iterator[Result]:
        """Yield ``work(unit)`` for every unit, in the order they are finished.

        The first exception of a unit is raised here and the rest is given up. Raises StoreError
        where a process died as often as it is tried, or a node does not see the store.
        """
        if not units:
            return
        submit = self._submitting(work)
        for future in completed(submit, units, self.count):
            yield _result(future)

    def in_order(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """As :meth:`run`, in the order of the units, of which a few at a time are taken."""
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
        """Join the cluster, and have each node look whether it sees what this process sees."""
        if self._place is None:
            with ExitStack() as opened:
                opened.enter_context(connection(self._address))
                self._check_room()
                place = _Place.of(opened.enter_context(self._spool()))
                files.write_atomic(place.token_file, place.token.encode())
                self._have_nodes_look(_Held.of(place, _nothing))
                self._open, self._place = opened.pop_all(), place
        return self._place

    def _room(self, node: ClusterNode) -> int:
        """How many tasks a node has room for."""
        cpus = node.cpus // self._cpus
        return min(cpus, node.gpus) if self._gpu else cpus

    def _check_room(self) -> None:
        if not any(map(self._room, nodes())):
            needed = f"{self._cpus} CPU{'s' * (self._cpus > 1)}{' and a GPU' * self._gpu}"
            there = ", ".join(f"{node.name} {node.cpus}" for node in nodes())
            raise UsageError(
                f"no node of the Ray cluster has {needed}, which each unit is to have; CPUs are: "
                f"{there}; lower NUMTOK_THREADS, or start nodes that have more"
            )

    def _have_nodes_look(self, held: "_Held") -> None:
        """At the store and what else they need; what a node would say that dies meanwhile is left
        out."""
        looks = []
        for node in alive():
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = _task(_look, num_cpus=0, max_retries=0, scheduling_strategy=there)
            looks.append(self._submitted(task, held))
        for look in looks:
            with suppress(_Died):
                _result(look)

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
        """Whatever is still under way is given up."""
        under_way = dict(self._under_way)
        for name in under_way.values():
            ray.cancel(name, force=True)
        # A node that was cut off would not answer.
        wait(under_way, PATIENCE)
        self._place = None
        self._open.close()


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where this process stands, and so must those that do its units.

    versions
        Of numtok, Python and libraries.
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
        """Stand there; StoreError where this process cannot, UsageError where it should not."""
        for name, here in _versions().items():
            if here != (wanted := self.versions.get(name, "none")):
                raise UsageError(
                    f"node {_this_node()} of the Ray cluster has {name} {here}, and this command "
                    f"{wanted}; install the same versions on all nodes"
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
            raise self._elsewhere(f"{self.token_file} is another there")
        add_plugin_folders(self.plugins)
        import_plugins_from_everywhere()

    def _elsewhere(self, why: str) -> StoreError:
        store = self.folder / self.token_file.parents[1]
        return StoreError(
            f"node {_this_node()} of the Ray cluster does not see the store {store} ({why}); give "
            "--store a folder on a file system that all nodes have, under the same name, and call "
            "numtok in such a folder"
        )


class _Held(NamedTuple):
    """What tasks are given beside a unit. Ray holds the large part, and brings it to a node once.

    place, work
        Names, by which a process knows what it has already.
    content
        Ray's name of a :class:`_Place` and the pickled work, in a list: Ray would look it up for
        each task.
    """

    place: str
    work: str
    content: list[Any]

    @classmethod
    def of(cls, place: _Place, work: Callable[[Any], Any]) -> Self:
        content = ray.put((place, pickle.dumps(work)))
        return cls(place.token, secrets.token_hex(8), [content])


class _Died(StoreError):
    """A process died as often as it is tried."""


def _task(function: Callable[..., Any], **options: Any) -> Any:
    return ray.remote(function).options(**options)


def _result(future: Future[Any]) -> Any:
    """What a task gave back, or what it raised."""
    try:
        result, error = future.result()
    except RayTaskError as failure:
        if "ModuleNotFoundError" not in str(failure):
            raise
        raise UsageError(
            "a node of the Ray cluster cannot run numtok: "
            f"{str(failure).strip().splitlines()[-1]}; install the same numtok on all nodes"
        ) from None
    except RayError as failure:
        why = type(failure).__name__
        raise _Died(
            f"a worker process died {RETRIES + 1} times (killed, out of memory, or with its node: "
            f"{why}); {AGAIN}"
        ) from None
    if error is not None:
        raise error
    return result


# --- in a worker -------------------------------------------------------------------------------


def _do(held: _Held, unit: Any) -> tuple[Any, Exception | None]:
    """What came of a unit, or went wrong. Ray would wrap what is raised here."""
    try:
        return worked(_entered(held), unit), None
    except Exception as error:
        return None, _as_told(error)


def _look(held: _Held) -> tuple[None, Exception | None]:
    """Be ready for a work."""
    try:
        _entered(held)
    except Exception as error:
        return None, _as_told(error)
    return None, None


def _entered(held: _Held) -> Callable[[Any], Any]:
    """The work, in the place that it is for. As long as it is the same, it keeps what it has read,
    such as a codec."""
    global _prepared, _work
    if held.work != _work[0]:
        place, pickled = ray.get(held.content[0])
        if held.place != _prepared:
            place.enter()
            _prepared = held.place
        _work = held.work, worked(pickle.loads, pickled)
    assert _work[1] is not None
    return _work[1]


def _as_told(error: Exception) -> Exception:
    """With its traceback, which does not go from one process to another, where it is a bug."""
    if not isinstance(error, NumtokError):
        error.add_note("".join(traceback.format_exception(error)))
    return error


def _nothing(unit: object) -> None:
    """A work that nobody does."""


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key.startswith(_ENVIRONMENT)}


def _versions() -> dict[str, str]:
    return {"numtok": __version__, **libraries()}


def _this_node() -> str:
    return socket.gethostname()
