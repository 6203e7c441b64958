"""Registries, which find classes by file name and build objects from specs.

``Registry("numtok.encoding.schemes", "scheme")["p10"]`` imports ``numtok/encoding/schemes/p10.py``
and nothing else, and returns the one public class that the file defines. Folders added with
:func:`numtok.plugins.add_plugin_folders` are searched as well: a file ``FOLDER/schemes/mine.py``
becomes the scheme ``mine``.

A spec is ``name[:positional][,key=value...]``, for example ``p1000,exponents=-10..10``. The
settings are the fields of a frozen dataclass, and values are parsed according to the annotations. A
misspelled key raises an error that names the nearest match. :func:`settings_of` returns the
complete, canonical dictionary, from which digests are computed. A class with a setting that has no
default can declare ``checked_at``, the spec with which its contract is checked. Values that an
object learns from data are also fields, marked with :data:`numtok.declaration.LEARNED`.
"""

import ast
import importlib
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from numtok import plugins
from numtok.declaration import flag_named, read_settings, settings_in
from numtok.errors import MissingPart, UsageError, unknown
from numtok.part_class import missing_in, mistyped_in
from numtok.plugins import (
    ENCODINGS,
    import_error,
    is_plugin_file,
    misplaced,
    plugin_folders,
    registries,
)
from numtok.setting_names import by_current_name, key_of, note_renamed
from numtok.setting_values import Bare, as_spec, as_stored
from numtok.stored_json import Scalar

T = TypeVar("T")

#: Expanded settings (:func:`settings_of`), as stored in JSON.
Settings = dict[str, Scalar]


_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_KEY = re.compile(r"[a-z][a-z_-]*")  # a key of a spec without a value
#: Current names of renamed parts, keyed by their earlier names, for each kind of part.
_FORMER = {
    "probe": {"samples": "examples", "sweep": "vary"},
    "figure": {"sweep": "vary"},
    "metric": {"slot-skill": "field-skill"},
}
_IN_ENCODINGS = ("schemes", "embedders", "heads")  # what a file of :data:`ENCODINGS` may define
_OF_MODELS = ("embedder", "head", "objective", "trunk")  # what a model is made of, not its data


class Registry(Generic[T]):
    """Collection of the classes in one package that derive from ``base``, keyed by file name.

    ``what`` is the kind of part in messages, such as ``head``. Modules are imported on first use.
    """

    def __init__(self, package: str, what: str, base: Any = object) -> None:
        self._package = package
        self._what = what
        self._base = base

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    @property
    def package(self) -> str:
        """Name of the package, such as ``numtok.models.heads``, whose file names are the registered
        names."""
        return self._package

    def names(self) -> tuple[str, ...]:
        """Return all registered names, sorted. No module except the package is imported."""
        return tuple(sorted(self._files()))

    def plugins(self) -> tuple[str, ...]:
        """Return the registered names of plugins, sorted. No module except the package is
        imported."""
        return tuple(sorted(name for name, file in self._files().items() if is_plugin_file(file)))

    def _files(self) -> Mapping[str, Path]:
        """Return the file or package folder that defines each name."""
        places = self._package_module().__path__
        return _named(
            self._what, tuple((folder, *_content(folder, self._what)) for folder in places)
        )

    def __getitem__(self, name: str) -> type[T]:
        files = self._files()
        current = _FORMER.get(self._what, {}).get(name)
        if current is not None and name not in files and current in files:
            note_renamed(f"{self._what} {name}", current)
            name = current
        if name not in files:
            raise unknown(self._what, name, files, misplaced(_folder(self._package)))
        try:
            module = importlib.import_module(f"{self._package}.{name.replace('-', '_')}")
        except (Exception, SystemExit) as error:
            if not is_plugin_file(files[name]):
                raise
            raise import_error(files[name], error) from error
        return self._class_in(module)

    def build(self, spec: str, more: Mapping[str, Any] | None = None) -> T:
        """Build the object that a spec describes.

        ``more`` contains further settings, keyed by field. Raises UsageError if the spec is
        invalid.
        """
        name, positional, options = parse_spec(spec, self._what)
        kind = self[name]
        known = settings_in(kind).values()
        where = f"{self._what} {spec!r}: "
        values = by_current_name(options, lambda key: key_of(known, key) or key, where)
        if twice := values.keys() & (more or {}).keys():
            raise UsageError(f"{self._what} {spec!r} and --{min(twice)} both set {min(twice)!r}")
        values |= more or {}
        if positional is not None:
            key = getattr(kind, "positional", None)
            if key is None:
                raise UsageError(f"{self._what} {name!r} takes no value after ':', got {spec!r}")
            if key in values:
                raise UsageError(f"{self._what} {spec!r} sets {key!r} twice")
            values[key] = positional
        return self._make(kind, name, read_settings(kind, values, more or {}))

    def from_settings(self, settings: Mapping[str, Any]) -> T:
        """Build an object from its stored settings, the inverse of :func:`settings_of`.

        Raises UsageError if the revision or digest of the class differs from the stored one, and
        MissingPart if the class is not installed.
        """
        name = str(settings.get("name"))
        if name not in self._files():
            path = f"{_folder(self._package)}/{name.replace('-', '_')}.py"
            raise MissingPart(f"{self._what} {name!r}", path, self._files())
        kind = self[name]
        revision = getattr(kind, "revision", None)
        if settings.get("revision") != revision:
            again = "train again" if self._what in _OF_MODELS else "encode the data again"
            raise UsageError(
                f"{self._what} {name!r} was stored at revision {settings.get('revision')!r}; this "
                f"numtok has revision {revision!r}. To update: {again}"
            )
        if settings.get("digest") != getattr(kind, "digest", None):
            raise UsageError(
                f"{self._what} {name!r} had different output when this was stored (digest "
                f"{settings.get('digest')!r}, now {getattr(kind, 'digest', None)!r}). "
                "Encode the data again"
            )
        own = {key: settings[key] for key in settings if key not in ("name", "revision", "digest")}
        return self._make(kind, name, read_settings(kind, own, learned=True))

    def contract(self) -> ModuleType:
        """Return the module with the contract suite of this registry, ``_contract.py`` in its
        folder."""
        return importlib.import_module(f"{self._package}._contract")

    def checked_at(self, name: str) -> str:
        """Return the spec with which the contract of a class is checked: its ``checked_at`` if it
        declares one, otherwise its name."""
        return str(getattr(self[name], "checked_at", name))

    def required(self, name: str) -> list[str]:
        """Return the names of the settings that have no default in the class registered as
        ``name``."""
        return [
            key
            for key, setting in settings_in(self[name], learned=True).items()
            if setting.required
        ]

    def _make(self, kind: type[T], name: str, values: dict[str, Any]) -> T:
        for key, setting in settings_in(kind, learned=True).items():
            if setting.required and key not in values:
                raise UsageError(
                    f"{self._what} {name!r} needs a value for {key!r}. Write {name},{key}=VALUE"
                )
        part = kind(**values)
        if plugins.on_use is not None and plugins.is_plugin(part):
            plugins.on_use(self, part)
        return part

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
        if len(classes) > 1:  # some may be other kinds of parts, or shared bases
            classes = [
                candidate for candidate in classes if issubclass(candidate, self._base)
            ] or classes
        if len(classes) != 1:
            names = ", ".join(candidate.__name__ for candidate in classes)
            raise UsageError(
                f"{module.__file__} must define exactly one public class, the {self._what}; it "
                f"defines {len(classes)}{names and f' ({names}). Start other names with _'}"
            )
        [kind] = classes
        where = f"{module.__file__}: {kind.__name__}"
        if not issubclass(kind, self._base):
            raise UsageError(
                f"{where} must derive from {self._base.__name__} in {self._package}.base"
            )
        if lacks := missing_in(kind):
            raise UsageError(
                f"{where} lacks {', '.join(lacks)}. See {self._package}.base for their meaning"
            )
        if wrong := mistyped_in(kind):
            raise UsageError(f"{where}.{wrong}")
        return kind


def registry_in(package: str) -> Registry[Any]:
    """Return the registry that the ``base`` module of a package defines. Raises StopIteration if it
    defines none."""
    base = vars(importlib.import_module(f"{package}.base"))
    every = (value for value in base.values() if isinstance(value, Registry))
    return next(registry for registry in every if registry.package == package)


def import_plugins_from_everywhere() -> None:
    """Make plugins importable even if no registry has been used yet, for example before
    unpickling."""
    for name, package in registries().items():
        names = _subfolders(name)
        if any((folder / subfolder).is_dir() for folder in plugin_folders() for subfolder in names):
            _extend(importlib.import_module(package))


def _folder(package: str) -> str:
    """Return the subfolder of a plugin folder that belongs to a package."""
    return package.rpartition(".")[2]


def _extend(package: ModuleType) -> None:
    """Make modules in the plugin folders importable as modules of one of numtok's packages."""
    for folder in plugin_folders():
        for name in _subfolders(_folder(package.__name__)):
            path = str(folder / name)
            if path not in package.__path__:
                package.__path__.append(path)


def _subfolders(name: str) -> tuple[str, ...]:
    """Return the names of the subfolders of a plugin folder in which a registry searches."""
    return (name, ENCODINGS) if name in _IN_ENCODINGS else (name,)


def _content(folder: str, what: str) -> list[str]:
    """Return the names of the files in a folder; empty if it does not exist.

    In a folder of encodings, only files that define a class of the kind ``what``, such as ``head``,
    are returned.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    if Path(folder).name != ENCODINGS:
        return names
    files = [entry for entry in os.scandir(folder) if entry.name.endswith(".py")]
    return [file.name for file in files if what in _kinds_in(file.path, file.stat().st_mtime_ns)]


@lru_cache
def _kinds_in(file: str, changed: int) -> frozenset[str]:
    """Return the kinds of classes that a file defines, derived from the names of their base
    classes.

    For example, a class derived from ``ClassesHead`` is a head. The file is not executed. A file
    that cannot be parsed may define any kind.
    """
    kinds = {kind.removesuffix("s") for kind in _IN_ENCODINGS}
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (SyntaxError, ValueError):
        return frozenset(kinds)
    classes = [definition for definition in tree.body if isinstance(definition, ast.ClassDef)]
    bases = [ast.unparse(base).lower() for definition in classes for base in definition.bases]
    return frozenset(kind for kind in kinds if any(base.endswith(kind) for base in bases))


@lru_cache
def _named(what: str, listings: tuple[tuple[str, ...], ...]) -> Mapping[str, Path]:
    """Return the file or package that defines each name, for the given folders.

    Each listing is a folder and the names of its files, so the cached result is valid until a file
    is added or removed.
    """
    files: dict[str, Path] = {}
    # One folder at a time: pkgutil lists only the first of two modules with the same name.
    every = ((set(names), pkgutil.iter_modules([directory])) for directory, *names in listings)
    for listed, info in ((listed, info) for listed, infos in every for info in infos):
        if info.name == "base" or info.name.startswith("_"):
            continue
        if not {info.name, f"{info.name}.py"} & listed:
            continue
        name = info.name.replace("_", "-")
        folder = Path(str(getattr(info.module_finder, "path", "")))
        if name in files:
            raise UsageError(
                f"two files define the {what} {name!r}, in {files[name].parent} and in "
                f"{folder}. Rename the plugin's file"
            )
        files[name] = folder / (info.name if info.ispkg else f"{info.name}.py")
        if not _NAME.fullmatch(name) or "-" in info.name:
            raise UsageError(
                f"{files[name]}: not a valid name for a {what}. Rename the file, using "
                "lower-case letters, digits and _"
            )
    return files


def folder_registry(folder: str) -> Registry[Any]:
    """Return the registry for a folder, such as ``heads``. Its names can be listed without
    importing any part."""
    return Registry(plugins.registries()[folder], folder.removesuffix("s"))


def parse_spec(spec: str, what: str) -> tuple[str, str | None, dict[str, str]]:
    """Return the name, the positional value and the options of a spec.

    A key without a value, ``key`` or ``no-key``, is short for ``key=yes`` or ``key=no``. Raises
    UsageError if the spec is malformed; ``what`` is the kind of part in its message.

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
                "a spec has the form name[:value][,key=value...]"
            )
        if flag_named(key) in map(flag_named, options):
            raise UsageError(f"{what} {spec!r} sets {flag_named(key)!r} twice")
        options[key] = value
    if not name or (colon and not positional):
        raise UsageError(
            f"{what} {spec!r} is incomplete; a spec has the form name[:value][,key=value...]"
        )
    return name, positional or None, options


def name_in(spec: str) -> str:
    """Return the name at the beginning of a spec, without checking the rest.

    >>> name_in("numvalue:mlp,digits=18")
    'numvalue'
    """
    return spec.partition(",")[0].partition(":")[0]


def name_of(thing: object) -> str:
    """Return the registry name of an object: the name of the file that defines its class."""
    return type(thing).__module__.rpartition(".")[2].replace("_", "-")


def settings_of(thing: object) -> dict[str, Any]:
    """Return the name, the revision and all settings of an object, including defaults, as stored in
    JSON.

    >>> from numtok.encoding.schemes.p1000 import P1000
    >>> settings_of(P1000())
    {'name': 'p1000', 'revision': 1, 'digest': '...', 'exponents': '-8..7'}
    """
    kind: Any = type(thing)
    head = {"name": name_of(thing), "revision": kind.revision}
    if hasattr(kind, "digest"):  # of its output, to detect changes without a new revision
        head["digest"] = kind.digest
    return head | {key: as_stored(getattr(thing, key)) for key in settings_in(kind, learned=True)}


def spec_of(thing: object) -> str:
    """Return the shortest spec that builds an equal object, except for values that the object
    learned from data."""
    parts = [name_of(thing)]
    for key, setting in settings_in(type(thing)).items():
        value = getattr(thing, key)
        if value == setting.default:
            continue
        if key == getattr(thing, "positional", None):
            parts[0] += f":{as_spec(value)}"
        else:
            parts.append(f"{setting.flag}={as_spec(value)}")
    return ",".join(parts)
