"""The contract of a probe: a model in, and often data, a summary and points in plain columns out.

``stages/probe.py`` finds the artifacts, reads the model and keeps what a probe finds
(``probe_records``).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from numtok.analysis.probing.probe_records import Summary
from numtok.declaration import as_stored, setting, settings_in
from numtok.errors import UsageError
from numtok.evaluation.devices import ONE, Devices, Note
from numtok.evaluation.scoring import Progress
from numtok.registry import Registry, name_of
from numtok.store.artifact import Artifact, Find
from numtok.training.model_files import LoadedModel

#: What some settings are called in artifacts: versions are made of the names that they had first.
_STORED = {"number": "sweep", "from_": "low", "to": "high"}
LEAST = 3  # points of a line of numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeInputs:
    """What a probe looks at, and whom it tells of that.

    data
        Encoded as the model's were; None where none were given.
    find
        Looks artifacts up, such as the data that the model learnt from.
    """

    loaded: LoadedModel
    data: Artifact | None
    find: Find
    progress: Progress
    note: Note
    devices: Devices = ONE


class ProbeResult(NamedTuple):
    """The summary, its points, what a reader must know, and the values of a target that were seen
    in training (``probe_records``)."""

    found: Summary
    points: "pa.Table"
    notes: list[str]
    seen: "pa.Table | None" = None


class ProbeKind(ABC):
    """A way to look at a model. Subclasses are final frozen dataclasses; their fields are options
    of ``numtok probe``, which has a help for each.

    ``revision`` goes up whenever the same model, data and settings give something else;
    ``reads_rows`` says whether a model reads rows for it, of which each device has a part.
    """

    reads_rows: ClassVar[bool] = False
    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def check(self, model: Artifact, data: Artifact | None) -> None:
        """Raise UsageError where it is not of such a model or such data, before either is read."""

    @abstractmethod
    def run(self, inputs: ProbeInputs) -> ProbeResult:
        """Look at a model.

        Raises UsageError for what is not in the model or the data, DataError for too few rows.
        """

    @property
    def suffix(self) -> str:
        """What stands behind the model's name in that of the artifact, unless one is given."""
        return name_of(self)

    @property
    def stored(self) -> Mapping[str, Any]:
        """The settings that a version is made of."""
        return {
            _STORED.get(key, key): as_stored(getattr(self, key))
            for key in settings_in(type(self), learned=True)
        }


PROBES = Registry[ProbeKind]("numtok.analysis.probing.probes", "probe", ProbeKind)


def line_end() -> Any:
    """Declare the first or the last number of a line."""

    def wrong(value: float) -> str | None:
        return None if math.isfinite(value) else "must be finite"

    return setting(None, refuse=wrong)


def line_points() -> Any:
    return setting(201, at_least=LEAST)


def check_ends(low: float | None, high: float | None) -> None:
    """Raise UsageError unless a line that has both ends rises."""
    if low is not None and high is not None and not low < high:
        raise UsageError(f"--from {low:g} --to {high:g} is not possible: --from is less than --to")
