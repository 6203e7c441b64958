"""Names: what they may be, and several of them in one word."""

import csv
import io
import re
from collections.abc import Sequence

#: Of an artifact or its kind, and of a unit of work.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def join_names(names: Sequence[str]) -> str:
    """Write names as one CSV record: the inverse of :func:`split_names`."""
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(names)
    return record.getvalue()


def split_names(text: str) -> tuple[str, ...]:
    """Read a CSV record: names with a comma are in quotes.

    >>> split_names('a,"b, c"'), join_names(("a", "b, c"))
    (('a', 'b, c'), 'a,"b, c"')
    """
    return tuple(next(csv.reader([text]))) if text else ()
