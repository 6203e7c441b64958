"""Eval of a model of tables: its distributions of a split's targets -> a report.

Each fold of the model predicts the rows of the split in that fold, and all of
them are scored together; where there are several, each fold is a group as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.artifact import Artifact
from numtok.distributions.base import Predictive
from numtok.distributions.samples import Samples
from numtok.distributions.tailed import Tailed
from numtok.errors import DataError, UsageError
from numtok.metrics.base import METRICS, Metric
from numtok.nn.batches import generator
from numtok.nn.features import Columns
from numtok.nn.fitted import Fitted
from numtok.nn.heads._decoded import Decoded, Sampling
from numtok.nn.heads.base import HEADS, ValueHead
from numtok.records import GROUP, TRAIN
from numtok.registry import spec_of
from numtok.reports import QUANTILES, Costs, Report, predictions_schema, quantile_column
from numtok.stages._floors import boosted, linear
from numtok.stages._regressors import LoadedRegressor
from numtok.stages._scoring import Progress, floor_figures, score
from numtok.tables import Table

POINTS = ("median", "mean", "mode", "raft")
_AT_ONCE = 512  # rows whose distributions are held at a time
_GRID = 100  # values that an expectation over a grid is taken over
FOLD = "fold"


@dataclass(frozen=True)
class TableOptions:
    """How numbers are read off.

    point
        ``median``, ``mean`` or ``mode`` of the distribution, or ``raft``: the expectation over
        100 evenly spaced values of the train split's range, each by its density (Lukasik et al.
        2025, who take the probability of its tokens).
    draws
        Numbers drawn in place of the exact distribution; 0: none. Then the median is that of
        Harrell and Davis.
    sampling
        How a decoder draws them.
    """

    point: str = "median"
    draws: int = 0
    sampling: Sampling = Sampling()

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise UsageError(
                f"--point {self.point!r} is not possible for a table; allowed are "
                f"{', '.join(POINTS)}"
            )
        if self.draws == 0 and self.sampling != Sampling():
            raise UsageError(
                "--temperature, --top-k and --top-p change how numbers are drawn; give --draws N "
                "with them"
            )
        if self.draws and self.point == "raft":
            raise UsageError("--point raft needs densities, which draws have not; leave --draws out")


class _Part(NamedTuple):
    """The rows of the split in one fold."""

    fold: int
    rows: NDArray[np.int64]
    fitted: Fitted


@dataclass(frozen=True)
class TableEvaluation:
    """One model on one split of a table, in memory."""

    loaded: LoadedRegressor
    source: Artifact
    table: Table
    split: str
    options: TableOptions
    metrics: Sequence[Metric]
    few: Sequence[Metric]
    most: int | None  # rows at most

    def parts(self) -> Iterator[_Part]:
        """Fold by fold."""
        left = len(self.table) * len(self.loaded.fitted) if self.most is None else self.most
        for fold, fitted in self.loaded.fitted.items():
            rows = self.table.split(self.split, fold)[:left]
            left -= len(rows)
            if len(rows):
                yield _Part(fold, rows, fitted)

    def check(self) -> None:
        """Raise DataError unless the table has the columns that the model learnt."""
        file, ours = self.table.file, self.loaded.file
        if file.target != ours.target or file.features != ours.features:
            wanted = {one.name: one.kind for one in ours.features} | {ours.target: "target"}
            there = {one.name: one.kind for one in file.features} | {file.target: "target"}
            name = next(
                name for name in (wanted | there) if wanted.get(name) != there.get(name)
            ) if wanted != there else next(iter(wanted))
            raise DataError(
                f"{self.source.ref} has other columns than {self.loaded.artifact.ref} was fitted "
                f"to: {name!r} is {there.get(name, 'not there')}, expected "
                f"{wanted.get(name, 'not there')}, in the same order; make the table with the "
                "same columns"
            )

    def predictions(self, progress: Progress) -> "pa.Table":
        """The rows of predictions.parquet."""
        parts = list(self.parts())
        total, done = sum(len(part.rows) for part in parts), 0
        made: list[dict[str, Any]] = []
        for part in parts:
            for first in range(0, len(part.rows), _AT_ONCE):
                rows = part.rows[first : first + _AT_ONCE]
                made.append(self._predicted(part, rows, first))
                done += len(rows)
                progress("predicting", done, total)
        groups = [FOLD] if len(parts) > 1 else []
        schema = predictions_schema(groups)
        columns = {name: np.concatenate([one[name] for one in made]) for name in made[0]}
        n = len(columns["truth"])
        return pa.table(
            [_column(columns.get(name), schema.field(name).type, n) for name in schema.names],
            schema=schema,
        )

    def _predicted(self, part: _Part, rows: NDArray[np.int64], first: int) -> dict[str, Any]:
        fitted, truth = part.fitted, self.table.target[rows]
        columns = Columns(self.table.numbers, self.table.categories).take(rows)
        inputs = fitted.inputs.of(columns)
        parameters = fitted.parameters(inputs)
        reader, learnt_from = fitted.model.reader, fitted.learnt_from
        exact = reader.predictive(parameters, fitted.calibration, fitted.scaling)
        used: Predictive = exact
        if self.options.draws:
            random = generator(0, "draws", part.fold, first)
            used = Samples(self._drawn(exact, random))
        values = self._point(used, fitted)
        valid = np.isfinite(values)
        literals = np.array([repr(value) for value in values.tolist()], object)
        literals[~valid] = None
        quantiles = used.quantiles(QUANTILES)
        found: dict[str, Any] = {
            "id": rows.astype(str).astype(object),
            "target": np.full(len(rows), self.table.file.target, object),
            "position": np.full(len(rows), part.fold),
            "truth_literal": np.array([repr(value) for value in truth.tolist()], object),
            "truth": truth,
            "prediction_literal": literals,
            "prediction": np.where(valid, values, np.nan),
            "valid": valid,
            "crps": used.crps(truth),
            "pit": used.cdf(truth),
            "outside": (truth < learnt_from.low) | (truth > learnt_from.high),
            GROUP + FOLD: np.full(len(rows), str(part.fold), object),
        }
        found |= {quantile_column(q): quantiles[:, i] for i, q in enumerate(QUANTILES)}
        return found | self._densities(fitted, exact, inputs, parameters, truth)

    def _densities(
        self, fitted: Fitted, exact: Predictive, parameters: Any, truth: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """What likelihoods need, always of the exact distribution."""
        learnt_from, reader = fitted.learnt_from, fitted.model.reader
        tailed: Predictive = exact
        if fitted.model.head.bounded:
            tailed = Tailed(exact, learnt_from.low, learnt_from.high, 1 / (learnt_from.rows + 1))
        half = learnt_from.resolution / 2
        found = {"log_density": exact.log_density(truth), "log_density_tailed": tailed.log_density(truth)}
        return found
