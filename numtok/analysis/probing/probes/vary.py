"""vary: predictions along one number of one row, with all else as it is."""

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
    """One row of the data with evenly spaced values in place of one of its numbers, and the
    prediction at each: does it move smoothly, and where does it stop?

    number
        Which number of the row changes, counted from 0.
    row
        The id of the row. Default: the first.
    from_
        The least value. Default: the least at that place in training, in rows of as many numbers.
    to
        The greatest value. Default: the greatest there.
    points
        Values between them.

    Raises UsageError for a row, a number or a target that is not there, for a number that the
    model does not see when it predicts the target, and for values that the scheme cannot write.
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
        return f"sweep{self.number}"

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        loaded, rows = inputs.loaded, self.rows(inputs)
        samples = rows.samples
        row = row_index(self.row, samples, rows.description)
        description = f"row {samples.ids[row].as_py()!r} of {rows.description}"
        among = samples.target_row == row
        target = self.target_in(samples, description, among)
        first = int(samples.number_rows[row])
        count = int(samples.number_rows[row + 1]) - first
        mine = np.flatnonzero(among)
        of_target = samples.targets[mine[is_of(mine, samples, target)]] - first
        place = int(of_target[0])
        causal = loaded.model.objective.causal
        unseen = {place} if causal else set((samples.targets[mine] - first).tolist())
        self._check_seen(count, unseen, place if causal else count, description)
        low, high, notes = self._line(rows, count)
        x = evenly_spaced(low, high, self.points)
        numerals = written_alike(x, samples, row, self.number, loaded.codec)
        made = swept_row(samples, row, self.number, loaded.codec, numerals)
        check_reads(loaded, made, f"{description}, with another number {self.number},")
        predictor = predictor_of(loaded, made)
        asked = predictor.asked
        here = is_of(asked.targets, made, target) & (asked.numbers % count == place)
        if len(of_target) > 1:
            notes.append(f"The row has {len(of_target)} numbers of this target; it is the first.")
        line = Line(
            target=target,
            row=samples.ids[row].as_py(),
            number=self.number,
            x=x,
            truth=None,
            ids=made.ids.to_pylist(),
            chosen=once(asked, here),
        )
        return self.result(predictor, rows, line, notes, inputs)

    def _check_seen(self, count: int, unseen: set[int], end: int, description: str) -> None:
        """Raises UsageError unless the number goes in before the target is predicted; ``end`` is
        the first that the model has not read by then."""
        refused = f"--number {self.number} is not possible:"
        if self.number >= count:
            raise UsageError(f"{refused} {description} has {count:,} numbers, 0 to {count - 1}")
        if self.number in unseen:
            raise UsageError(
                f"{refused} that number of {description} is a target, which the model does not "
                f"see; sweep another one of 0 to {count - 1}"
            )
        if self.number > end:
            raise UsageError(
                f"{refused} the model is autoregressive and has not read that number of "
                f"{description} when it predicts the target, number {end}; sweep one before it"
            )

    def _line(self, rows: ProbedRows, count: int) -> tuple[float, float, list[str]]:
        """From where to where, and a sentence on where that is from."""
        low, high, notes = self.from_, self.to, list[str]()
        if low is None or high is None:
            found = rows.train and range_of_place(rows.train, count, self.number)
            if not found:
                raise UsageError(
                    f"--number {self.number} needs --from and --to: the train split is not at "
                    f"hand, or no two of its rows of {count:,} numbers have different ones there"
                )
            low, high = found.low if low is None else low, found.high if high is None else high
            notes = [
                f"The range is that of number {self.number} in the {found.rows:,} rows of the "
                f"train split that have {count:,} numbers."
            ]
        check_ends(low, high)
        return low, high, notes
