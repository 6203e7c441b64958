"""Objects of stores and of the web as inputs: found by their addresses, read in ranges.

Everything is asked of fsspec on the loop that it has for that, a few ranges at a time, and asked
again where an answer fails or breaks off. What an object was when the work was planned says its
entity tag, asked for after each range: a store may put another object in its place between two.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from numtok.data.fetching import file_systems
from numtok.data.fetching.file_systems import NoRanges, file_system, is_refused, said
from numtok.data.reading.addresses import Address, is_web, kind_of, shown_of
from numtok.data.reading.checksum import Stamp
from numtok.errors import NumtokError, StoreError, UsageError

PIECE = 8 << 20  # bytes that are asked for at a time
_SURVEYED, _ENCODED = 8, 2  # pieces that are under way where nothing, or much, is done with them
#: Whose libraries ask five or six times by themselves; twice bridges some seconds without a server.
_ATTEMPTS = {"s3": 2, "s3a": 2, "gs": 2, "gcs": 2}
#: What stands for the state of an object, the best first.
_TAGS = ("ETag", "etag", "generation", "md5", "Content-MD5", "LastModified", "Last-Modified")
_TIMES = ("last_modified", "updated", "mtime", "created")
_MEANINGLESS = (TypeError, ValueError)  # what libraries make of an address without a bucket

Answer = TypeVar("Answer")


class _Store:
    """The file system of an address, asked in coroutines: again, and with errors in one line."""

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

    def begin(self, work: Coroutine[Any, Any, Answer]) -> "Future[Answer]":
        """Start it on fsspec's loop, in a thread of its own."""
        return asyncio.run_coroutine_threadsafe(work, self._system.loop)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for it; an interrupt ends it."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def facts(self) -> Mapping[str, Any]:
        """What the store says of the object now; StoreError where there is none."""
        return await self._tried(self._info)

    async def range(self, begin: int, end: int) -> bytes:
        """The bytes of the object; none where it has become shorter."""

        async def ask() -> bytes:
            try:
                found: bytes = await self._system._cat_file(self.path, start=begin, end=end)
                if len(found) != end - begin:
                    raise OSError(f"{len(found):,} bytes came where {end - begin:,} were asked for")
            except Exception:
                if (await self._info())["size"] < end:
                    return b""
                raise
            return found

        return await self._tried(ask)

    async def below(self, pattern: str | None) -> dict[str, Mapping[str, Any]]:
        """The files below a folder, or those that fit a pattern, by path."""

        async def ask() -> dict[str, Mapping[str, Any]]:
            self._real.invalidate_cache()
            if pattern is None:
                found = await self._system._find(self.path, detail=True)
            else:
                found = await self._system._glob(pattern, detail=True)
            return {path: one for path, one in found.items() if one["type"] == "file"}

        return await self._tried(ask)

    def address(self, path: str, facts: Mapping[str, Any]) -> Address:
        """Of one of the files there."""
        size = facts["size"]
        if size is None or facts.get("partial") is False:
            raise StoreError(
                f"{self.shown}: the server sends no parts of a file, or does not say how long it "
                "is; download it, and give the file"
            )
        url = path if "://" in path else self._real.unstrip_protocol(path)
        return Address(url, size)

    async def _info(self) -> Mapping[str, Any]:
        self._real.invalidate_cache()
        found: Mapping[str, Any] = await self._system._info(self.path)
        return found

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
            return MissingObject(f"{where}: there is no such bucket or object; check the address")
        if _lacks_credentials(error):
            return StoreError(
                f"{where}: there are no credentials for it; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or FSSPEC_S3_ANON=true where everybody may "
                "read"
            )
        why = said(error)
        if isinstance(error, PermissionError) or status in (401, 403):
            return StoreError(f"{where}: {why}; check the credentials, and what they may read")
        if isinstance(error, NoRanges):
            return StoreError(f"{where}: {why}")
        if isinstance(error, _MEANINGLESS):
            return UsageError(f"{where}: {why}; check the address")
        return StoreError(
            f"{where}: {why}; check the network and the address, then run the same command again: "
            "what is finished is kept"
        )


class MissingObject(StoreError):
    """There is no such object."""


def _cause(error: Exception) -> BaseException:
    """HTTPFileSystem says of whatever went wrong that there is no such file."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and type(cause).__module__.startswith("aiohttp"):
        assert cause is not None
        return cause
    return error


def _lacks_credentials(error: BaseException) -> bool:
    return type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError")


def _is_final(error: BaseException) -> bool:
    """Whether asking again changes nothing."""
    kinds = (FileNotFoundError, IsADirectoryError, PermissionError, NoRanges, *_MEANINGLESS)
    return isinstance(error, kinds) or is_refused(error) or _lacks_credentials(error)


def find_objects(url: str) -> tuple[list[Address], str]:
    """The objects that an address stands for, in order, and the folder that they lie in where it
    is one: an object, a folder of them, or a pattern with ``*``.

    Raises UsageError for what is none of these, StoreError where it cannot be read.
    """
    store = _Store(url)
    try:
        return _found(store, url)
    except MissingObject as error:
        raise UsageError(str(error)) from None


def _found(store: _Store, url: str) -> tuple[list[Address], str]:
    folder = ""
    if _is_pattern(store.path, url):
        found = store.do(store.below(store.path))
        if not found:
            raise UsageError(f"{store.shown}: no object has a name of this pattern; check it")
    else:
        facts = store.do(store.facts())
        if facts["type"] == "file":
            return [store.address(url, facts)], ""
        found = store.do(store.below(None))
        folder = store.address(store.path, {"size": 0}).url.rstrip("/") + "/"
    # As the paths of files are sorted, folder by folder.
    paths = sorted(found, key=lambda path: path.split("/"))
    return [store.address(path, found[path]) for path in paths], folder


def _is_pattern(path: str, url: str) -> bool:
    return "*" in path or (not is_web(url) and any(sign in path for sign in "?["))


class OpenObject:
    """One object, open to be read; what of it will be read in order is asked for ahead."""

    def __init__(self, address: Address, ahead: tuple[int, int] | None) -> None:
        self._store = _Store(address.url)
        self._latest = self._store.do(self._stamp())
        self._begin, self._end = ahead or (0, 0)
        self._end = self._latest.size if self._end < 0 else min(self._end, self._latest.size)
        self._at_once = _SURVEYED if ahead and ahead[1] < 0 else _ENCODED
        self._asked: deque[Future[tuple[bytes, Stamp]]] = deque()
        self._next = self._begin  # of the piece that is asked for next
        self._piece, self._place = b"", self._begin  # the one that is being read, and its place

    async def _stamp(self) -> Stamp:
        facts = await self._store.facts()
        tag = next((str(facts[name]) for name in (*_TAGS, *_TIMES) if facts.get(name)), "")
        return Stamp(int(facts["size"] or 0), tag)

    async def _range(self, begin: int, end: int) -> tuple[bytes, Stamp]:
        return await self._store.range(begin, end), await self._stamp()

    def pieces(self) -> Iterator[bytes]:
        """As of :class:`opened.OpenInput`."""
        place = 0
        while piece := self.read_at(PIECE, place):
            yield piece
            place += len(piece)

    def read_at(self, size: int, place: int) -> bytes:
        """As of :class:`opened.OpenInput`."""
        if not self._begin <= place < self._end:
            end = min(place + size, self._latest.size)
            if place >= end:
                return b""
            data, self._latest = self._store.do(self._range(place, end))
            return data
        if not self._place <= place < self._place + len(self._piece):
            self._go_to(place)
        begin = place - self._place
        return self._piece[begin : begin + size]

    def _go_to(self, place: int) -> None:
        """Have the piece that begins there."""
        if place != self._place + len(self._piece):
            self._forget()
            self._next = place
        while len(self._asked) < self._at_once and self._next < self._end:
            end = min(self._next + PIECE, self._end)
            self._asked.append(self._store.begin(self._range(self._next, end)))
            self._next = end
        self._piece, self._latest = self._asked[0].result()
        self._asked.popleft()
        self._place = place

    def stamp(self) -> Stamp:
        """Of the object as it was after what was read last."""
        return self._latest

    def close(self) -> None:
        """As of :class:`opened.OpenInput`."""
        self._forget()

    def _forget(self) -> None:
        while self._asked:
            self._asked.popleft().cancel()
