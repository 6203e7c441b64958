"""eval: evaluates a model on a split of data and writes a report.

Predictions are numbers in texts (``evaluation.numbers``) or tables (``evaluation.tables``), labels
(``evaluation.labels``), or complete answers (``evaluation.answers``). Every metric is computed with
its bootstrap interval, overall, per target and per group, and compared with baselines. The report
contains the predictions, so that ``compare`` can pair them. Prediction intervals are calibrated on
the report of another split, which is made first (``evaluation.reporting``).
"""

from numtok.evaluation.reporting import made_report
from numtok.evaluation.resolved import resolve
from numtok.evaluation.scoring import Progress
from numtok.setting_scope import CheckApplies, no_options
from numtok.settings.eval import Config as Config
from numtok.store.artifact import ENCODED, MODEL, TABLE, MadeArtifact
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
    resolved = resolve(config, model, file, data)
    return made_report(resolved, store, progress)
