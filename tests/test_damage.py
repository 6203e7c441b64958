"""Whatever a stored file has become, numtok says so in one line and goes no further.

Each case damages one file of a store (``tests/damage.py``) and runs what reads it. The quick tests
take a sample of the cases, the slow ones all.
"""

import json
import os
import re
import shutil
import signal
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import fakefields
from tests.damage import Damage, damages
from tests.forks import Ended, Forks, forking

SECONDS, MEBIBYTES = 10.0, 1536.0
SAMPLED = 960  # one in so many cases is among the quick ones
NANO = ("--preset", "nano,layers=1,width=16,heads=2", "--batch", "32", "--steps", "4")
MLP = ("--preset", "mlp,layers=1,width=16", "--epochs", "2")
# Two of the rows cannot be read; one has a number that p1000 cannot write.
ROWS = [
    {
        "id": index,
        "text": f"a {index}.5 b {index}e3 c {'1e300' if index == 7 else index}",
        "targets": {"a": [[2, 2 + len(f"{index}.5")]]},
        "floors": {"a": {"before": [index - 1.0]}},
        "label": "yes" if index % 3 else "no",
        "group": {"half": index // 20},
        "cluster": index // 4,
        "split": "train" if index % 2 else "test",
    }
    for index in range(40)
] + [{"text": 5}, {"text": "nothing", "label": []}]
BUILD = (
    ("gen", "arithmetic", "--operands", "2", "--rows", "200"),
    ("encode", "--scheme", "xval", "arithmetic"),
    ("encode", "--scheme", "p1000", "arithmetic"),
    ("encode", "--scheme", "digits", "arithmetic"),
    ("encode", "--scheme", "p1000", "--on-error", "skip", "odd.jsonl"),
    ("train", "arithmetic-xval", *NANO, "--name", "value"),
    ("train", "arithmetic-p1000", *NANO, "--name", "token", "--objective", "ar"),
    ("train", "arithmetic-digits", *NANO, "--name", "writer", "--objective", "ar:answer"),
    ("train", "odd-p1000", *NANO, "--name", "judge", "--objective", "classify"),
    ("eval", "value", "arithmetic-xval", "--name", "values"),
    ("eval", "writer", "arithmetic-digits", "--fill", "answers", "--name", "answers"),
    ("eval", "judge", "odd-p1000", "--name", "labels"),
    ("probe", "examples", "value", "arithmetic-xval", "--name", "line"),
    ("table", "rows.csv", "--target", "y", "--split", "test=0.3"),
    ("train", "rows", *MLP, "--head", "riemann:16", "--name", "fitted"),
    ("eval", "fitted", "rows", "--name", "fits"),
)
EVAL = {
    "value": ("eval", "value", "arithmetic-xval"),
    "token": ("eval", "token", "arithmetic-p1000"),
    "writer": ("eval", "writer", "arithmetic-digits", "--fill", "answers"),
    "judge": ("eval", "judge", "odd-p1000"),
    "fitted": ("eval", "fitted", "rows"),
}
COMPARE = (("compare", "{name}"), ("report", "{name}"))
WEATHER = (
    *("gen", "temperature", "--from", "field", "--rows", "20"),
    *("--stations", "4", "--days", "1"),
)
# A run that was killed, and goes on where it stood.
BEGUN = (
    *("train", "arithmetic-xval", "--preset", "nano,layers=1,width=16,heads=2", "--batch", "8"),
    *("--steps", "60", "--checkpoint-every", "1", "--name", "begun"),
)
# Of each file what reads it.
READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    **{
        f"data/arithmetic/*/{file}": (("encode", "--scheme", "p10", "arithmetic"),)
        for file in ("train-00000.jsonl", "manifest.json", "files.jsonl")
    },
    "encoded/arithmetic-xval/*/train-00000.parquet": (("train", "arithmetic-xval", *NANO),),
    "encoded/arithmetic-xval/*/test-00000.parquet": (EVAL["value"],),
    "encoded/arithmetic-xval/*/scheme.json": (("train", "arithmetic-xval", *NANO), EVAL["value"]),
    "encoded/arithmetic-xval/*/manifest.json": (EVAL["value"], ("show", "arithmetic-xval")),
    "encoded/arithmetic-xval/*/files.jsonl": (EVAL["value"], ("verify", "arithmetic-xval")),
    "encoded/odd-p1000/*/train-00000.parquet": (
        ("train", "odd-p1000", *NANO),
        ("train", "odd-p1000", *NANO, "--objective", "classify"),
    ),
    "encoded/odd-p1000/*/test-00000.parquet": (EVAL["judge"],),
    "encoded/odd-p1000/*/scheme.json": (("encode", "--reuse-encoding", "odd-p1000", "rows.jsonl"),),
    "encoded/arithmetic-digits/*/test-00000.parquet": (EVAL["writer"],),
    "model/value/*/model.json": (EVAL["value"],),
    "model/value/*/scheme.json": (EVAL["value"],),
    "model/value/*/weights.safetensors": (EVAL["value"],),
    "model/value/*/timing.json": (EVAL["value"],),
    "model/value/*/metrics.jsonl": (("compare", "values", "--tokens-to", "loss<=1"),),
    "model/value/*/manifest.json": (EVAL["value"], ("lineage", "value")),
    **{
        f"model/{name}/*/model.json": (EVAL[name],)
        for name in ("judge", "token", "writer", "fitted")
    },
    "model/fitted/*/weights.safetensors": (EVAL["fitted"],),
    "model/fitted/*/timing.json": (EVAL["fitted"],),
    "report/values/*/report.json": COMPARE,
    "report/values/*/predictions.parquet": (*COMPARE, ("diagnose", "values")),
    "report/values/*/timing.json": COMPARE,
    "report/values/*/manifest.json": (*COMPARE, ("ls",), ("show", "values")),
    **{
        f"report/{name}/*/{file}": COMPARE
        for name in ("answers", "labels", "fits")
        for file in ("report.json", "predictions.parquet")
    },
    **{
        f"probe/line/*/{file}": (("figure", "vary", "line", "--out", "line.png"),)
        for file in ("probe.json", "points.parquet", "seen.parquet")
    },
    "table/rows/*/table.json": (("train", "rows", *MLP),),
    "table/rows/*/rows-00000.parquet": (("train", "rows", *MLP), EVAL["fitted"]),
    "table/rows/*/manifest.json": (("train", "rows", *MLP),),
    **{
        f"field/field/*/field.zarr/{file}": (WEATHER,)
        for file in ("zarr.json", "2m_temperature/zarr.json", "2m_temperature/c.0.0.0")
    },
}
# What is damaged here need not be refused: the run may begin anew.
DRAFTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "model/begun/.draft-*/receipts/checkpoint.json": (BEGUN,),
    "model/begun/.draft-*/receipts/budget.json": (BEGUN,),
    "model/begun/.draft-*/checkpoint-*.safetensors": (BEGUN,),
}


def prepare(folder: Path) -> None:
    """The files that ``BUILD`` reads, and a field, in ``folder / artifacts``."""
    folder.mkdir()
    (folder / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "rows.jsonl").write_text('{"text": "one 1.5 and 2"}\n')
    lines = [f"{x},{x * x % 7},{'uvw'[x % 3]},{1.5 * x + x % 3}" for x in range(60)]
    (folder / "rows.csv").write_text("\n".join(["a,b,c,y", *lines]))
    times = fakefields.hours(20 * 24)
    fakefields.make(folder / "artifacts", times, fakefields.waves(times, 256))


def kill_at_its_first_checkpoint(folder: Path, forks: Forks) -> None:
    """``BEGUN``; of its checkpoints only the one that its receipt names is left."""
    pattern = next(iter(DRAFTS))
    ended = forks(folder, *BEGUN, until=f"artifacts/{pattern}")
    assert ended.code == -signal.SIGKILL, ended
    (receipt,) = (folder / "artifacts").glob(pattern)
    (kept,) = [output["path"] for output in json.loads(receipt.read_bytes())["outputs"]]
    for path in receipt.parents[1].glob("checkpoint-*"):  # the next one may have been begun
        if path.name != kept:
            path.unlink()


@dataclass(frozen=True)
class World:
    """A folder with a whole store, and what runs numtok in copies of it."""

    folder: Path
    forks: Forks

    def run(self, damaged: str, damage: Damage, copy: Path, command: tuple[str, ...]) -> Ended:
        # What goes on with a draft writes into its files.
        link = shutil.copy2 if damaged in DRAFTS else os.link
        shutil.copytree(self.folder, copy, copy_function=link)
        try:
            path = self.path(damaged)
            damage.inflict(copy / path.relative_to(self.folder))
            name = damaged.split("/")[1]
            words = [word.format(name=name) for word in command]
            if words[0] in ("eval", "train", "encode", "gen") and "--name" not in words:
                words += ["--name", "new"]
            return self.forks(copy, *words, limit=SECONDS)
        finally:
            shutil.rmtree(copy)

    def path(self, pattern: str) -> Path:
        (found,) = (self.folder / "artifacts").glob(pattern)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("damage") / "whole"
    prepare(folder)
    # What a reader imports is imported once: of each command that builds nothing the first.
    readers = [
        tuple(word.format(name=pattern.split("/")[1]) for word in command)
        for pattern, commands in READERS.items()
        for command in commands
    ]
    first = {command[0]: command for command in reversed(readers)}
    for command in BUILD:
        first.pop(command[0], None)
    with forking(folder, [*first.values()], BUILD) as forks:
        kill_at_its_first_checkpoint(folder, forks)
        yield World(folder, forks)


def wrong(ended: Ended, file: str) -> str | None:
    """What is not as it has to be where a file was refused or nothing was found wrong."""
    if ended.seconds > SECONDS or ended.code < 0:
        return f"took {ended.seconds:.1f} s, exit {ended.code}"
    if ended.mebibytes > MEBIBYTES:
        return f"took {ended.mebibytes:.0f} MiB"
    if ended.code in (0, 1):
        return None if "Traceback" not in ended.err else ended.err
    lines = [line for line in ended.err.splitlines() if line.startswith("numtok: ")]
    if ended.code not in (2, 3, 4) or len(lines) != 1 or "Traceback" in ended.err:
        return f"exit {ended.code}: {ended.err[-1500:]}"
    # Rows that are whole and of no use, say without a label, are told by what they belong to.
    named = file in lines[0] or re.search(r"@[0-9a-f]{16}", lines[0])
    return None if named else f"does not name {file}: {lines[0]}"


def believed(world: World, pattern: str, copy: Path, of: int) -> list[str]:
    """What is not as it has to be in some of the cases of a file: one in so many."""
    file = world.path(pattern)
    found = []
    for damage in damages(file):
        if zlib.crc32(f"{pattern} {damage.name}".encode()) % of:
            continue
        codes = []
        for command in (READERS | DRAFTS)[pattern]:
            ended = world.run(pattern, damage, copy, command)
            codes.append(ended.code)
            if problem := wrong(ended, file.name):
                found.append(f"{pattern}: {damage.name}: numtok {command[0]}: {problem}")
        if damage.refused and pattern not in DRAFTS and not set(codes) & {2, 3, 4}:
            found.append(f"{pattern}: {damage.name}: believed")
    return found


@pytest.mark.integration  # one test, since the world takes longer than all of it
def test_a_damaged_file_is_refused_in_one_line(world: World, tmp_path: Path) -> None:
    patterns = READERS | DRAFTS
    found = [one for name in patterns for one in believed(world, name, tmp_path / "copy", SAMPLED)]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", READERS | DRAFTS)
def test_a_file_damaged_in_any_way_is_refused_in_one_line(
    world: World, tmp_path: Path, pattern: str
) -> None:
    found = believed(world, pattern, tmp_path / "copy", 1)
    assert not found, "\n".join(found)
