"""vary: predictions as one number in a row changes, with the rest unchanged."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.probing.probes._along import (
    AlongProbe,
    Line,
    ProbedRows,
    is_of,
    once,
    predictor_of,
)
from numtok.analysis.probing.probes.base import (
    ProbeInputs,
    ProbeResult,
    check_ends,
    line_end,
    line_points,
)
from numtok.analysis.probing.swept_row import (
    evenly_spaced,
    range_of_place,
    row_index,
    swept_row,
    written_alike,
)
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.training.model_files import check_reads


@dataclass(frozen=True, kw_only=True)
class SweepProbe(AlongProbe):
    """Predictions for copies of one row in which one number takes evenly spaced values.

    The result shows whether predictions change smoothly, and where they stop changing.

    number
        Index of the number to change, from 0.
    row
        Id of the row. Default: the first.
    from_
        Smallest value. Default: the smallest at that index in training rows that have the same
        number of numbers.
    to
        Largest value. Default: the largest at that index in the same rows.
    points
        Number of values.

    Raises UsageError if the row or target is unknown, if the index of the number is out of range,
    if the model does not see the number when it predicts the target, or if the scheme cannot
    represent a value.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "xVal, Section 3.3"
    checked_at: ClassVar[str] = "vary,number=0"
    number: int = setting(at_least=0)
    row: str | None = None
    from_: float | None = line_end()
    to: float | None = line_end()
    points: int = line_points()

    def __post_init__(self) -> None:
        check_ends(self.from_, self.to)

    @property
    def suffix(self) -> str:
        return f"vary{self.number}"

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        loaded, rows = inputs.loaded, self.rows(inputs)
        samples = rows.samples
        row = row_index(self.row, samples, rows.description)
        description = f"row {samples.ids[row].as_py()!r} of {rows.description}"
        among = samples.target_row == row
        target = self.target_in(samples, description, among)
        first = int(samples.number_rows[row])
        count = int(samples.number_rows[row + 1]) - first
        in_row = np.flatnonzero(among)
        of_target = samples.targets[in_row[is_of(in_row, samples, target)]] - first
        position = int(of_target[0])
        causal = loaded.model.objective.causal
        unseen = {position} if causal else set((samples.targets[in_row] - first).tolist())
        self._check_seen(count, unseen, position if causal else count, description)
        low, high, notes = self._line(rows, count)
        x = evenly_spaced(low, high, self.points)
        numerals = written_alike(x, samples, row, self.number, loaded.codec)
        copies = swept_row(samples, row, self.number, loaded.codec, numerals)
        check_reads(loaded, copies, f"{description}, with another number {self.number},")
        predictor = predictor_of(loaded, copies)
        queries = predictor.asked
        here = is_of(queries.targets, copies, target) & (queries.numbers % count == position)
        if len(of_target) > 1:
            notes.append(
                f"The row has {len(of_target)} numbers of this target; shown is the first."
            )
        line = Line(
            target=target,
            row=samples.ids[row].as_py(),
            number=self.number,
            x=x,
            truth=None,
            ids=copies.ids.to_pylist(),
            chosen=once(queries, here),
        )
        return self.result(predictor, rows, line, notes, inputs)

    def _check_seen(self, count: int, unseen: set[int], end: int, description: str) -> None:
        """Raise UsageError unless the model reads the number before it predicts the target.

        ``end`` is the index of the first number that the model has not read by then.
        """
        if self.number >= count:
            raise UsageError(
                f"--number must be 0 to {count - 1} (got {self.number}): {description} has "
                f"{count:,} numbers"
            )
        if self.number in unseen:
            raise UsageError(
                f"--number {self.number} of {description} is a target, which the model does not "
                f"see. Choose another number of 0 to {count - 1}"
            )
        if self.number > end:
            raise UsageError(
                f"--number {self.number} of {description} comes after the target, number {end}, "
                "and the model is autoregressive. Choose a number before the target"
            )

    def _line(self, rows: ProbedRows, count: int) -> tuple[float, float, list[str]]:
        """Return the smallest and the largest value, and notes on where they come from."""
        low, high, notes = self.from_, self.to, list[str]()
        if low is None or high is None:
            trained = rows.train and range_of_place(rows.train, count, self.number)
            if not trained:
                raise UsageError(
                    f"--number {self.number} needs --from and --to: the train split is not "
                    f"available, or its rows with {count:,} numbers do not vary there"
                )
            low = trained.low if low is None else low
            high = trained.high if high is None else high
            notes = [
                f"The range is that of number {self.number} in the {trained.rows:,} rows of the "
                f"train split that have {count:,} numbers."
            ]
        check_ends(low, high)
        return low, high, notes
