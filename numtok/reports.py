"""What ``eval`` writes and ``compare`` reads: a report, a row for each number or label predicted.

A *report* artifact holds ``report.json`` (a :class:`Report`) and ``predictions.parquet``
(:func:`predictions_schema`). Clocks are no content, so seconds lie in its ``timing.json`` under
``train_seconds`` and ``eval_seconds``.
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
    "quantisation", "mean", "length", "place", "slot", "nearest", "linear", "boosted",
)  # fmt: skip
LIMITS = ("quantisation", "nearest")  # baselines computed from the true values: no rivals of models
FEW_CLASSES = 12  # of which all pairs are told; of more, so many errors
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of each predictive distribution that is kept
SLOT = "slot"  # a column of predictions


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One measured figure with its bootstrap interval; None where it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    n: Natural


#: What is predicted, and what a metric is of; answers are whole texts, with several numbers or one.
Measures = Literal["numbers", "labels", "answers"]
Configuration = dict[str, Scalar]  # what was asked for, by its name, for people
Figures = dict[str, Figure]  # by the metric's spec, such as "r2"


class Costs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model cost. ``flops`` of training count a multiplication and an addition as two."""

    samples: Natural
    tokens: Natural
    steps: Natural
    flops: float
    parameters: Natural
    embedding_parameters: Natural
    tokens_per_number: float


class Confused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many rows of one label were predicted another one, or the same."""

    truth: str
    predicted: str
    rows: Natural


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a report of labels has besides.

    classes
        Those of the train split.
    unseen
        Rows whose label is none of these. They count as wrong.
    unlabelled
        Rows without a label. They are not scored.
    confusion, complete
        All pairs that occurred, by truth and prediction, where there are at most
        :data:`FEW_CLASSES` labels; else (not ``complete``) as many of the most frequent errors.
    """

    classes: list[str]
    unseen: Natural
    unlabelled: Natural
    confusion: list[Confused]
    complete: bool


class AnswerTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a report of answers has besides: after how many tokens answers were stopped that had
    not ended (``longest``), and how many that were (``stopped``)."""

    longest: Natural
    stopped: Natural


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model on one split.

    model, data
        REFs of the model and of the encoded data; ``name`` is the model's name.
    training_data
        REF of what the model learnt from; None in a report that does not say.
    configuration
        What was trained, its seed apart: scheme, embedder, head, objective, preset, budget, ...
        Reports with equal configurations, data and decoding are seeds of one experiment.
    decoding
        How numbers were read off: fill, decode, point, and what the distribution is.
    numbers, invalid, off_grammar
        Numbers asked for, or rows with a label or an answer; the share without a valid prediction
        (of answers those in which none of the right form is found); under
        constrained decoding the share in which the unconstrained choice would have been no
        well-formed number.
    metrics
        Over all numbers; an invalid prediction counts as ``train_mean``, or, where rows have
        several targets, as the mean of its target in ``target_means``.
    valid_metrics
        Over the valid ones alone; empty where all are valid.
    by_target, groups
        The same for each target name, and for each value of each group.
    slots
        The skill, R2 and errors of each slot, by its name and in the order of the text, numbers of
        no slot last; empty where no slots were looked for or found.
    baselines, target_baselines
        What needs no model: mean, linear, ..., and the limits that are made of the truth,
        quantisation and nearest (:data:`LIMITS`); and the same for each of several targets.
    notes
        What a reader must know: one sentence each.
    labels
        Of labels; None where numbers were predicted, or answers.
    texts
        Of answers that were written as texts; None where numbers were predicted, or labels.
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
    labels: Labels | None = None
    texts: AnswerTexts | None = None
    training_data: str | None = None
    slots: dict[str, Figures] = {}

    @property
    def measures(self) -> Measures:
        """What was predicted."""
        if self.texts is not None:
            return "answers"
        return "numbers" if self.labels is None else "labels"


def quantile_column(level: float) -> str:
    """The column of one quantile.

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
        SLOT: "string",
        "slot_median": "double",
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
    """The columns of predictions.parquet, one row for each number, in the order of the data.

    ==================  ====================================================================
    id                  string, of the sample
    target              string, name of the target; "number" where a row has no targets
    position            int32, index of the number in the row
    truth_literal       string, the digits as written; of a number that is no target and whose
                        tokens do not keep them, Python's repr, integers without a point
    truth               float64, its value
    prediction_literal  string, as the scheme writes the prediction; null if invalid
    prediction          float64, null if invalid
    valid               bool, the prediction is one finite number
    on_grammar          bool, the unconstrained choice was a well-formed number too; or null
    log_density         float64, nats, of the truth in raw units; null where there is none
    crps                float64, of the predictive distribution; null likewise
    q05 ... q95         float64, its quantiles; null likewise
    pit                 float64, its probability of the truth or less; null likewise
    log_density_tailed  float64, as log_density, but with stated tails outside the range of the
                        train split; null where the distribution needs none
    log_interval        float64, nats: of the interval that the truth stands for, half a unit of
                        its last digit to each side; null where that or the density is not known
    token_nll           float64, nats: the mean cross-entropy of the truth's tokens, given what
                        the grammar allows; null where it is not said by tokens
    outside             bool, the truth is outside the range of its target in the train split;
                        null where that is not at hand
    log_range           float64, of how wide that range is; null for texts
    slot                string, name of the slot, ``(others)`` for numbers of no slot; null where
                        no slots were looked for or found
    slot_median         float64, median of the slot in the train split; null where it has none
    group_*             string, as in the data
    cluster             string, likewise; only with ``clusters``
    ==================  ====================================================================

    Where labels are predicted, one row for each row of data, there are id, groups and cluster, and

    ==================  ====================================================================
    label               string, the true one; null where the row has none
    prediction          string, the most probable label
    log_probability     float64, nats, of the true label; null where training never saw it
    ==================  ====================================================================

    and likewise, where whole answers are written,

    ==================  ====================================================================
    answer              string, the true one, as it stands in the text
    prediction          string, what the model wrote
    ended               bool, the model ended it; else it was stopped
    ==================  ====================================================================
    """
    import pyarrow as pa

    of_rows = [*(GROUP + name for name in groups), *[CLUSTER] * clusters]
    types = _COLUMNS[measures] | dict.fromkeys(of_rows, "string")
    return pa.schema({name: pa.type_for_alias(alias) for name, alias in types.items()})
