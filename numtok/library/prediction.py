"""Head predictions: points, and distributions that are computed on demand."""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
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

    Every method computes the predicted distributions when it is called; they are not stored.
    Methods other than :meth:`point` raise UsageError if the head predicts no distribution.

    Attributes
    ----------
    points : float64[N]
        Values that the head writes as tokens or outputs directly, not derived from a distribution.
    why_none : str or None
        Reason why the head predicts no distribution; None if it predicts one.
    """

    raw: RawNumbers
    reading: NumberReadings
    points: NDArray[np.float64]
    calibration: Calibration
    why_none: str | None = None
    in_answer: NDArray[np.bool_] | None = None  # [N]; None if unknown

    def __len__(self) -> int:
        return len(self.points)

    def point(self) -> NDArray[np.float64]:
        """Return the point predictions, float64[N].

        They are the medians of the predicted distributions, or the head's direct outputs if it
        predicts tokens, exact digits or no distribution. A prediction is NaN if the output is not a
        number.
        """
        if self.why_none is not None or default_point(self.raw.heads.head) == "mode":
            return self.points
        return np.where(np.isnan(self.points), np.nan, self.median())

    def mean(self) -> NDArray[np.float64]:
        """Return the means of the predicted distributions, float64[N]."""
        return self._computed(lambda chunk, part: chunk.mean())

    def median(self) -> NDArray[np.float64]:
        """Return the medians of the predicted distributions, float64[N]."""
        return self._computed(lambda chunk, part: chunk.median())

    def mode(self) -> NDArray[np.float64]:
        """Return the values with the highest predicted density, float64[N].

        For a head that predicts tokens or digits, they are the most probable outputs, or NaN for an
        output that is not a number.
        """
        return self._computed(lambda chunk, part: chunk.mode())

    def quantiles(self, levels: Sequence[float]) -> NDArray[np.float64]:
        """Return quantiles of the predicted distributions, float64[N, levels].

        Raises UsageError unless all levels lie strictly between 0 and 1.
        """
        wanted = floats(levels, "levels")
        if not len(wanted) or not ((wanted > 0) & (wanted < 1)).all():
            raise UsageError(
                f"levels must lie between 0 and 1, both excluded (got {reprlib.repr(levels)})"
            )
        return self._computed(lambda chunk, part: chunk.quantiles(wanted.tolist()))

    def cdf(self, values: Any) -> NDArray[np.float64]:
        """Return the predicted probability that each number is at most the given value, float64[N].

        ``values`` [N] contains one value per number.
        """
        points = floats(values, "values", len(self))
        return self._computed(lambda chunk, part: chunk.cdf(points[part]))

    def log_density(self, values: Any) -> NDArray[np.float64]:
        """Return the log of each predicted density at the given value, float64[N].

        ``values`` [N] contains one value per number. The result is in nats, for densities per unit
        of the text. If a single value, such as zero, has a probability of its own, the result at
        that value is the log of this probability.
        """
        points = floats(values, "values", len(self))
        return self._computed(lambda chunk, part: chunk.log_density(points[part]))

    def crps(self, values: Any) -> NDArray[np.float64]:
        """Return the continuous ranked probability score of each prediction, float64[N].

        ``values`` [N] are the true values. The score is in units of the text; lower is better.
        """
        targets = floats(values, "values", len(self))
        return self._computed(lambda chunk, part: chunk.crps(targets[part]))

    @typed
    def sample(self, count: int = 1, *, seed: int = 0) -> NDArray[np.float64]:
        """Return independent samples from each predicted distribution, float64[N, count].

        Equal seeds give equal samples.
        """
        for name, value in (("count", count), ("seed", seed)):
            if value < 0:
                raise UsageError(f"{name} must be at least 0 (got {value})")
        random = np.random.default_rng(seed)
        return self._computed(lambda chunk, part: chunk.sample(count, random))

    def _computed(
        self, compute: Callable[[Predictive, Any], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Apply a function to the distributions, in chunks, and return its results in order."""
        if self.why_none is not None:
            raise UsageError(self.why_none)
        every = np.arange(len(self))
        answers: NDArray[np.float64] | None = None
        parts = [(every, self.calibration)]
        parameters = self.reading.parameters
        # Not in bfloat16: 8 bits are too coarse for a value.
        with torch.autocast("cpu" if parameters is None else parameters.device.type, enabled=False):
            for part, chunk in self.raw.distributions(self.reading, parts, self.in_answer):
                results = compute(chunk, part)
                if answers is None:
                    answers = np.empty((len(self), *results.shape[1:]))
                answers[part] = results
        return np.empty(0) if answers is None else answers

    def _repr_html_(self) -> str:
        """Return an HTML table of the first numbers with their 5%, 50% and 95% quantiles."""
        shown = replace(
            self,
            reading=self.reading.take(slice(_SHOWN)),
            points=self.points[:_SHOWN],
            in_answer=None if self.in_answer is None else self.in_answer[:_SHOWN],
        )
        head, columns = ["point"], shown.point()[:, None]
        if self.why_none is None and len(self):
            head += [f"{level:.0%}" for level in _LEVELS]
            columns = np.concatenate([columns, shown.quantiles(_LEVELS)], axis=1)
        rows = ([f"{value:.6g}" for value in row] for row in columns.tolist())
        left = len(self) - len(shown)
        return html_table(head, rows) + (f"<p>and {left:,} more</p>" if left else "")


def floats(values: Any, name: str, count: int | None = None) -> NDArray[np.float64]:
    """Return ``values`` as float64[count], or as float64 of any length if ``count`` is None.

    Raises UsageError if the values are not numbers, or if they have the wrong length or more than
    one dimension.
    """
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
