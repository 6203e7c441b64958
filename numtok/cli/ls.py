"""``numtok ls``: list the artifacts in the store."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.figures import age
from numtok.cli.output.printing import Format, Size, print_table
from numtok.names import counted

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
    found = [
        artifact
        for artifact in open_store(context).artifacts()
        if not patterns or _matches(artifact, patterns)
    ]
    made = {artifact.path: _made(artifact) for artifact in found}
    artifacts = sorted(found, key=lambda artifact: -made[artifact.path])
    rows = [(one.kind, one.ref, *_sizes(one, context.obj.note)) for one in artifacts]
    title = counted(len(rows), "artifact")
    if format is not Format.TABLE:
        print_table(title, ("kind", "ref", "rows", "files", "bytes"), rows, format)
        return
    short = _short_versions(artifacts)
    now = time.time()
    shown = [
        (kind, f"{one.name}@{short[one.version]}", age(now - made[one.path]), count, size)
        for one, (kind, _, count, _, size) in zip(artifacts, rows, strict=True)
    ]
    print_table(title, ("kind", "ref", "age", "rows", "size"), shown)
    if shown:
        context.obj.next("numtok show REF")


def _sizes(
    artifact: "Artifact", note: Callable[[str], None]
) -> tuple[int | None, int | None, Size | None]:
    """Return the numbers of rows, files and bytes; with a note, None if the manifest is damaged."""
    from numtok.errors import StoreError

    try:
        manifest = artifact.manifest
    except StoreError as error:  # one damaged artifact must not hide the others
        note(str(error))
        return None, None, None
    return manifest.counts.get("rows"), manifest.files, Size(manifest.bytes)


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
    """Return whether a pattern matches the artifact's kind or one of its REFs. A version may be cut
    short, as in the table."""
    from numtok.store.store import VERSION_START

    kind, name = artifact.kind, artifact.name
    whole = (kind, name, f"{kind}/{name}", artifact.version)
    begun = (artifact.ref, f"{kind}/{artifact.ref}")
    return any(
        any(fnmatchcase(text, pattern) for text in whole)
        or ("@" in pattern and any(fnmatchcase(text, f"{pattern}*") for text in begun))
        or (VERSION_START.fullmatch(pattern) is not None and artifact.version.startswith(pattern))
        for pattern in patterns
    )
