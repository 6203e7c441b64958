"""embedding: how that of a number saturates, along one direction after the first norm."""

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
_REACH = 10.0  # numbers that go in, to both sides, unless --from or --to says


@dataclass(frozen=True)
class EmbeddingProbe(ProbeKind):
    """A number after the first layer norm, as it grows: the projection of LN(e(x) + p) on a
    direction, over all positions p. It needs the model alone.

    Where e(x) = x u, u the vector of ``[NUM]``, the direction is that of u. Were u orthogonal to p,
    LN(x u + p) along u would be a multiple of x / sqrt(r^2 + x^2) with r = |p| / |u|, both less
    their mean over the coordinates, as layer norm has it (xVal, Section 2.1, has |p| = |u|).

    from_
        The least number, as it goes in: normalised. Default: -10.
    to
        The greatest, likewise. Default: 10.
    points
        Numbers between them.

    Raises UsageError where the embedding does not depend on the value, and where there is no norm.
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
            raise UsageError(f"an embedding is of the model alone; leave {data.ref} out")

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        codec, model, ref = inputs.loaded.codec, inputs.loaded.model, inputs.loaded.artifact.ref
        if model.trunk.first_norm() is None:
            raise UsageError(
                "probe embedding is of what the first layer norm leaves of a number, and the trunk "
                f"{model.settings.trunk['name']} of {ref} has none; use probe pca"
            )
        x = np.linspace(*self._ends, self.points)
        token = int(codec.scheme.encode(Numerals(np.array([1.0]))).tokens[0]) + codec.number_first
        found = projections(model, token, x) if isinstance(codec.scheme, ChannelScheme) else None
        if found is None:
            raise UsageError(
                "probe embedding follows a value beside its token, and the embedder "
                f"{model.settings.embedder['name']!r} of {ref} looks up tokens alone; use probe "
                "pca, which shows their vectors"
            )
        return _result(x, found)


def _result(x: Floats, found: Projections) -> ProbeResult:
    mean = found.lengths.mean(axis=1)
    columns = {
        "x": x,
        "mean": mean,
        "deviation": found.lengths.std(axis=1),
        "low": found.lengths.min(axis=1),
        "high": found.lengths.max(axis=1),
        "formula": pa.nulls(len(x), pa.float64()),
    }
    constants: dict[str, float] = {}
    if found.unit is not None:
        columns["formula"], constants = _formula(x, mean, found.unit, found)
    summary = Embedding(
        direction="the vector of [NUM]"
        if constants
        else "the first principal component of the mean over positions",
        positions=len(found.positions),
        low=float(x[0]),
        high=float(x[-1]),
        formula=_FORMULA if constants else None,
        half=_half(x, mean),
        **constants,
    )
    return ProbeResult(summary, pa.table(columns), [])


def _formula(
    x: Floats, mean: Floats, unit: Floats, found: Projections
) -> tuple[Floats, dict[str, float]]:
    """Fit offset and height by least squares. Returns the curve, float64[n], and the fields of
    :class:`Embedding` that describe it."""
    u = unit - unit.mean()
    p = found.positions - found.positions.mean(axis=1, keepdims=True)
    size = np.sqrt(np.square(u).sum())
    sizes = np.sqrt(np.square(p).sum(axis=1) + len(u) * found.epsilon)
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
    """The least x above 0 at which y is half way from that at 0 to that at the upper end.

    None where it does not level off: unless it goes one way alone, and at the end at less than half
    of its pace at the start, the end is only where x was left.

    >>> _half(np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), np.array([-4.0, 0.0, 4.0, 7.0, 8.0]))
    1.0
    """
    if not x[0] <= 0 < x[-1]:
        return None
    places = np.append(0.0, x[x > 0])
    risen = np.interp(places, x, y)
    risen = (risen - risen[0]) * np.sign(risen[-1] - risen[0])
    pace = np.diff(risen) / np.diff(places)
    if (pace < 0).any() or pace[-1] >= pace[0] / 2:
        return None
    return float(np.interp(risen[-1] / 2, risen, places))
