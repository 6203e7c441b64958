"""Evaluation of models that predict numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import Failure, splits_numbers
from numtok.encoding.splits import learnt_data, learnt_values, read_learnt
from numtok.errors import DataError
from numtok.evaluation.baselines import (
    FittedBaselines,
    baselines,
    fitted_baselines,
    target_means,
)
from numtok.evaluation.devices import Done, Note
from numtok.evaluation.evaluation import (
    EvaluatedSplit,
    ReportMetrics,
    TextEvaluation,
    quantile_columns,
)
from numtok.evaluation.predict import AUTOREGRESSIVE, Options, Predictor
from numtok.evaluation.prediction_table import TrainMeans
from numtok.evaluation.queries import (
    Queries,
    decoded,
    number_names,
    target_names,
    unwritten,
)
from numtok.evaluation.rows import Rows
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores, number_baselines
from numtok.evaluation.seen_values import outside
from numtok.evaluation.target_features import AnchoredRows, fitted_rows
from numtok.evaluation.text_baselines import text_baselines
from numtok.models.heads.base import CalibratedReader, Calibration
from numtok.names import counted
from numtok.registry import spec_of
from numtok.reports import FIELD, Figures
from numtok.store.artifact import Artifact, Find
from numtok.training.model_files import LoadedModel

if TYPE_CHECKING:
    from numtok.evaluation.fields import NumberFields

_CALIBRATED = 2000  # maximum number of rows used to measure a standard deviation
_METRICS = (
    "field-skill", "r2", "adjusted-r2", "signed-log-r2", "mse", "mae", "median-relative-error",
    "relative-error-over", "lmae", "kendall-tau", "relative-mse", "exact-match",
    "exact-match,digits=3", "rounded-match", "digit-match", "d-length", "exponent-accuracy",
    "number-generation-ratio", "nll", "tailed-nll", "in-support-nll", "interval-nll", "token-nll",
    "crps", "coverage", "pit-distance", "conformal-coverage", "conformal-width", "outside",
)  # fmt: skip
_IN_GROUPS = (
    "r2", "adjusted-r2", "signed-log-r2", "mse", "median-relative-error", "relative-error-over",
    "exact-match,digits=3",
)  # fmt: skip
_CONFORMAL = ("conformal-coverage", "conformal-width")


@dataclass(frozen=True, kw_only=True)
class NumberEvaluation(TextEvaluation):
    """Evaluation of a model that predicts numbers."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(
        _METRICS,
        _IN_GROUPS,
        ("field-skill", *_IN_GROUPS, "mae", "lmae", "relative-mse", *_CONFORMAL),
    )
    train: EncodedSplit | None  # for baselines
    predictor: Predictor
    fields: "NumberFields | None"
    fields_sought: bool
    fitting: tuple[AnchoredRows, AnchoredRows] | None  # train split and samples; None without train

    @classmethod
    def of(
        cls, evaluated: EvaluatedSplit, find: Find, options: Options, fields: str
    ) -> "NumberEvaluation":
        """Build the evaluation for a split. ``find`` looks up the data that the model was trained
        on.

        ``fields`` is the setting of the same name in ``settings.eval``. Raises DataError if the
        rows contain no number to predict.
        """
        loaded, encoded = evaluated.loaded, evaluated.encoded
        train = read_learnt(loaded.artifact, encoded, find)
        finite = None if train is None else int(np.isfinite(train.numbers).sum())
        calibrations = target_calibrations(loaded, encoded, find, options)
        predictor = Predictor(loaded, evaluated.samples, options, finite, calibrations)
        if not len(predictor.asked.numbers):
            raise DataError(f"no row in {evaluated} has a number. Evaluate on rows with numbers")
        training_data = learnt_data(loaded.artifact, encoded, find)
        fields_found, fitting, sought = None, None, False
        if training_data is not None and train is not None:
            from numtok.evaluation.fields import anchored_fields, number_fields  # loads numba

            samples = evaluated.samples
            every = np.arange(len(samples))
            rows = Rows(encoded, evaluated.split, samples, every, evaluated.rows)
            parts = (
                Rows(training_data, TRAIN, train, fitted_rows(train)),
                rows._replace(chosen=np.unique(samples.target_row)),
            )
            of_train, of_samples = anchored_fields(*parts)
            fitting = of_train, of_samples
            # Targets are distinguished by name, so fields are only sought without them.
            untargeted = bool((predictor.asked.targets < 0).all())
            if sought := fields == "yes" or (fields == "auto" and untargeted):
                fields_found = number_fields(rows, predictor.asked, training_data, train)
        return cls(
            evaluated=evaluated,
            train=train,
            predictor=predictor,
            fields=fields_found,
            fields_sought=sought,
            fitting=fitting,
        )

    @property
    def train_means(self) -> TrainMeans:
        """Mean over all training targets. If there are several targets and the training data are
        available, also the mean of each target."""
        of_target = {} if self.train is None else target_means(self.train)
        return TrainMeans(self.loaded.trained.train_mean, of_target)

    @property
    def asked(self) -> Queries:
        """Numbers to predict: the targets of each row, or all numbers of a row without targets."""
        return self.predictor.asked

    def predictions(self, progress: Done, note: Note) -> pa.Table:
        """Predict all numbers, and return the table that is stored in predictions.parquet."""
        samples, queries, train = self.samples, self.asked, self.train
        rows, names = queries.rows[queries.queries], target_names(samples, queries)
        truth = samples.numbers[queries.numbers]
        predicted = self.predictor.run(progress, note, self.evaluated.devices)
        columns: dict[str, Any] = predicted._asdict() | {
            "target": names,
            "position": queries.numbers - samples.number_rows[rows],
            "truth_literal": self._truth_literals(),
            "truth": pa.array(truth),  # here NaN is not null
            "prediction_literal": predicted.literals,
            "prediction": predicted.values,
            "outside": None if train is None else outside(train, names, truth),
            **quantile_columns(predicted.quantiles),
        }
        if self.fields is not None:
            columns |= {FIELD: self.fields.names, "field_median": self.fields.medians}
        if not self.predictor.options.constrained:
            del columns["on_grammar"]
        return self.evaluated.table(columns, "numbers", pa.array(rows))

    def _truth_literals(self) -> list[str]:
        """Return the true numbers as written.

        Numbers that are not targets are decoded from their tokens, or written by
        :func:`unwritten` if the scheme does not keep literals.
        """
        literals = self.samples.target_literal.to_pylist()
        if (self.asked.targets >= 0).all():
            return [literals[target] for target in self.asked.targets.tolist()]
        codec, samples, numbers = self.loaded.codec, self.samples, self.asked.numbers
        substitutes = unwritten(samples.numbers[numbers])
        if codec.keeps_literals:
            stored = decoded(codec, samples, numbers)
            for index in np.flatnonzero(stored.failures == Failure.NONE).tolist():
                substitutes[index] = stored.literal(index)
        return [
            literals[target] if target >= 0 else substitute
            for target, substitute in zip(self.asked.targets.tolist(), substitutes, strict=True)
        ]

    def facts(self, table: pa.Table, scores: Scores) -> dict[str, Any]:
        """Return the fields of :class:`Report` that are specific to numbers, keyed by name.

        ``off_grammar`` is None if decoding is not constrained.
        """
        constrained = self.predictor.options.constrained
        return self.evaluated.facts(self.samples.number_length[self.asked.numbers]) | {
            "decoding": self._decoding(),
            "numbers": len(self.asked.numbers),
            "invalid": float(1 - scores.answers.valid.mean()),
            "off_grammar": 1 - pc.mean(table.column("on_grammar")).as_py() if constrained else None,
        }

    def baselines(self, scores: Scores, progress: Progress) -> Iterator[BaselineAnswers]:
        """Yield the predictions of all baselines for the numbers whose true value is finite."""
        finite = np.isfinite(self.samples.numbers[self.asked.numbers])
        unfitted = baselines(
            self.loaded.codec,
            self.samples,
            self.asked,
            train=self.train,
            train_mean=self.loaded.trained.train_mean,
            fill=self.predictor.options.fill,
            field_means=None if self.fields is None else self.fields.means,
        )
        every = chain(unfitted, self._fitted.values.items())
        scored = ((name, values[finite]) for name, values in every)
        return number_baselines(scores, scored, self.samples.floors)

    @cached_property
    def _fitted(self) -> FittedBaselines:
        """Baselines that read numbers or words; none if the training data are not available."""
        if self.fitting is None:
            return FittedBaselines({}, [])
        numbers = fitted_baselines(*self.fitting, self.asked)
        words = text_baselines(*self.fitting, self.asked)
        return FittedBaselines({**numbers.values, **words.values}, numbers.notes + words.notes)

    def _decoding(self) -> dict[str, Any]:
        options = self.predictor.options
        return {
            "fill": options.fill,
            "decode": "constrained" if options.constrained else "free",
            "point": options.point,
            "distribution": self._distribution(),
        }

    def _field_notes(self, scores: Scores) -> Iterator[str]:
        if self.fields is None:
            if self.fields_sought:
                yield "Metrics by field are missing: no field has enough numbers to score."
            return
        for letter, beginning in self.fields.templates.items():
            yield f"Fields {letter} belong to rows such as {beginning!r}."
        medians = scores.answers.field_median
        assert medians is not None
        if unassigned := int(np.isnan(medians).sum()):
            yield (
                f"field-skill leaves out {counted(unassigned, 'number')} in no field, or in one "
                f"with too few numbers; it covers the other {len(medians) - unassigned:,}."
            )

    def _distribution(self) -> str:
        """Describe the distribution from which NLL, CRPS and quantiles are computed."""
        loaded, options = self.loaded, self.predictor.options
        assert loaded.model.head is not None
        description = loaded.model.head.describe() + (
            " per target" if self.predictor.calibrations else ""
        )
        if splits_numbers(loaded.codec.scheme):
            description += ", for the mantissa, times powers of ten with their token probabilities"
        if loaded.trained.calibrated_on == TRAIN:
            description += ", measured on the train split because there was no validation split"
        if loaded.model.value_head is None and self.predictor.support is None:
            if loaded.codec.scheme.tokens_per_number is None:
                description = "token probabilities of literals (not a density), "
            else:
                description += "; density from the true value's tokens, "
            description += (
                f"quantiles from {options.draws} draws" if options.draws else "no quantiles"
            )
        return description

    def notes(self, table: pa.Table, scores: Scores) -> Iterator[str]:
        """Yield the report's notes about numbers that are not scored, and about results that are
        not comparable."""
        yield from self.evaluated.notes(scores)
        left_out, predictor = scores.left_out, self.predictor
        yield from self._field_notes(scores)
        if left_out:
            yield f"Not scored: {counted(left_out, 'number')} (not finite)."
        if self.loaded.codec.scheme.tokens_per_number is None:
            if predictor.options.fill != AUTOREGRESSIVE:
                yield "The number of masks reveals the length of each number to the model."
            elif not scores.answers.valid.all():
                yield f"Numbers that do not end within {predictor.longest} tokens are invalid."
        normalizer = spec_of(self.loaded.codec.normalizer.normalizer)
        if normalizer.startswith("signed-log"):
            yield "Numbers were normalized by signed-log, unlike in the paper."
        if predictor.options.draws and not predictor.draws:
            yield "The distribution is exact, so --num-samples was ignored."

    def baseline_notes(self, scores: Scores, baselines: Mapping[str, Figures]) -> Iterator[str]:
        """Yield the report's notes about missing baselines, and about those that lack
        predictions."""
        for name in sorted(self.samples.floors):
            covered = next((figure.n for figure in baselines[name].values()), 0)
            if covered < len(self.asked.numbers) - scores.left_out:
                yield (
                    f"Baseline {name!r} lacks predictions for some numbers: its metrics cover only "
                    f"the other {covered:,}."
                )
        yield from self._fitted.notes
        if self.train is None:
            yield (
                "The training data are not available, so the baselines median, nearest, linear, "
                "boosted, tfidf and boosted-text are missing."
            )


def target_calibrations(
    loaded: LoadedModel, data: Artifact | None, find: Find, options: Options
) -> Mapping[str, Calibration]:
    """Calibrate the head separately for each target, on predictions for the split that calibrated
    it in training. The keys are target names.

    Training measures a single standard deviation over all numbers of the validation split. If
    targets are predicted with different accuracy, that value is wrong for each of them. The result
    is empty for heads without calibration, if all targets have the same name, and if the training
    data are neither ``data`` nor found by ``find``.
    """
    reader, split = loaded.model.value_head, loaded.trained.calibrated_on
    if not isinstance(reader, CalibratedReader) or split is None:
        return {}
    whole = read_learnt(loaded.artifact, data, find, split)
    if whole is None or len(whole.target_name.unique()) < 2:
        return {}
    samples = whole.sample(_CALIBRATED)
    predictor = Predictor(loaded, samples, options)
    passes = [
        (numbers, predictor.reader.read(steps).parameters)
        for queries in predictor.parts()
        for numbers, steps in predictor.passes(queries)
    ]
    numbers = np.concatenate([part for part, _ in passes])
    parameters = torch.cat([part for _, part in passes if part is not None])
    values = learnt_values(samples, loaded.codec)(numbers)
    expected = loaded.model.head_values(values, samples.numbers[numbers])
    valid = parameters.isfinite().all(dim=1).cpu().numpy() & ~np.isnan(values)
    names = number_names(samples)[numbers]
    calibrations = {}
    for name in sorted(set(names[valid].tolist())):
        indices = np.flatnonzero(valid & (names == name))
        calibrations[name] = reader.calibrate(parameters[indices], expected[indices])
    return calibrations
