"""fsspec's file systems for addresses, with retries, timeouts and readable error messages.

fsspec and its libraries are only imported when an address needs them.
"""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import Any

from numtok.data.reading.addresses import is_web, kind_of, shown_of
from numtok.errors import UsageError, needing

ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt, doubled before each further one
PATIENCE = 30.0  # timeout in seconds without a byte
SILENCE = 5.0  # seconds of waiting before a note


def pauses(attempts: int) -> Iterator[float]:
    """Yield the pause before each attempt, in seconds.

    >>> list(pauses(4))
    [0.0, 1.0, 2.0, 4.0]
    """
    return (PAUSE * 2 ** (attempt - 1) if attempt else 0.0 for attempt in range(attempts))


@contextmanager
def noting_silence(note: Callable[[str], None], address: str) -> Iterator[None]:
    """Call ``note``, from another thread, if the ``with`` block takes longer than 5 seconds.

    The message passed to ``note`` says that ``address`` has not answered yet.
    """
    message = f"{address}: no answer yet, still trying. Check the network, or stop with Ctrl-C"
    timer = Timer(SILENCE, note, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def file_system(url: str) -> tuple[Any, str]:
    """Return a synchronous file system for an address, and the path within that file system.

    The library behind the file system reads credentials and settings from their usual locations
    (``AWS_*``, fsspec's configuration files). Raises UsageError if the URL scheme is not supported,
    if a library is missing, or if the address contains a password (no library accepts passwords in
    addresses, and some would print them).
    """
    kind, shown = kind_of(url), shown_of(url)
    if not is_web(url) and shown != url:
        raise UsageError(
            f"{shown}: the address must not contain a password. Set the credentials where its "
            "library looks for them, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if is_web(url):
        # Files are read unchanged and only by range requests.
        system = web(url, {"auto_decompress": False, "raise_for_status": _refuse})
    elif kind in ("gs", "gcs"):
        system = google()
    else:
        system = _other(kind, url)
    return system, system._strip_protocol(url)


def _other(kind: str, url: str) -> Any:
    try:
        import fsspec

        # Check first: an incomplete FTP file system prints a traceback when it is collected.
        inspect.signature(fsspec.get_filesystem_class(kind).__init__).bind(None)
        return fsspec.filesystem(kind)
    except ImportError as error:
        if kind in ("s3", "s3a"):
            what = 'the package s3fs. Install it: pip install "numtok[s3]"'
        else:
            what = f"a package: {' '.join(str(error).split())}"
        raise UsageError(f"reading {kind}:// needs {what}") from None
    except ValueError:
        raise UsageError(
            f"{url}: unknown kind of address {kind}://. Use s3://, gs://, https:// or another one "
            "that fsspec supports"
        ) from None
    except (TypeError, AttributeError, OSError):  # it needs more than an address, such as a host
        raise UsageError(
            f"{kind}:// addresses cannot be read. Use s3://, gs:// or https://, or download it"
        ) from None


def web(address: str, session: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Return fsspec's file system for http and https addresses.

    ``session`` contains settings for the aiohttp session, and ``more`` contains arguments for the
    file system. Raises UsageError if a package is missing; the message names ``address``.
    """
    with needing(f"reading {address}", "fsspec and aiohttp"):
        import aiohttp
        from fsspec.implementations.http import HTTPFileSystem
    client = {"timeout": _timeout(aiohttp), "trust_env": True, **(session or {})}
    return HTTPFileSystem(client_kwargs=client, **more)


async def _refuse(response: Any) -> None:
    """Reject the response if the server sends the whole file for a range request, before it is
    read.
    """
    if "Range" in response.request_info.headers and response.status == 200:
        response.close()
        raise NoRanges(
            "the server does not support range requests. Download the file and pass its path"
        )


class NoRanges(OSError):
    """Raised if the server does not support range requests; retrying is pointless."""


def google(otherwise: str = "", **more: Any) -> Any:
    """Return the file system for Google Cloud Storage; ``more`` contains arguments for gcsfs.

    Raises UsageError if gcsfs is missing; its message ends with ``otherwise``, which can suggest
    another way to read the data.
    """
    with needing("reading gs://", "gcsfs", otherwise):
        import aiohttp

        # gcsfs's default class requests the kind of a bucket first, by another protocol.
        from gcsfs.core import GCSFileSystem
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it also prints the errors it raises
    return GCSFileSystem(
        requests_timeout=_timeout(aiohttp), session_kwargs={"trust_env": True}, **more
    )


def _timeout(aiohttp: Any) -> Any:
    """Return timeouts that limit the time without a byte but not the total time."""
    silent = PATIENCE
    return aiohttp.ClientTimeout(total=None, sock_connect=silent, sock_read=silent)


def described(error: BaseException | None) -> str:
    """Return a one-line message for an exception raised by any library."""
    if isinstance(error, TimeoutError):
        return f"no byte within {PATIENCE:g} seconds"
    status = getattr(error, "status", None)  # of aiohttp, whose text holds the whole address
    if isinstance(status, int):
        return f"{status} {getattr(error, 'message', '')}".rstrip()
    return " ".join(str(error).split()) or type(error).__name__


def is_refused(error: BaseException) -> bool:
    """Return whether the server refused the request, so that retrying is pointless."""
    status = getattr(error, "status", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
