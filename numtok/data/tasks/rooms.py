"""rooms: sides of rectangular rooms, and their areas."""

from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np

from numtok.data.tasks._draws import random_order, uniforms_of_rows
from numtok.data.tasks.base import SHARES, Made, TaskSplit, TextTask, WrittenRow, setting
from numtok.errors import UsageError

_SHORTEST = 10  # tenths of a meter
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True)
class Rooms(TextTask):
    """Rooms with two sides in tenths of a meter, and the exact area as the target.

    Each pair of sides occurs in one row, so no room is in two splits, even with its sides swapped.

    >>> Rooms().unit(0, TaskSplit("train", 1), 0).rows.decode().split('"')[7]
    'A room of 2.8 m by 3.5 m has an area of 9.80 square meters.'
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "numtok"
    unit_rows: ClassVar[int] = 1_000
    digest: ClassVar[str] = "97854ae90b3f75f1"
    samples: ClassVar[int] = 2_000

    longest: float = setting(9.9, "Longest side, in meters.", at_least=2, at_most=100)

    @property
    def possible(self) -> int:
        lengths = self._lengths
        return lengths * (lengths + 1) // 2

    @property
    def _lengths(self) -> int:
        return round(10 * self.longest) - _SHORTEST + 1

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        order = random_order(f"rooms {seed}", self.possible)
        own = order[split.begin * self.possible // SHARES : split.end * self.possible // SHARES]
        if len(own) < split.rows:
            raise UsageError(
                f"rooms has {len(own):,} pairs of sides for split {split.name!r} (got "
                f"{split.rows:,} rows). Pass a larger --longest, or fewer --rows"
            )
        first = index * self.unit_rows
        pairs = own[first : first + self.rows_of(split, index)]
        shorter, longer = (side[pairs] + _SHORTEST for side in np.triu_indices(self._lengths))
        (chance,) = uniforms_of_rows(f"swapped {seed}", range(self.possible), 1)
        swapped = chance[pairs] < 0.5
        sides = zip(
            pairs.tolist(),
            np.where(swapped, longer, shorter).tolist(),
            np.where(swapped, shorter, longer).tolist(),
            strict=True,
        )
        return Made(b"".join(_row(*each) for each in sides), {})


def _row(pair: int, first: int, second: int) -> bytes:
    before = f"A room of {first / 10:.1f} m by {second / 10:.1f} m has an area of "
    area = f"{first * second / 100:.2f}"
    row = WrittenRow(
        id=f"room-{pair}",
        text=f"{before}{area} square meters.",
        targets={"area": [(len(before), len(before) + len(area))]},
    )
    return _ENCODER.encode(row) + b"\n"
