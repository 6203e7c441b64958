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
import math
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol, TypeVar

import msgspec

from numtok import files
from numtok.errors import MissingPart, StoreError, UsageError
from numtok.names import NAME as NAME
from numtok.records import Natural, Value, check_depth, convert, decode
from numtok.store.provenance import Provenance

FORMAT = 1  # of the store: the layout above and every field below

MANIFEST, FILES, TIMING, RECEIPTS = "manifest.json", "files.jsonl", "timing.json", "receipts"
PLUGINS = "plugins"  # the fact of a manifest
VERSION = re.compile(r"[0-9a-f]{16}")
_REF = re.compile(rf"{NAME.pattern}@{VERSION.pattern}")

_OUTSIDE_THE_DIGEST = {MANIFEST, FILES, TIMING, RECEIPTS}
SMALL = 8 << 20  # bytes: the most a manifest or a receipt may have
_LISTING = 256 << 20  # bytes: some two million files

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


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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


class _Said(dict[str, Any]):
    """A part of a manifest: to look up what it lacks is to find it damaged."""

    def __init__(self, path: Path, part: str, said: Mapping[str, Any]) -> None:
        super().__init__(said)
        self._path, self._part = path, part

    def __missing__(self, key: str) -> NoReturn:
        _damaged(self._path, f"its {self._part} lack {key!r}")


@dataclass(frozen=True)
class Artifact:
    """A complete artifact, by its place; the manifest is read when first asked for."""

    path: Path
    kind: str
    name: str
    version: str

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.version}"

    @cached_property
    def manifest(self) -> Manifest:
        return read_manifest(self.path)

    def files(self) -> list[Output]:
        """The content files, sorted by path; StoreError if the listing is not what was written."""
        return read_listing(self.path, self.manifest.content)

    def decoded(
        self,
        name: str,
        kind: type[T],
        limit: int = SMALL,
        upgrade: Callable[[bytes], bytes] | None = None,
    ) -> T:
        """One of its JSON files, of at most ``limit`` bytes; StoreError for one that is damaged.

        ``upgrade`` makes of a file of a former schema what it would be now; it raises ValueError as
        ``records.decode`` does.
        """
        path = self.path / name
        return _decoded(path, files.read_bytes(path, limit), kind, upgrade)

    def decoded_lines(self, name: str, kind: type[T]) -> list[T]:
        """The lines of one of its JSONL files; StoreError where one is damaged."""
        path = self.path / name
        lines = files.read_bytes(path, _LISTING).splitlines()
        return [_decoded(path, line, kind) for line in lines]

    @property
    def seconds(self) -> float:
        """How long it took to make; read anew each time."""
        return self.decoded(TIMING, _Timing).seconds

    def facts(self, kind: type[T]) -> T:
        """What the manifest says besides, as a type with the facts that its reader needs."""
        return _typed(self.path / MANIFEST, self.manifest.facts, kind)

    def made_from(self, *kinds: str) -> Parent:
        """The first thing that it was made from; StoreError where that is not of one of some kinds
        of artifacts."""
        parents = self.manifest.parents
        if not parents or parents[0].kind not in kinds or not _REF.fullmatch(parents[0].where):
            of = " or ".join(kinds)
            _damaged(self.path / MANIFEST, f"it names no artifact of kind {of} as what it is of")
        return parents[0]

    @contextmanager
    def naming_plugins(self) -> Iterator[None]:
        """While parts that it names are built: one that is not here is told with the plugins that
        the artifact was made with."""
        try:
            yield
        except MissingPart as error:
            made_with = self.manifest.facts.get(PLUGINS)
            known = made_with if isinstance(made_with, dict) else {}
            raise UsageError(error.of(self.ref, known)) from error

    def as_parent(self) -> Parent:
        return Parent(self.kind, self.ref, self.manifest.content, self.manifest.bytes)


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
    path = folder / MANIFEST
    data = _parse(path, files.read_bytes(path, SMALL))
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, int) and schema > FORMAT:
        raise StoreError(
            f"{path} has store format {schema}, this numtok knows up to {FORMAT}; "
            "use the numtok that made it, or a newer one"
        )
    manifest = _typed(path, data, Manifest)
    if manifest.schema != FORMAT:
        _damaged(path, f"there is no store format {manifest.schema}")
    return msgspec.structs.replace(
        manifest,
        settings=_Said(path, "settings", manifest.settings),
        counts=_Said(path, "counts", manifest.counts),
    )


def read_listing(folder: Path, content: str) -> list[Output]:
    """Raises StoreError unless files.jsonl has the sha256 ``content`` and only safe paths."""
    path = folder / FILES
    data = files.read_bytes(path, _LISTING)
    if (got := hashlib.sha256(data).hexdigest()) != content:
        _damaged(path, f"its sha256 is {got}, the manifest says {content}")
    outputs = [_typed(path, _parse(path, line), Output) for line in data.splitlines()]
    for output in outputs:
        if not is_inside(output.path):
            _damaged(path, f"{output.path!r} leaves the artifact's folder")
    return outputs


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
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")


def _parse(path: Path, data: bytes) -> Any:
    try:
        # By Python's own reader: half characters, as of a path that is no UTF-8, are in commands.
        found = json.loads(data, parse_constant=_finite, parse_float=_finite)
        check_depth(found)
        return found
    except (ValueError, RecursionError) as error:
        _damaged(path, f"it is not JSON ({error})")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a JSON number that float64 holds")
    return value


def _decoded(
    path: Path, data: bytes, kind: type[T], upgrade: Callable[[bytes], bytes] | None = None
) -> T:
    try:
        return decode(data if upgrade is None else upgrade(data), kind)
    except ValueError as error:
        _damaged(path, str(error))


def _typed(path: Path, data: Any, kind: type[T]) -> T:
    try:
        return convert(data, kind)
    except ValueError as error:
        _damaged(path, str(error))


def _damaged(path: Path, why: str) -> NoReturn:
    raise StoreError(
        f"{path} is damaged: {why}; remove the artifact (`numtok rm --force`) and make it again"
    )
