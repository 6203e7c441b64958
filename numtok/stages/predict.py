"""Predict: a model, and rows without the truth -> the rows with what the model says of them.

Where ``eval`` compares with true numbers, there are none here. So nothing is measured and no
artifact is made: rows come in, and go out with what was said of them.
"""

from collections.abc import Generator

from numtok.declaration import CheckApplies, no_options
from numtok.evaluation.table_rows import outgoing_record, predict_table
from numtok.evaluation.text_rows import Query, outgoing, predict_texts, read_rows
from numtok.settings.predict import Config as Config
from numtok.store.artifact import MODEL
from numtok.store.store import Store
from numtok.training.model_json import TableModelFile, read_model_file


def run(config: Config, store: Store, check: CheckApplies = no_options) -> Generator[bytes]:
    """The lines that go out: of texts each row as JSON, as it was, with a field ``predicted``; of
    tables a CSV with a header and columns more. ``check`` may refuse options, as in ``eval``.

    Raises UsageError, also for what the model cannot be asked, DataError, StoreError,
    TrainingFailed (no memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    file = read_model_file(model)
    of = "tables" if isinstance(file, TableModelFile) else "texts"
    check(of, f"a model of {of}")
    if isinstance(file, TableModelFile):
        yield from map(outgoing_record, predict_table(config, model, file, store.note))
        return
    texts = map(Query.of_text, config.text)
    rows = texts if config.text else read_rows(str(config.file), config.text_field)
    for row, said in predict_texts(config, model, file, rows, store.note):
        yield outgoing(row, said)
