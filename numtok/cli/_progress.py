"""A progress bar on stderr: rows, bytes of input, speed, time left. Only on a terminal."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Bar:
    """Called with (what, bytes done, bytes in all, rows done); shows nothing if quiet or not on a
    terminal."""

    def __init__(self, quiet: bool) -> None:
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._progress = Progress(
                TextColumn("{task.description:9}"),
                BarColumn(bar_width=16),
                TextColumn("{task.fields[rows]}"),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )

    def __call__(self, what: str, done: int, total: int, rows: int) -> None:
        if self._progress is None:
            return
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total or None, rows="")
        told = f"{rows:,} rows" if rows else ""
        self._progress.update(self._tasks[what], completed=done, total=total or None, rows=told)

    def __enter__(self) -> "Bar":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


class Count:
    """Called with (what, done, in all): a bar for each thing that is counted."""

    def __init__(self, quiet: bool) -> None:
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._progress = Progress(
                TextColumn("{task.description:10}"),
                BarColumn(bar_width=16),
                MofNCompleteColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._progress is None:
            return
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)

    def __enter__(self) -> "Count":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
