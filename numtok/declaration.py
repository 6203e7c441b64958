"""Declaration of settings: each setting is declared once, as a field of a frozen dataclass.

The class contains the settings of a command (:class:`CommandSettings`), or it is a part in a
registry, such as a head. The declaration of a setting determines its option and help text, its key
in ``numtok.toml``, sweep files and specs, its allowed values, its entry in the settings of an
artifact, its form in the command that rebuilds the artifact, and its line in
``docs/site``.

>>> @dataclass(frozen=True)
... class Fry(CommandSettings):
...     eggs: int = setting(2, "Number of eggs.", at_least=1, counts="version")
...     fat: str | None = setting(
...         None, "Kind of fat.", flag="in", shown_default="butter", counts="version"
...     )
>>> settings = Fry(eggs=3, fat="lard")
>>> from numtok.setting_versions import of_version
>>> of_version(settings)
{'eggs': 3, 'fat': 'lard'}
>>> from numtok.setting_words import command_line
>>> command_line(settings)
['--eggs', '3', '--in', 'lard']
>>> Fry(eggs=0)
Traceback (most recent call last):
numtok.declaration.SettingError: --eggs must be at least 1 (got 0)
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
from numtok.names import split_names
from numtok.setting_values import READERS, Bare, Interval, Range, as_spec, shown_value, with_value

_KEY = "setting"  # of a field's metadata
#: Metadata of a field that is learned from data: specs cannot set it, but it is stored.
LEARNED = {"learned": True}
_LONGEST_CHOICES = 16  # characters of a placeholder that lists the values
#: In a docstring: names of settings, and their description below, indented.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)\n((?:    .*\n?)+)", re.M)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a command or a registered part, with everything that is declared about it.

    flag
        Name of the option, and key of the setting in specs and files. It is derived from the
        field's name unless declared.
    aliases
        Other names that work wherever ``flag`` does; the help does not list them.
    formerly
        Earlier names, which work like ``aliases`` but print a note with the new name.
    learned
        True if the value is learned from data and cannot be set.
    metavar
        Placeholder for the value in the help. It is derived from the other fields unless declared.
    section
        Heading of the panel that lists the option in the help.
    advanced
        True for a rarely used option, which the help lists in its last panel.
    argument
        True for a positional argument. Positional arguments follow the order of the fields.
    expands
        True if the value names a registered part whose settings become further options.
    above, at_least, below, at_most, choices
        Bounds of the value, or the list of allowed values.
    may_be_empty
        True if the empty string is a value. Otherwise an option rejects it, because a script that
        passes an unset variable would get the default instead.
    refuse
        Function that checks a value. For a rejected value, it returns the violated requirement,
        such as ``must be even``, optionally followed by a period and advice. Otherwise, it returns
        None.
    registry
        Name of a registry's folder, such as ``heads``, if the values are names or specs of parts in
        this registry.
    of
        ``texts`` or ``tables`` if the setting applies to only one of them.
    replaces
        Settings in ``numtok.toml`` that are ignored if this option is given on the command line.
    swept
        True if a sweep file may set the value.
    counts
        ``version`` if the value is part of an artifact's version; ``experiment`` if it also
        distinguishes experiments, each of which may be run with several seeds; otherwise None.
    came_later
        True if some artifacts are older than the setting. Its default is then left out of versions
        and of the command that rebuilds an artifact.
    omit_default
        True if the default is left out of the command that rebuilds an artifact.
    joined
        True if the setting takes several names, written as one word (a CSV record).
    single
        True if the option may be given only once. Otherwise the last value counts. The former also
        holds for joined settings.
    repeat
        True if the setting is part of the command that rebuilds an artifact.
    shown_default
        Default as displayed in the help, if it differs from the field's default.
    """

    name: str = ""
    type: Any = None
    default: Any  # MISSING if a value must be given
    help: str = ""
    flag: str = ""
    aliases: tuple[str, ...] = ()
    formerly: tuple[str, ...] = ()
    learned: bool = False
    metavar: str | None = None
    section: str | None = None
    advanced: bool = False
    argument: bool = False
    expands: bool = False
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    may_be_empty: bool = False
    refuse: Callable[[Any], str | None] | None = None
    registry: str = ""
    of: str | None = None
    replaces: tuple[str, ...] = ()
    swept: bool = True
    counts: Literal["version", "experiment"] | None = None
    came_later: bool = False
    omit_default: bool = False
    joined: bool = False
    single: bool = False
    repeat: bool = True
    shown_default: str | None = None

    @property
    def required(self) -> bool:
        """True if the setting has no default, so a value must be given."""
        return self.default is MISSING

    @property
    def several(self) -> bool:
        """True if the setting takes any number of values."""
        return get_args(self.type)[1:] == (...,)

    @property
    def switch(self) -> bool:
        """True if the option is a switch, which takes no value."""
        return self.default is False

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the option: its flag, aliases and earlier names."""
        return (self.flag, *self.aliases, *self.formerly)

    @property
    def argument_name(self) -> str:
        """Name of the Python argument. This is the field's name or, if that is an earlier name of
        the option, the current name."""
        if self.name.replace("_", "-") in self.formerly:
            return self.flag.replace("-", "_")
        return self.name

    @property
    def restriction(self) -> str:
        """Data that the setting applies to, such as ``tables only``; empty if it applies to all
        data."""
        return {"texts": "texts only", "tables": "tables only"}.get(self.of or "", "")

    @property
    def sentence(self) -> str:
        """Help text followed by the restriction and the displayed default, as in ``Rows to train on
        (tables only; default all)``."""
        notes = [self.restriction] if self.restriction else []
        notes += [f"default {self.shown_default}"] if self.shown_default is not None else []
        return f"{without_stop(self.help)} ({'; '.join(notes)})" if notes else self.help

    @property
    def default_in_spec(self) -> str | None:
        """Default in the syntax of a spec; None if the default is missing, None or empty."""
        return None if self.default in (MISSING, None, "") else as_spec(self.default)

    @property
    def allowed(self) -> str:
        """Bounds or choices in words, such as ``above 0 and below 1``; empty if any value is
        allowed."""
        if self.choices:
            return " or ".join([*filter(None, [", ".join(self.choices[:-1])]), self.choices[-1]])
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least:,} to {self.at_most:,}"
        parts = [f"above {self.above:g}"] if self.above is not None else []
        parts += [f"at least {self.at_least:g}"] if self.at_least is not None else []
        if self.below is not None:
            parts.append("finite" if self.below == math.inf else f"below {self.below:g}")
        parts += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(parts)

    def wrong(self, value: Any) -> str | None:
        """Return the requirement that a value violates, such as ``must be at least 0``; None if the
        value is accepted. The value None is always accepted."""
        if value is None:
            return None
        if self.choices:
            return None if value in self.choices else f"must be {self.allowed}"
        if self.refuse is not None:
            return self.refuse(value)
        if value == "" or (self.several and not self.joined and "" in value):
            may_be_empty = self.argument or self.learned or self.may_be_empty or self.default == ""
            return None if may_be_empty else "must not be empty"
        ends = dataclasses.astuple(value) if isinstance(value, Interval | Range) else (value,)
        inside = all(
            (self.above is None or end > self.above)
            and (self.at_least is None or end >= self.at_least)
            and (self.below is None or end < self.below)
            and (self.at_most is None or end <= self.at_most)
            for end in ends
        )
        return None if inside else f"must be {self.allowed}"

    def read(self, value: Any) -> Any:
        """Convert a value from a spec, a file or stored JSON to the type of the setting.

        Raises ValueError if the value cannot be converted. The message is the expected form, such
        as ``an integer``.
        """
        if self.several:
            if isinstance(value, str):
                return split_names(value) or ("",) if self.joined else (value,)
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise ValueError("a list of strings")
            return tuple(value)
        optional = type(None) in get_args(self.type)
        if value is None and optional:
            return None
        reader, form = READERS[get_args(self.type)[0] if optional else self.type]
        if isinstance(value, str | int | float | Interval | Range):
            with suppress(ValueError, KeyError):
                return reader(as_spec(value))
        raise ValueError(form)


def setting(default: Any = MISSING, help: str = "", **facts: Any) -> Any:
    """Declare a field of a dataclass as a setting.

    Omit ``default`` if a value is required. ``help`` is the help text, and ``facts`` are further
    fields of :class:`Setting`.
    """
    declared = Setting(default=default, help=help, **facts)
    return dataclasses.field(default=default, metadata={_KEY: declared})


def flag_named(key: str) -> str:
    """Return the option name that is derived from a field name: ``on_error`` becomes
    ``on-error``."""
    return key.rstrip("_").replace("_", "-")


def without_stop(text: str) -> str:
    """Return a text without its final period; an ellipsis is kept."""
    return text if text.endswith("..") else text.removesuffix(".")


def settings_in(kind: Any, *, learned: bool = False) -> Mapping[str, Setting]:
    """Return the settings of a class in order of declaration, keyed by field name. Settings learned
    from data are only included if ``learned`` is true."""
    declared = _declared(kind)
    return {key: setting for key, setting in declared.items() if learned or not setting.learned}


@cache
def _declared(kind: Any) -> Mapping[str, Setting]:
    hints, helps = get_type_hints(kind), _helps(kind.__doc__ or "")
    settings = {}
    for field in dataclasses.fields(kind):
        if not field.init or field.default_factory is not MISSING:
            continue
        declared: Setting = field.metadata.get(_KEY) or Setting(default=MISSING)
        settings[field.name] = replace(
            declared,
            name=field.name,
            type=hints[field.name],
            default=field.default,
            help=declared.help or helps.get(field.name, ""),
            flag=declared.flag or flag_named(field.name),
            metavar=declared.metavar or _metavar(field.name, hints[field.name], declared),
            learned=field.metadata == LEARNED,
        )
    return settings


def _metavar(name: str, hint: Any, declared: Setting) -> str | None:
    if declared.argument:
        several = get_args(hint)[1:] == (...,)
        return f"{name.upper().removesuffix('S')}..." if several else name.upper()
    choices = "|".join(declared.choices)
    if choices and len(choices) <= _LONGEST_CHOICES:
        return choices
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
    """Convert values, keyed by field name, to the types of a class's settings.

    ``given`` contains strings, or values from stored JSON. ``options`` lists the fields that were
    set by command-line options; error messages then show the option. Raises UsageError for an
    unknown setting, a value of the wrong type, or a value out of bounds.
    """
    name = kind.__module__.rpartition(".")[2].replace("_", "-")
    known, read = settings_in(kind, learned=learned), {}
    for key, value in given.items():
        if key not in known:
            raise unknown(f"setting of {name!r}", key, [each.flag for each in known.values()])
        setting = known[key]
        subject = f"--{setting.flag}" if key in options else f"{name}: {setting.flag}"
        if isinstance(value, Bare) and setting.type is not bool:
            raise UsageError(f"{subject} needs a value. Write {setting.flag}=VALUE")
        try:
            read[key] = setting.read(value)
        except ValueError as error:
            wrong = f"must be {error}"
            raise UsageError(f"{subject} {with_value(wrong, repr(as_spec(value)))}") from None
        if (wrong_value := setting.wrong(read[key])) is not None:
            shown = as_spec(value if isinstance(value, str) else read[key])
            shown = repr(shown) if isinstance(read[key], str) else shown
            raise UsageError(f"{subject} {with_value(wrong_value, shown)}")
    return read


class SettingError(UsageError):
    """Raised if a setting rejects a value. ``key`` is the field name of the setting.

    typed
        The value as the user typed it; None if unknown.
    """

    def __init__(self, key: str, flag: str, value: Any, wrong: str) -> None:
        super().__init__(key, flag, value, wrong)
        self.key, self.flag, self.value, self.wrong = key, flag, value, wrong
        self.typed: str | None = None

    def __str__(self) -> str:
        shown = shown_value(self.value)
        if self.typed is not None and not isinstance(self.value, str):
            shown = self.typed
        return f"--{self.flag} {with_value(self.wrong, shown or repr(shown))}"

    def at(self, place: str) -> str:
        """Return the message for a value that was read from a file; ``place`` names the file and
        the table in it."""
        return f"{place} {self.flag} {with_value(self.wrong, shown_value(self.value))}"


class CommandSettings:
    """Base class for the settings of a command. Creating an object with a rejected value raises
    SettingError."""

    def __post_init__(self) -> None:
        for key, setting in settings_in(type(self)).items():
            if (wrong := setting.wrong(getattr(self, key))) is not None:
                raise self.error(key, wrong)

    def error(self, key: str, wrong: str) -> SettingError:
        """Return the error for the current value of the field ``key``. ``wrong`` states the
        violated requirement (see :attr:`Setting.refuse`)."""
        return SettingError(key, settings_in(type(self))[key].flag, getattr(self, key), wrong)
