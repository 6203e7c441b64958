"""Fetch: public data sets -> table artifacts.

1. A source says which tables are meant, and where their files are.
2. Files at URLs are kept as an artifact of kind ``download``, so that they are brought once. Each
   has a receipt: a run that was cut off goes on with the files that are left.
3. A table's version is taken over the bytes of its files, wherever they came from.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from numtok import files
from numtok.artifact import Artifact, Output, Parent, write_receipt
from numtok.errors import DataError, UsageError, unknown
from numtok.records import DOWNLOAD, TABLE
from numtok.sources.base import SOURCES, Dataset, Origin, Source
from numtok.stages._download import Progress, download
from numtok.stages._options import check_name
from numtok.stages._table import Columns, feature_column, target_column, write_columns
from numtok.store import Store

REVISION = 1


@dataclass(frozen=True)
class Config:
    """What ``numtok fetch`` was asked for; ``options`` are the fields of the source."""

    source: str
    options: Mapping[str, str | int]
    name: str | None = None
    restart: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        known = {field.name: field for field in fields(SOURCES[self.source])}  # type: ignore[arg-type]
        for key in self.options:
            if key not in known:
                raise unknown(f"option of fetch {self.source}", _option(key), map(_option, known))
        for key in SOURCES.required(self.source):
            if key not in self.options:
                raise UsageError(f"fetch {self.source} needs a value for {_option(key)}")


class Result(NamedTuple):
    """One table, and whether this call made it."""

    ref: str
    artifact: Artifact
    made: bool


def run(config: Config, store: Store, progress: Progress) -> Iterator[Result]:
    """Make the tables one after the other, or find those that are there.

    Bad data of one table stops no other: it is told at the end. Raises UsageError, DataError, and
    StoreError where the network or the disk fails.
    """
    kind: Any = SOURCES[config.source]
    source: Source = kind(**config.options)
    origins: Iterable[Origin] = source.origins()
    if config.name is not None:
        origins = several = list(origins)
        if len(several) > 1:
            raise UsageError(
                f"--name {config.name} cannot be the name of {len(several)} tables; leave it out, "
                "and each has a name of its own"
            )
    failures: list[DataError] = []
    made = 0
    for origin in origins:
        try:
            yield _table(config, source, origin, store, progress)
            made += 1
        except DataError as error:
            failures.append(error)
    if failures:
        count = made + len(failures)
        of_all = f"{len(failures)} of {count} tables could not be made; the first: "
        raise DataError(f"{of_all if count > 1 else ''}{failures[0]}")


def _table(
    config: Config, source: Source, origin: Origin, store: Store, progress: Progress
) -> Result:
    started = time.monotonic()
    paths = _files(config, origin, store, progress)
    parents = []
    for name, path in paths.items():
        if not path.exists():
            raise DataError(f"{path}: there is no such file; give a whole copy, or download it")
        digest, size = files.sha256_file(path)
        parents.append(Parent("file", origin.files[name], digest, size))
    settings = {
        "stage": "fetch",
        "revision": REVISION,
        "source": {"name": config.source, "revision": source.revision},
        **origin.key,
    }
    name = config.name or origin.name
    with store.draft(
        TABLE,
        name,
        settings,
        parents,
        _command(config, origin, name),
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return Result(draft.ref, draft, made=False)
        counts = write_columns(draft.path, _columns(origin.name, source.read(origin, paths)))
        artifact = draft.publish(counts, {"seconds": time.monotonic() - started})
        return Result(artifact.ref, artifact, made=True)


def _columns(where: str, dataset: Dataset) -> Columns:
    """The columns as an artifact has them, checked as those of a user's own file."""
    target = target_column(where, dataset.target, dataset.rows[dataset.target])
    features, notes = {}, list(dataset.notes)
    for name in dataset.rows.column_names:
        if name != dataset.target:
            features[name], note = feature_column(where, name, dataset.rows[name])
            notes += [note] if note else []
    return Columns(where, dataset.target, target, features, dict(dataset.folds), tuple(notes))


def _files(config: Config, origin: Origin, store: Store, progress: Progress) -> dict[str, Path]:
    """Where the files of an origin are on this machine, downloaded if they are not."""
    if not any("://" in where for where in origin.files.values()):
        return {name: Path(where) for name, where in origin.files.items()}
    started = time.monotonic()
    settings = {"stage": "fetch", "revision": REVISION, "urls": dict(origin.files)}
    with store.draft(
        DOWNLOAD,
        origin.name,
        settings,
        [],
        _command(config, origin, origin.name),
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return {name: draft.path / name for name in origin.files}
        for name, url in origin.files.items():
            if draft.receipt(name, input=url, settings=draft.version) is None:
                sink = download(url, draft.path / name, progress)
                output = Output(name, sink.bytes, sink.sha256)
                write_receipt(
                    draft.path, name, input=url, settings=draft.version, outputs=[output], facts={}
                )
        counts = {"files": len(origin.files)}
        artifact = draft.publish(counts, {"seconds": time.monotonic() - started})
        return {name: artifact.path / name for name in origin.files}


def _option(key: str) -> str:
    """``from_`` -> ``--from``."""
    return f"--{key.rstrip('_')}"


def _command(config: Config, origin: Origin, name: str) -> list[str]:
    """The command line that makes this one table again."""
    command = ["numtok", "fetch", config.source]
    for key, value in origin.options.items():
        command += [_option(key), str(value)]
    return [*command, "--name", name]
