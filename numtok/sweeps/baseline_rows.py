"""Predictions of a baseline for the records of a file.

A baseline is fitted each time, to the train split of a table or of rendered records. It is never
stored.
"""

import shlex
from collections.abc import Collection, Generator, Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from numtok.arrays import Floats
from numtok.data.reading.split_rule import CALIBRATION, TRAIN
from numtok.data.records.reader import read_records
from numtok.data.records.rendering import FIELD, with_new_rows
from numtok.data.records.template import TEMPLATE
from numtok.data.tables.table import VALIDATION, learnt_rows, read_table_file, read_table_of
from numtok.data.tables.text_features import read_text_features
from numtok.encoding.splits import read_codec
from numtok.errors import DataError, UsageError, meaningless
from numtok.evaluation.baselines import fits
from numtok.evaluation.conformal import Ends, Forecasts, calibrate
from numtok.evaluation.intervals import ENDS, coverage_notes
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
from numtok.evaluation.table_rows import fold_of, read_features
from numtok.evaluation.tabular_rival import TABULAR, tabular_rival
from numtok.evaluation.text_baselines import TEXT_BASELINES
from numtok.numerals.policy import NumeralPolicy
from numtok.settings.predict import Config
from numtok.stages import encode
from numtok.store.artifact import DATA, ENCODED, TABLE, Artifact
from numtok.store.store import Store
from numtok.training.features import Features, Inputs

_OF_RECORDS = {TABULAR: tabular_rival, TABICL: tabicl_rival}  # read all fields of records
_TUNED = (TUNED, *_OF_RECORDS)  # their settings are chosen on the validation split


class BaselinePredictions(NamedTuple):
    """Predictions of a baseline for the values of one target.

    new
        float64[n], predictions for the new rows; not finite if invalid.
    calibration, truth
        float64[c], predictions and true values of the calibration rows.
    """

    new: Floats
    calibration: Floats
    truth: Floats

    @property
    def usable(self) -> "BaselinePredictions":
        """The predictions without invalid ones for calibration rows."""
        valid = np.isfinite(self.calibration)
        return self._replace(calibration=self.calibration[valid], truth=self.truth[valid])


def run(config: Config, store: Store) -> Generator[bytes]:
    """Yield the lines of the output: the rows of a file, each with its prediction and, if
    ``config.interval`` is set, the ends of a prediction interval.

    Raises UsageError if the baseline does not fit the data, the data has no target, a field or
    column is missing, or no rows can calibrate intervals; and DataError for invalid data.
    """
    assert config.baseline is not None
    data, policy = _data_of(config.model, config.baseline, store)
    if data.kind == TABLE:
        found = _of_table(config, data, store)
    else:
        if config.fold is not None:
            raise meaningless("fold", f"{data.ref}, which is not a table")
        found = _of_rows(config, data, policy, store)
    columns = [{PREDICTED: each.new} for each in found.values()]
    if config.interval is not None:
        for target, each, values in zip(found, found.values(), columns, strict=True):
            ends = _interval(config, target, each, data, store)
            values |= dict(zip(ENDS, ends, strict=True))
    targets, names = list(found), list(columns[0])
    yield from with_predictions(str(config.file), targets, names, _rows(targets, columns))


def command_for(baseline: str, data: Sequence[Artifact], file: str) -> list[str]:
    """Return the command that predicts the rows of a file with a baseline, fitted to the first
    artifact of ``data`` that it fits, as a list with one item; empty if it fits none."""
    for artifact in data:
        if baseline in _names(artifact):
            ref = f"{artifact.kind}/{artifact.ref}"
            words = ["--baseline", baseline, ref, file, "--interval", "0.9"]
            return [shlex.join(["numtok", "predict", *words])]
    return []


def _rows(targets: Sequence[str], columns: Sequence[dict[str, Floats]]) -> Iterator[RowNumbers]:
    lists = [{name: values.tolist() for name, values in each.items()} for each in columns]
    for row in range(len(lists[0][PREDICTED])):
        yield {
            target: {name: values[row] for name, values in each.items()}
            for target, each in zip(targets, lists, strict=True)
        }


def _interval(
    config: Config, target: str, found: BaselinePredictions, data: Artifact, store: Store
) -> Ends:
    """Return intervals for the new rows, calibrated on the calibration rows."""
    assert config.interval is not None
    new, calibration, truth = found.usable
    units = np.arange(len(truth))
    known = Forecasts(point=calibration, quantiles=None, strata=_stratum(target, len(truth)))
    calibrated = calibrate(truth, known, units, config.interval)
    for note in coverage_notes(calibrated, len(units), data):
        store.note(note)
    return calibrated.intervals(
        Forecasts(point=new, quantiles=None, strata=_stratum(target, len(new)))
    )


def _stratum(target: str, rows: int) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    return np.full(rows, target, object)


def _calibration_split(
    config: Config, data: Artifact, names: Collection[str], store: Store
) -> str | None:
    """Return the split that calibrates intervals; None if no level is set."""
    if config.interval is None:
        return None
    split = next((name for name in (CALIBRATION, VALIDATION) if name in names), None)
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
    of_rows = baseline in (*TEXT_BASELINES, *_OF_RECORDS)
    try:
        data = store.resolve(ref, kinds={DATA, ENCODED} if of_rows else {TABLE})
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
    if data.kind == TABLE and read_text_features(data.path) is not None:
        raise UsageError(
            f"{data.ref} has hidden states of a pretrained model, which baselines do not read. Use "
            "the data that it was made from"
        )
    if baseline not in (names := _names(data)):
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
        tuned = [TUNED] if trees else []
        return [MEAN, MEDIAN, *([*fits(), *tuned] if read_table_file(data.path).features else [])]
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
    values = Inputs.fit(columns.take(learnt_rows(table, fold, None, 0))).values
    new = read_features(str(config.file), table.file.features, values, data.ref)
    calibration = np.empty(0, np.int64) if split is None else table.split(split, fold)
    repeated = columns.take(calibration)
    queried = Features(
        np.concatenate([repeated.numbers, new.numbers]),
        [pa.concat_arrays(pair) for pair in zip(repeated.categories, new.categories, strict=True)],
    )
    [(_, predicted)] = rivals_of_fold(table, fold, queried, [str(config.baseline)])
    first = len(calibration)
    found = BaselinePredictions(predicted[first:], predicted[:first], table.target[calibration])
    return {table.file.target: found}


def _of_rows(
    config: Config, data: Artifact, policy: NumeralPolicy, store: Store
) -> dict[str, BaselinePredictions]:
    """Return the predictions of a baseline on rendered rows, for each target."""
    baseline, targets = str(config.baseline), TEMPLATE.read(data.path).targets
    records = read_records(str(config.file))
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
        reasons = " ".join(found.notes) or f"its rows have nothing to predict {target!r} from."
        raise UsageError(
            f"baseline {config.baseline!r} cannot be fitted to {config.model}: {reasons} Use "
            "another baseline"
        )
    calibration = len(values) - new
    truth = queried.values[queried.queried[:calibration]]
    return BaselinePredictions(values[calibration:], values[:calibration], truth)


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
