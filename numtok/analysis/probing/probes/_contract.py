"""What every probe must do, as checks that run anywhere: ``numtok check probe NAME``.

What a probe answers is compared with ``base`` whenever it is run.
"""

import inspect

from numtok import contracts
from numtok.analysis.probing.probes.base import PROBES, ProbeKind
from numtok.contracts import check_declared, check_settings, checks_of, expect, require
from numtok.names import NAME
from numtok.store.artifact import version_of


def check_declarations(probe: ProbeKind, seed: int) -> None:
    """What is declared is there: the revision, and where the probe is from."""
    check_declared(probe, "declarations", revision=int, source=str)
    check_settings(PROBES, probe, "declarations")


def check_described(probe: ProbeKind, seed: int) -> None:
    """It says what it looks at, and what each of its settings is."""
    contracts.check_described(probe, "described")


def check_members(probe: ProbeKind, seed: int) -> None:
    """``check`` takes a model and data, ``run`` what it looks at."""
    for member, wanted in (("check", 2), ("run", 1)):
        parameters = len(inspect.signature(getattr(type(probe), member)).parameters) - 1  # self
        expect(probe, "members", f"parameters of {member}", parameters, wanted)


def check_artifact(probe: ProbeKind, seed: int) -> None:
    """An artifact can have its settings, and a name that ends with its suffix."""
    own = {"form", "device", "stage", "revision"} & probe.stored.keys()
    require(probe, "artifact", not own, f"stored: got {sorted(own)}, which stage probe adds")
    version_of("probe", probe.stored, [])  # raises where JSON cannot hold them
    named = NAME.fullmatch(f"model-{probe.suffix}")
    require(probe, "artifact", named, f"suffix: got {probe.suffix!r}, expected part of a name")


CHECKS = checks_of(__name__)
