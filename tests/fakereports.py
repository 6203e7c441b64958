"""Report artifacts as ``eval`` writes them, without a model: predictions are targets plus noise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.metrics.base import METRICS, Predictions, figures
from numtok.reports import (
    PREDICTIONS_FILE,
    QUANTILES,
    REPORT,
    REPORT_FILE,
    BestBaseline,
    Costs,
    Figures,
    Report,
    predictions_schema,
    quantile_column,
)
from numtok.store.artifact import Artifact
from numtok.store.store import Store

METRIC_NAMES = (
    *("r2", "adjusted-r2", "signed-log-r2", "mse", "mae", "median-relative-error"),
    "relative-error-over",
)
TRAIN_MEAN = 1.5


@dataclass(frozen=True)
class Fake:
    """One report: ``noise`` is added to the targets; the first ``invalid`` predictions are
    invalid."""

    scheme: str = "p1000"
    seed: int = 0
    noise: float = 10.0
    noise_seed: int = 0
    invalid: int = 0
    off_grammar: int | None = None  # the last N are off-grammar; None: not measured
    count: int = 200
    shift: int = 0  # added to the ids
    truth_shift: float = 0.0  # added to the last target
    repeat: bool = False  # the last id repeats the one before
    train_mean: float | None = TRAIN_MEAN
    later: bool = False  # with columns of later versions: calibrated, every fourth row outside
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None  # the REF
    training_data: str | None = None  # another REF
    split: str = "test"
    target: str = "answer"
    overflow: int = 0  # the last N have an infinite highest quantile
    others: tuple[str, ...] = ()  # further targets, which alternate with ``target``
    best: tuple[tuple[str, BestBaseline], ...] = ()  # best baselines by target
    metrics: tuple[str, ...] = METRIC_NAMES
    of_texts: bool = True  # False: of a table, whose scheme is its head

    @property
    def configuration(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"scheme": self.scheme}
        if self.of_texts:
            head = "scalar" if self.scheme == "xval" else "token"  # the scheme's default
            plain |= {"head": head, "objective": "mlm:targets"}
        return plain | {"steps": 1000} | dict(self.settings)

    @property
    def targets(self) -> tuple[str, ...]:
        return self.target, *self.others

    def table(self) -> pa.Table:
        """Return the predictions, last id first: a comparison must not rely on the row order."""
        count = self.count
        truth = np.round(np.random.default_rng(7).normal(0, 100, count), 2)
        truth[-1] += self.truth_shift
        noise = np.random.default_rng((self.noise_seed, self.seed)).normal(0, self.noise, count)
        prediction = [float(value) for value in truth + noise]
        valid = [index >= self.invalid for index in range(count)]
        ids = [f"row-{index + self.shift}" for index in range(count)]
        if self.repeat:
            ids[-1] = ids[-2]
        nothing = [None] * count
        values = [value if known else None for value, known in zip(prediction, valid, strict=True)]
        columns: dict[str, Any] = {
            "id": ids,
            "target": [self.targets[index % len(self.targets)] for index in range(count)],
            "position": [3] * count,
            "truth_literal": [repr(float(value)) for value in truth],
            "truth": truth,
            "prediction_literal": [None if value is None else repr(value) for value in values],
            "prediction": values,
            "valid": valid,
            "on_grammar": nothing
            if self.off_grammar is None
            else [index < count - self.off_grammar for index in range(count)],
            "group_operands": [str(2 + index % 3) for index in range(count)],
            "group_operator": [None if index == 0 else "+-*"[index % 3] for index in range(count)],
        }
        points = np.array(prediction)
        columns |= {
            quantile_column(level): points + self.noise * NormalDist().inv_cdf(level)
            for level in QUANTILES
        }
        if self.overflow:
            columns[quantile_column(QUANTILES[-1])][-self.overflow :] = np.inf
        if self.later:
            columns["pit"] = (np.arange(count) + 0.5) / count
            columns["outside"] = [index % 4 == 0 for index in range(count)]
        schema = predictions_schema(["operands", "operator"])
        columns = {name: columns.get(name, nothing) for name in schema.names}
        return pa.table(columns, schema=schema).take(np.arange(count)[::-1])

    def report(self, table: pa.Table) -> Report:
        valid = np.array(table["valid"].to_pylist())
        mean = 0.0 if self.train_mean is None else self.train_mean
        prediction = np.array(table["prediction"].fill_null(mean).to_pylist())
        answers = Predictions(np.array(table["truth"].to_pylist()), prediction, valid)
        constant = answers._replace(prediction=np.full(self.count, mean))
        operands = np.array(table["group_operands"].to_pylist())
        by_operands = {
            value: self._figures(answers.take(operands == value)) for value in ("2", "3", "4")
        }
        names = np.array(table["target"].to_pylist())
        by_target = {name: self._figures(answers.take(names == name)) for name in self.targets}
        rounded = answers._replace(prediction=answers.truth + len(self.scheme) / 100)
        found = self._figures(answers)
        return Report(
            model=f"model-{self.scheme}@0123456789abcdef",
            name=f"model-{self.scheme}",
            data=self.data or f"arithmetic-{self.scheme}@0123456789abcdef",
            split=self.split,
            scheme=self.scheme,
            configuration=self.configuration,
            seed=self.seed,
            decoding={"fill": "all", "constrained": True},
            rows=self.count,
            numbers=self.count,
            invalid=self.invalid / self.count,
            off_grammar=0.003,
            train_mean=self.train_mean,
            metrics=found,
            valid_metrics=self._figures(answers.take(valid)) if self.invalid else {},
            by_target=by_target if self.others else {self.target: found},
            groups={"operands": by_operands},
            baselines={"quantization": self._figures(rounded), "mean": self._figures(constant)},
            costs=Costs(
                samples=64_000,
                tokens=1_280_000,
                steps=1000,
                flops=3.1e15,
                parameters=2_500_000,
                embedding_parameters=700_000,
                tokens_per_number=3.0,
            ),
            best_baselines=dict(self.best),
            training_data=self.training_data,
            notes=["The operands were drawn as the task says, not as the paper did."],
        )

    def _figures(self, answers: Predictions) -> Figures:
        return figures([METRICS.build(name) for name in self.metrics], answers, resamples=100)


def make(store: Store, fake: Fake, name: str | None = None) -> Artifact:
    """Write the report of a fake evaluation; its training time grows with the seed."""
    name = name or f"report-{fake.scheme.partition(',')[0]}-{fake.seed}"
    with store.draft(REPORT, name, {"fake": repr(fake)}, [], ["numtok", "eval"]) as draft:
        if isinstance(draft, Artifact):
            return draft
        table = fake.table()
        files.write_atomic(draft.path / REPORT_FILE, msgspec.json.encode(fake.report(table)))
        pq.write_table(table, draft.path / PREDICTIONS_FILE, write_page_checksum=True)
        timing = {"train_seconds": 100.0 + fake.seed, "eval_seconds": 2.0}
        return draft.publish({"rows": fake.count}, timing)
