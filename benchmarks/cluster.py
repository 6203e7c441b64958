"""Time of a Ray cluster on one machine compared with local processes, and after a node dies.

The cluster has three nodes of one CPU each, bound to 127.0.0.1, with --workers parallel processes.
Local runs have the same number of workers. The commands are `numtok encode` of --megabytes of
arithmetic, and `numtok sweep` of 12 small runs; times include start-up and joining the cluster.

Runs alternate, because other work may share the machine. `ratio` is the median of Ray's time
divided by the local time over pairs; the next columns are the smallest and largest ratio. One more
run on Ray has a node killed when half of the units have a receipt, or half of the models exist.
`same` states whether all files of all runs are identical, except for recorded times. Needs
`numtok[ray]`; nothing is asserted.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Any

from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

from numtok.data.reading.units import UNIT
from numtok.stages import gen
from numtok.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
TASK = "arithmetic,operands=4"
SWEEP = """
[gen]
task = "arithmetic"
operands = 2
samples = 2000
[encode]
scheme = ["p1000", "xval"]
[train]
preset = "nano,layers=1,width=32,heads=2"
device = "cpu"
batch = 32
steps = 200
lr = [1e-3, 2e-3]
seed = [0, 1, 2]
"""


class Trial:
    """A command, and a pattern of files in the store that show its progress."""

    def __init__(self, words: list[str], done: str, half: int) -> None:
        self.words = words
        self._done = done  # glob pattern of finished parts
        self._half = half

    def seconds(self, store: Path, engine: str, kill: Callable[[], None] | None = None) -> float:
        """Return the time of a run into an empty store; call ``kill`` when half of it is done."""
        started = time.perf_counter()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "numtok", "-q", "--store", str(store)),
                *(*self.words, "--engine", engine),
            ],
            env=os.environ | {"PYTHONPATH": str(ROOT), "NUMTOK_THREADS": "1"},
            stdout=subprocess.DEVNULL,
        )
        while kill is not None and len(list(store.glob(self._done))) < self._half:
            if process.poll() is not None:
                raise SystemExit("it was done before a node was killed")
            time.sleep(0.05)
        if kill is not None:
            kill()
        if process.wait():
            raise SystemExit(f"numtok {' '.join(self.words)} failed with {engine}")
        return time.perf_counter() - started


def contents(store: Path) -> dict[str, str]:
    """Return the digest of each file of each artifact, by its path in the store."""
    return {
        f"{one.kind}/{one.ref}/{file.path}": sha256((one.path / file.path).read_bytes()).hexdigest()
        for one in Store(store).artifacts()
        for file in one.files()
    }


class Runs:
    """Runs of a command into separate stores, whose content is compared."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self._trial = trial
        self._folder = folder
        folder.mkdir()
        self._made: list[dict[str, str]] = []

    def seconds(self, engine: str, kill: Callable[[], None] | None = None) -> float:
        """Run the command once more and return its time."""
        store = self._folder / str(len(self._made))
        seconds = self._trial.seconds(store, engine, kill)
        self._made.append(contents(store))
        rmtree(store)
        return seconds

    @property
    def same(self) -> bool:
        """True if all runs produced the same content."""
        return all(one == self._made[0] for one in self._made)


def arithmetic(folder: Path, megabytes: int) -> list[Path]:
    """Generate files with about this many megabytes of rows."""
    store = Store(folder / "data")
    dry = gen.run(
        gen.Config(TASK, samples=100_000, split="train=1", dry_run=True), store, lambda *_: None
    )
    assert dry.estimate is not None
    rows = int(megabytes * 1e6 / dry.estimate.bytes * 100_000)
    made = gen.run(gen.Config(TASK, samples=rows, split="train=1"), store, lambda *_: None).artifact
    assert made is not None
    return sorted(made.path.glob("train-*.jsonl"))


def cluster() -> Any:
    """Start a cluster of three nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Cluster()
    for _ in range(3):
        nodes.add_node(
            num_cpus=1,
            object_store_memory=200 << 20,
            node_ip_address="127.0.0.1",
            include_dashboard=False,
        )
    return nodes


def killing(nodes: Any) -> Callable[[], None]:
    """Return a function that kills a node other than the head, without a graceful shutdown."""

    def kill() -> None:
        nodes.remove_node(nodes.list_all_nodes()[-1], allow_graceful=False)

    return kill


def main() -> None:
    """Measure with the given options and print the table."""
    parser = argparse.ArgumentParser(
        description="Measure numtok on a Ray cluster of three nodes on this machine.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--megabytes", type=int, default=400, help="of input to encode")
    parser.add_argument("--workers", type=int, default=2, help="at work at a time")
    parser.add_argument("--repeat", type=int, default=3, help="pairs of runs")
    options = parser.parse_args()
    columns = ("local, s", "ray, s", "ratio", "least", "most", "a node killed, s", "same")
    shown = table(f"three nodes, {options.workers} at work", ("command",), columns)
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent / "data") as name:
        folder = Path(name)
        inputs = arithmetic(folder, options.megabytes)
        (folder / "sweep.toml").write_text(SWEEP)
        side = str(options.workers)
        words = ["--scheme", "xval", "--name", "all", "--workers", side, *map(str, inputs)]
        half = 1 + round(options.megabytes * 1e6 / UNIT / 2)  # includes the receipt of the fit
        trials = {
            f"encode of {options.megabytes} MB, {len(inputs)} files": Trial(
                ["encode", *words], "encoded/all/.draft-*/receipts/*", half
            ),
            "sweep of 12 runs": Trial(
                ["sweep", str(folder / "sweep.toml"), "--jobs", side], "model/*/[0-9a-f]*", 6
            ),
        }
        for what, trial in trials.items():
            nodes = cluster()
            ray = f"ray:{nodes.address}"
            runs = Runs(trial, folder / what.split()[0])
            local, other = [], []
            for _ in range(options.repeat):
                local.append(runs.seconds("local"))
                other.append(runs.seconds(ray))
            killed = runs.seconds(ray, killing(nodes))
            nodes.shutdown()
            ratios = [b / a for a, b in zip(local, other, strict=True)]
            figures = [f"{median(seconds):.1f}" for seconds in (local, other)]
            figures += [f"{ratio:.2f}" for ratio in (median(ratios), min(ratios), max(ratios))]
            shown.add_row(what, *figures, f"{killed:.1f}", "yes" if runs.same else "no")
    Console().print(shown)


if __name__ == "__main__":
    main()
