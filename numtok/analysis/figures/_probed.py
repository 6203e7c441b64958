"""Probes of one form, read, and what tells them apart."""

from collections.abc import Sequence

import numpy as np

from numtok.analysis.figures._labels import labels_of
from numtok.analysis.figures._picture import Floats
from numtok.analysis.probing.probe_files import LoadedProbe, read
from numtok.analysis.probing.probe_records import (
    Along,
    Confidence,
    Embedding,
    Summary,
    TokenComponents,
)
from numtok.errors import UsageError
from numtok.store.artifact import Artifact

#: What draws what was found.
_KINDS: dict[type[Summary], str] = {
    Along: "sweep",
    Embedding: "embedding",
    TokenComponents: "pca",
    Confidence: "confidence",
}


def read_probes(kind: str, artifacts: Sequence[Artifact]) -> list[tuple[str, LoadedProbe]]:
    """The probes and a label for each; UsageError for one that another kind of figure draws."""
    found = [read(one) for one in artifacts]
    for one in found:
        if (other := _KINDS.get(type(one.probe.found))) != kind:
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
    return list(zip(labels, found, strict=True))


def column(probed: LoadedProbe, name: str) -> Floats:
    """A column of the points, float64[n], NaN where it is null."""
    return np.asarray(probed.points.column(name).to_numpy(), np.float64)
