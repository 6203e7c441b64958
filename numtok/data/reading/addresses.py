"""Addresses of objects in stores and on the web, such as ``s3://bucket/key``."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
#: ``name:password@``; what follows the colon of ``host:9000/a@b`` is a port.
_PASSWORD = re.compile(r"(?<=://)(?!arn:)[^/@]*:(?![0-9]+/)[^@]*@")
_WEB = ("http", "https")


@dataclass(frozen=True)
class Address:
    """Address of an object, and the size in bytes that the object had when it was listed."""

    url: str
    size: int

    @property
    def name(self) -> str:
        """File name of the object: the part after the last slash, without a query."""
        return shown_of(self.url).rpartition("/")[2]

    def __str__(self) -> str:
        return shown_of(self.url)


def is_address(text: str) -> bool:
    """Return whether a string starts with the scheme of an address, such as ``s3://``.

    >>> is_address("s3://bucket/date=2026/a.jsonl"), is_address("test=s3://bucket/a.jsonl")
    (True, False)
    """
    return _ADDRESS.match(text) is not None


def kind_of(url: str) -> str:
    """Return the URL scheme of an address in lower case, such as ``s3``."""
    return urlsplit(url).scheme.lower()


def is_web(url: str) -> bool:
    """Return whether an address uses http or https."""
    return kind_of(url) in _WEB


def shown_of(url: str) -> str:
    """Return an address without its secrets, so that it can be printed or stored.

    A user name with a password, which may contain slashes, is removed. For http and https, a user
    name without a password and the query, which may contain a signature, are also removed.

    >>> shown_of("https://me:secret@example.org/a.jsonl?signature=3f")
    'https://example.org/a.jsonl'
    >>> shown_of("s3://me:sec/ret@bucket/a.jsonl")
    's3://bucket/a.jsonl'
    """
    if not is_web(url):
        return _PASSWORD.sub("", url)
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
