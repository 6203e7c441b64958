"""Starts, monitors and stops ranks (training processes) on this machine.

The ranks are managed by PyTorch's elastic agent.
"""

import logging
import multiprocessing
import os
import pickle
import secrets
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from numtok.errors import NumtokError, TrainingFailed
from numtok.plugins import add_plugin_folders, fault_of, plugin_folders
from numtok.registry import import_plugins_from_everywhere
from numtok.store.engines.local import end_with_parent
from numtok.store.engines.workers import threads_each

T = TypeVar("T")
Send = Callable[[Any], None]
_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def launch(
    count: int, work: Callable[..., T], arguments: Sequence[Any], listener: Send, folder: Path
) -> T:
    """Run ``work(send, *arguments)`` in ``count`` processes (ranks), and return the result of the
    first rank.

    listener
        Function that receives everything that the first rank passes to ``send``.
    folder
        Empty folder for the logs and errors of the ranks.

    A signal to this process is forwarded to all ranks, which have 30 seconds to stop, and is then
    raised again in this process. TrainingFailed is raised if the signal does not end this process.

    If a rank fails, the others are terminated, and this function raises the rank's own error if
    that is a NumtokError, TrainingFailed if the rank's process died, and RuntimeError with the
    rank's traceback otherwise.
    """
    _be_quiet()
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    with _listening(queue, listener):
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=secrets.token_hex(8),
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",  # any free port
            local_addr="127.0.0.1",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=str(folder)),
        )
        begin = plugin_folders(), folder, count, pickle.dumps(work)
        before = {number: signal.getsignal(number) for number in _HANDLED}
        try:
            return elastic_launch(config, _rank)(*begin, queue, *arguments)[0]  # type: ignore[no-any-return]
        except ChildFailedError as error:
            raise _fault(error, folder) from None
        except SignalException as error:
            received = error.sigval
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    signal.raise_signal(received)
    raise TrainingFailed(f"stopped by signal {received}. To resume, run the same command again")


def _rank(
    plugins: tuple[Path, ...],
    folder: Path,
    count: int,
    work: bytes,
    queue: SimpleQueue[Any],
    *arguments: Any,
) -> Any:
    os.setpgid(0, 0)  # so that a terminal's signals arrive only once, from the agent
    end_with_parent()
    _be_quiet()
    torch.set_num_threads(threads_each(count))
    rank = int(os.environ["RANK"])
    try:
        add_plugin_folders(plugins)
        import_plugins_from_everywhere()
        send = queue.put if rank == 0 else _discard
        return pickle.loads(work)(send, *arguments)
    except Exception as error:  # raised again by the launching process; see _fault
        unforeseen = RuntimeError(f"rank {rank} failed:\n{traceback.format_exc()}")
        cause = error if isinstance(error, NumtokError) else fault_of(error) or unforeseen
        (folder / f"error-{time.time_ns()}").write_bytes(pickle.dumps(cause))
        sys.exit(1)


def _discard(thing: Any) -> None:
    """Ignore anything that is reported by a rank other than the first."""


def _be_quiet() -> None:
    """Silence PyTorch's loggers, because numtok reports failures itself."""
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch."):  # each has its own level
            logging.getLogger(name).setLevel(logging.CRITICAL)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


@contextmanager
def _listening(queue: SimpleQueue[Any], listener: Send) -> Iterator[None]:
    end = secrets.token_hex(8)

    def listen() -> None:
        while (thing := queue.get()) != end:
            listener(thing)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        queue.put(end)
        thread.join()


def _fault(error: ChildFailedError, folder: Path) -> Exception:
    """Return the error to raise when ranks have failed.

    The first NumtokError takes precedence. Otherwise, it is TrainingFailed if a rank was killed by
    a signal other than SIGTERM or if no rank raised an error, and the first error raised if not.
    Ranks that the agent terminates (with SIGTERM), or whose peers have died, fail later than the
    root cause.
    """
    raised = [pickle.loads(path.read_bytes()) for path in sorted(folder.glob("error-*"))]
    for cause in raised:
        if isinstance(cause, NumtokError):
            return cause
    failed = sorted(error.failures.items(), key=lambda item: item[1].timestamp)
    killed = [item for item in failed if item[1].exitcode < 0]
    if raised and all(failure.exitcode == -signal.SIGTERM for _, failure in killed):
        assert isinstance(raised[0], Exception)
        return raised[0]
    rank, failure = (killed or failed)[0]
    how = f"exit code {failure.exitcode}"
    if failure.exitcode < 0:
        how = signal.Signals(-failure.exitcode).name
    return TrainingFailed(
        f"rank {rank} died ({how}). To resume from the last checkpoint, run the same command again"
    )
