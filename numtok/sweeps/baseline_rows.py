"""Predictions of a baseline for the records of a file.

A baseline is fitted each time, to the train split of a table or of rendered records. It is never
stored.
"""

import shlex
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import count
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from numtok.arrays import Floats
from numtok.data.reading.split_rule import TRAIN
from numtok.data.records.reader import Records, read_records
from numtok.data.records.rendering import FIELD, with_new_rows
from numtok.data.records.row_template import TEMPLATE
from numtok.data.tables.table import (
    VALIDATION,
    decimal_of,
    learnt_rows,
    read_table_file,
    read_table_of,
)
from numtok.data.tables.text_features import read_text_features
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError, UsageError, meaningless
from numtok.evaluation.baselines import fits
from numtok.evaluation.conformal import Calibrated, Ends, Forecasts, calibrate
from numtok.evaluation.intervals import ENDS, calibrating, coverage_notes
from numtok.evaluation.predicted_rows import PREDICTED, RowNumbers, with_predictions
from numtok.evaluation.record_splits import RecordSplits, read_record_splits
from numtok.evaluation.reporting import Uncalibrated
from numtok.evaluation.rivals import (
    MEAN,
    MEDIAN,
    TUNED,
    Rivals,
    merged,
    rivals,
    rivals_of_fold,
)
from numtok.evaluation.tabicl_rival import TABICL, checkpoint, tabicl_rival
from numtok.evaluation.table_rows import fold_of, listed, read_features
from numtok.evaluation.tabular_rival import TABULAR, tabular_rival
from numtok.evaluation.text_baselines import TEXT_BASELINES
from numtok.numerals.policy import NumeralPolicy
from numtok.settings.predict import Config
from numtok.stages import encode
from numtok.store.artifact import DATA, ENCODED, TABLE, Artifact
from numtok.store.store import Store
from numtok.training.features import Features, Inputs

_OF_TABLES = (MEAN, MEDIAN, "linear", "boosted", TUNED)
_OF_RECORDS = {TABULAR: tabular_rival, TABICL: tabicl_rival}  # read all fields of records
_TUNED = (TUNED, *_OF_RECORDS)  # their settings are chosen on the validation split


class BaselinePredictions(NamedTuple):
    """Predictions of a baseline for the values of one target.

    new
        float64[n], predictions for the new rows; not finite if invalid.
    calibration, truth
        float64[c], predictions and true values of the calibration rows.
    least
        Smallest training value.
    """

    new: Floats
    calibration: Floats
    truth: Floats
    least: float

    def ends(self, target: str, calibrated: Calibrated) -> Ends:
        """Return the intervals of the new rows; NaN for rows without a prediction."""
        strata = np.full(len(self.new), target, object)
        return calibrated.intervals(Forecasts(point=self.new, quantiles=None, strata=strata))


def run(config: Config, store: Store) -> Generator[bytes]:
    """Yield the lines of the output: the rows of a file, each with its prediction and, if
    ``config.interval`` is set, the ends of a prediction interval.

    Raises UsageError if the baseline does not fit the data, the data has no target, a field or
    column is missing, or no rows can calibrate intervals; and DataError for invalid data.
    """
    assert config.baseline is not None
    data, policy = _data_of(config.model, config.baseline, store)
    decimal = None
    if data.kind == TABLE:
        found = _of_table(config, data, store)
        decimal = decimal_of(read_table_file(data).features)
    else:
        if config.fold is not None:
            raise meaningless("fold", f"{data.ref}, which is not a table")
        found = _of_rows(config, data, policy, store)
    columns = {target: {PREDICTED: predictions.new} for target, predictions in found.items()}
    if config.interval is not None:
        calibrated = _calibrated(found, config.interval)
        for note in coverage_notes(calibrated, len(next(iter(found.values())).truth), data):
            store.note(note)
        for target, predictions in found.items():
            columns[target] |= dict(zip(ENDS, predictions.ends(target, calibrated), strict=True))
    names = (PREDICTED,) if config.interval is None else (PREDICTED, *ENDS)
    yield from with_predictions(
        str(config.file), list(found), names, _rows(columns), decimal=decimal
    )


def command_for(baseline: str, data: Sequence[Artifact], *query: str) -> list[str]:
    """Return the command that predicts with a baseline, fitted to the first artifact of ``data``
    that it fits, as a list with one item; empty if it fits none. ``query`` are the words after the
    artifact."""
    for artifact in data:
        if baseline in _names(artifact):
            words = ["--baseline", baseline, f"{artifact.kind}/{artifact.ref}", *query]
            return [shlex.join(["numtok", "predict", *words])]
    return []


def _rows(columns: Mapping[str, Mapping[str, Floats]]) -> Iterator[RowNumbers]:
    """Yield the values of each row, given the columns of each target."""
    rows = [
        zip(*(values.tolist() for values in of_target.values()), strict=True)
        for of_target in columns.values()
    ]
    for row in zip(*rows, strict=True):
        yield {
            target: dict(zip(columns[target], values, strict=True))
            for target, values in zip(columns, row, strict=True)
        }


def _calibrated(found: Mapping[str, BaselinePredictions], level: float) -> Calibrated:
    """Calibrate intervals at a level, separately for each target. Calibration rows without a
    prediction are left out, as new rows without one have no interval."""
    parts = []
    for target, each in found.items():
        rows = np.flatnonzero(np.isfinite(each.calibration))
        strata = np.full(len(rows), target, object)
        parts.append((each.truth[rows], each.calibration[rows], strata, rows))
    truth, points, strata, units = map(np.concatenate, zip(*parts, strict=True))
    forecasts = Forecasts(point=points, quantiles=None, strata=strata)
    clipped = {target for target, each in found.items() if each.least >= 0}
    return calibrate(truth, forecasts, units, level, nonnegative=clipped)


def _calibration_split(
    config: Config, data: Artifact, names: Collection[str], store: Store
) -> str | None:
    """Return the split that calibrates intervals; None if no level is set."""
    if config.interval is None:
        return None
    split = calibrating(names)
    if split == VALIDATION and config.baseline in _TUNED:
        store.note(
            f"{100 * config.interval:g}% intervals are calibrated on split {split!r} of "
            f"{data.ref}, which also tuned the baseline. For rows of their own, add a split "
            "calibration."
        )
    if split is None:
        raise Uncalibrated(
            f"{data.ref} has neither a split calibration nor a split validation",
            "Make the data with one: --split validation=0.12,calibration=0.08,test=0.15",
        )
    return split


# --- the data -------------------------------------------------------------------------------------


def _data_of(ref: str, baseline: str, store: Store) -> tuple[Artifact, NumeralPolicy]:
    """Return the table or the rendered rows that a baseline is fitted to, and the policy by which
    numbers are read in the rows.

    A name may be that of a table and of rendered rows. Then the baselines that both have are fitted
    to the table, as in races. Raises UsageError if the data has no target or the baseline does not
    fit it.
    """
    preferred = {TABLE} if baseline in _OF_TABLES else {DATA, ENCODED}
    try:
        data = store.resolve(ref, kinds=preferred)
    except UsageError:  # another kind, or no match, which is reported here
        data = store.resolve(ref, kinds={TABLE, DATA, ENCODED})
    policy = NumeralPolicy()
    if data.kind == ENCODED:
        codec = read_codec(data)
        if codec.template is not None:
            policy, data = codec.policy, _rendered(data, store)
    if data.kind != TABLE and not (data.path / TEMPLATE.name).is_file():
        raise UsageError(
            f"{data.ref} has no target field that a baseline could predict. Make data from "
            "records: numtok table FILE --target FIELD, or numtok encode FILE --target FIELD"
        )
    if not (names := _names(data)):
        raise UsageError(
            f"{data.ref} has hidden states of a pretrained model, which baselines do not read. Use "
            "the data that it was made from"
        )
    if baseline not in names:
        raise UsageError(
            f"baseline {baseline!r} cannot be fitted to {data.kind}/{data.ref}. Use one of "
            f"{', '.join(names)}"
        )
    return data, policy


def _rendered(encoded: Artifact, store: Store) -> Artifact:
    """Return the rendered rows that were encoded."""
    name, _, version = encoded.made_from(DATA).where.partition("@")
    rows = store.find(DATA, name, version)
    if rows is None:
        raise UsageError(
            f"the rows of {encoded.ref} are not in the store. Make them again; for the commands: "
            f"numtok lineage {encoded.ref}"
        )
    return rows


def _names(data: Artifact) -> list[str]:
    """Return the baselines that may be fitted to a table or to rendered rows."""
    trees = find_spec("sklearn") is not None
    if data.kind == TABLE:
        if read_text_features(data) is not None:  # hidden states
            return []
        tuned = [TUNED] if trees else []
        return [MEAN, MEDIAN, *([*fits(), *tuned] if read_table_file(data).features else [])]
    names = [MEAN, MEDIAN, *fits(), *(TEXT_BASELINES if trees else ())]
    if f"rows_{VALIDATION}" in data.manifest.counts:
        names += [TUNED] if trees else []
        names += [TABULAR] if find_spec("skrub") else []
        names += [TABICL] if checkpoint() else []
    return names


def _of_table(config: Config, data: Artifact, store: Store) -> dict[str, BaselinePredictions]:
    """Return the predictions of a baseline on a table."""
    table = read_table_of(data)
    fold = fold_of(config, data.ref, range(len(table.file.splits)))
    split = _calibration_split(config, data, table.splits(fold), store)
    columns = Features(table.numbers, table.categories)
    values = Inputs.fit(columns.take(learnt_rows(table, fold))).values
    new = read_features(str(config.file), table.file.features, values, data.ref)
    _check_count(config, len(new.numbers))
    calibration = np.empty(0, np.int64) if split is None else table.split(split, fold)
    repeated = columns.take(calibration)
    queried = Features(
        np.concatenate([repeated.numbers, new.numbers]),
        [pa.concat_arrays(pair) for pair in zip(repeated.categories, new.categories, strict=True)],
    )
    [(_, predicted)] = rivals_of_fold(table, fold, queried, [str(config.baseline)])
    first = len(calibration)
    least = float(table.target[table.split(TRAIN, fold)].min())
    truth = table.target[calibration]
    found = BaselinePredictions(predicted[first:], predicted[:first], truth, least)
    return {table.file.target: found}


def _of_rows(
    config: Config, data: Artifact, policy: NumeralPolicy, store: Store
) -> dict[str, BaselinePredictions]:
    """Return the predictions of a baseline on rendered rows, for each target."""
    baseline, targets = str(config.baseline), data.read(TEMPLATE).targets
    records = _read_fields(str(config.file), data)
    _check_count(config, len(records))
    names = {name.removeprefix("rows_") for name in data.manifest.counts}
    repeated = _calibration_split(config, data, names, store)
    split = next(name for name in map("new{}".format, count()) if name not in names)
    with store.scratch() as scratch:
        rows = with_new_rows(data, records, scratch, split=split, repeated=repeated)
        queried = {target: read_record_splits(rows, target, split) for target in targets}
        if baseline in _OF_RECORDS:
            _check_kinds(read_record_splits(data, targets[0], TRAIN), queried[targets[0]], config)
            found = {target: _OF_RECORDS[baseline](queried[target]) for target in targets}
        else:
            predicted = _of_encoded(rows, baseline, policy, split, scratch).by_row()
            found = {
                target: merged([Rivals(queried[target].keys, {}, []), predicted])
                for target in targets
            }
    return {
        target: _of_target(target, found[target], queried[target], len(records), config)
        for target in targets
    }


def _check_count(config: Config, rows: int) -> None:
    if not rows:
        raise DataError(f"{config.file} has no rows. Pass a file with at least one")


def _read_fields(path: str, data: Artifact) -> Records:
    """Read the records of a file. Raises UsageError if it lacks a field of rendered rows."""
    records = read_records(path)
    fields = data.read(TEMPLATE).fields
    if lacking := [name for name in fields if name not in records.names]:
        raise UsageError(
            f"{path} has no field {listed(lacking)} (it has {listed(records.names)}). {data.ref} "
            f"needs {listed(fields)}"
        )
    return records


def _of_encoded(
    rows: Artifact, baseline: str, policy: NumeralPolicy, split: str, store: Store
) -> Rivals:
    """Encode rendered rows, and return the predictions of a baseline for a split. They do not
    depend on the scheme."""
    settings = encode.Config(
        (str(rows.path),),
        scheme="digits",
        text_tokenizer="bytes",
        numerals=policy.spec(),
        not_numbers=policy.not_numbers,
    )
    encoded = encode.run(settings, store, lambda *_: None).artifact
    assert encoded is not None  # not a dry run
    return rivals(encoded, split, names=[baseline])


def _of_target(
    target: str, found: Rivals, queried: RecordSplits, new: int, config: Config
) -> BaselinePredictions:
    """Return the predictions for a target. The last ``new`` of the queried rows are the new rows;
    the rows before them calibrate intervals."""
    values = found.values.get(str(config.baseline))
    if values is None or np.isnan(values).all():
        reasons = " ".join(found.notes) or f"{target!r} has too few training rows."
        raise UsageError(
            f"baseline {config.baseline!r} cannot be fitted to {config.model}: {reasons} Use "
            "another baseline"
        )
    calibration = len(values) - new
    truth = queried.values[queried.queried[:calibration]]
    least = float(queried.values[queried.train].min())
    return BaselinePredictions(values[calibration:], values[:calibration], truth, least)


def _check_kinds(stored: RecordSplits, queried: RecordSplits, config: Config) -> None:
    """Raise DataError if a field that only has numbers or dates in the stored rows has other values
    in the new ones."""
    for name, kind in stored.fields.schema.items():
        if queried.fields.schema[name].is_temporal() == kind.is_temporal() and (
            queried.fields.schema[name].is_numeric() == kind.is_numeric()
        ):
            continue
        raise DataError(
            f"{config.file}: {name.removeprefix(FIELD)!r} must have only "
            f"{'numbers' if kind.is_numeric() else 'dates'}, as in {config.model}. Correct it"
        )
