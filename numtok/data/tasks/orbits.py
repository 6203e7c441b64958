"""orbits: planets around a star, their elements and where they are, in JSON-like text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import tau

import numpy as np

from numtok.arrays import Floats
from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._nbody import PlanetarySystem, come_close, positions
from numtok.data.tasks.base import Made, TaskSplit, TextTask, check_range, setting
from numtok.errors import UsageError
from numtok.registry import Range, spec_of

_INNER = 1.0  # the semi-major axis of the innermost planet
_PUBLIC = "public"
_ATTEMPTS = 100  # at one row, before its settings are taken to be impossible
_LARGEST = 90  # of a written number, so that three figures never end before the point
_MASS_UNIT, _ECCENTRICITY_UNIT = 1e5, 20  # so that all written numbers are of a similar size
_MARGIN = 1 / 20  # of a gap: how far from what is seen the values of a shifted split stay
_SLACK = 1e-9  # of a number of steps, for what rounding makes of 15 / 0.3


@dataclass(frozen=True)
class _SeenRanges:
    """Single values and intervals, ascending and apart, all equally likely.

    >>> str(_SeenRanges.parse("0.3/0.4/0.5..0.6").gaps(7)[1])
    '0.405..0.495'
    """

    parts: tuple[Range, ...]

    @classmethod
    def parse(cls, text: str) -> "_SeenRanges":
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
        """Return the gaps between parts, without a twentieth of each gap at either end.

        A gap is left out if its ends, with this many significant figures (0: all digits), are
        written like a neighboring part.
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
    """Return the ``%`` format with exactly this many significant figures; 0: the shortest that
    reads back as the same number.

    >>> number_form(3) % 2.6, number_form(0) % 2.6
    ('2.60', '2.6')
    """
    return f"%#.{figures}g" if figures else "%r"


@dataclass(frozen=True)
class Orbits(TextTask):
    """Planets around a star: their elements, a step size, and where they are at every step.

    As in xVal: masses m in units of the star's, semi-major axes a evenly spaced from 1 to one that
    is drawn, eccentricities e, longitudes theta, all of them 0 in three of ten rows; the order of
    the planets is shuffled. REBOUND's IAS15 integrates them with G = 1, so that a circle of radius
    1 takes 2 pi. Written are a, e x 20 and m x 1e5 of each planet, the step size, and then
    (x, y) of each planet at each time. A row with x or y of ``bound`` or more is drawn again.

    Numbers have exactly seven significant figures, about what float32 holds: planets pull so weakly
    that 1e-5 more of mass moves them by some 0.001 at most, which is lost with three. All numbers
    having as many figures, no length tells that a is 1. ``--figures 0`` writes as many digits as
    bring the number back, as the public sampler; the last may depend on the machine.

    Splits named ``ood-stepsize`` and ``ood-a1`` have what no other split has:

    - ``--steps 0.3/0.4/0.5/0.6/0.7`` are the step sizes of all splits (intervals are possible,
      ``0.3..0.4/0.6..0.7``), all equally likely; then the number of points is drawn among those
      that keep the span. ``ood-stepsize`` is uniform between them. The public sampler draws span
      and points, whole numbers (``--steps public``): 262 step sizes, without a gap to speak of.
    - the a of planet0 is 1 or at least 1 + (1.5 - 1) / (4 - 1) = 1.167, for the published outer
      orbit from 1.5 and at most four planets. With up to five, as in the public sampler
      (``--planets 2..5``), the gap would end at 1.125, and not at the 1.16 of the paper. In
      ``ood-a1`` planet0 is the innermost, its a uniform in the gap, and the others are evenly
      spaced from there: no planet is at 1.

    Both stay a twentieth of a gap away from its ends. Rows have the targets ``stepsize`` and ``a``,
    ``e`` and ``m`` of planet0, and the group ``planets``. What is counted: draws that were made
    again, out of bounds or not to be integrated, and rows with close encounters, in which two
    planets are within their mutual Hill radius at one of the times.

    >>> made = Orbits(planets=Range(2, 2), figures=3).unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode()[24:195], "...")  # doctest: +NORMALIZE_WHITESPACE
    {'description': {'planet0': {'m': 4.47, 'a': 1.00, 'e': 1.44},
    'planet1': {'m': 3.11, 'a': 2.09, 'e': 1.65}, 'stepsize': 0.400},
    'data': [[[-0.643, 0.819], [1.85, -0.510]] ...

    Raises UsageError for settings that cannot be, and where rows cannot be made with them.
    """

    revision = 1
    source = "xVal, section 3.3 and the public sampler"
    unit_rows = 256
    digest = "b0f6119d26e2e690"

    planets: Range = setting(Range(2, 4), "How many.")
    mass: Range = setting(Range(1e-5, 5e-5), "Of a planet; the star's is 1.")
    outer: Range = setting(Range(1.5, 3), "The largest semi-major axis; the smallest is 1.")
    eccentricity: Range = setting(Range(0, 0.1), "Of each orbit.")
    aligned: float = setting(
        0.3, "The share of rows in which every theta is 0.", at_least=0, at_most=1
    )
    steps: str = setting("0.3/0.4/0.5/0.6/0.7", "Step sizes, with / between them; or public.")
    span: Range = setting(Range(15, 24), "The time from the first point to the last.")
    points: Range = setting(Range(30, 59), "How many points in time, the start among them.")
    bound: float = setting(
        10.0, "Rows in which x or y reaches it are drawn again.", at_least=1, at_most=_LARGEST
    )
    figures: int = setting(7, "Significant figures of every number, 3 to 17; 0 for all digits.")

    def __post_init__(self) -> None:
        check_range(self, "planets", 2, 20)
        check_range(self, "mass", 1e-9, _LARGEST / 1e5, is_whole=False)
        check_range(self, "outer", 1.01, _LARGEST, is_whole=False)
        check_range(self, "eccentricity", 0, 0.99, is_whole=False)
        check_range(self, "span", 1, 100_000)
        check_range(self, "points", 2, 100_000)
        if self.mass.low == self.mass.high:  # masses are what makes all texts different
            raise UsageError(
                f"orbits: mass={self.mass} is not possible; give a range, like 1e-5..5e-5"
            )
        if self.figures and not 3 <= self.figures <= 17:
            raise UsageError(
                f"orbits: figures={self.figures} is not possible; allowed are 3 to 17, and 0 for "
                "all digits"
            )
        self._check_steps()

    def _check_steps(self) -> None:
        """The step sizes can be read, and each has a number of points that keeps the span."""
        if (seen := self._seen_steps) is None:
            return
        # What is possible changes only where a number of steps just makes the shortest or the
        # longest span: so look there and in between.
        counts = np.arange(self.points.low, self.points.high + 1) - 1
        ends = np.concatenate([self.span.low / counts, self.span.high / counts])
        ends = np.unique(np.clip([*ends, seen.low, seen.high], seen.low, seen.high))
        steps = np.concatenate([ends, (ends[1:] + ends[:-1]) / 2])
        if not seen.gaps(self.figures):  # between them nothing is drawn
            inside = [(steps >= part.low) & (steps <= part.high) for part in seen.parts]
            steps = steps[np.any(inside, 0)]
        least, most = self._point_range(steps)
        if len(wrong := steps[least > most]):
            raise UsageError(
                f"orbits: with a step size of {wrong.min():g} no number of points={self.points} "
                f"gives a span of {self.span}; give other steps or points, or a wider span"
            )

    @property
    def _seen_steps(self) -> _SeenRanges | None:
        """None for those of the public sampler."""
        if self.steps == _PUBLIC:
            return None
        try:
            seen = _SeenRanges.parse(self.steps)
        except ValueError:
            seen = None
        if seen is None or not 1e-3 <= seen.low <= seen.high <= _LARGEST:
            raise UsageError(
                f"orbits: steps={self.steps} is not possible; write values or intervals from 0.001 "
                f"to {_LARGEST}, the smallest first, like 0.3/0.4/0.5..0.6, or {_PUBLIC}"
            )
        return seen

    @property
    def _step_gaps(self) -> tuple[Range, ...]:
        return self._seen_steps.gaps(self.figures) if self._seen_steps else ()

    @property
    def _axis_gaps(self) -> tuple[Range, ...]:
        """Between the innermost semi-major axis and the smallest that any other planet can have."""
        second = _INNER + (self.outer.low - _INNER) / (self.planets.high - 1)
        return _SeenRanges((Range(_INNER, _INNER), Range(second, second))).gaps(self.figures)

    @property
    def shifted(self) -> tuple[str, ...]:
        gaps = {"ood-a1": self._axis_gaps, "ood-stepsize": self._step_gaps}
        return tuple(name for name in gaps if gaps[name])

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        first = index * self.unit_rows
        rows = range(first, first + self.rows_of(split, index))
        form = number_form(self.figures)
        counts = Counter(out_of_bounds=0, not_integrated=0, close_encounters=0)
        # One thing after the other for all rows, as taking turns is slower by a tenth.
        made = [
            self._accepted(seed, split.name, number, drawn, counts)
            for number, drawn in zip(rows, self.systems(seed, split.name, rows), strict=True)
        ]
        counts["close_encounters"] = sum(come_close(*one) for one in made)
        lines = [
            _line(f"{split.name}-{number}", *one, form)
            for number, one in zip(rows, made, strict=True)
        ]
        return Made("".join(lines).encode(), dict(counts))

    def _accepted(
        self, seed: int, split: str, number: int, system: PlanetarySystem, counts: Counter[str]
    ) -> tuple[PlanetarySystem, Floats]:
        """A row's first draw that can be used, and its positions."""
        failed = 0
        for attempt in range(1, _ATTEMPTS + 1):
            found = positions(system)
            if found is not None and np.abs(found).max() < self.bound:
                return system, found
            counts["not_integrated" if found is None else "out_of_bounds"] += 1
            failed += found is None
            (system,) = self.systems(seed, split, range(number, number + 1), attempt)
        raise UsageError(
            f"{spec_of(self)}: of {_ATTEMPTS} draws of one row {_ATTEMPTS - failed} came to "
            f"bound={self.bound:g} in x or y, and {failed} could not be integrated; give a larger "
            f"bound, a smaller outer than {self.outer}, or fewer planets than {self.planets}"
        )

    def systems(
        self, seed: int, split: str, rows: range, attempt: int = 0
    ) -> Iterator[PlanetarySystem]:
        """What is drawn for some rows of a split; another attempt, another draw."""
        most = int(self.planets.high)
        drawn = uniforms_of_rows(f"orbits {split} {attempt} {seed}", rows, 7 + 4 * most)
        several = drawn[7:].reshape(4, most, len(rows)).transpose(0, 2, 1)
        places, masses, eccentricities, longitudes = several
        count = _whole(self.planets, drawn[0])
        first, last = np.full(len(rows), _INNER), _between(self.outer, drawn[1])
        if split == "ood-a1":
            first = draw_evenly(self._axis_gaps, drawn[2])
            places[:, 0] = -1  # so planet0 is the innermost
        # A random order of the planets that are there: others come after them.
        places[np.arange(most) >= count[:, None]] = 2
        order = np.argsort(places, axis=1)
        axes = first[:, None] + (last - first)[:, None] * (order / (count - 1)[:, None])
        longitudes = tau * longitudes * (drawn[3] >= self.aligned)[:, None]
        step, points = self._times(split, *drawn[4:7])
        columns = (
            _between(self.mass, masses),
            axes,
            _between(self.eccentricity, eccentricities),
            longitudes,
        )
        lists = zip(*(column.tolist() for column in columns), strict=True)
        times = zip(count.tolist(), step.tolist(), points.tolist(), strict=True)
        for (mass, axis, eccentricity, longitude), (planets, size, looks) in zip(
            lists, times, strict=True
        ):
            some = slice(int(planets))
            yield PlanetarySystem(
                masses=mass[some],
                axes=axis[some],
                eccentricities=eccentricity[some],
                longitudes=longitude[some],
                step=size,
                points=int(looks),
            )

    def _times(
        self, split: str, choice: Floats, place: Floats, length: Floats
    ) -> tuple[Floats, Floats]:
        """The step size and the number of points of each row."""
        if (seen := self._seen_steps) is None:
            points = _whole(self.points, length)
            return _whole(self.span, place) / (points - 1), points
        is_shifted = split == "ood-stepsize"
        step = draw_evenly(self._step_gaps, place) if is_shifted else seen.draw(choice, place)
        least, most = self._point_range(step)
        return step, least + np.floor(length * (most - least + 1))

    def _point_range(self, step: Floats) -> tuple[Floats, Floats]:
        """The fewest and the most points that keep the span, at each step size."""
        least = np.ceil(self.span.low / step - _SLACK) + 1
        most = np.floor(self.span.high / step + _SLACK) + 1
        return np.maximum(least, self.points.low), np.minimum(most, self.points.high)


def _between(range: Range, share: Floats) -> Floats:
    return range.low + (range.high - range.low) * share


def _whole(range: Range, share: Floats) -> Floats:
    """Whole numbers, all of a range equally likely."""
    return range.low + np.floor(share * (range.high - range.low + 1))


def _line(id: str, system: PlanetarySystem, found: Floats, form: str) -> str:
    """A row as a line of JSON, its text in the layout of the xVal paper (section 3.3): ``form``
    writes a number, ``found`` are positions [points, planets, 2].

    Targets are the step size, and semi-major axis, eccentricity and mass of the first planet.
    """
    planets = zip(system.masses, system.axes, system.eccentricities, strict=True)
    numbers = [
        (form % (mass * _MASS_UNIT), form % axis, form % (eccentricity * _ECCENTRICITY_UNIT))
        for mass, axis, eccentricity in planets
    ]
    spans = {}
    text = "{'description': {"
    for k, written in enumerate(numbers):
        text += f"'planet{k}': {{"
        for name, number in zip("mae", written, strict=True):
            text += f"'{name}': "
            if k == 0:
                spans[name] = (len(text), len(text) + len(number))
            text += number + ("}, " if name == "e" else ", ")
    text += "'stepsize': "
    step = form % system.step
    spans["stepsize"] = (len(text), len(text) + len(step))
    rows = _data_form(*found.shape[:2], form) % tuple((found.ravel() + 0.0).tolist())
    text += f"{step}}}, 'data': [{rows}]}}"
    targets = ",".join(
        f'"{name}":[[{spans[name][0]},{spans[name][1]}]]' for name in ("stepsize", "a", "e", "m")
    )
    return (
        f'{{"id":"{id}","text":"{text}","targets":{{{targets}}},'
        f'"group":{{"planets":{len(numbers)}}}}}\n'
    )


@cache
def _data_form(points: int, planets: int, form: str) -> str:
    """``[[x, y], [x, y]], [[x, y], [x, y]]``, with the form in place of each number."""
    row = ", ".join([f"[{form}, {form}]"] * planets)
    return ", ".join([f"[{row}]"] * points)
