"""What a race is about: ``slot-skill``, over the median of each slot or over anything else.

Slots are those of reports; where rows have targets each target is one, with its median in the train
split. What a race is decided by stands here and nowhere else.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Ints
from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.rows import learnt_rows, read_table_of
from numtok.encoding.splits import read_split
from numtok.errors import DataError
from numtok.evaluation.report_files import (
    TARGET,
    ReportPredictions,
    codes_of,
    has_clusters,
    has_slots,
    rows_by_value,
)
from numtok.metrics.base import METRICS, Predictions, paired
from numtok.reports import SLOT, Figure
from numtok.row import CLUSTER
from numtok.store.artifact import TABLE, Artifact

_SKILL = "slot-skill"


def medians(data: Artifact) -> dict[str, float]:
    """The median of each target in the train split, and under "" that of all its numbers: what one
    says who knows nothing else. Of encoded data or a table."""
    if data.kind == TABLE:
        table = read_table_of(data)
        median = float(np.median(table.target[learnt_rows(table, 0, None, 0)]))
        return {"": median, table.file.target: median}
    train = read_split(data, TRAIN)
    values = train.numbers[train.targets] if len(train.targets) else train.numbers
    known = np.isfinite(values)
    found = {"": float(np.median(values[known])) if known.any() else 0.0}
    names = np.array(train.target_name.to_pylist(), object)
    for name in sorted(set(names.tolist())):
        if len(mine := values[known & (names == name)]):
            found[name] = float(np.median(mine))
    return found


def in_slots(predictions: ReportPredictions, medians: Mapping[str, float]) -> Predictions:
    """The answers of a report with slots and their medians: its own, or those of the targets."""
    answers = predictions.answers
    if answers.slot is not None and answers.slot_median is not None:
        return answers
    names = predictions.table.column(TARGET).to_pylist()
    known, codes = np.unique(np.array(names, object), return_inverse=True)
    usual = np.array([medians.get(name, medians[""]) for name in known.tolist()], np.float64)
    return answers._replace(slot=codes, slot_median=usual[codes])


def slot_rows(predictions: ReportPredictions, answers: Predictions) -> dict[str, Ints]:
    """By slot, int64[k]: which of the answers of :func:`in_slots` it has; those of none are left
    out."""
    assert answers.slot_median is not None
    column = SLOT if has_slots(predictions.table) else TARGET
    found = rows_by_value(predictions.table.column(column))
    none = np.isnan(answers.slot_median)
    return {name: rows for name, rows in found.items() if not none[rows[0]]}


def pooled(seeds: Sequence[ReportPredictions]) -> ReportPredictions:
    """Join predictions of seeds that were each asked about rows of their own, as they are where
    each seed holds rows back. A row that several seeds were asked about is one cluster."""
    tables = []
    for number, one in enumerate(seeds):
        table, ids = one.table, one.table.column("id")
        if not has_clusters(table):
            table = table.append_column(CLUSTER, ids)
        of_seed = pc.binary_join_element_wise(str(number), ids, "/")
        tables.append(table.set_column(table.column_names.index("id"), "id", of_seed))
    table = pa.concat_tables(tables)
    columns = zip(*(one.answers for one in seeds), strict=True)
    joined = Predictions(*map(_joined, columns))._replace(
        measures=seeds[0].answers.measures, sample=codes_of(table.column(CLUSTER))
    )
    if has_slots(table):
        joined = joined._replace(slot=codes_of(table.column(SLOT)))
    return ReportPredictions(seeds[0].ref, table, joined)


def _joined(parts: Sequence[Any]) -> Any:
    """A column of predictions, of all parts; None where a part has none."""
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))


def score(predictions: ReportPredictions, medians: Mapping[str, float]) -> float:
    """The skill of predictions over always saying the median of the slot: what decides who goes on.

    Raises DataError where all numbers are that.
    """
    metric, answers = METRICS.build(_SKILL), in_slots(predictions, medians)
    if (why := metric.why_undefined(answers)) is not None:
        raise DataError(
            f"{predictions.ref}: {why}, so nothing can be told apart; a race needs numbers that "
            "differ"
        )
    return metric.plain(answers)


def skill_apart(
    first: Sequence[Predictions], second: Sequence[Predictions], over: Predictions
) -> Figure:
    """The skill of ``first`` minus that of ``second``, the seeds of each, both over the same
    answers, those of the slots' medians or others: with its interval over samples and seeds.

    All are of the same numbers, in slots (:func:`in_slots`). A slot in which ``over`` has no error
    has no part in it; the figure has no value where that is so of all.
    """
    assert over.slot_median is not None
    reference = np.where(np.isnan(over.slot_median), np.nan, over.prediction)
    sides = [
        [one._replace(slot=over.slot, slot_median=reference) for one in side]
        for side in (first, second)
    ]
    return paired(METRICS.build(_SKILL), *sides, draw_seeds=True).figure
