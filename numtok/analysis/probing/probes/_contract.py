"""Contract suite for probes: checks that need no model, run by ``numtok check probe NAME``.

The results of a probe are checked in every run, when they are published.
"""

import inspect

from numtok import contracts
from numtok.analysis.probing.probes.base import PROBES, ProbeKind
from numtok.contracts import check_declared, check_settings, checks_of, expect, require
from numtok.names import NAME
from numtok.store.artifact import version_of


def check_declarations(probe: ProbeKind, seed: int) -> None:
    """Check that the probe declares its revision and its source."""
    check_declared(probe, "declarations", revision=int, source=str)
    check_settings(PROBES, probe, "declarations")


def check_described(probe: ProbeKind, seed: int) -> None:
    """Check that the probe and each of its settings have a description."""
    contracts.check_described(probe, "described")


def check_members(probe: ProbeKind, seed: int) -> None:
    """Check that ``check`` takes a model and data, and that ``run`` takes its inputs."""
    for member, wanted in (("check", 2), ("run", 1)):
        parameters = len(inspect.signature(getattr(type(probe), member)).parameters) - 1  # self
        expect(probe, "members", f"parameters of {member}", parameters, wanted)


def check_artifact(probe: ProbeKind, seed: int) -> None:
    """Check that an artifact can store the probe's settings, and that its name can end with the
    probe's suffix."""
    own = {"form", "device", "stage", "revision"} & probe.stored.keys()
    require(probe, "artifact", not own, f"stored: got {sorted(own)}, which stage probe adds")
    version_of("probe", probe.stored, [])  # raises if JSON cannot represent them
    named = NAME.fullmatch(f"model-{probe.suffix}")
    require(probe, "artifact", named, f"suffix: got {probe.suffix!r}, expected part of a name")


CHECKS = checks_of(__name__)
