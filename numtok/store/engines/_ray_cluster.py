"""The Ray cluster that this process is a driver of: joining it, quietly, and its nodes."""

import logging
import os
import select
import signal
import socket
import struct
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray

from numtok.errors import StoreError, UsageError
from numtok.store.engines.workers import ClusterNode

PATIENCE = 5.0  # seconds for a cluster to answer, and for processes to end
_AGENT_DIED = (
    b"numtok: the Ray agent (raylet) of this machine died. Start it again with ray start, and run "
    b"the same command again: finished work is kept\n"
)


@contextmanager
def connection(address: str | None) -> Iterator[None]:
    """This process is a driver of the cluster; already, where a block around this one or who calls
    numtok as a library made it one. UsageError where no cluster is found, StoreError where it
    cannot be joined."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        _join("auto" if address is None else _listening(address))
        with _agent_watched():
            yield
    finally:
        ray.shutdown()


@contextmanager
def _agent_watched() -> Iterator[None]:
    """If the Ray agent (raylet) of this machine dies, end this process with a line and the exit
    code of a StoreError: Ray would end it with 1 and no line, and answers no call until then."""
    try:
        agent = os.pidfd_open(_agent())
    except (AttributeError, OSError):  # not Linux, or it is gone already
        yield
        return
    stop, stopped = os.pipe()

    def watch() -> None:
        ready, _, _ = select.select([agent, stop], [], [])
        if stop not in ready:
            os.write(2, _AGENT_DIED)
            os._exit(StoreError.exit_code)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        os.close(stopped)
        watcher.join()
        os.close(stop)
        os.close(agent)


def _agent() -> int:
    """The process of this machine's Ray agent."""
    node: Any = ray._private.worker.global_worker.node
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(node.raylet_socket_name)
        found: tuple[int, int, int] = struct.unpack(
            "3i", to.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
    return found[0]


def nodes() -> list[ClusterNode]:
    """Those of the cluster that units can be done on."""
    return [
        ClusterNode(
            node["NodeManagerHostname"],
            int(node["Resources"]["CPU"]),
            int(node["Resources"].get("GPU", 0)),
        )
        for node in alive()
    ]


def alive() -> list[dict[str, Any]]:
    """The same as Ray has them, by its own keys."""
    every: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [one for one in every if one["Alive"] and one["Resources"].get("CPU", 0) >= 1]


def _listening(address: str) -> str:
    """The address, as Ray is to have it; UsageError where nobody answers: Ray itself would try for
    a minute, and print."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--engine ray:{address}: nothing answers there ({error}); `ray start --head` starts a "
            "cluster and says its address"
        ) from None
    # For these Ray would take another address of this machine, at which a head that is for this
    # machine alone does not listen.
    return f"[::ffff:127.0.0.1]:{port}" if host in ("localhost", "127.0.0.1") else address


def _join(address: str) -> None:
    with _signals_kept(), _nothing_printed(), warnings.catch_warnings(action="ignore"):
        try:
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False)
        except ConnectionError as error:
            if address == "auto":
                raise UsageError(
                    "--engine ray: this machine is no node of a running Ray cluster; `ray start "
                    "--head` starts one, `ray start --address HOST:6379` adds a node to it, and "
                    "--engine ray:HOST:PORT names a head"
                ) from None
            raise _no_node(address, error) from None
        except (OSError, RuntimeError, ValueError) as error:
            raise _no_node(address, error) from None


def _no_node(address: str, error: Exception) -> StoreError:
    why = str(error).strip().partition("\n")[0]
    return StoreError(
        f"cannot join the Ray cluster at {address} from this machine: {why}; call numtok on one of "
        "its nodes"
    )


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Below Python Ray prints what does not work at once; what does not in the end is raised."""
    if sys.stderr is None:  # closed
        yield
        return
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray answers signals in its own way; they stay whose they were."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
