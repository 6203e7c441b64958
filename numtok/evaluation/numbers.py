"""A model of numbers on one split: predictions, and the report of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from numtok.arrays import Bools, ranges
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import Failure, splits_numbers
from numtok.encoding.splits import learnt_data, learnt_values, read_learnt
from numtok.errors import DataError
from numtok.evaluation.baselines import baselines, fitted_baselines, not_fitted, target_means
from numtok.evaluation.devices import Done, Note
from numtok.evaluation.evaluation import EvaluatedSplit, ReportMetrics, quantile_columns
from numtok.evaluation.predict import AUTOREGRESSIVE, Options, Predictor
from numtok.evaluation.queries import Queries, number_names, target_names
from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import BaselineAnswers, Progress, Scores, number_baselines
from numtok.evaluation.seen_values import outside
from numtok.evaluation.target_features import FieldedSplit, fitted_rows
from numtok.models.heads.base import CalibratedReader, Calibration
from numtok.registry import spec_of
from numtok.reports import SLOT, Figures
from numtok.store.artifact import Find
from numtok.training.model_files import LoadedModel

if TYPE_CHECKING:
    from numtok.evaluation.slots import NumberSlots

_CALIBRATED = 2000  # rows that a standard deviation is measured on, at most
_METRICS = (
    "slot-skill", "r2", "adjusted-r2", "signed-log-r2", "mse", "mae", "median-relative-error",
    "relative-error-over", "lmae", "kendall-tau", "relative-mse", "exact-match",
    "exact-match,digits=3", "rounded-match", "digit-match", "d-length", "exponent-accuracy",
    "number-generation-ratio", "nll", "tailed-nll", "in-support-nll", "interval-nll", "token-nll",
    "crps", "coverage", "pit-distance", "outside",
)  # fmt: skip
_IN_GROUPS = (
    "r2", "adjusted-r2", "signed-log-r2", "mse", "median-relative-error", "relative-error-over",
    "exact-match,digits=3",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NumberEvaluation:
    """Of a model of numbers."""

    metrics: ClassVar[ReportMetrics] = ReportMetrics(
        _METRICS, _IN_GROUPS, ("slot-skill", *_IN_GROUPS, "mae", "lmae", "relative-mse")
    )
    evaluated: EvaluatedSplit
    train: EncodedSplit | None  # where the baselines are fitted
    predictor: Predictor
    slots: "NumberSlots | None"
    slots_sought: bool
    fielded: tuple[FieldedSplit, FieldedSplit] | None  # train and samples; None without train

    @classmethod
    def of(
        cls, evaluated: EvaluatedSplit, find: Find, options: Options, slots: str = "auto"
    ) -> "NumberEvaluation":
        """``slots`` as in ``settings.eval``. Raises DataError where no number is asked for."""
        loaded, encoded = evaluated.loaded, evaluated.encoded
        train = read_learnt(loaded.artifact, encoded, find)
        finite = None if train is None else int(np.isfinite(train.numbers).sum())
        split = loaded.trained.calibrated_on
        looked_at = split and read_learnt(loaded.artifact, encoded, find, split)
        apart = _target_calibrations(loaded, looked_at, options) if looked_at else {}
        predictor = Predictor(loaded, evaluated.samples, options, finite, apart)
        if not len(predictor.asked.numbers):
            raise DataError(f"{evaluated} has no number to predict; evaluate on rows with numbers")
        learnt = learnt_data(loaded.artifact, encoded, find)
        found, fielded, sought = None, None, False
        if learnt is not None and train is not None:
            from numtok.evaluation.slots import Rows, number_fields, number_slots  # loads numba

            samples = evaluated.samples
            every = np.arange(len(samples))
            rows = Rows(encoded, evaluated.split, samples, every, evaluated.rows)
            of_train, of_samples = number_fields(
                Rows(learnt, TRAIN, train, fitted_rows(train)),
                rows._replace(chosen=np.unique(samples.target_row)),
            )
            fielded = of_train, of_samples
            if sought := _wanted(slots, predictor.asked):
                found = number_slots(rows, predictor.asked, learnt, train)
        return cls(
            evaluated=evaluated,
            train=train,
            predictor=predictor,
            slots=found,
            slots_sought=sought,
            fielded=fielded,
        )

    @property
    def loaded(self) -> LoadedModel:
        """The model, with the codec of its data."""
        return self.evaluated.loaded

    @property
    def samples(self) -> EncodedSplit:
        """The rows of the split, encoded, with numbers that are not asked for among them."""
        return self.evaluated.samples

    @property
    def train_means(self) -> TrainMeans:
        """Of what the model learnt; of each target too, where its data are at hand and have
        several."""
        of_target = {} if self.train is None else target_means(self.train)
        return TrainMeans(self.loaded.trained.train_mean, of_target)

    @property
    def asked(self) -> Queries:
        """Which numbers are predicted: a row's targets, or where it has none each number in
        turn."""
        return self.predictor.asked

    def predictions(self, progress: Done, note: Note) -> "pa.Table":
        """The rows of predictions.parquet."""
        samples, asked = self.samples, self.asked
        rows = asked.rows[asked.queries]
        predicted = self.predictor.run(progress, note, self.evaluated.devices)
        columns: dict[str, Any] = predicted._asdict() | {
            "target": target_names(samples, asked),
            "position": asked.numbers - samples.number_rows[rows],
            "truth_literal": self._truth_literals(),
            "truth": pa.array(samples.numbers[asked.numbers]),  # a nan is no null
            "prediction_literal": predicted.literals,
            "prediction": predicted.values,
            "outside": self._outside(),
            **quantile_columns(predicted.quantiles),
        }
        if self.slots is not None:
            columns |= {SLOT: self.slots.names, "slot_median": self.slots.medians}
        if not self.predictor.options.constrained:
            del columns["on_grammar"]
        return self.evaluated.table(columns, "numbers", pa.array(rows))

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

    def _outside(self) -> Bools | None:
        """Which truths are outside the range of their target in the train split."""
        if self.train is None:
            return None
        names = target_names(self.samples, self.asked)
        truth = self.samples.numbers[self.asked.numbers]
        return outside(self.train, names, truth)

    def facts(self, table: "pa.Table", scores: Scores) -> dict[str, Any]:
        """As of :class:`Evaluator`: ``off_grammar`` is None where decoding is not constrained."""
        constrained = self.predictor.options.constrained
        return self.evaluated.facts(self.samples.number_length[self.asked.numbers]) | {
            "decoding": self._decoding(),
            "numbers": len(self.asked.numbers),
            "invalid": float(1 - scores.answers.valid.mean()),
            "off_grammar": 1 - pc.mean(table.column("on_grammar")).as_py() if constrained else None,
        }

    def baselines(self, scores: Scores, progress: Progress) -> Iterator[BaselineAnswers]:
        """Those of :func:`baselines`, of the numbers that are finite."""
        finite = np.isfinite(self.samples.numbers[self.asked.numbers])
        found = baselines(
            self.loaded.codec,
            self.samples,
            self.asked,
            train=self.train,
            train_mean=self.loaded.trained.train_mean,
            fill=self.predictor.options.fill,
            slot_means=None if self.slots is None else self.slots.means,
        )
        fitted = () if self.fielded is None else fitted_baselines(*self.fielded, self.asked)
        scored = ((name, values[finite]) for name, values in chain(found, fitted))
        return number_baselines(scores, scored, self.samples.floors)

    def _decoding(self) -> dict[str, Any]:
        options = self.predictor.options
        return {
            "fill": options.fill,
            "decode": "constrained" if options.constrained else "free",
            "point": options.point,
            "distribution": self._distribution(),
        }

    def _slot_notes(self, scores: Scores) -> Iterator[str]:
        if self.slots is None:
            if self.slots_sought:
                yield "No figures by slot: no place of the rows has enough numbers to score."
            return
        for letter, beginning in self.slots.templates.items():
            yield f"Slots of {letter} are of rows like {beginning!r}."
        medians = scores.answers.slot_median
        assert medians is not None
        if others := int(np.isnan(medians).sum()):
            yield (
                f"{others:,} numbers are in no slot with enough others; slot-skill is of the "
                f"{len(medians) - others:,} in slots."
            )

    def _distribution(self) -> str:
        """What NLL, CRPS and quantiles are of."""
        loaded, options = self.loaded, self.predictor.options
        assert loaded.model.head is not None
        told = loaded.model.head.describe() + (" of its target" if self.predictor.spreads else "")
        if splits_numbers(loaded.codec.scheme):
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

    def notes(
        self, table: "pa.Table", scores: Scores, baselines: Mapping[str, Figures]
    ) -> Iterator[str]:
        """What is not scored or not comparable, and which baselines and options have no part."""
        yield from self.evaluated.notes(scores)
        left_out, predictor = scores.left_out, self.predictor
        yield from self._slot_notes(scores)
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
            yield "The distribution has an exact form; --num-samples was not needed."
        if self.fielded is not None:
            yield from not_fitted(*self.fielded, self.asked)
        if self.train is None:
            yield (
                "What the model learnt from is not at hand: no nearest, linear or boosted baseline."
            )


def _wanted(slots: str, asked: Queries) -> bool:
    """Whether slots are to be looked for: asked for, or, of ``auto``, where no number is a target,
    since targets have names that tell them apart."""
    return slots == "yes" or (slots == "auto" and bool((asked.targets < 0).all()))


def _target_calibrations(
    loaded: LoadedModel, samples: EncodedSplit, options: Options
) -> Mapping[str, Calibration]:
    """Return what a calibrated head's distribution needs for each target, by name, from predictions
    of a split that was not trained on; empty for other heads, and if all targets have one name.

    Training measures one standard deviation over all numbers of the validation split. If rows have
    several targets, some may be predicted to a thousandth and others hardly at all, and one value
    would be wrong for each of them.
    """
    reader = loaded.model.value_head
    samples = samples.sample(_CALIBRATED)
    several = len(set(samples.target_name.to_pylist())) > 1
    if not isinstance(reader, CalibratedReader) or not several:
        return {}
    predictor = Predictor(loaded, samples, options)
    passes = [
        (numbers, predictor.reader.read(steps).parameters)
        for queries in predictor.parts()
        for numbers, steps in predictor.passes(queries)
    ]
    numbers = np.concatenate([one for one, _ in passes])
    parameters = torch.cat([one for _, one in passes if one is not None])
    values = learnt_values(samples, loaded.codec)(numbers)
    learnt = loaded.model.head_values(values, samples.numbers[numbers])
    valid = parameters.isfinite().all(dim=1).cpu().numpy() & ~np.isnan(values)
    names = number_names(samples)[numbers]
    found = {}
    for name in sorted(set(names[valid].tolist())):
        mine = np.flatnonzero(valid & (names == name))
        found[name] = reader.calibrate(parameters[mine], learnt[mine])
    return found
