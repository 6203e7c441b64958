"""Artifacts whose files were changed together with their checksums, which no accident does."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from numtok import files
from numtok.store import artifact as on_disk
from numtok.store.artifact import FILES, MANIFEST, Artifact, Output
from numtok.store.receipts import write_receipt


def forge_manifest(folder: Path, **changes: Any) -> None:
    """Change fields of a manifest, and update its digest."""
    manifest = msgspec.structs.replace(on_disk.read_manifest(folder), **changes)
    (folder / MANIFEST).write_bytes(on_disk.sealed_json(manifest))


def forge_receipt(path: Path, **changes: Any) -> None:
    """Change facts of a receipt, and update its digest."""
    told = json.loads(path.read_bytes())
    facts = told["facts"] | changes
    write_receipt(
        path.parents[1],
        told["unit"],
        input=told["input"],
        settings=told["settings"],
        outputs=msgspec.convert(told["outputs"], list[Output]),
        facts=msgspec.defstruct("Facts", [*facts])(**facts),
    )


def forged(artifact: Artifact) -> Artifact:
    """Record the current files of an artifact, and return the artifact as it is now."""
    folder, outputs = artifact.path, []
    for path, _ in on_disk.walk(folder):
        digest, size = files.sha256_file(folder / path)
        outputs.append(Output(path, size, digest))
    listing = on_disk.listing(outputs)
    (folder / FILES).write_bytes(listing)
    forge_manifest(
        folder,
        files=len(outputs),
        bytes=sum(output.bytes for output in outputs),
        content=hashlib.sha256(listing).hexdigest(),
    )
    return Artifact(folder, artifact.kind, artifact.name, artifact.version)
