"""A model of numbers on one split: predictions, and the report of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.data.reading.arrow import nullable
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import Failure
from numtok.encoding.splits import read_learnt
from numtok.errors import DataError
from numtok.evaluation.baselines import baselines as all_baselines
from numtok.evaluation.baselines import target_means
from numtok.evaluation.calibration import target_calibrations
from numtok.evaluation.evaluated_split import EvaluatedSplit
from numtok.evaluation.predict import AUTOREGRESSIVE, Options, Predicted, Predictor
from numtok.evaluation.queries import Queries, target_names
from numtok.evaluation.ranges import outside
from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import Progress, Scores, baseline_figures, number_baselines, score
from numtok.metrics.base import METRICS, Metric
from numtok.models.batches import ranges
from numtok.records import TRAIN
from numtok.registry import spec_of
from numtok.reports import QUANTILES, Figures, Report, predictions_schema, quantile_column
from numtok.store.artifact import Find
from numtok.training.model_files import LoadedModel

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


@cache
def number_metrics() -> list[Metric]:
    """The metrics of every report of numbers."""
    return [METRICS.build(spec) for spec in _METRICS]


@dataclass(frozen=True)
class NumberEvaluation:
    """Of a model of numbers."""

    evaluated: EvaluatedSplit
    train: EncodedSplit | None  # where the baselines are fitted
    predictor: Predictor
    more: Sequence[Metric]  # metrics that were asked for

    @classmethod
    def of(
        cls,
        evaluated: EvaluatedSplit,
        find: Find,
        options: Options,
        more: Sequence[Metric],
    ) -> "NumberEvaluation":
        """Raises DataError where no number is asked for."""
        loaded, encoded = evaluated.loaded, evaluated.encoded
        train = read_learnt(loaded.artifact, encoded, find)
        finite = None if train is None else int(np.isfinite(train.numbers).sum())
        split = loaded.trained.calibrated_on
        looked_at = split and read_learnt(loaded.artifact, encoded, find, split)
        apart = target_calibrations(loaded, looked_at, options) if looked_at else {}
        predictor = Predictor(loaded, evaluated.samples, options, finite, apart)
        if not len(predictor.asked.numbers):
            raise DataError(f"{evaluated} has no number to predict; evaluate on rows with numbers")
        return cls(evaluated, train, predictor, more)

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
        means = TrainMeans(self.train_mean, {} if self.train is None else target_means(self.train))
        ref = self.loaded.artifact.ref
        scores = score(table, number_metrics(), few, self.more, means, ref, progress)
        baselines, target_baselines = baseline_figures(
            [*few, *self.more],
            scores,
            number_baselines(scores, self._baselines()),
            self.samples.floors,
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
            "decode": "constrained" if options.constrained else "free",
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
        if predictor.options.draws and not predictor.draws:
            yield "The distribution has an exact form; --draws was not needed."
        if self.train is None:
            yield (
                "What the model learnt from is not at hand: no nearest, linear or boosted baseline."
            )
