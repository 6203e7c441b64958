"""Predictions of one target along numbers: the rows of a split, or one number of a row."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.analysis.probing.continuity import (
    distinct,
    errors,
    evenly,
    jump,
    path,
    repeated,
    saturation,
    slope,
)
from numtok.analysis.probing.probes import Along, Top
from numtok.analysis.probing.swept_row import (
    evenly_spaced,
    range_of_place,
    swept_row,
    written_alike,
)
from numtok.analysis.probing.top_numbers import TopNumbers, top_numbers
from numtok.data.reading.arrow import nullable
from numtok.encoding.dataset import EncodedSplit, clustered
from numtok.errors import DataError, UsageError, unknown
from numtok.evaluation.predict import AUTOREGRESSIVE, PARALLEL, Note, Options, Predicted, Predictor
from numtok.evaluation.queries import Queries
from numtok.evaluation.report_files import clusters_note
from numtok.evaluation.scoring import Progress
from numtok.evaluation.seen_values import SeenValues
from numtok.metrics.base import share
from numtok.reports import QUANTILES, Figure, quantile_column
from numtok.training.model_files import LoadedModel, check_reads

LEAST = 3  # points
_BATCH = 256  # rows at a time, at most

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProbedRows:
    """Some rows, what they are called in messages, and the rows that the model learnt from."""

    ref: str
    name: str
    samples: EncodedSplit
    train: EncodedSplit | None

    @property
    def description(self) -> str:
        return f"split {self.name!r} of {self.ref}"


@dataclass(frozen=True)
class ProbeOptions:
    """What is looked at, and how closely.

    target
        Its name; None: the only one there is.
    top
        How many numbers whose probabilities are followed.
    digits
        Significant digits with which predictions are compared with what was seen.
    """

    target: str | None
    top: int
    digits: int


@dataclass(frozen=True)
class NumberSweep:
    """One number of one row, and its values.

    row
        Its id; None: the first row.
    low, high
        None: as the train split has it at that place, in rows of as many numbers.
    """

    row: str | None
    number: int
    low: float | None
    high: float | None
    points: int


class NumbersResult(NamedTuple):
    """The summary, its points, the values seen (``probes``), and what a reader must know."""

    found: Along
    points: "pa.Table"
    seen: "pa.Table | None"
    notes: list[str]


def over_samples(
    loaded: LoadedModel, split: ProbedRows, wanted: ProbeOptions, progress: Progress, note: Note
) -> NumbersResult:
    """Every truth of a target in a split, in ascending order, and its prediction.

    Raises UsageError for an unknown target, DataError for fewer than three different truths.
    """
    samples = split.samples
    target = _target(wanted.target, samples, split.description)
    check_reads(loaded, samples, split.description)
    predictor = _predictor(loaded, samples)
    asked = predictor.asked
    truth = samples.numbers[asked.numbers]
    mine = _is_of(asked.targets, samples, target)
    chosen = _once(asked, mine & np.isfinite(truth))
    chosen = chosen[np.argsort(truth[chosen], kind="stable")]
    if (different := len(np.unique(truth[chosen]))) < LEAST:
        raise DataError(
            f"{split.description} has {different} different values of target {target!r}; at least "
            f"{LEAST} are needed to see how predictions follow them"
        )
    predicted = predictor.run(partial(progress, "predicting"), note)
    rows = pa.array(asked.rows[asked.queries[chosen]])
    line = _Line(
        target,
        row=None,
        number=None,
        x=truth[chosen],
        truth=truth[chosen],
        ids=samples.ids.take(rows).to_pylist(),
        numbers=asked.numbers[chosen],
        predicted=Predicted._make(column[chosen] for column in predicted),
        clusters=None if samples.clusters is None else samples.clusters.take(rows),
    )
    lost = int((mine & ~np.isfinite(truth)).sum())
    notes = [f"{lost:,} truths are not finite and were left out."] if lost else []
    return _probed(predictor, split, wanted, line, notes)


def over_number(
    loaded: LoadedModel,
    split: ProbedRows,
    wanted: ProbeOptions,
    sweep: NumberSweep,
    progress: Progress,
    note: Note,
) -> NumbersResult:
    """One row with evenly spaced values in place of one of its numbers, and the prediction at each.

    Raises UsageError for a row, a number or a target that is not there, for a number that the
    model does not see when it predicts the target, and for values that the scheme cannot write.
    """
    samples = split.samples
    row = row_index(sweep.row, split)
    told = f"row {samples.ids[row].as_py()!r} of {split.description}"
    among = samples.target_row == row
    target = _target(wanted.target, samples, told, among)
    first = int(samples.number_rows[row])
    count = int(samples.number_rows[row + 1]) - first
    mine = np.flatnonzero(among)
    of_target = samples.targets[mine[_is_of(mine, samples, target)]] - first
    place = int(of_target[0])
    causal = loaded.model.objective.causal
    unseen = {place} if causal else set((samples.targets[mine] - first).tolist())
    _check_number(sweep.number, count, unseen, place if causal else count, told)
    low, high, notes = _ends(sweep, split, count)
    x = evenly_spaced(low, high, sweep.points)
    numerals = written_alike(x, samples, row, sweep.number, loaded.codec)
    made = swept_row(samples, row, sweep.number, loaded.codec, numerals)
    check_reads(loaded, made, f"{told}, with another number {sweep.number},")
    predictor = _predictor(loaded, made)
    asked = predictor.asked
    here = _is_of(asked.targets, made, target) & (asked.numbers % count == place)
    chosen = _once(asked, here)
    predicted = predictor.run(partial(progress, "predicting"), note)
    if len(of_target) > 1:
        notes.append(f"The row has {len(of_target)} numbers of this target; it is the first.")
    line = _Line(
        target,
        row=samples.ids[row].as_py(),
        number=sweep.number,
        x=x,
        truth=None,
        ids=made.ids.to_pylist(),
        numbers=asked.numbers[chosen],
        predicted=Predicted._make(column[chosen] for column in predicted),
    )
    return _probed(predictor, split, wanted, line, notes)


@dataclass(frozen=True, eq=False)
class _Line:
    """``n`` predictions of a target in the order of x; ``numbers`` are indices of the rows read,
    ``clusters`` those of the rows where some have one."""

    target: str
    row: str | None
    number: int | None
    x: Floats
    truth: Floats | None
    ids: list[str]
    numbers: NDArray[np.int64]
    predicted: Predicted
    clusters: "pa.Array[Any] | None" = None  # [n] strings


def _probed(
    predictor: Predictor, split: ProbedRows, wanted: ProbeOptions, line: _Line, notes: list[str]
) -> NumbersResult:
    seen = None if split.train is None else SeenValues.of(split.train, line.target)
    top = None
    if wanted.top and predictor.loaded.model.value_head is None:
        top = top_numbers(predictor, line.numbers, wanted.top)
    valid = line.predicted.valid
    y = line.predicted.values[valid]
    sample = None
    if line.clusters is not None:  # a row without one stands for each of its numbers
        sample = clustered(np.arange(len(valid)), line.clusters)
        notes = [*notes, clusters_note(len(np.unique(sample[valid])))]
        sample = sample[valid]
    found = Along(
        data=split.ref,
        split=split.name,
        target=line.target,
        row=line.row,
        number=line.number,
        low=float(line.x[0]),
        high=float(line.x[-1]),
        rows=len(line.x),
        invalid=share(int((~valid).sum()), len(valid)),
        distinct=distinct(y, 0),
        distinct_rounded=distinct(y, wanted.digits),
        digits=wanted.digits,
        seen=None if seen is None else len(seen.values),
        top=[] if top is None else _tops(top),
        top_of="" if top is None else top.among,
        **_measured(line.x[valid], y, line.truth is not None, seen, wanted.digits, sample),
    )
    seen_table = None if seen is None else pa.table({"value": seen.values})
    notes = [*notes, *_notes(predictor, split, line, seen)]
    return NumbersResult(found, _table(line, top), seen_table, notes)


def _measured(
    x: Floats,
    y: Floats,
    is_truth: bool,
    seen: SeenValues | None,
    digits: int,
    sample: NDArray[np.int64] | None,
) -> dict[str, Any]:
    """What needs predictions at two places or more."""
    if len(np.unique(x)) < 2:
        nothing = dict.fromkeys(("jump", "saturation", "repeated"))
        return nothing | {"slope": Figure(None, None, None, len(x)), "errors": {}}
    along = path(x, y)
    floor = x if is_truth else evenly(y)
    return {
        "jump": jump(along, is_truth=is_truth),
        "slope": slope(x, y, sample),
        "saturation": saturation(along, y, seen),
        "repeated": None if seen is None else repeated(y, floor, seen, digits),
        "errors": errors(x, y, seen, sample) if is_truth else {},
    }


def _tops(top: TopNumbers) -> list[Top]:
    columns = zip(top.literals, top.values.tolist(), top.log_p.max(axis=0).tolist(), strict=True)
    return [
        Top(literal, value if np.isfinite(value) else None, float(np.exp(most)))
        for literal, value, most in columns
    ]


def _table(line: _Line, top: TopNumbers | None) -> "pa.Table":
    """The columns that ``probes.Along`` names."""
    predicted = line.predicted
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


def _predictor(loaded: LoadedModel, samples: EncodedSplit) -> Predictor:
    """Reads numbers as ``eval`` does unless it is asked for something else."""
    fill = AUTOREGRESSIVE if loaded.model.objective.causal else PARALLEL
    return Predictor(loaded, samples, Options(fill, True, "mode", 0, _BATCH))


def _once(asked: Queries, mine: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where each number of those is asked for: one can be a target twice."""
    _, first = np.unique(asked.numbers[mine], return_index=True)
    return np.flatnonzero(mine)[first]


def _is_of(places: NDArray[np.int64], samples: EncodedSplit, target: str) -> NDArray[np.bool_]:
    """bool[k]: whether the targets at these places (-1 is none) have that name."""
    names = np.array([*samples.target_name.to_pylist(), None], object)
    return np.asarray(names[places] == target, np.bool_)


def _target(
    asked: str | None, samples: EncodedSplit, told: str, among: NDArray[np.bool_] | None = None
) -> str:
    """The name that is asked for, or the only one there is."""
    names = samples.target_name if among is None else samples.target_name.filter(pa.array(among))
    known = sorted(set(names.to_pylist()))
    if not known:
        raise UsageError(
            f"{told} has no targets, and a probe follows one; encode data whose rows name them"
        )
    if asked is None and len(known) > 1:
        raise UsageError(f"{told} has the targets {', '.join(known)}; name one with --target")
    if asked is not None and asked not in known:
        raise unknown(f"target of {told}", asked, known)
    return known[0] if asked is None else asked


def row_index(row: str | None, split: ProbedRows) -> int:
    """The index of the row with that id, the first one for None."""
    if row is None:
        return 0
    ids = split.samples.ids.to_pylist()
    if row not in ids:
        raise unknown(
            f"row of {split.description}", row, ids[:5], f"and so on, {len(ids):,} in all"
        )
    return int(ids.index(row))


def _check_number(number: int, count: int, unseen: set[int], end: int, told: str) -> None:
    """Raises UsageError unless a number of a row goes in before the target is predicted; ``end``
    is the first that a model has not read by then."""
    if number >= count:
        raise UsageError(
            f"--sweep {number} is not possible: {told} has {count:,} numbers, 0 to {count - 1}"
        )
    if number in unseen:
        raise UsageError(
            f"--sweep {number} is not possible: that number of {told} is a target, which the "
            f"model does not see; sweep another one of 0 to {count - 1}"
        )
    if number > end:
        raise UsageError(
            f"--sweep {number} is not possible: the model is autoregressive and has not read that "
            f"number of {told} when it predicts the target, number {end}; sweep one before it"
        )


def _ends(sweep: NumberSweep, split: ProbedRows, count: int) -> tuple[float, float, list[str]]:
    """From where to where, and a sentence on where that is from."""
    low, high, notes = sweep.low, sweep.high, list[str]()
    if low is None or high is None:
        found = split.train and range_of_place(split.train, count, sweep.number)
        if not found:
            raise UsageError(
                f"--sweep {sweep.number} needs --from and --to: the train split is not at hand, "
                f"or no two of its rows of {count:,} numbers have different ones there"
            )
        low, high = found.low if low is None else low, found.high if high is None else high
        notes = [
            f"The range is that of number {sweep.number} in the {found.rows:,} rows of the train "
            f"split that have {count:,} numbers."
        ]
    if not low < high:
        raise UsageError(f"--from {low:g} --to {high:g} is not possible: --from is less than --to")
    return low, high, notes


def _notes(
    predictor: Predictor, split: ProbedRows, line: _Line, seen: SeenValues | None
) -> Iterator[str]:
    if split.train is None:
        yield "What the model learnt from is not at hand: nothing is compared with what was seen."
    elif seen is None:
        yield f"The train split has no target {line.target!r}: nothing is compared with it."
    scheme = predictor.loaded.codec.scheme
    if scheme.tokens_per_number is None and predictor.options.fill == PARALLEL:
        yield "The number of masks tells the model how long each answer is."
