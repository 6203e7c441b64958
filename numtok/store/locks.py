"""Locks of the store: a file each, held by at most one process, gone when it is let go."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from numtok import files


def take_lock(path: Path, make_place: Callable[[Path], None], wait: bool = False) -> int | None:
    """The descriptor that holds the lock, or None where another process does.

    The holder removes the file before it lets go, so the lock of a file that
    lost its name guards nothing: then it is taken again on the new file.
    """
    missing = 0
    while True:
        try:
            make_place(path.parent)
            fd = files.system.open_lock(path)
        except FileNotFoundError:
            # A sweep removes empty folders, and may have removed this one just now.
            missing += 1
            if missing == 100:
                raise
            continue
        mine = False
        try:
            held = files.system.lock(fd, wait)
            named = _is_named(fd, path)
            mine = held and named
            if mine:
                return fd
            if named:
                return None
        finally:
            if not mine:
                files.system.close(fd)


def _is_named(fd: int, path: Path) -> bool:
    """Whether the open file is still the one that the path names."""
    opened = files.system.fstat(fd)
    try:
        named = files.system.stat(path)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def release(path: Path, fd: int) -> None:
    """Remove the file and let go of its lock; no error of it is raised."""
    # A lock file that cannot be removed is harmless, and `collect` sweeps it.
    with suppress(OSError):
        files.system.unlink(path)
    with suppress(OSError):
        files.system.close(fd)
