"""Progress displays on stderr: bars on a terminal, lines elsewhere, nothing if quiet."""

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live as RichLive
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, TaskID


class Drawing:
    """Live display on stderr, refreshed while its ``with`` block runs; :meth:`say` prints above it.

    If stderr is not a terminal, only the lines of :meth:`say` are printed. With ``quiet``, nothing
    is printed.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._drawn: RichProgress | RichLive | None = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._drawn = self.made(Console(file=sys.stderr))

    def made(self, console: "Console") -> "RichProgress | RichLive":
        """Return the rich display without starting it. Subclasses implement this."""
        raise NotImplementedError

    def say(self, line: str) -> None:
        """Print a permanent line above the display, unless ``quiet`` is set."""
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
    """Live display of named progress lines.

    Subclasses define ``__call__``, which receives progress updates. They may override
    :meth:`columns`.
    """

    def __init__(self, quiet: bool) -> None:
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        super().__init__(quiet)

    def made(self, console: "Console") -> "RichProgress":
        """Return the display of progress lines without starting it."""
        from rich.progress import Progress

        self._progress = Progress(*self.columns(), console=console, transient=True)
        return self._progress

    def columns(self) -> "list[ProgressColumn]":
        """Return the columns of a progress line; ``task.fields[text]`` is the text passed to
        :meth:`show`."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        name, text = TextColumn("{task.description}"), TextColumn("{task.fields[text]}")
        return [name, BarColumn(bar_width=16), MofNCompleteColumn(), text]

    def show(self, name: str, done: int, total: int | None, text: str = "") -> None:
        """Update the progress line ``name``, or add it. Does nothing if no progress is
        displayed."""
        if self._progress is None:
            return
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, text=text)
        self._progress.update(self._tasks[name], completed=done, total=total, text=text)


class Bar(Live):
    """Progress bar with rows, bytes, speed and time left. Call it with (name, bytes done, total
    bytes, rows done)."""

    def columns(self) -> "list[ProgressColumn]":
        from rich import progress

        name, bar = progress.TextColumn("{task.description:10}"), progress.BarColumn(bar_width=16)
        text, size = progress.TextColumn("{task.fields[text]}"), progress.DownloadColumn()
        speed, left = progress.TransferSpeedColumn(), progress.TimeRemainingColumn()
        return [name, bar, text, size, speed, left]

    def __call__(self, what: str, done: int, total: int, rows: int) -> None:
        self.show(what, done, total or None, f"{rows:,} rows" if rows else "")


class Count(Live):
    """Progress bar for a count. Call it with (name, done, total)."""

    def __call__(self, what: str, done: int, total: int) -> None:
        self.show(f"{what:10}", done, total)
