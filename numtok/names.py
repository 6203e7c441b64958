"""Valid names for artifacts and units of work, lists of names written as one string, and nouns with
their counts."""

import csv
import io
import re
import shlex
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


def drop_option(name: str) -> str:
    """Return the option that leaves a column out, as typed in a shell.

    >>> drop_option("id"), drop_option("Unnamed: 0")
    ('--drop id', "--drop 'Unnamed: 0'")
    """
    return f"--drop {shlex.quote(join_names([name]))}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "file"), counted(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
