"""Valid names for artifacts and units of work, and lists of names written as one string."""

import csv
import io
import re
from collections.abc import Sequence

#: Pattern for names of artifacts, of kinds of artifacts, and of units of work.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def join_names(names: Sequence[str]) -> str:
    """Return names written as one CSV record, the inverse of :func:`split_names`."""
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(names)
    return record.getvalue()


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a CSV record. A name that contains a comma must be quoted.

    >>> split_names('a,"b, c"'), join_names(("a", "b, c"))
    (('a', 'b, c'), 'a,"b, c"')
    """
    return tuple(next(csv.reader([text]))) if text else ()
