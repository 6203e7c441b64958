"""predict: adds a model's predictions to rows that have no true values.

Unlike ``eval``, this stage computes no metrics and makes no artifact. The exception is the report
that calibrates prediction intervals, which is made if it does not exist yet.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial

from numtok.data.reading.split_rule import TRAIN
from numtok.data.records.reader import has_fields
from numtok.data.tables.file import FORMATS
from numtok.data.tables.text_features import read_text_features
from numtok.encoding.stored_codec import read_codec
from numtok.errors import UsageError, meaningless
from numtok.evaluation.conformal import Calibrated
from numtok.evaluation.devices import Note
from numtok.evaluation.feature_rows import FeaturePredictor, FeatureQuery, predict_features
from numtok.evaluation.record_rows import predict_records
from numtok.evaluation.reporting import calibration_report, training_data
from numtok.evaluation.resolved import resolve
from numtok.evaluation.table_rows import predict_table
from numtok.evaluation.text_rows import (
    Query,
    RowPrediction,
    TextPredictor,
    outgoing,
    predict_texts,
    read_rows,
)
from numtok.row import TEXT
from numtok.setting_scope import CheckApplies, no_options, settings_check
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.predict import Config as Config
from numtok.store.artifact import MODEL, Artifact
from numtok.store.store import Store
from numtok.training.device import device_of
from numtok.training.model_json import TableModelFile, TextModelFile, read_model_file


def run(config: Config, store: Store, check: CheckApplies = no_options) -> Generator[bytes]:
    """Yield the lines of the output: the rows with their predictions.

    For text models, each line is an input row as JSON with an added field ``predicted``. The same
    holds for table models whose features come from texts. For other table models, and for CSV or
    Parquet files whose rows are rendered as texts, the lines form a CSV file with a header and
    additional columns. The function ``check`` may reject options that do not apply to the kind of
    model.

    Raises UsageError (including for rows that the model cannot predict), DataError, StoreError, and
    TrainingFailed (out of memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    file = read_model_file(model)
    if isinstance(file, TableModelFile):
        recipe = read_text_features(model)
        if recipe is None or (recipe.template is None and str(config.file).endswith(FORMATS)):
            check("tables", "a model of tables")
            calibrated = _calibrated(config, model, file, store)
            yield from predict_table(config, model, file, store.note, calibrated=calibrated)
            return
        template = recipe.template
    else:
        check("texts", "a model of texts")
        template = read_codec(model).template
    # Else the rows of the file are texts.
    of_records = template and config.file and has_fields(config.file, template.fields)
    calibrated = _calibrated(config, model, file, store)  # after the checks: it may take minutes
    predict = partial(_predictions, config, model, file, store=store, calibrated=calibrated)
    if template is not None and of_records:
        yield from predict_records(str(config.file), template, predict, calibrated=calibrated)
        return
    for row, predictions in predict(None):
        yield outgoing(row, predictions)


def text_predictor(
    config: Config, model: Artifact, store: Store
) -> Callable[[Sequence[Query], Note], list[RowPrediction]]:
    """Load a model that predicts from texts, and return the function that predicts rows in memory.

    Raises UsageError for a table model whose features do not come from texts, and for options that
    do not apply; StoreError; and DataError for data that cannot calibrate intervals.
    """
    file, recipe = read_model_file(model), read_text_features(model)
    if isinstance(file, TableModelFile):
        if recipe is None:
            raise UsageError(
                f"{model.ref} is a table model and does not read texts. Use "
                "numtok.predict(MODEL, FILE)"
            )
        calibrated = _calibrated(config, model, file, store)
        features = FeaturePredictor.of(config, model, file, recipe, calibrated)

        def predict(rows: Sequence[Query], note: Note) -> list[RowPrediction]:
            return features.predict([FeatureQuery.of(row, recipe) for row in rows], note).rows

        return predict
    settings_check(config)("texts", "a model of texts")
    calibrated = _calibrated(config, model, file, store)
    device = device_of(config.device)
    predictor = TextPredictor.of(
        config, model, file, device, find=store.find, calibrated=calibrated
    )
    return predictor.predict


def _predictions(
    config: Config,
    model: Artifact,
    file: TextModelFile | TableModelFile,
    rows: Iterable[Query] | None,
    *,
    store: Store,
    calibrated: Calibrated | None,
) -> Iterator[tuple[Query, RowPrediction]]:
    """Predict rows, or those that the settings name, from their texts."""
    if isinstance(file, TableModelFile):
        recipe = read_text_features(model)
        assert recipe is not None
        return predict_features(
            config, model, file, recipe, rows, note=store.note, calibrated=calibrated
        )
    if rows is None:
        texts = map(Query.of_text, config.text)
        rows = texts if config.text else read_rows(str(config.file), config.text_field or TEXT)
    return predict_texts(
        config, model, file, rows, store.note, find=store.find, calibrated=calibrated
    )


def _calibrated(
    config: Config, model: Artifact, file: TextModelFile | TableModelFile, store: Store
) -> Calibrated | None:
    """Calibrate intervals at ``config.interval`` on the data that the model was trained on; None if
    no level is set."""
    if config.interval is None:
        return None
    data = training_data(model, None, store.find)
    names = {setting.name for setting in fields(Config)} & {
        setting.name for setting in fields(EvalConfig)
    }
    shared = {name: getattr(config, name) for name in names}  # options of decoding
    ask = EvalConfig(**shared | {"data": data.ref, "split": TRAIN})
    resolved = resolve(ask, model, file, data)
    if not resolved.predicts_numbers:
        raise meaningless("interval", f"{model.ref}, which does not predict numbers")
    report = calibration_report(resolved, store, lambda *_: None)
    for note in report.notes(config.interval):
        store.note(note)
    return report.of_model(config.interval)
