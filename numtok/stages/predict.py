"""predict: adds a model's predictions to rows that have no true values.

Unlike ``eval``, this stage computes no metrics and makes no artifact.
"""

from collections.abc import Generator

from numtok.data.tables.file import FORMATS
from numtok.data.tables.text_features import TextFeatures, read_text_features
from numtok.declaration import CheckApplies, no_options
from numtok.evaluation.feature_rows import predict_features
from numtok.evaluation.table_rows import outgoing_record, predict_table
from numtok.evaluation.text_rows import Query, outgoing, predict_texts, read_rows
from numtok.settings.predict import Config as Config
from numtok.store.artifact import MODEL, Artifact
from numtok.store.store import Store
from numtok.training.model_json import TableModelFile, read_model_file


def run(config: Config, store: Store, check: CheckApplies = no_options) -> Generator[bytes]:
    """Yield the lines of the output: the rows with their predictions.

    For text models, each line is an input row as JSON with an added field ``predicted``. The
    same holds for table models whose features come from texts. For other table models, the lines
    form a CSV file with a header and additional columns. The function ``check``
    may reject options that do not apply to the kind of model.

    Raises UsageError (including for rows that the model cannot predict), DataError, StoreError, and
    TrainingFailed (out of memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    file = read_model_file(model)
    if not isinstance(file, TableModelFile):
        check("texts", "a model of texts")
        texts = map(Query.of_text, config.text)
        rows = texts if config.text else read_rows(str(config.file), config.text_field)
        for row, predictions in predict_texts(config, model, file, rows, store.note):
            yield outgoing(row, predictions)
    elif (recipe := features_read(config, model)) is not None:
        for row, predictions in predict_features(config, model, file, recipe, store.note):
            yield outgoing(row, predictions)
    else:
        check("tables", "a model of tables")
        yield from map(outgoing_record, predict_table(config, model, file, store.note))


def features_read(config: Config, model: Artifact) -> TextFeatures | None:
    """Return how a table model's features are computed, if it predicts from texts.

    Returns None if the model or the file has columns.
    """
    if config.file is not None and config.file.endswith(FORMATS):
        return None
    return read_text_features(model.path)
