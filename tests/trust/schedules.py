"""Several commands that run on one store at the same time."""

import signal
from random import Random

from tests.forks import Run
from tests.trust.promise import Lost, Promise
from tests.trust.world import SECONDS, World, check_state, check_told, opened, state_of

_READERS = (
    *(("ls",), ("gc",), ("verify", "arithmetic"), ("verify", "arithmetic-xval")),
    *(("show", "value"), ("lineage", "values"), ("report", "values"), ("compare", "values")),
)
_REMOVED = ("arithmetic-digits", "answers", "line", "fits", "odd-p1000")


def schedule(world: World, random: Random) -> int:
    """Start two to eight commands within half a second, and kill some of them."""
    begun = random.randrange(len(world.links))
    commands: list[tuple[str, ...]] = []
    for _ in range(random.randint(2, 8)):
        # Choose makers near each other in the chain: they make the same or each other's inputs.
        near = min(len(world.links) - 1, max(0, begun + random.randint(-1, 3)))
        remove = ("rm", random.choice(_REMOVED), *random.choice([(), ("--force",)]))
        maker = world.links[near].command
        commands.append(random.choice([maker, maker, maker, random.choice(_READERS), remove]))
    removed = {command[1] for command in commands if command[0] == "rm"}
    link = world.links[begun]
    before = world.before(begun)
    with world.copy(link.before) as copy:
        runs = [
            Run(
                str(copy),
                command,
                limit=SECONDS,
                delay=random.uniform(0, 0.5),
                signal=signal.SIGKILL * (random.random() < 0.2),
                after=random.uniform(0, 0.3),
            )
            for command in commands
        ]
        for run, ended in zip(runs, world.forks.together(*runs), strict=True):
            if not run.signal or ended.code != -signal.SIGKILL:
                # A command may fail because another removes its input or has not made it yet.
                check_told(ended, (0, 1, 2, 3, 4), run.command)
        found = state_of(copy)
        gone = {name for name in before if name not in found}
        if lost := {name for name in gone if name.split("/")[1].split("@")[0] not in removed}:
            raise Lost(f"{commands}: {sorted(lost)} gone")
        strange = found.items() - world.whole.state.items()
        assert not strange, f"{commands}: {sorted(strange)}"
        for link in world.links:
            ended = world.forks(copy, *link.command, limit=SECONDS)
            check_told(ended, (0,), (*link.command, f"[after {commands}]"))
        check_state(copy, world.whole.state, ("the chain after", *map(str, commands)))
    return 1


SCHEDULES = Promise(
    name="schedules",
    says="Any commands can run on one store at the same time. Two that make the same artifact "
    "both succeed; nothing is lost but what was removed.",
    how="Two to eight commands (makers, readers, `gc` and `rm`) start within half a second; a "
    "fifth of them are killed. Afterwards the chain is completed and compared byte for byte.",
    aim=500,
    unit="schedules",
    world=opened,
    case=schedule,
)
