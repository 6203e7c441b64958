"""Values that training sees, and the gaps between them, which only shifted splits see."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from numtok.data.tasks.base import Floats
from numtok.registry import Range

_MARGIN = 1 / 20  # of a gap: how far from what is seen the values of a shifted split stay


@dataclass(frozen=True)
class SeenRanges:
    """Single values and intervals, ascending and apart, all equally likely.

    >>> str(SeenRanges.parse("0.3/0.4/0.5..0.6").gaps(7)[1])
    '0.405..0.495'
    """

    parts: tuple[Range, ...]

    @classmethod
    def parse(cls, text: str) -> "SeenRanges":
        """Values and intervals with ``/`` between them; ValueError for anything else."""
        parts = tuple(map(Range.parse, text.split("/")))
        if any(below.high >= above.low for below, above in pairwise(parts)):
            raise ValueError(text)
        return cls(parts)

    @property
    def low(self) -> float:
        """The lower end of the first part."""
        return self.parts[0].low

    @property
    def high(self) -> float:
        """The upper end of the last part."""
        return self.parts[-1].high

    def draw(self, choice: Floats, place: Floats) -> Floats:
        """Values [n]: ``choice`` [n] says which part, ``place`` [n] where in it, both in [0, 1)."""
        low, high = np.array([(part.low, part.high) for part in self.parts]).T
        part = np.floor(choice * len(self.parts)).astype(np.int64)
        drawn: Floats = low[part] + (high - low)[part] * place
        return drawn

    def gaps(self, figures: int) -> tuple[Range, ...]:
        """What lies between two parts, less a twentieth of it at each end.

        A gap is left out if its ends would be written like what is seen, with that many
        significant figures (0 for all digits).
        """
        found = []
        for below, above in pairwise(self.parts):
            margin = _MARGIN * (above.low - below.high)
            gap = Range(below.high + margin, above.low - margin)
            ends = (below.high, gap.low, gap.high, above.low)
            written = [number_form(figures) % end for end in ends]
            if len(set(written)) == len(ends):
                found.append(gap)
        return tuple(found)


def draw_evenly(ranges: tuple[Range, ...], place: Floats) -> Floats:
    """Values [n], uniform on all of some ranges together; ``place`` [n] is in [0, 1).

    >>> draw_evenly((Range(0, 1), Range(2, 4)), np.array([0.0, 0.5, 0.75])).tolist()
    [0.0, 2.5, 3.25]
    """
    low, high = np.array([(part.low, part.high) for part in ranges]).T
    ends = np.cumsum(high - low)
    along = place * ends[-1]
    part = np.searchsorted(ends[:-1], along, "right")
    drawn: Floats = high[part] - (ends[part] - along)
    return drawn


def number_form(figures: int) -> str:
    """How ``%`` writes numbers with exactly so many significant figures; 0: as few as bring the
    number back.

    >>> number_form(3) % 2.6, number_form(0) % 2.6
    ('2.60', '2.6')
    """
    return f"%#.{figures}g" if figures else "%r"
