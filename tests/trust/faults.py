"""File operations that fail, are cut short or are the last ones."""

import signal
from random import Random

from tests.faults import points
from tests.trust.promise import Promise
from tests.trust.world import World, any_link, check_kept, check_told, opened, struck

_KINDS = ("eio", "enospc", "short", "torn", "kill", "killtorn")
# What only tidies up, or looks for something to tidy up, may fail without a word.
_TIDYING = {"close", "unlink", "rmdir", "scandir", "stat", "fstat", "room"}


def fault(world: World, random: Random) -> int:
    """Strike one file operation of one command, or all from there on."""
    link, before = any_link(world, random)
    kind = random.choice(_KINDS)
    at = random.choice(points(kind, link.trace))
    onward = kind in ("eio", "enospc", "torn") and random.random() < 0.2
    plan = f"{kind}@{at}{'+' if onward else ''}"
    with world.copy(link.before) as copy:
        (ended,) = world.forks.together(struck(world, link, plan=plan))
        command = (*link.command, f"[{plan}, {link.trace[at - 1]}]")
        if kind.startswith("kill"):
            assert ended.code == -signal.SIGKILL, f"{command}: exit {ended.code}"
        else:
            may_pass = kind == "short" or link.trace[at - 1] in _TIDYING
            check_told(ended, (0,) * may_pass + (3, 4) * (kind != "short"), command)
        check_kept(copy, before, link.state, command)
        world.finish(copy, link)
    return 1


def read_only(world: World, random: Random) -> int:
    """Run a command on a disk that became read-only, before it or at one of its operations."""
    link, before = any_link(world, random)
    places = points("erofs", link.trace)
    at = random.choice([1, *places])
    with world.copy(link.before) as copy:
        (ended,) = world.forks.together(struck(world, link, plan=f"erofs@{at}+"))
        command = (*link.command, f"[erofs@{at}+]")
        may_pass = not places or link.trace[at - 1] in _TIDYING
        check_told(ended, (0,) * may_pass + (4,), command)
        check_kept(copy, before, link.state, command)
        world.finish(copy, link)
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
