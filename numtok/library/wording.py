"""Errors in the words of Python: where the command line says ``--text-field``, ``text_field``."""

from collections.abc import Iterator
from contextlib import contextmanager

from numtok.declaration import in_python
from numtok.errors import DataError, PluginError, StoreError, TrainingFailed, UsageError


@contextmanager
def as_arguments() -> Iterator[None]:
    """Have errors name arguments of functions in place of options of commands; also a decorator."""
    try:
        yield
    except PluginError:
        raise
    except UsageError as error:
        raise UsageError(in_python(str(error))) from None
    except DataError as error:
        raise DataError(in_python(str(error))) from None
    except StoreError as error:
        raise StoreError(in_python(str(error))) from error
    except TrainingFailed as error:
        raise TrainingFailed(in_python(str(error))) from error
