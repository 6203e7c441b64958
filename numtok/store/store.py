"""Where artifacts are kept: complete or absent, whatever happens.

::

    <root>/<kind>/<name>/<version>/            an artifact
                        .draft-<version>.*/    one being made
                        .trash-<version>.*/    one being removed
                        .lock-<version>        held while either is so
    <root>/.spool-<token>/, .lock-<token>      standard input, before it has a digest

An artifact is written in its draft folder and appears by one rename. A process
that dies at any point leaves at most hidden folders and a lock that the kernel
has already dropped; the next run of the same command continues the draft, and
``collect`` sweeps what nobody continues.
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
from typing import Any, Protocol, final

from numtok import files
from numtok.errors import StoreError, UsageError
from numtok.names import NAME
from numtok.store import artifact as on_disk
from numtok.store.artifact import VERSION, Artifact, Manifest, Parent
from numtok.store.draft import Draft, claim, discard, shorten
from numtok.store.locks import release, take_lock
from numtok.store.provenance import provenance

_HIDDEN = re.compile(r"\.(?:draft|trash|spool|lock)-([0-9a-f]{16})(?:\..*)?")
_REF = re.compile(r"(?:([a-z0-9][a-z0-9._-]*)/)?([a-z0-9][a-z0-9._-]*)(?:@([0-9a-f]{4,16}))?")
_PREFIX = re.compile(r"[0-9a-f]{4,16}")


def _to_stderr(note: str) -> None:
    print(f"numtok: {note}", file=sys.stderr)


@dataclass(frozen=True)
class Collected:
    """One thing that ``collect`` removed, or would remove, and the bytes that were in it."""

    path: Path
    bytes: int


class Making(Protocol):
    """Settings of a command that makes an artifact."""

    @property
    def restart(self) -> bool:
        """Whether to begin anew: the draft of an earlier run is thrown away."""

    @property
    def force(self) -> bool:
        """Whether to make an artifact that is there already once more, to compare the two."""


class Absent(Exception):
    """A store that makes nothing was asked for an artifact that is not there."""


@final
class Store:
    """The artifacts below one folder. ``note`` is given what a waiting user should know.

    With ``any_name``, :meth:`draft` finds what is to be made under other names too; with ``make``
    false it raises Absent where there is nothing to find.

    Every method raises StoreError where the disk fails or what is on it is damaged.
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
        """All artifacts, by kind, name and version; looks at folder names only."""
        with files.reporting("list", self.root):
            return [
                Artifact(place / version, place.parent.name, place.name, version)
                for place in self._places()
                for version in _folders(place, VERSION)
            ]

    def find(self, kind: str, name: str, version: str) -> Artifact | None:
        """The artifact of that place, or None; also for what can be no name, such as ``..``."""
        if not (NAME.fullmatch(kind) and NAME.fullmatch(name) and VERSION.fullmatch(version)):
            return None
        path = self.root / kind / name / version
        with files.reporting("look at", path):
            return Artifact(path, kind, name, version) if files.is_folder(path) else None

    def resolve(self, ref: str, kinds: Collection[str] | None = None) -> Artifact:
        """The one artifact that a REF stands for, of one of ``kinds`` where given.

        A REF is ``name@version``, ``name``, ``kind/name``, ``kind/name@version``,
        at least four characters of a version (also after the ``@``), or the path
        of an artifact's folder. Raises UsageError where that is none or several. Commands that
        read content give ``kinds``, and get a StoreError for an artifact with a link in it.
        """
        match = _REF.fullmatch(ref)
        if "/" in ref and not (match and self._has_kind(match[1])):
            found = [_at_path(Path(ref))]
        else:
            found = self._matching(ref, match)
        accepted = [item for item in found if kinds is None or item.kind in kinds]
        if len(accepted) == 1:
            if kinds is not None:
                _check_plain(accepted[0])
            return accepted[0]
        if accepted:
            names = shorten([f"{item.kind}/{item.ref}" for item in accepted])
            raise UsageError(f"{ref!r} stands for several artifacts; name one of {names}")
        assert kinds is not None and found
        raise UsageError(
            f"{ref!r} is of kind {found[0].kind}; here it must be {' or '.join(sorted(kinds))}"
        )

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
        """The folder to make an artifact in, or the artifact where it is there already.

        Waits while another process makes the same one. A draft left by a process
        that died is continued, unless ``how.restart`` says to begin again or another
        version of numtok or of a library began it: one artifact is made by one
        set of versions. With ``how.force`` an artifact that is there is made again
        and compared. A block left without ``publish`` leaves the draft for the
        next run.

        >>> with store.draft("encoded", "era5-p10", settings, parents, argv) as draft:
        ...     if isinstance(draft, Artifact):
        ...         return draft
        ...     with Sink(draft.path / "train-00000.parquet") as sink: ...
        ...     return draft.publish(counts={"rows": 12}, timing={"seconds": 0.5})

        Raises UsageError for a name that cannot be one, StoreError otherwise.
        """
        for what, text in (("kind", kind), ("name", name)):
            if not NAME.fullmatch(text):
                raise UsageError(
                    f"{what} {text!r} cannot be used; allowed are lower-case letters, digits and "
                    "._- after a first letter or digit"
                )
        blank = _blank_manifest(kind, name, settings, parents, command)
        version, place = blank.version, self.root / kind / name
        restart, force = (False, False) if how is None else (how.restart, how.force)
        if not force and (found := self._made(kind, name, version)):
            yield found
            return
        if not self._make:
            raise Absent(f"{kind}/{name}@{version}")
        with self._locked(place, version, f"{kind}/{name}@{version}"):
            # Another process may have finished it while this one waited.
            if not force and (found := self.find(kind, name, version)):
                yield found
                return
            with files.reporting("make a draft in", place):
                folder, continued = claim(place, version, restart, self.note)
            yield Draft(folder, continued, blank, self.note)

    @contextmanager
    def spool(self) -> Iterator[Path]:
        """A hidden folder for as long as the block lasts; ``collect`` sweeps one left behind."""
        token = secrets.token_hex(8)
        with self._locked(self.root, token, "the spool"):
            folder = self.root / f".spool-{token}"
            try:
                with files.reporting("write to", folder):
                    files.system.mkdir(folder)
                yield folder
            finally:
                with suppress(OSError):
                    files.remove_tree(folder)

    def children(self, artifact: Artifact) -> list[Artifact]:
        """The artifacts that name this one as a parent. A damaged one cannot tell: it is noted."""
        found = []
        for other in self.artifacts():
            try:
                parents = other.manifest.parents if other.ref != artifact.ref else []
            except StoreError as error:
                self.note(f"{error}; it cannot tell what it was made from")
                continue
            if any((one.kind, one.where) == (artifact.kind, artifact.ref) for one in parents):
                found.append(other)
        return found

    def remove(self, artifact: Artifact, *, force: bool = False) -> None:
        """Remove an artifact at once and whole.

        Raises UsageError where another was made from it, unless forced, for one that lies outside
        this store, and if another process removed it first.
        """
        place = self.root / artifact.kind / artifact.name
        if artifact.path.resolve() != (place / artifact.version).resolve():
            raise UsageError(
                f"{artifact.path} is not in the store {self.root}; name its own store with --store"
            )
        if not force and (children := self.children(artifact)):
            names = shorten([child.ref for child in children])
            raise UsageError(
                f"{artifact.ref} is a parent of {names}; remove those first, or use --force"
            )
        with (
            self._locked(place, artifact.version, artifact.ref),
            files.reporting("remove", artifact.path),
        ):
            if present := files.is_folder(artifact.path):
                discard(artifact.path, artifact.version)
        _remove_if_empty(place, self.root / artifact.kind)
        if not present:
            raise UsageError(f"no artifact {artifact.ref}: another process removed it")

    def collect(self, *, remove: bool = True) -> list[Collected]:
        """Sweep drafts, spools, trash and lock files that no living process holds; or only name
        them."""
        swept: list[Collected] = []
        with files.reporting("sweep", self.root):
            for place in (self.root, *self._places()):
                for token, entries in _hidden(place).items():
                    path = place / f".lock-{token}"
                    if (lock := take_lock(path, self._make_place)) is None:
                        continue
                    try:
                        if path.name in entries:
                            swept.append(Collected(path, 0))
                        # The holder before this one may have finished with the rest.
                        for folder in (place / entry for entry in entries):
                            if files.is_folder(folder):
                                size = discard(folder, token) if remove else files.tree_size(folder)
                                swept.append(Collected(folder, size))
                    finally:
                        if remove or path.name not in entries:
                            release(path, lock)
                        else:
                            files.system.close(lock)
                if remove and place != self.root:
                    _remove_if_empty(place, place.parent)
        return swept

    def _made(self, kind: str, name: str, version: str) -> Artifact | None:
        """The artifact of that version: of that name, or of any where the store looks for it."""
        found = self.find(kind, name, version)
        if found is None and self._any_name:
            with files.reporting("list", self.root / kind):
                names = _folders(self.root / kind, NAME)
            every = (self.find(kind, other, version) for other in names)
            found = next(filter(None, every), None)
        return found

    def _has_kind(self, kind: str) -> bool:
        with files.reporting("look at", self.root):
            return files.is_folder(self.root / kind)

    def _places(self) -> list[Path]:
        """The folders ``<kind>/<name>``, in order; StoreError where the store is not there."""
        try:
            files.system.scandir(self.root)
        except FileNotFoundError:
            raise StoreError(
                f"there is no store at {self.root}; a command that makes an artifact creates it, "
                "and --store or NUMTOK_STORE names another"
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
            found = [
                item
                for item in everything
                if item.name == name
                and kind in (None, item.kind)
                and item.version.startswith(version or "")
            ]
            if not found and _PREFIX.fullmatch(ref):
                found = [item for item in everything if item.version.startswith(ref)]
            if found:
                return found
        known = sorted({text for item in everything for text in (item.name, item.ref)})
        if Path(ref).is_file():
            raise UsageError(
                f"no artifact {ref!r} in {self.root}, but a file; `numtok encode` makes an "
                "artifact of texts, `numtok table` of a table"
            )
        near = difflib.get_close_matches(ref, known, n=1, cutoff=0.5)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"no artifact {ref!r} in {self.root}; {guess}`numtok ls` lists them all")

    @contextmanager
    def _locked(self, place: Path, token: str, what: str) -> Iterator[None]:
        path = place / f".lock-{token}"
        with files.reporting("write to", path):
            lock = take_lock(path, self._make_place)
            if lock is None:
                self.note(f"waiting for another process that works on {what}")
                lock = take_lock(path, self._make_place, wait=True)
        assert lock is not None
        try:
            yield
        finally:
            release(path, lock)

    def _make_place(self, place: Path) -> None:
        """Make a folder and its parents down from the root; nothing above the root."""
        kind = [place.parent] if place != self.root else []
        for folder in (self.root, *kind, place):
            with suppress(FileExistsError):
                files.system.mkdir(folder)


def _blank_manifest(
    kind: str,
    name: str,
    settings: Mapping[str, Any],
    parents: Sequence[Parent],
    command: Sequence[str],
) -> Manifest:
    """The manifest as far as it is known before anything is made."""
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
    # Now and not after hours of work; the rest of a manifest is far below a tenth of the limit.
    if (size := len(on_disk.manifest_bytes(blank))) > on_disk.SMALL * 9 // 10:
        raise UsageError(
            f"the settings, inputs and command line of {kind}/{name} have {size} bytes, at most "
            f"{on_disk.SMALL * 9 // 10} are kept; join the inputs to fewer, larger files"
        )
    return blank


def _check_plain(artifact: Artifact) -> None:
    """Raise StoreError for a link or the like: the file behind it could be anyone's."""
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
                f"{str(path)!r} is not an artifact's folder (it has no {on_disk.MANIFEST}); "
                "`numtok ls` lists the artifacts of the store"
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


def _hidden(place: Path) -> dict[str, list[str]]:
    """The names of what is being made or removed in a folder, by version or token."""
    found: dict[str, list[str]] = {}
    for entry in _scandir(place):
        if match := _HIDDEN.fullmatch(entry.name):
            found.setdefault(match[1], []).append(entry.name)
    return found


def _remove_if_empty(*folders: Path) -> None:
    for folder in folders:
        with suppress(OSError):
            files.system.rmdir(folder)
