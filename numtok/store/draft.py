"""Drafts (artifacts being made): creates their folders, and publishes them.

The name of a draft folder is ``.draft-<version>.<made by>.<random>``, where ``made by`` is a digest
of the versions of numtok and its libraries and of the plugin code. A run with other versions does
not continue the draft, because an artifact must be made by one set of versions.
"""

import errno
import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import msgspec

from numtok import files
from numtok.errors import NegativeVerdict, StoreError
from numtok.plugins import loaded, plugin_code
from numtok.store import artifact as on_disk
from numtok.store import receipts
from numtok.store.artifact import Artifact, Manifest, Output
from numtok.store.provenance import provenance
from numtok.store.receipts import F, Receipt


@final
class Draft:
    """An artifact being made, in a hidden folder that only this process and its workers use.

    ``continued`` is true if the draft was begun by an earlier run. Files whose names begin with a
    dot are temporary and are not published.
    """

    def __init__(
        self, path: Path, continued: bool, blank: Manifest, note: Callable[[str], None]
    ) -> None:
        self.path = path
        self.continued = continued
        self._blank = blank
        self._note = note

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the draft for other processes, which write into the same folder and print no
        notes."""
        return Draft, (self.path, self.continued, self._blank, str)

    @property
    def version(self) -> str:
        """Version of the artifact that will be published: a digest of its inputs, which is known
        before publication."""
        return self._blank.version

    @property
    def ref(self) -> str:
        """REF of the artifact that will be published, ``name@version``."""
        return f"{self._blank.name}@{self.version}"

    def receipt(self, unit: str, *, input: str, settings: str, facts: type[F]) -> Receipt[F] | None:
        """Return the receipt of a unit of work, or None if the unit must still be done. See
        :func:`read_receipt`."""
        return receipts.read_receipt(self.path, unit, input=input, settings=settings, facts=facts)

    def publish(
        self,
        counts: Mapping[str, int],
        timing: Mapping[str, Any],
        facts: Mapping[str, Any] | None = None,
    ) -> Artifact:
        """Sync all files of the draft, then rename its folder so that it becomes the artifact.

        ``counts`` and ``facts`` are stored in the manifest. ``timing`` (times, speeds and other
        values that differ between runs) is stored in a separate file. Raises StoreError if the disk
        fails. If the artifact already exists, it is kept, and NegativeVerdict is raised if the
        draft differs from it.
        """
        parent = self.path.parent
        artifact = Artifact(parent / self.version, self._blank.kind, self._blank.name, self.version)
        with files.reporting("publish", self.path):
            outputs = self._outputs()
            if files.is_folder(artifact.path):
                return self._compare(artifact, outputs)
            listing, plugins = on_disk.listing(outputs), loaded()
            manifest = msgspec.structs.replace(
                self._blank,
                counts={what: int(count) for what, count in counts.items()},
                files=len(outputs),
                bytes=sum(output.bytes for output in outputs),
                content=hashlib.sha256(listing).hexdigest(),
                facts=dict(facts or {}) | ({on_disk.PLUGINS: plugins} if plugins else {}),
            )
            files.write_atomic(self.path / on_disk.FILES, listing)
            files.write_atomic(self.path / on_disk.TIMING, msgspec.json.encode(timing) + b"\n")
            _fsync_tree(self.path)
            files.write_atomic(self.path / on_disk.MANIFEST, on_disk.sealed_json(manifest))
            try:
                files.system.rename(self.path, artifact.path)
            except OSError as error:
                # Another process may be faster if locks do not work on the file system.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return self._compare(artifact, outputs)
            for folder in (parent, parent.parent, parent.parent.parent):
                files.fsync_path(folder)
        return artifact

    def _outputs(self) -> list[Output]:
        """Return the entries of all content files. Files with a receipt were already hashed when
        written."""
        vouched = receipts.vouched(self.path)
        outputs = []
        for path, plain in on_disk.walk(self.path):
            where = self.path / path
            if any(part.startswith(".") for part in path.split("/")):
                files.system.unlink(where)
            elif not plain:
                raise StoreError(f"{where} is not a plain file. Run the command with --restart")
            elif (output := vouched.pop(path, None)) is None:
                digest, size = files.sha256_file(where)
                files.fsync_path(where)
                outputs.append(Output(path, size, digest))
            elif files.system.stat(where).st_size == output.bytes:
                outputs.append(output)
            else:
                vouched[path] = output
        if vouched:
            raise StoreError(
                f"{shorten(sorted(vouched))} in {self.path} changed after a receipt was written. "
                "Run the same command again"
            )
        return outputs

    def _compare(self, artifact: Artifact, outputs: list[Output]) -> Artifact:
        """Keep the existing artifact, discard the draft, and report how the two differ."""
        recorded = {output.path: output for output in artifact.files()}
        # Also hash the files themselves, because they may have been damaged since.
        on_the_disk = {
            path: Output(path, size, digest)
            for path in recorded
            if (artifact.path / path).exists()  # missing files differ
            for digest, size in [files.sha256_file(artifact.path / path)]
        }
        remade = {output.path: output for output in outputs}
        discard(self.path, self.version)
        differing = sorted(
            path
            for path in recorded | remade
            if not recorded.get(path) == on_the_disk.get(path) == remade.get(path)
        )
        if differing:
            raise NegativeVerdict(
                f"made again, {artifact.ref} differs in {shorten(differing)}. The one in the store "
                f"is kept. Check it: numtok verify {artifact.ref}; replace it: numtok rm "
                f"{artifact.ref}, then run the command again"
            )
        self._note(f"made again, {artifact.ref} is identical")
        return artifact


def claim(
    parent: Path, version: str, restart: bool, note: Callable[[str], None]
) -> tuple[Path, bool]:
    """Create or take over the draft folder for a version. Return its path, and whether it continues
    an earlier run.

    The caller must hold the lock on the version. If ``restart`` is true, earlier drafts are
    discarded. The folder gets a new name each time, so that a worker that outlived its killed
    parent cannot write into it.
    """
    made_with = msgspec.json.encode((provenance(), plugin_code()), order="sorted")
    made_by = hashlib.sha256(made_with).hexdigest()[:8]
    folder = parent / f".draft-{version}.{made_by}.{secrets.token_hex(4)}"
    continued = False
    for entry in files.system.scandir(parent):
        if not entry.name.startswith(f".draft-{version}."):
            continue
        same = entry.name.startswith(f".draft-{version}.{made_by}.")
        if same and not restart and not continued:
            files.system.rename(parent / entry.name, folder)
            continued = True
            continue
        if not same and not restart:
            what = "other versions of numtok, its libraries or plugins"
            note(f"starting over: {entry.name} was started by {what}")
        discard(parent / entry.name, version)
    if continued:
        _discard_stray(folder)
    else:
        files.system.mkdir(folder)
    if not files.is_folder(folder / on_disk.RECEIPTS):
        files.system.mkdir(folder / on_disk.RECEIPTS)
    return folder, continued


def discard(folder: Path, token: str) -> int:
    """Remove a folder and return the number of bytes removed.

    The folder is first renamed to a name that contains ``token``, so it is never found partly
    removed.
    """
    trash = folder.with_name(f".trash-{token}.{secrets.token_hex(4)}")
    files.system.rename(folder, trash)
    files.fsync_path(folder.parent)
    return files.remove_tree(trash)


def shorten(names: Sequence[str]) -> str:
    """Join at most eight of the names with commas and add the number of remaining names, for a
    one-line message."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _discard_stray(folder: Path) -> None:
    """Remove all files of a draft except its receipts and the files they list."""
    if not files.is_folder(folder / on_disk.RECEIPTS):
        vouched: Collection[str] = ()
    else:
        vouched = receipts.vouched(folder)
        for entry in files.system.scandir(folder / on_disk.RECEIPTS):
            if entry.name.startswith("."):
                files.system.unlink(folder / on_disk.RECEIPTS / entry.name)
    for path, _ in on_disk.walk(folder):
        if path not in vouched:
            files.system.unlink(folder / path)
    for name in (on_disk.FILES, on_disk.TIMING, on_disk.MANIFEST):
        with suppress(FileNotFoundError):
            files.system.unlink(folder / name)


def _fsync_tree(folder: Path) -> None:
    for entry in files.system.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            _fsync_tree(folder / entry.name)
    files.fsync_path(folder)
