"""Errors in the words of Python: where the command line says ``--text-field``, ``text_field``."""

import inspect
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from numtok.declaration import in_python
from numtok.errors import DataError, PluginError, StoreError, TrainingFailed, UsageError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_NUMBERS: dict[type, type] = {int: Integral, float: Real}
_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "True or False",
    Path: "a path",
    NoneType: "None",
}


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


def typed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Raise UsageError for arguments that are not of their annotated type; a decorator."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        types = get_type_hints(function)
        for name, value in signature.bind(*arguments, **named).arguments.items():
            check_type(name, value, types.get(name, Any))
        return function(*arguments, **named)

    return call


def check_type(name: str, value: Any, kind: Any) -> None:
    """Raise UsageError unless a value is of a type, or of one of a union.

    Numbers of NumPy are numbers, booleans are not. Types with parameters are not checked.

    >>> check_type("width", "64", int)
    Traceback (most recent call last):
    numtok.errors.UsageError: width must be an integer (got '64')
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if Any in kinds or not all(isinstance(one, type) for one in kinds):
        return
    if not any(_is(value, one) for one in kinds):
        names = " or ".join(_NAMES.get(one, f"of type {one.__name__}") for one in kinds)
        raise UsageError(f"{name} must be {names} (got {reprlib.repr(value)})")


def _is(value: Any, kind: type) -> bool:
    if kind in _NUMBERS and isinstance(value, bool):
        return False
    return isinstance(value, _NUMBERS.get(kind, kind))
