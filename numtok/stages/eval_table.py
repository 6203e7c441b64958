"""Eval of a model of tables and a split of a table -> a report, as ``stages.eval`` makes of texts.

The report and its predictions have the same form, so ``compare`` takes both.
"""

import time
from dataclasses import asdict, dataclass
from functools import partial

from numtok.data.tables.rows import read_table_of
from numtok.errors import DataError, UsageError
from numtok.evaluation.report_files import publish, write_predictions
from numtok.evaluation.scoring import Progress
from numtok.evaluation.tables import TableEvaluation, TableOptions
from numtok.metrics.base import METRICS
from numtok.models.distributions.sampling import Sampling
from numtok.records import MODEL, TABLE
from numtok.registry import settings_of
from numtok.reports import REPORT
from numtok.store.artifact import Artifact, check_name
from numtok.store.store import Store
from numtok.training.regressor_files import read_regressor
from numtok.training.trainer import device_of

REVISION = 5
#: The metrics of a report; those of ``_IN_GROUPS`` also for each fold and for baselines.
_METRICS = (
    "r2", "mse", "mae", "median-relative-error", "kendall-tau", "relative-mse", "nll",
    "in-support-nll", "range-nll", "tailed-nll", "interval-nll", "token-nll", "crps", "coverage",
    "coverage,level=0.5", "pit-distance", "outside",
)  # fmt: skip
_IN_GROUPS = (
    "r2", "mse", "kendall-tau", "relative-mse", "in-support-nll", "tailed-nll", "token-nll", "crps",
)  # fmt: skip
_BASELINES = ("r2", "mse", "mae", "kendall-tau", "relative-mse")


@dataclass(frozen=True)
class Config:
    """What ``numtok eval`` was asked for, of a model of tables."""

    model: str
    table: str
    split: str = "test"
    options: TableOptions = TableOptions()  # noqa: RUF009  # frozen
    rows: int | None = None
    metrics: tuple[str, ...] = ()
    device: str = "auto"
    name: str | None = None
    restart: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"--rows {self.rows} is not possible; at least 1")
        check_name(self.name)


@dataclass(frozen=True)
class Result:
    """The report, and whether this call made it."""

    artifact: Artifact
    made: bool


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Evaluate a model, or find the report that is there.

    Raises UsageError (also where model and table do not belong together), DataError, StoreError.
    """
    model = store.resolve(config.model, kinds={MODEL})
    source = store.resolve(config.table, kinds={TABLE})
    device = device_of(config.device)
    more = [METRICS.build(spec) for spec in config.metrics]
    metrics = [*map(METRICS.build, _METRICS), *more]
    settings = {
        "stage": "eval-table",
        "revision": REVISION,
        "split": config.split,
        "options": asdict(config.options),
        "rows": config.rows,
        "metrics": [settings_of(metric) for metric in metrics],
        "device": device.type,
    }
    with store.draft(
        REPORT,
        config.name or f"{model.name}-{config.split}",
        settings,
        [model.as_parent(), source.as_parent()],
        _command(config, model, source, device.type),
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return Result(draft, made=False)
        evaluation = TableEvaluation(
            read_regressor(model, device),
            source,
            read_table_of(source),
            config.split,
            config.options,
            metrics,
            list(map(METRICS.build, _IN_GROUPS)),
            more,
            list(map(METRICS.build, _BASELINES)),
            config.rows,
        )
        started = time.monotonic()
        predictions = evaluation.predictions(partial(progress, "predicting"))
        seconds = time.monotonic() - started
        if not predictions.num_rows:
            raise DataError(
                f"{source.ref} has no row in split {config.split!r}; make the table with one"
            )
        write_predictions(draft, predictions)
        report = evaluation.report(predictions, progress)
        return Result(publish(draft, model, report, seconds), made=True)


def _command(config: Config, model: Artifact, source: Artifact, device: str) -> list[str]:
    options = config.options
    words = ["numtok", "eval", model.ref, source.ref, "--split", config.split]
    words += ["--point", options.point]
    if options.draws:
        words += ["--draws", str(options.draws)]
    for key, value in asdict(options.sampling).items():
        if value != getattr(Sampling(), key):
            words += [f"--{key.replace('_', '-')}", repr(value)]
    words += ["--rows", str(config.rows)] if config.rows is not None else []
    for metric in config.metrics:
        words += ["--metric", metric]
    words += ["--device", device]
    return words + (["--name", config.name] if config.name else [])
