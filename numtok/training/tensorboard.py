"""What is logged as event files of TensorBoard, to watch runs by: ``--log tensorboard:DIR``.

``metrics.jsonl`` stays the record. Figures are written as they come, so a run that goes on where it
was killed hides those of the steps that it learns again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numtok import files
from numtok.errors import needing
from numtok.settings.train import TENSORBOARD
from numtok.store.draft import Draft
from numtok.training.log import Line

Watch = Callable[[Line], None]


def check_tensorboard() -> Any:
    """PyTorch's writer of event files; UsageError where the package is missing."""
    with needing(f"--log {TENSORBOARD}DIR", "tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter


@contextmanager
def event_file(log: str | None, draft: Draft, step: int) -> Iterator[Watch]:
    """What is given each line of a run behind ``step``; its file lies in ``DIR/NAME@VERSION``.

    Nothing is written for None. Raises StoreError where it cannot be.
    """
    if log is None:
        yield lambda line: None
        return
    folder = Path(log.removeprefix(TENSORBOARD)) / draft.ref
    with files.reporting("write", folder):
        writer = check_tensorboard()(str(folder), purge_step=step + 1)

    def watch(line: Line) -> None:
        place = {key: line[key] for key in ("step", "tokens", "split")}
        for name, value in line.items():
            if name not in place and value is not None:
                writer.add_scalar(f"{place['split']}/{name}", value, place["step"])

    try:
        yield watch
    finally:
        writer.close()
