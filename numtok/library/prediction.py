"""What a head predicts: points at once, the whole distribution where it is asked for."""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numtok.errors import UsageError
from numtok.evaluation.raw_numbers import RawNumbers
from numtok.library.arguments import typed
from numtok.library.view import html_table
from numtok.models.decoding import NumberReadings
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import Calibration, default_point

_SHOWN = 10  # numbers in a notebook
_LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedNumbers:
    """Predictions of ``N`` numbers, in the units of the text.

    ``points`` are the values that the head writes or outputs without a distribution; answers of the
    distribution are computed on each call.
    ``why_none`` says why there is no distribution, where there is none.
    """

    raw: RawNumbers
    reading: NumberReadings
    points: NDArray[np.float64]
    calibration: Calibration
    why_none: str | None = None

    def __len__(self) -> int:
        return len(self.points)

    def point(self) -> NDArray[np.float64]:
        """float64[N]: the median, or for a head of tokens or exact digits what it writes; NaN if
        that is not a number."""
        if self.why_none is not None or default_point(self.raw.heads.head) == "mode":
            return self.points
        return np.where(np.isnan(self.points), np.nan, self.median())

    def mean(self) -> NDArray[np.float64]:
        """float64[N]: the expected value."""
        return self._asked(lambda one, part: one.mean())

    def median(self) -> NDArray[np.float64]:
        """float64[N]: the quantile of level 0.5."""
        return self._asked(lambda one, part: one.median())

    def mode(self) -> NDArray[np.float64]:
        """float64[N]: the value with the highest density, or for a head of tokens or digits its
        most probable output; NaN if that is not a number."""
        return self._asked(lambda one, part: one.mode())

    def quantiles(self, levels: Sequence[float]) -> NDArray[np.float64]:
        """float64[N, levels]; UsageError unless levels lie between 0 and 1, both excluded."""
        given = floats(levels, "levels")
        if not len(given) or not ((given > 0) & (given < 1)).all():
            raise UsageError(
                f"levels must lie between 0 and 1, both excluded (got {reprlib.repr(levels)})"
            )
        return self._asked(lambda one, part: one.quantiles(given.tolist()))

    def cdf(self, values: Any) -> NDArray[np.float64]:
        """float64[N]: P(X <= value), of values [N]."""
        given = floats(values, "values", len(self))
        return self._asked(lambda one, part: one.cdf(given[part]))

    def log_density(self, values: Any) -> NDArray[np.float64]:
        """float64[N], nats: of the density for each unit of the text, at values [N]; of a single
        value with a probability of its own, such as zero, the logarithm of that."""
        given = floats(values, "values", len(self))
        return self._asked(lambda one, part: one.log_density(given[part]))

    def crps(self, values: Any) -> NDArray[np.float64]:
        """float64[N], units of the text: the continuous ranked probability score of true values
        [N]; lower is better."""
        given = floats(values, "values", len(self))
        return self._asked(lambda one, part: one.crps(given[part]))

    @typed
    def sample(self, count: int = 1, *, seed: int = 0) -> NDArray[np.float64]:
        """float64[N, count]: independent draws, the same for the same seed."""
        for name, value in (("count", count), ("seed", seed)):
            if value < 0:
                raise UsageError(f"{name} must be at least 0 (got {value})")
        random = np.random.default_rng(seed)
        return self._asked(lambda one, part: one.sample(count, random))

    def _asked(self, ask: Callable[[Predictive, Any], NDArray[np.float64]]) -> NDArray[np.float64]:
        """What the distributions answer, some at a time, in order."""
        if self.why_none is not None:
            raise UsageError(self.why_none)
        every = np.arange(len(self))
        answers: NDArray[np.float64] | None = None
        for part, one in self.raw.distributions(self.reading, [(every, self.calibration)]):
            some = ask(one, part)
            if answers is None:
                answers = np.empty((len(self), *some.shape[1:]))
            answers[part] = some
        return np.empty(0) if answers is None else answers

    def _repr_html_(self) -> str:
        """The first numbers with their 5%, 50% and 95% quantiles."""
        shown = self._first(_SHOWN)
        head, columns = ["point"], shown.point()[:, None]
        if self.why_none is None and len(self):
            head += [f"{level:.0%}" for level in _LEVELS]
            columns = np.concatenate([columns, shown.quantiles(_LEVELS)], axis=1)
        rows = ([f"{value:.6g}" for value in row] for row in columns.tolist())
        left = len(self) - len(shown)
        return html_table(head, rows) + (f"<p>and {left:,} more</p>" if left else "")

    def _first(self, count: int) -> "PredictedNumbers":
        return replace(self, reading=self.reading.first(count), points=self.points[:count])


def floats(values: Any, name: str, count: int | None = None) -> NDArray[np.float64]:
    """Values as float64[count], or of any count; UsageError for anything else."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be numbers (got {reprlib.repr(values)})") from None
    if array.ndim != 1:
        raise UsageError(f"{name} must be a sequence of numbers (got {reprlib.repr(values)})")
    if count not in (None, len(array)):
        raise UsageError(f"{name} must be {count:,} numbers (got {len(array):,})")
    return array
