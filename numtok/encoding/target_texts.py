"""target_texts: rows as texts without their targets, and the value of one target."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats
from numtok.data.reading.rows import NO_TARGETS, Targets
from numtok.data.reading.units import Unit
from numtok.data.tables.text_features import NamedSpan, without_targets
from numtok.encoding.unit import NumberedRows, Screening
from numtok.errors import DataError, UsageError
from numtok.numerals.policy import NumeralPolicy


class TargetTexts(NamedTuple):
    """A batch of ``n`` rows: texts without any target, values of one target, and splits. The batch
    also has ``skipped`` bad rows."""

    texts: list[str]
    values: Floats  # [n]
    splits: list[str]
    skipped: int


def only_target(units: Iterable[Unit], screening: Screening) -> str:
    """Return the name of the target of the first rows.

    Raises UsageError if they have several targets, and DataError if no row has a target.
    """
    for unit in units:
        for batch, _ in screening.batches(unit):
            names = (batch.rows.targets or NO_TARGETS).names.names
            if len(names) > 1:
                raise UsageError(
                    f"the rows have several targets ({', '.join(names)}). Choose one: --target "
                    f"{names[0]}"
                )
            if names:
                return names[0]
    raise DataError(
        'no row has a target. Mark the number to predict: "targets": {"price": [[12, 15]]}'
    )


def target_texts(
    units: Iterable[Unit],
    screening: Screening,
    policy: NumeralPolicy,
    target: str,
    *,
    causal: bool,
) -> Iterator[TargetTexts]:
    """Yield the valid rows of all units in batches, in order.

    causal
        True if texts end before their first target.

    Rows without exactly one number of ``target`` are rejected. Raises DataError if a row is
    rejected, unless ``screening`` skips bad rows.
    """
    for unit in units:
        for rows in screening.resolved(unit, policy):
            yield _target_texts(rows, screening, target, causal)


def _target_texts(
    rows: NumberedRows, screening: Screening, target: str, causal: bool
) -> TargetTexts:
    batch, found = rows.batch, rows.batch.rows.targets or NO_TARGETS
    is_target = np.array([name == target for name in found.names.names], np.bool_)
    chosen = np.flatnonzero(is_target[found.names.codes]) if len(is_target) else np.empty(0, int)
    counts = np.bincount(found.rows[chosen], minlength=len(batch))
    rejected = [
        batch.reject(index, _problem(target, int(counts[index])))
        for index in np.flatnonzero(counts != 1).tolist()
    ]
    screening.refuse(rejected)
    values = np.zeros(len(batch))
    values[found.rows[chosen]] = rows.spans.numerals().values[rows.targets.spans[chosen]]
    texts, spans = batch.rows.texts.to_pylist(), _spans(found, len(batch))
    kept = np.flatnonzero(counts == 1)
    return TargetTexts(
        [without_targets(texts[row], spans[row], causal=causal) for row in kept.tolist()],
        values[kept],
        [str(rows.splits.at(row)) for row in kept.tolist()],
        len(batch.rejected) + len(rejected),
    )


def _spans(targets: Targets, rows: int) -> list[list[NamedSpan]]:
    """Return the spans of all targets of each row."""
    spans: list[list[NamedSpan]] = [[] for _ in range(rows)]
    ends = zip(targets.starts.tolist(), targets.ends.tolist(), strict=True)
    for index, (row, (start, end)) in enumerate(zip(targets.rows.tolist(), ends, strict=True)):
        spans[row].append(NamedSpan(start, end, str(targets.names.at(index))))
    return spans


def _problem(target: str, count: int) -> str:
    if count:
        return f"target {target!r} must be one number (got {count}). Keep one of them"
    return f"the row has no target {target!r}. Choose another one: --target"
