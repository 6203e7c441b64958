"""Settings of commands as arguments of functions."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from numtok.declaration import declaration_of, declarations, help_of
from numtok.errors import UsageError, unknown
from numtok.library.wording import check_type

Settings = TypeVar("Settings")
Function = TypeVar("Function", bound=Callable[..., Any])
_KINDS = "options"  # the field that holds the settings of a kind


def settings_of(
    settings: type[Settings], arguments: Sequence[Any], named: Mapping[str, Any]
) -> Settings:
    """The settings of a command: its arguments in order, and the others by name.

    An artifact stands for its REF, a path for its name, and one value for several where there may
    be several. What is no setting of a command that has kinds, such as ``gen``, is one of the kind.

    Raises UsageError for a name that does not exist, for one given twice or not at all, and for a
    value that cannot be.
    """
    fields = {field.name: field for field, _ in declarations(settings)}
    given = _in_order(fields, arguments)
    if twice := sorted(given.keys() & named.keys()):
        raise UsageError(f"{twice[0]} is given twice; leave one of them out")
    given |= named
    made: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in given.items():
        if name in fields:
            made[name] = _value(fields[name], value)
        else:
            others[name] = value
    kinds = {field.name for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    if others and _KINDS not in kinds:
        raise unknown("setting", next(iter(others)), fields)
    if others:
        made[_KINDS] = {
            name: one if one is True else str(one)
            for name, one in others.items()
            if one not in (None, False)
        }
    for name, field in fields.items():
        if name not in made and field.default is dataclasses.MISSING:
            raise UsageError(f"{name} is missing; give {declaration_of(field).help}")
    return settings(**made)


def _in_order(
    fields: Mapping[str, dataclasses.Field[Any]], arguments: Sequence[Any]
) -> dict[str, Any]:
    """Values by position; a field of several takes all that are left."""
    given: dict[str, Any] = {}
    left = list(arguments)
    for name, field in fields.items():
        if not left or not declaration_of(field).argument:
            continue
        several = _is_several(field)
        given[name] = left if several and len(left) > 1 else left[0]
        left = [] if several else left[1:]
    if left:
        raise UsageError(f"{left[0]!r} is one argument too many; give settings by name")
    return given


def _is_several(field: dataclasses.Field[Any]) -> bool:
    return get_args(field.type)[1:] == (...,)


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    if _is_several(field):
        several = isinstance(value, Iterable) and not isinstance(value, str | Path)
        words = tuple(map(_word, value if several and not hasattr(value, "ref") else [value]))
        for word in words:
            check_type(field.name, word, get_args(field.type)[0])
        return words
    if field.type in (Path, Path | None) and isinstance(value, str | Path) and value:
        return Path(value)
    word = _word(value)
    check_type(field.name, word, field.type)
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
        helps = help_of(settings)
        parameters, lines = [], []
        for field, declaration in declarations(settings):
            kind = (
                inspect.Parameter.POSITIONAL_OR_KEYWORD
                if declaration.argument
                else inspect.Parameter.KEYWORD_ONLY
            )
            needed = field.default is dataclasses.MISSING
            default = inspect.Parameter.empty if needed else field.default
            parameters.append(
                inspect.Parameter(field.name, kind, default=default, annotation=field.type)
            )
            lines += [field.name, f"    {helps.get(field.name, declaration.help)}"]
        ordered = sorted([*parameters, *own], key=_order)
        function.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", *lines])
        return function

    return describe


def _order(one: inspect.Parameter) -> tuple[int, bool]:
    return one.kind, one.default is not inspect.Parameter.empty
