"""Probe artifacts, written and read: measurements of a model as a function of its numbers.

A *probe* artifact holds ``probe.json`` (a :class:`Probe`) and ``points.parquet``, whose columns
depend on the kind of result (:class:`Along`, :class:`Embedding`, :class:`TokenComponents`,
:class:`Confidence`, :class:`ProbeCurves`). A probe along numbers also has ``seen.parquet``, the
distinct values of the target in the train split.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.errors import PluginError
from numtok.reports import QUANTILES, Configuration, Figure, Figures, quantile_column
from numtok.store.artifact import Artifact
from numtok.store.columns import check_nulls, check_schema, read_columns
from numtok.store.draft import Draft
from numtok.stored_json import Natural, StoredJson

PROBE = "probe"  # the kind of artifact
PROBE_FILE, POINTS_FILE, SEEN_FILE = "probe.json", "points.parquet", "seen.parquet"
SCHEMA = 1  # of probe.json


class Jump(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Largest step of the prediction between neighbors on the x axis.

    If several rows have the same x, their median prediction counts.

    from_x, to_x, from_y, to_y
        Ends of the step.
    of_range
        Step as a fraction of the range of the predictions.
    of_median_step
        Step as a multiple of the median step; None if that is 0, as for a model that snaps.
    of_truth
        Step as a multiple of the largest step of the true value; None along an input, where that is
        unknown.
    """

    size: float
    from_x: float
    to_x: float
    from_y: float
    to_y: float
    of_range: float
    of_median_step: float | None
    of_truth: float | None


class Saturation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plateaus at the ends of the output.

    low, high
        Fraction of the predictions at or below the smallest value seen in training, and at or above
        the largest; None if the train split is not available.
    still_low, still_high
        Fraction of the x axis, from its lower and its upper end, over which the prediction stays
        within a hundredth of its range; 1 if it never moves.
    """

    low: Figure | None
    high: Figure | None
    still_low: float
    still_high: float


class Repeated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fraction of the predictions that equal a value of this target seen in training.

    rounded, exact
        Of predictions rounded to a few significant digits, as the seen values are; of exact ones.
    floor_rounded, floor_exact
        The same fraction of the true values; along an input, of as many values spread evenly over
        the range of the predictions. Near 0 on an honest out-of-distribution split.
    """

    rounded: Figure
    exact: Figure
    floor_rounded: Figure
    floor_exact: Figure


class Top(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that is probable somewhere along the x axis, and its highest probability."""

    literal: str
    value: float | None
    most: float


class Along(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="samples", kw_only=True):
    """Predictions of one target along numbers: its true value, or one input number.

    Columns of the points, in order of x: ``id``, ``x``, ``truth`` (null along an input),
    ``prediction`` (null if invalid), ``prediction_literal``, ``q05`` ... ``q95`` of the predictive
    distribution if it has quantiles, and ``log_p_0`` ..., one for each of ``top``.

    number
        Index of the swept number in the row; None along the true value.
    rows, invalid
        Number of predictions; fraction without a valid one.
    distinct, distinct_rounded
        Number of distinct predictions, exact and rounded.
    digits
        Significant digits of rounded values, also in ``repeated``.
    slope
        Slope of the least-squares line of the prediction on x.
    seen
        Number of distinct values in the train split; None if that is not available.
    errors
        Along the true value: ``mae`` and ``mse`` of the model, of the seen value nearest to the
        true one, and of the best constant (the median of the true values for mae, their mean for
        mse).
    top_of
        The numbers that ``top`` was selected from.
    """

    data: str
    split: str
    target: str
    row: str | None
    number: Natural | None
    low: float
    high: float
    rows: Natural
    invalid: Figure
    distinct: Natural
    distinct_rounded: Natural
    digits: Natural
    jump: Jump | None
    slope: Figure
    saturation: Saturation | None
    repeated: Repeated | None
    seen: Natural | None
    errors: dict[str, Figures]
    top: list[Top]
    top_of: str


class Embedding(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="embedding", kw_only=True
):
    """The embedding of a number after the first layer norm, projected on one direction.

    Columns of the points: ``x`` (the normalized input), ``mean``, ``deviation`` (standard
    deviation), ``low`` and ``high`` of the projection over the positions of the context, and
    ``formula``.

    direction
        Direction of the projection.
    positions
        Number of positions.
    formula
        Formula of the column ``formula``; None if the embedding is not a multiple of one vector. It
        has two fitted constants, ``offset`` and ``height``; ``scale`` is r and ``cosine`` the
        cosine between position and direction, both means over the positions, with their standard
        deviations.
    residual
        Root mean square of mean - formula, as a fraction of the range of ``mean``.
    half
        Smallest x above 0 at which ``mean`` is halfway from its value at 0 to that at the upper
        end; None if it does not level off, or the range of x does not contain 0.
    """

    direction: str
    positions: Natural
    low: float
    high: float
    formula: str | None
    half: float | None
    scale: float | None = None
    scale_deviation: float | None = None
    cosine: float | None = None
    cosine_deviation: float | None = None
    offset: float | None = None
    height: float | None = None
    residual: float | None = None


class TokenComponents(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="pca", kw_only=True
):
    """Principal components of the embeddings of the number tokens that are numbers themselves.

    Columns of the points, by ascending value: ``token``, ``value``, ``pc1`` ... ``pc3``.

    explained
        Fraction of the variance that each component explains.
    by_value, by_size
        Spearman's rank correlation of each component with the value, and with its magnitude (or the
        logarithm of that: ranks are the same).
    neighbours
        Mean distance between neighbors in value over the mean distance of all pairs: about 1 if the
        embedding ignores the order of values.
    """

    tokens: Natural
    explained: list[float]
    by_value: list[float | None]
    by_size: list[float | None]
    neighbours: float | None


class Confidence(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="confidence", kw_only=True
):
    """Confidence of a model in a text as one of its numbers, the answer to a question, changes.

    Columns of the points, by ascending value: ``x``, the number, and ``confidence``.

    asked
        The text, or a description of the row.
    number
        Index of the changed number.
    measures
        Description of the confidence: a probability, or a log-likelihood in nats.
    label
        Label whose probability it is; None for a likelihood.
    at
        Number with the highest confidence, the first of several.
    variation
        Sum of the absolute steps of the confidence over its range: 1 for a curve that only rises or
        only falls, 2 for one that rises and falls back, and 2 more for each further rise and fall
        of that height. None if the confidence is constant.
    """

    asked: str
    number: Natural
    measures: str
    label: str | None
    low: float
    high: float
    values: Natural
    least: float
    most: float
    at: float
    variation: float | None


class ProbeCurves(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="curves"):
    """Result of a probe without a summary type of its own: values by name.

    columns
        Columns of the points, all numeric.
    """

    columns: list[str]
    figures: dict[str, float | None]


Summary = Along | Embedding | TokenComponents | Confidence | ProbeCurves


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A probe of one model.

    configuration, seed
        As in a report.
    form
        Name of the probe.
    """

    model: str
    name: str
    scheme: str
    configuration: Configuration
    seed: int
    form: str
    found: Summary
    notes: list[str]
    schema: int = SCHEMA


_QUANTILES = tuple(map(quantile_column, QUANTILES))
_SEEN = pa.schema({"value": pa.float64()})  # schema of seen.parquet
#: Columns of points in which a value may be missing.
MAY_LACK = ("truth", "prediction", "prediction_literal", "formula", *_QUANTILES)


def points_schema(summary: Summary) -> pa.Schema:
    """Return the schema of points.parquet."""
    texts: tuple[str, ...] = ()
    if isinstance(summary, Along):
        texts = ("id", "prediction_literal")
        names = ["id", "x", "truth", "prediction", "prediction_literal"]
        names += [*_QUANTILES, *(f"log_p_{k}" for k in range(len(summary.top)))]
    elif isinstance(summary, Embedding):
        names = ["x", "mean", "deviation", "low", "high", "formula"]
    elif isinstance(summary, TokenComponents):
        texts = ("token",)
        names = ["token", "value", *(f"pc{k + 1}" for k in range(len(summary.explained)))]
    elif isinstance(summary, Confidence):
        names = ["x", "confidence"]
    else:
        names = summary.columns
    return pa.schema({name: pa.string() if name in texts else pa.float64() for name in names})


_PROBE = StoredJson(name=PROBE_FILE, kind=Probe, newest=SCHEMA)


@dataclass(frozen=True, eq=False)
class LoadedProbe:
    """A probe artifact: its summary, its points, and the values of the target seen in training
    (None without such values).
    """

    ref: str
    probe: Probe
    points: pa.Table
    seen: pa.Table | None


def publish(
    draft: Draft, probe: Probe, points: pa.Table, seen: pa.Table | None, timing: Mapping[str, float]
) -> Artifact:
    """Write a probe and publish it.

    Raises PluginError unless the points have the columns of the summary.
    """
    wanted = points_schema(probe.found)
    if not points.schema.equals(wanted):
        got, expected = (_columns(schema) for schema in (points.schema, wanted))
        raise PluginError(f"probe {probe.form} must return points of {expected} (got {got})")
    for name in set(wanted.names) - set(MAY_LACK):
        if lost := points.column(name).null_count:
            raise PluginError(f"probe {probe.form} returned {lost:,} points without {name!r}")
    for name, table in ((POINTS_FILE, points), (SEEN_FILE, seen)):
        if table is not None:
            with files.Sink(draft.path / name) as sink:
                pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    _PROBE.write(draft.path, probe)
    return draft.publish({"points": len(points)}, timing)


def read(artifact: Artifact) -> LoadedProbe:
    """Read a probe; raises StoreError if it is damaged or of a newer schema."""
    names = {output.path for output in artifact.files()}
    probe = _PROBE.read(artifact.path)
    return LoadedProbe(
        artifact.ref,
        probe,
        _table(artifact.path / POINTS_FILE, points_schema(probe.found)),
        _table(artifact.path / SEEN_FILE, _SEEN) if SEEN_FILE in names else None,
    )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    table = read_columns(path, lambda actual: check_schema(path, actual, schema))
    check_nulls(path, table, MAY_LACK.__contains__)
    return table
