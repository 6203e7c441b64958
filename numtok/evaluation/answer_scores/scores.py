"""Scores of answers: metrics per model and rule, and paired comparisons of models."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from numtok.errors import UsageError
from numtok.evaluation.answer_scores.answer_files import Answers
from numtok.evaluation.answer_scores.predictions import (
    TrueValues,
    answer_literals,
    as_predictions,
    read_true_values,
)
from numtok.evaluation.answer_scores.significance import (
    detectable_difference,
    holm,
    permutation_test,
)
from numtok.evaluation.comparison.requirements import Requirement, RequirementResult
from numtok.metrics.base import METRICS, MeanMetric, Metric, Predictions, figures, paired, quiet
from numtok.numerals.answers.read import POLICY
from numtok.numerals.answers.rules import AnswerRule
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import spec_of
from numtok.reports import Figure, Figures
from numtok.settings.score import Config

ANSWERED = "number-generation-ratio"
#: Default metrics of answers, in the order of the columns in tables.
METRICS_OF_ANSWERS = (
    ANSWERED, "exact-match", "rounded-match", "median-relative-error", "digit-match",
    "lmae,skip=yes", "log-smape",
)  # fmt: skip
#: Optional columns of :class:`Predictions` that are available for answers.
_COLUMNS = {"truth_literal", "prediction_literal"}
#: Rules that are used if the user chooses none.
DEFAULT_RULES = ("strict", "first-number", "last-number", "boxed")


class RuleScores(msgspec.Struct, frozen=True):
    """Metrics of one model's answers when they are read by one rule, keyed by metric spec."""

    rule: str
    metrics: Figures


class AnswerModel(msgspec.Struct, frozen=True):
    """Scores of one model's answers, one entry per rule."""

    name: str
    rules: list[RuleScores]


class AnswerComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Difference in a metric between two models whose answers are read by the same rule:
    ``model`` minus ``reference``.

    difference
        Difference with its 95% paired bootstrap interval.
    p
        p-value of the paired permutation test; None if the metric is not a mean over rows.
    p_holm
        p-value corrected for the number of comparisons by Holm's method; None if ``p`` is None.
    detectable
        Smallest difference that the test detects with a probability of 80%; None if unknown.
    """

    rule: str
    model: str
    reference: str
    difference: Figure
    p: float | None
    p_holm: float | None
    detectable: float | None


class AnswerScores(msgspec.Struct, frozen=True, kw_only=True):
    """Result of ``numtok score``.

    rows, clusters
        Number of scored rows, and the number of clusters that they form (None if rows have no
        clusters).
    numbers
        Spec of the numeral policy under which answers are read.
    metrics
        For each metric, whether "higher" or "lower" values are better, or "neither".
    models
        Scores of each model.
    compared_by
        Metric by which models are compared.
    comparisons
        Comparisons of the other models with the first, for each rule; empty if there is only one
        model.
    requirements
        Results of checking the thresholds of ``--require``, for each threshold and model.
    left_out
        Number of rows that were left out, keyed by the reason.
    """

    rows: int
    clusters: int | None
    numbers: str
    metrics: dict[str, str]
    models: list[AnswerModel]
    compared_by: str
    comparisons: list[AnswerComparison]
    requirements: list[RequirementResult]
    left_out: dict[str, int]


@dataclass(frozen=True)
class ReadAnswers:
    """Answers of one or more models, read by one or more rules.

    truth
        True values of n questions.
    literals
        Literals of the answers [n], keyed by model and then by rule; None if an answer is missing
        or the rule finds no number in it.
    """

    truth: TrueValues
    literals: Mapping[str, Mapping[str, Sequence[str | None]]]

    @classmethod
    def read(
        cls,
        truth: TrueValues,
        answers: Mapping[str, Sequence[str | None]],
        rules: Sequence[AnswerRule],
        policy: NumeralPolicy,
    ) -> "ReadAnswers":
        """Apply each rule to the generated texts in ``answers``, which are keyed by model."""
        return cls(
            truth,
            {
                model: {rule.spec: answer_literals(texts, truth, rule, policy) for rule in rules}
                for model, texts in answers.items()
            },
        )

    def predictions(self, model: str, rule: str) -> Predictions:
        """Return a model's answers, read by a rule, as predictions."""
        return as_predictions(self.literals[model][rule], self.truth)

    def scores(self, metrics: Sequence[Metric]) -> list[AnswerModel]:
        """Return the metrics of each model and rule, with 95% bootstrap intervals."""
        return [
            AnswerModel(
                model,
                [RuleScores(rule, figures(metrics, self.predictions(model, rule))) for rule in own],
            )
            for model, own in self.literals.items()
        ]

    def comparisons(self, metric: Metric) -> list[AnswerComparison]:
        """Return the comparisons of the other models with the first in a metric, for each rule."""
        found = list(self._comparisons(metric))
        adjusted = holm([comparison.p for comparison in found])
        return [
            msgspec.structs.replace(comparison, p_holm=p)
            for comparison, p in zip(found, adjusted, strict=True)
        ]

    def right(self, model: str, rule: str) -> list[bool]:
        """Return whether each answer of a model, read by a rule, exactly equals the true value."""
        exact = METRICS.build("exact-match")
        assert isinstance(exact, MeanMetric)
        return [bool(value) for value in exact.values(self.predictions(model, rule)).tolist()]

    def _comparisons(self, metric: Metric) -> Iterator[AnswerComparison]:
        reference, *others = self.literals
        for rule in self.literals[reference]:
            base = self.predictions(reference, rule)
            for model in others:
                answers = self.predictions(model, rule)
                p = detectable = None
                if isinstance(metric, MeanMetric):
                    rows = np.flatnonzero(metric.counted(answers) & metric.counted(base))
                    p, detectable = _test(metric, answers.take(rows), base.take(rows))
                yield AnswerComparison(
                    rule=rule,
                    model=model,
                    reference=reference,
                    difference=paired(metric, [answers], [base]).figure,
                    p=p,
                    p_holm=None,
                    detectable=detectable,
                )


@quiet
def _test(
    metric: MeanMetric, first: Predictions, second: Predictions
) -> tuple[float | None, float | None]:
    """Return the p-value and the detectable difference between two models on the same rows."""
    if not len(first.truth):
        return None, None
    ours, theirs = (np.asarray(metric.values(answers), np.float64) for answers in (first, second))
    differences = ours - theirs
    if not np.isfinite(differences).all():
        return None, None
    return (
        permutation_test(differences, first.sample),
        detectable_difference(differences, first.sample),
    )


@dataclass(frozen=True)
class Scoring:
    """Options for scoring answers.

    rules
        Rules that choose which number in a generated text is the answer.
    truth_rule
        Rule that finds the number in the text of a true value.
    policy
        Numeral policy for reading answers and true values.
    metrics
        Metrics to report.
    compared_by
        Metric by which models are compared.
    requirements
        Thresholds that each model must meet when its answers are read by the first rule.
    skip
        True to leave out rows without a true value, instead of raising DataError.
    """

    rules: Sequence[AnswerRule]
    truth_rule: AnswerRule
    policy: NumeralPolicy
    metrics: Sequence[Metric]
    compared_by: Metric
    requirements: Sequence[Requirement]
    skip: bool

    @classmethod
    def of(cls, config: Config) -> "Scoring":
        """Return the options that correspond to the settings of ``numtok score``.

        Raises UsageError if a rule, policy or metric is unknown, if a metric does not apply to
        answers, or if a threshold is malformed.
        """
        scoring = cls(
            rules=[AnswerRule.parse(spec) for spec in dict.fromkeys(config.rules or DEFAULT_RULES)],
            truth_rule=AnswerRule.parse(config.truth_rule),
            policy=POLICY if config.numerals is None else NumeralPolicy.parse(config.numerals),
            metrics=_each_once(config.metrics or METRICS_OF_ANSWERS),
            compared_by=METRICS.build(config.compare_by),
            requirements=[Requirement.parse(text) for text in config.require],
            skip=config.on_error == "skip",
        )
        for metric in scoring.all_metrics:
            if metric.measures != "numbers" or not {*metric.needs} <= _COLUMNS:
                raise UsageError(
                    f"metric {spec_of(metric)!r} does not apply to answers of any model. Choose "
                    f"one such as {METRICS_OF_ANSWERS[1]} or relative-error-over"
                )
        return scoring

    @property
    def comma(self) -> bool:
        """True if answers and true values have decimal commas."""
        return self.policy.decimal == "comma"

    @property
    def all_metrics(self) -> list[Metric]:
        """Distinct metrics to compute: the reported metrics, the metric by which models are
        compared, and the metrics with thresholds."""
        required = [requirement.key for requirement in self.requirements]
        return _each_once([*map(spec_of, (*self.metrics, self.compared_by)), *required])

    def read(self, answers: Answers) -> tuple[Answers, ReadAnswers]:
        """Extract the numbers from answers and true values. Return the answers to be scored, and
        the numbers.

        Raises DataError if a row has no true value, unless such rows are skipped.
        """
        answers, truth = read_true_values(answers, self.truth_rule, self.policy, skip=self.skip)
        return answers, ReadAnswers.read(truth, answers.answers, self.rules, self.policy)

    def score(self, answers: Answers, numbers: ReadAnswers) -> AnswerScores:
        """Return the scores of answers. The arguments are the two results of :meth:`read`."""
        clusters = numbers.truth.clusters
        first = self.rules[0].spec
        return AnswerScores(
            rows=len(answers.ids),
            clusters=None if clusters is None else len(np.unique(clusters)),
            numbers=self.policy.spec(),
            metrics={spec_of(metric): metric.better for metric in self.metrics},
            models=numbers.scores(self.metrics),
            compared_by=spec_of(self.compared_by),
            comparisons=numbers.comparisons(self.compared_by),
            requirements=[
                requirement.judge(
                    model,
                    figures(
                        [METRICS.build(requirement.key)],
                        numbers.predictions(model, first),
                        resamples=1,
                    ),
                )
                for requirement in self.requirements
                for model in numbers.literals
            ],
            left_out=dict(answers.left_out),
        )


def _each_once(specs: Sequence[str]) -> list[Metric]:
    return list({spec_of(metric): metric for metric in map(METRICS.build, specs)}.values())
