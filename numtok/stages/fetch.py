"""fetch: downloads public data sets as tables, texts, or one weather field.

1. A source lists its tables or texts, and the locations of their files.
2. Downloaded files are kept as an artifact of kind ``download``, so that they are downloaded only
   once. Each file has a receipt, so an interrupted run resumes with the remaining files.
3. The version of a table or of texts depends on the content of the files, not on their location.

A weather field is extracted from its source while reading (``fetching.field``), and only the result
is kept. Its version depends on the selection, and on the content of local source files.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from numtok import files
from numtok.data.fetching.download import Progress, download
from numtok.data.fetching.field import check_kept, write_field
from numtok.data.fetching.texts import write_texts
from numtok.data.reading.split_rule import SplitRule
from numtok.data.sources.base import (
    SOURCES,
    Dataset,
    FieldSource,
    Origin,
    Source,
    TableSource,
    TextSource,
)
from numtok.data.tables.columns import TableColumns, feature_column, target_column, write_columns
from numtok.data.weather.field import OpenField
from numtok.declaration import flag_named
from numtok.errors import DataError, UsageError
from numtok.registry import name_of
from numtok.setting_words import command_line
from numtok.settings.fetch import Config as Config
from numtok.store.artifact import DATA, DOWNLOAD, FIELD, TABLE, Artifact, Output, Parent, version_of
from numtok.store.quota import Quota
from numtok.store.receipts import NoFacts, write_receipt
from numtok.store.store import Store

REVISION = 1
_WHOLE = {"split": None, "seed": None}  # settings of texts that are not split


class FetchEstimate(NamedTuple):
    """Result of a dry run for a weather field: its shape, its first and last time, and the amount
    of data to read.

    requests
        Number of objects to read from a remote store; 0 for a file.
    bytes
        Number of bytes to read, after decompression.
    """

    steps: int
    latitudes: int
    longitudes: int
    first: str
    last: str
    requests: int
    bytes: int


class Result(NamedTuple):
    """A fetched table, set of texts or field, and whether it was newly made.

    After a dry run, either ``artifact`` (if it already exists) or ``estimate`` is set.
    """

    ref: str
    artifact: Artifact | None
    made: bool
    estimate: FetchEstimate | None = None


def run(config: Config, store: Store, progress: Progress) -> Iterator[Result]:
    """Yield the tables, texts or weather field from a source. Artifacts that do not exist yet are
    made one at a time.

    If one table contains invalid data, the others are still made; the error is raised at the end.
    Raises UsageError, DataError, and StoreError if the network or the disk fails.
    """
    _quota(config)
    source = SOURCES.build(config.source, config.options)
    if isinstance(source, FieldSource):
        yield _field(config, source, store, progress)
        return
    if config.dry_run:
        raise UsageError(
            f"--dry-run only applies to sources of fields; {config.source} has "
            f"{'tables' if isinstance(source, TableSource) else 'texts'}. Remove --dry-run"
        )
    assert isinstance(source, TableSource | TextSource)
    yield from _several(config, source, store, progress)


def _several(
    config: Config, source: TableSource | TextSource, store: Store, progress: Progress
) -> Iterator[Result]:
    origins: Iterable[Origin] = source.origins()
    if config.name is not None:
        origins = several = list(origins)
        if len(several) > 1:
            raise UsageError(
                f"--name {config.name} cannot name {len(several)} tables at once. Remove --name to "
                "give each its own name"
            )
    failures: list[DataError] = []
    count = 0
    for origin in origins:
        count += 1
        try:
            yield _fetched(config, source, origin, store, progress)
        except DataError as error:
            failures.append(error)
    if failures:
        of_all = f"{len(failures)} of {count} tables could not be made; the first: "
        raise DataError(f"{of_all if count > 1 else ''}{failures[0]}")


def _fetched(
    config: Config,
    source: TableSource | TextSource,
    origin: Origin,
    store: Store,
    progress: Progress,
) -> Result:
    """Make one table, or one set of texts, or return the existing one."""
    started = time.monotonic()
    settings = _settings(source, origin.key)
    kind, rule = TABLE, None
    if isinstance(source, TextSource):
        kind, rule = DATA, None if source.shares is None else SplitRule.parse(source.shares)
        settings |= {"split": rule.settings(), "seed": rule.seed} if rule else _WHOLE
    paths = _files(config, origin, store, progress)
    parents = _parents(origin, paths)
    name = config.name or origin.name
    command = _command(config, origin.options, name)
    with store.draft(kind, name, settings, parents=parents, command=command, how=config) as draft:
        if isinstance(draft, Artifact):
            return Result(draft.ref, draft, made=False)
        facts: dict[str, Any] = {}
        if isinstance(source, TableSource):
            counts = write_columns(draft.path, _columns(origin.name, source.read(origin, paths)))
        else:
            rows, writing = source.rows(origin, paths), partial(progress, "writing")
            written = write_texts(
                draft.path, rows, rule, skips=source.skips, quota=_quota(config), progress=writing
            )
            counts = written.counts
            facts |= {"licence": source.licence, "attribution": source.attribution}
            facts |= {"rejected": written.rejected} if written.rejected else {}
            facts |= {"notes": written.notes} if written.notes else {}
        artifact = draft.publish(counts, {"seconds": time.monotonic() - started}, facts)
        return Result(artifact.ref, artifact, made=True)


def _settings(source: Source, key: Mapping[str, str | int | None]) -> dict[str, Any]:
    """Return the settings that the version depends on, in addition to the bytes of files."""
    named = {"name": name_of(source), "revision": source.revision}
    return {"stage": "fetch", "revision": REVISION, "source": named, **key}


def _parents(origin: Origin, paths: Mapping[str, Path]) -> list[Parent]:
    for path in paths.values():
        if not path.exists():
            raise DataError(f"{path} not found. Pass a complete copy, or let numtok download it")
    return [
        Parent("file", origin.files[name], *files.sha256_file(path)) for name, path in paths.items()
    ]


def _columns(where: str, dataset: Dataset) -> TableColumns:
    """Convert the columns for an artifact, with the same checks as for a user's own file."""
    target = target_column(where, dataset.target, dataset.rows[dataset.target], may_skip=False)
    features, notes = {}, list(dataset.notes)
    for name in dataset.rows.column_names:
        if name != dataset.target:
            features[name], note = feature_column(where, name, dataset.rows[name])
            notes += [note] if note else []
    return TableColumns(
        where=where,
        target_name=dataset.target,
        target=target,
        features=features,
        assigned=dict(dataset.folds),
        notes=tuple(notes),
    )


def _files(config: Config, origin: Origin, store: Store, progress: Progress) -> dict[str, Path]:
    """Return the local paths of an origin's files, after downloading them if necessary."""
    if not any("://" in where for where in origin.files.values()):
        return {name: Path(where) for name, where in origin.files.items()}
    started = time.monotonic()
    settings = {"stage": "fetch", "revision": REVISION, "urls": dict(origin.files)}
    command = _command(config, origin.options, origin.name)
    with store.draft(
        DOWNLOAD, origin.name, settings, parents=[], command=command, how=config
    ) as draft:
        if isinstance(draft, Artifact):
            return {name: draft.path / name for name in origin.files}
        for index, (name, url) in enumerate(origin.files.items()):
            unit = f"file-{index}"  # not the file's own name, which may have capitals
            if draft.receipt(unit, input=url, settings=draft.version, facts=NoFacts) is None:
                sink = download(url, draft.path / name, _quota(config), progress)
                output = Output(name, sink.bytes, sink.sha256)
                write_receipt(draft.path, unit, input=url, settings=draft.version, outputs=[output])
        counts = {"files": len(origin.files)}
        artifact = draft.publish(counts, {"seconds": time.monotonic() - started})
        return {name: artifact.path / name for name in origin.files}


def _field(config: Config, source: FieldSource, store: Store, progress: Progress) -> Result:
    started = time.monotonic()
    parents = [_parent(root, paths) for root, paths in source.files().items()]
    settings = _settings(source, source.key)
    name = config.name or source.name
    if config.dry_run:
        version = version_of(FIELD, settings, parents)
        ref = f"{name}@{version}"
        if existing := store.find(FIELD, name, version):
            check_kept(existing, source.drops)
            return Result(ref, existing, made=False)
        with source.open(_quota(config)) as opened:
            return Result(ref, None, made=False, estimate=_estimate(opened))
    command = _command(config, config.options, name)
    with store.draft(FIELD, name, settings, parents=parents, command=command, how=config) as draft:
        if isinstance(draft, Artifact):
            check_kept(draft, source.drops)
            return Result(draft.ref, draft, made=False)
        # A local path is not content, so a digest identifies local files.
        where = source.key["place"] or f"sha256 {parents[0].digest}"
        with source.open(_quota(config)) as opened:
            fetching = partial(progress, "fetching")
            written = write_field(draft, source, opened, where, fetching)
        timing = {"seconds": time.monotonic() - started}
        artifact = draft.publish(written.counts, timing, written.facts)
        return Result(artifact.ref, artifact, made=True)


def _parent(root: str, paths: Sequence[Path]) -> Parent:
    """Describe a file, or the files read from a folder by their names and digests."""
    digests = [files.sha256_file(path) for path in paths]
    if paths == [Path(root)]:
        return Parent("file", root, *digests[0])
    lines = [
        f"{path.relative_to(root).as_posix()} {digest}\n"
        for path, (digest, _) in zip(paths, digests, strict=True)
    ]
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return Parent("file", root, digest, sum(size for _, size in digests))


def _estimate(opened: OpenField) -> FetchEstimate:
    return FetchEstimate(
        steps=len(opened.times),
        latitudes=len(opened.latitudes),
        longitudes=len(opened.longitudes),
        first=str(opened.times[0]),
        last=str(opened.times[-1]),
        requests=sum(block.requests for block in opened.blocks),
        bytes=sum(block.bytes for block in opened.blocks),
    )


def _quota(config: Config) -> Quota:
    """Parse ``--disk-limit``, the limit for downloaded and unpacked bytes. Raises UsageError if it
    is not a size."""
    return Quota.parse(config.disk_limit)


def _command(config: Config, options: Mapping[str, str | int], name: str) -> list[str]:
    """Return the command line that reproduces this table, set of texts or field."""
    words = ["numtok", "fetch", *command_line(replace(config, name=name))]
    for key, value in options.items():
        words += [f"--{flag_named(key)}", str(value)]
    return words
