"""The interface of a probe: takes a model and often data; returns a summary and columns of points.

``stages/probe.py`` finds the artifacts, reads the model and stores the result (``probe_records``).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from numtok.analysis.probing.probe_records import Summary
from numtok.declaration import setting, settings_in
from numtok.errors import UsageError
from numtok.evaluation.devices import ONE, Devices, Note
from numtok.evaluation.scoring import Progress
from numtok.registry import Registry, name_of
from numtok.setting_values import as_stored
from numtok.store.artifact import Artifact, Find
from numtok.training.model_files import LoadedModel

#: Stored names of renamed settings: versions depend on the original names.
_STORED = {"number": "sweep", "from_": "low", "to": "high"}
LEAST = 3  # points of a line of numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeInputs:
    """Inputs of a probe, and functions for its progress and notes.

    data
        Data encoded as the model's training data; None if none were passed.
    find
        Looks up artifacts, such as the data that the model was trained on.
    """

    loaded: LoadedModel
    data: Artifact | None
    find: Find
    progress: Progress
    note: Note
    devices: Devices = ONE


class ProbeResult(NamedTuple):
    """The summary, its points, notes for the reader, and the values of the target seen in training
    (``probe_records``).
    """

    found: Summary
    points: "pa.Table"
    notes: list[str]
    seen: "pa.Table | None" = None


class ProbeKind(ABC):
    """A probe of models. Subclasses are final frozen dataclasses; their fields are options of
    ``numtok probe``, with a help each.

    ``revision`` increases whenever the same model, data and settings give another result;
    ``reads_rows`` is True if a model reads rows for it, split between devices.
    """

    reads_rows: ClassVar[bool] = False
    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def check(self, model: Artifact, data: Artifact | None) -> None:
        """Raise UsageError if the probe does not support such a model or such data, before reading
        them.
        """

    @abstractmethod
    def run(self, inputs: ProbeInputs) -> ProbeResult:
        """Probe a model.

        Raises UsageError for settings that the model or the data do not have, DataError for too few
        rows.
        """

    @property
    def suffix(self) -> str:
        """Suffix of the model's name in the default name of the artifact."""
        return name_of(self)

    @property
    def stored(self) -> Mapping[str, Any]:
        """The settings that the version depends on."""
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
    """Raise UsageError unless the lower end, if both are set, is less than the upper one."""
    if low is not None and high is not None and not low < high:
        raise UsageError(f"--from must be less than --to (got {low:g} and {high:g})")
