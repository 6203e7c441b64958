"""Reads probe artifacts of one kind and labels them."""

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
#: Kind of figure that draws each type of summary.
_KINDS: dict[type[Summary], str] = {
    Along: "vary",
    Embedding: "embedding",
    TokenComponents: "pca",
    Confidence: "confidence",
}


def read_probes(
    kind: str, of: type[Found], artifacts: Sequence[Artifact]
) -> list[tuple[str, LoadedProbe, Found]]:
    """Return a label, the probe and its summary for each artifact.

    Raises UsageError if a summary does not have the type ``of``, because the figure ``kind`` cannot
    draw it.
    """
    probes = [read(artifact) for artifact in artifacts]
    for probed in probes:
        if not isinstance(probed.probe.found, of):
            other = _KINDS.get(type(probed.probe.found))
            remedy = "No figure draws it" if other is None else f"Use figure {other}"
            raise UsageError(
                f"figure {kind} cannot draw {probed.ref}, a {probed.probe.form} probe. {remedy}"
            )
    settings = []
    for probed in probes:
        own = {key: str(value) for key, value in probed.probe.configuration.items()}
        own.pop("scheme", None)
        settings.append(own | {"seed": str(probed.probe.seed)})
    labels = labels_of([probed.probe.scheme for probed in probes], settings)
    return [
        (label, probed, cast(Found, probed.probe.found))
        for label, probed in zip(labels, probes, strict=True)
    ]


def column(probed: LoadedProbe, name: str) -> Floats:
    """Return a column from the probe's table of points as float64[n]; nulls are NaN."""
    return np.asarray(probed.points.column(name).to_numpy(), np.float64)
