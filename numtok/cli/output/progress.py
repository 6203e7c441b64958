"""What is drawn on stderr while something is done; only on a terminal, and not if quiet."""

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live as RichLive
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, TaskID


class Drawing:
    """Something that is drawn anew on standard error for as long as the block lasts, and lines that
    stay above it; the lines alone where that is no terminal, and nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._drawn: RichProgress | RichLive | None = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._drawn = self.made(Console(file=sys.stderr))

    def made(self, console: "Console") -> "RichProgress | RichLive":
        """What is drawn, before it is started."""
        raise NotImplementedError

    def say(self, line: str) -> None:
        """Print a line that stays."""
        if self._drawn is not None:
            self._drawn.console.print(line, markup=False, highlight=False)
        elif not self._quiet:
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        if self._drawn is not None:
            self._drawn.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._drawn is not None:
            self._drawn.stop()


class Live(Drawing):
    """Lines, each of which has a name.

    Subclasses say what stands in a line and are called with how far things are.
    """

    def __init__(self, quiet: bool) -> None:
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        super().__init__(quiet)

    def made(self, console: "Console") -> "RichProgress":
        """As of :class:`Drawing`."""
        from rich.progress import Progress

        self._progress = Progress(*self.columns(), console=console, transient=True)
        return self._progress

    def columns(self) -> "list[ProgressColumn]":
        """Return the columns of a line; ``task.fields[told]`` is the text given to :meth:`show`."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        name, told = TextColumn("{task.description}"), TextColumn("{task.fields[told]}")
        return [name, BarColumn(bar_width=16), MofNCompleteColumn(), told]

    def show(self, name: str, done: int, total: int | None, told: str = "") -> None:
        """Draw the line of that name; nothing where nothing is shown."""
        if self._progress is None:
            return
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, told=told)
        self._progress.update(self._tasks[name], completed=done, total=total, told=told)


class Bar(Live):
    """Called with (what, bytes done, bytes in all, rows done): rows, bytes, speed, time left."""

    def columns(self) -> "list[ProgressColumn]":
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        return [
            TextColumn("{task.description:9}"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[told]}"),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        ]

    def __call__(self, what: str, done: int, total: int, rows: int) -> None:
        self.show(what, done, total or None, f"{rows:,} rows" if rows else "")


class Count(Live):
    """Called with (what, done, total)."""

    def __call__(self, what: str, done: int, total: int) -> None:
        self.show(f"{what:10}", done, total)
