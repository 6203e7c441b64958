"""embedding: how a number's embedding saturates along one direction after the first layer norm."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from numtok.analysis.probing.probe_records import Embedding
from numtok.analysis.probing.probes.base import (
    ProbeInputs,
    ProbeKind,
    ProbeResult,
    check_ends,
    line_end,
    line_points,
)
from numtok.arrays import Floats
from numtok.encoding.schemes.base import ChannelScheme
from numtok.errors import UsageError
from numtok.models.projections import Projections, projections
from numtok.numerals.column import Numerals
from numtok.store.artifact import Artifact

_FORMULA = "offset + height * mean over positions of x / sqrt(r^2 + x^2), r = |p| / |u|"
_REACH = 10.0  # default largest input, to both sides


@dataclass(frozen=True)
class EmbeddingProbe(ProbeKind):
    """Embedding of a number x after the first layer norm, projected onto one direction, as x grows.

    LN(e(x) + p) is projected, where e(x) is the embedding of the number and p is the embedding of a
    position; all positions are used. The probe only needs a model.

    If e(x) = x u, where u is the vector of ``[NUM]``, the projection is onto u. If u were
    orthogonal to p, the projection would be a multiple of x / sqrt(r^2 + x^2) with r = |p| / |u|.
    Here u and p are centered: as in layer norm, their means over the coordinates are subtracted.
    (xVal, Section 2.1, assumes |p| = |u|.)

    from_
        Smallest input, normalized. Default: -10.
    to
        Largest input, normalized. Default: 10.
    points
        Number of inputs.

    Raises UsageError if the embedding does not depend on the value, or if the model has no layer
    norm.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Figure 2"
    from_: float | None = line_end()
    to: float | None = line_end()
    points: int = line_points()

    def __post_init__(self) -> None:
        check_ends(*self._ends)

    @property
    def _ends(self) -> tuple[float, float]:
        low = -_REACH if self.from_ is None else self.from_
        return low, _REACH if self.to is None else self.to

    def check(self, model: Artifact, data: Artifact | None) -> None:
        if data is not None:
            raise UsageError(f"probe embedding takes only a model. Leave out {data.ref}")

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        codec, model, ref = inputs.loaded.codec, inputs.loaded.model, inputs.loaded.artifact.ref
        if model.trunk.first_norm() is None:
            raise UsageError(
                "probe embedding needs a first layer norm, but the trunk "
                f"{model.settings.trunk['name']} of {ref} has none. Use probe pca"
            )
        x = np.linspace(*self._ends, self.points)
        token = int(codec.scheme.encode(Numerals(np.array([1.0]))).tokens[0]) + codec.number_first
        if not isinstance(codec.scheme, ChannelScheme) or (
            (projected := projections(model, token, x)) is None
        ):
            raise UsageError(
                "probe embedding needs an embedder of values, but "
                f"{model.settings.embedder['name']!r} of {ref} looks up only tokens. Use probe "
                "pca, which shows their vectors"
            )
        return _result(x, projected)


def _result(x: Floats, projected: Projections) -> ProbeResult:
    mean = projected.lengths.mean(axis=1)
    columns = {
        "x": x,
        "mean": mean,
        "deviation": projected.lengths.std(axis=1),
        "low": projected.lengths.min(axis=1),
        "high": projected.lengths.max(axis=1),
        "formula": pa.nulls(len(x), pa.float64()),
    }
    constants: dict[str, float] = {}
    if projected.unit is not None:
        columns["formula"], constants = _formula(x, mean, projected.unit, projected)
    summary = Embedding(
        direction="the vector of [NUM]"
        if constants
        else "the first principal component of the mean over positions",
        positions=len(projected.positions),
        low=float(x[0]),
        high=float(x[-1]),
        formula=_FORMULA if constants else None,
        half=_half(x, mean),
        **constants,
    )
    return ProbeResult(summary, pa.table(columns), [])


def _formula(
    x: Floats, mean: Floats, unit: Floats, projected: Projections
) -> tuple[Floats, dict[str, float]]:
    """Fit offset and height by least squares. Return the curve, float64[n], and the fields of
    :class:`Embedding` that describe it.
    """
    u = unit - unit.mean()
    p = projected.positions - projected.positions.mean(axis=1, keepdims=True)
    size = np.sqrt(np.square(u).sum())
    sizes = np.sqrt(np.square(p).sum(axis=1) + len(u) * projected.epsilon)
    r, cosine = sizes / size, p @ u / (sizes * size)
    shape = (x[:, None] / np.sqrt(np.square(r) + np.square(x)[:, None])).mean(axis=1)
    design = np.column_stack([np.ones(len(x)), shape])
    fitted, *_ = np.linalg.lstsq(design, mean, rcond=None)
    y = design @ fitted
    return y, {
        "scale": float(r.mean()),
        "scale_deviation": float(r.std()),
        "cosine": float(cosine.mean()),
        "cosine_deviation": float(cosine.std()),
        "offset": float(fitted[0]),
        "height": float(fitted[1]),
        "residual": float(np.sqrt(np.square(mean - y).mean()) / np.ptp(mean)),
    }


def _half(x: Floats, y: Floats) -> float | None:
    """Return the smallest x above 0 at which y is halfway between its values at 0 and at the upper
    end.

    Return None if y does not level off. It levels off if it is monotonic and its slope at the end
    is less than half of its slope at the start; otherwise, the end is only where x stops.

    >>> _half(np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), np.array([-4.0, 0.0, 4.0, 7.0, 8.0]))
    1.0
    """
    if not x[0] <= 0 < x[-1]:
        return None
    inputs = np.append(0.0, x[x > 0])
    risen = np.interp(inputs, x, y)
    risen = (risen - risen[0]) * np.sign(risen[-1] - risen[0])
    pace = np.diff(risen) / np.diff(inputs)
    if (pace < 0).any() or pace[-1] >= pace[0] / 2:
        return None
    return float(np.interp(risen[-1] / 2, risen, inputs))
