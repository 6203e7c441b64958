"""A setting is declared once, as a field of a frozen dataclass.

The class is the settings of a command (:class:`CommandSettings`) or a part in a registry, such as a
head. Each setting becomes an option and its help, a key of ``numtok.toml``, of a sweep file and of
a spec, bounds, an entry in an artifact's settings, words of the command that rebuilds the artifact,
and a line of ``docs/guide/reference.md``.

>>> @dataclass(frozen=True)
... class Fry(CommandSettings):
...     eggs: int = setting(2, "Number of eggs.", at_least=1, counts="version")
...     fat: str | None = setting(None, "Default: butter.", flag="in", counts="version")
>>> settings = Fry(eggs=3, fat="lard")
>>> of_version(settings)
{'eggs': 3, 'fat': 'lard'}
>>> command_line(settings)
['--eggs', '3', '--in', 'lard']
>>> Fry(eggs=0)
Traceback (most recent call last):
numtok.declaration.SettingError: --eggs 0 is not possible; it is 1 or more
"""

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from numtok.errors import UsageError, unknown
from numtok.names import join_names

_KEY = "setting"  # of a field's metadata
#: Metadata of a field that is learned from data: no spec sets it, but it is stored.
LEARNT = {"learnt": True}
_OPTION = re.compile(r"--([a-z][a-z-]*)")  # in a message
#: In a docstring: names of settings, and their description below, indented.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)\n((?:    .*\n?)+)", re.M)


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


_YES_NO = {"yes": True, "true": True, "True": True, "no": False, "false": False, "False": False}

#: For each type of a setting: the function that reads a text, and the name of what it accepts.
_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "an integer"),
    float: (float, "a number"),
    bool: (_YES_NO.__getitem__, "yes or no"),
    str: (str, "a string"),
    Interval: (Interval.parse, "a range like -8..7"),
    Range: (Range.parse, "a number, or a range like 0.5..2"),
}
#: The types that a setting of a registry part may have. None: not learned yet, or not given.
SPEC_TYPES = (int, float, bool, str, str | None, int | None, float | None, Interval, Range)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting of a class: its field, and what is declared with it.

    flag
        The name of the option and of the key in a spec or a file; by default from the field's name.
    learned
        True if it is learned from data and cannot be set.
    metavar
        Placeholder for a value in the help; by default from the type and the other facts.
    section
        Heading of its panel in the help.
    argument
        True for a word without a flag, in the order of the fields.
    expands
        True if it names a registry part whose settings become options.
    above, at_least, below, at_most, choices
        What a value must be.
    refuse
        Returns what is wrong with a value, as the end of a sentence; None if nothing is.
    registry
        The folder of the registry, such as ``heads``, whose names or specs are its values.
    of
        ``texts`` or ``tables`` if it applies to only one of them.
    replaces
        Settings of ``numtok.toml`` that this one overrides if it is typed.
    swept
        True if a sweep file may set it.
    counts
        What it is part of: an artifact's ``version``, or also the label of an ``experiment``, of
        which several seeds are runs.
    came_later
        True if its default is left out of versions and that command: some artifacts are older.
    omit_default
        True if its default is left out of the command that rebuilds an artifact.
    joined
        True if its values, names, are written as one word, a CSV record.
    repeat
        True if it is part of the command that rebuilds an artifact.
    shown_default
        The default as shown in the help.
    """

    name: str = ""
    type: Any = None
    default: Any  # MISSING if a value must be given
    help: str = ""
    flag: str = ""
    learned: bool = False
    metavar: str | None = None
    section: str | None = None
    argument: bool = False
    expands: bool = False
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    refuse: Callable[[Any], str | None] | None = None
    registry: str = ""
    of: str | None = None
    replaces: tuple[str, ...] = ()
    swept: bool = True
    counts: Literal["version", "experiment"] | None = None
    came_later: bool = False
    omit_default: bool = False
    joined: bool = False
    repeat: bool = True
    shown_default: str | None = None

    @property
    def required(self) -> bool:
        """True if it has no default."""
        return self.default is MISSING

    @property
    def several(self) -> bool:
        """True if it takes any number of values."""
        return get_args(self.type)[1:] == (...,)

    @property
    def switch(self) -> bool:
        """True for an option without a value, which turns something on."""
        return self.default is False

    @property
    def sentence(self) -> str:
        """The line of help; it begins with what alone the setting applies to."""
        if self.of is None:
            return self.help
        return f"{self.of.capitalize()}: {self.help[0].lower()}{self.help[1:]}"

    @property
    def usual(self) -> str | None:
        """The default as a spec writes it; None if it is missing, None or empty."""
        return None if self.default in (MISSING, None, "") else as_spec(self.default)

    @property
    def allowed(self) -> str:
        """The bounds or choices in words, such as ``above 0 and below 1``; empty without any."""
        if self.choices:
            return " and ".join([", ".join(self.choices[:-1]), self.choices[-1]])
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least:,} to {self.at_most:,}"
        parts = [f"above {self.above:g}"] if self.above is not None else []
        parts += [f"{self.at_least:g} or more"] if self.at_least is not None else []
        if self.below is not None:
            parts.append("finite" if self.below == math.inf else f"below {self.below:g}")
        parts += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(parts)

    def wrong(self, value: Any) -> str | None:
        """Return what is wrong with a value; None if nothing is. A value of None is not given."""
        if value is None:
            return None
        if self.choices:
            return None if value in self.choices else f"is not possible; allowed are {self.allowed}"
        if self.refuse is not None:
            return self.refuse(value)
        ends = dataclasses.astuple(value) if isinstance(value, Interval | Range) else (value,)
        inside = all(
            (self.above is None or end > self.above)
            and (self.at_least is None or end >= self.at_least)
            and (self.below is None or end < self.below)
            and (self.at_most is None or end <= self.at_most)
            for end in ends
        )
        return None if inside else f"is not possible; it is {self.allowed}"

    def read(self, value: Any) -> Any:
        """Read a value from a spec, a file or stored JSON. ValueError names what it must be."""
        if self.several:
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
                raise ValueError("a list of strings")
            return tuple(values)
        optional = type(None) in get_args(self.type)
        if value is None and optional:
            return None
        wanted = get_args(self.type)[0] if optional else self.type
        reader, form = _READERS[wanted]
        if isinstance(value, str | int | float | Interval | Range):
            with suppress(ValueError, KeyError):
                return reader(as_spec(value))
        raise ValueError(form)

    def words(self, value: Any) -> list[str]:
        """Return the words of a command line that give it a value."""
        if value in (None, ()) or (self.switch and value is False):
            return []
        values = value if isinstance(value, tuple) else (value,)
        flag = [] if self.argument else [f"--{self.flag}"]
        if self.joined:
            values = (join_names(values),)
        if self.switch:
            return flag
        return [word for one in values for word in (*flag, as_spec(one))]


def setting(default: Any = MISSING, help: str = "", **facts: Any) -> Any:
    """Declare a field as a setting: its default (none if a value must be given), its line of help,
    and further facts (:class:`Setting`)."""
    declared = Setting(default=default, help=help, **facts)
    return dataclasses.field(default=default, metadata={_KEY: declared})


def settings_in(kind: Any, *, learned: bool = False) -> Mapping[str, Setting]:
    """Return the settings of a class by field, in order; ``learned`` includes those it learns."""
    return {key: one for key, one in _declared(kind).items() if learned or not one.learned}


@cache
def _declared(kind: Any) -> Mapping[str, Setting]:
    hints, helps = get_type_hints(kind), _helps(kind.__doc__ or "")
    found = {}
    for field in dataclasses.fields(kind):
        if not field.init or field.default_factory is not MISSING:
            continue
        declared: Setting = field.metadata.get(_KEY) or Setting(default=MISSING)
        found[field.name] = replace(
            declared,
            name=field.name,
            type=hints[field.name],
            default=field.default,
            help=declared.help or helps.get(field.name, ""),
            flag=declared.flag or flag_named(field.name),
            metavar=declared.metavar or _metavar(field.name, hints[field.name], declared),
            learned=field.metadata == LEARNT,
        )
    return found


def _metavar(name: str, hint: Any, declared: Setting) -> str | None:
    if declared.argument:
        several = get_args(hint)[1:] == (...,)
        return f"{name.upper().removesuffix('S')}..." if several else name.upper()
    if declared.choices:
        return "|".join(declared.choices)
    if declared.registry:
        return "SPEC"
    if declared.joined:
        return "A,B,..."
    return {int: "N", int | None: "N", Path: "FILE", Path | None: "FILE"}.get(hint)


def _helps(docstring: str) -> dict[str, str]:
    r"""Read the descriptions of settings in a class's docstring.

    >>> _helps("An egg.\n\nminutes\n    How long ``it`` boils;\n    4 is soft.\n")
    {'minutes': 'How long it boils; 4 is soft.'}
    """
    return {
        name: " ".join(entry.replace("``", "").split())
        for names, entry in _ENTRY.findall(inspect.cleandoc(docstring))
        for name in names.split(", ")
    }


def read_settings(
    kind: type, given: Mapping[str, Any], options: Collection[str] = (), *, learned: bool = False
) -> dict[str, Any]:
    """Read settings of a class by field: texts, or what stored JSON has.

    ``options`` are those given as options of a command line; messages about bounds name them so.
    Raises UsageError for an unknown setting, a text that is not a value of its type, and a value
    out of bounds.
    """
    name = kind.__module__.rpartition(".")[2].replace("_", "-")
    known, read = settings_in(kind, learned=learned), {}
    for key, value in given.items():
        if key not in known:
            raise unknown(f"setting of {name!r}", key, [one.flag for one in known.values()])
        one, text = known[key], as_spec(value)
        try:
            read[key] = one.read(value)
        except ValueError as error:
            raise UsageError(f"{name}: {one.flag}={text!r} is not {error}") from None
        if (wrong := one.wrong(read[key])) is not None:
            text = as_spec(read[key])
            place = f"--{one.flag} {text}" if key in options else f"{name}: {one.flag}={text}"
            raise UsageError(f"{place} {wrong}")
    return read


class SettingError(UsageError):
    """A value that a setting, the field ``key``, cannot have; says where the value was given."""

    def __init__(self, key: str, flag: str, value: Any, wrong: str) -> None:
        super().__init__(key, flag, value, wrong)
        self.key, self.flag, self.value, self.wrong = key, flag, value, wrong

    def __str__(self) -> str:
        shown = repr(self.value) if isinstance(self.value, str) else str(self.value)
        return f"--{self.flag} {shown} {self.wrong}"

    def at(self, place: str) -> str:
        """Return the message for a value in a file; ``place`` names the file and its table."""
        return f"{place} {self.flag} = {self.value!r} {self.wrong}"


class CommandSettings:
    """The settings of a command. An object with a value out of bounds cannot be made."""

    def __post_init__(self) -> None:
        for key, one in settings_in(type(self)).items():
            if (wrong := one.wrong(getattr(self, key))) is not None:
                raise self.error(key, wrong)

    def error(self, key: str, wrong: str) -> SettingError:
        """Return the error for the value of a setting."""
        return SettingError(key, settings_in(type(self))[key].flag, getattr(self, key), wrong)


#: Refuses options that do not apply to the data: ``texts`` or ``tables``, and in words.
CheckApplies = Callable[[str, str], None]


def no_options(of: str, told: str) -> None:
    """Accept all settings: the check of a stage that no command line called."""


def flag_named(key: str) -> str:
    """Return the option of a field that declares none: ``on_error -> on-error``."""
    return key.rstrip("_").replace("_", "-")


def in_python(message: str, settings: type | None = None) -> str:
    """Replace the options in a message by the Python arguments of the same settings.

    An option that ``settings`` does not declare becomes its name with underscores.

    >>> in_python("--text-field must be a name. Leave out --text-tokenizer")
    'text_field must be a name. Leave out text_tokenizer'
    """
    names = {} if settings is None else {one.flag: key for key, one in _declared(settings).items()}
    return _OPTION.sub(lambda match: names.get(match[1], match[1].replace("-", "_")), message)


def of_version(settings: Any, parts: Collection[str] = ("version", "experiment")) -> dict[str, Any]:
    """Return the settings that a version depends on, by field; all defaults must be filled in."""
    found = {}
    for key, one in settings_in(type(settings)).items():
        value = getattr(settings, key)
        if one.counts in parts and not (one.came_later and value == one.default):
            found[key] = value
    return found


def of_experiment(settings: Any) -> dict[str, Any]:
    """Return the settings that distinguish experiments, by field."""
    return of_version(settings, ("experiment",))


def command_line(settings: Any, of: str | None = None) -> list[str]:
    """Return the words that stand for the settings of a command or a part, with all defaults filled
    in; ``of`` is what they are for, ``texts`` or ``tables``."""
    words: list[str] = []
    for key, one in settings_in(type(settings)).items():
        value = getattr(settings, key)
        usual = (one.omit_default or one.came_later) and value == one.default
        foreign = of is not None and one.of not in (None, of)
        if one.repeat and not usual and not foreign:
            words += one.words(value)
    return words


def as_stored(value: Any) -> Any:
    """Return the value of a setting as JSON stores it: an interval or a range is a text."""
    return str(value) if isinstance(value, Interval | Range) else value


def as_spec(value: Any) -> str:
    """Return the value of a setting as a spec writes it: a bool is ``yes`` or ``no``."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
