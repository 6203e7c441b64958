"""Detection of a file's format and encoding from its first bytes instead of its name."""

import re

from numtok.errors import DataError

#: The byte order mark of UTF-8, which some editors and spreadsheets write first.
MARK = b"\xef\xbb\xbf"
FIRST_BYTES = 64  # number of bytes needed to detect the format
_STARTS = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PAR1", "parquet"),
    (b"{", "jsonl"),
)
# A byte order mark, or a NUL next to a printable character.
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|\0[^\0-\x20]|[^\0-\x20]\0")


def format_of(start: bytes, named: str) -> str:
    """Return the format detected from a file's first bytes, or ``named`` if none is recognized.

    >>> format_of(b'{"text": "1"}', "gzip"), format_of(b"?", "gzip")
    ('jsonl', 'gzip')
    """
    start = start.removeprefix(MARK).lstrip()
    return next((form for magic, form in _STARTS if start.startswith(magic)), named)


def check_utf8(start: bytes, shown: str) -> None:
    """Raise DataError if a file appears to be UTF-16, with or without a byte order mark."""
    if _UTF_16.match(start):
        raise DataError(
            f"{shown} is UTF-16; it must be UTF-8. Convert it: iconv -f UTF-16 -t UTF-8"
        )
