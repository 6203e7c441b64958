"""The metric that decides a race, ``field-skill``: skill over the median of each field, or over a
baseline.

The fields are taken from the reports. If rows have targets, each target is a field, and its median
is taken from the train split.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import Ints
from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.table import learnt_rows, read_table_of
from numtok.encoding.splits import read_split
from numtok.errors import DataError
from numtok.evaluation.baselines import target_medians
from numtok.evaluation.prediction_table import (
    TARGET,
    codes_of,
    has_clusters,
    has_fields,
    rows_by_value,
)
from numtok.evaluation.report_files import ReportPredictions
from numtok.metrics.base import METRICS, Predictions, paired
from numtok.reports import FIELD, Figure
from numtok.row import CLUSTER
from numtok.store.artifact import TABLE, Artifact

_SKILL = "field-skill"


def medians(data: Artifact) -> dict[str, float]:
    """Return the median of each target in the train split of encoded data or a table, keyed by
    target name.

    The key "" maps to the median over all targets, or over all numbers if the data has no targets;
    it is 0 if none of these is finite. Values that are not finite are ignored.
    """
    if data.kind == TABLE:
        table = read_table_of(data)
        median = float(np.median(table.target[learnt_rows(table, 0)]))
        return {"": median, table.file.target: median}
    return target_medians(read_split(data, TRAIN))


def in_fields(predictions: ReportPredictions, medians: Mapping[str, float]) -> Predictions:
    """Return a report's predictions, with the field and the median of that field for each number.
    If the report has no fields, each target is a field, with its median from ``medians``."""
    answers = predictions.answers
    if answers.field is not None and answers.field_median is not None:
        return answers
    names = predictions.table.column(TARGET).to_pylist()
    unique, codes = np.unique(np.array(names, object), return_inverse=True)
    field_medians = np.array(
        [medians.get(name, medians[""]) for name in unique.tolist()], np.float64
    )
    return answers._replace(field=codes, field_median=field_medians[codes])


def field_rows(predictions: ReportPredictions, answers: Predictions) -> dict[str, Ints]:
    """Return the indices (int64[k]) of the numbers in each field, keyed by the name of the field.
    ``answers`` are predictions from :func:`in_fields`; numbers without a field are left out."""
    assert answers.field_median is not None
    column = FIELD if has_fields(predictions.table) else TARGET
    rows_by_field = rows_by_value(predictions.table.column(column))
    missing = np.isnan(answers.field_median)
    return {name: rows for name, rows in rows_by_field.items() if not missing[rows[0]]}


def pooled(seeds: Sequence[ReportPredictions]) -> ReportPredictions:
    """Join the predictions of several seeds that held out different rows. A row that several seeds
    predict becomes one cluster."""
    tables = []
    for number, seed in enumerate(seeds):
        table, ids = seed.table, seed.table.column("id")
        if not has_clusters(table):
            table = table.append_column(CLUSTER, ids)
        of_seed = pc.binary_join_element_wise(str(number), ids, "/")
        tables.append(table.set_column(table.column_names.index("id"), "id", of_seed))
    table = pa.concat_tables(tables)
    columns = zip(*(seed.answers for seed in seeds), strict=True)
    joined = Predictions(*map(_joined, columns))._replace(
        measures=seeds[0].answers.measures, sample=codes_of(table.column(CLUSTER))
    )
    if has_fields(table):
        joined = joined._replace(field=codes_of(table.column(FIELD)))
    return ReportPredictions(seeds[0].ref, table, joined)


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate a column of predictions; None if a part has none."""
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))


def score(predictions: ReportPredictions, medians: Mapping[str, float]) -> float:
    """Return the skill that decides a round: the skill of predictions over the median of the field.

    Raises DataError if all numbers equal their median.
    """
    metric, answers = METRICS.build(_SKILL), in_fields(predictions, medians)
    if (why := metric.why_undefined(answers)) is not None:
        raise DataError(
            f"{predictions.ref}: {why}, so candidates cannot be compared. Pass data whose numbers "
            "vary"
        )
    return metric.plain(answers)


def skill_apart(
    first: Sequence[Predictions], second: Sequence[Predictions], over: Predictions
) -> Figure:
    """Return the skill of ``first`` minus the skill of ``second``, both over the reference
    predictions ``over``, with an interval over samples and seeds.

    All predictions are for the same numbers, with fields as returned by :func:`in_fields`. Fields
    in which ``over`` makes no error are left out; if no field is left, the value is None.
    """
    assert over.field_median is not None
    reference = np.where(np.isnan(over.field_median), np.nan, over.prediction)
    sides = [
        [seed._replace(field=over.field, field_median=reference) for seed in side]
        for side in (first, second)
    ]
    return paired(METRICS.build(_SKILL), *sides).figure
