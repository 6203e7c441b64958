"""On-disk format of an artifact, a self-describing folder.

::

    artifacts/encoded/era5-p1000/3f2a9c1b5d7e8f60/
        manifest.json      kind, settings, parents and provenance
        files.jsonl        path, bytes and sha256 of each content file
        timing.json        times and speeds, not in any digest
        receipts/          one small file per unit of work (see receipts.py), not in any digest
        train-00000.parquet ...

The SHA-256 of ``files.jsonl`` is the artifact's content digest. Files are not trusted: sizes are
checked before memory is allocated, the type of every field is checked, and no path may lead out of
the folder.
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
PLUGINS = "plugins"  # key in the facts of a manifest
VERSION = re.compile(r"[0-9a-f]{16}")
_REF = re.compile(rf"{NAME.pattern}@{VERSION.pattern}")

_OUTSIDE_THE_DIGEST = {MANIFEST, FILES, TIMING, RECEIPTS}
SMALL = 8 << 20  # maximum bytes of a manifest or a receipt

T = TypeVar("T")
_Name = Annotated[str, msgspec.Meta(pattern=rf"^(?:{NAME.pattern})\Z")]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Version = Annotated[str, msgspec.Meta(pattern=rf"^(?:{VERSION.pattern})\Z")]


class Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reference to an input of an artifact: another artifact, or a raw file (kind ``file``).

    ``where`` is the REF (``name@version``) or path of the input. ``digest`` identifies its content:
    the content digest of an artifact, or the SHA-256 of a file.
    """

    kind: str
    where: str
    digest: str
    bytes: Natural


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry for one content file in ``files.jsonl``. ``path`` is relative to the artifact's folder
    and uses ``/``."""

    path: str
    bytes: Natural
    sha256: str

    def __post_init__(self) -> None:
        if not is_inside(self.path):
            raise ValueError(f"{self.path!r} leaves the artifact's folder")


class Manifest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """Content of ``manifest.json``, which describes an artifact.

    parents
        Artifacts and files that the artifact was made from.
    counts
        Counts reported by the stage, such as rows and tokens.
    files, bytes
        Number and total size of the content files.
    content
        SHA-256 of ``files.jsonl``.
    command
        Command that makes the artifact again.
    facts
        Further information, such as constants, periods, a license, and the loaded plugins
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
    """Loaded plugins in the facts of a manifest (see :func:`numtok.plugins.loaded`)."""

    plugins: dict[str, str] = {}


# Commands and paths may contain lone surrogates.
_MANIFEST = StoredJson(
    name=MANIFEST, kind=Manifest, limit=SMALL, newest=FORMAT, then=REMAKE, any_text=True
)
_LISTING = StoredLines(name=FILES, kind=Output, limit=256 << 20, then=REMAKE, any_text=True)
_TIMING = StoredJson(name=TIMING, kind=dict[str, Scalar], limit=SMALL, then=REMAKE)


@dataclass(frozen=True)
class Artifact:
    """A complete artifact, identified by its path. Its manifest is read on first access."""

    path: Path
    kind: str
    name: str
    version: str

    @property
    def ref(self) -> str:
        """REF of the artifact, ``name@version``, in the form that commands print and accept."""
        return f"{self.name}@{self.version}"

    @cached_property
    def manifest(self) -> Manifest:
        """Content of ``manifest.json``, read on first access. Raises StoreError if the file is
        damaged."""
        return read_manifest(self.path)

    def files(self) -> list[Output]:
        """Return the entries in ``files.jsonl``, sorted by path. Raises StoreError if the file was
        changed."""
        return read_listing(self.path, self.manifest.content)

    def read(self, stored: StoredJson[T]) -> T:
        """Read a JSON file among the content files. Raises StoreError if it is damaged, or if it
        was changed (see :meth:`check`)."""
        value = stored.read(self.path)
        self.check(stored.name)
        return value

    def check(self, name: str) -> None:
        """Raise StoreError unless the checksum of a content file is the recorded one.

        Small files with settings, constants and results are checked whenever they are read, because
        a changed digit in one of them would change results without notice.
        """
        digest, _ = files.sha256_file(self.path / name)
        if all(output.sha256 != digest for output in self.files() if output.path == name):
            raise damaged(self.path / name, "its checksum is not the recorded one")

    def timing(self, kind: type[T]) -> T:
        """Read ``timing.json`` as an object of the class ``kind``, which declares the fields that
        the caller needs."""
        with reading(self.path / TIMING, REMAKE):
            return convert(_TIMING.read(self.path), kind)

    @property
    def seconds(self) -> float:
        """Time in seconds that it took to make the artifact."""
        return self.timing(_Timing).seconds

    def facts(self, kind: type[T]) -> T:
        """Return ``manifest.facts`` as an object of the class ``kind``, which declares the fields
        that the caller needs."""
        return self._part("facts", self.manifest.facts, kind)

    def counts(self, kind: type[T]) -> T:
        """Return ``manifest.counts`` as an object of the class ``kind`` (see :meth:`facts`)."""
        return self._part("counts", self.manifest.counts, kind)

    def settings(self, kind: type[T]) -> T:
        """Return ``manifest.settings`` as an object of the class ``kind`` (see :meth:`facts`)."""
        return self._part("settings", self.manifest.settings, kind)

    def _part(self, name: str, part: Mapping[str, Any], kind: type[T]) -> T:
        with reading(self.path / MANIFEST, REMAKE, f"its {name}: "):
            return convert(part, kind)

    def made_from(self, *kinds: str) -> Parent:
        """Return the first parent in the manifest. Raises StoreError if it is not an artifact of
        one of the given kinds."""
        parents = self.manifest.parents
        if not parents or parents[0].kind not in kinds or not _REF.fullmatch(parents[0].where):
            why = f"its first parent must be an artifact of kind {' or '.join(kinds)}"
            raise damaged(self.path / MANIFEST, why, REMAKE)
        return parents[0]

    @contextmanager
    def naming_plugins(self) -> Iterator[None]:
        """Turn MissingPart errors raised in the block into errors that name this artifact's
        plugins."""
        try:
            yield
        except MissingPart as error:
            raise UsageError(error.of(self.ref, self.facts(_MadeWith).plugins)) from error

    def as_parent(self) -> Parent:
        """Return the reference to this artifact for the manifests of artifacts made from it."""
        return Parent(self.kind, self.ref, self.manifest.content, self.manifest.bytes)


class MadeArtifact(NamedTuple):
    """Artifact returned by a stage. ``made`` is true if the stage made the artifact, and false if
    it already existed."""

    artifact: Artifact
    made: bool

    @property
    def ref(self) -> str:
        """REF of the artifact, ``name@version``."""
        return self.artifact.ref


class Resolve(Protocol):
    """Protocol for functions that find artifacts as :meth:`Store.resolve` does, for code without
    access to a store.

    The function returns the artifact that ``ref`` refers to. It raises UsageError if the artifact
    does not exist or is not of one of the given kinds.
    """

    def __call__(self, ref: str, kinds: Collection[str] | None = None) -> Artifact: ...


#: Function that works like ``Store.find``: from kind, name and version to an artifact or None.
Find = Callable[[str, str, str], Artifact | None]


def version_of(kind: str, settings: Mapping[str, Any], parents: Sequence[Parent]) -> str:
    """Return the version of an artifact: 16 hexadecimal digits that identify its inputs.

    The order of the parents matters; the order of keys and the locations of parents do not. A seed
    that determines the content must be one of the settings.

    >>> version_of("encoded", {"scheme": "p10", "seed": 0}, [])
    'e51aca5d55e16810'

    Raises TypeError or ValueError if JSON cannot represent the settings exactly.
    """
    whole = [FORMAT, kind, settings, [parent.digest for parent in parents]]
    return hashlib.sha256(_canonical(whole)).hexdigest()[:16]


def walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the path of each content file below a folder, sorted, and whether it is a regular file.

    Subfolders are searched but not yielded themselves. Symbolic links, sockets and other special
    files are yielded but not followed.
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
    """Return the content of ``files.jsonl``: one line of JSON per content file, sorted by path."""
    return b"".join(
        _canonical(msgspec.to_builtins(output)) + b"\n"
        for output in sorted(outputs, key=lambda output: output.path)
    )


def sealed_json(value: msgspec.Struct) -> bytes:
    """Return a manifest or receipt as JSON, with the digest of all other fields in ``digest``."""
    blank = _readable_json(msgspec.structs.replace(value, digest=""))
    digest = hashlib.sha256(blank).hexdigest()
    return _readable_json(msgspec.structs.replace(value, digest=digest))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest in a folder. Raises StoreError if it was changed or is too large, or if it
    has another format version."""
    path = folder / MANIFEST
    content = files.read_bytes(path, _MANIFEST.limit)
    manifest = _MANIFEST.of(content, path)
    if content != sealed_json(manifest):
        raise damaged(path, "its digest does not match its fields", REMAKE)
    return manifest


def read_listing(folder: Path, content: str) -> list[Output]:
    """Read ``files.jsonl`` in a folder.

    Raises StoreError if the SHA-256 of the file is not ``content``, or if a path leads out of the
    folder.
    """
    path = folder / FILES
    data = files.read_bytes(path, _LISTING.limit)
    if (got := hashlib.sha256(data).hexdigest()) != content:
        raise damaged(path, f"its sha256 is {got}, not {content} as in the manifest", REMAKE)
    return _LISTING.of(data, path)


def is_there(path: Path) -> bool:
    """Return whether a regular file exists at this path."""
    try:
        return stat.S_ISREG(files.system.stat(path).st_mode)
    except FileNotFoundError:
        return False


def is_inside(path: str) -> bool:
    """Return whether a relative path is normalized and does not lead out of its folder.

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


def _readable_json(value: msgspec.Struct) -> bytes:
    """Return a value as ASCII JSON with sorted keys and one value per line. Equal values give equal
    bytes."""
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")
