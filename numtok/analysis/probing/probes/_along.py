"""Predictions of one target as a number changes: the code that ``examples`` and ``vary`` share."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from numtok.analysis.probing import continuity
from numtok.analysis.probing.probe_records import Along, Top
from numtok.analysis.probing.probes.base import ProbeInputs, ProbeKind, ProbeResult
from numtok.analysis.probing.top_numbers import TopNumbers, top_numbers
from numtok.arrays import Bools, Floats, Ints
from numtok.data.reading.arrow import nullable
from numtok.declaration import setting
from numtok.encoding.dataset import EncodedSplit, clustered
from numtok.encoding.splits import check_split, read_learnt, read_split
from numtok.errors import UsageError, unknown
from numtok.evaluation.predict import AUTOREGRESSIVE, PARALLEL, Options, Predicted, Predictor
from numtok.evaluation.prediction_table import clusters_note
from numtok.evaluation.queries import Queries
from numtok.evaluation.seen_values import SeenValues
from numtok.metrics.base import share
from numtok.models.heads.base import default_point
from numtok.registry import name_of
from numtok.reports import QUANTILES, Figure, quantile_column
from numtok.store.artifact import Artifact
from numtok.training.model_files import LoadedModel
from numtok.training.model_json import TextModelFile, read_model_file

_BATCH = 256  # rows at a time, at most


@dataclass(frozen=True, eq=False)
class ProbedRows:
    """Rows to probe, their description in messages, and the rows that the model was trained on."""

    ref: str
    name: str
    samples: EncodedSplit
    train: EncodedSplit | None

    @property
    def description(self) -> str:
        """Description for messages: ``split 'test' of orbits-p1000@...``."""
        return f"split {self.name!r} of {self.ref}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """``n`` predictions to make for a target, in the order of x. ``chosen`` are the indices of
    their queries.

    ``clusters`` contains the cluster of each row, if rows have clusters.
    """

    target: str
    row: str | None
    number: int | None
    x: Floats
    truth: Floats | None
    ids: list[str]
    chosen: Ints
    clusters: "pa.Array[Any] | None" = None  # [n] strings


@dataclass(frozen=True, kw_only=True)
class AlongProbe(ProbeKind):
    """Base class for probes of predicted numbers. Its settings select the predictions."""

    reads_rows: ClassVar[bool] = True
    split: str = setting("test", "Split of the data.")
    target: str | None = setting(None, "Predicted target. Default: the only one.")
    top: int = setting(5, "Number of most probable numbers to track.", at_least=0)
    digits: int = setting(
        3, "Significant digits for comparing predictions with training values.", at_least=1
    )

    def check(self, model: Artifact, data: Artifact | None) -> None:
        file = read_model_file(model)
        if isinstance(file, TextModelFile) and file.settings.classes:
            raise UsageError(
                f"probe {name_of(self)} needs a model that predicts numbers, but {model.ref} "
                "predicts labels. To evaluate it: numtok eval"
            )
        if data is None:
            raise UsageError(f"probe {name_of(self)} needs encoded data after the model")
        check_split(data, self.split)

    def rows(self, inputs: ProbeInputs) -> ProbedRows:
        """Read the rows of the split."""
        assert inputs.data is not None  # by check
        train = read_learnt(inputs.loaded.artifact, inputs.data, inputs.find)
        samples = read_split(inputs.data, self.split)
        return ProbedRows(inputs.data.ref, self.split, samples, train)

    def target_in(self, samples: EncodedSplit, description: str, among: Bools | None = None) -> str:
        """Return the target chosen by the settings, or else the only target.

        If the mask ``among`` (bool[targets]) is given, only these targets are considered.
        """
        column = samples.target_name
        names = column if among is None else column.filter(pa.array(among))
        available = sorted(set(names.to_pylist()))
        if not available:
            raise UsageError(
                f"{description} has no targets, but this probe needs one. Encode rows with targets"
            )
        if self.target is None and len(available) > 1:
            raise UsageError(
                f"{description} has the targets {', '.join(available)}. Choose one with --target"
            )
        if self.target is not None and self.target not in available:
            raise unknown(f"target of {description}", self.target, available)
        return available[0] if self.target is None else self.target

    def result(
        self,
        predictor: Predictor,
        rows: ProbedRows,
        line: Line,
        notes: list[str],
        inputs: ProbeInputs,
    ) -> ProbeResult:
        """Predict the numbers of a line, and summarize the predictions."""
        every = predictor.run(partial(inputs.progress, "predicting"), inputs.note, inputs.devices)
        predicted = Predicted._make(column[line.chosen] for column in every)
        training = None if rows.train is None else SeenValues.of(rows.train, line.target)
        top = None
        if self.top and predictor.loaded.model.value_head is None:
            numbers = predictor.asked.numbers[line.chosen]
            top = top_numbers(predictor, numbers, self.top, inputs.devices, inputs.note)
        valid = predicted.valid
        y = predicted.values[valid]
        sample = None
        if line.clusters is not None:  # a row without a cluster is one of its own
            sample = clustered(np.arange(len(valid)), line.clusters)
            notes = [*notes, clusters_note(len(np.unique(sample[valid])))]
            sample = sample[valid]
        summary = Along(
            data=rows.ref,
            split=rows.name,
            target=line.target,
            row=line.row,
            number=line.number,
            low=float(line.x[0]),
            high=float(line.x[-1]),
            rows=len(line.x),
            invalid=share(int((~valid).sum()), len(valid)),
            distinct=continuity.distinct(y, 0),
            distinct_rounded=continuity.distinct(y, self.digits),
            digits=self.digits,
            seen=None if training is None else len(training.values),
            top=[] if top is None else _tops(top),
            top_of="" if top is None else top.among,
            **_measured(
                line.x[valid],
                y,
                line.truth is not None,
                training=training,
                digits=self.digits,
                sample=sample,
            ),
        )
        seen_table = None if training is None else pa.table({"value": training.values})
        notes = [*notes, *_notes(predictor, rows, line, training)]
        return ProbeResult(summary, _table(line, predicted, top), notes, seen_table)


def _measured(
    x: Floats,
    y: Floats,
    is_truth: bool,
    training: SeenValues | None,
    digits: int,
    sample: Ints | None,
) -> dict[str, Any]:
    """Return the fields of ``Along`` that need predictions at two or more x."""
    if len(np.unique(x)) < 2:
        nothing = dict.fromkeys(("jump", "saturation", "repeated"))
        return nothing | {"slope": Figure(None, None, None, len(x)), "errors": {}}
    along = continuity.path(x, y)
    floor = x if is_truth else continuity.evenly(y)
    return {
        "jump": continuity.jump(along, is_truth=is_truth),
        "slope": continuity.slope(x, y, sample),
        "saturation": continuity.saturation(along, y, training),
        "repeated": None if training is None else continuity.repeated(y, floor, training, digits),
        "errors": continuity.errors(x, y, training, sample) if is_truth else {},
    }


def _tops(top: TopNumbers) -> list[Top]:
    columns = zip(top.literals, top.values.tolist(), top.log_p.max(axis=0).tolist(), strict=True)
    return [
        Top(literal, value if np.isfinite(value) else None, float(np.exp(most)))
        for literal, value, most in columns
    ]


def _table(line: Line, predicted: Predicted, top: TopNumbers | None) -> pa.Table:
    """Return the points as a table with the columns of :class:`Along`."""
    truth = pa.nulls(len(line.x), pa.float64()) if line.truth is None else pa.array(line.truth)
    columns: dict[str, Any] = {
        "id": line.ids,
        "x": line.x,
        "truth": truth,
        "prediction": nullable(predicted.values),
        "prediction_literal": pa.array(predicted.literals.tolist(), pa.string()),
    }
    for index, level in enumerate(QUANTILES):
        columns[quantile_column(level)] = nullable(predicted.quantiles[:, index])
    if top is not None:
        columns |= {f"log_p_{k}": column for k, column in enumerate(top.log_p.T)}
    return pa.table(columns)


def predictor_of(loaded: LoadedModel, samples: EncodedSplit) -> Predictor:
    """Return a predictor with the default settings of ``numtok eval``."""
    fill = AUTOREGRESSIVE if loaded.model.objective.causal else PARALLEL
    options = Options(
        fill=fill, constrained=True, point=default_point(loaded.model.head), draws=0, batch=_BATCH
    )
    return Predictor(loaded, samples, options)


def once(queries: Queries, wanted: Bools) -> Ints:
    """Return the index of the first query for each number, among the queries that the mask
    ``wanted`` (bool[queries]) selects.

    A number can be queried twice, because it can be a target twice.
    """
    _, first = np.unique(queries.numbers[wanted], return_index=True)
    return np.flatnonzero(wanted)[first]


def is_of(indices: Ints, samples: EncodedSplit, target: str) -> Bools:
    """Return bool[k], True where an index belongs to a target named ``target``. The index -1 stands
    for no target."""
    names = np.array([*samples.target_name.to_pylist(), None], object)
    return np.asarray(names[indices] == target, np.bool_)


def _notes(
    predictor: Predictor, rows: ProbedRows, line: Line, training: SeenValues | None
) -> Iterator[str]:
    if rows.train is None:
        yield "The training data are not available: predictions are not compared with them."
    elif training is None:
        yield f"The train split has no target {line.target!r}, so nothing is compared with it."
    scheme = predictor.loaded.codec.scheme
    if scheme.tokens_per_number is None and predictor.options.fill == PARALLEL:
        yield "The number of masks reveals the length of each answer to the model."
