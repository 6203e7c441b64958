"""A setting is declared once, as a field of a frozen dataclass.

The class is the settings of a command (:class:`CommandSettings`) or a part in a registry, such as a
head. Each setting becomes an option and its help, a key of ``numtok.toml``, of a sweep file and of
a spec, bounds, an entry in an artifact's settings, words of the command that rebuilds the artifact,
and a line of ``docs/guide/reference.md``.

>>> @dataclass(frozen=True)
... class Fry(CommandSettings):
...     eggs: int = setting(2, "Number of eggs.", at_least=1, counts="version")
...     fat: str | None = setting(
...         None, "Kind of fat.", flag="in", shown_default="butter", counts="version"
...     )
>>> settings = Fry(eggs=3, fat="lard")
>>> of_version(settings)
{'eggs': 3, 'fat': 'lard'}
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
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from numtok.errors import UsageError, unknown
from numtok.names import join_names
from numtok.setting_names import flag_named, note_renamed
from numtok.setting_values import READERS, Bare, Interval, Range, as_spec, shown_value, with_value

_KEY = "setting"  # of a field's metadata
#: Metadata of a field that is learned from data: specs cannot set it, but it is stored.
LEARNED = {"learned": True}
_LONGEST_CHOICES = 16  # characters of a placeholder that lists the values
_OPTION = re.compile(r"--([a-z][a-z-]*)")  # in a message
#: In a docstring: names of settings, and their description below, indented.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)\n((?:    .*\n?)+)", re.M)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting of a class: its field, and what is declared with it.

    flag
        Name of the option and of the key in a spec or a file; by default from the field's name.
    aliases
        Other names that work wherever ``flag`` does; the help does not list them.
    formerly
        Earlier names, which work like ``aliases`` but print a note with the new name.
    learned
        True if it is learned from data and cannot be set.
    metavar
        Placeholder for a value in the help; by default from the type and the other facts.
    section
        Heading of its panel in the help.
    advanced
        True for a rare option, which the help lists in its last panel.
    argument
        True for a word without a flag, in the order of the fields.
    expands
        True if it names a registry part whose settings become options.
    above, at_least, below, at_most, choices
        What a value must be.
    refuse
        Returns what a rejected value must be, such as ``must be even``, and after a period what
        to do instead; None if the value is accepted.
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
        The default as shown in the help; by default that of the field, if it is not None.
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
    def names(self) -> tuple[str, ...]:
        """Every name of the option: its flag, aliases and earlier names."""
        return (self.flag, *self.aliases, *self.formerly)

    @property
    def argument_name(self) -> str:
        """Name of the argument in Python: the field's, or the flag's if the field has an earlier
        name."""
        if self.name.replace("_", "-") in self.formerly:
            return self.flag.replace("-", "_")
        return self.name

    @property
    def restriction(self) -> str:
        """The data that the setting applies to, in words; empty if it applies to all."""
        return {"texts": "texts only", "tables": "tables only"}.get(self.of or "", "")

    @property
    def sentence(self) -> str:
        """The help with its restriction and a default that is not the field's, as in
        ``Rows to train on (tables only; default all)``."""
        return self.described(self.shown_default)

    def described(self, default: str | None) -> str:
        """Return the help with its restriction and a default in parentheses at the end."""
        notes = [self.restriction] if self.restriction else []
        notes += [f"default {default}"] if default is not None else []
        return f"{without_stop(self.help)} ({'; '.join(notes)})" if notes else self.help

    @property
    def default_in_spec(self) -> str | None:
        """The default as a spec writes it; None if it is missing, None or empty."""
        return None if self.default in (MISSING, None, "") else as_spec(self.default)

    @property
    def allowed(self) -> str:
        """The bounds or choices in words, such as ``above 0 and below 1``; empty without any."""
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
        """Return what a rejected value must be, as in ``must be at least 0``; None if the value is
        accepted, as None always is."""
        if value is None:
            return None
        if self.choices:
            return None if value in self.choices else f"must be {self.allowed}"
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
        return None if inside else f"must be {self.allowed}"

    def read(self, value: Any) -> Any:
        """Read a value from a spec, a file or stored JSON.

        Raises ValueError, whose message names what the value must be.
        """
        if self.several:
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
                raise ValueError("a list of strings")
            return tuple(values)
        optional = type(None) in get_args(self.type)
        if value is None and optional:
            return None
        reader, form = READERS[get_args(self.type)[0] if optional else self.type]
        if isinstance(value, str | int | float | Interval | Range):
            with suppress(ValueError, KeyError):
                return reader(as_spec(value))
        raise ValueError(form)

    def words(self, value: Any) -> list[str]:
        """Return the words of a command line that set a value."""
        if value in (None, ()) or (self.switch and value is False):
            return []
        values = value if isinstance(value, tuple) else (value,)
        flag = [] if self.argument else [f"--{self.flag}"]
        if self.joined:
            values = (join_names(values),)
        if self.switch:
            return flag
        return [word for item in values for word in (*flag, as_spec(item))]


def setting(default: Any = MISSING, help: str = "", **facts: Any) -> Any:
    """Declare a field as a setting: its default (omit it if a value is required), its line of help,
    and further facts (see :class:`Setting`)."""
    declared = Setting(default=default, help=help, **facts)
    return dataclasses.field(default=default, metadata={_KEY: declared})


def without_stop(text: str) -> str:
    """Return a text without the period at its end; an ellipsis is kept."""
    return text if text.endswith("..") else text.removesuffix(".")


def settings_in(kind: Any, *, learned: bool = False) -> Mapping[str, Setting]:
    """Return the settings of a class by field, in order; ``learned`` includes those it learns."""
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
    """Read settings of a class by field, from text or from values of stored JSON.

    ``options`` names the settings that were given as options; messages name them so.
    Raises UsageError for an unknown setting, a text that is not a value of its type, and a value
    out of bounds.
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
    """A value that the setting of the field ``key`` rejects.

    typed
        The value as the user typed it, if that is known.
    """

    def __init__(self, key: str, flag: str, value: Any, wrong: str) -> None:
        super().__init__(key, flag, value, wrong)
        self.key, self.flag, self.value, self.wrong = key, flag, value, wrong
        self.typed: str | None = None

    def __str__(self) -> str:
        shown = shown_value(self.value)
        if self.typed is not None and not isinstance(self.value, str):
            shown = self.typed
        return f"--{self.flag} {with_value(self.wrong, shown)}"

    def at(self, place: str) -> str:
        """Return the message for a value in a file; ``place`` names the file and its table."""
        return f"{place} {self.flag} {with_value(self.wrong, shown_value(self.value))}"


class CommandSettings:
    """Settings of a command. An object with a value out of bounds cannot be made."""

    def __post_init__(self) -> None:
        for key, setting in settings_in(type(self)).items():
            if (wrong := setting.wrong(getattr(self, key))) is not None:
                raise self.error(key, wrong)

    def error(self, key: str, wrong: str) -> SettingError:
        """Return the error for a rejected value; ``wrong`` is as :attr:`Setting.refuse` returns."""
        return SettingError(key, settings_in(type(self))[key].flag, getattr(self, key), wrong)


#: Rejects options that do not apply to the data, which are ``texts`` or ``tables``; the second
#: argument describes the data in a message.
CheckApplies = Callable[[str, str], None]


def no_options(of: str, description: str) -> None:
    """Accept all settings: the check of a stage that was not called from a command line."""


def key_of(settings: Iterable[Setting], name: str, *, as_argument: bool = False) -> str | None:
    """Return the field of the setting with a name, that of its option or of its field; None if no
    setting has it. An earlier name is noted, for Python with the name of the argument."""
    spelled = name.replace("_", "-")
    settings = list(settings)
    for setting in settings:
        if spelled in (setting.flag, *setting.aliases) or (
            name == setting.name and spelled not in setting.formerly
        ):
            return setting.name
    for setting in settings:
        if spelled in setting.formerly:
            note_renamed(name, setting.argument_name if as_argument else setting.flag)
            return setting.name
    return None


def in_python(message: str, settings: type | None = None) -> str:
    """Replace the options in a message by the Python arguments of the same settings.

    An option that ``settings`` does not declare becomes its name with underscores.

    >>> in_python("--text-field must be a name. Leave out --text-tokenizer")
    'text_field must be a name. Leave out text_tokenizer'
    """
    names = {}
    if settings is not None:
        names = {setting.flag: setting.argument_name for setting in _declared(settings).values()}
    return _OPTION.sub(lambda match: names.get(match[1], match[1].replace("-", "_")), message)


def of_version(settings: Any, parts: Collection[str] = ("version", "experiment")) -> dict[str, Any]:
    """Return the settings that a version depends on, by field; all defaults must be filled in."""
    version = {}
    for key, setting in settings_in(type(settings)).items():
        value = getattr(settings, key)
        if setting.counts in parts and not (setting.came_later and value == setting.default):
            version[key] = value
    return version


def of_experiment(settings: Any) -> dict[str, Any]:
    """Return the settings that distinguish experiments, by field."""
    return of_version(settings, ("experiment",))


def command_line(settings: Any, of: str | None = None, *, changed: bool = False) -> list[str]:
    """Return the words that give a command or a part these settings, with all defaults filled in.

    ``of`` is ``texts`` or ``tables``; settings that only apply to the other kind are left out.
    ``changed``: only settings that differ from their defaults.
    """
    words: list[str] = []
    for key, setting in settings_in(type(settings)).items():
        value = getattr(settings, key)
        may_omit = changed or setting.omit_default or setting.came_later
        omitted = may_omit and value == setting.default
        foreign = of is not None and setting.of not in (None, of)
        if setting.repeat and not omitted and not foreign:
            words += setting.words(value)
    return words
