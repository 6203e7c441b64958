"""File operations on the store and on input files.

Each operation is a method of one small object, ``system``. Callers look it up at call time
(``files.system.rename(...)``), so tests can replace it with an object that counts operations, makes
the n-th one fail, or kills the process at that point. Nothing here retries or hides errors: an
operation behaves like its system call and raises ``OSError``, and ``reporting`` turns that into a
one-line error for users.

The operations that all stages share are built on ``system``: ``Sink`` (a file that is complete or
absent), ``write_atomic``, ``read_bytes`` and ``sha256_file``.
"""

import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, final

from numtok.errors import StoreError, UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PIECE = 1 << 20  # bytes per read


@final
class FileSystem:
    """System calls on files. File descriptors are plain integers.

    Each method makes one system call and raises ``OSError`` as that call does. ``read``,
    ``read_at`` and ``write`` may process fewer bytes than requested.
    """

    def open_read(self, path: Path) -> int:
        """Open a regular file for reading and return its descriptor. Symbolic links are followed.

        Raises StoreError if the path is not a regular file: opening a pipe would block until it has
        a writer, and reading a device may never end.
        """
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket
                raise not_regular(path, os.stat(path).st_mode) from None
            raise
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise not_regular(path, mode)
            os.set_blocking(fd, True)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open_to_sync(self, path: Path) -> int:
        """Open a file or folder that numtok wrote, in order to sync it, and return its
        descriptor."""
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def open_stream(self, path: Path) -> int:
        """Open a pipe that the user named explicitly and return its descriptor. This waits for a
        writer."""
        return os.open(path, os.O_RDONLY)

    def open_write(self, path: Path) -> int:
        """Create or truncate a file for writing and return its descriptor. A symbolic link is an
        error."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        return os.open(path, flags | os.O_NONBLOCK, 0o666)  # fails on a pipe instead of waiting

    def open_lock(self, path: Path) -> int:
        """Open a lock file, creating it if needed, and return its descriptor. A symbolic link is an
        error."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)

    read = staticmethod(os.read)
    read_at = staticmethod(os.pread)
    write = staticmethod(os.write)
    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.lstat)  # of the path itself: symbolic links are not followed
    mkdir = staticmethod(os.mkdir)
    rename = staticmethod(os.rename)  # replaces a file; fails on a folder that is not empty
    unlink = staticmethod(os.unlink)
    rmdir = staticmethod(os.rmdir)

    def fsync(self, fd: int) -> None:
        """Wait until the data written to an open file is on the disk."""
        os.fsync(fd)  # looked up at each call, because tests replace it

    def lock(self, fd: int, wait: bool) -> bool:
        """Acquire an exclusive lock on an open file; return False if another process holds it.

        If ``wait`` is true, wait until the lock is free instead. The kernel releases the lock when
        the descriptor is closed, even if the process is killed.
        """
        from filelock import lock_descriptor  # not needed by commands without a store

        return lock_descriptor(fd, blocking=wait)

    def scandir(self, path: Path) -> list[os.DirEntry[str]]:
        """Return the entries in a folder, sorted by name."""
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def room(self, folder: Path) -> tuple[int, int]:
        """Return the free space and the total size, in bytes, of the disk that contains a
        folder."""
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


system = FileSystem()


_AGAIN = "then run the same command again: finished work is kept"
_ELSEWHERE = "or use another store with --store"
_ADVICE = {
    errno.ENOSPC: f"Free some space, {_AGAIN}",
    errno.EDQUOT: f"Free some space, {_AGAIN}",
    errno.EACCES: f"Check its permissions, {_ELSEWHERE}",
    errno.EPERM: f"Check its permissions, {_ELSEWHERE}",
    errno.EROFS: "Use another store with --store",
    errno.ENOENT: "Check the path",
    errno.ENOTDIR: "Check the path",
    errno.ENOSYS: f"The file system may lack file locks: repair it, {_ELSEWHERE}",
    errno.ENOLCK: f"The file system may lack file locks: repair it, {_ELSEWHERE}",
    errno.EOPNOTSUPP: f"The file system may lack file locks: repair it, {_ELSEWHERE}",
}


@contextmanager
def reporting(what: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` raised in the block into a one-line StoreError.

    ``what`` is the operation, such as ``read``. The message names ``path`` if the error has no path
    of its own, as for operations on descriptors.

    >>> with reporting("read", Path("x")): system.read(-1, 10)
    Traceback (most recent call last):
    numtok.errors.StoreError: cannot read x: Bad file descriptor. Check the disk, then run the \
same command again: finished work is kept
    """
    try:
        yield
    except OSError as error:
        name = path if error.filename is None else error.filename
        why = error.strerror or str(error)
        advice = _ADVICE.get(error.errno or 0, f"Check the disk, {_AGAIN}")
        if what == "read":
            advice = advice.removesuffix(f", {_ELSEWHERE}")
        raise StoreError(f"cannot {what} {name}: {why}. {advice}") from error


def not_regular(path: Path, mode: int) -> StoreError:
    """Return the StoreError for a path that is not a regular file. ``mode`` is its ``st_mode``."""
    kinds = {
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFDIR: "a folder",
    }
    what = kinds.get(stat.S_IFMT(mode), "something else")
    return StoreError(f"{path} is {what}; only regular files can be read here")


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading as a Python file object. Raises StoreError if it is not
    regular or cannot be read."""
    with reporting("read", path):
        return os.fdopen(system.open_read(path), "rb")


@contextmanager
def name_of_open(path: Path) -> Iterator[str]:
    """Open a file for the duration of the block and yield another path to it, for libraries that
    open files themselves.

    The file is checked after it is opened, so it cannot be replaced in between. Raises StoreError
    if it is not a regular file, and OSError if it cannot be opened.
    """
    fd = system.open_read(path)
    try:
        yield f"/dev/fd/{fd}"
    finally:
        system.close(fd)


def check_regular(path: Path) -> None:
    """Raise StoreError if a path exists but is not a regular file or a link to one.

    This protects libraries that read a whole folder and would block on a pipe in it.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise not_regular(path, mode)


def check_tree(folder: Path) -> None:
    """Call :func:`check_regular` for every file below a folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path, is_folder in _below(folder):
            if not is_folder:
                check_regular(path)


def write_all(fd: int, data: "ReadableBuffer") -> None:
    """Write all bytes to a descriptor, even if the kernel accepts only a few at a time."""
    left = memoryview(data).cast("B")
    while left:
        left = left[system.write(fd, left) :]


def fsync_path(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    fd = system.open_to_sync(path)
    try:
        system.fsync(fd)
    except OSError as error:
        # Some network file systems do not support this for folders.
        if error.errno != errno.EINVAL:
            raise
    finally:
        system.close(fd)


@final
class Sink:
    """File being written, which appears at ``path`` only once it is complete. pyarrow can write to
    it.

    Bytes go to a hidden file next to ``path``. If the block ends normally, this file is synced and
    renamed to ``path``; if the block raises an exception, the file is removed. ``bytes`` and
    ``sha256`` describe what has been written so far.

    >>> with Sink(folder / "a.parquet") as sink:
    ...     pyarrow.parquet.write_table(table, sink)
    >>> sink.bytes, sink.sha256
    (1024, '9f86d0...')

    Raises StoreError if the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._hash = hashlib.sha256()
        self._failure: StoreError | None = None
        self._named = False
        self._scratch = path.with_name(f".{path.name}.part")
        with reporting("write", path):
            self._fd: int | None = system.open_write(self._scratch)

    @property
    def sha256(self) -> str:
        """SHA-256 digest, in hexadecimal, of the bytes written so far."""
        return self._hash.hexdigest()

    @property
    def closed(self) -> bool:
        """True if the file is closed. pyarrow reads this property."""
        return self._fd is None

    def write(self, data: "ReadableBuffer") -> int:
        """Append all bytes and return their number.

        Raises StoreError if the disk fails, and again on every later call. Raises ValueError if the
        file is closed.
        """
        if self._fd is None:
            raise ValueError(f"write to {self.path}, which is closed")
        self._raise_failure()
        view = memoryview(data).cast("B")
        try:
            with reporting("write", self.path):
                write_all(self._fd, view)
        except StoreError as error:
            self._failure = error
            raise
        self._hash.update(view)
        self.bytes += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Do nothing, because nothing is buffered. File-like objects must have this method."""

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self.bytes

    def close(self) -> None:
        """Sync the file and rename it to ``path``. A second call does nothing."""
        if self._fd is None:
            return
        try:
            self._raise_failure()
            with reporting("write", self.path):
                system.fsync(self._fd)
                # Some file systems report a failed write only here.
                fd, self._fd = self._fd, None
                system.close(fd)
                system.rename(self._scratch, self.path)
                self._named = True
        except BaseException:
            # Keep the file with the final name: it is complete, or an earlier version.
            self._drop_scratch()
            raise

    def _raise_failure(self) -> None:
        """Raise the first error again if a writer continues after a failed write, as pyarrow does
        with its footer."""
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        """Remove what was written. An earlier file at ``path`` is kept unless this one has already
        replaced it.

        A hidden file that cannot be removed is left behind; hidden files are never listed.
        """
        self._drop_scratch()
        # A writer inside the block, such as pyarrow's on an exception, may have closed this file.
        if self._named:
            with suppress(OSError):
                system.unlink(self.path)

    def _drop_scratch(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with suppress(OSError):
                system.close(fd)
        with suppress(OSError):
            system.unlink(self._scratch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def write_atomic(path: Path, data: bytes) -> None:
    """Write a small file atomically: even after a power failure, ``path`` holds the complete new
    content or is unchanged."""
    with Sink(path) as sink:
        sink.write(data)
    with reporting("write", path):
        fsync_path(path.parent)


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a small file.

    Raises StoreError if the file cannot be read or has more than ``limit`` bytes. The size is
    checked before reading.
    """
    with reporting("read", path):
        fd = system.open_read(path)
        try:
            size = system.fstat(fd).st_size
            if size > limit:
                raise StoreError(f"{path} has {size} bytes; the limit is {limit}")
            pieces = []
            # One byte more than the limit, to detect a file that grows meanwhile.
            left = limit + 1
            while left and (piece := system.read(fd, min(left, PIECE))):
                pieces.append(piece)
                left -= len(piece)
        finally:
            system.close(fd)
    if not left:
        raise StoreError(f"{path} grew beyond {limit} bytes while it was read")
    return b"".join(pieces)


def sha256_file(path: Path) -> tuple[str, int]:
    """Return the SHA-256 digest of a file in hexadecimal, and its size in bytes.

    Raises StoreError if the file cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    with reporting("read", path):
        fd = system.open_read(path)
        try:
            while piece := system.read(fd, PIECE):
                digest.update(piece)
                size += len(piece)
        finally:
            system.close(fd)
    return digest.hexdigest(), size


def check_output(option: str, path: Path) -> None:
    """Raise UsageError if ``path`` is a folder, or if its parent folder does not exist.

    Commands call this before they begin work whose output would be lost. ``option`` names the
    option that set the path, for the message.
    """
    if not path.name or path.is_dir():
        raise UsageError(f"{option} must be a file ({path} is a folder). Name a file in it")
    if not is_folder(path.parent):
        raise UsageError(f"{option} {path}: {path.parent} is not a folder. Make it first")


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder and not a symbolic link.

    If the path does not exist, the result is False. Other errors in ``stat`` are raised.
    """
    try:
        return stat.S_ISDIR(system.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def tree_size(folder: Path) -> int:
    """Return the total size in bytes of all files below a folder. Symbolic links are not
    followed."""
    return sum(system.stat(path).st_size for path, is_folder in _below(folder) if not is_folder)


def remove_tree(folder: Path) -> int:
    """Remove a folder with its contents and return the number of bytes removed. Symbolic links are
    not followed."""
    size = 0
    for path, is_folder in _below(folder):
        if is_folder:
            system.rmdir(path)
        else:
            size += system.stat(path).st_size
            system.unlink(path)
    system.rmdir(folder)
    return size


def _below(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each path below a folder and whether it is a folder. Contents come before their folder.

    Symbolic links are not followed.
    """
    for entry in system.scandir(folder):
        path, is_folder = folder / entry.name, entry.is_dir(follow_symlinks=False)
        if is_folder:
            yield from _below(path)
        yield path, is_folder
