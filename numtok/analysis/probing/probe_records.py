"""Probe artifacts, written and read: a model as a function of its numbers, measured.

A *probe* artifact holds ``probe.json`` (a :class:`Probe`) and ``points.parquet``, whose columns
depend on what was found (:class:`Along`, :class:`Embedding`, :class:`TokenComponents`,
:class:`Confidence`, :class:`ProbeCurves`); one along numbers also ``seen.parquet``, the different
values of the target in the train split.
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
    """The largest step of the prediction between neighbours on the x axis.

    Where several rows have one x, their median prediction counts.

    from_x, to_x, from_y, to_y
        Where it is.
    of_range
        Its share of the range of the predictions.
    of_median_step
        How many times the median step; None where that is 0, as of a model that snaps.
    of_truth
        How many times the largest step of the truth; None along an input, where none is known.
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
    """Whether the output is stuck at its ends.

    low, high
        The share of the predictions at or below the smallest value seen in training, and at or
        above the largest; None where the train split is not at hand.
    still_low, still_high
        The share of the x axis, from its lower and its upper end on, over which the prediction
        stays within a hundredth of its range; 1 where it never moves.
    """

    low: Figure | None
    high: Figure | None
    still_low: float
    still_high: float


class Repeated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of predictions that are a value of this target seen in training.

    rounded, exact
        Of the predictions, both rounded to a few significant digits, and as they are.
    floor_rounded, floor_exact
        The same of the truths; along an input of as many values, spread evenly over the range of
        the predictions. On an honest split out of distribution it is near 0.
    """

    rounded: Figure
    exact: Figure
    floor_rounded: Figure
    floor_exact: Figure


class Top(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that is probable somewhere along the x axis, and the most its probability is."""

    literal: str
    value: float | None
    most: float


class Along(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="samples", kw_only=True):
    """Predictions of one target along numbers: its truth, or one number that goes in.

    Columns of the points, in order of x: ``id``, ``x``, ``truth`` (null along an input),
    ``prediction`` (null if invalid), ``prediction_literal``, ``q05`` ... ``q95`` of the predictive
    distribution where it has quantiles, and ``log_p_0`` ... , one for each of ``top``.

    number
        The swept number's place in the row; None along the truth.
    rows, invalid
        How many predictions; the share without a valid one.
    distinct, distinct_rounded
        Different predictions: as they are, and rounded.
    digits
        Significant digits of what is rounded, there and in ``repeated``.
    slope
        Least squares of the prediction on x.
    seen
        How many different values the train split has; None where it is not at hand.
    errors
        Along the truth: ``mae`` and ``mse`` of the model, of the seen value nearest to the truth,
        and of the best constant, which is the median of the truths for mae, their mean for mse.
    top_of
        Among which numbers ``top`` was looked for.
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
    """The embedding of a number after the first layer norm, on one direction.

    Columns of the points: ``x`` (as it goes in: normalised), ``mean``, ``deviation``, ``low`` and
    ``high`` of the projection over the positions of the context, and ``formula``.

    direction
        What it is projected on.
    positions
        How many positions.
    formula
        What ``formula`` is; None where the embedding is no multiple of one vector. It has two
        fitted constants, ``offset`` and ``height``; ``scale`` is r, the mean over the positions,
        with their deviation, and ``cosine`` that between position and direction, likewise.
    residual
        The root mean square of mean - formula, as a share of the range of ``mean``.
    half
        The least x above 0 at which ``mean`` is half way from its value at 0 to that at the upper
        end; None where it does not level off towards that, or the range of x does not have 0 in it.
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
    """Principal components of the embeddings of those number tokens that are numbers.

    Columns of the points, by ascending value: ``token``, ``value``, ``pc1`` ... ``pc3``.

    explained
        Of each component, its share of the variance.
    by_value, by_size
        Of each component, Spearman's rank correlation with the value, and with its magnitude (or
        the logarithm of that: ranks are the same).
    neighbours
        The mean distance between neighbours in value over the mean distance of all pairs: about 1
        where the order of values means nothing to the embedding.
    """

    tokens: Natural
    explained: list[float]
    by_value: list[float | None]
    by_size: list[float | None]
    neighbours: float | None


class Confidence(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="confidence", kw_only=True
):
    """How sure a model is of a text as one of its numbers, the answer to a question, changes.

    Columns of the points, by ascending value: ``x``, the number, and ``confidence``.

    asked
        The text, or which row it is.
    number
        The changed number's place in it.
    measures
        In words, what confidence is: a probability, or a log-likelihood in nats.
    label
        That whose probability it is; None where it is a likelihood.
    at
        The number of which the model is most sure, the first of these.
    variation
        The sum of all steps of the confidence, up and down, over its range: 1 for a curve that only
        rises or only falls, 2 for one that rises and falls back again, and 2 more for each further
        rise and fall of that height. None where the confidence is the same everywhere.
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
    """What a probe found that has no summary of its own: figures by name.

    columns
        Those of the points, all of numbers.
    """

    columns: list[str]
    figures: dict[str, float | None]


Summary = Along | Embedding | TokenComponents | Confidence | ProbeCurves


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model, looked at in one way.

    configuration, seed
        As in a report.
    form
        The name of the probe.
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
_SEEN = pa.schema({"value": pa.float64()})  # of seen.parquet
#: Columns of points in which a value may be missing.
MAY_LACK = ("truth", "prediction", "prediction_literal", "formula", *_QUANTILES)


def points_schema(found: Summary) -> pa.Schema:
    """The columns of points.parquet."""
    texts: tuple[str, ...] = ()
    if isinstance(found, Along):
        texts = ("id", "prediction_literal")
        names = ["id", "x", "truth", "prediction", "prediction_literal"]
        names += [*_QUANTILES, *(f"log_p_{k}" for k in range(len(found.top)))]
    elif isinstance(found, Embedding):
        names = ["x", "mean", "deviation", "low", "high", "formula"]
    elif isinstance(found, TokenComponents):
        texts = ("token",)
        names = ["token", "value", *(f"pc{k + 1}" for k in range(len(found.explained)))]
    elif isinstance(found, Confidence):
        names = ["x", "confidence"]
    else:
        names = found.columns
    return pa.schema({name: pa.string() if name in texts else pa.float64() for name in names})


_PROBE = StoredJson(name=PROBE_FILE, kind=Probe, newest=SCHEMA)


@dataclass(frozen=True, eq=False)
class LoadedProbe:
    """One probe artifact: its summary, its points, and the values of the target seen in training
    (None where there are none)."""

    ref: str
    probe: Probe
    points: pa.Table
    seen: pa.Table | None


def publish(
    draft: Draft, probe: Probe, points: pa.Table, seen: pa.Table | None, timing: Mapping[str, float]
) -> Artifact:
    """Write a probe and publish it.

    Raises PluginError unless the points are those that the summary speaks of.
    """
    wanted = points_schema(probe.found)
    if not points.schema.equals(wanted):
        got, expected = (_columns(schema) for schema in (points.schema, wanted))
        raise PluginError(f"probe {probe.form} gives points of {got}, expected {expected}")
    for name in set(wanted.names) - set(MAY_LACK):
        if lost := points.column(name).null_count:
            raise PluginError(f"probe {probe.form} gives {lost:,} points without {name!r}")
    for name, table in ((POINTS_FILE, points), (SEEN_FILE, seen)):
        if table is not None:
            with files.Sink(draft.path / name) as sink:
                pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    _PROBE.write(draft.path, probe)
    return draft.publish({"points": len(points)}, timing)


def read(artifact: Artifact) -> LoadedProbe:
    """Raises StoreError for a probe that is damaged or of a newer schema."""
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
    found = read_columns(path, lambda there: check_schema(path, there, schema))
    check_nulls(path, found, MAY_LACK.__contains__)
    return found
