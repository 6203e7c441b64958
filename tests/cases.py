"""Many small cases in one test: a test each, or a subtest, costs milliseconds more than it does."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*name: object) -> Iterator[None]:
    """What fails in the block tells which case it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {', '.join(map(repr, name))}")
        raise
