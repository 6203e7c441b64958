"""Commands that are repeatedly killed or interrupted."""

import signal
from random import Random

from tests.trust.promise import Promise
from tests.trust.world import World, opened

_TIMES = 4  # a command is killed fewer times than this


def killed(world: World, random: Random) -> int:
    """Kill the commands of a chain at random times, and repeat each command until it ends."""
    kills = 0
    with world.copy(world.links[0].before) as copy:
        for index, link in enumerate(world.links):
            for _ in range(random.randrange(_TIMES)):
                after = random.uniform(0, 1.2) * link.seconds
                what, codes = f"killed after {after:.3f} s", (0, -signal.SIGKILL)
                ended = world.strike_in(
                    copy, index, codes, what, signal=signal.SIGKILL, after=after
                )
                if not ended.code:
                    break
                kills += 1
            world.finish(copy, link)
    return kills


def interrupted(world: World, random: Random) -> int:
    """Interrupt or terminate one command at a random time."""
    index = random.randrange(len(world.links))
    number, code = random.choice([(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    after = random.uniform(0, 1.2) * world.links[index].seconds
    what = f"{number.name} after {after:.3f} s"
    ended = world.strike(index, (0, code), what, signal=number, after=after)
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
