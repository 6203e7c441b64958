"""A rank that ends early, in its own module because each rank imports it when it starts."""

import os
import signal
import time
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

from numtok.errors import DataError
from numtok.training.launch import Send
from numtok.training.ranks import joined


def ends(send: Send, folder: Path, how: str) -> int:
    """End the second rank as ``how`` says, while the first waits for it."""
    with joined(torch.device("cpu")) as ranks:
        (folder / f"{ranks.rank}").write_text(str(os.getpid()))
        send(f"{ranks.count} ranks")
        ranks.any()
        if ranks.rank == 1:
            if how == "error":
                raise DataError("row 7 is damaged")
            if how == "bug":
                raise ZeroDivisionError("of nothing")
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
        if how == "waits":
            time.sleep(100)
        ranks.any(True)
    return 7


def threads_left(send: Send) -> list[str]:
    """Return the names of the threads of a rank that has trained and left the group."""
    with joined(torch.device("cpu")):
        _learns()
    return [one.read_text().strip() for one in Path("/proc/self/task").glob("*/comm")]


def _learns() -> None:
    copies = DistributedDataParallel(torch.nn.Linear(2, 2))
    copies(torch.ones(3, 2)).sum().backward()
    vars(copies)["itself"] = copies  # a cycle, freed only by the next garbage collection
