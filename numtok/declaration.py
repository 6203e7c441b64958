"""A setting is declared once, where it is a field of a frozen dataclass.

What :func:`setting` says of it gives the option of the command line and its help, the key of
``numtok.toml`` and of a sweep's file, the bounds that a value is held to, the entry of an
artifact's settings, the words of the command that makes the artifact again, and the line of
``docs/guide/reference.md``. To add an option to a command is to add a field.

>>> @dataclass(frozen=True)
... class Fry:
...     eggs: int = setting(2, "How many.", at_least=1, counts="version")
...     fat: str | None = setting(None, "Default: butter.", flag="in", counts="version")
...     hurry: bool = setting(False, "Serve them raw.")
>>> settings = Fry(eggs=3, fat="lard")
>>> check(settings)
>>> of_version(settings)
{'eggs': 3, 'fat': 'lard'}
>>> command_line(settings)
['--eggs', '3', '--in', 'lard']
>>> check(Fry(eggs=0))
Traceback (most recent call last):
numtok.declaration.SettingError: --eggs 0 is not possible; it is 1 or more
"""

import csv
import dataclasses
import inspect
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Literal

from numtok.errors import UsageError

KEY = "setting"  # of a field's metadata
_OPTION = re.compile(r"--([a-z][a-z-]*)")  # in a message
#: In a docstring: the names of settings, and what is said of them below, indented.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)\n((?:    .*\n?)+)", re.M)


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What is said of a setting beside its name, its type and its default.

    flag
        The option's name where the field has another.
    metavar
        What the help writes for a value.
    section
        Under which heading the help shows it.
    argument
        A word without a flag, in the order of the fields.
    expands
        Whether it names one of several kinds of a registry, whose settings are options then.
    above, at_least, below, at_most, choices
        What a value must be.
    refuse
        What is wrong with a value, as a sentence goes on behind it; None where nothing is.
    registry
        The folder of the registry, such as ``heads``, whose names or specs are its values.
    of
        What alone it is for, ``texts`` or ``tables``; None for everything.
    replaces
        Settings that count no longer, where they stand in ``numtok.toml`` and this one was typed.
    swept
        Whether a sweep's file may set it.
    counts
        What it is part of: an artifact's ``version``, or also the label of an ``experiment``, of
        which several seeds are runs.
    came_later
        Whether its default is left out of what a version is made of, since there are artifacts that
        are older than the setting.
    omit_default
        Whether its default is left out of the command that makes an artifact again.
    joined
        Whether its values, names, stand in one word, as a record of CSV.
    repeat
        Whether the command that makes an artifact again names it.
    shown_default
        What the help shows for the default.
    """

    help: str
    flag: str | None = None
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
    registry: str | None = None
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
    def sentence(self) -> str:
        """The line of help, with what alone it is for."""
        if self.of is None:
            return self.help
        return f"{self.of.capitalize()}: {self.help[0].lower()}{self.help[1:]}"

    def wrong(self, value: Any) -> str | None:
        """What is wrong with a value; None where nothing is."""
        if self.choices:
            allowed = value in self.choices
            return None if allowed else f"is not possible; allowed are {self.allowed}"
        if self.refuse is not None:
            return self.refuse(value)
        inside = (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )
        return None if inside else f"is not possible; it is {self.allowed}"

    @property
    def allowed(self) -> str:
        """What a value may be, such as ``above 0 and below 1``; empty where anything may."""
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


class SettingError(UsageError):
    """A value that a setting cannot have; its message names the place where the value stands.

    key
        The field.
    """

    def __init__(self, key: str, flag: str, value: Any, wrong: str) -> None:
        super().__init__(key, flag, value, wrong)
        self.key, self.flag, self.value, self.wrong = key, flag, value, wrong

    def __str__(self) -> str:
        shown = repr(self.value) if isinstance(self.value, str) else str(self.value)
        return f"--{self.flag} {shown} {self.wrong}"

    def at(self, place: str) -> str:
        """The message where the value stands in a file: ``place`` names the file and its table."""
        return f"{place} {self.flag} = {self.value!r} {self.wrong}"


#: Refuses options that are not for what there is: ``texts`` or ``tables``, and in words.
CheckApplies = Callable[[str, str], None]


def no_options(of: str, told: str) -> None:
    """The check of a stage that no command line called: all its settings are meant."""


def setting(default: Any = MISSING, help: str = "", **facts: Any) -> Any:
    """A field of a class of settings: its default, none where a value must be given, its line of
    help, and further facts (:class:`Declaration`)."""
    declaration = Declaration(help=help, **facts)
    return dataclasses.field(default=default, metadata={KEY: declaration})


def declarations(settings: Any) -> Iterator[tuple[dataclasses.Field[Any], Declaration]]:
    """The fields of a class of settings, or of one of them, that are declared, in order."""
    for field in dataclasses.fields(settings):
        if (declaration := field.metadata.get(KEY)) is not None:
            yield field, declaration


def declaration_of(field: dataclasses.Field[Any]) -> Declaration:
    """What is said of a declared field."""
    declaration: Declaration = field.metadata[KEY]
    return declaration


def flag_of(field: dataclasses.Field[Any]) -> str:
    """The name of a field's option: ``text_field -> text-field``, ``from_ -> from``."""
    declaration: Declaration | None = field.metadata.get(KEY)
    flag = None if declaration is None else declaration.flag
    return flag or flag_named(field.name)


def flag_named(key: str) -> str:
    """The name of the option of a field that declares none: ``on_error -> on-error``."""
    return key.rstrip("_").replace("_", "-")


def in_python(message: str) -> str:
    """A message with the names of options as arguments of a function have them.

    >>> in_python("--text-field 'a b' is not possible; leave --lr out")
    "text_field 'a b' is not possible; leave learning_rate out"
    """
    return _OPTION.sub(lambda option: key_of(option[1]), message)


def key_of(flag: str) -> str:
    """The field of an option: the inverse of :func:`flag_of` where no class is known."""
    return {"lr": "learning_rate"}.get(flag, flag.replace("-", "_"))


def check(settings: Any) -> None:
    """Raise SettingError for the first value out of bounds; None is no value."""
    for field, declaration in declarations(settings):
        value = getattr(settings, field.name)
        if value is not None and (wrong := declaration.wrong(value)) is not None:
            raise SettingError(field.name, flag_of(field), value, wrong)


def refused(settings: Any, key: str, wrong: str) -> SettingError:
    """The error for a value that cannot be for a reason of its own."""
    field = next(field for field in dataclasses.fields(settings) if field.name == key)
    return SettingError(key, flag_of(field), getattr(settings, key), wrong)


def of_version(settings: Any) -> dict[str, Any]:
    """What a version depends on, by field, of settings whose defaults are in place."""
    return _counting(settings, ("version", "experiment"))


def of_experiment(settings: Any) -> dict[str, Any]:
    """What tells an experiment from others, likewise."""
    return _counting(settings, ("experiment",))


def _counting(settings: Any, parts: tuple[str, ...]) -> dict[str, Any]:
    found = {}
    for field, declaration in declarations(settings):
        value = getattr(settings, field.name)
        if declaration.counts in parts and not (declaration.came_later and value == field.default):
            found[field.name] = value
    return found


def command_line(settings: Any, of: str | None = None) -> list[str]:
    """The options and arguments that stand for settings whose defaults are in place; ``of`` says
    for what: ``texts`` or ``tables``."""
    words: list[str] = []
    for field, declaration in declarations(settings):
        value = getattr(settings, field.name)
        unset = value is None or value is False or value == ()
        usual = declaration.omit_default and value == field.default
        foreign = of is not None and declaration.of not in (None, of)
        if unset or usual or foreign or not declaration.repeat:
            continue
        if declaration.joined:
            value = join_names(value)
        for one in value if isinstance(value, tuple) else [value]:
            flag = [] if declaration.argument else [f"--{flag_of(field)}"]
            words += [*flag, *([] if one is True else [_word(one)])]
    return words


def join_names(names: Sequence[str]) -> str:
    """The inverse of :func:`split_names`."""
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(names)
    return record.getvalue()


def split_names(text: str) -> tuple[str, ...]:
    """A record of CSV: names with a comma stand in quotes.

    >>> split_names('a,"b, c"'), join_names(("a", "b, c"))
    (('a', 'b, c'), 'a,"b, c"')
    """
    return tuple(next(csv.reader([text]))) if text else ()


def _word(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def options_line(options: Mapping[str, Any]) -> list[str]:
    """The same of the options of one kind of several, by field."""
    return [
        word for key, value in options.items() for word in (f"--{flag_named(key)}", _word(value))
    ]


def help_of(kind: type) -> dict[str, str]:
    """By field, a line of help for each setting of a class: as declared, or what the class's
    docstring says below the field's name.

    >>> class Egg:
    ...     '''An egg.
    ...
    ...     minutes
    ...         How long ``it`` boils;
    ...         4 is soft.
    ...     '''
    >>> help_of(Egg)
    {'minutes': 'How long it boils; 4 is soft.'}
    """
    found: dict[str, str] = {}
    text = inspect.cleandoc(kind.__doc__ or "")
    for names, entry in _ENTRY.findall(text):
        line = " ".join(entry.replace("``", "").split())
        found |= {name: line for name in re.split(", ", names)}
    if dataclasses.is_dataclass(kind):
        found |= {field.name: one.help for field, one in declarations(kind) if one.help}
    return found
