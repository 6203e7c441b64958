"""Arguments of functions: the settings of commands, checked types, and the store.

Errors name arguments: where the command line says ``--text-field``, they say ``text_field``.
"""

import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from numtok.declaration import Setting, in_python, key_of, settings_in
from numtok.errors import DataError, PluginError, StoreError, TrainingFailed, UsageError, unknown
from numtok.store.store import Store

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Settings = TypeVar("Settings")
Function = TypeVar("Function", bound=Callable[..., Any])
_KINDS = "options"  # the field that holds the settings of a kind
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


def store_root(where: str | Path | None) -> Path:
    """The folder of a store: as given, or ``NUMTOK_STORE``, or ``artifacts``, as the command line
    has it without a ``numtok.toml``."""
    return Path(where or os.environ.get("NUMTOK_STORE") or "artifacts")


def open_store(where: str | Path | None, *, quiet: bool = True) -> Store:
    """The store there; unless quiet, notes for a waiting user go to standard error."""
    check_type("store", where, str | Path | None)
    root = store_root(where)
    return Store(root, lambda note: None) if quiet else Store(root)


def settings_of(
    settings: type[Settings], arguments: Sequence[Any], named: Mapping[str, Any]
) -> Settings:
    """The settings of a command: its arguments in order, and the others by name.

    An artifact stands for its REF, a path for its name, and one value for several where there may
    be several. What is no setting of a command that has kinds, such as ``gen``, is one of the kind.

    Raises UsageError for a name that does not exist, for one given twice or not at all, and for a
    value that cannot be.
    """
    known = settings_in(settings)
    given = _in_order(known, arguments)
    named = {
        key_of(known.values(), name, as_argument=True) or name: value
        for name, value in named.items()
    }
    if twice := sorted(given.keys() & named.keys()):
        raise UsageError(f"{twice[0]} is given twice; leave one of them out")
    given |= named
    made: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in given.items():
        if name in known:
            made[name] = _value(known[name], value)
        else:
            others[name] = value
    if others and not any(one.expands for one in known.values()):
        raise unknown("setting", next(iter(others)), known)
    if others:
        made[_KINDS] = {
            name: one if one is True else str(one)
            for name, one in others.items()
            if one not in (None, False)
        }
    for name, one in known.items():
        if name not in made and one.required:
            raise UsageError(f"{one.argument_name} is missing. Pass {one.help}")
    return settings(**made)


def _in_order(known: Mapping[str, Setting], arguments: Sequence[Any]) -> dict[str, Any]:
    """Return values by position; a setting with several values takes the rest."""
    given: dict[str, Any] = {}
    left = list(arguments)
    for name, one in known.items():
        if not left or not one.argument:
            continue
        given[name] = left if one.several and len(left) > 1 else left[0]
        left = [] if one.several else left[1:]
    if left:
        raise UsageError(f"{left[0]!r} is one argument too many; give settings by name")
    return given


def _value(setting: Setting, value: Any) -> Any:
    if setting.several:
        several = isinstance(value, Iterable) and not isinstance(value, str | Path)
        words = tuple(map(_word, value if several and not hasattr(value, "ref") else [value]))
        for word in words:
            check_type(setting.argument_name, word, get_args(setting.type)[0])
        return words
    if setting.type in (Path, Path | None) and isinstance(value, str | Path) and value:
        return Path(value)
    word = _word(value)
    check_type(setting.argument_name, word, setting.type)
    return word


def _word(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return getattr(value, "ref", value)


def described(settings: type) -> Callable[[Function], Function]:
    """Put the settings of a command into the signature and the docstring of its function."""

    def describe(function: Function) -> Function:
        own = [
            one
            for one in inspect.signature(function).parameters.values()
            if one.kind is inspect.Parameter.KEYWORD_ONLY
        ]
        parameters, lines = [], []
        for one in settings_in(settings).values():
            kind = (
                inspect.Parameter.POSITIONAL_OR_KEYWORD
                if one.argument
                else inspect.Parameter.KEYWORD_ONLY
            )
            default = inspect.Parameter.empty if one.required else one.default
            argument = one.argument_name
            parameters.append(
                inspect.Parameter(argument, kind, default=default, annotation=one.type)
            )
            lines += [argument, f"    {one.sentence}"]
        ordered = sorted([*parameters, *own], key=_order)
        function.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", *lines])
        return function

    return describe


def _order(one: inspect.Parameter) -> tuple[int, bool]:
    return one.kind, one.default is not inspect.Parameter.empty
