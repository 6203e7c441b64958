"""Artifact store, in which each artifact is either complete or absent at any time.

::

    <root>/<kind>/<name>/<version>/            an artifact
                        .draft-<version>.*/    an artifact being made
                        .trash-<version>.*/    an artifact being removed
                        .lock-<version>        lock held while it is made or removed
    <root>/.spool-<token>/, .lock-<token>      temporary folder, for example for standard input

An artifact is written to its draft folder and published by one rename. A process that dies at any
point leaves at most hidden folders and a lock that the kernel has already released. The next run of
the same command continues the draft; ``collect`` removes abandoned drafts.
"""

import difflib
import os
import re
import secrets
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from numtok import files
from numtok.errors import StoreError, UsageError, file_not_found
from numtok.names import NAME
from numtok.store import artifact as on_disk
from numtok.store.access import Making
from numtok.store.artifact import VERSION, Artifact, Manifest, Parent
from numtok.store.draft import Draft, claim, discard, shorten
from numtok.store.locks import release, take_lock
from numtok.store.provenance import provenance

_HIDDEN = re.compile(r"\.(?:draft|trash|spool|lock)-([0-9a-f]{16})(?:\..*)?")
_REF = re.compile(r"(?:([a-z0-9][a-z0-9._-]*)/)?([a-z0-9][a-z0-9._-]*)(?:@([0-9a-f]{4,16}))?")
VERSION_START = re.compile(r"[0-9a-f]{4,16}")

#: Endings of data files, which no artifact is likely to have.
_FILES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".gz", ".zst")

SPOOL = ".spool-"  # prefix of the names of temporary folders
#: Kinds of artifacts in a sentence, where they differ from ``a KIND``.
_IN_WORDS = {"data": "unencoded data", "raw": "raw data", "encoded": "encoded data"}
#: How to make one kind of artifact from another.
_MADE_FROM = {
    ("encoded", "data"): "Encode it first: numtok encode {} --scheme xval",
    ("model", "encoded"): "Train a model first: numtok train {}",
    ("model", "table"): "Train a model first: numtok train {}",
    ("report", "model"): "Evaluate it first: numtok eval {}",
}


def _to_stderr(note: str) -> None:
    print(f"numtok: {note}", file=sys.stderr)


@dataclass(frozen=True)
class Collected:
    """File or folder that :meth:`Store.collect` removed or would remove, and its size in bytes."""

    path: Path
    bytes: int


class Absent(Exception):
    """Raised by :meth:`Store.draft` if an artifact does not exist and the store is not allowed to
    make it."""


@final
class Store:
    """Store that finds, creates and removes the artifacts in one folder.

    All methods raise StoreError if the disk fails or files are damaged.

    note
        Function that receives messages for the user, for example while waiting for another process.
    any_name
        If true, :meth:`draft` also finds artifacts of the same version under other names.
    make
        If false, :meth:`draft` raises Absent instead of making an artifact.
    """

    def __init__(
        self,
        root: Path,
        note: Callable[[str], None] = _to_stderr,
        *,
        any_name: bool = False,
        make: bool = True,
    ) -> None:
        self.root = root
        self.note = note
        self._any_name = any_name
        self._make = make

    def artifacts(self) -> list[Artifact]:
        """Return all artifacts, sorted by kind, name and version. Only folder names are read."""
        with files.reporting("list", self.root):
            return [
                Artifact(folder / version, folder.parent.name, folder.name, version)
                for folder in self._name_folders()
                for version in _folders(folder, VERSION)
            ]

    def find(self, kind: str, name: str, version: str) -> Artifact | None:
        """Return the artifact with this kind, name and version, or None if it does not exist or a
        name is invalid (such as ``..``)."""
        if not (NAME.fullmatch(kind) and NAME.fullmatch(name) and VERSION.fullmatch(version)):
            return None
        path = self.root / kind / name / version
        with files.reporting("look at", path):
            return Artifact(path, kind, name, version) if files.is_folder(path) else None

    def resolve(self, ref: str, kinds: Collection[str] | None = None) -> Artifact:
        """Return the artifact that a REF refers to. If ``kinds`` is given, only these kinds are
        considered.

        A REF is ``name@version``, ``name``, ``kind/name``, ``kind/name@version``, a version, or the
        path of an artifact's folder. The first four characters of a version are enough. Raises
        UsageError unless exactly one artifact matches.

        Commands that read the content of the artifact pass ``kinds``. In that case, StoreError is
        raised if the artifact contains a link or a special file.
        """
        match = _REF.fullmatch(ref)
        if "/" in ref and not (match and self._has_kind(match[1])):
            candidates = [_at_path(Path(ref))]
        else:
            candidates = self._matching(ref, match)
        accepted = [item for item in candidates if kinds is None or item.kind in kinds]
        if len(accepted) == 1:
            if kinds is not None:
                _check_plain(accepted[0])
            return accepted[0]
        if accepted:
            names = shorten([f"{item.kind}/{item.ref}" for item in accepted])
            raise UsageError(f"{ref!r} matches several artifacts. Name one of {names}")
        assert kinds is not None and candidates
        raise UsageError(_other_kind(ref, candidates[0].kind, sorted(kinds)))

    @contextmanager
    def draft(
        self,
        kind: str,
        name: str,
        settings: Mapping[str, Any],
        parents: Sequence[Parent],
        command: Sequence[str],
        how: Making | None = None,
    ) -> Iterator["Draft | Artifact"]:
        """Yield a draft in which to make an artifact, or the artifact if it already exists.

        This waits while another process makes the same artifact. A draft left by a process that
        died is continued, unless ``how.restart`` is set or the draft was begun with other versions
        of numtok or its libraries: an artifact must be made by one set of versions. With
        ``how.force``, an existing artifact is made again and the two are compared. If the block
        ends without ``publish``, the draft is kept for the next run.

        >>> with store.draft("encoded", "era5-p10", settings, parents, argv) as draft:
        ...     if isinstance(draft, Artifact):
        ...         return draft
        ...     with Sink(draft.path / "train-00000.parquet") as sink: ...
        ...     return draft.publish(counts={"rows": 12}, timing={"seconds": 0.5})

        Raises UsageError if a name is invalid, Absent if the store is not allowed to make
        artifacts, and StoreError if the disk fails.
        """
        for what, text in (("kind", kind), ("name", name)):
            if not NAME.fullmatch(text):
                raise UsageError(
                    f"{what} {text!r} must be lower-case letters, digits and ._-, starting with a "
                    "letter or digit"
                )
        blank = _blank_manifest(kind, name, settings, parents, command)
        version, parent = blank.version, self.root / kind / name
        restart, force = (False, False) if how is None else (how.restart, how.force)
        if not force and (artifact := self._existing(kind, name, version)):
            yield artifact
            return
        if not self._make:
            raise Absent(f"{kind}/{name}@{version}")
        with self._locked(parent, version, f"{kind}/{name}@{version}"):
            # Another process may have finished it while this one waited.
            if not force and (artifact := self.find(kind, name, version)):
                yield artifact
                return
            with files.reporting("make a draft in", parent):
                folder, continued = claim(parent, version, restart, self.note)
            yield Draft(folder, continued, blank, self.note)

    @contextmanager
    def spool(self) -> Iterator[Path]:
        """Create a hidden folder that exists for the duration of the block, and yield its path.

        A store that did not exist before is removed after the block. If the process is killed,
        :meth:`collect` later removes the folder.
        """
        token = secrets.token_hex(8)
        with files.reporting("read", self.root):
            new = not files.is_folder(self.root)
        try:
            with self._locked(self.root, token, "the spool"):
                folder = self.root / f"{SPOOL}{token}"
                try:
                    with files.reporting("write to", folder):
                        files.system.mkdir(folder)
                    yield folder
                finally:
                    with suppress(OSError):
                        files.remove_tree(folder)
        finally:
            if new:
                with suppress(OSError):  # another process has made an artifact there
                    files.system.rmdir(self.root)

    @contextmanager
    def scratch(self) -> Iterator["Store"]:
        """Yield a store whose artifacts exist for the duration of the block."""
        with self.spool() as folder:
            yield Store(folder, self.note, any_name=True)

    def children(self, artifact: Artifact) -> list[Artifact]:
        """Return the artifacts that have this one as a parent. Damaged artifacts are skipped, with
        a note."""
        children = []
        for candidate in self.artifacts():
            try:
                parents = candidate.manifest.parents if candidate.ref != artifact.ref else []
            except StoreError as error:
                self.note(f"{error}; its parents are unknown")
                continue
            identity = (artifact.kind, artifact.ref)
            if any((parent.kind, parent.where) == identity for parent in parents):
                children.append(candidate)
        return children

    def remove(self, artifact: Artifact, *, force: bool = False) -> None:
        """Remove an artifact atomically.

        Raises UsageError if another artifact was made from it (unless ``force`` is set), if it is
        outside this store, or if another process removed it first.
        """
        parent = self.root / artifact.kind / artifact.name
        if artifact.path.resolve() != (parent / artifact.version).resolve():
            raise UsageError(
                f"{artifact.path} is not in the store {self.root}. Name its store: --store"
            )
        if not force and (children := self.children(artifact)):
            names = shorten([child.ref for child in children])
            raise UsageError(
                f"{artifact.ref} is a parent of {names}. Remove those first, or use --force"
            )
        with (
            self._locked(parent, artifact.version, artifact.ref),
            files.reporting("remove", artifact.path),
        ):
            if present := files.is_folder(artifact.path):
                discard(artifact.path, artifact.version)
        _remove_if_empty(parent, self.root / artifact.kind)
        if not present:
            raise UsageError(f"no artifact {artifact.ref}: another process removed it")

    def collect(self, *, remove: bool = True) -> list[Collected]:
        """Remove drafts, spool folders, trash and lock files that no running process holds, and
        return a list of them.

        If ``remove`` is false, they are only listed.
        """
        swept: list[Collected] = []
        with files.reporting("sweep", self.root):
            for parent in (self.root, *self._name_folders()):
                for token, entries in _hidden(parent).items():
                    swept += self._collect(parent, token, entries, remove)
                if remove and parent != self.root:
                    _remove_if_empty(parent, parent.parent)
        return swept

    def _collect(
        self, parent: Path, token: str, entries: Sequence[str], remove: bool
    ) -> Iterator[Collected]:
        """Remove or list the ``entries`` of a folder that one lock protects, unless a process holds
        the lock."""
        path = parent / f".lock-{token}"
        if (lock := take_lock(path, self._make_folder)) is None:
            return
        try:
            if path.name in entries:
                yield Collected(path, 0)
            # The previous holder may already have removed some of them.
            for folder in (parent / entry for entry in entries):
                if files.is_folder(folder):
                    size = discard(folder, token) if remove else files.tree_size(folder)
                    yield Collected(folder, size)
        finally:
            if remove or path.name not in entries:
                release(path, lock)
            else:
                files.system.close(lock)

    def _existing(self, kind: str, name: str, version: str) -> Artifact | None:
        """Return the artifact of a version with this name or, if ``any_name`` is set, with any
        name."""
        artifact = self.find(kind, name, version)
        if artifact is None and self._any_name:
            with files.reporting("list", self.root / kind):
                names = _folders(self.root / kind, NAME)
            every = (self.find(kind, other, version) for other in names)
            artifact = next(filter(None, every), None)
        return artifact

    def _has_kind(self, kind: str) -> bool:
        with files.reporting("look at", self.root):
            return files.is_folder(self.root / kind)

    def _name_folders(self) -> list[Path]:
        """Return the folders ``<kind>/<name>``, sorted. Raises StoreError if the store does not
        exist."""
        try:
            files.system.scandir(self.root)
        except FileNotFoundError:
            raise StoreError(
                f"no store at {self.root}. Commands that make artifacts create it. Choose another "
                "store by --store or NUMTOK_STORE"
            ) from None
        return [
            self.root / kind / name
            for kind in _folders(self.root, NAME)
            for name in _folders(self.root / kind, NAME)
        ]

    def _matching(self, ref: str, match: re.Match[str] | None) -> list[Artifact]:
        everything = self.artifacts()
        if match is not None:
            kind, name, version = match.groups()
            matches = [
                item
                for item in everything
                if item.name == name
                and kind in (None, item.kind)
                and item.version.startswith(version or "")
            ]
            if not matches and VERSION_START.fullmatch(ref):
                matches = [item for item in everything if item.version.startswith(ref)]
            if matches:
                return matches
        names = sorted({text for item in everything for text in (item.name, item.ref)})
        if Path(ref).is_file():
            raise UsageError(
                f"{ref!r} is a file, not an artifact in {self.root}. Make one from texts: numtok "
                "encode; from a table: numtok table"
            )
        if ref.endswith(_FILES):
            raise file_not_found(ref)
        near = difflib.get_close_matches(ref, names, n=1, cutoff=0.5)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"no artifact {ref!r} in {self.root}.{guess} List artifacts: numtok ls")

    @contextmanager
    def _locked(self, folder: Path, token: str, what: str) -> Iterator[None]:
        path = folder / f".lock-{token}"
        with files.reporting("write to", path):
            lock = take_lock(path, self._make_folder)
            if lock is None:
                self.note(f"waiting for another process that works on {what}")
                lock = take_lock(path, self._make_folder, wait=True)
        assert lock is not None
        try:
            yield
        finally:
            release(path, lock)

    def _make_folder(self, path: Path) -> None:
        """Create a folder and its parents up to the root, but nothing above the root."""
        kind = [path.parent] if path != self.root else []
        for folder in (self.root, *kind, path):
            with suppress(FileExistsError):
                files.system.mkdir(folder)


def _blank_manifest(
    kind: str,
    name: str,
    settings: Mapping[str, Any],
    parents: Sequence[Parent],
    command: Sequence[str],
) -> Manifest:
    """Return the manifest with all fields that are known in advance."""
    seed = settings.get("seed")
    blank = Manifest(
        schema=on_disk.FORMAT,
        kind=kind,
        name=name,
        version=on_disk.version_of(kind, settings, parents),
        settings=dict(settings),
        seed=seed if isinstance(seed, int) else None,
        parents=tuple(parents),
        counts={},
        files=0,
        bytes=0,
        content="",
        made_by=provenance(),
        command=tuple(command),
        digest="",
    )
    # Fail now, not after hours of work; the other fields take far less than a tenth of the limit.
    if (size := len(on_disk.sealed_json(blank))) > on_disk.SMALL * 9 // 10:
        raise UsageError(
            f"the settings, inputs and command line of {kind}/{name} must have at most "
            f"{on_disk.SMALL * 9 // 10} bytes (got {size}). Join the inputs into fewer files"
        )
    return blank


def _other_kind(ref: str, kind: str, wanted: Sequence[str]) -> UsageError:
    """Return the error for a REF of another kind than the ``wanted`` ones."""
    named = [_IN_WORDS.get(one, f"a {one}") for one in wanted]
    listed = _IN_WORDS.get(wanted[0], f"{wanted[0]}s")
    steps = [_MADE_FROM[one, kind].format(ref) for one in wanted if (one, kind) in _MADE_FROM]
    return UsageError(
        f"expected {' or '.join(named)}, but {ref!r} is {_IN_WORDS.get(kind, f'a {kind}')}. "
        f"{steps[0] if steps else f'List {listed}: numtok ls {wanted[0]}'}"
    )


def _check_plain(artifact: Artifact) -> None:
    """Raise StoreError for links and special files, which may point to any file."""
    with files.reporting("list", artifact.path):
        for path, plain in on_disk.walk(artifact.path):
            if not plain:
                raise StoreError(
                    f"{artifact.path / path} is not a plain file. Make {artifact.ref} again, or "
                    "remove it: numtok rm"
                )


def _at_path(path: Path) -> Artifact:
    with files.reporting("read", path):
        try:
            files.system.stat(path / on_disk.MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{str(path)!r} is not an artifact's folder (it has no {on_disk.MANIFEST}). List "
                "artifacts: numtok ls"
            ) from None
    manifest = on_disk.read_manifest(path)
    return Artifact(path, manifest.kind, manifest.name, manifest.version)


def _folders(path: Path, names: re.Pattern[str]) -> list[str]:
    return [
        entry.name
        for entry in _scandir(path)
        if names.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]


def _scandir(path: Path) -> list[os.DirEntry[str]]:
    try:
        return files.system.scandir(path)
    except FileNotFoundError:  # removed since it was listed
        return []


def _hidden(folder: Path) -> dict[str, list[str]]:
    """Return the names of drafts, trash, spools and locks in a folder, by version or token."""
    hidden: dict[str, list[str]] = {}
    for entry in _scandir(folder):
        if match := _HIDDEN.fullmatch(entry.name):
            hidden.setdefault(match[1], []).append(entry.name)
    return hidden


def _remove_if_empty(*folders: Path) -> None:
    for folder in folders:
        with suppress(OSError):
            files.system.rmdir(folder)
