"""A store filled by a chain of commands, from generated data to reports. Faults and signals strike
commands in copies of it."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtok.store.store import Store
from numtok.store.verification import verify
from tests.chain import quiet
from tests.forks import Ended, Forks, Run, forking
from tests.trust.chain import BEGUN, BUILD, DRAFTS, prepare, readers
from tests.trust.promise import Crashed, Lost

SECONDS = 60.0
State = Mapping[str, str]


@dataclass(frozen=True)
class Link:
    """A command of the chain: the folder before it, its file operations, its seconds, and the
    artifacts after it."""

    command: tuple[str, ...]
    before: Path
    trace: list[str]
    seconds: float
    state: State


@dataclass(frozen=True)
class World:
    """The chain without faults, and the runner of numtok. In the folder ``begun``, another training
    was killed at its first checkpoint after the whole chain."""

    folder: Path
    begun: Path
    forks: Forks
    links: tuple[Link, ...]

    @contextmanager
    def copy(self, of: Path, links: bool = True) -> Iterator[Path]:
        """Yield a copy of a folder. Hard links suffice for artifacts: numtok modifies only files of
        drafts in place."""
        made = self.folder / "copy"
        shutil.copytree(of, made, copy_function=os.link if links else shutil.copy2)
        try:
            yield made
        finally:
            shutil.rmtree(made)

    @property
    def whole(self) -> Link:
        """Return the last link, after which the chain is complete."""
        return self.links[-1]

    def before(self, index: int) -> State:
        """Return the artifacts before a link."""
        return self.links[index - 1].state if index else {}

    def strike(self, index: int, codes: tuple[int, ...], what: str, **how: Any) -> Ended:
        """Run a link's command with a fault or signal, then repeat it. Check that nothing is lost
        and that the repeated command makes the expected artifacts."""
        with self.copy(self.links[index].before) as copy:
            ended = self.strike_in(copy, index, codes, what, **how)
            self.finish(copy, self.links[index])
        return ended

    def strike_in(
        self, copy: Path, index: int, codes: tuple[int, ...], what: str, **how: Any
    ) -> Ended:
        """Run a link's command in a copy with a fault or signal, and check that nothing is lost."""
        link = self.links[index]
        run = Run(str(copy), link.command, limit=SECONDS, **how)
        (ended,) = self.forks.together(run)
        command = (*link.command, f"[{what}]")
        is_outside = run.signal and ended.code in (70, -run.signal) and not ended.err
        if not is_outside:  # the signal arrived while numtok was running
            check_told(ended, codes, command)
        check_kept(copy, self.before(index), link.state, command)
        return ended

    def finish(self, folder: Path, link: Link) -> None:
        """Repeat an interrupted command, and check that it makes the expected artifacts."""
        ended = self.forks(folder, *link.command, limit=SECONDS)
        check_told(ended, (0,), link.command)
        check_state(folder, link.state, link.command)
        Store(folder / "artifacts", quiet).collect()
        hidden = [str(path) for path in (folder / "artifacts").rglob(".*")]
        assert not hidden, f"{link.command}: left after gc: {hidden}"


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    """Run the chain twice: in the process from which runs are forked, and one command at a time."""
    prepare(folder / "warm")
    prepare(folder / "step")
    with forking(folder / "warm", readers(), BUILD) as forks:
        links: list[Link] = []
        for index, command in enumerate(BUILD):
            before = folder / f"before-{index}"
            shutil.copytree(folder / "step", before, copy_function=os.link)
            ended = forks(folder / "step", *command)
            check_told(ended, (0,), command)
            state = state_of(folder / "step")
            links.append(Link(command, before, ended.trace, ended.seconds, state))
        check_state(folder / "warm", links[-1].state, ("the whole chain",))
        _begin(folder / "warm", forks)
        yield World(folder, folder / "warm", forks, tuple(links))


def _begin(folder: Path, forks: Forks) -> None:
    pattern = next(iter(DRAFTS))
    ended = forks(folder, *BEGUN, until=f"artifacts/{pattern}")
    assert ended.code == -signal.SIGKILL, ended
    # Keep only the checkpoint that the receipt names: the next one may be incomplete.
    (receipt,) = (folder / "artifacts").glob(pattern)
    for path in receipt.parents[1].glob("checkpoint-*"):
        if path.name not in receipt.read_text():
            path.unlink()


def state_of(folder: Path) -> State:
    """Return the digest of each artifact. Raises Lost if an artifact is damaged."""
    found = {}
    for artifact in Store(folder / "artifacts", quiet).artifacts():
        if problems := verify(artifact).problems:
            raise Lost(f"{artifact.ref}: {problems}")
        found[f"{artifact.kind}/{artifact.ref}"] = artifact.manifest.content
    return found


def check_state(folder: Path, expected: State, command: tuple[str, ...]) -> None:
    """Check that the folder contains exactly the expected artifacts, with the same bytes."""
    found = state_of(folder)
    if missing := expected.keys() - found.keys():
        raise Lost(f"{command}: {sorted(missing)} missing")
    assert found == expected, f"{command}: {sorted(found.items() ^ expected.items())}"


def check_kept(folder: Path, before: State, after: State, command: tuple[str, ...]) -> None:
    """Check that an interrupted command kept all artifacts, added at most its own new ones, and
    left no incomplete artifact."""
    found = state_of(folder)
    if gone := before.items() - found.items():
        raise Lost(f"{command}: {sorted(gone)} gone")
    assert found.items() <= after.items(), f"{command}: {sorted(found.items() - after.items())}"
    root = folder / "artifacts"
    places = [one.path for one in Store(root, quiet).artifacts()]
    for path in root.rglob("*"):
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(root).parts):
            assert any(path.is_relative_to(place) for place in places), f"{command}: half a {path}"


def check_told(ended: Ended, codes: tuple[int, ...], command: tuple[str, ...]) -> None:
    """Check that a command ended with an expected exit code and, if it failed, an error line."""
    shown = f"numtok {' '.join(command)}: exit {ended.code} after {ended.seconds:.1f} s"
    if "Traceback" in ended.err or ended.code == 70:
        raise Crashed(f"{shown}: {ended.err}")
    assert ended.code in codes, f"{shown}, expected {codes}: {ended.err}"
    if ended.code > 1:
        lines = ended.err.splitlines() or [""]
        assert lines[-1].startswith("numtok: "), f"{shown}: {ended.err}"
        assert len(ended.err) < 2000 and all(line.isprintable() for line in lines), shown
