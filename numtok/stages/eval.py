"""Eval: a model and a split of encoded data -> a report.

Numbers are predicted (``evaluation.predict``), scored by every metric with its bootstrap
interval, over all, by target and by group, and set beside the baselines
(``evaluation.baselines``). The predictions are kept, so that ``compare`` can pair them. A model
of labels is asked for labels (``evaluation.labels``), and one that writes whole answers for these
(``evaluation.answers``); what their reports are made of is the same.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.data.reading.arrow import nullable
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import Failure
from numtok.encoding.splits import check_codec, read_learnt, read_split, splits
from numtok.errors import DataError, UsageError
from numtok.evaluation.answers import ANSWERS, AnswerEvaluation, answer_metrics
from numtok.evaluation.baselines import baselines as all_baselines
from numtok.evaluation.baselines import target_means
from numtok.evaluation.calibration import target_calibrations
from numtok.evaluation.evaluated_split import EvaluatedSplit
from numtok.evaluation.labels import LabelEvaluation, label_metrics
from numtok.evaluation.predict import AUTOREGRESSIVE, Options, Predicted, Predictor
from numtok.evaluation.prediction_mode import check_mode, measures_of, options_of
from numtok.evaluation.queries import Queries, target_names
from numtok.evaluation.ranges import outside
from numtok.evaluation.report_files import (
    TrainMeans,
    check_measures,
    publish,
    repeated_ids,
    write_predictions,
)
from numtok.evaluation.scoring import Progress, Scores, baseline_figures, number_baselines, score
from numtok.metrics.base import METRICS, Metric
from numtok.models.batches import ranges
from numtok.models.steps import compile_passes
from numtok.records import ENCODED, MODEL, TRAIN
from numtok.registry import settings_of, spec_of
from numtok.reports import (
    QUANTILES,
    REPORT,
    Figures,
    Measures,
    Report,
    predictions_schema,
    quantile_column,
)
from numtok.store.artifact import Artifact, check_name
from numtok.store.store import Store
from numtok.training.device import check_compiler
from numtok.training.model_files import LoadedModel, read_model
from numtok.training.trainer import device_of

REVISION = 11
#: The metrics of a report; those of ``_IN_GROUPS`` also by target and group, and of baselines.
_METRICS = (
    "r2", "adjusted-r2", "signed-log-r2", "mse", "mae", "median-relative-error",
    "relative-error-over", "lmae", "kendall-tau", "relative-mse", "exact-match",
    "exact-match,digits=3", "rounded-match", "digit-match", "d-length", "exponent-accuracy",
    "number-generation-ratio", "nll", "tailed-nll", "in-support-nll", "interval-nll", "token-nll",
    "crps", "coverage", "pit-distance", "outside",
)  # fmt: skip
_IN_GROUPS = (
    "r2", "adjusted-r2", "signed-log-r2", "mse", "median-relative-error", "relative-error-over",
    "exact-match,digits=3",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """What ``numtok eval`` was asked for.

    ``fill``, ``decode``, ``point``, ``draws`` and ``batch`` as in ``prediction_mode``; the size of
    a batch is no setting of the report, since predictions and densities depend on it in the last
    bits of float32 alone.
    """

    model: str
    encoded: str
    split: str = "test"
    fill: str | None = None
    decode: str = "constrained"
    point: str = "mode"
    draws: int = 0
    rows: int | None = None
    batch: int = 256
    metrics: tuple[str, ...] = ()
    device: str = "auto"
    compile: bool = False
    name: str | None = None
    restart: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        check_mode(self)
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

    Raises UsageError (also where model and data do not belong together), DataError, StoreError,
    TrainingFailed (no memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    encoded = store.resolve(config.encoded, kinds={ENCODED})
    device = device_of(config.device)
    check_codec(model, encoded)
    if config.split not in splits(encoded):
        read_split(encoded, config.split)  # says which splits there are
    more = [METRICS.build(spec) for spec in config.metrics]
    measures = measures_of(config, model)
    check_measures(more, measures, model.ref)
    metrics = [*_USUAL[measures](), *more]
    options = options_of(config, model) if measures == "numbers" else None
    fill = config.fill if options is None else options.fill
    settings = {
        "stage": "eval",
        "revision": REVISION,
        "split": config.split,
        "fill": fill,
        "decode": config.decode,
        "point": config.point,
        "draws": config.draws,
        "rows": config.rows,
        "metrics": [settings_of(metric) for metric in metrics],
        "device": device.type,
    }
    if config.compile:  # another rounding: a near tie may go the other way
        check_compiler()
        settings["compile"] = True
    with store.draft(
        REPORT,
        config.name or f"{model.name}-{config.split}",
        settings,
        [model.as_parent(), encoded.as_parent()],
        _command(config, model, encoded, fill, device.type),
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return Result(draft, made=False)
        loaded = read_model(model, device)  # only now: a report that is there needs no weights
        if config.compile:
            compile_passes(loaded.model)
        evaluated = EvaluatedSplit.of(loaded, encoded, config.split, config.rows)
        evaluation: LabelEvaluation | AnswerEvaluation | _Evaluation
        if options is not None:
            evaluation = _Evaluation.of(evaluated, config, store, options, metrics)
        elif measures == "labels":
            evaluation = LabelEvaluation.of(evaluated, store.find, config.batch, more)
        else:
            constrained = config.decode == "constrained"
            evaluation = AnswerEvaluation.of(evaluated, constrained, config.batch, more)
        started = time.monotonic()
        table = evaluation.predictions(partial(progress, "predicting"), store.note)
        seconds = time.monotonic() - started
        write_predictions(draft, table)
        report = evaluation.report(table, progress)
        told = msgspec.structs.replace(report, notes=[*report.notes, *repeated_ids(table)])
        return Result(publish(draft, model, told, seconds), made=True)


@cache
def _usual_metrics() -> list[Metric]:
    return [METRICS.build(spec) for spec in _METRICS]


_USUAL: Mapping[Measures, Callable[[], list[Metric]]] = {
    "numbers": _usual_metrics,
    "labels": label_metrics,
    "answers": answer_metrics,
}


def _command(
    config: Config, model: Artifact, encoded: Artifact, fill: str | None, device: str
) -> list[str]:
    """``fill`` is None for labels."""
    numbers = fill not in (None, ANSWERS)
    words = ["numtok", "eval", model.ref, encoded.ref, "--split", config.split]
    words += ["--fill", fill] if fill not in (None, AUTOREGRESSIVE) else []
    words += ["--decode", config.decode] if fill else []
    words += ["--point", config.point] if numbers else []
    if config.draws:
        words += ["--draws", str(config.draws)]
    words += ["--rows", str(config.rows)] if config.rows is not None else []
    for metric in config.metrics:
        words += ["--metric", metric]
    words += ["--device", device]
    words += ["--compile"] if config.compile else []
    return words + (["--name", config.name] if config.name else [])


@dataclass(frozen=True)
class _Evaluation:
    """Of a model of numbers."""

    evaluated: EvaluatedSplit
    config: Config
    train: EncodedSplit | None  # where the baselines are fitted
    predictor: Predictor
    metrics: list[Metric]

    @classmethod
    def of(
        cls,
        evaluated: EvaluatedSplit,
        config: Config,
        store: Store,
        options: Options,
        metrics: list[Metric],
    ) -> "_Evaluation":
        """Raises DataError where no number is asked for."""
        loaded, encoded = evaluated.loaded, evaluated.encoded
        train = read_learnt(loaded.artifact, encoded, store.find)
        finite = None if train is None else int(np.isfinite(train.numbers).sum())
        split = loaded.trained.calibrated_on
        looked_at = split and read_learnt(loaded.artifact, encoded, store.find, split)
        apart = target_calibrations(loaded, looked_at, options) if looked_at else {}
        predictor = Predictor(loaded, evaluated.samples, options, finite, apart)
        if not len(predictor.asked.numbers):
            raise DataError(f"{evaluated} has no number to predict; evaluate on rows with numbers")
        return cls(evaluated, config, train, predictor, metrics)

    @property
    def loaded(self) -> LoadedModel:
        return self.evaluated.loaded

    @property
    def samples(self) -> EncodedSplit:
        return self.evaluated.samples

    @property
    def train_mean(self) -> float | None:
        return self.loaded.trained.train_mean

    @property
    def asked(self) -> Queries:
        return self.predictor.asked

    def predictions(
        self, progress: Callable[[int, int], None], note: Callable[[str], None]
    ) -> "pa.Table":
        """The rows of predictions.parquet."""
        return self._table(self.predictor.run(progress, note))

    def _table(self, predicted: Predicted) -> "pa.Table":
        samples, asked = self.samples, self.asked
        rows = asked.rows[asked.queries]
        columns: dict[str, Any] = {
            "target": target_names(samples, asked),
            "position": asked.numbers - samples.number_rows[rows],
            "truth_literal": self._truth_literals(),
            "truth": samples.numbers[asked.numbers],
            "prediction_literal": predicted.literals,
            "prediction": pa.array(predicted.values, mask=~predicted.valid),
            "valid": predicted.valid,
            "on_grammar": predicted.on_grammar
            if self.predictor.options.constrained
            else pa.nulls(len(rows), pa.bool_()),
            "log_density": nullable(predicted.log_density),
            "crps": nullable(predicted.crps),
            "pit": nullable(predicted.pit),
            "log_density_tailed": nullable(predicted.log_density_tailed),
            "log_interval": nullable(predicted.log_interval),
            "token_nll": nullable(predicted.token_nll),
            "outside": self._outside(),
            "log_range": pa.nulls(len(rows), pa.float64()),
        }
        for index, level in enumerate(QUANTILES):
            columns[quantile_column(level)] = nullable(predicted.quantiles[:, index])
        return self.evaluated.table(columns, predictions_schema, pa.array(rows))

    def _truth_literals(self) -> list[str]:
        """As written; of a number that is no target what its tokens keep of that, or Python's
        ``repr``, integers without a point."""
        literals = self.samples.target_literal.to_pylist()
        if (self.asked.targets >= 0).all():
            return [literals[target] for target in self.asked.targets.tolist()]
        codec, samples, numbers = self.loaded.codec, self.samples, self.asked.numbers
        others = [repr(value).removesuffix(".0") for value in samples.numbers[numbers].tolist()]
        if codec.keeps_literals:
            lengths = samples.number_length[numbers]
            tokens = samples.tokens[ranges(samples.first_token(numbers), lengths)]
            local = tokens.astype(np.uint32) - np.uint32(codec.number_first)
            decoded = codec.decode_numbers(local, lengths)
            for index in np.flatnonzero(decoded.failures == Failure.NONE).tolist():
                others[index] = decoded.literal(index)
        return [
            literals[target] if target >= 0 else other
            for target, other in zip(self.asked.targets.tolist(), others, strict=True)
        ]

    def _outside(self) -> "pa.Array[Any]":
        """Which truths are outside the range of their target in the train split."""
        if self.train is None:
            return pa.nulls(len(self.asked.numbers), pa.bool_())
        names = target_names(self.samples, self.asked)
        truth = self.samples.numbers[self.asked.numbers]
        return pa.array(outside(truth, names, self.train))

    def report(self, table: "pa.Table", progress: Progress) -> Report:
        """Every figure of the report, from the rows of predictions.parquet."""
        few = list(map(METRICS.build, _IN_GROUPS))
        more = list(map(METRICS.build, self.config.metrics))
        means = TrainMeans(self.train_mean, {} if self.train is None else target_means(self.train))
        ref = self.loaded.artifact.ref
        scores = score(table, self.metrics, few, more, means, ref, progress)
        baselines, target_baselines = baseline_figures(
            [*few, *more], scores, number_baselines(scores, self._baselines()), self.samples.floors
        )
        constrained = self.predictor.options.constrained
        return self.evaluated.report(
            scores,
            baselines,
            self.samples.number_length[self.asked.numbers],
            self._notes(scores, baselines),
            decoding=self._decoding(),
            numbers=len(self.asked.numbers),
            invalid=float(1 - scores.answers.valid.mean()),
            off_grammar=1 - pc.mean(table.column("on_grammar")).as_py() if constrained else None,
            train_mean=self.train_mean,
            target_means=dict(means.of_target),
            target_baselines=target_baselines,
        )

    def _baselines(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Of the numbers that are scored."""
        finite = np.isfinite(self.samples.numbers[self.asked.numbers])
        fill = self.predictor.options.fill
        for name, values in all_baselines(
            self.loaded.codec, self.samples, self.asked, self.train, self.train_mean, fill
        ):
            yield name, values[finite]

    def _decoding(self) -> dict[str, Any]:
        options = self.predictor.options
        return {
            "fill": options.fill,
            "decode": self.config.decode,
            "point": options.point,
            "distribution": self._distribution(),
        }

    def _distribution(self) -> str:
        """What NLL, CRPS and quantiles are of."""
        loaded, options = self.loaded, self.predictor.options
        assert loaded.model.head is not None
        told = loaded.model.head.describe() + (" of its target" if self.predictor.spreads else "")
        if loaded.codec.scheme.splits:
            told += ", of the mantissa, times powers of ten by the probabilities of their tokens"
        if loaded.trained.calibrated_on == TRAIN:
            told += ", measured on the train split: there was no validation split"
        if loaded.model.value_head is None and self.predictor.support is None:
            if loaded.codec.scheme.tokens_per_number is None:
                told = "token probabilities of literals, which are no density, "
            else:
                told += "; density by the truth's tokens, "
            told += f"quantiles from {options.draws} draws" if options.draws else "no quantiles"
        return told

    def _notes(self, scores: Scores, baselines: Mapping[str, Figures]) -> Iterator[str]:
        left_out, predictor = scores.left_out, self.predictor
        if left_out:
            yield f"{left_out:,} numbers are not finite and were not scored."
        for name in sorted(self.samples.floors):
            known = next((figure.n for figure in baselines[name].values()), 0)
            if known < len(self.asked.numbers) - left_out:
                yield (
                    f"Baseline {name!r} says nothing of some numbers: its figures are of the "
                    f"{known:,} others alone."
                )
        if self.loaded.codec.scheme.tokens_per_number is None:
            if predictor.options.fill != AUTOREGRESSIVE:
                yield "The number of masks tells the model how long each answer is."
            elif not scores.answers.valid.all():
                yield f"A number that does not end within {predictor.longest} tokens is not valid."
        normalizer = spec_of(self.loaded.codec.normalizer.normalizer)
        if normalizer.startswith("signed-log"):
            yield "Numbers were normalised by signed-log, which the paper does not do."
        if self.config.draws and not predictor.draws:
            yield "The distribution has an exact form; --draws was not needed."
        if self.train is None:
            yield (
                "What the model learnt from is not at hand: no nearest, linear or boosted baseline."
            )
