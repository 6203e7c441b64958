"""orbits: planets around a star, their orbital elements and positions, in JSON-like text."""

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
from numtok.registry import spec_of
from numtok.setting_values import Range

_INNER = 1.0  # the semi-major axis of the innermost planet
_PUBLIC = "public"
_ATTEMPTS = 100  # per row, before the settings are considered impossible
_LARGEST = 90  # maximum written number, so that three digits always reach the point
_MASS_UNIT, _ECCENTRICITY_UNIT = 1e5, 20  # bring all written numbers to a similar magnitude
_MARGIN = 1 / 20  # fraction of a gap that shifted values keep from its ends
_SLACK = 1e-9  # tolerance of a number of steps, for rounding of, say, 15 / 0.3


@dataclass(frozen=True)
class _SeenRanges:
    """Increasing, disjoint values and intervals, all equally likely.

    >>> str(_SeenRanges.parse("0.3/0.4/0.5..0.6").gaps(7)[1])
    '0.405..0.495'
    """

    parts: tuple[Range, ...]

    @classmethod
    def parse(cls, text: str) -> "_SeenRanges":
        """Parse values and intervals separated by ``/``. Raises ValueError if invalid."""
        parts = tuple(map(Range.parse, text.split("/")))
        if any(below.high >= above.low for below, above in pairwise(parts)):
            raise ValueError(text)
        return cls(parts)

    @property
    def low(self) -> float:
        """Lower end of the first part."""
        return self.parts[0].low

    @property
    def high(self) -> float:
        """Upper end of the last part."""
        return self.parts[-1].high

    def draw(self, choice: Floats, position: Floats) -> Floats:
        """Sample values [n]: uniform ``choice`` [n] selects the part, ``position`` [n] the value.

        Both are in [0, 1).
        """
        low, high = np.array([(part.low, part.high) for part in self.parts]).T
        part = np.floor(choice * len(self.parts)).astype(np.int64)
        drawn: Floats = low[part] + (high - low)[part] * position
        return drawn

    def gaps(self, figures: int) -> tuple[Range, ...]:
        """Return the gaps between parts, without a twentieth of each gap at either end.

        A gap is omitted if its ends, with this many significant digits (0: all digits), are written
        like a neighboring part.
        """
        gaps = []
        for below, above in pairwise(self.parts):
            margin = _MARGIN * (above.low - below.high)
            gap = Range(below.high + margin, above.low - margin)
            ends = (below.high, gap.low, gap.high, above.low)
            written = [number_form(figures) % end for end in ends]
            if len(set(written)) == len(ends):
                gaps.append(gap)
        return tuple(gaps)


def draw_evenly(ranges: tuple[Range, ...], position: Floats) -> Floats:
    """Map uniform numbers [n] in [0, 1) to uniform values [n] on a union of ranges.

    >>> draw_evenly((Range(0, 1), Range(2, 4)), np.array([0.0, 0.5, 0.75])).tolist()
    [0.0, 2.5, 3.25]
    """
    low, high = np.array([(part.low, part.high) for part in ranges]).T
    ends = np.cumsum(high - low)
    along = position * ends[-1]
    part = np.searchsorted(ends[:-1], along, "right")
    drawn: Floats = high[part] - (ends[part] - along)
    return drawn


def number_form(figures: int) -> str:
    """Return the ``%`` format for numbers with this many significant digits.

    If ``figures`` is 0, the format writes the shortest exact form.

    >>> number_form(3) % 2.6, number_form(0) % 2.6
    ('2.60', '2.6')
    """
    return f"%#.{figures}g" if figures else "%r"


@dataclass(frozen=True)
class Orbits(TextTask):
    """Planets around a star: their orbital elements, a step size, and positions at every step.

    Planets have masses m in units of the star's mass, semi-major axes a evenly spaced from 1 to a
    sampled value, eccentricities e, and longitudes theta, as in xVal. In 30% of the rows, all
    longitudes are 0. The order of the planets is random. REBOUND's IAS15 integrates their motion
    with G = 1, so a circular orbit of radius 1 takes 2 pi. The text contains a, e x 20 and m x 1e5
    of each planet, the step size, and (x, y) of each planet at each time. Rows in which x or y
    reaches ``bound`` are resampled.

    Numbers have exactly seven significant digits, about the precision of float32. Three digits
    would be too few: a mass larger by 1e-5 moves planets by at most about 0.001. The fixed number
    of digits also hides whether a is exactly 1. ``--figures 0`` writes the shortest exact form,
    like xVal's public sampler; the last digit may depend on the machine.

    Splits named ``ood-stepsize`` and ``ood-a1`` have values that no other split has:

    - The step sizes of all other splits are ``--steps 0.3/0.4/0.5/0.6/0.7``, equally likely
      (intervals also work: ``0.3..0.4/0.6..0.7``). Given the step size, the number of points is
      sampled such that the time span stays in its range. In ``ood-stepsize``, step sizes are
      uniform in the gaps between the values of ``--steps``. The public sampler samples the time
      span and the number of points as integers (``--steps public``), which results in 262 step
      sizes with almost no gaps between them.
    - In all other splits, a of planet0 is 1 or at least 1 + (1.5 - 1) / (4 - 1) = 1.167, because
      the published outer orbit starts at 1.5 and there are at most four planets. With up to five
      planets, as in the public sampler (``--planets 2..5``), the gap would end at 1.125, not at the
      1.16 of the paper. In ``ood-a1``, planet0 is the innermost planet, its a is uniform in the
      gap, and the other planets are evenly spaced beyond it, so no planet has a = 1.

    In both splits, values are at least a twentieth of the gap away from its ends. Rows have the
    targets ``stepsize`` and ``a``, ``e`` and ``m`` of planet0, and the group ``planets``. The
    counts include resampled rows (out of bounds or not integrable), and rows with close encounters,
    in which two planets are within their mutual Hill radius at some time.

    >>> made = Orbits(planets=Range(2, 2), figures=3).unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode()[24:195], "...")  # doctest: +NORMALIZE_WHITESPACE
    {'description': {'planet0': {'m': 4.47, 'a': 1.00, 'e': 1.44},
    'planet1': {'m': 3.11, 'a': 2.09, 'e': 1.65}, 'stepsize': 0.400},
    'data': [[[-0.643, 0.819], [1.85, -0.510]] ...

    Raises UsageError if a setting is invalid, or if no rows can be generated with the settings.
    """

    revision = 1
    source = "xVal, section 3.3 and the public sampler"
    unit_rows = 256
    digest = "b0f6119d26e2e690"

    planets: Range = setting(Range(2, 4), "Number of planets.")
    mass: Range = setting(Range(1e-5, 5e-5), "Mass of a planet in units of the star's mass.")
    outer: Range = setting(Range(1.5, 3), "Largest semi-major axis; the smallest is 1.")
    eccentricity: Range = setting(Range(0, 0.1), "Eccentricity of each orbit.")
    aligned: float = setting(
        0.3, "Fraction of rows in which every theta is 0.", at_least=0, at_most=1
    )
    steps: str = setting("0.3/0.4/0.5/0.6/0.7", "Step sizes, separated by /; or public.")
    span: Range = setting(Range(15, 24), "Time from the first point to the last.")
    points: Range = setting(Range(30, 59), "Number of points in time, including the start.")
    bound: float = setting(
        10.0, "Rows in which x or y reaches this value are resampled.", at_least=1, at_most=_LARGEST
    )
    figures: int = setting(7, "Significant digits of every number, 3 to 17; 0 for all digits.")

    def __post_init__(self) -> None:
        check_range(self, "planets", 2, 20)
        check_range(self, "mass", 1e-9, _LARGEST / 1e5, is_whole=False)
        check_range(self, "outer", 1.01, _LARGEST, is_whole=False)
        check_range(self, "eccentricity", 0, 0.99, is_whole=False)
        check_range(self, "span", 1, 100_000)
        check_range(self, "points", 2, 100_000)
        if self.mass.low == self.mass.high:  # masses make all texts different
            raise UsageError(f"orbits: mass must be a range, such as 1e-5..5e-5 (got {self.mass})")
        if self.figures and not 3 <= self.figures <= 17:
            raise UsageError(
                f"orbits: figures must be from 3 to 17, or 0 for all digits (got {self.figures})"
            )
        self._check_steps()

    def _check_steps(self) -> None:
        """Check the step sizes, and that each has a number of points that keeps the span."""
        if (steps_seen := self._seen_steps) is None:
            return
        # The possible numbers of points only change at step sizes for which a number of steps gives
        # exactly the shortest or the longest span: check those and one size between each two.
        low, high = steps_seen.low, steps_seen.high
        counts = np.arange(self.points.low, self.points.high + 1) - 1
        ends = np.concatenate([self.span.low / counts, self.span.high / counts])
        ends = np.unique(np.clip([*ends, low, high], low, high))
        steps = np.concatenate([ends, (ends[1:] + ends[:-1]) / 2])
        if not steps_seen.gaps(self.figures):  # nothing is sampled between the parts
            inside = [(steps >= part.low) & (steps <= part.high) for part in steps_seen.parts]
            steps = steps[np.any(inside, 0)]
        least, most = self._point_range(steps)
        if len(wrong := steps[least > most]):
            raise UsageError(
                f"orbits: with a step size of {wrong.min():g}, no number of points={self.points} "
                f"gives span={self.span}. Change steps or points, or choose a wider span"
            )

    @property
    def _seen_steps(self) -> _SeenRanges | None:
        """Step sizes of the other splits; None for those of the public sampler."""
        if self.steps == _PUBLIC:
            return None
        try:
            steps = _SeenRanges.parse(self.steps)
        except ValueError:
            steps = None
        if steps is None or not 1e-3 <= steps.low <= steps.high <= _LARGEST:
            raise UsageError(
                "orbits: steps must be increasing values or intervals from 0.001 to "
                f"{_LARGEST} such as 0.3/0.4/0.5..0.6, or {_PUBLIC} (got {self.steps})"
            )
        return steps

    @property
    def _step_gaps(self) -> tuple[Range, ...]:
        return self._seen_steps.gaps(self.figures) if self._seen_steps else ()

    @property
    def _axis_gaps(self) -> tuple[Range, ...]:
        """Gap between the innermost semi-major axis and the smallest possible next one."""
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
        # Integrate all rows first: alternating with the other steps is 10% slower.
        integrated = [
            self._accepted(seed, split.name, number, drawn, counts)
            for number, drawn in zip(rows, self.systems(seed, split.name, rows), strict=True)
        ]
        counts["close_encounters"] = sum(come_close(*pair) for pair in integrated)
        lines = [
            _line(f"{split.name}-{number}", *pair, form)
            for number, pair in zip(rows, integrated, strict=True)
        ]
        return Made("".join(lines).encode(), dict(counts))

    def _accepted(
        self, seed: int, split: str, number: int, system: PlanetarySystem, counts: Counter[str]
    ) -> tuple[PlanetarySystem, Floats]:
        """Resample a row until it can be used; return its system and positions."""
        failed = 0
        for attempt in range(1, _ATTEMPTS + 1):
            path = positions(system)
            if path is not None and np.abs(path).max() < self.bound:
                return system, path
            counts["not_integrated" if path is None else "out_of_bounds"] += 1
            failed += path is None
            (system,) = self.systems(seed, split, range(number, number + 1), attempt)
        raise UsageError(
            f"{spec_of(self)}: of {_ATTEMPTS} samples of one row, {_ATTEMPTS - failed} reached "
            f"bound={self.bound:g} in x or y and {failed} could not be integrated. Choose a larger "
            f"bound, a smaller outer than {self.outer}, or fewer planets than {self.planets}"
        )

    def systems(
        self, seed: int, split: str, rows: range, attempt: int = 0
    ) -> Iterator[PlanetarySystem]:
        """Yield a randomly sampled planetary system for each of the given rows of a split.

        Different values of ``attempt`` give different samples.
        """
        most = int(self.planets.high)
        drawn = uniforms_of_rows(f"orbits {split} {attempt} {seed}", rows, 7 + 4 * most)
        several = drawn[7:].reshape(4, most, len(rows)).transpose(0, 2, 1)
        ranks, masses, eccentricities, longitudes = several
        count = _whole(self.planets, drawn[0])
        first, last = np.full(len(rows), _INNER), _between(self.outer, drawn[1])
        if split == "ood-a1":
            first = draw_evenly(self._axis_gaps, drawn[2])
            ranks[:, 0] = -1  # planet0 is the innermost
        # A random order of the existing planets; the others come after them.
        ranks[np.arange(most) >= count[:, None]] = 2
        order = np.argsort(ranks, axis=1)
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
        self, split: str, choice: Floats, position: Floats, length: Floats
    ) -> tuple[Floats, Floats]:
        """Sample the step size and the number of points of each row."""
        if (steps := self._seen_steps) is None:
            points = _whole(self.points, length)
            return _whole(self.span, position) / (points - 1), points
        is_shifted = split == "ood-stepsize"
        step = (
            draw_evenly(self._step_gaps, position) if is_shifted else steps.draw(choice, position)
        )
        least, most = self._point_range(step)
        return step, least + np.floor(length * (most - least + 1))

    def _point_range(self, step: Floats) -> tuple[Floats, Floats]:
        """Return the minimum and maximum number of points that keep the span, per step size."""
        least = np.ceil(self.span.low / step - _SLACK) + 1
        most = np.floor(self.span.high / step + _SLACK) + 1
        return np.maximum(least, self.points.low), np.minimum(most, self.points.high)


def _between(range: Range, share: Floats) -> Floats:
    return range.low + (range.high - range.low) * share


def _whole(range: Range, share: Floats) -> Floats:
    """Sample uniform integers of a range."""
    return range.low + np.floor(share * (range.high - range.low + 1))


def _line(id: str, system: PlanetarySystem, path: Floats, form: str) -> str:
    """Format a row as a line of JSON, with the text layout of the xVal paper (section 3.3).

    ``form`` is the format of numbers, ``path`` are positions [points, planets, 2]. Targets are the
    step size, and semi-major axis, eccentricity and mass of the first planet.
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
    rows = _data_form(*path.shape[:2], form) % tuple((path.ravel() + 0.0).tolist())
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
    """Return the layout ``[[x, y], [x, y]], [[x, y], [x, y]]`` with a format for each number."""
    row = ", ".join([f"[{form}, {form}]"] * planets)
    return ", ".join([f"[{row}]"] * points)
