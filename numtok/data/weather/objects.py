"""The objects of a zarr store, brought one at a time: tried again, and known to be whole.

zarr reads an object that is not there as fill values, and Blosc unpacks one that was cut short to
wrong values without a word (seen with numcodecs 0.16). So what is absent is written down here, and
the lengths are looked at.

Imported where zarr is known to be installed.
"""

import asyncio
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
from numtok.data.fetching import file_systems
from numtok.data.fetching.file_systems import is_refused, said
from numtok.errors import DataError, NumtokError, StoreError

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
        for pause in file_systems.pauses(self._attempts):
            await asyncio.sleep(pause)
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
                if is_refused(error):
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
            f"cannot read {what}: {said(error)}; check the network and the address, then "
            "run the same command again: what is finished is kept"
        )
    return DataError(f"cannot read {what}: {said(error)}; is it whole? get it again")


@contextmanager
def quietly() -> Iterator[None]:
    """For what is done with the libraries: they warn of what is done on purpose here."""
    with warnings.catch_warnings(action="ignore"):
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
        more: dict[str, Any] = {"asynchronous": True, "skip_instance_cache": True}
        if google:
            address = place.replace("gs://", "https://storage.googleapis.com/", 1)
            otherwise = f", or read the same objects by --from {address}"
            system = file_systems.google(otherwise, token="anon", **more)
        else:
            system = file_systems.web(place, **more)
        attempts = 1 if google else file_systems.ATTEMPTS  # gcsfs tries six times itself
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
