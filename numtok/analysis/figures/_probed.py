"""Probes of one form, read, and what tells them apart."""

from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np

from numtok.analysis.figures._reports import labels_of
from numtok.analysis.probing.probe_records import (
    Along,
    Confidence,
    Embedding,
    LoadedProbe,
    Summary,
    TokenComponents,
    read,
)
from numtok.arrays import Floats
from numtok.errors import UsageError
from numtok.store.artifact import Artifact

Found = TypeVar("Found")
#: What draws what was found.
_KINDS: dict[type[Summary], str] = {
    Along: "vary",
    Embedding: "embedding",
    TokenComponents: "pca",
    Confidence: "confidence",
}


def read_probes(
    kind: str, of: type[Found], artifacts: Sequence[Artifact]
) -> list[tuple[str, LoadedProbe, Found]]:
    """A label of each probe, the probe and what it found; UsageError for one that found what
    another kind of figure draws."""
    found = [read(one) for one in artifacts]
    for one in found:
        if not isinstance(one.probe.found, of):
            other = _KINDS.get(type(one.probe.found))
            does = "no figure does" if other is None else f"figure {other} does"
            raise UsageError(
                f"figure {kind} does not draw {one.ref}, a probe of form {one.probe.form}; {does}"
            )
    settings = []
    for one in found:
        told = {key: str(value) for key, value in one.probe.configuration.items()}
        told.pop("scheme", None)
        settings.append(told | {"seed": str(one.probe.seed)})
    labels = labels_of([one.probe.scheme for one in found], settings)
    return [
        (label, one, cast(Found, one.probe.found)) for label, one in zip(labels, found, strict=True)
    ]


def column(probed: LoadedProbe, name: str) -> Floats:
    """A column of the points, float64[n], NaN where it is null."""
    return np.asarray(probed.points.column(name).to_numpy(), np.float64)
