"""Predictions of a model of tables for a split, and the report of them.

Each fold of the model predicts the rows of the split in that fold, and all of
them are scored together; where there are several, each fold is a group as well.
Where a fold has no split ``validation``, that name means the rows of the train
split that were held back while the model was fitted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.data.tables.rows import VALIDATION, learnt_rows
from numtok.data.tables.table import Table
from numtok.errors import DataError
from numtok.evaluation.baselines import boosted, linear
from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import Progress, baseline_figures, number_baselines, score
from numtok.evaluation.table_notes import often_repeated, ruled_by_tails
from numtok.evaluation.table_options import TableOptions
from numtok.metrics.base import METRICS, Metric
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.tailed import Tailed
from numtok.models.heads.base import HEADS, Head
from numtok.records import FOLD, GROUP
from numtok.registry import spec_of
from numtok.reports import QUANTILES, Costs, Report, predictions_schema, quantile_column
from numtok.seeds import generator
from numtok.store.artifact import Artifact
from numtok.training.features import Features
from numtok.training.regressor_files import LoadedRegressor
from numtok.training.table_learner import held_back
from numtok.training.trained_table import FittedTable

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
AT_ONCE = 512  # rows whose distributions are held at a time
_FITTED_ON = 200_000  # rows that baselines are fitted on, at most


@cache
def table_metrics() -> list[Metric]:
    """The metrics of every report of a table."""
    return [METRICS.build(spec) for spec in _METRICS]


class _TablePart(NamedTuple):
    """The rows of the split in one fold."""

    fold: int
    rows: NDArray[np.int64]
    fitted: FittedTable


@dataclass(frozen=True)
class TableEvaluation:
    """One model on one split of a table, in memory."""

    loaded: LoadedRegressor
    source: Artifact
    table: Table
    split: str
    options: TableOptions
    more: Sequence[Metric]  # metrics that were asked for
    most: int | None  # rows at most

    def parts(self) -> Iterator[_TablePart]:
        """Fold by fold."""
        left = len(self.table) * len(self.loaded.fitted) if self.most is None else self.most
        for fold, fitted in self.loaded.fitted.items():
            rows = self._rows(fold)[:left]
            left -= len(rows)
            if len(rows):
                yield _TablePart(fold, rows, fitted)

    def _rows(self, fold: int) -> NDArray[np.int64]:
        if not self._is_held_back(fold):
            return self.table.split(self.split, fold)
        rows = self._learnt_rows(fold)
        trained = self.loaded.file.trained
        return rows[held_back(len(rows), trained.options.validation, trained.seed)[1]]

    def _is_held_back(self, fold: int) -> bool:
        """Whether the split of a fold is what was held back: only in the table of the fitting."""
        if self.split != VALIDATION or VALIDATION in self.table.splits(fold):
            return False
        return self._is_learnt

    @property
    def _is_learnt(self) -> bool:
        """Whether this is the table that the model was fitted to."""
        parents = self.loaded.artifact.manifest.parents
        return any(one.digest == self.source.manifest.content for one in parents)

    def _learnt_rows(self, fold: int) -> NDArray[np.int64]:
        """The rows of the table that a model of the same settings learns from in a fold."""
        trained = self.loaded.file.trained
        return learnt_rows(self.table, fold, trained.options.rows, trained.seed)

    def __post_init__(self) -> None:
        """Raises DataError unless the table has the columns that the model learnt."""
        file, ours = self.table.file, self.loaded.file.settings
        if file.target != ours.target or file.features != ours.features:
            wanted, there = (
                ", ".join([*(f"{one.name} ({one.kind})" for one in of.features), of.target])
                for of in (ours, file)
            )
            raise DataError(
                f"{self.source.ref} has the columns {there}; {self.loaded.artifact.ref} was fitted "
                f"to {wanted}; give a table with the same ones, in that order"
            )

    def predictions(
        self, progress: Callable[[int, int], None], note: Callable[[str], None]
    ) -> "pa.Table":
        """The rows of predictions.parquet; DataError where there are none."""
        parts = list(self.parts())
        if not parts:
            raise DataError(
                f"{self.source.ref} has no row in split {self.split!r}; make the table with one"
            )
        total, done = sum(len(part.rows) for part in parts), 0
        made: list[dict[str, Any]] = []
        for part in parts:
            for first in range(0, len(part.rows), AT_ONCE):
                rows = part.rows[first : first + AT_ONCE]
                made.append(self._predicted(part, rows, first))
                done += len(rows)
                progress(done, total)
        groups = [FOLD] if len(parts) > 1 else []
        schema = predictions_schema(groups)
        columns = {name: np.concatenate([one[name] for one in made]) for name in made[0]}
        n = len(columns["truth"])
        return pa.table(
            [_column(columns.get(name), schema.field(name).type, n) for name in schema.names],
            schema=schema,
        )

    def _predicted(self, part: _TablePart, rows: NDArray[np.int64], first: int) -> dict[str, Any]:
        fitted, truth = part.fitted, self.table.target[rows]
        inputs = fitted.inputs.of(Features(self.table.numbers, self.table.categories).take(rows))
        parameters = fitted.parameters(inputs)
        exact = fitted.model.reader.predictive(parameters, fitted.calibration, fitted.scaling)
        used = self.options.used(exact, self.loaded.artifact.ref, part.fold, first)
        values = self.options.values(used, len(rows), fitted.learnt_from)
        valid = np.isfinite(values)
        quantiles = self.options.quantiles(used)
        return {
            "id": rows.astype(str).astype(object),
            "target": np.full(len(rows), self.table.file.target, object),
            "position": np.full(len(rows), part.fold),
            "truth_literal": _literals(truth),
            "truth": truth,
            "prediction_literal": _literals(np.where(valid, values, np.nan)),
            "prediction": np.where(valid, values, np.nan),
            "valid": valid,
            "crps": used.crps(truth),
            "pit": used.cdf(truth),
            "outside": fitted.learnt_from.outside(truth),
            "log_range": np.full(len(rows), fitted.learnt_from.log_range),
            GROUP + FOLD: np.full(len(rows), str(part.fold), object),
            **{quantile_column(level): quantiles[:, i] for i, level in enumerate(QUANTILES)},
            **self._likelihoods(fitted, exact, parameters, truth),
        }

    def _likelihoods(
        self, fitted: FittedTable, exact: Predictive, parameters: Tensor, truth: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """Always those of the exact distribution, whatever is drawn; NaN where there is none."""
        learnt_from, model = fitted.learnt_from, fitted.model
        tailed = exact
        if model.head.bounded and learnt_from.low < learnt_from.high:
            low, high = fitted.scaling.inverse(np.array([0.0, 1.0]))
            tailed = Tailed(exact, low, high, 1 / (learnt_from.rows + 1))
        token_nll = np.full(len(truth), np.nan)
        learnt = model.head.targets(fitted.scaling.forward(truth))
        with torch.no_grad():
            tokens = torch.from_numpy(learnt).to(parameters.device)
            losses = model.reader.token_losses(parameters, tokens)
        if losses is not None:
            token_nll = losses.double().cpu().numpy()
        return {
            "log_density": exact.log_density(truth),
            "log_density_tailed": tailed.log_density(truth),
            "log_interval": tailed.log_recorded(truth, learnt_from.resolution / 2),
            "token_nll": token_nll,
        }

    # --- the report -------------------------------------------------------------------------------

    def report(self, predictions: "pa.Table", progress: Progress) -> Report:
        """Every figure of the report, from the rows of predictions.parquet."""
        loaded, trained = self.loaded, self.loaded.file.trained
        rows = np.array([fold.learnt_from.rows for fold in trained.folds], np.float64)
        means = np.array([fold.learnt_from.mean for fold in trained.folds])
        train_mean = float(np.average(means, weights=rows))
        scores = score(
            predictions,
            table_metrics(),
            list(map(METRICS.build, _IN_GROUPS)),
            self.more,
            TrainMeans(train_mean),
            loaded.artifact.ref,
            progress,
        )
        baselines, _ = baseline_figures(
            list(map(METRICS.build, _BASELINES)),
            scores,
            number_baselines(scores, self._baselines()),
        )
        parameters, _ = next(iter(loaded.fitted.values())).model.parameter_counts()
        head = HEADS.from_settings(loaded.file.settings.head)
        width = next(iter(loaded.fitted.values())).model.reader.tokens_per_number
        return Report(
            model=loaded.artifact.ref,
            name=loaded.artifact.name,
            data=self.source.ref,
            split=self.split,
            scheme=spec_of(head),
            configuration=trained.configuration,
            seed=trained.seed,
            decoding=self._decoding(head),
            rows=predictions.num_rows,
            numbers=predictions.num_rows,
            invalid=float(1 - scores.answers.valid.mean()),
            off_grammar=None,
            train_mean=train_mean,
            metrics=scores.metrics,
            valid_metrics=scores.valid_metrics,
            by_target=scores.by_target,
            groups=scores.groups,
            baselines=baselines,
            costs=Costs(
                sum(fold.fit.samples for fold in trained.folds),
                0,
                sum(fold.fit.steps for fold in trained.folds),
                sum(fold.flops for fold in trained.folds),
                parameters,
                0,
                float(width),
            ),
            notes=list(self._notes(predictions)),
        )

    def _decoding(self, head: Head) -> dict[str, Any]:
        options = self.options
        found: dict[str, Any] = {"point": options.point, "distribution": head.describe()}
        if options.draws:
            found |= {"draws": options.draws, **asdict(options.sampling)}
        return found

    def _baselines(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Mean, least squares and boosted trees, fitted to what each fold learnt from.

        None for rows that were held back from it: they would have learnt them. For another table
        than that of the model the mean alone: its rows are not those that the model learnt.
        """
        fits = {"linear": linear} | ({"boosted": boosted} if find_spec("sklearn") else {})
        parts = list(self.parts())
        if any(self._is_held_back(part.fold) for part in parts):
            return
        yield (
            "mean",
            np.concatenate(
                [np.full(len(part.rows), part.fitted.learnt_from.mean) for part in parts]
            ),
        )
        if not self._is_learnt:
            return
        columns = Features(self.table.numbers, self.table.categories)
        for name, of in fits.items():
            made = []
            for part in parts:
                rows = self._learnt_rows(part.fold)
                if len(rows) > _FITTED_ON:
                    random = generator(0, "floors", part.fold)
                    rows = np.sort(random.permutation(rows)[:_FITTED_ON])
                learnt, asked = (
                    part.fitted.inputs.of(columns.take(some)).astype(np.float64)
                    for some in (rows, part.rows)
                )
                made.append(of(learnt, self.table.target[rows], asked))
            yield name, np.concatenate(made)

    def _notes(self, predictions: "pa.Table") -> Iterator[str]:
        yield from self.table.file.notes
        yield from often_repeated(self.table.file.target, predictions.column("truth").to_numpy())
        if any(map(self._is_held_back, self.loaded.fitted)):
            yield (
                "These rows were held back from the train split, to know when to stop: good to "
                "choose by, too good to report."
            )
        if not self._is_learnt:
            yield "Of another table than that of the model; baselines that learn rows are left out."
        bounded = next(iter(self.loaded.fitted.values())).model.head.bounded
        log_density = predictions.column("log_density").to_numpy()
        if not bounded and (beyond := int(np.isneginf(log_density).sum())):
            yield (
                f"{beyond:,} of {predictions.num_rows:,} targets are beyond what this head says, "
                "so that likelihoods are infinite; give one that reaches further."
            )
        yield from ruled_by_tails(predictions)
        outside = int(pc.sum(predictions.column("outside")).as_py() or 0)
        if outside:
            told = f"{outside:,} of {predictions.num_rows:,} targets lie outside the range of the "
            told += "train split"
            yield told + (
                ": this head gives them no probability, so `nll` is infinite; in-support-nll "
                "leaves them out, tailed-nll has stated tails."
                if bounded
                else "."
            )


def _literals(values: NDArray[np.float64]) -> NDArray[np.object_]:
    """Python's ``repr`` of each; None for NaN."""
    told = [None if np.isnan(value) else repr(value) for value in values.tolist()]
    return np.array(told, object)


def _column(values: NDArray[Any] | None, type: "pa.DataType", n: int) -> "pa.Array[Any]":
    """A column of predictions; NaN, None, or no column at all, is null."""
    if values is None:
        return pa.nulls(n, type)
    if values.dtype == np.float64:
        return pa.array(values, mask=np.isnan(values)).cast(type)
    return pa.array(values.tolist() if values.dtype == object else values).cast(type)
