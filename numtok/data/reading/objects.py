"""Input objects in stores and on the web, listed by address and read in byte ranges.

Requests run on fsspec's event loop, several at a time. They are retried if they fail or if the
connection breaks. The entity tag (ETag) of the object is requested after each range, to detect
objects that were replaced after the work was planned.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from numtok.data.fetching import file_systems
from numtok.data.fetching.file_systems import NoRanges, described, file_system, is_refused
from numtok.data.reading.addresses import Address, is_web, kind_of, shown_of
from numtok.data.reading.checksum import Stamp
from numtok.errors import NumtokError, StoreError, UsageError

PIECE = 8 << 20  # bytes per request
_SURVEYED, _ENCODED = 8, 2  # concurrent requests: while hashing, and while encoding
#: Stores whose libraries retry five or six times themselves. Two attempts bridge some seconds
#: without a server.
_ATTEMPTS = {"s3": 2, "s3a": 2, "gs": 2, "gcs": 2}
#: Facts that identify the state of an object, best first.
_TAGS = ("ETag", "etag", "generation", "md5", "Content-MD5", "LastModified", "Last-Modified")
_TIMES = ("last_modified", "updated", "mtime", "created")
_MEANINGLESS = (TypeError, ValueError)  # raised by libraries for an address without a bucket

Answer = TypeVar("Answer")


class _Store:
    """The file system of an address: retries requests and reports errors in one line."""

    def __init__(self, url: str) -> None:
        self.shown = shown_of(url)
        most = file_systems.ATTEMPTS
        self._attempts = min(most, _ATTEMPTS.get(kind_of(url), most))
        system, self.path = file_system(url)
        self._real = system
        if not system.async_impl:
            from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

            system = AsyncFileSystemWrapper(system, asynchronous=False)
        self._system = system

    def begin(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        """Start a coroutine on fsspec's event loop, which runs in a separate thread."""
        return asyncio.run_coroutine_threadsafe(work, self._system.loop)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a coroutine and wait for it; an interrupt cancels it."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def facts(self) -> Mapping[str, Any]:
        """Return the current metadata of the object. Raises StoreError if it does not exist."""
        return await self._tried(self._info)

    async def range(self, begin: int, end: int) -> bytes:
        """Return the bytes in a range; empty if the object has become shorter."""

        async def ask() -> bytes:
            try:
                data: bytes = await self._system._cat_file(self.path, start=begin, end=end)
                if len(data) != end - begin:
                    raise OSError(f"received {len(data):,} bytes instead of {end - begin:,}")
            except Exception:
                if (await self._info())["size"] < end:
                    return b""
                raise
            return data

        return await self._tried(ask)

    async def below(self, pattern: str | None) -> dict[str, Mapping[str, Any]]:
        """Return the metadata of each file below a folder or matching a pattern, keyed by path."""

        async def ask() -> dict[str, Mapping[str, Any]]:
            self._real.invalidate_cache()
            if pattern is None:
                entries = await self._system._find(self.path, detail=True)
            else:
                entries = await self._system._glob(pattern, detail=True)
            return {path: facts for path, facts in entries.items() if facts["type"] == "file"}

        return await self._tried(ask)

    def address(self, path: str, facts: Mapping[str, Any]) -> Address:
        """Return the address of a file of the store. Raises StoreError if it cannot be read."""
        size = facts["size"]
        if size is None or facts.get("partial") is False:
            raise StoreError(
                f"{self.shown}: the server does not support range requests or does not report the "
                "size. Download the file and pass its path"
            )
        url = path if "://" in path else self._real.unstrip_protocol(path)
        return Address(url, size)

    async def _info(self) -> Mapping[str, Any]:
        self._real.invalidate_cache()
        facts: Mapping[str, Any] = await self._system._info(self.path)
        return facts

    async def _tried(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        for pause in file_systems.pauses(self._attempts):
            await asyncio.sleep(pause)
            try:
                return await ask()
            except Exception as error:  # of aiohttp, botocore, gcsfs or the system
                failure = _cause(error)
                if _is_final(failure):
                    break
        raise self._unreadable(failure) from failure

    def _unreadable(self, error: BaseException) -> NumtokError:
        where = f"cannot read {self.shown}"
        status = getattr(error, "status", None)  # of aiohttp
        if isinstance(error, FileNotFoundError) or status in (404, 410):
            return MissingObject(f"{where}: no such bucket or object. Check the address")
        if _lacks_credentials(error):
            return StoreError(
                f"{where}: no credentials found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE, or FSSPEC_S3_ANON=true for public buckets"
            )
        why = described(error)
        if isinstance(error, PermissionError) or status in (401, 403):
            return StoreError(f"{where}: {why}. Check the credentials and their permissions")
        if isinstance(error, NoRanges):
            return StoreError(f"{where}: {why}")
        if isinstance(error, _MEANINGLESS):
            return UsageError(f"{where}: {why}. Check the address")
        return StoreError(
            f"{where}: {why}. Check the network and the address, then run the same command again "
            "to resume"
        )


class MissingObject(StoreError):
    """Raised if the requested object or its bucket does not exist."""


def _cause(error: Exception) -> BaseException:
    """Return the real cause of an error. HTTPFileSystem reports all errors as FileNotFoundError."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and type(cause).__module__.startswith("aiohttp"):
        assert cause is not None
        return cause
    return error


def _lacks_credentials(error: BaseException) -> bool:
    return type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError")


def _is_final(error: BaseException) -> bool:
    """Return whether retrying is pointless."""
    kinds = (FileNotFoundError, IsADirectoryError, PermissionError, NoRanges, *_MEANINGLESS)
    return isinstance(error, kinds) or is_refused(error) or _lacks_credentials(error)


def find_objects(url: str) -> tuple[list[Address], str]:
    """List the objects at an address: a single object, a folder, or a pattern with ``*``.

    Returns the sorted addresses, and the address of the folder if ``url`` is a folder (otherwise
    ""). Raises UsageError if nothing is found, and StoreError if the store cannot be read.
    """
    store = _Store(url)
    try:
        return _found(store, url)
    except MissingObject as error:
        raise UsageError(str(error)) from None


def _found(store: _Store, url: str) -> tuple[list[Address], str]:
    folder = ""
    if _is_pattern(store.path, url):
        entries = store.do(store.below(store.path))
        if not entries:
            raise UsageError(f"{store.shown}: no object matches this pattern. Check the address")
    else:
        facts = store.do(store.facts())
        if facts["type"] == "file":
            return [store.address(url, facts)], ""
        entries = store.do(store.below(None))
        folder = store.address(store.path, {"size": 0}).url.rstrip("/") + "/"
    # In the order of local files: folder by folder.
    paths = sorted(entries, key=lambda path: path.split("/"))
    return [store.address(path, entries[path]) for path in paths], folder


def _is_pattern(path: str, url: str) -> bool:
    return "*" in path or (not is_web(url) and any(sign in path for sign in "?["))


class OpenObject:
    """Implementation of :class:`file_part.OpenInput` for remote objects.

    The byte range ``ahead`` is prefetched, assuming that its bytes are read in order.
    """

    def __init__(self, address: Address, ahead: tuple[int, int] | None) -> None:
        self._store = _Store(address.url)
        self._latest = self._store.do(self._stamp())
        self._begin, self._end = ahead or (0, 0)
        self._end = self._latest.size if self._end < 0 else min(self._end, self._latest.size)
        self._at_once = _SURVEYED if ahead and ahead[1] < 0 else _ENCODED
        self._asked: deque[Future[tuple[bytes, Stamp]]] = deque()
        self._next = self._begin  # offset of the piece that is requested next
        self._piece, self._place = b"", self._begin  # the current piece and its offset

    async def _stamp(self) -> Stamp:
        facts = await self._store.facts()
        tag = next((str(facts[name]) for name in (*_TAGS, *_TIMES) if facts.get(name)), "")
        return Stamp(int(facts["size"] or 0), tag)

    async def _range(self, begin: int, end: int) -> tuple[bytes, Stamp]:
        return await self._store.range(begin, end), await self._stamp()

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes of the object; see :class:`file_part.OpenInput`."""
        offset = 0
        while piece := self.read_at(PIECE, offset):
            yield piece
            offset += len(piece)

    def read_at(self, size: int, offset: int) -> bytes:
        """Return bytes at an offset; see :class:`file_part.OpenInput`."""
        if not self._begin <= offset < self._end:
            end = min(offset + size, self._latest.size)
            if offset >= end:
                return b""
            data, self._latest = self._store.do(self._range(offset, end))
            return data
        if not self._place <= offset < self._place + len(self._piece):
            self._go_to(offset)
        begin = offset - self._place
        return self._piece[begin : begin + size]

    def _go_to(self, offset: int) -> None:
        """Wait for the piece that begins at ``offset``."""
        if offset != self._place + len(self._piece):
            self._forget()
            self._next = offset
        while len(self._asked) < self._at_once and self._next < self._end:
            end = min(self._next + PIECE, self._end)
            self._asked.append(self._store.begin(self._range(self._next, end)))
            self._next = end
        self._piece, self._latest = self._asked[0].result()
        self._asked.popleft()
        self._place = offset

    def stamp(self) -> Stamp:
        """Return the stamp of the object after the last read."""
        return self._latest

    def close(self) -> None:
        """Cancel pending requests; see :class:`file_part.OpenInput`."""
        self._forget()

    def _forget(self) -> None:
        while self._asked:
            self._asked.popleft().cancel()
