"""eval: evaluates a model on a split of data and writes a report.

Predictions are numbers in texts (``evaluation.numbers``) or tables (``evaluation.tables``), labels
(``evaluation.labels``), or complete answers (``evaluation.answers``). Every metric is computed with
its bootstrap interval, overall, per target and per group, and compared with baselines. The report
contains the predictions, so that ``compare`` can pair them.
"""

import time
from functools import partial

from numtok.declaration import CheckApplies, command_line, no_options
from numtok.evaluation.devices import devices
from numtok.evaluation.evaluation import Subject, report_of
from numtok.evaluation.report_files import publish, write_predictions
from numtok.evaluation.resolved import ResolvedEvaluation, resolve_table, resolve_texts
from numtok.evaluation.scoring import Progress
from numtok.reports import REPORT
from numtok.settings.eval import Config as Config
from numtok.store.artifact import ENCODED, MODEL, TABLE, Artifact, MadeArtifact
from numtok.store.store import Store
from numtok.training.model_json import TableModelFile, read_model_file


def run(
    config: Config,
    store: Store,
    progress: Progress,
    check: CheckApplies = no_options,
) -> MadeArtifact:
    """Evaluate a model, or return the existing report.

    The function ``check`` may reject options that do not apply to text models, or to table models.
    Raises UsageError (including when model and data do not match), DataError, StoreError, and
    TrainingFailed (out of memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    file = read_model_file(model)
    of, kind = ("tables", TABLE) if isinstance(file, TableModelFile) else ("texts", ENCODED)
    check(of, f"a model of {of}")
    data = store.resolve(config.data or model.made_from(ENCODED, TABLE).where, kinds={kind})
    resolved: ResolvedEvaluation
    if isinstance(file, TableModelFile):
        resolved = resolve_table(config, model, file, data)
    else:
        resolved = resolve_texts(config, model, file, data)
    name = config.name or f"{model.name}-{config.split}"
    parents = [model.as_parent(), data.as_parent()]
    command = ["numtok", "eval", *command_line(resolved.config, resolved.kind)]
    with store.draft(
        REPORT, name, resolved.settings, parents=parents, command=command, how=config
    ) as draft:
        if isinstance(draft, Artifact):
            return MadeArtifact(draft, made=False)
        with devices(config.devices, resolved.device) as pool:
            evaluator = resolved.open(store.find, pool)
            started = time.monotonic()
            table = evaluator.predictions(partial(progress, "predicting"), store.note)
            timing = {"eval_seconds": time.monotonic() - started, "devices": pool.count}
        write_predictions(draft, table)
        subject = Subject(model, data, config.split)
        report = report_of(subject, evaluator, table, resolved.metrics, progress)
        return MadeArtifact(publish(draft, model, report, timing), made=True)
