"""Checks the declarations in a registered class before an object is built from a spec."""

import inspect
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from numtok.setting_values import SPEC_TYPES


@cache
def missing_in(kind: type) -> tuple[str, ...]:
    """Return the names of declarations that a class lacks, without which no object can be built
    from a spec; empty if the class is complete.

    The decorator ``@dataclass(frozen=True)``, class attributes, and implementations of abstract
    methods count as declarations.
    """
    params: Any = getattr(kind, "__dataclass_params__", None)
    if params is None or not params.frozen:
        return ("@dataclass(frozen=True)",)
    declared = {
        key
        for base in kind.__mro__
        for key, hint in inspect.get_annotations(base).items()
        if str(hint).startswith("typing.ClassVar") and key != "positional"  # optional
    }
    unset = {key for key in declared if not hasattr(kind, key)}
    return tuple(sorted(unset | getattr(kind, "__abstractmethods__", frozenset())))


_OPTIONAL = ("positional", "checked_at")  # attributes that any class may declare


@cache
def mistyped_in(kind: type) -> str | None:
    """Return a message about the first wrongly typed declaration in a class; None if all types are
    correct.

    Specs must be able to represent the type of each setting, class attributes must have their
    declared type, and public constants must be annotated.
    """
    try:
        hints = get_type_hints(kind)
    except Exception as error:  # evaluating a string annotation can raise anything
        return f"__annotations__ cannot be evaluated: {type(error).__name__}: {error}"
    for key in (field.name for field in fields(kind) if field.init):
        if hints[key] not in SPEC_TYPES:
            allowed = ", ".join(map(_type_name, SPEC_TYPES))
            return f"{key}: a setting cannot have type {_type_name(hints[key])}. Use {allowed}"
    for key, hint in hints.items():
        if get_origin(hint) is not ClassVar or not hasattr(kind, key):
            continue
        (wanted,) = get_args(hint)
        value = getattr(kind, key)
        allowed_values = get_args(wanted) if get_origin(wanted) is Literal else ()
        simple = wanted in (bool, int, str) and type(value) is not wanted
        if simple or (allowed_values and value not in allowed_values):
            return f"{key} is {value!r}; it must be {_type_name(wanted)}"
    for key, value in vars(kind).items():
        plain = isinstance(value, bool | int | float | str | tuple | list | dict)
        declared = (
            key in hints or key in _OPTIONAL or any(hasattr(base, key) for base in kind.__mro__[1:])
        )
        if plain and key[0] != "_" and not declared:
            return (
                f"{key} = {value!r} has no type. Write {key}: {type(value).__name__} for a "
                f"setting, {key}: ClassVar for a class constant, or _{key}"
            )
    return None


def _type_name(kind: Any) -> str:
    """Return the name of a type as in code: ``int``, ``str | None``."""
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
