"""The format of an artifact on disk: a self-describing folder.

::

    artifacts/encoded/era5-p1000/3f2a9c1b5d7e8f60/
        manifest.json      kind, settings, parents and provenance
        files.jsonl        path, bytes and sha256 of each content file
        timing.json        times and speeds, not in any digest
        receipts/          one small file per unit of work, not in any digest
        train-00000.parquet ...

The sha256 of ``files.jsonl`` is the artifact's content digest. Files are not trusted: sizes are
checked before memory is allocated, every field has a type, and no path may leave the folder.
"""

import hashlib
import json
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec

from numtok import files
from numtok.errors import MissingPart, UsageError
from numtok.names import NAME
from numtok.store.provenance import Provenance
from numtok.stored_json import (
    REMAKE,
    Natural,
    Scalar,
    StoredJson,
    StoredLines,
    Value,
    convert,
    damaged,
    reading,
)

# Kinds of artifacts that several stages name.
DATA, TABLE, ENCODED, MODEL = "data", "table", "encoded", "model"
DOWNLOAD = "download"  # the files of a public data set, unchanged
FIELD = "field"  # values on a grid of latitude and longitude at many times

FORMAT = 1  # version of the store's format: the layout above and all fields below

MANIFEST, FILES, TIMING, RECEIPTS = "manifest.json", "files.jsonl", "timing.json", "receipts"
PLUGINS = "plugins"  # name of the fact in a manifest
VERSION = re.compile(r"[0-9a-f]{16}")
_REF = re.compile(rf"{NAME.pattern}@{VERSION.pattern}")

_OUTSIDE_THE_DIGEST = {MANIFEST, FILES, TIMING, RECEIPTS}
SMALL = 8 << 20  # maximum bytes of a manifest or a receipt

T = TypeVar("T")
_Name = Annotated[str, msgspec.Meta(pattern=rf"^(?:{NAME.pattern})\Z")]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Version = Annotated[str, msgspec.Meta(pattern=rf"^(?:{VERSION.pattern})\Z")]


class Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input of an artifact: another artifact or a raw file (kind ``file``).

    ``where`` is the REF or path at which it was found. ``digest`` identifies the content: the
    content digest of an artifact, or the sha256 of a file.
    """

    kind: str
    where: str
    digest: str
    bytes: Natural


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One content file; ``path`` is relative to the artifact's folder, with ``/``."""

    path: str
    bytes: Natural
    sha256: str

    def __post_init__(self) -> None:
        if not is_inside(self.path):
            raise ValueError(f"{self.path!r} leaves the artifact's folder")


class Manifest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """Content of ``manifest.json``.

    counts
        Counts of the stage, such as rows and tokens.
    files, bytes
        Number and size of the content files.
    content
        The sha256 of files.jsonl.
    command
        Command that makes the artifact again.
    facts
        Other information for readers, such as constants, periods, a license, and loaded plugins
        (``plugins``); omitted if empty.
    digest
        Digest of all other fields.
    """

    schema: int
    kind: _Name
    name: _Name
    version: _Version
    settings: dict[str, Value]
    seed: int | None
    parents: tuple[Parent, ...]
    counts: dict[str, Natural]
    files: Natural
    bytes: Natural
    content: _Digest
    made_by: Provenance
    command: tuple[str, ...]
    digest: str
    facts: dict[str, Value] = {}


class _Timing(msgspec.Struct):
    seconds: Annotated[float, msgspec.Meta(ge=0)]


class _MadeWith(msgspec.Struct):
    """The loaded plugins among the facts of a manifest (``plugins.loaded``)."""

    plugins: dict[str, str] = {}


# Commands and paths may contain lone surrogates.
_MANIFEST = StoredJson(
    name=MANIFEST, kind=Manifest, limit=SMALL, newest=FORMAT, then=REMAKE, any_text=True
)
_LISTING = StoredLines(name=FILES, kind=Output, limit=256 << 20, then=REMAKE, any_text=True)
_TIMING = StoredJson(name=TIMING, kind=dict[str, Scalar], limit=SMALL, then=REMAKE)


@dataclass(frozen=True)
class Artifact:
    """A complete artifact, identified by its path; the manifest is read on first access."""

    path: Path
    kind: str
    name: str
    version: str

    @property
    def ref(self) -> str:
        """REF of the artifact, ``name@version``, as commands print and accept it."""
        return f"{self.name}@{self.version}"

    @cached_property
    def manifest(self) -> Manifest:
        """Content of ``manifest.json``, read on first access; StoreError if it is damaged."""
        return read_manifest(self.path)

    def files(self) -> list[Output]:
        """Return the content files, sorted by path; StoreError if the listing was changed."""
        return read_listing(self.path, self.manifest.content)

    def timing(self, kind: type[T]) -> T:
        """Read the times of the artifact as a type with the fields that the caller needs."""
        with reading(self.path / TIMING, REMAKE):
            return convert(_TIMING.read(self.path), kind)

    @property
    def seconds(self) -> float:
        """Time it took to make the artifact."""
        return self.timing(_Timing).seconds

    def facts(self, kind: type[T]) -> T:
        """Convert the manifest's facts to a type with the fields that the caller needs."""
        return self._part("facts", self.manifest.facts, kind)

    def counts(self, kind: type[T]) -> T:
        """Convert the manifest's counts to a type; see :meth:`facts`."""
        return self._part("counts", self.manifest.counts, kind)

    def settings(self, kind: type[T]) -> T:
        """Convert the manifest's settings to a type; see :meth:`facts`."""
        return self._part("settings", self.manifest.settings, kind)

    def _part(self, name: str, part: Mapping[str, Any], kind: type[T]) -> T:
        with reading(self.path / MANIFEST, REMAKE, f"its {name}: "):
            return convert(part, kind)

    def made_from(self, *kinds: str) -> Parent:
        """Return the first parent; StoreError if it is not an artifact of one of the kinds."""
        parents = self.manifest.parents
        if not parents or parents[0].kind not in kinds or not _REF.fullmatch(parents[0].where):
            why = f"its first parent must be an artifact of kind {' or '.join(kinds)}"
            raise damaged(self.path / MANIFEST, why, REMAKE)
        return parents[0]

    @contextmanager
    def naming_plugins(self) -> Iterator[None]:
        """Add this artifact's plugins to errors about missing parts raised in the block."""
        try:
            yield
        except MissingPart as error:
            raise UsageError(error.of(self.ref, self.facts(_MadeWith).plugins)) from error

    def as_parent(self) -> Parent:
        """Return the entry for manifests of artifacts made from this one."""
        return Parent(self.kind, self.ref, self.manifest.content, self.manifest.bytes)


class MadeArtifact(NamedTuple):
    """The artifact of a stage; ``made`` is true if this call made it."""

    artifact: Artifact
    made: bool

    @property
    def ref(self) -> str:
        """REF of the artifact, ``name@version``."""
        return self.artifact.ref


class Resolve(Protocol):
    """Function that resolves a REF like ``Store.resolve``, for code that has no store.

    Raises UsageError for an unknown artifact or one of another kind.
    """

    def __call__(self, ref: str, kinds: Collection[str] | None = None) -> Artifact: ...


#: Function that returns the artifact of a kind, name and version like ``Store.find``, or None.
Find = Callable[[str, str, str], Artifact | None]


def version_of(kind: str, settings: Mapping[str, Any], parents: Sequence[Parent]) -> str:
    """Return 16 hexadecimal digits that identify the inputs of an artifact.

    The order of the parents matters; the order of keys and the locations of parents do not. A seed
    that determines the content is one of the settings.

    >>> version_of("encoded", {"scheme": "p10", "seed": 0}, [])
    'e51aca5d55e16810'

    Raises TypeError or ValueError for settings that JSON cannot hold exactly.
    """
    whole = [FORMAT, kind, settings, [parent.digest for parent in parents]]
    return hashlib.sha256(_canonical(whole)).hexdigest()[:16]


def walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield each content path below a folder, sorted, and whether it is a plain file.

    Folders are entered but not listed; symbolic links, sockets and so on are listed but not
    followed.
    """

    def below(subfolder: Path, prefix: str) -> Iterator[tuple[str, bool]]:
        for entry in files.system.scandir(subfolder):
            if not prefix and entry.name in _OUTSIDE_THE_DIGEST:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from below(subfolder / entry.name, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry.is_file(follow_symlinks=False)

    yield from sorted(below(folder, ""))


def listing(outputs: Sequence[Output]) -> bytes:
    """Return the bytes of files.jsonl: one object per line, sorted by path."""
    return b"".join(
        _canonical(msgspec.to_builtins(output)) + b"\n"
        for output in sorted(outputs, key=lambda output: output.path)
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the bytes of manifest.json, with the digest of the other fields."""
    blank = msgspec.structs.replace(manifest, digest="")
    digest = hashlib.sha256(readable_json(blank)).hexdigest()
    return readable_json(msgspec.structs.replace(manifest, digest=digest))


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest; StoreError if it is damaged, too large, or of a newer format."""
    return _MANIFEST.read(folder)


def read_listing(folder: Path, content: str) -> list[Output]:
    """Read files.jsonl; StoreError unless it has the sha256 ``content`` and only safe paths."""
    path = folder / FILES
    data = files.read_bytes(path, _LISTING.limit)
    if (got := hashlib.sha256(data).hexdigest()) != content:
        raise damaged(path, f"its sha256 is {got}, not {content} as in the manifest", REMAKE)
    return _LISTING.of(data, path)


def is_there(path: Path) -> bool:
    """Return whether a plain file with this path exists."""
    try:
        return stat.S_ISREG(files.system.stat(path).st_mode)
    except FileNotFoundError:
        return False


def is_inside(path: str) -> bool:
    """Return whether a relative path is normalized and stays below its folder.

    >>> [is_inside(path) for path in ("a/b", "/a", "a/../../b", "./a", "a//b", "")]
    [True, False, False, False, False, False]
    """
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def _canonical(value: Any) -> bytes:
    """Encode a value as unique JSON: sorted keys, no spaces, ASCII, no NaN.

    Raises TypeError for keys that are not strings, which json would silently convert.
    """
    _check_keys(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _check_keys(value: Any) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} of a setting is not a string")
            _check_keys(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_keys(item)


def readable_json(value: msgspec.Struct) -> bytes:
    """Encode as ASCII JSON with sorted keys and one value per line; equal values, equal bytes."""
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")
