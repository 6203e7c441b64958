"""Data artifacts of texts with targets, rendered from the records of a user's file.

``encode``, ``profile`` and ``race`` render a file if ``--target`` names one of its fields. The
artifact has the rows in the order of the file, with their splits, and the template.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from numtok import files
from numtok.data.reading.addresses import is_address
from numtok.data.reading.sources import CSV, as_name
from numtok.data.reading.split_rule import TRAIN, SplitRule, split_twice
from numtok.data.records.reader import FORMATS, JSON_LINES, Records, has_fields, read_records
from numtok.data.records.row_template import TEMPLATE, RowTemplate
from numtok.data.records.splits import SPLIT, has_splits, splits_of
from numtok.data.records.template import cells, check_targets, proposals, rendered, template_of
from numtok.data.tables.file import SKIP_ROWS, parquet_names
from numtok.errors import DataError, UsageError, file_not_found
from numtok.files import Sink
from numtok.names import join_names
from numtok.numerals.policy import NumeralPolicy
from numtok.store.access import StoreAccess
from numtok.store.artifact import DATA, Artifact, Parent

Settings = TypeVar("Settings", bound=Any)

REVISION = 2
_LARGEST = 1 << 31  # bytes of a file
ROWS = "rows.parquet"
FIELD = "field:"  # prefix of the columns that keep the fields of a record


@dataclass(frozen=True)
class Rendered:
    """The data artifact, its template, and notes for the user."""

    artifact: Artifact
    template: RowTemplate
    notes: list[str]

    def first_texts(self, most: int = 2) -> list[str]:
        """Return the texts of the first rows, at most ``most``."""
        texts = pq.read_table(self.artifact.path / ROWS, columns=["text"])["text"]
        return list(texts.slice(0, most).to_pylist())


def run(
    config: Any,
    store: StoreAccess,
    records: Records | None = None,
    template: RowTemplate | None = None,
) -> Rendered:
    """Render the rows of a file, or return the existing artifact.

    config
        Settings of a command with ``inputs``, ``target``, ``fields``, ``text_field``, ``drop``,
        ``split`` and ``on_error``. Without ``split``, rows are split by the field ``split``, unless
        it is a target, in the text or dropped; without such a field, all are ``train``. The two
        cannot be combined, unless the fields of the text are chosen.
    records
        The records of the file; None to read them.
    template
        Template of an earlier rendering, used instead of the fields; None to choose one.

    The id of a row is its index among the usable records, as in a table of the same file. Raises
    UsageError for unknown fields, DataError for rows without a usable target, and StoreError.
    """
    path, skip = config.inputs[0], config.on_error == "skip"
    records = read_records(path, skip=skip) if records is None else records
    notes = [f"{path}: {note}." for note in records.notes]
    rule = None if config.split is None else SplitRule.parse(config.split)
    if template is None:
        targets = [config.target] if isinstance(config.target, str) else config.target
        chosen = config.fields or config.text_field is not None
        own = not chosen and has_splits(records, (*targets, *config.drop))
        if own and rule is not None and rule.by != SPLIT:
            raise split_twice(path, SPLIT)
        template = template_of(records, targets, config.fields, config.text_field, config.drop)
        notes += proposals(list(records.columns.values()), template)
        usable = check_targets(records, targets)
    else:
        usable = check_targets(records, template.targets, template.notations)
    kept = np.asarray(usable.kept.to_numpy(zero_copy_only=False), np.bool_)
    if usable.skipped.count and not skip:
        raise DataError(f"{usable.skipped.reasons[0]}. Correct it{SKIP_ROWS}")
    notes += records.skipped.notes(usable.skipped, int(kept.sum()))
    other = {*template.targets, *template.fields, *config.drop}
    splits = np.array(splits_of(records, rule, other), object)
    if rule is not None and (note := rule.empty_note(set(splits[kept]))):
        notes.append(note)
    content = files.read_bytes(Path(path), _LARGEST)
    settings = {
        "stage": "render",
        "revision": REVISION,
        "format": Path(path).suffix,
        "template": msgspec.to_builtins(template),
        "split": config.split or (None if has_splits(records, other) else TRAIN),
        "skip": skip,
    }
    name = as_name(Path(path).name.partition(".")[0])
    parents = [Parent("file", path, hashlib.sha256(content).hexdigest(), len(content))]
    with store.draft(DATA, name, settings, parents, _command(config, template)) as draft:
        if isinstance(draft, Artifact):
            return Rendered(draft, template, notes)
        rows = _columns(records.take(usable.kept), template, splits[kept])
        counts = _write(draft.path, rows)
        TEMPLATE.write(draft.path, template)
        return Rendered(draft.publish(counts, {}), template, notes)


def as_texts(
    config: Settings, store: StoreAccess, template: RowTemplate | None = None
) -> tuple[Settings, Rendered]:
    """Render the file that a command's settings name, and return settings that read the texts.

    Notes are passed to the store. Raises the same errors as :func:`run`.

    template
        Template of an earlier rendering; None to choose one from the settings.
    """
    if template is not None:
        _check_reused(config, template)
    result = run(config, store, template=template)
    for note in result.notes:
        store.note(note)
    return reading(config, result), result


def check_decimals(policy: NumeralPolicy) -> None:
    """Raise UsageError if a policy would misread the numbers of rendered rows."""
    if policy.decimal == "comma":
        raise UsageError(
            "--numbers with decimal commas cannot be combined with --target, because numbers of a "
            "record are written with decimal points. Remove it"
        )


def _check_reused(config: Settings, template: RowTemplate) -> None:
    """Raise UsageError if fields are chosen that differ from those of a reused encoding."""
    given = {"fields": config.fields, "drop": config.drop, "text-field": config.text_field}
    if tuple(config.target) not in ((), tuple(template.targets)):
        given["target"] = config.target
    if options := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--{options[0]} cannot be combined with --reuse-encoding, whose texts have the fields "
            f"{', '.join(template.fields)} and the target {', '.join(template.targets)}. Remove it"
        )


def reading(config: Settings, rows: Rendered) -> Settings:
    """Return the settings of a command that read rendered rows as texts."""
    texts: Any = {"inputs": (str(rows.artifact.path),), "text_field": None, "split": None}
    texts |= {"fields": (), "drop": ()}
    if not isinstance(config.target, str):  # a single target remains the one that is scored
        texts["target"] = ()
    return replace(config, **texts)


def is_records(inputs: Sequence[str]) -> bool:
    """Return whether the input is a single file that may contain records.

    Raises UsageError if it is a CSV file that does not exist; other inputs may be folders,
    addresses or REFs.
    """
    if len(inputs) != 1 or not inputs[0].endswith(FORMATS):
        return False
    path = Path(inputs[0])
    if path.suffix in CSV and not is_address(inputs[0]) and not path.exists():
        raise file_not_found(path)
    return path.is_file()


def has_target(inputs: Sequence[str], target: str) -> bool:
    """Return whether the input is a file of records with a field of this name.

    Rows of JSON Lines and Parquet files without the field are texts, with targets as spans. Raises
    the same error as :func:`is_records`.
    """
    if not is_records(inputs):
        return False
    [path] = inputs
    if path.endswith(JSON_LINES):
        return has_fields(path, [target])
    return path.endswith(CSV) or target in parquet_names(path)


def _command(config: Any, template: RowTemplate) -> list[str]:
    """Return a command that renders the same rows."""
    command = ["numtok", "encode", "--scheme", "digits", config.inputs[0]]
    for target in template.targets:
        command += ["--target", target]
    if template.bare:
        command += ["--text-field", template.fields[0]]
    elif config.drop:
        command += ["--drop", join_names(config.drop)]
    else:
        command += ["--fields", join_names(template.fields)]
    command += ["--split", config.split] if config.split else []
    return command + (["--on-error", "skip"] if config.on_error == "skip" else [])


def with_new_rows(
    rows: Artifact, records: Records, store: StoreAccess, *, split: str, repeated: str | None
) -> Artifact:
    """Return rendered rows with ``records`` appended as another split, for models that are fitted
    to the stored rows and predict the new ones.

    The new split begins with a copy of the stored split ``repeated``, if there is one. The targets
    of the new rows are unknown and written as 0. Raises UsageError if ``records`` lack a field.
    """
    template = rows.read(TEMPLATE)
    stored = pq.read_table(rows.path / ROWS)
    table = records.table
    for name in template.targets:
        zeros = pa.array(["0"] * len(records), pa.string())
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, zeros)
    splits = np.full(len(records), split, object)
    new = _columns(replace(records, table=table), template, splits).cast(stored.schema)
    copied = stored.filter(pc.equal(stored["split"], repeated or ""))
    added = pa.concat_tables([_with(copied, "split", [split] * len(copied)), new])
    added = _with(added, "id", [f"{split} {row}" for row in range(len(added))])
    settings = {"stage": "render", "revision": REVISION, "split": split, "repeated": repeated}
    name, parents = rows.name, [rows.as_parent()]
    with store.draft(DATA, name, settings, parents, ["numtok", "predict"]) as draft:
        assert not isinstance(draft, Artifact)  # the store of new rows is temporary
        counts = _write(draft.path, pa.concat_tables([stored, added]))
        return draft.publish(counts, {})


def _with(table: pa.Table, name: str, values: Sequence[str]) -> pa.Table:
    index = table.column_names.index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, pa.string()))


def _columns(
    records: Records,
    template: RowTemplate,
    splits: np.ndarray[tuple[int], np.dtype[np.object_]],
) -> pa.Table:
    """Return the columns of the rows, in order."""
    rows = rendered(template, records)
    keys = [(name, spans.tolist()) for name, spans in rows.spans.items()]
    targets = [{name: [spans[row]] for name, spans in keys} for row in range(len(records))]
    kind = pa.map_(pa.string(), pa.list_(pa.list_(pa.int64())))
    columns = {
        "id": pa.array(map(str, range(len(records))), pa.string()),
        "text": rows.texts,
        "targets": pa.array([list(each.items()) for each in targets], kind),
        "answer_start": pa.array(rows.spans[template.targets[0]][:, 0]),
        "split": pa.array(splits, pa.string()),
        **{FIELD + name: cells(template, records, name) for name in template.fields},
    }
    return pa.table(columns)


def _write(folder: Path, rows: pa.Table) -> dict[str, int]:
    """Write the rows to a Parquet file, and return the numbers of rows."""
    with Sink(folder / ROWS) as sink:
        pq.write_table(rows, sink, compression="zstd", write_page_checksum=True)
    counts = Counter(rows["split"].to_pylist())
    return {"rows": len(rows), **{f"rows_{split}": counts[split] for split in sorted(counts)}}
