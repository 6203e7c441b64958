"""The objects of a zarr store, brought one at a time: tried again, and known to be whole.

zarr reads an object that is not there as fill values, and Blosc unpacks one that was cut short to
wrong values without a word (seen with numcodecs 0.16). So what is absent is written down here, and
the lengths are looked at.

Imported where zarr is known to be installed.
"""

import asyncio
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import zarr
from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from numtok import files
from numtok.errors import DataError, NumtokError, StoreError, needing

ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt, doubled before each other
PATIENCE = 30.0  # seconds without a byte
_AT_ONCE = 4  # objects that are asked for, and held, at the same time
_BLOSC_HEADER = 16  # bytes, of which the last four are the length of the whole
_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")


class Objects(WrapperStore[Store]):
    """A store to read from, with what must be known of it.

    missing
        Keys that were asked for and are not there.
    packed
        Keys of arrays, with ``/``, whose objects are Blosc buffers; to be filled by who knows.
    """

    def __init__(self, store: Store, place: str, attempts: int) -> None:
        super().__init__(store)
        self.place = place
        self.missing: set[str] = set()
        self.packed: tuple[str, ...] = ()
        self._attempts = attempts

    def _with_store(self, store: Store) -> Self:
        assert store.read_only  # the only other state a copy is asked for is one to write to
        return self

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """One object, or None where it is not there; ``unreadable`` once all attempts failed."""
        failure: Exception | None = None
        for attempt in range(self._attempts):
            if attempt:
                await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                if isinstance(self._store, LocalStore):
                    files.check_regular(self._store.root / key)
                found = await self._store.get(key, prototype, byte_range)
                if found is None:
                    self.missing.add(key)
                else:
                    self._check(key, found, byte_range)
                return found
            except Exception as error:  # of aiohttp, gcsfs, requests or the system
                failure = error
                if _is_final(error):
                    break
        raise unreadable(f"{key} of {self.place}", self.place, failure) from failure

    def _check(self, key: str, found: Buffer, byte_range: ByteRequest | None) -> None:
        """Raise OSError for an object that was cut short."""
        got = len(found)
        if byte_range is None and key.startswith(self.packed) and not is_metadata(key):
            head = found[:_BLOSC_HEADER].to_bytes()
            promised = int.from_bytes(head[12:], "little")
            if got < _BLOSC_HEADER or got < promised:
                raise OSError(f"it has {got:,} bytes where {max(promised, _BLOSC_HEADER):,} belong")
        if isinstance(byte_range, RangeByteRequest):
            promised = byte_range.end - byte_range.start
        elif isinstance(byte_range, SuffixByteRequest):
            promised = byte_range.suffix
        else:
            return
        if got != promised:
            raise OSError(f"{got:,} bytes came where {promised:,} were asked for")


def is_metadata(key: str) -> bool:
    """Whether an object says what an array or a group is, and is no part of its values."""
    return key.rpartition("/")[2] in _METADATA


def unreadable(what: str, place: str, error: Exception | None) -> NumtokError:
    """The error for what a place did not give: the network may be better later, a file not."""
    if "://" in place:
        return StoreError(
            f"cannot read {what}: {_said(error)}; check the network and the address, then run the "
            "same command again: what is finished is kept"
        )
    return DataError(f"cannot read {what}: {_said(error)}; is it whole? get it again")


def _said(error: Exception | None) -> str:
    """What an error of any library says, in one line."""
    if isinstance(error, TimeoutError):
        return f"no byte within {PATIENCE:g} seconds"
    status = getattr(error, "status", None)  # of aiohttp, whose text holds the whole address
    if isinstance(status, int):
        return f"{status} {getattr(error, 'message', '')}".rstrip()
    return " ".join(str(error).split()) or type(error).__name__


def _is_final(error: Exception) -> bool:
    """Whether asking again changes nothing: the server has understood, and refuses."""
    status = getattr(error, "status", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)


@contextmanager
def quietly() -> Iterator[None]:
    """For what is done with the libraries: they warn of what is done on purpose here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def objects(place: str) -> Iterator[Objects]:
    """The store at a path, or at a URL of http, https or gs.

    Raises UsageError where a library for it is missing.
    """
    system, attempts = None, 1
    others = sync(_tasks())
    if "://" not in place:
        store: Store = LocalStore(Path(place), read_only=True)
    else:
        google = place.startswith("gs://")
        system = _google(place) if google else _web(place)
        attempts = 1 if google else ATTEMPTS  # gcsfs tries six times itself
        store = FsspecStore(system, read_only=True, path=system._strip_protocol(place))
    try:
        with zarr.config.set({"async.concurrency": _AT_ONCE}):
            yield Objects(store, place, attempts)
    finally:
        sync(_stop(system, others))


async def _tasks() -> "set[asyncio.Task[Any]]":
    """What runs on zarr's event loop, which is one for all of a process."""
    return asyncio.all_tasks()


async def _stop(system: Any, others: "set[asyncio.Task[Any]]") -> None:
    """End what zarr left running when one object failed or the user interrupted: it goes on to ask
    for the others, and complains on standard error when the process ends before that. But leave
    what ``others`` had begun before."""
    left = asyncio.all_tasks() - {asyncio.current_task()} - others
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if system is not None and system._session is not None:
        await system._session.close()


def _web(place: str) -> Any:
    with needing(f"reading {place}", "fsspec and aiohttp"):
        import aiohttp
        from fsspec.implementations.http import HTTPFileSystem
    patience = aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE, sock_read=PATIENCE)
    settings = {"timeout": patience, "trust_env": True}
    return HTTPFileSystem(asynchronous=True, skip_instance_cache=True, client_kwargs=settings)


def _google(place: str) -> Any:
    address = place.replace("gs://", "https://storage.googleapis.com/", 1)
    with needing("reading gs://", "gcsfs", f", or read the same objects by --from {address}"):
        import aiohttp

        # Not that of gcsfs itself, which asks for the kind of a bucket first, by another protocol.
        from gcsfs.core import GCSFileSystem
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it prints what it raises
    return GCSFileSystem(
        token="anon",
        requests_timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=PATIENCE, sock_read=PATIENCE
        ),
        session_kwargs={"trust_env": True},
        asynchronous=True,
        skip_instance_cache=True,
    )
