"""Whole chains of commands that are killed or interrupted again and again."""

import signal
from random import Random

from tests.trust.promise import Promise
from tests.trust.world import World, check_kept, check_told, opened, struck

_TIMES = 4  # that one command may be struck


def killed(world: World, random: Random) -> int:
    """Kill commands of a chain at random times, and repeat each until it ends."""
    kills = 0
    with world.copy(world.links[0].before) as copy:
        for index, link in enumerate(world.links):
            before = world.links[index - 1].state if index else {}
            for _ in range(random.randrange(_TIMES)):
                after = random.uniform(0, 1.2) * link.seconds
                run = struck(world, link, signal=signal.SIGKILL, after=after)
                (ended,) = world.forks.together(run)
                command = (*link.command, f"[killed after {after:.3f} s]")
                if ended.code != -signal.SIGKILL:
                    check_told(ended, (0,), command)
                    break
                kills += 1
                check_kept(copy, before, link.state, command)
            world.finish(copy, link)
    return kills


def interrupted(world: World, random: Random) -> int:
    """Interrupt or terminate one command at a random time."""
    index = random.randrange(len(world.links))
    link, before = world.links[index], world.links[index - 1].state if index else {}
    number, code = random.choice([(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    after = random.uniform(0, 1.2) * link.seconds
    with world.copy(link.before) as copy:
        run = struck(world, link, signal=number, after=after)
        (ended,) = world.forks.together(run)
        if ended.code in (70, -number) and not ended.err:
            return 0  # before numtok or after it
        command = (*link.command, f"[{number.name} after {after:.3f} s]")
        check_told(ended, (0, code), command)
        check_kept(copy, before, link.state, command)
        world.finish(copy, link)
    return ended.code == code


KILLS = Promise(
    name="kills",
    says="A chain of commands whose processes are killed at any time (kill -9) ends with the same "
    "bytes, if each command is repeated until it ends.",
    how="Each command of a chain of 16 is killed at up to three random times, then repeated.",
    aim=1_000,
    unit="kills",
    world=opened,
    case=killed,
)
INTERRUPTS = Promise(
    name="interrupts",
    says="SIGINT and SIGTERM end a command with exit code 130 or 143 and one line. Finished work "
    "is kept, and the same command continues.",
    how="A command of the chain gets a signal at a random time. Runs that end before are not "
    "counted.",
    aim=1_000,
    unit="signals",
    world=opened,
    case=interrupted,
)
