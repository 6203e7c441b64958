"""Interface for probes, which take a model and usually data, and return a summary and points.

``stages/probe.py`` finds the artifacts, reads the model, and stores the result
(:mod:`numtok.analysis.probing.probe_records`).
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
LEAST = 3  # minimum number of values of the number that a probe changes


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeInputs:
    """Inputs to a probe, and functions to report its progress and notes.

    loaded
        Model to probe.
    data
        Data in the encoding of the model; None if no data was passed.
    find
        Function that looks up artifacts, such as the data that the model was trained on.
    devices
        Devices on which the model runs.
    """

    loaded: LoadedModel
    data: Artifact | None
    find: Find
    progress: Progress
    note: Note
    devices: Devices = ONE


class ProbeResult(NamedTuple):
    """Result of a probe.

    found
        Summary of the result.
    points
        Table of points, whose columns depend on the type of the summary.
    notes
        Notes for the user, one sentence each.
    seen
        Table of the values of the target seen in training; None if the probe has no target.
    """

    found: Summary
    points: pa.Table
    notes: list[str]
    seen: pa.Table | None = None


class ProbeKind(ABC):
    """Base class for probes. Subclasses are final frozen dataclasses whose fields are options of
    ``numtok probe``, each with a help text.

    reads_rows
        True if the model reads rows during the probe. Rows are split between devices.
    revision
        Version of the result. Increment it when the same model, data and settings give a different
        result.
    source
        Paper and section or figure that the probe is from.
    """

    reads_rows: ClassVar[bool] = False
    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def check(self, model: Artifact, data: Artifact | None) -> None:
        """Raise UsageError if the probe does not support the model or the data. This is called
        before they are read."""

    @abstractmethod
    def run(self, inputs: ProbeInputs) -> ProbeResult:
        """Probe a model and return the result.

        Raises UsageError if settings do not fit the model or the data, and DataError if there are
        too few rows.
        """

    @property
    def suffix(self) -> str:
        """Suffix that is appended to the model's name to form the default name of the artifact."""
        return name_of(self)

    @property
    def stored(self) -> Mapping[str, Any]:
        """Settings that are part of the artifact's version, keyed by name."""
        return {
            _STORED.get(key, key): as_stored(getattr(self, key))
            for key in settings_in(type(self), learned=True)
        }


PROBES = Registry[ProbeKind]("numtok.analysis.probing.probes", "probe", ProbeKind)


def line_end() -> Any:
    """Declare a setting for the smallest or the largest value of the number that a probe
    changes."""

    def wrong(value: float) -> str | None:
        return None if math.isfinite(value) else "must be finite"

    return setting(None, refuse=wrong)


def line_points() -> Any:
    """Declare a setting for the number of values that a probe tries for the number it changes."""
    return setting(201, at_least=LEAST)


def check_ends(low: float | None, high: float | None) -> None:
    """Raise UsageError unless ``low`` is less than ``high``. An end that is None is not checked."""
    if low is not None and high is not None and not low < high:
        raise UsageError(f"--from must be less than --to (got {low:g} and {high:g})")
