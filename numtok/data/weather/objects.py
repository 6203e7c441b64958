"""Read the objects of a zarr store with retries, and check that they are complete.

zarr reads a missing object as fill values, and Blosc silently unpacks a truncated object to wrong
values (observed with numcodecs 0.16). The store in this module therefore records missing objects
and raises an error for truncated ones.

Import this module only after checking that zarr is installed.
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
from numtok.data.fetching.file_systems import described, is_refused
from numtok.errors import DataError, NumtokError, StoreError

_AT_ONCE = 4  # objects that are requested and held at the same time
_BLOSC_HEADER = 16  # bytes, of which the last four are the total length
_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")


class Objects(WrapperStore[Store]):
    """A read-only zarr store that retries requests and records missing objects.

    missing
        Keys that were requested but do not exist.
    packed
        Key prefixes, ending in ``/``, of arrays whose objects are Blosc buffers; set by the caller.
    """

    def __init__(self, store: Store, location: str, attempts: int) -> None:
        super().__init__(store)
        self.location = location
        self.missing: set[str] = set()
        self.packed: tuple[str, ...] = ()
        self._attempts = attempts

    def _with_store(self, store: Store) -> Self:
        assert store.read_only  # zarr would otherwise request a writable copy
        return self

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return one object, or None if it is missing.

        Raises StoreError (for an address) or DataError (for a path) if the request is refused or
        all attempts fail.
        """
        failure: Exception | None = None
        for pause in file_systems.pauses(self._attempts):
            await asyncio.sleep(pause)
            try:
                if isinstance(self._store, LocalStore):
                    files.check_regular(self._store.root / key)
                buffer = await self._store.get(key, prototype, byte_range)
                if buffer is None:
                    self.missing.add(key)
                else:
                    self._check(key, buffer, byte_range)
                return buffer
            except Exception as error:  # of aiohttp, gcsfs, requests or the system
                failure = error
                if is_refused(error):
                    break
        raise unreadable(f"{key} of {self.location}", self.location, failure) from failure

    def _check(self, key: str, buffer: Buffer, byte_range: ByteRequest | None) -> None:
        """Raise OSError for a truncated object."""
        got = len(buffer)
        if byte_range is None and key.startswith(self.packed) and not is_metadata(key):
            head = buffer[:_BLOSC_HEADER].to_bytes()
            promised = int.from_bytes(head[12:], "little")
            if got < _BLOSC_HEADER or got < promised:
                needed = max(promised, _BLOSC_HEADER)
                raise OSError(f"it has {got:,} bytes instead of {needed:,}")
        if isinstance(byte_range, RangeByteRequest):
            promised = byte_range.end - byte_range.start
        elif isinstance(byte_range, SuffixByteRequest):
            promised = byte_range.suffix
        else:
            return
        if got != promised:
            raise OSError(f"received {got:,} bytes instead of {promised:,}")


def is_metadata(key: str) -> bool:
    """Return whether the object with this key contains metadata rather than values."""
    return key.rpartition("/")[2] in _METADATA


def unreadable(what: str, location: str, error: Exception | None) -> NumtokError:
    """Return the error for unreadable data: StoreError for an address, DataError for a file."""
    if "://" in location:
        return StoreError(
            f"cannot read {what}: {described(error)}. Check the network and the address, then run "
            "the same command again to resume"
        )
    return DataError(f"cannot read {what}: {described(error)}. Download it again")


@contextmanager
def quietly() -> Iterator[None]:
    """Silence all warnings in a ``with`` block, because libraries warn about intended uses."""
    with warnings.catch_warnings(action="ignore"):
        yield


@contextmanager
def objects(location: str) -> Iterator[Objects]:
    """Open the zarr store at a path, or at an http, https or gs address.

    Raises UsageError if a library for the address is missing.
    """
    system, attempts = None, 1
    earlier_tasks = sync(_tasks())
    if "://" not in location:
        store: Store = LocalStore(Path(location), read_only=True)
    else:
        google = location.startswith("gs://")
        more: dict[str, Any] = {"asynchronous": True, "skip_instance_cache": True}
        if google:
            address = location.replace("gs://", "https://storage.googleapis.com/", 1)
            otherwise = f", or read the same objects over https: --from {address}"
            system = file_systems.google(otherwise, token="anon", **more)
        else:
            system = file_systems.web(location, **more)
        attempts = 1 if google else file_systems.ATTEMPTS  # gcsfs retries six times itself
        store = FsspecStore(system, read_only=True, path=system._strip_protocol(location))
    try:
        with zarr.config.set({"async.concurrency": _AT_ONCE}):
            yield Objects(store, location, attempts)
    finally:
        sync(_stop(system, earlier_tasks))


async def _tasks() -> set[asyncio.Task[Any]]:
    """Return the tasks on zarr's event loop, of which each process has one."""
    return asyncio.all_tasks()


async def _stop(system: Any, earlier_tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel requests that zarr leaves running after an error or an interrupt.

    They would continue and print errors when the process ends. Earlier tasks are not canceled.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()} - earlier_tasks
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if system is not None and system._session is not None:
        await system._session.close()
