"""Settings of commands as arguments of functions."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from numtok.declaration import Setting, settings_in
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
    known = settings_in(settings)
    given = _in_order(known, arguments)
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
            raise UsageError(f"{name} is missing; give {one.help}")
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
            check_type(setting.name, word, get_args(setting.type)[0])
        return words
    if setting.type in (Path, Path | None) and isinstance(value, str | Path) and value:
        return Path(value)
    word = _word(value)
    check_type(setting.name, word, setting.type)
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
        for name, one in settings_in(settings).items():
            kind = (
                inspect.Parameter.POSITIONAL_OR_KEYWORD
                if one.argument
                else inspect.Parameter.KEYWORD_ONLY
            )
            default = inspect.Parameter.empty if one.required else one.default
            parameters.append(inspect.Parameter(name, kind, default=default, annotation=one.type))
            lines += [name, f"    {one.help}"]
        ordered = sorted([*parameters, *own], key=_order)
        function.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", *lines])
        return function

    return describe


def _order(one: inspect.Parameter) -> tuple[int, bool]:
    return one.kind, one.default is not inspect.Parameter.empty
