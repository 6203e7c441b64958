"""What an artifact is on disk: a folder that describes itself.

::

    artifacts/encoded/era5-p1000/3f2a9c1b5d7e8f60/
        manifest.json      what it is, what it was made from and by what
        files.jsonl        each content file: path, bytes, sha256
        timing.json        clocks and speeds, in no digest
        receipts/          one small file a unit of work, in no digest
        train-00000.parquet ...

The sha256 of ``files.jsonl`` is the artifact's content digest. Nothing that is
read here is trusted: sizes are looked at before memory is taken, every field
has a type, and no path may leave the folder.
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

FORMAT = 1  # of the store: the layout above and every field below

MANIFEST, FILES, TIMING, RECEIPTS = "manifest.json", "files.jsonl", "timing.json", "receipts"
PLUGINS = "plugins"  # the fact of a manifest
VERSION = re.compile(r"[0-9a-f]{16}")
_REF = re.compile(rf"{NAME.pattern}@{VERSION.pattern}")

_OUTSIDE_THE_DIGEST = {MANIFEST, FILES, TIMING, RECEIPTS}
SMALL = 8 << 20  # bytes: the most a manifest or a receipt may have

T = TypeVar("T")
_Name = Annotated[str, msgspec.Meta(pattern=rf"^(?:{NAME.pattern})\Z")]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Version = Annotated[str, msgspec.Meta(pattern=rf"^(?:{VERSION.pattern})\Z")]


class Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an artifact was made from: another artifact, or a raw file (kind ``file``).

    ``where`` is a REF or a path and says where it was found; the content is
    meant by ``digest``: an artifact's content digest, or the sha256 of the file.
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
    """``manifest.json``.

    ``counts`` are the stage's own (rows, tokens); ``files`` and ``bytes`` are
    those of the content; ``content`` is the sha256 of files.jsonl; ``command``
    makes the artifact again; ``facts`` are what a reader must know and cannot
    count (constants, periods, a licence, under ``plugins`` those that were
    loaded), not written where there are none; ``digest`` is over all the other
    fields.
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
    """Of the facts of a manifest (``plugins.loaded``)."""

    plugins: dict[str, str] = {}


# Commands and paths may have half characters in them.
_MANIFEST = StoredJson(
    name=MANIFEST, kind=Manifest, limit=SMALL, newest=FORMAT, then=REMAKE, any_text=True
)
_LISTING = StoredLines(name=FILES, kind=Output, limit=256 << 20, then=REMAKE, any_text=True)
_TIMING = StoredJson(name=TIMING, kind=dict[str, Scalar], limit=SMALL, then=REMAKE)


@dataclass(frozen=True)
class Artifact:
    """A complete artifact, by its place; the manifest is read when first asked for."""

    path: Path
    kind: str
    name: str
    version: str

    @property
    def ref(self) -> str:
        """``name@version``, as commands print it and take it."""
        return f"{self.name}@{self.version}"

    @cached_property
    def manifest(self) -> Manifest:
        """What ``manifest.json`` says, read when first asked for; StoreError where it is
        damaged."""
        return read_manifest(self.path)

    def files(self) -> list[Output]:
        """The content files, sorted by path; StoreError if the listing is not what was written."""
        return read_listing(self.path, self.manifest.content)

    def timing(self, kind: type[T]) -> T:
        """Its clocks, as a type with those that the reader needs; read anew each time."""
        with reading(self.path / TIMING, REMAKE):
            return convert(_TIMING.read(self.path), kind)

    @property
    def seconds(self) -> float:
        """How long it took to make."""
        return self.timing(_Timing).seconds

    def facts(self, kind: type[T]) -> T:
        """What the manifest says besides, as a type with the facts that its reader needs."""
        return self._part("facts", self.manifest.facts, kind)

    def counts(self, kind: type[T]) -> T:
        """Likewise, the counts of the manifest."""
        return self._part("counts", self.manifest.counts, kind)

    def settings(self, kind: type[T]) -> T:
        """Likewise, the settings of the manifest."""
        return self._part("settings", self.manifest.settings, kind)

    def _part(self, name: str, part: Mapping[str, Any], kind: type[T]) -> T:
        with reading(self.path / MANIFEST, REMAKE, f"its {name}: "):
            return convert(part, kind)

    def made_from(self, *kinds: str) -> Parent:
        """The first thing that it was made from; StoreError where that is not of one of some kinds
        of artifacts."""
        parents = self.manifest.parents
        if not parents or parents[0].kind not in kinds or not _REF.fullmatch(parents[0].where):
            of = " or ".join(kinds)
            why = f"it names no artifact of kind {of} as what it is of"
            raise damaged(self.path / MANIFEST, why, REMAKE)
        return parents[0]

    @contextmanager
    def naming_plugins(self) -> Iterator[None]:
        """While parts that it names are built: one that is not here is told with the plugins that
        the artifact was made with."""
        try:
            yield
        except MissingPart as error:
            raise UsageError(error.of(self.ref, self.facts(_MadeWith).plugins)) from error

    def as_parent(self) -> Parent:
        """As the manifest of what is made from it names it: by the digest of its content."""
        return Parent(self.kind, self.ref, self.manifest.content, self.manifest.bytes)


class MadeArtifact(NamedTuple):
    """The artifact of a stage, and whether this call made it."""

    artifact: Artifact
    made: bool

    @property
    def ref(self) -> str:
        """``name@version``, as commands take it."""
        return self.artifact.ref


class Resolve(Protocol):
    """What a REF stands for, as ``Store.resolve``, for what knows no store.

    Raises UsageError where that is no artifact, or none of these kinds.
    """

    def __call__(self, ref: str, kinds: Collection[str] | None = None) -> Artifact: ...


#: The artifact of a kind, name and version, as ``Store.find``; None where it is no longer there.
Find = Callable[[str, str, str], Artifact | None]


def version_of(kind: str, settings: Mapping[str, Any], parents: Sequence[Parent]) -> str:
    """16 hexadecimal digits that stand for what goes into an artifact.

    The order of the keys and the places of the parents do not matter; the order
    of the parents does. A seed that the content depends on is one of the settings.

    >>> version_of("encoded", {"scheme": "p10", "seed": 0}, [])
    'e51aca5d55e16810'

    Raises TypeError or ValueError for settings that JSON cannot hold exactly.
    """
    whole = [FORMAT, kind, settings, [parent.digest for parent in parents]]
    return hashlib.sha256(_canonical(whole)).hexdigest()[:16]


def walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Each content path below a folder, sorted, and whether it is a plain file.

    Folders are gone into and not named; symbolic links, sockets and the like
    are named and not followed.
    """

    def below(place: Path, prefix: str) -> Iterator[tuple[str, bool]]:
        for entry in files.system.scandir(place):
            if not prefix and entry.name in _OUTSIDE_THE_DIGEST:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from below(place / entry.name, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry.is_file(follow_symlinks=False)

    yield from sorted(below(folder, ""))


def listing(outputs: Sequence[Output]) -> bytes:
    """The bytes of files.jsonl: one object a line, sorted by path."""
    return b"".join(
        _canonical(msgspec.to_builtins(output)) + b"\n"
        for output in sorted(outputs, key=lambda output: output.path)
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    """The bytes of manifest.json, with the digest that belongs to the other fields."""
    blank = msgspec.structs.replace(manifest, digest="")
    digest = hashlib.sha256(readable_json(blank)).hexdigest()
    return readable_json(msgspec.structs.replace(manifest, digest=digest))


def read_manifest(folder: Path) -> Manifest:
    """Raises StoreError for one that is damaged, too large, or of a newer format."""
    return _MANIFEST.read(folder)


def read_listing(folder: Path, content: str) -> list[Output]:
    """Raises StoreError unless files.jsonl has the sha256 ``content`` and only safe paths."""
    path = folder / FILES
    data = files.read_bytes(path, _LISTING.limit)
    if (got := hashlib.sha256(data).hexdigest()) != content:
        raise damaged(path, f"its sha256 is {got}, the manifest says {content}", REMAKE)
    return _LISTING.of(data, path)


def is_there(path: Path) -> bool:
    """Whether there is a plain file of that name."""
    try:
        return stat.S_ISREG(files.system.stat(path).st_mode)
    except FileNotFoundError:
        return False


def is_inside(path: str) -> bool:
    """Whether a relative path is written plainly and stays below its folder.

    >>> [is_inside(path) for path in ("a/b", "/a", "a/../../b", "./a", "a//b", "")]
    [True, False, False, False, False, False]
    """
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def _canonical(value: Any) -> bytes:
    """One text for one value: keys in order, no spaces, ASCII, no NaN.

    json turns a key that is not a string into one without a word, so that two
    different dictionaries would have the same text; such keys are refused.
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
    """As JSON with a value a line, keys sorted, in ASCII: equal values give equal bytes."""
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")
