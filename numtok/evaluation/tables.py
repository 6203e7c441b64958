"""Evaluation of table models.

Each fold has its own model, which predicts the rows of the evaluated split in that fold. All
predictions are scored together; if there are several folds, each is also a group. If a fold has no
split ``validation``, that name refers to the rows of the train split that were held out during
fitting.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.arrays import Floats, Ints
from numtok.data.tables.table import VALIDATION, Table, learnt_rows
from numtok.errors import DataError
from numtok.evaluation.baselines import fits, not_installed
from numtok.evaluation.devices import ONE, Devices, Done, Note
from numtok.evaluation.evaluation import (
    Evaluator,
    ReportMetrics,
    predictions_table,
    quantile_columns,
)
from numtok.evaluation.prediction_table import FOLD, TrainMeans
from numtok.evaluation.raw_numbers import with_tails
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores, number_baselines
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.target_features import fitted_on
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import HEADS, Head, TokenReader
from numtok.models.precision import on_host
from numtok.registry import spec_of
from numtok.reports import Costs, Figures, predictions_schema
from numtok.row import GROUP
from numtok.seeds import seed_of
from numtok.store.artifact import Artifact
from numtok.training.features import Features
from numtok.training.model_files import LoadedRegressor
from numtok.training.trained_table import FittedTable, held_back

_METRICS = (
    "r2", "mse", "mae", "median-relative-error", "kendall-tau", "relative-mse", "nll",
    "in-support-nll", "range-nll", "tailed-nll", "interval-nll", "token-nll", "crps", "coverage",
    "coverage,level=0.5", "pit-distance", "conformal-coverage", "conformal-width", "outside",
)  # fmt: skip
_IN_GROUPS = (
    "r2", "mse", "kendall-tau", "relative-mse", "in-support-nll", "tailed-nll", "token-nll", "crps",
)  # fmt: skip
_BASELINES = (
    "r2", "mse", "mae", "kendall-tau", "relative-mse", "conformal-coverage", "conformal-width",
)  # fmt: skip
AT_ONCE = 512  # rows per block of distributions in memory
_OFTEN = 0.1  # a note is given if at least this fraction of the targets is equal
_RULED = 10  # a note is given if CRPS exceeds the prediction error by this factor


class _TablePart(NamedTuple):
    """Rows of the split in one fold, and the model that predicts them."""

    fold: int
    rows: Ints
    fitted: FittedTable


class _TableBlock(NamedTuple):
    """Rows that are predicted together; ``first`` is the index of the first one in its part."""

    fold: int
    rows: Ints
    first: int


@dataclass(frozen=True, kw_only=True)
class TableEvaluation(Evaluator):
    """Evaluation of a table model on one split of a table."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(_METRICS, _IN_GROUPS, _BASELINES)
    loaded: LoadedRegressor
    source: Artifact
    table: Table
    split: str
    options: TableOptions
    most: int | None  # maximum number of rows
    devices: Devices

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for worker processes, which have one device each."""
        return self.__dict__ | {"devices": ONE}

    def parts(self) -> Iterator[_TablePart]:
        """Yield the rows to predict in each fold, with their model. Folds without such rows are
        skipped.

        If there are more than ``most`` rows in total, a sample of ``most`` rows is chosen by a hash
        of fold and row. In the first fold, it is the hash by which rows of text are chosen.
        """
        split = {fold: self._rows(fold) for fold in self.loaded.fitted}
        keys = {fold: _keys(rows, fold) for fold, rows in split.items()}
        limit: float = float("inf")
        if self.most is not None and self.most < sum(map(len, split.values())):
            limit = np.sort(np.concatenate(list(keys.values())))[self.most]
        for fold, fitted in self.loaded.fitted.items():
            rows = split[fold][keys[fold] < limit]
            if len(rows):
                yield _TablePart(fold, rows, fitted)

    def _rows(self, fold: int) -> Ints:
        if not self._is_held_back(fold):
            return self.table.split(self.split, fold)
        rows = self._training_rows(fold)
        trained = self.loaded.file.trained
        return rows[held_back(len(rows), trained.options.validation, trained.seed)[1]]

    def _is_held_back(self, fold: int) -> bool:
        """Return whether the rows to predict in a fold are the rows that were held out when the
        model was fitted to this table."""
        if self.split != VALIDATION or VALIDATION in self.table.splits(fold):
            return False
        return self._is_training_table

    @property
    def _is_training_table(self) -> bool:
        """True if the model was fitted to this table."""
        parents = self.loaded.artifact.manifest.parents
        return any(parent.digest == self.source.manifest.content for parent in parents)

    def _training_rows(self, fold: int) -> Ints:
        """Return the rows of a fold to which a model with the same settings is fitted."""
        trained = self.loaded.file.trained
        return learnt_rows(self.table, fold, trained.options.rows, trained.seed)

    def __post_init__(self) -> None:
        """Raise DataError unless the table has the columns to which the model was fitted."""
        file, model_columns = self.table.file, self.loaded.file.settings
        if file.target != model_columns.target or file.features != model_columns.features:
            wanted, present = (
                ", ".join(
                    [
                        *(f"{feature.name} ({feature.kind})" for feature in columns.features),
                        columns.target,
                    ]
                )
                for columns in (model_columns, file)
            )
            raise DataError(
                f"{self.source.ref} has the columns {present}, but "
                f"{self.loaded.artifact.ref} needs {wanted}. Use a table with these columns in "
                "this order"
            )

    def predictions(self, progress: Done, note: Note) -> pa.Table:
        """Predict all rows, and return the table that is stored in predictions.parquet. Raises
        DataError if the split has no rows."""
        parts = list(self.parts())
        if not parts:
            raise DataError(
                f"{self.source.ref} has no rows in split {self.split!r}. Create a table with it"
            )
        total, done = sum(len(part.rows) for part in parts), 0
        blocks = (
            _TableBlock(part.fold, part.rows[first : first + AT_ONCE], first)
            for part in parts
            for first in range(0, len(part.rows), AT_ONCE)
        )
        results: list[dict[str, Any]] = []
        for result in self.devices.each(self, TableEvaluation._predicted, blocks, note):
            results.append(result)
            done += len(result["id"])
            progress(done, total)
        columns = {
            name: np.concatenate([result[name] for result in results]) for name in results[0]
        }
        return predictions_table(columns, predictions_schema([FOLD] if len(parts) > 1 else []))

    def _predicted(self, block: _TableBlock, note: Note) -> dict[str, Any]:
        """Return the columns of predictions.parquet for a block of rows."""
        fold, rows, first = block
        fitted, truth = self.loaded.fitted[fold], self.table.target[rows]
        inputs = fitted.inputs.of(Features(self.table.numbers, self.table.categories).take(rows))
        parameters = fitted.parameters(inputs)
        exact = fitted.model.reader.predictive(parameters, fitted.calibration, fitted.scaling)
        used = self.options.distribution(exact, self.loaded.artifact.ref, fold, first)
        values = self.options.values(used, len(rows), fitted.learnt_from)
        valid = np.isfinite(values)
        values = np.where(valid, values, np.nan)
        return {
            "id": rows.astype(str).astype(object),
            "target": np.full(len(rows), self.table.file.target, object),
            "position": np.full(len(rows), fold),
            "truth_literal": _literals(truth),
            "truth": truth,
            "prediction_literal": _literals(values),
            "prediction": values,
            "valid": valid,
            "crps": used.crps(truth),
            "pit": used.cdf(truth),
            "outside": fitted.learnt_from.outside(truth),
            "log_range": np.full(len(rows), fitted.learnt_from.log_range),
            GROUP + FOLD: np.full(len(rows), str(fold), object),
            **quantile_columns(self.options.quantiles(used)),
            **self._likelihoods(fitted, exact, parameters, truth),
        }

    def _likelihoods(
        self, fitted: FittedTable, exact: Predictive, parameters: Tensor, truth: Floats
    ) -> dict[str, Floats]:
        """Return log likelihoods under the exact distribution, even if --num-samples is set; NaN if
        undefined."""
        learnt_from, model = fitted.learnt_from, fitted.model
        tailed = exact
        if model.head.bounded and learnt_from.low < learnt_from.high:
            tailed = with_tails(exact, fitted.scaling, learnt_from.rows)
        token_nll = np.full(len(truth), np.nan)
        if isinstance(model.reader, TokenReader):
            expected = model.head.targets(fitted.scaling.forward(truth))
            with torch.no_grad():
                tokens = torch.from_numpy(expected).to(parameters.device)
                token_nll = on_host(model.reader.token_losses(parameters, tokens))
        return {
            "log_density": exact.log_density(truth),
            "log_density_tailed": tailed.log_density(truth),
            "log_interval": tailed.log_recorded(truth, learnt_from.resolution / 2),
            "token_nll": token_nll,
        }

    # --- the report -------------------------------------------------------------------------------

    @property
    def train_means(self) -> TrainMeans:
        """Mean of the training targets over all folds, weighted by the number of rows in each
        fold."""
        rows = [fold.learnt_from.rows for fold in self.loaded.file.trained.folds]
        means = [fold.learnt_from.mean for fold in self.loaded.file.trained.folds]
        return TrainMeans(float(np.average(means, weights=np.array(rows, np.float64))))

    def facts(self, table: pa.Table, scores: Scores) -> dict[str, Any]:
        """Return the fields of ``reports.Report`` that are specific to tables, keyed by name.

        Samples, steps and FLOPs are summed over the folds.
        """
        loaded, trained = self.loaded, self.loaded.file.trained
        head = HEADS.from_settings(loaded.file.settings.head)
        model = next(iter(loaded.fitted.values())).model
        written = model.reader.tokens_per_number if isinstance(model.reader, TokenReader) else 0
        return {
            "scheme": spec_of(head),
            "configuration": trained.configuration,
            "seed": trained.seed,
            "decoding": self._decoding(head),
            "rows": table.num_rows,
            "numbers": table.num_rows,
            "invalid": float(1 - scores.answers.valid.mean()),
            "costs": Costs(
                samples=sum(fold.fit.samples for fold in trained.folds),
                tokens=0,
                steps=sum(fold.fit.steps for fold in trained.folds),
                flops=sum(fold.flops for fold in trained.folds),
                parameters=model.parameter_counts()[0],
                embedding_parameters=0,
                tokens_per_number=float(written),
            ),
        }

    def _decoding(self, head: Head) -> dict[str, Any]:
        options = self.options
        decoding: dict[str, Any] = {"point": options.point, "distribution": head.describe()}
        if options.draws:
            decoding |= {"draws": options.draws, **asdict(options.sampling)}
        return decoding

    def baselines(self, scores: Scores, progress: Progress) -> Iterator[BaselineAnswers]:
        """Return the predictions of baselines, which are fitted separately in each fold. Held-out
        rows have no baselines."""
        return number_baselines(scores, self._baselines())

    def _baselines(self) -> Iterator[tuple[str, Floats]]:
        """Yield mean, median, least squares and boosted trees, fitted to the training rows of each
        fold.

        Held-out rows have no baselines, because baselines would be fitted to these rows. If the
        table is not the one that the model was fitted to, the only baseline is the mean.
        """
        parts = list(self.parts())
        if any(self._is_held_back(part.fold) for part in parts):
            return
        means = [np.full(len(part.rows), part.fitted.learnt_from.mean) for part in parts]
        yield "mean", np.concatenate(means)
        if not self._is_training_table:
            return
        medians = [
            np.full(len(part.rows), np.median(self.table.target[self._training_rows(part.fold)]))
            for part in parts
        ]
        yield "median", np.concatenate(medians)
        columns = Features(self.table.numbers, self.table.categories)
        for name, fit in fits().items():
            predictions = []
            for part in parts:
                rows = fitted_on(self._training_rows(part.fold), part.fold)
                training, features = (
                    part.fitted.inputs.of(columns.take(indices)).astype(np.float64)
                    for indices in (rows, part.rows)
                )
                predictions.append(fit(training, self.table.target[rows], features))
            yield name, np.concatenate(predictions)

    def notes(self, table: pa.Table, scores: Scores) -> Iterator[str]:
        """Yield the report's notes about held-out rows, repeated targets, and targets outside the
        head's range."""
        yield from scores.notes
        yield from self.table.file.notes
        yield from _often_repeated(self.table.file.target, table.column("truth").to_numpy())
        if any(map(self._is_held_back, self.loaded.fitted)):
            yield (
                "These rows were held out of the train split for early stopping. Use these metrics "
                "to select models only: they are too optimistic to report."
            )
        bounded = next(iter(self.loaded.fitted.values())).model.head.bounded
        log_density = table.column("log_density").to_numpy()
        if not bounded and (beyond := int(np.isneginf(log_density).sum())):
            yield (
                f"{beyond:,} of {table.num_rows:,} targets are outside the range of this head, so "
                "nll is infinite. Use a head with a wider range."
            )
        yield from _ruled_by_tails(table)
        outside = int(pc.sum(table.column("outside")).as_py() or 0)
        if outside:
            remedy = (
                ", where this head's density is 0, so nll is infinite; in-support-nll excludes "
                "them, and tailed-nll adds explicit tails"
            )
            yield (
                f"{outside:,} of {table.num_rows:,} targets are outside the range of the train "
                f"split{remedy if bounded else ''}."
            )

    def baseline_notes(self, scores: Scores, baselines: Mapping[str, Figures]) -> Iterator[str]:
        """Yield the report's notes about missing baselines."""
        yield from not_installed()
        if not self._is_training_table:
            yield (
                "The model was fitted to another table, so baselines that need its training rows "
                "are missing."
            )


def _keys(rows: Ints, fold: int) -> Ints:
    """Return a random key of each row, int64[k]."""
    names = [str(row) if fold == 0 else f"{row}/{fold}" for row in rows.tolist()]
    return np.array([seed_of("sample", name) for name in names], np.int64)


def _literals(values: Floats) -> NDArray[np.object_]:
    """Return Python's ``repr`` of each value; None for NaN."""
    literals = [None if np.isnan(value) else repr(value) for value in values.tolist()]
    return np.array(literals, object)


def _ruled_by_tails(predictions: pa.Table) -> Iterator[str]:
    """Yield a note if a small probability far from the targets dominates CRPS.

    Otherwise, CRPS is at most about as large as the error of the point predictions.
    """
    scored = predictions.filter(pc.is_finite(predictions.column("crps")))
    scored = scored.filter(scored.column("valid"))
    truth, prediction, crps = (
        scored.column(name).to_numpy() for name in ("truth", "prediction", "crps")
    )
    if len(crps) and crps.mean() > _RULED * (error := np.abs(prediction - truth).mean()):
        yield (
            f"crps is {crps.mean():.3g} although the mean absolute error is only {error:.3g}: a "
            "little probability far from the targets dominates it. For decoder heads, "
            "--num-samples N --top-p 0.9 removes it."
        )


def _often_repeated(target: str, truth: Floats) -> Iterator[str]:
    """Yield a note if one value is so frequent that densities are not meaningful."""
    values, counts = np.unique(truth, return_counts=True)
    most = int(counts.argmax())
    if counts[most] >= max(_OFTEN * len(truth), 2):
        yield (
            f"{counts[most] / len(truth):.0%} of the values of {target!r} are {values[most]:g}: a "
            "narrow peak there improves densities (nll, tailed-nll) without limit. Use interval-nll"
            "."
        )
