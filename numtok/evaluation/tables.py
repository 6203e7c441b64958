"""Predictions of a model of tables for a split, and the report of them.

Each fold of the model predicts the rows of the split in that fold, and all of
them are scored together; where there are several, each fold is a group as well.
Where a fold has no split ``validation``, that name means the rows of the train
split that were held back while the model was fitted.
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
from numtok.evaluation.evaluation import ReportMetrics, predictions_table, quantile_columns
from numtok.evaluation.raw_numbers import with_tails
from numtok.evaluation.report_files import FOLD, TrainMeans
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores, number_baselines
from numtok.evaluation.table_options import TableOptions
from numtok.evaluation.target_features import fitted_on
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import HEADS, Head, TokenReader
from numtok.models.precision import on_host
from numtok.registry import spec_of
from numtok.reports import Costs, Figures, predictions_schema
from numtok.row import GROUP
from numtok.seeds import uniforms
from numtok.store.artifact import Artifact
from numtok.training.features import Features
from numtok.training.model_files import LoadedRegressor
from numtok.training.trained_table import FittedTable, held_back

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
_OFTEN = 0.1  # of the targets
_RULED = 10  # times the error of the predictions: a CRPS that says nothing of them


class _TablePart(NamedTuple):
    """The rows of the split in one fold."""

    fold: int
    rows: Ints
    fitted: FittedTable


class _TableBlock(NamedTuple):
    """Rows that are predicted together; the first of them is row ``first`` of its part."""

    fold: int
    rows: Ints
    first: int


@dataclass(frozen=True, kw_only=True)
class TableEvaluation:
    """One model on one split of a table, in memory."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(_METRICS, _IN_GROUPS, _BASELINES)
    loaded: LoadedRegressor
    source: Artifact
    table: Table
    split: str
    options: TableOptions
    most: int | None  # rows at most
    devices: Devices

    def __getstate__(self) -> dict[str, Any]:
        """For other processes, which have one device each."""
        return self.__dict__ | {"devices": ONE}

    def parts(self) -> Iterator[_TablePart]:
        """The rows to predict, fold by fold; ``most`` of them in all, drawn by a hash of fold and
        row. Folds without rows are left out."""
        split = {fold: self._rows(fold) for fold in self.loaded.fitted}
        keys = {fold: uniforms(rows, "sample", fold) for fold, rows in split.items()}
        limit = np.inf
        if self.most is not None and self.most < sum(map(len, split.values())):
            limit = np.sort(np.concatenate(list(keys.values())))[self.most]
        for fold, fitted in self.loaded.fitted.items():
            rows = split[fold][keys[fold] < limit]
            if len(rows):
                yield _TablePart(fold, rows, fitted)

    def _rows(self, fold: int) -> Ints:
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

    def _learnt_rows(self, fold: int) -> Ints:
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

    def predictions(self, progress: Done, note: Note) -> "pa.Table":
        """The rows of predictions.parquet; DataError where there are none."""
        parts = list(self.parts())
        if not parts:
            raise DataError(
                f"{self.source.ref} has no row in split {self.split!r}; make the table with one"
            )
        total, done = sum(len(part.rows) for part in parts), 0
        blocks = (
            _TableBlock(part.fold, part.rows[first : first + AT_ONCE], first)
            for part in parts
            for first in range(0, len(part.rows), AT_ONCE)
        )
        made: list[dict[str, Any]] = []
        for one in self.devices.each(self, TableEvaluation._predicted, blocks, note):
            made.append(one)
            done += len(one["id"])
            progress(done, total)
        columns = {name: np.concatenate([one[name] for one in made]) for name in made[0]}
        return predictions_table(columns, predictions_schema([FOLD] if len(parts) > 1 else []))

    def _predicted(self, block: "_TableBlock", note: Note) -> dict[str, Any]:
        """Return the columns of some rows."""
        fold, rows, first = block
        fitted, truth = self.loaded.fitted[fold], self.table.target[rows]
        inputs = fitted.inputs.of(Features(self.table.numbers, self.table.categories).take(rows))
        parameters = fitted.parameters(inputs)
        exact = fitted.model.reader.predictive(parameters, fitted.calibration, fitted.scaling)
        used = self.options.used(exact, self.loaded.artifact.ref, fold, first)
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
        """Always those of the exact distribution, whatever is drawn; NaN where there is none."""
        learnt_from, model = fitted.learnt_from, fitted.model
        tailed = exact
        if model.head.bounded and learnt_from.low < learnt_from.high:
            tailed = with_tails(exact, fitted.scaling, learnt_from.rows)
        token_nll = np.full(len(truth), np.nan)
        if isinstance(model.reader, TokenReader):
            learnt = model.head.targets(fitted.scaling.forward(truth))
            with torch.no_grad():
                tokens = torch.from_numpy(learnt).to(parameters.device)
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
        """The mean of what the folds learnt from, each weighted by its rows."""
        rows = [fold.learnt_from.rows for fold in self.loaded.file.trained.folds]
        means = [fold.learnt_from.mean for fold in self.loaded.file.trained.folds]
        return TrainMeans(float(np.average(means, weights=np.array(rows, np.float64))))

    def facts(self, table: "pa.Table", scores: Scores) -> dict[str, Any]:
        """As of :class:`Evaluator`; samples, steps and FLOPs are summed over the folds."""
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
        found: dict[str, Any] = {"point": options.point, "distribution": head.describe()}
        if options.draws:
            found |= {"draws": options.draws, **asdict(options.sampling)}
        return found

    def baselines(self, scores: Scores, progress: Progress) -> Iterator[BaselineAnswers]:
        """Mean, least squares and boosted trees of each fold; none for rows that were held back."""
        return number_baselines(scores, self._baselines())

    def _baselines(self) -> Iterator[tuple[str, Floats]]:
        """Mean, least squares and boosted trees, fitted to what each fold learnt from.

        None for rows that were held back from it: they would have learnt them. For another table
        than that of the model the mean alone: its rows are not those that the model learnt.
        """
        parts = list(self.parts())
        if any(self._is_held_back(part.fold) for part in parts):
            return
        means = [np.full(len(part.rows), part.fitted.learnt_from.mean) for part in parts]
        yield "mean", np.concatenate(means)
        if not self._is_learnt:
            return
        columns = Features(self.table.numbers, self.table.categories)
        for name, of in fits().items():
            made = []
            for part in parts:
                rows = fitted_on(self._learnt_rows(part.fold), part.fold)
                learnt, asked = (
                    part.fitted.inputs.of(columns.take(some)).astype(np.float64)
                    for some in (rows, part.rows)
                )
                made.append(of(learnt, self.table.target[rows], asked))
            yield name, np.concatenate(made)

    def notes(
        self, table: "pa.Table", scores: Scores, baselines: Mapping[str, Figures]
    ) -> Iterator[str]:
        """Of rows that were held back, of repeated targets, and of those that lie beyond what
        the head or the range of the train split says."""
        yield from scores.notes
        yield from self.table.file.notes
        yield from _often_repeated(self.table.file.target, table.column("truth").to_numpy())
        if any(map(self._is_held_back, self.loaded.fitted)):
            yield (
                "These rows were held back from the train split, to know when to stop: good to "
                "choose by, too good to report."
            )
        yield from not_installed()
        if not self._is_learnt:
            yield "Of another table than that of the model; baselines that learn rows are left out."
        bounded = next(iter(self.loaded.fitted.values())).model.head.bounded
        log_density = table.column("log_density").to_numpy()
        if not bounded and (beyond := int(np.isneginf(log_density).sum())):
            yield (
                f"{beyond:,} of {table.num_rows:,} targets are beyond what this head says, "
                "so that likelihoods are infinite; give one that reaches further."
            )
        yield from _ruled_by_tails(table)
        outside = int(pc.sum(table.column("outside")).as_py() or 0)
        if outside:
            remedy = (
                ": this head gives them no probability, so `nll` is infinite; in-support-nll "
                "leaves them out, tailed-nll has stated tails"
            )
            yield (
                f"{outside:,} of {table.num_rows:,} targets lie outside the range of the train "
                f"split{remedy if bounded else ''}."
            )


def _literals(values: Floats) -> NDArray[np.object_]:
    """Python's ``repr`` of each; None for NaN."""
    told = [None if np.isnan(value) else repr(value) for value in values.tolist()]
    return np.array(told, object)


def _ruled_by_tails(predictions: "pa.Table") -> Iterator[str]:
    """A note where CRPS is of little probability far out, not of what is predicted: that of a
    distribution around its point is at most about the error of the point."""
    known = predictions.filter(pc.is_finite(predictions.column("crps")))
    known = known.filter(known.column("valid"))
    truth, said, crps = (known.column(name).to_numpy() for name in ("truth", "prediction", "crps"))
    if len(crps) and crps.mean() > _RULED * (error := np.abs(said - truth).mean()):
        yield (
            f"crps is {crps.mean():.3g} where predictions are off by {error:.3g}: little "
            "probability, but far beyond the targets, rules it; --num-samples N, of a decoder with "
            "--top-p 0.9, leaves such out."
        )


def _often_repeated(target: str, truth: Floats) -> Iterator[str]:
    """A note where a density says little, because one number comes again and again."""
    values, counts = np.unique(truth, return_counts=True)
    most = int(counts.argmax())
    if counts[most] >= max(_OFTEN * len(truth), 2):
        yield (
            f"{counts[most] / len(truth):.0%} of {target!r} are {values[most]:g}: densities (nll, "
            "tailed-nll) of such targets may be as high as a peak is narrow; interval-nll may not."
        )
