"""Commands that use several processes: workers, a Ray cluster, ranks, sweeps and races."""

import gzip
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.forks import Forks, Run, forking
from tests.ray_nodes import ray_cluster
from tests.trust.chain import NANO, prepare
from tests.trust.promise import Promise
from tests.trust.world import State, check_state, check_told, state_of

_SECONDS = 120.0
_PARTS = tuple(f"part-{index}.jsonl.gz" for index in range(4))
_GRID = """[gen]
task = "arithmetic"
operands = 2
rows = 100
[encode]
scheme = ["p10", "xval"]
[train]
preset = "nano,layers=1,width=16,heads=2"
steps = 2
"""
_BUILD = (
    ("gen", "arithmetic", "--operands", "2", "--rows", "200"),
    ("encode", "--scheme", "xval", "arithmetic"),
)
_COMMANDS = {
    "workers": ("encode", "--scheme", "p1000", "--workers", "2", *_PARTS),
    "Ray": ("encode", "--scheme", "p1000", "--engine", "ray:{}", *_PARTS),
    "ranks": ("train", "arithmetic-xval", *NANO, "--device", "cpu", "--devices", "2"),
    "sweep": ("sweep", "grid.toml", "--jobs", "2"),
    "race": ("race", "race.csv", "--target", "y", "--minutes", "0.1", "--device", "cpu"),
}


@dataclass(frozen=True)
class Several:
    """The folder before each command, the runner, and each command's seconds and artifacts."""

    before: Path
    forks: Forks
    address: str
    seconds: dict[str, float]
    states: dict[str, State]

    def command(self, name: str) -> tuple[str, ...]:
        return tuple(word.format(self.address) for word in _COMMANDS[name])


@contextmanager
def opened(folder: Path) -> Iterator[Several]:
    """Run each command without interference, and record its time and artifacts."""
    before = folder / "before"
    prepare(before)
    for part in _PARTS:
        content = b"".join(
            b'{"text": "at %d.25 of %s"}\n' % (row, part.encode()) for row in range(500)
        )
        (before / part).write_bytes(gzip.compress(content, mtime=0))
    lines = [f"{x % 13},{x},{x % 13 * 2 + x % 3}" for x in range(200)]
    (before / "race.csv").write_text("\n".join(["a,b,y", *lines]))
    (before / "grid.toml").write_text(_GRID)
    with ray_cluster(2) as cluster, forking(before, (), _BUILD) as forks:
        several = Several(before, forks, cluster.address, {}, {})
        forks(before, "ls")  # returns only after the build
        for name in _COMMANDS:
            shutil.copytree(before, folder / name, copy_function=os.link)
            ended = forks(folder / name, *several.command(name), limit=_SECONDS)
            check_told(ended, (0,), (name,))
            several.seconds[name] = ended.seconds
            several.states[name] = state_of(folder / name)
        yield several


def struck(several: Several, random: Random) -> int:
    """Kill a command or one of its processes at a random time, and repeat the command."""
    name = random.choice(list(_COMMANDS))
    command = several.command(name)
    worker = name in ("workers", "ranks") and random.random() < 0.5
    number = signal.SIGKILL if worker else random.choice([signal.SIGKILL, signal.SIGTERM])
    after = random.uniform(0.05, 1) * several.seconds[name]
    copy = several.before.with_name("copy")
    shutil.copytree(several.before, copy, copy_function=os.link)
    try:
        run = Run(str(copy), command, _SECONDS, signal=number, after=after, worker=worker)
        (ended,) = several.forks.together(run)
        told = (name, f"[{number.name} after {after:.2f} s, worker: {worker}]")
        if ended.code != -number:
            check_told(ended, (0, 4, 5) if worker else (0, 143), told)
        state_of(copy)
        ended = several.forks(copy, *command, limit=_SECONDS)
        check_told(ended, (0,), (*told, "repeated"))
        if name != "race":  # the rounds of a race depend on measured speeds
            check_state(copy, several.states[name], told)
    finally:
        shutil.rmtree(copy)
    return 1


PROCESSES = Promise(
    name="processes",
    says="Commands of several processes (workers, a Ray cluster, ranks, sweeps and races) that are "
    "killed, or lose a process, continue when repeated and end with the same bytes.",
    how="The command or one of its worker processes is killed or terminated at a random time. "
    "Races are only verified, because their rounds depend on measured speeds.",
    aim=500,
    unit="runs",
    world=opened,
    case=struck,
)
