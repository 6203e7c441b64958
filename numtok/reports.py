"""Report artifacts, which ``eval`` writes and ``compare`` reads.

A *report* artifact contains ``report.json`` (a :class:`Report`) and ``predictions.parquet``
(:func:`predictions_schema`), with one row per predicted number, label or answer. Wall-clock times
vary between runs, so they are in ``timing.json``: ``train_seconds`` and ``eval_seconds``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from numtok.row import CLUSTER, GROUP
from numtok.stored_json import Natural, Scalar

if TYPE_CHECKING:
    import pyarrow as pa

REPORT = "report"  # the kind of artifact
REPORT_FILE, PREDICTIONS_FILE = "report.json", "predictions.parquet"
SCHEMA = 1  # of report.json
USUAL_BASELINES = (
    "quantization", "mean", "median", "length", "place", "field", "nearest", "linear", "boosted",
    "tfidf", "boosted-text",
)  # fmt: skip
#: Baselines computed from the true values, with what each predicts. They are not for ranking.
LIMITS = {
    "quantization": "the true value as the scheme rounds it",
    "nearest": "the training value closest to the true value",
}
FEW_CLASSES = 12  # up to this many labels, all pairs are listed; else this many frequent errors
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # stored for each predictive distribution
FIELD = "field"  # a column of predictions
BASELINE = "baseline_"  # prefix of the columns with predictions of baselines
INTERVAL_LEVEL = 0.9  # probability of the conformal intervals in predictions


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Value of one metric, with its bootstrap interval from ``low`` to ``high``.

    Undefined values are None. ``n`` is the number of predictions that the metric is computed from.
    """

    value: float | None
    low: float | None
    high: float | None
    n: Natural

    @property
    def excludes_zero(self) -> bool:
        """True if the interval is known and does not contain 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


#: What a model predicts and a metric scores. Answers are whole texts with one or more numbers.
Measures = Literal["numbers", "labels", "answers"]
Configuration = dict[str, Scalar]  # settings by name, for display
Figures = dict[str, Figure]  # metric values by metric spec, such as "r2"


class Costs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Cost of training a model.

    ``flops`` counts a multiplication and an addition as two operations.
    """

    samples: Natural
    tokens: Natural
    steps: Natural
    flops: float
    parameters: Natural
    embedding_parameters: Natural
    tokens_per_number: float


class Confused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cell of a confusion matrix: the number of rows with a given true and predicted label."""

    truth: str
    predicted: str
    rows: Natural


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Additional results of label models, part of a :class:`Report`.

    classes
        Labels in the train split.
    unseen
        Number of rows whose label is not in ``classes``. Their predictions count as wrong.
    unlabelled
        Number of rows without a label. They are not scored.
    confusion, complete
        All pairs of true and predicted labels if there are at most :data:`FEW_CLASSES` labels.
        Otherwise ``complete`` is False, and ``confusion`` contains only the :data:`FEW_CLASSES`
        most frequent errors.
    """

    classes: list[str]
    unseen: Natural
    unlabelled: Natural
    confusion: list[Confused]
    complete: bool


class AnswerTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Additional results of models that write answers, part of a :class:`Report`.

    longest
        Maximum number of tokens per answer.
    stopped
        Number of answers that were cut off at this maximum.
    """

    longest: Natural
    stopped: Natural


class BestBaseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The best baseline, and how the model differs from it.

    metric, value
        The metric by which it is the best, and its value.
    difference
        Metric of the model minus metric of the baseline, with a paired bootstrap interval.
    better
        Which of the two is significantly better; None if the interval contains 0 or is unknown.
    """

    name: str
    metric: str
    value: float
    difference: Figure
    better: Literal["model", "baseline"] | None


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Evaluation of one model on one split, stored as ``report.json``.

    model, data
        REFs (``name@version``) of the model and of the encoded data. ``name`` is the model's name.
    training_data
        REF of the training data; None if the report does not record it.
    configuration
        Training settings without the seed: scheme, embedder, head, objective, preset, budget, ...
        Reports with equal configuration, data and decoding belong to one experiment and differ only
        in the seed.
    decoding
        How predictions were decoded: fill, decode, point, and the kind of distribution.
    numbers
        Number of predicted numbers, or of rows with a label or an answer.
    invalid
        Fraction of invalid predictions. A valid prediction is exactly one finite number or, for
        answers, has the required form.
    off_grammar
        Under constrained decoding, the fraction of predictions whose unconstrained choice was not a
        well-formed number; otherwise None.
    metrics
        Metrics over all numbers. An invalid prediction is scored as ``train_mean`` or, if rows have
        several targets, as the mean of its target in ``target_means``.
    valid_metrics
        Metrics over the valid predictions only; empty if all are valid.
    by_target, groups
        Metrics per target name, and per value of each group.
    fields
        Skill, R2 and errors per field, keyed by field name. Fields are in the order in which they
        appear in the text; numbers outside all fields come last. Empty if fields were not searched
        for or none were found.
    baselines, target_baselines
        Metrics of baselines that need no model (mean, linear, ...), over all numbers and, if there
        are several targets, per target. They include :data:`LIMITS`, which are computed from the
        true values.
    best_baselines
        Best baseline of each target, or of all numbers under the key "" if there are not several
        targets. Empty if no baseline predicts all of these numbers.
    notes
        Caveats about the results, one sentence each.
    labels
        Additional results of label models; None for other models.
    texts
        Additional results of models that write answers; None for other models.
    """

    model: str
    name: str
    data: str
    split: str
    scheme: str
    configuration: Configuration
    seed: int
    decoding: Configuration
    rows: Natural
    numbers: Natural
    invalid: float
    off_grammar: float | None
    train_mean: float | None
    metrics: Figures
    valid_metrics: Figures
    by_target: dict[str, Figures]
    groups: dict[str, dict[str, Figures]]
    baselines: dict[str, Figures]
    costs: Costs
    notes: list[str]
    schema: int = SCHEMA
    target_means: dict[str, float] = {}
    target_baselines: dict[str, dict[str, Figures]] = {}
    best_baselines: dict[str, BestBaseline] = {}
    labels: Labels | None = None
    texts: AnswerTexts | None = None
    training_data: str | None = None
    fields: dict[str, Figures] = {}

    @property
    def measures(self) -> Measures:
        """Kind of predictions that the report scores: numbers, labels or answers."""
        if self.texts is not None:
            return "answers"
        return "numbers" if self.labels is None else "labels"


def quantile_column(level: float) -> str:
    """Return the name of the column that contains the quantiles at a given level.

    >>> quantile_column(0.05)
    'q05'
    """
    return f"q{round(100 * level):02d}"


_COLUMNS: dict[Measures, dict[str, str]] = {
    "numbers": {
        "id": "string",
        "target": "string",
        "position": "int32",
        "truth_literal": "string",
        "truth": "double",
        "prediction_literal": "string",
        "prediction": "double",
        "valid": "bool",
        "on_grammar": "bool",
        "log_density": "double",
        "crps": "double",
        **{quantile_column(level): "double" for level in QUANTILES},
        "pit": "double",
        "log_density_tailed": "double",
        "log_interval": "double",
        "token_nll": "double",
        "outside": "bool",
        "log_range": "double",
        FIELD: "string",
        "field_median": "double",
        "interval_low": "double",
        "interval_high": "double",
    },
    "labels": {
        "id": "string",
        "label": "string",
        "prediction": "string",
        "log_probability": "double",
    },
    "answers": {"id": "string", "answer": "string", "prediction": "string", "ended": "bool"},
}


def predictions_schema(
    groups: Sequence[str], *, measures: Measures = "numbers", clusters: bool = False
) -> "pa.Schema":
    """Return the Arrow schema of ``predictions.parquet``.

    ``groups`` are the group names in the data rows, and ``clusters`` is true if data rows have
    clusters. For numbers there is one row per predicted number, in the order of the data:

    ==================  ====================================================================
    id                  string, ID of the data row
    target              string, target name; "number" if the row has no targets
    position            int32, index of the number within the row
    truth_literal       string, true number as written. For a number that is not a target and
                        whose tokens do not keep its digits, Python's repr instead, with
                        integers written without a decimal point
    truth               float64, true value
    prediction_literal  string, prediction as the scheme writes it; null if invalid
    prediction          float64, predicted value; null if invalid
    valid               bool, whether the prediction is one finite number
    on_grammar          bool, whether the unconstrained choice was also a well-formed number;
                        null without constrained decoding
    log_density         float64, nats, log density of the true value in raw units; null if the
                        model has no density
    crps                float64, CRPS of the predictive distribution; null without one
    q05 ... q95         float64, quantiles of the distribution; null without one
    pit                 float64, cumulative probability at the true value; null without one
    log_density_tailed  float64, nats, log_density with explicit tails outside the range of the
                        train split; null if that range is not known
    log_interval        float64, nats, log probability of the true value's rounding interval:
                        half a unit of its last digit to each side; null if not known
    token_nll           float64, nats, mean cross-entropy of the true value's tokens under the
                        grammar; null if the model does not predict tokens
    outside             bool, whether the true value is outside the range of its target in the
                        train split; null if that range is not available
    log_range           float64, log of the width of that range; null for text models
    field               string, field name, or ``(others)`` for numbers outside all fields; null
                        if fields were not searched for or not found
    field_median        float64, median of the field in the train split; null if it has none
    interval_low        float64, ends of the conformal 90% interval, infinite if there are too
    interval_high       few calibration rows; null if intervals are not calibrated
    baseline_*          float64, prediction of each baseline that does not depend on the true
                        value; null if invalid. Only if the report has baselines
    group_*             string, groups of the data row
    cluster             string, cluster of the data row; only with ``clusters``
    ==================  ====================================================================

    For labels there is one row per data row, with id, groups, cluster and:

    ==================  ====================================================================
    label               string, true label; null if the row has none
    prediction          string, most probable label
    log_probability     float64, nats, log probability of the true label; null if that label is
                        not in the train split
    ==================  ====================================================================

    For answers there is one row per data row, with id, groups, cluster and:

    ==================  ====================================================================
    answer              string, true answer as written in the text
    prediction          string, answer that the model wrote
    ended               bool, whether the model ended the answer before the token limit
    ==================  ====================================================================
    """
    import pyarrow as pa

    row_columns = [*(GROUP + name for name in groups), *[CLUSTER] * clusters]
    types = _COLUMNS[measures] | dict.fromkeys(row_columns, "string")
    return pa.schema({name: pa.type_for_alias(alias) for name, alias in types.items()})
