"""Arguments of library functions: command settings, type checks, and the store.

Error messages name the Python argument (``text_field``) instead of the option (``--text-field``).
"""

import inspect
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from numtok.declaration import Setting, settings_in
from numtok.errors import DataError, PluginError, StoreError, TrainingFailed, UsageError, unknown
from numtok.library.parameters import description, parameters
from numtok.registry import folder_registry
from numtok.setting_names import by_current_name, in_python, key_of
from numtok.setting_values import as_python
from numtok.store.store import Store

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Settings = TypeVar("Settings")
Function = TypeVar("Function", bound=Callable[..., Any])
_PART_SETTINGS = "options"  # field for the settings of a registry part, such as a task
_NUMBERS: dict[type, type] = {int: Integral, float: Real}
_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "True or False",
    Path: "a path",
    NoneType: "None",
}


#: Parameters of every function that are not settings of its command.
_OWN = {
    "store": (
        "store : str or path, optional",
        "    Folder of the store. Default: the store of an artifact among the arguments, else "
        "``NUMTOK_STORE``, else 'artifacts'.",
    ),
    "quiet": ("quiet : bool, default True", "    Print no progress on standard error."),
}
_SECTION = re.compile(r"^[A-Z]\w+\n-{3,}$", re.M)


@contextmanager
def as_arguments(settings: type | None = None) -> Iterator[None]:
    """Context manager and decorator that replaces options in error messages with Python arguments.

    ``settings`` is the settings class of the command that the options belong to, if any.
    """
    try:
        yield
    except PluginError:
        raise
    except (UsageError, DataError, StoreError, TrainingFailed) as error:
        kinds = (UsageError, DataError, StoreError, TrainingFailed)
        kind = next(kind for kind in kinds if isinstance(error, kind))
        cause = error if kind in (StoreError, TrainingFailed) else None
        raise kind(in_python(str(error), settings)) from cause


def typed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator that makes a function raise UsageError if an argument does not have its annotated
    type."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        types = get_type_hints(function)
        for name, value in signature.bind(*arguments, **named).arguments.items():
            check_type(name, value, types.get(name, Any))
        return function(*arguments, **named)

    return call


def check_type(name: str, value: Any, kind: Any) -> None:
    """Raise UsageError unless a value has the given type or, for a union, one of its types.

    NumPy numbers count as numbers; booleans do not. Parametrized types are not checked.

    >>> check_type("width", "64", int)
    Traceback (most recent call last):
    numtok.errors.UsageError: width must be an integer (got '64')
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if Any in kinds or not all(isinstance(member, type) for member in kinds):
        return
    if not any(_is(value, member) for member in kinds):
        names = " or ".join(_NAMES.get(member, f"of type {member.__name__}") for member in kinds)
        raise UsageError(f"{name} must be {names} (got {reprlib.repr(value)})")


def _is(value: Any, kind: type) -> bool:
    if kind in _NUMBERS and isinstance(value, bool):
        return False
    return isinstance(value, _NUMBERS.get(kind, kind))


def store_root(where: str | Path | None) -> Path:
    """Return the folder of a store: ``where`` if given, else ``NUMTOK_STORE``, else
    ``artifacts``.
    """
    if where == "":
        raise UsageError("store must not be empty. Name a folder, or leave it out")
    return Path(where or os.environ.get("NUMTOK_STORE") or "artifacts")


def open_store(where: str | Path | None, *, quiet: bool = True) -> Store:
    """Open a store. If ``quiet`` is False, the store's notes are printed on standard error."""
    check_type("store", where, str | Path | None)
    root = store_root(where)
    return Store(root, lambda note: None) if quiet else Store(root)


def settings_of(
    settings: type[Settings], arguments: Sequence[Any], named: Mapping[str, Any]
) -> Settings:
    """Build a command's settings from positional and named arguments.

    Artifacts are replaced with their REFs, paths with strings, and NumPy numbers with Python's. A
    single value becomes a sequence if the setting takes several values. If the command uses a
    registered part, such as the task of ``gen``, unknown names are passed on as settings of the
    part.

    Raises UsageError if a name is unknown, if a setting is missing or passed twice, or if a value
    is not allowed.
    """
    declared = settings_in(settings)
    values = _in_order(declared, arguments)
    named = _by_field(declared, named)
    if twice := sorted(values.keys() & named.keys()):
        raise UsageError(f"{twice[0]} is passed twice, by position and by name. Pass it once")
    values |= named
    fields = {name: _value(declared[name], values[name]) for name in values if name in declared}
    of_part = {name: value for name, value in values.items() if name not in declared}
    part = next((field for field in declared.values() if field.expands), None)
    if of_part and part is None:
        known = [field.argument_name for field in declared.values()]
        raise unknown("setting", next(iter(of_part)), known)
    if part is not None and part.name in fields:
        fields[_PART_SETTINGS] = _settings_of_part(part.registry, fields[part.name], of_part)
    for name, field in declared.items():
        if field.required and fields.get(name, ()) == ():
            raise UsageError(f"{field.argument_name} is missing: {description(settings, field)}")
    return settings(**fields)


def _settings_of_part(folder: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a registered part by field, as the command line passes them."""
    values = _by_field(settings_in(folder_registry(folder)[name]), given) if given else {}
    written = {True: True, False: "no"}
    return {
        key: written[value] if isinstance(value, bool) else str(value)
        for key, value in values.items()
        if value is not None
    }


def _by_field(declared: Mapping[str, Setting], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return named values keyed by field. Unknown names are kept."""
    known = declared.values()
    return by_current_name(named, lambda name: key_of(known, name, as_argument=True) or name)


def _in_order(declared: Mapping[str, Setting], arguments: Sequence[Any]) -> dict[str, Any]:
    """Return positional values by setting. A setting that takes several values takes all that
    remain.
    """
    values: dict[str, Any] = {}
    left = list(arguments)
    for name, field in declared.items():
        if not left or not field.argument:
            continue
        values[name] = left if field.several and len(left) > 1 else left[0]
        left = [] if field.several else left[1:]
    if left:
        raise UsageError(f"unexpected positional argument {left[0]!r}. Pass settings by name")
    return values


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
    return getattr(value, "ref", as_python(value))


def described(settings: type) -> Callable[[Function], Function]:
    """Return a decorator that adds a command's settings to the signature and docstring of a
    function.
    """

    def describe(function: Function) -> Function:
        given = inspect.signature(function).parameters.values()
        own = [parameter for parameter in given if parameter.kind is Parameter.KEYWORD_ONLY]
        added = []
        for field in settings_in(settings).values():
            kind = Parameter.POSITIONAL_OR_KEYWORD if field.argument else Parameter.KEYWORD_ONLY
            default = Parameter.empty if field.required else field.default
            name, annotation = field.argument_name, field.type
            added.append(Parameter(name, kind, default=default, annotation=annotation))
        ordered = sorted([*added, *own], key=_order)
        function.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        lines = parameters(settings)
        lines += [line for parameter in own for line in _OWN.get(parameter.name, ())]
        function.__doc__ = _with_parameters(inspect.cleandoc(function.__doc__ or ""), lines)
        return function

    return describe


def _with_parameters(docstring: str, lines: Sequence[str]) -> str:
    """Insert a "Parameters" section before the other sections of a docstring."""
    section = "\n".join(["Parameters", "-" * len("Parameters"), *lines, ""])
    match = _SECTION.search(docstring)
    if match is None:
        return f"{docstring}\n\n{section}"
    return f"{docstring[: match.start()]}{section}\n{docstring[match.start() :]}"


def _order(parameter: Parameter) -> tuple[int, bool]:
    return parameter.kind, parameter.default is not Parameter.empty
