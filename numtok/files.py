"""Every file operation that numtok makes on its store and its inputs.

The operations are the methods of one small object, ``system``. Callers look it
up at call time (``files.system.rename(...)``), so a test can put an object in
its place that counts the operations, makes the n-th one fail, or kills the
process there. Nothing here retries and nothing here hides an error: an
operation does what the kernel says or raises ``OSError``, and ``reporting``
turns that into the one line a user reads.

Below the seam stand the few built-ups that all stages share: ``Sink`` (a file
that is complete or absent), ``write_atomic``, ``read_bytes``, ``sha256_file``.
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

from filelock import lock_descriptor

from numtok.errors import StoreError, UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PIECE = 1 << 20  # bytes in one read


@final
class FileSystem:
    """The operations themselves; file descriptors are plain integers.

    Each method is one system call and raises ``OSError`` as that call does.
    ``read``, ``read_at`` and ``write`` may do less than was asked.
    """

    def open_read(self, path: Path) -> int:
        """A regular file; StoreError for anything else, also behind a link: opening a pipe would
        wait for who writes into it, and a device may have no end."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # of a socket
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
        """A file of our own, or a folder."""
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def open_stream(self, path: Path) -> int:
        """A pipe that was named on purpose: waits for who writes into it."""
        return os.open(path, os.O_RDONLY)

    def open_write(self, path: Path) -> int:
        """Create the file, or empty the one that is there; never through a symbolic link."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        return os.open(path, flags | os.O_NONBLOCK, 0o666)  # fails on a pipe, and does not wait

    def open_lock(self, path: Path) -> int:
        """Open for reading and writing, made where it is absent; never through a symbolic link."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)

    read = staticmethod(os.read)
    read_at = staticmethod(os.pread)
    write = staticmethod(os.write)
    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.lstat)  # of the name itself: a symbolic link is not followed
    mkdir = staticmethod(os.mkdir)
    rename = staticmethod(os.rename)  # replaces a file; fails on a folder that is not empty
    unlink = staticmethod(os.unlink)
    rmdir = staticmethod(os.rmdir)

    def fsync(self, fd: int) -> None:
        """Wait until what was written to it is on the disk."""
        os.fsync(fd)  # looked up at each call: tests do without, since no power is cut

    def lock(self, fd: int, wait: bool) -> bool:
        """Take the exclusive lock of an open file; False if another holds it.

        The kernel drops the lock when the descriptor is closed, so also when
        the process dies, whatever it dies of.
        """
        return lock_descriptor(fd, blocking=wait)

    def scandir(self, path: Path) -> list[os.DirEntry[str]]:
        """What is in the folder, sorted by name."""
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def room(self, folder: Path) -> tuple[int, int]:
        """Bytes that may still be written on the disk below a folder, and those of the disk."""
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


system = FileSystem()


_AGAIN = "then run the same command again: what is finished is kept"
_ELSEWHERE = "a store elsewhere is named with --store"
_ADVICE = {
    errno.ENOSPC: f"free some space, {_AGAIN}",
    errno.EDQUOT: f"free some space, {_AGAIN}",
    errno.EACCES: f"check its permissions; {_ELSEWHERE}",
    errno.EPERM: f"check its permissions; {_ELSEWHERE}",
    errno.EROFS: _ELSEWHERE,
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.ENOSYS: f"the file system may lack file locks; {_ELSEWHERE}",
    errno.ENOLCK: f"the file system may lack file locks; {_ELSEWHERE}",
    errno.EOPNOTSUPP: f"the file system may lack file locks; {_ELSEWHERE}",
}


@contextmanager
def reporting(what: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` inside the block into a ``StoreError`` of one line.

    ``path`` is named where the error does not carry a path of its own (the
    operations on descriptors do not).

    >>> with reporting("read", Path("x")): system.read(-1, 10)
    Traceback (most recent call last):
    numtok.errors.StoreError: cannot read x: Bad file descriptor; check the disk, then run the \
same command again: what is finished is kept
    """
    try:
        yield
    except OSError as error:
        name = path if error.filename is None else error.filename
        why = error.strerror or str(error)
        advice = _ADVICE.get(error.errno or 0, f"check the disk, {_AGAIN}")
        if what == "read":
            advice = advice.removesuffix(f"; {_ELSEWHERE}")
        raise StoreError(f"cannot {what} {name}: {why}; {advice}") from error


def not_regular(path: Path, mode: int) -> StoreError:
    """The error for what has the name of a file and is none, by ``st_mode``."""
    kinds = {
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFDIR: "a folder",
    }
    what = kinds.get(stat.S_IFMT(mode), "something else")
    return StoreError(f"{path} is {what}; only a regular file can be read here")


def open_regular(path: Path) -> io.BufferedReader:
    """A file to read from, as Python has them; StoreError for what is none or cannot be read."""
    with reporting("read", path):
        return os.fdopen(system.open_read(path), "rb")


@contextmanager
def name_of_open(path: Path) -> Iterator[str]:
    """Another name of a file, while it is open: for libraries that open files by themselves. It was
    looked at when it was open, so nothing else can be put in its place in between.

    Raises StoreError for what is no regular file, OSError for what cannot be opened.
    """
    fd = system.open_read(path)
    try:
        yield f"/dev/fd/{fd}"
    finally:
        system.close(fd)


def check_regular(path: Path) -> None:
    """Raise StoreError for what is no regular file, also behind a link: for libraries that are
    given a whole folder and would wait for a pipe. What is not there is left to them."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise not_regular(path, mode)


def check_tree(folder: Path) -> None:
    """Do the same for everything below a folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path, is_folder in _below(folder):
            if not is_folder:
                check_regular(path)


def write_all(fd: int, data: "ReadableBuffer") -> None:
    """Write every byte, however little the kernel takes at a time."""
    left = memoryview(data).cast("B")
    while left:
        left = left[system.write(fd, left) :]


def fsync_path(path: Path) -> None:
    """Make durable the bytes of a file, or the names in a folder."""
    fd = system.open_to_sync(path)
    try:
        system.fsync(fd)
    except OSError as error:
        # Some network file systems have no such operation on folders and say so.
        if error.errno != errno.EINVAL:
            raise
    finally:
        system.close(fd)


@final
class Sink:
    """A file being written that is complete or absent; pyarrow can write into it.

    The bytes go to a hidden name beside ``path``. Leaving the block without an
    exception makes them durable and gives the file its name; leaving it with
    one removes them. ``bytes`` and ``sha256`` describe what was written so far.

    >>> with Sink(folder / "a.parquet") as sink:
    ...     pyarrow.parquet.write_table(table, sink)
    >>> sink.bytes, sink.sha256
    (1024, '9f86d0...')

    Raises ``StoreError`` where the disk fails.
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
        """Of the bytes so far, in hexadecimal digits."""
        return self._hash.hexdigest()

    @property
    def closed(self) -> bool:
        """Whether no more can be written; pyarrow asks."""
        return self._fd is None

    def write(self, data: "ReadableBuffer") -> int:
        """Append all of it; its length in bytes. StoreError where the disk fails, and at every
        call after that; ValueError once the file is closed."""
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
        """Nothing is held back; file-like objects have this method."""

    def tell(self) -> int:
        """How many bytes were written so far."""
        return self.bytes

    def close(self) -> None:
        """Make the bytes durable and give them their name; a second call does nothing."""
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
            # Not what has the name: it is whole, or else the file that was there before.
            self._drop_scratch()
            raise

    def _raise_failure(self) -> None:
        """A writer may go on after a failed write (pyarrow's writes its footer): fail again."""
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        """Leave no file but one that was there before. What the disk refuses to remove stays hidden
        and is never listed."""
        self._drop_scratch()
        # A writer inside the block (pyarrow's, on its way out of an exception) may have closed us.
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
    """Write a small file so that its name never stands for half of it, even after a power cut."""
    with Sink(path) as sink:
        sink.write(data)
    with reporting("write", path):
        fsync_path(path.parent)


def read_bytes(path: Path, limit: int) -> bytes:
    """A whole small file; one over ``limit`` bytes is refused before memory is taken.

    Raises ``StoreError`` for a file that is too large or cannot be read.
    """
    with reporting("read", path):
        fd = system.open_read(path)
        try:
            size = system.fstat(fd).st_size
            if size > limit:
                raise StoreError(f"{path} has {size} bytes; at most {limit} are read")
            pieces = []
            # One byte more than the limit, so that a file that grows meanwhile is noticed.
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
    """The sha256 of a file's bytes in hexadecimal, and how many bytes there were.

    Raises ``StoreError`` for a file that cannot be read.
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
    """Raise UsageError if ``option`` gives a path that no file can be written to: before work that
    would be lost."""
    if not path.name or path.is_dir():
        raise UsageError(f"{option} must be a file ({path} is a folder). Name a file in it")
    if not is_folder(path.parent):
        raise UsageError(f"{option} {path}: {path.parent} is not a folder. Make it first")


def is_folder(path: Path) -> bool:
    """False for what is not there and for a symbolic link; OSError as ``stat`` raises it."""
    try:
        return stat.S_ISDIR(system.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def tree_size(folder: Path) -> int:
    """The bytes below a folder, following no link."""
    return sum(system.stat(path).st_size for path, is_folder in _below(folder) if not is_folder)


def remove_tree(folder: Path) -> int:
    """Remove a folder and what is below it, following no link; return the bytes that were in it."""
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
    """Yield what is below a folder, following no link, and whether it is a folder: a folder comes
    after its content."""
    for entry in system.scandir(folder):
        path, is_folder = folder / entry.name, entry.is_dir(follow_symlinks=False)
        if is_folder:
            yield from _below(path)
        yield path, is_folder
