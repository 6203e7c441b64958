"""Probe artifacts, which contain measurements of how a model responds to numbers.

A *probe* artifact contains ``probe.json`` (a :class:`Probe`) and ``points.parquet``, whose columns
depend on the kind of result (:class:`Along`, :class:`Embedding`, :class:`TokenComponents`,
:class:`Confidence`, :class:`ProbeCurves`). Artifacts with predictions of a target also contain
``seen.parquet``, the distinct values of the target in the train split.
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

    If several rows have the same x, their median prediction is used.

    from_x, to_x, from_y, to_y
        Ends of the step.
    of_range
        Step as a fraction of the range of the predictions.
    of_median_step
        Step as a multiple of the median step; None if the median step is 0.
    of_truth
        Step as a multiple of the largest step of the true value; None if the x axis is an input
        number, because the true values are unknown in that case.
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
    """Saturation of the predictions at the limits of the training values and at the ends of the x
    axis.

    low, high
        Fraction of the predictions at or below the smallest value seen in training, and at or above
        the largest; None if the train split is not available.
    still_low, still_high
        Fraction of the x axis, starting at its lower or its upper end, in which the prediction
        changes by at most a hundredth of its range; 1 if it never changes by more.
    """

    low: Figure | None
    high: Figure | None
    still_low: float
    still_high: float


class Repeated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fraction of the predictions that equal a value of the target seen in training.

    rounded, exact
        Fraction after the predictions and the values seen in training are rounded to a few
        significant digits, and fraction without rounding.
    floor_rounded, floor_exact
        The same fractions for the true values instead of the predictions, as a reference. If the
        x axis of the curve is an input number, there are no true values; the same number of values
        evenly spaced over the range of the predictions is used instead. Both floors are near 0 if
        the split is truly out of distribution.
    """

    rounded: Figure
    exact: Figure
    floor_rounded: Figure
    floor_exact: Figure


class Top(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that is probable somewhere along the x axis. ``most`` is its highest probability."""

    literal: str
    value: float | None
    most: float


class Along(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="samples", kw_only=True):
    """Result of the probes ``examples`` and ``vary``: predictions of one target as x changes.

    x is the true value of the target, or one input number in a row. The probe's table of points has
    one row per prediction, in order of x, and the columns ``id``, ``x``, ``truth`` (null if x is an
    input number), ``prediction`` (null if invalid), ``prediction_literal``, ``q05`` ... ``q95``
    (null if there are no quantiles), and ``log_p_0`` ..., one for each number in ``top``.

    number
        Index of the input number in the row; None if x is the true value.
    rows, invalid
        Number of predictions, and the fraction of invalid ones.
    distinct, distinct_rounded
        Number of distinct predictions, without and with rounding.
    digits
        Significant digits of rounded values, also in ``repeated``.
    slope
        Slope of the least-squares line of the prediction on x.
    seen
        Number of distinct values of the target in the train split; None if the split is not
        available.
    errors
        If x is the true value: ``mae`` and ``mse`` of the model, of the training value nearest to
        the true value, and of the best constant (the median of the true values for ``mae``, their
        mean for ``mse``).
    top, top_of
        The most probable numbers, and a description of the set that they were selected from.
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
    """Result of the probe ``embedding``: a number's embedding, projected onto one direction.

    The embedding is taken after the first layer norm. The probe's table of points has the columns
    ``x`` (the normalized input), ``formula``, and ``mean``, ``deviation`` (standard deviation),
    ``low`` and ``high`` of the projection over the positions of the context.

    direction
        Description of the direction that the embedding is projected onto.
    positions
        Number of positions.
    formula
        Formula of the column ``formula``; None if the embedding is not a multiple of one vector.
        ``offset`` and ``height`` are the fitted constants in it, and ``scale`` is the r in it.
        ``cosine`` is the cosine between the embedding of a position and the direction. ``scale``
        and ``cosine`` are means over the positions, given with their standard deviations.
    residual
        Root mean square of mean - formula, as a fraction of the range of ``mean``.
    half
        Smallest x above 0 at which ``mean`` is halfway between its values at 0 and at the upper
        end; None if ``mean`` does not level off, or if the range of x does not contain 0.
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
    """Result of the probe ``pca``: principal components of the embeddings of number tokens.

    The probe's table of points has one row per token, in ascending order of value, and the columns
    ``token``, ``value``, ``pc1`` ... ``pc3``.

    explained
        Fraction of the variance that each component explains.
    by_value, by_size
        Spearman's rank correlation of each component with the value, and with its magnitude (or the
        logarithm of the magnitude, which has the same ranks).
    neighbours
        Mean distance between the embeddings of tokens with adjacent values, divided by the mean
        distance over all pairs. It is about 1 if the embedding ignores the order of values.
    """

    tokens: Natural
    explained: list[float]
    by_value: list[float | None]
    by_size: list[float | None]
    neighbours: float | None


class Confidence(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="confidence", kw_only=True
):
    """Result of the probe ``confidence``: a model's confidence in a text as one number in it
    changes.

    The probe's table of points has the columns ``x`` (the number, in ascending order) and
    ``confidence``.

    asked
        The text, or a description of the row.
    number
        Index of the changed number.
    measures
        Description of the confidence: a probability, or a log-likelihood in nats.
    label
        Label whose probability is the confidence; None if the confidence is a likelihood.
    least, most
        Lowest and highest confidence.
    at
        Number with the highest confidence; the smallest such number if there are several.
    variation
        Sum of the absolute steps of the confidence, divided by its range: 1 for a curve that only
        rises or only falls, 2 for one that rises and falls back, and 2 more for each further rise
        and fall of the same height. None if the confidence is constant.
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
    """Result of a probe that has no specific result type, such as a probe in a plugin.

    columns
        Column names in the table of points. All columns are numeric.
    figures
        Individual values, keyed by name; None for an undefined value.
    """

    columns: list[str]
    figures: dict[str, float | None]


Summary = Along | Embedding | TokenComponents | Confidence | ProbeCurves


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Content of ``probe.json``: the result of probing one model.

    configuration, seed
        Training settings of the model, and its seed, as in :class:`numtok.reports.Report`.
    form
        Name of the probe.
    found
        Result of the probe.
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
    """Return the Arrow schema of ``points.parquet``, which depends on the kind of result."""
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
    """Content of a probe artifact.

    seen
        Values of the target seen in training; None if the artifact does not contain them.
    """

    ref: str
    probe: Probe
    points: pa.Table
    seen: pa.Table | None


def publish(
    draft: Draft, probe: Probe, points: pa.Table, seen: pa.Table | None, timing: Mapping[str, float]
) -> Artifact:
    """Write the result of a probe to a draft, and publish it.

    Raises PluginError if ``points`` does not have the columns that the result requires, or if
    required values are missing.
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
    """Read a probe artifact. Raises StoreError if it is damaged or has another schema version."""
    names = {output.path for output in artifact.files()}
    probe = artifact.read(_PROBE)
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
