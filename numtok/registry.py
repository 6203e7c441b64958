"""A public name is a file name; a spec string is a name with settings.

``Registry("numtok.encoding.schemes", "scheme")["p10"]`` imports ``numtok/encoding/schemes/p10.py``
and nothing else, and returns the one public class that file defines. Folders
given to :func:`numtok.plugins.add_plugin_folders` are searched as well: a file
``FOLDER/schemes/mine.py`` becomes the scheme ``mine``.

A spec is ``name[:positional][,key=value...]``, for example
``p1000,exponents=-10..10``. The settings are the fields of a frozen dataclass,
read by their annotation, so a misspelt key is an error with the nearest match
and :func:`settings_of` gives the complete, canonical dictionary that digests
are taken over. A class with a setting that has no default may say ``checked_at``, a spec at which
its contract is checked. What an object learns from data is a field as well, marked
:data:`LEARNT`.
"""

import ast
import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from numtok import plugins
from numtok.declaration import LEARNT as LEARNT
from numtok.declaration import (
    SPEC_TYPES,
    Bare,
    as_spec,
    as_stored,
    flag_named,
    key_of,
    note_renamed,
    read_settings,
    settings_in,
)
from numtok.declaration import Interval as Interval
from numtok.declaration import Range as Range
from numtok.errors import MissingPart, UsageError, unknown
from numtok.plugins import (
    ENCODINGS,
    import_error,
    is_plugin_file,
    misplaced,
    plugin_folders,
    registries,
)
from numtok.stored_json import Scalar

T = TypeVar("T")

#: Expanded settings (:func:`settings_of`), as JSON has them.
Settings = dict[str, Scalar]


_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_KEY = re.compile(r"[a-z][a-z_-]*")  # a key of a spec without a value
#: Current names of parts by their earlier ones, per kind of part.
_FORMER = {
    "probe": {"samples": "examples", "sweep": "vary"},
    "figure": {"sweep": "vary"},
}
_IN_ENCODINGS = ("schemes", "embedders", "heads")  # what a file of :data:`ENCODINGS` may define
_OF_MODELS = ("embedder", "head", "objective", "trunk")  # what a model is made of, not its data


class Registry(Generic[T]):
    """The classes of one package that derive from ``base``, by file name.

    Its modules are imported on first use.
    """

    def __init__(self, package: str, what: str, base: Any = object) -> None:
        self._package = package
        self._what = what
        self._base = base

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    @property
    def package(self) -> str:
        """The package whose files are its names."""
        return self._package

    def names(self) -> tuple[str, ...]:
        """All names, sorted, without importing any module of the package but itself."""
        return tuple(sorted(self._files()))

    def plugins(self) -> tuple[str, ...]:
        """The names of those that lie in plugin folders, likewise."""
        return tuple(sorted(name for name, file in self._files().items() if is_plugin_file(file)))

    def _files(self) -> Mapping[str, Path]:
        """Every name and the file, or the package's folder, that defines it."""
        places = self._package_module().__path__
        return _named(self._what, tuple((place, *_content(place, self._what)) for place in places))

    def __getitem__(self, name: str) -> type[T]:
        found = self._files()
        current = _FORMER.get(self._what, {}).get(name)
        if current is not None and name not in found and current in found:
            note_renamed(f"{self._what} {name}", current)
            name = current
        if name not in found:
            hint = misplaced(_folder(self._package))
            raise UsageError(f"{unknown(self._what, name, found)}{hint}")
        try:
            module = importlib.import_module(f"{self._package}.{name.replace('-', '_')}")
        except (Exception, SystemExit) as error:
            if not is_plugin_file(found[name]):
                raise
            raise import_error(found[name], error) from error
        return self._class_in(module)

    def build(self, spec: str, more: Mapping[str, Any] | None = None) -> T:
        """The object a spec string stands for, with ``more`` settings by field; UsageError says
        what is wrong with it."""
        name, positional, options = parse_spec(spec, self._what)
        kind = self[name]
        known = settings_in(kind).values()
        given: dict[str, Any] = {key_of(known, key) or key: value for key, value in options.items()}
        if twice := given.keys() & (more or {}).keys():
            raise UsageError(f"{self._what} {spec!r} and --{min(twice)} give {min(twice)!r} twice")
        given |= more or {}
        if positional is not None:
            key = getattr(kind, "positional", None)
            if key is None:
                raise UsageError(f"{self._what} {name!r} takes no value after ':', got {spec!r}")
            if key in given:
                raise UsageError(f"{self._what} {spec!r} gives {key!r} twice")
            given[key] = positional
        return self._make(kind, name, read_settings(kind, given, more or {}))

    def from_settings(self, settings: Mapping[str, Any]) -> T:
        """The inverse of :func:`settings_of`; refuses a revision this numtok does not have."""
        name = str(settings.get("name"))
        if name not in self._files():
            place = f"{_folder(self._package)}/{name.replace('-', '_')}.py"
            raise MissingPart(f"{self._what} {name!r}", place, self._files())
        kind = self[name]
        revision = getattr(kind, "revision", None)
        if settings.get("revision") != revision:
            again = "train again" if self._what in _OF_MODELS else "encode the data again"
            raise UsageError(
                f"{self._what} {name!r} was written at revision {settings.get('revision')!r}, this "
                f"numtok has revision {revision!r}; {again} with this numtok"
            )
        if settings.get("digest") != getattr(kind, "digest", None):
            raise UsageError(
                f"{self._what} {name!r} had another output when this was written (digest "
                f"{settings.get('digest')!r}, now {getattr(kind, 'digest', None)!r}); "
                "encode the data again with this numtok"
            )
        own = {key: settings[key] for key in settings if key not in ("name", "revision", "digest")}
        return self._make(kind, name, read_settings(kind, own, learned=True))

    def contract(self) -> ModuleType:
        """The contract suite of this registry, ``_contract.py`` in its folder."""
        return importlib.import_module(f"{self._package}._contract")

    def checked_at(self, name: str) -> str:
        """The spec at which the contract of a class is checked: its ``checked_at`` where settings
        must be given, else its name."""
        return str(getattr(self[name], "checked_at", name))

    def required(self, name: str) -> list[str]:
        """The settings of a class that a spec has to give."""
        return [key for key, one in settings_in(self[name], learned=True).items() if one.required]

    def _make(self, kind: type[T], name: str, given: dict[str, Any]) -> T:
        for key, one in settings_in(kind, learned=True).items():
            if one.required and key not in given:
                raise UsageError(
                    f"{self._what} {name!r} needs a value for {key!r}; write {name},{key}=VALUE"
                )
        made = kind(**given)
        if plugins.on_use is not None and plugins.is_plugin(made):
            plugins.on_use(self, made)
        return made

    def _package_module(self) -> ModuleType:
        package = importlib.import_module(self._package)
        _extend(package)
        return package

    def _class_in(self, module: ModuleType) -> type[T]:
        classes = [
            item
            for key, item in vars(module).items()
            if isinstance(item, type) and item.__module__ == module.__name__ and key[0] != "_"
        ]
        if len(classes) > 1:  # some may be of other kinds, or what the parts share
            classes = [one for one in classes if issubclass(one, self._base)] or classes
        if len(classes) != 1:
            names = ", ".join(one.__name__ for one in classes)
            raise UsageError(
                f"{module.__file__} must define exactly one public class, the {self._what}; it "
                f"defines {len(classes)}{names and f' ({names}); begin other names with _'}"
            )
        [found] = classes
        where = f"{module.__file__}: {found.__name__}"
        if not issubclass(found, self._base):
            raise UsageError(
                f"{where} must derive from {self._base.__name__} of {self._package}.base"
            )
        if lacks := missing_in(found):
            raise UsageError(
                f"{where} lacks {', '.join(lacks)}; {self._package}.base says what each is"
            )
        if wrong := mistyped_in(found):
            raise UsageError(f"{where}.{wrong}")
        return found


def registry_in(package: str) -> Registry[Any]:
    """The registry of a package: the one that its ``base`` defines. StopIteration where none is."""
    base = vars(importlib.import_module(f"{package}.base"))
    every = (value for value in base.values() if isinstance(value, Registry))
    return next(registry for registry in every if registry.package == package)


def import_plugins_from_everywhere() -> None:
    """Let what lies in the plugin folders be imported where no registry was asked for it before:
    as what is unpickled is."""
    for name, package in registries().items():
        names = _subfolders(name)
        if any((folder / one).is_dir() for folder in plugin_folders() for one in names):
            _extend(importlib.import_module(package))


def _folder(package: str) -> str:
    """The subfolder of a plugin folder that belongs to a package."""
    return package.rpartition(".")[2]


def _extend(package: ModuleType) -> None:
    """Let modules of the plugin folders be imported as modules of one of numtok's packages."""
    for folder in plugin_folders():
        for name in _subfolders(_folder(package.__name__)):
            place = str(folder / name)
            if place not in package.__path__:
                package.__path__.append(place)


def _subfolders(name: str) -> tuple[str, ...]:
    """The subfolders of a plugin folder in which a registry looks, by the name of its own."""
    return (name, ENCODINGS) if name in _IN_ENCODINGS else (name,)


def _content(place: str, what: str) -> list[str]:
    """The names in a folder, none where there is no such folder; in one of encodings those of files
    that define a class of a kind, such as ``head``."""
    try:
        names = os.listdir(place)
    except OSError:
        return []
    if Path(place).name != ENCODINGS:
        return names
    files = [entry for entry in os.scandir(place) if entry.name.endswith(".py")]
    return [one.name for one in files if what in _kinds_in(one.path, one.stat().st_mtime_ns)]


@lru_cache
def _kinds_in(file: str, changed: int) -> frozenset[str]:
    """The kinds that a file defines classes of, by the names of their bases: ``ClassesHead`` is one
    of a head. The file is not run; one that cannot be read may define any."""
    kinds = {kind.removesuffix("s") for kind in _IN_ENCODINGS}
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (SyntaxError, ValueError):
        return frozenset(kinds)
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    bases = [ast.unparse(base).lower() for one in classes for base in one.bases]
    return frozenset(kind for kind in kinds if any(base.endswith(kind) for base in bases))


@lru_cache
def _named(what: str, listings: tuple[tuple[str, ...], ...]) -> Mapping[str, Path]:
    """The names that folders define, each given with the names of all files in it: what was found
    holds for as long as no file comes or goes."""
    found: dict[str, Path] = {}
    # One folder at a time: of two modules of one name, pkgutil lists only the first.
    every = ((set(names), pkgutil.iter_modules([place])) for place, *names in listings)
    for known, info in ((known, info) for known, infos in every for info in infos):
        if info.name == "base" or info.name.startswith("_"):
            continue
        if not {info.name, f"{info.name}.py"} & known:
            continue
        name = info.name.replace("_", "-")
        folder = Path(str(getattr(info.module_finder, "path", "")))
        if name in found:
            raise UsageError(
                f"two files define the {what} {name!r}: in {found[name].parent} and in "
                f"{folder}; rename the plugin's file"
            )
        found[name] = folder / (info.name if info.ispkg else f"{info.name}.py")
        if not _NAME.fullmatch(name) or "-" in info.name:
            raise UsageError(
                f"{found[name]}: a {what} cannot have this name; a file name is made of "
                "lower-case letters, digits and _; rename the file"
            )
    return found


def parse_spec(spec: str, what: str) -> tuple[str, str | None, dict[str, str]]:
    """Split a spec into name, positional value and options.

    A key without a value, ``key`` or ``no-key``, is short for ``key=yes`` or ``key=no``.

    >>> parse_spec("words:4096,lower=no", "text tokenizer")
    ('words', '4096', {'lower': 'no'})
    >>> parse_spec("words,no-lower", "text tokenizer")
    ('words', None, {'lower': 'no'})
    """
    head, *pairs = spec.split(",")
    name, colon, positional = head.partition(":")
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals and _KEY.fullmatch(key):
            equals, value = "=", Bare("no" if key.startswith("no-") else "yes")
            key = key.removeprefix("no-")
        if not equals or not key or not value:
            raise UsageError(
                f"{what} {spec!r}: {pair!r} is not key=value; "
                "a spec is written name[:value][,key=value...]"
            )
        if flag_named(key) in map(flag_named, options):
            raise UsageError(f"{what} {spec!r} gives {flag_named(key)!r} twice")
        options[key] = value
    if not name or (colon and not positional):
        raise UsageError(
            f"{what} {spec!r} is incomplete; a spec is written name[:value][,key=value...]"
        )
    return name, positional or None, options


def name_in(spec: str) -> str:
    """The name that a spec begins with, of things to be built or not.

    >>> name_in("numvalue:mlp,digits=18")
    'numvalue'
    """
    return spec.partition(",")[0].partition(":")[0]


def name_of(thing: object) -> str:
    """The registry name of an object: the name of the file that defines its class."""
    return type(thing).__module__.rpartition(".")[2].replace("_", "-")


def settings_of(thing: object) -> dict[str, Any]:
    """The complete settings of an object built from a spec, defaults and revision included.

    >>> from numtok.encoding.schemes.p1000 import P1000
    >>> settings_of(P1000())
    {'name': 'p1000', 'revision': 1, 'digest': '...', 'exponents': '-8..7'}
    """
    kind: Any = type(thing)
    head = {"name": name_of(thing), "revision": kind.revision}
    if hasattr(kind, "digest"):  # of its output: a change without a new revision shows as well
        head["digest"] = kind.digest
    return head | {key: as_stored(getattr(thing, key)) for key in settings_in(kind, learned=True)}


def spec_of(thing: object) -> str:
    """The shortest spec string that builds an equal object, but for what it has learnt."""
    parts = [name_of(thing)]
    for key, one in settings_in(type(thing)).items():
        value = getattr(thing, key)
        if value == one.default:
            continue
        if key == getattr(thing, "positional", None):
            parts[0] += f":{as_spec(value)}"
        else:
            parts.append(f"{one.flag}={as_spec(value)}")
    return ",".join(parts)


# --- what a class must declare -------------------------------------------------------------------


@cache
def missing_in(kind: type) -> tuple[str, ...]:
    """Return what a class lacks before it can be built from a spec."""
    params: Any = getattr(kind, "__dataclass_params__", None)
    if params is None or not params.frozen:
        return ("@dataclass(frozen=True)",)
    declared = {
        key
        for base in kind.__mro__
        for key, hint in inspect.get_annotations(base).items()
        if str(hint).startswith("typing.ClassVar") and key != "positional"  # which is optional
    }
    unset = {key for key in declared if not hasattr(kind, key)}
    return tuple(sorted(unset | getattr(kind, "__abstractmethods__", frozenset())))


_OPTIONAL = ("positional", "checked_at")  # what a class may declare, whatever its contract


@cache
def mistyped_in(kind: type) -> str | None:
    """Return what is wrong with the first setting that no spec could set, or with the first fact of
    the class whose type is not that of its contract."""
    try:
        hints = get_type_hints(kind)
    except Exception as error:  # whatever an annotation that is text raises when it is read
        return f"__annotations__ cannot be read: {type(error).__name__}: {error}"
    for key in (field.name for field in fields(kind) if field.init):
        if hints[key] not in SPEC_TYPES:
            allowed = ", ".join(map(_type_name, SPEC_TYPES))
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
    """Return the name of a type as code writes it: ``int``, ``str | None``."""
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
