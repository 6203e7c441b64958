"""File locks for the store. At most one process holds a lock, and releasing it deletes its file."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from numtok import files


def take_lock(path: Path, make_folder: Callable[[Path], None], wait: bool = False) -> int | None:
    """Acquire a lock and return its file descriptor, or None if another process holds the lock.

    If ``wait`` is true, wait until the lock is free instead. ``make_folder`` creates the lock
    file's folder. The holder deletes the file before releasing the lock. A lock acquired on a
    deleted file is therefore worthless, and this function retries with the new file.
    """
    missing = 0
    while True:
        try:
            make_folder(path.parent)
            fd = files.system.open_lock(path)
        except FileNotFoundError:
            # `numtok gc` removes empty folders and may just have removed this one.
            missing += 1
            if missing == 100:
                raise
            continue
        acquired = False
        try:
            held = files.system.lock(fd, wait)
            named = _is_named(fd, path)
            acquired = held and named
            if acquired:
                return fd
            if named:
                return None
        finally:
            if not acquired:
                files.system.close(fd)


def _is_named(fd: int, path: Path) -> bool:
    """Return whether the path still refers to the open file."""
    opened = files.system.fstat(fd)
    try:
        named = files.system.stat(path)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def release(path: Path, fd: int) -> None:
    """Delete the lock file and release the lock. Errors are ignored."""
    # A lock file that cannot be removed is harmless; `collect` removes it later.
    with suppress(OSError):
        files.system.unlink(path)
    with suppress(OSError):
        files.system.close(fd)
