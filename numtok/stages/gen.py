"""gen: generates the rows of every split from a task and a seed, as JSONL texts or as a table.

Each unit of the task becomes one file, such as ``train-00000.jsonl`` or ``rows-00000.parquet``,
with a receipt. Units are independent, so they can be generated in parallel, and an interrupted run
resumes with the remaining ones. Some tasks read an artifact, which becomes the parent of the
generated one.
"""

import io
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa

from numtok.data.reading.arrow import nullable
from numtok.data.reading.split_rule import SHIFTED, SPLIT_RULE, TRAIN, is_split
from numtok.data.tables.table import (
    Feature,
    TableFile,
    rows_name,
    write_rows,
    write_table_file,
)
from numtok.data.tasks.base import (
    SHARES,
    SPLITS,
    TASKS,
    DerivedTask,
    TableTask,
    Task,
    TaskSplit,
    TextTask,
)
from numtok.errors import UsageError
from numtok.files import Sink
from numtok.registry import name_of, settings_of, spec_of
from numtok.setting_words import command_line
from numtok.settings.gen import Config as Config
from numtok.store.artifact import DATA, TABLE, Artifact, Output, Parent, version_of
from numtok.store.draft import Draft
from numtok.store.engines.engine import Engine, engine_for
from numtok.store.receipts import write_receipt
from numtok.store.store import Store
from numtok.stored_json import Natural

REVISION = 1
_FEW_UNITS = 16  # one process finishes these before others have started
_SAMPLE = 1000  # rows per split that a dry run generates

#: Called with the activity, the bytes written, the estimated total bytes, and the rows done.
Progress = Callable[[str, int, int, int], None]


class GenEstimate(NamedTuple):
    """Estimated number of rows and bytes in the result, computed in a dry run from the first rows
    of each split."""

    rows: int
    bytes: int


class Result(NamedTuple):
    """Result of ``numtok gen``: the artifact, and whether it was newly made.

    After a dry run, either ``artifact`` (if it already exists) or ``estimate`` is set.
    """

    ref: str
    artifact: Artifact | None
    made: bool
    estimate: GenEstimate | None = None


@dataclass(frozen=True)
class GenPart:
    """A unit of work that generates one file with rows from one split. ``index`` is the position of
    the file in the split."""

    split: TaskSplit
    index: int
    file: str

    @property
    def name(self) -> str:
        """Name of the receipt: the file name without extensions."""
        return self.file.partition(".")[0]


class _UnitFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    split: str
    rows: Natural
    bytes: Natural
    counts: dict[str, Natural]


@dataclass(frozen=True)
class GenUnit:
    """Callable that generates the data file of one unit of work (:class:`GenPart`) and writes its
    receipt.

    A call returns what the receipt records: the split, the number of rows, the number of bytes, and
    further counts.
    """

    draft: Path
    task: Task
    seed: int
    settings: str

    def __call__(self, unit: GenPart) -> _UnitFacts:
        with Sink(self.draft / unit.file) as sink:
            rows, counts = _write(sink, self.task, self.seed, unit.split, unit.index)
        facts = _UnitFacts(unit.split.name, rows, sink.bytes, counts)
        output = Output(sink.path.name, sink.bytes, sink.sha256)
        write_receipt(
            self.draft,
            unit.name,
            input=unit.name,
            settings=self.settings,
            outputs=[output],
            facts=facts,
        )
        return facts


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Generate the rows for a task, or return the existing artifact.

    If the run is interrupted, finished units stay in the draft, and the same call resumes with the
    remaining ones. Raises UsageError and StoreError.
    """
    started = time.monotonic()
    task = TASKS.build(config.task, config.options)
    splits = _splits(config, task)
    samples = sum(split.rows for split in splits)
    _check_shifted(task, splits)
    if task.possible is not None and task.possible < samples:
        raise UsageError(
            f"{spec_of(task)} has only {task.possible:,} different rows (--rows is "
            f"{samples:,}). Reduce --rows, or use settings with more rows"
        )
    kind = TABLE if isinstance(task, TableTask) else DATA
    source = _source(config, task, store)
    parents = [source.as_parent()] if source else []
    parents += [Parent("file", *file) for file in task.files.values()]
    units = _units(task, splits)
    engine = engine_for(config.engine, len(units), config.workers, _FEW_UNITS, store.spool)
    settings = {
        "stage": "gen",
        "revision": REVISION,
        "task": settings_of(task) | {key: file.digest for key, file in task.files.items()},
        "samples": samples,
        "split": {split.name: [split.rows, split.begin, split.end] for split in splits},
        "seed": config.seed,
    }
    name = config.name or name_of(task)
    if config.dry_run:
        version = version_of(kind, settings, parents)
        existing = store.find(kind, name, version)
        estimate = None if existing else _estimate(task, source, config, splits)
        return Result(f"{name}@{version}", existing, made=False, estimate=estimate)
    command = _command(config, task, source, name)
    # The workers end before the lock on the draft is released.
    with (
        store.draft(kind, name, settings, parents=parents, command=command, how=config) as draft,
        engine,
    ):
        if isinstance(draft, Artifact):
            return Result(draft.ref, draft, made=False)
        ready, facts = _prepared(task, source, splits)
        counts = _make(draft, ready, config, units=units, engine=engine, progress=progress)
        if isinstance(task, TableTask):
            write_table_file(draft.path, _table_file(task))
            counts["features"] = len(task.features)
        timing = {"seconds": time.monotonic() - started, "workers": engine.count}
        artifact = draft.publish(counts, timing, facts)
        return Result(artifact.ref, artifact, made=True)


def _splits(config: Config, task: Task) -> list[TaskSplit]:
    """Return the splits to generate: the task's own, or those of the options."""
    if (own := task.own_splits) is None:
        samples = task.samples if config.samples is None else config.samples
        return split_rows(config.split or task.split, samples)
    for option, value in (("rows", config.samples), ("split", config.split)):
        if value is not None:
            raise UsageError(
                f"--{option} {value} does not apply to gen {name_of(task)}, which has fixed splits."
                f" See its options: `numtok gen {name_of(task)} --help`"
            )
    return own


def _source(config: Config, task: Task, store: Store) -> Artifact | None:
    """Return the artifact that a task reads, if any.

    Raises UsageError if ``--from`` is missing, or is set for a task that reads no artifact.
    """
    name = name_of(task)
    if not isinstance(task, DerivedTask):
        if config.from_ is not None:
            raise UsageError(
                f"--from {config.from_} does not apply to gen {name}, which reads no artifact. "
                "Remove --from"
            )
        return None
    if config.from_ is None:
        raise UsageError(
            f"gen {name} reads an artifact of kind {task.reads}. Choose it with --from REF "
            f"(list them: `numtok ls {task.reads}`)"
        )
    return store.resolve(config.from_, kinds={task.reads})


def _prepared(
    task: Task, source: Artifact | None, splits: list[TaskSplit]
) -> tuple[Task, dict[str, Any]]:
    """Return the task, ready to generate rows, and the facts to store in the manifest."""
    if not isinstance(task, DerivedTask):
        return task, {}
    assert source is not None
    return task.over(source.path, splits)


def split_rows(text: str, samples: int) -> list[TaskSplit]:
    """Return the splits described by ``name=fraction[,name=fraction...]``, sorted by name.

    If the train split is not named, it gets the remaining fraction. Rounding errors are carried
    over from split to split, so that the row counts add up to ``samples``. Raises UsageError if the
    text is invalid or a split would be empty.

    >>> [(split.name, split.rows) for split in split_rows("validation=0.1,test=0.15", 1000)]
    [('test', 150), ('train', 750), ('validation', 100)]
    """
    shares: dict[str, Fraction] = {}
    for pair in text.split(","):
        name, _, value = pair.partition("=")
        share = Fraction(value if re.fullmatch(r"[01]|[01]?\.[0-9]{1,12}", value) else 0)
        if name in shares or not is_split(name) or not 0 < share <= 1:
            raise UsageError(
                f"--split {text!r}: {pair!r} must be a new split name and a fraction above 0 and "
                f"at most 1, such as {SPLITS} (names: {SPLIT_RULE})"
            )
        shares[name] = share
    left = 1 - sum(shares.values(), Fraction())
    if left < 0 or (left > 0 and TRAIN in shares):
        raise UsageError(
            f"--split {text!r}: fractions must add up to 1 (got {float(1 - left):g}). Without "
            f"{TRAIN}, it gets the rest"
        )
    if left:
        shares[TRAIN] = left
    splits = []
    begin = Fraction(0)
    for name in sorted(shares):  # so that the order as typed does not matter
        end = begin + shares[name]
        rows = int(end * samples) - int(begin * samples)
        splits.append(TaskSplit(name, rows, int(begin * SHARES), int(end * SHARES)))
        begin = end
    if empty := [split.name for split in splits if not split.rows]:
        raise UsageError(
            f"--rows {samples} leaves no row for the split {empty[0]!r} of {text}. Increase "
            "--rows, or use a larger fraction"
        )
    return splits


def _check_shifted(task: Task, splits: list[TaskSplit]) -> None:
    """Raise UsageError for a split whose name promises shifted rows that the task does not have."""
    if (shifted := task.shifted) is None:
        return
    for split in splits:
        if split.name.startswith(SHIFTED) and split.name not in shifted:
            raise UsageError(
                f"{spec_of(task)} has no split {split.name!r}; {SHIFTED}NAME is reserved for "
                f"shifted rows. With these settings: {' and '.join(shifted) or 'none'}"
            )


def _units(task: Task, splits: list[TaskSplit]) -> list[GenPart]:
    is_table = isinstance(task, TableTask)
    units: list[GenPart] = []
    for split in splits:
        for index in range(-(-split.rows // task.unit_rows)):
            file = rows_name(len(units)) if is_table else f"{split.name}-{index:05d}.jsonl"
            units.append(GenPart(split, index, file))
    return units


def _write(
    sink: Sink | IO[bytes], task: Task, seed: int, split: TaskSplit, index: int
) -> tuple[int, dict[str, int]]:
    """Write the file of one unit; return its number of rows, and the counts of its task."""
    if isinstance(task, TableTask):
        x, y = task.unit(seed, split, index)
        columns = [*map(nullable, x.T), nullable(y)]
        columns.append(pa.repeat(pa.scalar(split.name, pa.string()), len(y)))
        write_rows(sink, pa.Table.from_arrays(columns, schema=_table_file(task).schema))
        return len(y), {}
    assert isinstance(task, TextTask)
    unit = task.unit(seed, split, index)
    sink.write(unit.rows)
    return unit.rows.count(b"\n"), unit.counts


def _table_file(task: TableTask) -> TableFile:
    features = [Feature(name, "number") for name in task.features]
    return TableFile(target="y", features=features, splits=["split"], notes=task.notes)


def _make(
    draft: Draft,
    task: Task,
    config: Config,
    units: list[GenPart],
    engine: Engine,
    progress: Progress,
) -> dict[str, int]:
    """Generate every unit that has no receipt yet; return the counts of all units."""
    work = GenUnit(draft.path, task, config.seed, draft.version)
    facts: list[_UnitFacts] = []
    left: list[GenPart] = []
    for unit in units:
        receipt = draft.receipt(
            unit.name, input=unit.name, settings=draft.version, facts=_UnitFacts
        )
        if receipt is None:
            left.append(unit)
        else:
            facts.append(receipt.facts)
    counts = Counter[str]()
    size, samples = 0, sum(unit.split.rows for unit in units if not unit.index)
    for fact in chain(facts, engine.run(work, left)):  # in the order in which units finish
        counts["rows"] += fact.rows
        counts[f"rows_{fact.split}"] += fact.rows
        counts.update(fact.counts)
        size += fact.bytes
        progress("generating", size, size * samples // counts["rows"], counts["rows"])
    return dict(counts)


def _estimate(
    task: Task, source: Artifact | None, config: Config, splits: list[TaskSplit]
) -> GenEstimate:
    ready, _ = _prepared(task, source, splits)
    size = 0
    for split in splits:
        rows = min(split.rows, task.unit_rows, _SAMPLE)
        sample = io.BytesIO()
        _write(sample, ready, config.seed, replace(split, rows=rows), 0)
        size += len(sample.getvalue()) * split.rows // rows
    return GenEstimate(sum(split.rows for split in splits), size)


def _command(config: Config, task: Task, source: Artifact | None, name: str) -> list[str]:
    """Return the command line that reproduces the artifact."""
    samples = None
    if task.own_splits is None:
        samples = task.samples if config.samples is None else config.samples
    again = replace(
        config,
        task=spec_of(task),
        samples=samples,
        split=None if config.split == task.split else config.split,
        from_=None if source is None else source.ref,
        name=name,
    )
    return ["numtok", "gen", *command_line(again)]
