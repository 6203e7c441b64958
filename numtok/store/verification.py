"""Verification of artifacts against their manifests and checksums."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from numtok import files
from numtok.errors import StoreError
from numtok.store import artifact as on_disk
from numtok.store.artifact import FILES, MANIFEST, Artifact, Manifest, Output


@dataclass
class Check:
    """Result of :func:`verify`.

    problems
        Descriptions of the problems, one line each.
    listed
        Number of content files that are listed in ``files.jsonl``.
    files, bytes
        Number and total size of the files that were checked.
    """

    problems: list[str] = field(default_factory=list)
    listed: int = 0
    files: int = 0
    bytes: int = 0


def verify(artifact: Artifact, sample: int | None = None) -> Check:
    """Read all files of an artifact and compare them with the recorded checksums.

    If ``sample`` is given, only that many randomly chosen files are read, but all files must exist.
    Problems are listed in the result and not raised as exceptions.
    """
    check = Check()
    try:
        manifest = on_disk.read_manifest(artifact.path)
        check.problems += _check_manifest(artifact, manifest)
        outputs = on_disk.read_listing(artifact.path, manifest.content)
        with files.reporting("list", artifact.path):
            existing = dict(on_disk.walk(artifact.path))
    except StoreError as error:
        check.problems.append(str(error))
        return check
    totals = (len(outputs), sum(output.bytes for output in outputs))
    if totals != (manifest.files, manifest.bytes):
        check.problems.append(
            f"{FILES} lists {totals[0]} files and {totals[1]} bytes, but {MANIFEST} has "
            f"{manifest.files} files and {manifest.bytes} bytes"
        )
    check.listed = len(outputs)
    chosen = outputs if sample is None else random.sample(outputs, min(sample, len(outputs)))
    read = {output.path for output in chosen}
    for output in outputs:
        plain = existing.pop(output.path, None)
        if plain is None:
            check.problems.append(f"{output.path!r} is missing")
        elif plain:
            if output.path in read:
                _check_file(artifact.path, output, check)
        else:
            check.problems.append(f"{output.path!r} is not a plain file")
    check.problems += [f"{path!r} is not listed in {FILES}" for path in existing]
    return check


def _check_manifest(artifact: Artifact, manifest: Manifest) -> Iterator[str]:
    if (manifest.kind, manifest.name, manifest.version) != (
        artifact.kind,
        artifact.name,
        artifact.version,
    ):
        actual = f"{manifest.kind}/{manifest.name}@{manifest.version}"
        yield f"{MANIFEST} belongs to {actual}, not to {artifact.kind}/{artifact.ref}"
    version = on_disk.version_of(manifest.kind, manifest.settings, manifest.parents)
    if version != manifest.version:
        yield f"{MANIFEST} was edited: its settings and parents give the version {version}"


def _check_file(folder: Path, output: Output, check: Check) -> None:
    path = folder / output.path
    try:
        with files.reporting("look at", path):
            size = files.system.stat(path).st_size
        # A file of another size is not read, because it may be endless.
        digest, size = files.sha256_file(path) if size == output.bytes else ("", size)
    except StoreError as error:
        check.problems.append(str(error))
        return
    check.files += 1
    check.bytes += size
    if size != output.bytes:
        check.problems.append(f"{output.path!r} has {size} bytes instead of {output.bytes}")
    elif digest != output.sha256:
        check.problems.append(
            f"{output.path!r} was changed: its sha256 is {digest}, not {output.sha256}"
        )
