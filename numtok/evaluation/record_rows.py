"""Predictions for the records of a file, by models that were trained on rendered records."""

from collections.abc import Callable, Iterator, Sequence

from numtok.data.records.reader import Records, read_records
from numtok.data.records.row_template import RowTemplate
from numtok.data.records.template import prompts_of
from numtok.encoding.holes import HOLE
from numtok.evaluation.conformal import Calibrated
from numtok.evaluation.intervals import ENDS
from numtok.evaluation.predicted_rows import COLUMNS, PREDICTED, RowNumbers, with_predictions
from numtok.evaluation.text_rows import Query, RowPrediction


def predict_records(
    path: str,
    template: RowTemplate,
    predict: Callable[[Iterator[Query]], Iterator[tuple[Query, RowPrediction]]],
    *,
    calibrated: Calibrated | None,
) -> Iterator[bytes]:
    """Yield the lines of the output (:func:`with_predictions`), with the ends of prediction
    intervals if ``calibrated`` is given.

    ``predict`` predicts the rendered rows. Raises UsageError if a field of the template is missing
    or a name is reserved.
    """
    rows = predict(record_queries(read_records(path), template))
    predictions = (_of_targets(prediction, template.targets) for _, prediction in rows)
    columns = COLUMNS if calibrated is None else (*COLUMNS, *ENDS)
    yield from with_predictions(path, template.targets, columns, predictions)


def record_queries(records: Records, template: RowTemplate) -> Iterator[Query]:
    """Yield the text of each record, in which its targets are the numbers to predict.

    Raises UsageError if a field of the template is missing.
    """
    columns = [prompt.to_pylist() for prompt in prompts_of(template, records)]
    for row, pieces in enumerate(zip(*columns, strict=True)):
        text = HOLE.join([*pieces, ""])
        where = records.where(row)
        yield Query(where, b"", text, pieces=[*pieces, ""], targets=template.targets)


def _of_targets(prediction: RowPrediction, targets: Sequence[str]) -> RowNumbers:
    numbers = prediction.numbers or []
    return {
        target: {PREDICTED: number["value"]}
        | {name: number.get(name) for name in COLUMNS[1:]}
        | dict(zip(ENDS, number.get("interval", ()), strict=False))
        for target, number in zip(targets, numbers, strict=True)
    }
