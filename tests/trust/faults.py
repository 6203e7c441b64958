"""File operations that fail or stop halfway, or at which the process is killed."""

import signal
from random import Random

from tests.faults import points
from tests.trust.promise import Promise
from tests.trust.world import World, opened

_KINDS = ("eio", "enospc", "short", "torn", "kill", "killtorn")
# Operations that only clean up, or look for files to clean up, may fail silently.
_TIDYING = {"close", "unlink", "rmdir", "scandir", "stat", "fstat", "room"}


def fault(world: World, random: Random) -> int:
    """Inject a fault into one file operation of a command, or into all operations from there on."""
    index = random.randrange(len(world.links))
    trace, kind = world.links[index].trace, random.choice(_KINDS)
    at = random.choice(points(kind, trace))
    onward = kind in ("eio", "enospc", "torn") and random.random() < 0.2
    codes = (0,) * (kind == "short" or trace[at - 1] in _TIDYING) + (3, 4) * (kind != "short")
    if kind.startswith("kill"):
        codes = (-signal.SIGKILL,)
    plan = f"{kind}@{at}{'+' if onward else ''}"
    world.strike(index, codes, f"{plan}, {trace[at - 1]}", plan=plan)
    return 1


def read_only(world: World, random: Random) -> int:
    """Run a command on a disk that becomes read-only before it or at one of its operations."""
    index = random.randrange(len(world.links))
    trace = world.links[index].trace
    places = points("erofs", trace)
    at = random.choice([1, *places])
    codes = (0,) * (not places or trace[at - 1] in _TIDYING) + (4,)
    world.strike(index, codes, f"read-only from {at}", plan=f"erofs@{at}+")
    return 1


FAULTS = Promise(
    name="faults",
    says="A file operation that fails costs no finished work. The command prints one line, and the "
    "same command ends with the same bytes.",
    how="One operation of a command of the chain is drawn. It fails (EIO, ENOSPC), stops halfway, "
    "or the process is killed before or within it; in a fifth of the failures all later operations "
    "fail as well.",
    aim=10_000,
    unit="fault points",
    world=opened,
    case=fault,
)
READ_ONLY = Promise(
    name="read-only",
    says="A disk that is or becomes read-only is reported in one line, and nothing is lost.",
    how="From a drawn operation on, all operations that change a file or folder fail with EROFS.",
    aim=1_000,
    unit="runs",
    world=opened,
    case=read_only,
)
