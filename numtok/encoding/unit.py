"""unit: encodes the rows of one unit of work, and writes shards and a receipt.

A unit is a part of the input that one worker reads (:class:`numtok.data.reading.units.Unit`). A
receipt is a small file that records a finished unit (:mod:`numtok.store.receipts`).
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from numtok import files
from numtok.data.reading.arrow import column, lists, slices, strings
from numtok.data.reading.batches import ReadingOptions, RejectedRow, RowBatch
from numtok.data.reading.file_part import location_of
from numtok.data.reading.rows import NO_TARGETS, Categories
from numtok.data.reading.split_rule import RESERVED, SPLIT_RULE, TRAIN, SplitRule, is_split
from numtok.data.reading.units import Unit, read
from numtok.encoding.codec import Codec, EncodedTexts
from numtok.encoding.row_numbers import numbers_in, span_problems
from numtok.encoding.row_twins import RowTwins, row_hashes
from numtok.encoding.schema import INEXACT, SCHEME_FILE, TRUNCATED, encoded_schema
from numtok.encoding.schemes.base import LOSSES, Outcome, names_of
from numtok.encoding.shards import Shards, separate_file
from numtok.encoding.targets import ResolvedTargets, resolve
from numtok.encoding.texts import Texts, offsets
from numtok.errors import DataError
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.unread import UnreadDigits, count_unread
from numtok.row import CLUSTER, FLOOR, GROUP, TEXT
from numtok.store.artifact import Output
from numtok.store.receipts import write_receipt
from numtok.stored_json import Natural

# Names of separate folders: numbers that overflow or underflow, and rejected rows.
CLIPPED, REJECTED = RESERVED
_CLIPPED = pa.schema(
    {
        "id": pa.string(),
        "number": pa.int32(),  # index in the row's numbers
        "literal": pa.string(),
        "outcome": pa.string(),
    }
)
_NO_LOSSES = pa.table([pa.nulls(0, field.type) for field in _CLIPPED], schema=_CLIPPED)


class UnitFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Results of encoding one unit: counts, optional columns that are missing from the shards, and
    row hashes. :class:`EncodeUnit` stores them in the unit's receipt."""

    rows: dict[str, Natural]
    numbers: Natural
    tokens: Natural
    outcomes: dict[str, Natural]
    rejected: Natural
    unread: UnreadDigits
    unseen_columns: list[str]
    twin_limit: Natural  # limit of RowTwins
    row_hashes: dict[str, bytes]  # uint64 hashes, by split

    @property
    def twins(self) -> RowTwins:
        """Hashes of the unit's rows, for finding rows with a twin in the train split."""
        hashes = {name: np.frombuffer(each, np.uint64) for name, each in self.row_hashes.items()}
        return RowTwins(self.twin_limit, hashes)


class NumberedRows(NamedTuple):
    """A batch of rows with their splits, numbers and targets."""

    batch: RowBatch
    splits: Categories
    texts: Texts
    spans: Spans
    targets: ResolvedTargets


def _numbered(batch: RowBatch, splits: Categories, policy: NumeralPolicy) -> NumberedRows:
    texts, spans = numbers_in(batch.rows, policy)
    return NumberedRows(batch, splits, texts, spans, resolve(batch.rows, texts, spans))


@dataclass(frozen=True)
class Screening:
    """Options for reading rows, rejecting invalid rows, and assigning rows to splits."""

    reading: ReadingOptions
    rule: SplitRule | None
    skip: bool  # whether invalid rows are skipped and listed; otherwise they end the run

    @classmethod
    def of(cls, config: Any) -> "Screening":
        """Return the options that the settings of a command describe."""
        rule = SplitRule.parse(config.split) if config.split else None
        reading = ReadingOptions(config.text_field or TEXT, config.max_line)
        return cls(reading, rule, config.on_error == "skip")

    @property
    def split_settings(self) -> dict[str, Any]:
        """Settings of the splits, which determine the version of an artifact."""
        if self.rule is None:
            return {"split": None, "seed": None}
        split = {"by": "cluster or id", **self.rule.settings()}
        return {"split": split, "seed": self.rule.seed}

    def batches(self, unit: Unit) -> Iterator[tuple[RowBatch, Categories]]:
        """Yield the valid rows of a unit in batches, with the split of each row.

        Raises DataError if a row is invalid and ``skip`` is False.
        """
        for batch in read(unit, self.reading):
            if batch.rows.splits is not None:
                batch = self._well_named(batch, batch.rows.splits)
            self.refuse(batch.rejected)
            yield batch, self._splits(batch)

    def accepted(
        self,
        unit: Unit,
        policy: NumeralPolicy,
        unwritable: Callable[[Texts], dict[int, str]] = lambda texts: {},
    ) -> Iterator[tuple[RowBatch, Categories]]:
        """Yield the rows of a unit that :meth:`resolved` yields with the same arguments, with the
        split of each row.

        Without ``skip`` these are the rows of :meth:`batches`, because encoding stops at others.
        """
        if not self.skip:
            yield from self.batches(unit)
            return
        for rows in self.resolved(unit, policy, unwritable):
            yield rows.batch, rows.splits

    def _well_named(self, batch: RowBatch, splits: Categories) -> RowBatch:
        """Return the batch without the rows that have an invalid split. These rows are rejected."""
        declared = batch.part.split
        problems = {}
        for code, name in enumerate(splits.names):
            if not is_split(name):
                problems[code] = f"invalid name of a split: {name!r}. Allowed are {SPLIT_RULE}"
            elif declared not in (None, name):
                problems[code] = (
                    f"the split of the row is {name!r}, but the file was passed as {declared!r}. "
                    "Remove one of them"
                )
        bad = np.isin(splits.codes, list(problems))
        for index in np.flatnonzero(bad).tolist():
            batch.rejected.append(batch.reject(index, problems[int(splits.codes[index])]))
        return batch.take(np.flatnonzero(~bad)) if bad.any() else batch

    def _splits(self, batch: RowBatch) -> Categories:
        """Return the split of each row. It is given by the file or by the row, or determined by the
        rule."""
        everywhere = np.zeros(len(batch), np.int32)
        if batch.part.split is not None:
            return Categories(everywhere, [batch.part.split])
        own = batch.rows.splits or Categories(everywhere - 1, [])
        if (own.codes >= 0).all() and len(batch):
            return own
        if self.rule is None:
            return own.filled(TRAIN)
        if self.rule.by is not None:
            values = (batch.rows.groups or {}).get(self.rule.by, Categories(everywhere - 1, []))
            starts = [self.rule.split_at(value) for value in values.names]
            return Categories.of(
                [
                    own.at(row) or (TRAIN if code < 0 else starts[code])
                    for row, code in enumerate(values.codes.tolist())
                ]
            )
        ids = batch.rows.ids.to_pylist()
        clusters = batch.rows.clusters or Categories(everywhere - 1, [])
        return Categories.of(
            [
                own.at(row) or self.rule.split_of(clusters.at(row) or ids[row])
                for row in range(len(batch))
            ]
        )

    def resolved(
        self,
        unit: Unit,
        policy: NumeralPolicy,
        unwritable: Callable[[Texts], dict[int, str]] = lambda texts: {},
    ) -> Iterator[NumberedRows]:
        """Yield the valid rows of a unit in batches, with their numbers and targets.

        Rows with a target that is not a number are rejected.

        policy
            Numeral policy by which numbers are found.
        unwritable
            Function that finds further texts to reject. It returns the reason for each of these
            texts, keyed by the index of the text.
        """
        for batch, splits in self.batches(unit):
            # No reference is kept here: the consumer releases the texts while it works on them.
            yield self._resolved(batch, splits, policy, unwritable)

    def _resolved(
        self,
        batch: RowBatch,
        splits: Categories,
        policy: NumeralPolicy,
        unwritable: Callable[[Texts], dict[int, str]],
    ) -> NumberedRows:
        rows = _numbered(batch, splits, policy)
        problems = unwritable(rows.texts) | rows.targets.problems
        problems |= span_problems(batch.rows, rows.texts)
        if not problems:
            return rows
        bad = [batch.reject(index, text) for index, text in problems.items()]
        self.refuse(bad)
        batch.rejected += bad
        keep = np.setdiff1d(np.arange(len(batch)), list(problems))
        return _numbered(batch.take(keep), splits.take(keep), policy)

    def refuse(self, rejected: list[RejectedRow]) -> None:
        """Raise DataError for the first rejected row. Do nothing if ``rejected`` is empty or
        ``skip`` is True."""
        if rejected and not self.skip:
            raise min(rejected, key=lambda bad: bad.row).error()


@dataclass(frozen=True, kw_only=True)
class EncodeUnit:
    """Callable that workers run on each unit of work. It encodes the unit and writes its shards and
    its receipt into the draft, the folder of the unfinished artifact.

    A call returns the index of the unit and the results in its receipt. These include the optional
    columns (:attr:`RowColumns.more_columns`) that are missing from ``more``. If any are missing,
    encoding is repeated with these columns.
    """

    draft: Path
    screening: Screening
    more: tuple[str, ...]
    stop_at_clip: bool
    settings: str  # digest of everything but the input

    @cached_property
    def codec(self) -> Codec:
        """Codec, read from the draft's ``scheme.json`` on first use."""
        return Codec.read(self.draft / SCHEME_FILE)

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the shards: the columns that every encoding with this codec has, and those in
        ``more``."""
        return encoded_schema(self.codec.ids, self.more)

    @staticmethod
    def receipt_of(unit: Unit) -> str:
        """Return the name of a unit's receipt."""
        return f"{unit.index:05d}"

    def __call__(self, unit: Unit) -> tuple[int, UnitFacts]:
        numbers = tokens = 0
        outcomes: Counter[str] = Counter()
        unread = UnreadDigits()
        unseen: set[str] = set()
        twins = RowTwins()
        codec = self.codec
        rejected = RejectedRows(self.draft, unit.index)
        with rejected, Shards(self.draft, unit.index, apart=CLIPPED) as shards:
            for rows in self.screening.resolved(unit, codec.policy, codec.text.unwritable):
                batch, splits, texts, spans, targets = rows
                rejected.write(batch.rejected)
                twins.add(row_hashes(texts, spans, targets), splits)
                encoded = codec.encode(texts, spans, targets.answers)
                found = texts.data, texts.rows, spans.starts, spans.ends
                unread.merge(count_unread(*found, unread.next_sample))
                numbers += len(encoded.numbers)
                tokens += len(encoded.tokens)
                outcomes.update(names_of(encoded.outcomes))
                if encoded.truncated:
                    outcomes[TRUNCATED] += encoded.truncated
                if encoded.inexact:
                    outcomes[INEXACT] += encoded.inexact
                unseen |= batch.rows.more_columns - set(self.more)
                losses = _losses(batch, encoded)
                if losses.num_rows and self.stop_at_clip:
                    raise _clip_error(batch, encoded, losses)
                shards.write(CLIPPED, losses)
                table = self._table(batch, encoded, targets)
                # The writer needs several times the memory of its longest row.
                batch.release()
                del rows, batch, texts, spans, encoded, targets
                for split, rows_of in splits.places():
                    whole = len(rows_of) == table.num_rows
                    shards.write(split, table if whole else table.take(column(rows_of)))
            outputs, row_counts = shards.close()
            row_counts.pop(CLIPPED, None)
            outputs += rejected.close()
        facts = UnitFacts(
            rows=row_counts,
            numbers=numbers,
            tokens=tokens,
            outcomes=dict(outcomes),
            rejected=rejected.count,
            unread=unread.commonest(),
            unseen_columns=sorted(unseen),
            twin_limit=twins.limit,
            row_hashes={name: hashes.tobytes() for name, hashes in twins.splits.items()},
        )
        write_receipt(
            self.draft,
            self.receipt_of(unit),
            input=unit.input,
            settings=self.settings,
            outputs=outputs,
            facts=facts,
        )
        return unit.index, facts

    def _table(self, batch: RowBatch, encoded: EncodedTexts, targets: ResolvedTargets) -> pa.Table:
        rows, target_rows = encoded.number_rows, offsets(targets.counts)
        data, starts, ends = encoded.literals
        literals = slices(data, starts[targets.spans], ends[targets.spans])
        answers = encoded.marks
        nothing = pa.nulls(len(batch), pa.string())
        columns: dict[str, Any] = {
            "id": batch.rows.ids,
            "text": encoded.text,
            "numbers": lists(rows, column(encoded.numbers)),
            "tokens": lists(encoded.token_rows, column(encoded.tokens)),
            "number_start": lists(rows, column(encoded.number_start)),
            "number_length": lists(rows, column(encoded.number_length)),
        }
        if self.codec.ids.written:
            columns["number_text"] = lists(rows, slices(*encoded.written))
        if encoded.channel is not None:
            columns["channel"] = lists(rows, column(encoded.channel))
        columns |= {
            "target_index": lists(target_rows, column(targets.numbers)),
            "target_name": lists(target_rows, targets.names.column()),
            "target_literal": lists(target_rows, literals),
            "answer_start": column(answers, answers < 0)
            if (answers >= 0).any()
            else pa.nulls(len(batch), pa.int32()),
            "label": nothing if batch.rows.labels is None else batch.rows.labels.column(),
        }
        row_targets, groups = batch.rows.targets or NO_TARGETS, batch.rows.groups or {}
        for name in self.more:
            if name.startswith(FLOOR):
                values = row_targets.floors.get(name.removeprefix(FLOOR))
                floors = np.full(len(row_targets.rows), np.nan) if values is None else values
                columns[name] = lists(target_rows, column(floors))
                continue
            of_group = groups.get(name.removeprefix(GROUP))
            words = batch.rows.clusters if name == CLUSTER else of_group
            columns[name] = nothing if words is None else words.column()
        return pa.table(columns, schema=self.schema)


def _losses(batch: RowBatch, encoded: EncodedTexts) -> pa.Table:
    """Return a table of the numbers that overflow or underflow in the scheme."""
    lost = np.flatnonzero(encoded.outcomes >= min(LOSSES))
    if not len(lost):
        return _NO_LOSSES
    rows = np.searchsorted(encoded.number_rows, lost, side="right") - 1
    columns = {
        "id": batch.rows.ids.take(column(rows)),
        "number": column((lost - encoded.number_rows[rows]).astype(np.int32)),
        "literal": strings([encoded.literals.at(index) for index in lost.tolist()]),
        "outcome": strings(
            [Outcome(code).name.lower() for code in encoded.outcomes[lost].tolist()]
        ),
    }
    return pa.table(columns, schema=_CLIPPED)


def _clip_error(batch: RowBatch, encoded: EncodedTexts, losses: pa.Table) -> DataError:
    first = losses.slice(0, 1).to_pylist()[0]
    lost = np.flatnonzero(encoded.outcomes >= min(LOSSES))[0]
    row = batch.numbers[np.searchsorted(encoded.number_rows, lost, side="right") - 1]
    return DataError(
        f"{location_of(batch.part, int(row))}: number {first['number']} ({first['literal']}) is a "
        f"{first['outcome'].replace('_', ' ')} in this scheme. Widen its exponents, normalize "
        "(--normalize), or use --on-overflow count"
    )


class RejectedRows:
    """Writes the rejected rows of a unit, with the reasons, to a JSONL file. The file is created
    when the first row is written.

    The key ``file`` in a line is the index of the input file, as in row ids. Renaming input files
    therefore does not change the artifact.
    """

    def __init__(self, folder: Path, unit: int) -> None:
        self._folder, self._unit, self._name = folder, unit, ""
        self._sink: files.Sink | None = None
        self.count = 0

    def write(self, rejected: list[RejectedRow]) -> None:
        """Add the rejected rows of one batch."""
        if rejected and self._sink is None:
            self._name = separate_file(self._folder, REJECTED, self._unit, "jsonl")
            self._sink = files.Sink(self._folder / self._name)
        for bad in sorted(rejected, key=lambda bad: bad.row):
            line: dict[str, Any] = {"file": bad.part.file, "row": bad.number, "reason": bad.reason}
            if bad.content is not None:
                try:
                    line["content"] = bad.content.decode()
                except UnicodeDecodeError:
                    line["content_base64"] = base64.b64encode(bad.content).decode()
            assert self._sink is not None
            self._sink.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self.count += len(rejected)

    def close(self) -> list[Output]:
        """Close the file. Returns a list with this file, or an empty list if no row was
        rejected."""
        if self._sink is None:
            return []
        self._sink.close()
        return [Output(self._name, self._sink.bytes, self._sink.sha256)]

    def __enter__(self) -> "RejectedRows":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None and self._sink is not None:
            self._sink.abort()
