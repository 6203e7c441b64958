"""Download files from the web into a :class:`Sink`, with retries that resume the download."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from numtok.data.fetching import file_systems
from numtok.errors import StoreError
from numtok.files import PIECE, Sink
from numtok.store.quota import Quota
from numtok.version import __version__

#: Receives a description of the work, the bytes done, and the total (0 if unknown).
Progress = Callable[[str, int, int], None]


class _Broken(Exception):
    """The connection ended before the file did."""


def download(url: str, path: Path, quota: Quota, progress: Progress) -> Sink:
    """Download a file, and return the closed :class:`Sink` with the sha256 and size of the file.

    Raises StoreError if the server refuses or if the network or the disk fails, and UsageError if
    the quota is exceeded.
    """
    failure: Exception | None = None
    with Sink(path) as sink:
        for pause in file_systems.pauses(file_systems.ATTEMPTS):
            time.sleep(pause)
            try:
                _resume(url, sink, quota, progress)
                return sink
            except urllib.error.HTTPError as error:
                error.close()
                failure = error
                if error.code < 500 and error.code != 429:  # a retry would fail, too
                    break
            except (OSError, HTTPException, _Broken) as error:  # URLError is an OSError
                failure = error
        why = " ".join(str(getattr(failure, "reason", None) or failure).split())
        code = f"{failure.code} " if isinstance(failure, urllib.error.HTTPError) else ""
        raise StoreError(
            f"cannot download {url}: {code}{why}. Check the network and run the command again to "
            "resume, or pass a copy: --from"
        ) from failure


def _resume(url: str, sink: Sink, quota: Quota, progress: Progress) -> None:
    """Append the missing bytes to the sink. Raises _Broken if the server sends too few."""
    headers = {"User-Agent": f"numtok/{__version__}"}
    if sink.bytes:
        headers["Range"] = f"bytes={sink.bytes}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=file_systems.PATIENCE) as answer:
        # A server without range requests sends the whole file again.
        skip = sink.bytes if answer.status == 200 else 0
        length = answer.headers.get("Content-Length")
        begin = sink.bytes - skip
        total = begin + int(length) if length and length.isdecimal() else 0
        folder = sink.path.parent
        quota.check(url, folder, total, max(0, total - sink.bytes))

        while piece := answer.read(PIECE):
            new, skip = piece[skip:], max(0, skip - len(piece))
            quota.check(url, folder, sink.bytes + len(new), len(new))
            sink.write(new)
            progress("downloading", sink.bytes, total)
    if total and sink.bytes < total:
        raise _Broken(f"the download ended after {sink.bytes:,} of {total:,} bytes")
