"""A rank that comes to an end, in a module of its own: each rank imports it as it starts."""

import os
import signal
import time
from pathlib import Path

import torch

from numtok.errors import DataError
from numtok.training.launch import Tell
from numtok.training.ranks import joined


def ends(tell: Tell, folder: Path, how: str) -> int:
    """The second rank comes to an end; the first waits for it."""
    with joined(torch.device("cpu")) as ranks:
        (folder / f"{ranks.rank}").write_text(str(os.getpid()))
        tell(f"{ranks.count} ranks")
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
