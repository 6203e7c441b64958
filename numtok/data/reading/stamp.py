"""Whether a file, or an object of a store, is still what it was when the work was planned."""

from typing import NamedTuple

from numtok.errors import DataError


class Stamp(NamedTuple):
    """Says, without reading it again, whether a file was changed since it was planned."""

    size: int
    modified: int | str  # nanoseconds; of an object its entity tag, or what stands for one


def changed(shown: str) -> DataError:
    """The error for a file that is not as it was planned."""
    return DataError(
        f"{shown} changed while it was read; run the command again when nothing writes to it"
    )
