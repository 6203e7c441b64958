"""File systems of fsspec: which one an address is of, how often and how long a network is tried,
and what errors mean.

Nothing here imports fsspec or a library below it before an address needs it.
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
PAUSE = 1.0  # seconds before the second attempt, doubled before each other
PATIENCE = 30.0  # seconds without a byte
SILENCE = 5.0  # seconds of waiting before a note


def pauses(attempts: int) -> Iterator[float]:
    """Return the pause before each attempt, in seconds.

    >>> list(pauses(4))
    [0.0, 1.0, 2.0, 4.0]
    """
    return (PAUSE * 2 ** (attempt - 1) if attempt else 0.0 for attempt in range(attempts))


@contextmanager
def noting_silence(note: Callable[[str], None], address: str) -> Iterator[None]:
    """Call ``note``, from another thread, if the block waits for ``address`` for long."""
    told = f"{address}: no answer yet, still trying. Check the network, or stop with Ctrl-C"
    timer = Timer(SILENCE, note, [told])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def file_system(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path there, in the blocking way; credentials and
    settings are those that it finds itself (``AWS_*``, fsspec's files).

    Raises UsageError for an address of no known kind or with a password, which no library of these
    takes and some print, and where a library is missing.
    """
    kind, shown = kind_of(url), shown_of(url)
    if not is_web(url) and shown != url:
        raise UsageError(
            f"{shown}: the address must not contain a password. Set the credentials where its "
            "library looks for them, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if is_web(url):
        # A file is read as it lies there, in parts alone.
        system = web(url, {"auto_decompress": False, "raise_for_status": _refuse})
    elif kind in ("gs", "gcs"):
        system = google()
    else:
        system = _other(kind, url)
    return system, system._strip_protocol(url)


def _other(kind: str, url: str) -> Any:
    try:
        import fsspec

        # Before one is made: half a file system of FTP prints a traceback when it is collected.
        inspect.signature(fsspec.get_filesystem_class(kind).__init__).bind(None)
        return fsspec.filesystem(kind)
    except ImportError as error:
        if kind in ("s3", "s3a"):
            what = 'the package s3fs; `pip install "numtok[s3]"`'
        else:
            what = f"a package: {' '.join(str(error).split())}"
        raise UsageError(f"reading {kind}:// needs {what}") from None
    except ValueError:
        raise UsageError(
            f"{url}: {kind}:// is no known kind of address; s3://, gs://, https:// and all that "
            "fsspec knows are"
        ) from None
    except (TypeError, AttributeError, OSError):  # more than an address is needed, such as a host
        raise UsageError(
            f"{kind}:// addresses cannot be read. Use s3://, gs:// or https://, or download it"
        ) from None


def web(place: str, session: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """For http and https; ``session`` goes to aiohttp's, ``more`` to fsspec."""
    with needing(f"reading {place}", "fsspec and aiohttp"):
        import aiohttp
        from fsspec.implementations.http import HTTPFileSystem
    client = {"timeout": _timeout(aiohttp), "trust_env": True, **(session or {})}
    return HTTPFileSystem(client_kwargs=client, **more)


async def _refuse(response: Any) -> None:
    """All of a file where a part was asked for, before it is read."""
    if "Range" in response.request_info.headers and response.status == 200:
        response.close()
        raise NoRanges("the server sends whole files alone; download it, and give the file")


class NoRanges(OSError):
    """A server does not know ranges: to ask again changes nothing."""


def google(otherwise: str = "", **more: Any) -> Any:
    """For Google's storage; ``more`` goes to gcsfs."""
    with needing("reading gs://", "gcsfs", otherwise):
        import aiohttp

        # Not that of gcsfs itself, which asks for the kind of a bucket first, by another protocol.
        from gcsfs.core import GCSFileSystem
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it prints what it raises
    return GCSFileSystem(
        requests_timeout=_timeout(aiohttp), session_kwargs={"trust_env": True}, **more
    )


def _timeout(aiohttp: Any) -> Any:
    """However long it takes, as long as something comes."""
    silent = PATIENCE
    return aiohttp.ClientTimeout(total=None, sock_connect=silent, sock_read=silent)


def said(error: BaseException | None) -> str:
    """What an error of any library says, in one line."""
    if isinstance(error, TimeoutError):
        return f"no byte within {PATIENCE:g} seconds"
    status = getattr(error, "status", None)  # of aiohttp, whose text holds the whole address
    if isinstance(status, int):
        return f"{status} {getattr(error, 'message', '')}".rstrip()
    return " ".join(str(error).split()) or type(error).__name__


def is_refused(error: BaseException) -> bool:
    """Whether the server has understood, and refuses: asking again changes nothing."""
    status = getattr(error, "status", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
