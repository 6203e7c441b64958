"""Probes of one form, read, and what tells them apart."""

from collections.abc import Sequence

import numpy as np

from numtok.analysis.figures._labels import labels_of
from numtok.analysis.figures._picture import Floats
from numtok.analysis.probing.probe_files import LoadedProbe, read
from numtok.analysis.probing.probes import CONFIDENCE, EMBEDDING, PCA, SAMPLES, SWEEP
from numtok.errors import UsageError
from numtok.store.artifact import Artifact

_KINDS = {
    SAMPLES: "sweep",
    SWEEP: "sweep",
    EMBEDDING: "embedding",
    PCA: "pca",
    CONFIDENCE: "confidence",
}


def read_probes(kind: str, artifacts: Sequence[Artifact]) -> list[tuple[str, LoadedProbe]]:
    """The probes and a label for each; UsageError for one that another kind of figure draws."""
    found = [read(one) for one in artifacts]
    for one in found:
        if (other := _KINDS[one.probe.form]) != kind:
            raise UsageError(
                f"figure {kind} does not draw {one.ref}, a probe of form {one.probe.form}; "
                f"figure {other} does"
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
