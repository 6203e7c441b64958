"""``numtok ls``: list the artifacts in the store."""

import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.figures import age
from numtok.cli.output.printing import Format, Size, counted, print_table

if TYPE_CHECKING:
    from numtok.store.artifact import Artifact


_SHORT = 8  # characters of a version


def command(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATTERN]...",
            help="Kinds, names, REFs or kind/REFs to list; * matches anything (default all)",
        ),
    ] = None,
    format: Format = Format.TABLE,
) -> None:
    """List artifacts, newest first.

    Example: numtok ls model 'era5-*' --json
    """
    from numtok.errors import StoreError

    rows: list[tuple[object, ...]] = []
    made: list[float] = []
    artifacts = [
        artifact
        for artifact in open_store(context).artifacts()
        if not patterns or _matches(artifact, patterns)
    ]
    for artifact in artifacts:
        try:
            manifest = artifact.manifest
            sizes = (manifest.counts.get("rows"), manifest.files, Size(manifest.bytes))
        except StoreError as error:
            # One damaged artifact must not hide the others.
            context.obj.note(str(error))
            rows.append((artifact.kind, artifact.ref, None, None, None))
        else:
            rows.append((artifact.kind, artifact.ref, *sizes))
        made.append(_made(artifact))
    title = counted(len(rows), "artifact")
    if format is not Format.TABLE:
        print_table(title, ("kind", "ref", "rows", "files", "bytes"), rows, format)
        return
    short = _short_versions(artifacts)
    now = time.time()
    shown = [
        (kind, f"{artifact.name}@{short[artifact.version]}", age(now - when), count, size)
        for when, artifact, (kind, _, count, _, size) in sorted(
            zip(made, artifacts, rows, strict=True), key=lambda entry: -entry[0]
        )
    ]
    print_table(title, ("kind", "ref", "age", "rows", "size"), shown)
    if shown:
        context.obj.next("numtok show REF")


def _made(artifact: "Artifact") -> float:
    """Return when an artifact was made, in seconds since 1970."""
    try:
        return (artifact.path / "manifest.json").stat().st_mtime
    except OSError:
        return 0.0


def _short_versions(artifacts: "Sequence[Artifact]") -> dict[str, str]:
    """Return the first eight characters of each version, or all of it if another one starts with
    them."""
    versions = {artifact.version for artifact in artifacts}
    alike = Counter(version[:_SHORT] for version in versions)
    return {
        version: version[:_SHORT] if alike[version[:_SHORT]] == 1 else version
        for version in versions
    }


def _matches(artifact: "Artifact", patterns: list[str]) -> bool:
    names = (artifact.kind, artifact.name, artifact.ref, f"{artifact.kind}/{artifact.ref}")
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
