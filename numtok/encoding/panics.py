"""What Hugging Face's library does in place of an exception, as an exception.

Its patterns are matched by an engine that goes back as often as it must, up to ten million times;
then the library panics, and writes a report to standard error.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager


class Panicked(Exception):
    """The library could not go on."""


@contextmanager
def panics() -> Iterator[None]:
    """Raise Panicked where the library panics within the block, and keep its report to itself."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    except BaseException as error:
        # Of no class that can be imported, and no Exception, so as not to be caught by chance.
        if type(error).__name__ != "PanicException":
            raise
        raise Panicked(" ".join(str(error).split())) from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)
