"""What a reader of a report on a table must know of its densities."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_OFTEN = 0.1  # of the targets
_RULED = 10  # times the error of the predictions: a CRPS that says nothing of them


def ruled_by_tails(predictions: "pa.Table") -> Iterator[str]:
    """A note where CRPS is of little probability far out, not of what is predicted: that of a
    distribution around its point is at most about the error of the point."""
    known = predictions.filter(pc.is_finite(predictions.column("crps")))
    known = known.filter(known.column("valid"))
    truth, said, crps = (known.column(name).to_numpy() for name in ("truth", "prediction", "crps"))
    if len(crps) and crps.mean() > _RULED * (error := np.abs(said - truth).mean()):
        yield (
            f"crps is {crps.mean():.3g} where predictions are off by {error:.3g}: little "
            "probability, but far beyond the targets, rules it; --draws N, of a decoder with "
            "--top-p 0.9, leaves such out."
        )


def often_repeated(target: str, truth: NDArray[np.float64]) -> Iterator[str]:
    """A note where a density says little, because one number comes again and again."""
    values, counts = np.unique(truth, return_counts=True)
    most = int(counts.argmax())
    if counts[most] >= max(_OFTEN * len(truth), 2):
        yield (
            f"{counts[most] / len(truth):.0%} of {target!r} are {values[most]:g}: densities (nll, "
            "tailed-nll) of such targets may be as high as a peak is narrow; interval-nll may not."
        )
