"""Predictions of text models for the records of a file, whose rows were rendered for training."""

from collections.abc import Iterator, Sequence

from numtok.data.records.reader import Records, read_records
from numtok.data.records.template import RowTemplate
from numtok.encoding.holes import HOLE
from numtok.evaluation.devices import Note
from numtok.evaluation.predicted_rows import COLUMNS, PREDICTED, RowNumbers, with_predictions
from numtok.evaluation.text_rows import Query, RowPrediction, predict_texts
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.model_json import TextModelFile


def predict_records(
    config: Config, model: Artifact, file: TextModelFile, template: RowTemplate, note: Note
) -> Iterator[bytes]:
    """Yield the lines of the output (:func:`with_predictions`).

    Raises UsageError if a field of the template is missing or a name is reserved, and the same
    errors as :func:`predict_texts`.
    """
    path = str(config.file)
    records = read_records(path)
    queries = record_queries(records, template)
    predictions = (
        _of_targets(prediction, template.targets)
        for _, prediction in predict_texts(config, model, file, queries, note)
    )
    yield from with_predictions(path, template.targets, predictions)


def record_queries(records: Records, template: RowTemplate) -> Iterator[Query]:
    """Yield the text of each record, in which its targets are the numbers to predict.

    Raises UsageError if a field of the template is missing.
    """
    columns = [prompt.to_pylist() for prompt in template.prompts(records)]
    for row, pieces in enumerate(zip(*columns, strict=True)):
        text = HOLE.join([*pieces, ""])
        yield Query(records.where(row), b"", text, pieces=[*pieces, ""])


def _of_targets(prediction: RowPrediction, targets: Sequence[str]) -> RowNumbers:
    numbers = prediction.numbers or []
    return {
        target: {PREDICTED: number["value"]} | {name: number.get(name) for name in COLUMNS[1:]}
        for target, number in zip(targets, numbers, strict=True)
    }
