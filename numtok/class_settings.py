"""The settings of a class of a registry: which there are, of which types, how each is read and
written."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from numtok.declaration import declarations, flag_of
from numtok.errors import UsageError, unknown

#: Metadata of a field that is learnt from data: no spec sets it, but it is kept with the settings.
LEARNT = {"learnt": True}


@dataclass(frozen=True)
class Interval:
    """An inclusive range of integers, written ``-8..7``."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise UsageError(f"interval {self}: the first number is above the last")

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    @classmethod
    def parse(cls, text: str) -> "Interval":
        """``Interval.parse("-8..7")`` -> ``Interval(-8, 7)``; ValueError on anything else."""
        match = re.fullmatch(r"([+-]?\d+)\.\.([+-]?\d+)", text)
        if match is None:
            raise ValueError(text)
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Range:
    """From a number to another, both included, written ``0..0.1``; ``2`` is from 2 to 2."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise UsageError(f"range {self}: the first number is above the last")

    def __str__(self) -> str:
        ends = [repr(end).removesuffix(".0") for end in (self.low, self.high)]
        return ends[0] if self.low == self.high else "..".join(ends)

    @classmethod
    def parse(cls, text: str) -> "Range":
        """``Range.parse("0..0.1")`` -> ``Range(0.0, 0.1)``; ValueError on anything else."""
        low, dots, high = text.partition("..")
        return cls(float(low), float(high if dots else low))


@cache
def missing_in(kind: type) -> tuple[str, ...]:
    """What a class still needs before it can be built from a spec."""
    if not is_dataclass(kind):
        return ("@dataclass(frozen=True)",)
    declared = {
        key
        for base in kind.__mro__
        for key, hint in inspect.get_annotations(base).items()
        if str(hint).startswith("typing.ClassVar") and key != "positional"  # which is optional
    }
    unset = {key for key in declared if not hasattr(kind, key)}
    return tuple(sorted(unset | getattr(kind, "__abstractmethods__", frozenset())))


_hints = cache(get_type_hints)
_OPTIONAL = ("positional", "checked_at")  # what a class may declare, whatever its contract


@cache
def mistyped_in(kind: type) -> str | None:
    """The first setting that no spec could set, or fact of the class that is of another type than
    its contract says; None where there is none."""
    try:
        hints = _hints(kind)
    except Exception as error:  # whatever an annotation that is text raises when it is read
        return f"__annotations__ cannot be read: {type(error).__name__}: {error}"
    for key in settings_fields(kind):
        if hints[key] not in _READERS:
            allowed = ", ".join(map(_type_name, _READERS))
            return f"{key} is a setting of type {_type_name(hints[key])}; allowed are {allowed}"
    for key, hint in hints.items():
        if get_origin(hint) is not ClassVar or not hasattr(kind, key):
            continue
        (wanted,) = get_args(hint)
        value = getattr(kind, key)
        allowed_values = get_args(wanted) if get_origin(wanted) is Literal else ()
        simple = wanted in (bool, int, str) and type(value) is not wanted
        if simple or (allowed_values and value not in allowed_values):
            return f"{key} is {value!r}; its contract is {_type_name(wanted)}"
    for key, value in vars(kind).items():
        plain = isinstance(value, bool | int | float | str | tuple | list | dict)
        known = (
            key in hints or key in _OPTIONAL or any(hasattr(one, key) for one in kind.__mro__[1:])
        )
        if plain and key[0] != "_" and not known:
            return (
                f"{key} = {value!r} has no type; write {key}: {type(value).__name__} for a "
                f"setting, {key}: ClassVar for a constant of the class, or _{key}"
            )
    return None


def _type_name(kind: Any) -> str:
    """As it is written: ``int``, ``str | None``."""
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def settings_fields(kind: type) -> dict[str, Field[Any]]:
    """The fields of a dataclass that its ``__init__`` takes, by name, in its order."""
    return {field.name: field for field in fields(kind) if field.init}


def spec_fields(kind: type) -> dict[str, Field[Any]]:
    """The settings that a spec may set."""
    return {key: field for key, field in settings_fields(kind).items() if field.metadata != LEARNT}


def names_of_fields(kind: type) -> dict[str, str]:
    """The field of each setting by its name in a spec or an option: ``on-error -> on_error``."""
    return {flag_of(field): key for key, field in spec_fields(kind).items()}


def required(kind: type) -> list[str]:
    """The settings that have no default, which a spec must give."""
    return [key for key, field in settings_fields(kind).items() if field.default is MISSING]


def as_stored(value: Any) -> Any:
    """As JSON holds the value of a setting: an interval or a range as it is written in a spec."""
    return str(value) if isinstance(value, Interval | Range) else value


def as_spec(value: Any) -> str:
    """As a spec writes the value of a setting: a bool is ``yes`` or ``no``."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def option_words(thing: object) -> list[str]:
    """The options of a command line that stand for all settings of an object that are set."""
    words: list[str] = []
    for key, field in spec_fields(type(thing)).items():
        value, flag = getattr(thing, key), f"--{flag_of(field)}"
        if field.default is False:  # a switch
            words += [flag] if value else []
        elif value is not None:
            words += [flag, as_spec(value)]
    return words


def check_bounds(
    kind: type, name: str, given: Mapping[str, Any], options: Collection[str] = ()
) -> None:
    """Raise UsageError for the first of some settings, by field, that is out of the bounds with
    which its class declares it; both ends of a range are held to them, and None is no value.
    ``options`` are those that were given as options of a command line, and are named so."""
    for field, declaration in declarations(kind):
        value = given.get(field.name)
        ends = {Interval: ("first", "last"), Range: ("low", "high")}.get(type(value), ())
        for one in [getattr(value, end) for end in ends] or [value]:
            if one is not None and (wrong := declaration.wrong(one)) is not None:
                option = f"--{flag_of(field)} {as_spec(value)}"
                setting = f"{name}: {flag_of(field)}={as_spec(value)}"
                raise UsageError(f"{option if field.name in options else setting} {wrong}")


_YES_NO = {"yes": True, "true": True, "True": True, "no": False, "false": False, "False": False}


#: By the type of a setting, how its text is read; a class with another is refused when loaded.
_READERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: _YES_NO.__getitem__,
    str: str,
    str | None: str,  # None is what is not learnt yet, or not given
    int | None: int,
    float | None: float,
    Interval: Interval.parse,
    Range: Range.parse,
}


def read_setting(kind: type, known: Mapping[str, Field[Any]], key: str, value: Any) -> Any:
    """Read one setting, a text or what is written of it, by the annotation of its field."""
    name = kind.__module__.rpartition(".")[2].replace("_", "-")
    if key not in known:
        raise unknown(f"setting of {name!r}", key, [flag_of(field) for field in known.values()])
    wanted = _hints(kind)[key]
    if value is None and type(None) in get_args(wanted):  # what is not learnt yet, or not given
        return None
    text = as_spec(value)
    try:
        return _READERS[wanted](text)
    except (ValueError, KeyError):
        form = {
            Interval: "a range like -8..7",
            Range: "a number, or a range like 0.5..2",
            bool: "yes or no",
            int: "an integer",
        }
        told = f"{name}: {flag_of(known[key])}={text!r} is not {form.get(wanted, 'a number')}"
        raise UsageError(told) from None
