"""Connection of this process to a Ray cluster, as a driver and without Ray's output, and the
cluster's nodes."""

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

PATIENCE = 5.0  # timeout in seconds for a cluster to answer, and for processes to end
_AGENT_DIED = (
    b"numtok: the Ray agent (raylet) of this machine died. Start it again with ray start, then run "
    b"the same command again to resume\n"
)


@contextmanager
def connection(address: str | None) -> Iterator[None]:
    """Connect this process to the cluster as a driver, unless it is already connected.

    Raises UsageError if no cluster is found, and StoreError if it cannot be joined.
    """
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
    """End this process with a message and the exit code of a StoreError if the Ray agent (raylet)
    dies.

    Otherwise, calls to Ray would hang, and Ray would finally exit with code 1 and no message.
    """
    try:
        agent = os.pidfd_open(_agent())
    except (AttributeError, OSError):  # not Linux, or the agent has already ended
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
    """Return the process id of this machine's Ray agent."""
    node: Any = ray._private.worker.global_worker.node
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(node.raylet_socket_name)
        credentials: tuple[int, int, int] = struct.unpack(
            "3i",
            connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")),
        )
    return credentials[0]


def nodes() -> list[ClusterNode]:
    """Return the nodes of the cluster that can run units."""
    return [
        ClusterNode(
            node["NodeManagerHostname"],
            int(node["Resources"]["CPU"]),
            int(node["Resources"].get("GPU", 0)),
        )
        for node in alive()
    ]


def alive() -> list[dict[str, Any]]:
    """Return Ray's own records of the nodes that can run units."""
    every: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in every if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]


def _listening(address: str) -> str:
    """Check that something listens at the address, and return the address in the form that Ray
    needs.

    Raises UsageError otherwise. Ray itself would keep trying for a minute and print messages.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--engine ray:{address}: no answer from this address ({error}). Start a cluster and "
            "see its address: ray start --head"
        ) from None
    # Ray would replace these by another address of this machine, at which a local-only head does
    # not listen.
    return f"[::ffff:127.0.0.1]:{port}" if host in ("localhost", "127.0.0.1") else address


def _join(address: str) -> None:
    with _signals_kept(), _nothing_printed(), warnings.catch_warnings(action="ignore"):
        try:
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False)
        except ConnectionError as error:
            if address == "auto":
                raise UsageError(
                    "--engine ray: this machine is not a node of a running Ray cluster. Start one: "
                    "ray start --head; join one: ray start --address HOST:6379; or name a head: "
                    "--engine ray:HOST:PORT"
                ) from None
            raise _no_node(address, error) from None
        except (OSError, RuntimeError, ValueError) as error:
            raise _no_node(address, error) from None


def _no_node(address: str, error: Exception) -> StoreError:
    why = str(error).strip().partition("\n")[0]
    return StoreError(
        f"cannot join the Ray cluster at {address} from this machine: {why}. Run numtok on one of "
        "its nodes"
    )


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Silence stderr in the block. Ray's native code prints temporary failures there; final ones
    are raised."""
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
    """Restore the signal handlers that Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
