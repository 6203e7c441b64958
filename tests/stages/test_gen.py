"""``numtok gen``: exact counts, nothing shared between splits, and the same whoever makes it."""

import ast
import doctest
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.cli import _kinds
from numtok.data.tasks.base import SHARES, TASKS
from numtok.errors import NumtokError, StoreError, UsageError
from numtok.records import Row
from numtok.stages import gen
from numtok.stages.gen import Config, run, split_rows
from numtok.store.artifact import RECEIPTS, TIMING, Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Ran, Shell
from tests.faults import Plan, installed

numtok = test_cli_store.numtok

ROOT = Path(__file__).resolve().parents[2]
GEN = {1: "247053da941284f3"}
SMALL = Config("arithmetic,operands=2", samples=300)  # three units, one a split


def make(config: Config, root: Path) -> Artifact:
    artifact = run(config, Store(root), lambda *progress: None).artifact
    assert artifact is not None
    return artifact


def rows(artifact: Artifact) -> dict[str, list[Row]]:
    """The rows of each split."""
    found: dict[str, list[Row]] = {}
    for path in sorted(artifact.path.glob("*-*.jsonl")):
        lines = msgspec.json.Decoder(Row).decode_lines(path.read_bytes())
        found.setdefault(path.stem.rpartition("-")[0], []).extend(lines)
    return found


def contents(artifact: Artifact) -> dict[str, bytes]:
    """All that has to come out the same each time: everything but the clocks."""
    return {
        str(path.relative_to(artifact.path)): path.read_bytes()
        for path in sorted(artifact.path.rglob("*"))
        if path.is_file() and path.name != TIMING
    }


# --- what is made ------------------------------------------------------------------------------


def test_gen_gives_what_its_revision_gave(tmp_path: Path) -> None:
    found = contents(make(SMALL, tmp_path))
    files = [[name, found[name].decode()] for name in found if name.endswith(".jsonl")]
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
    assert digest == GEN.get(gen.REVISION), "raise gen.REVISION"


def canonical(text: str) -> str:
    """An expression with the sides of + and * in one order, by Python's own parser."""

    def below(node: ast.AST) -> str:
        if not isinstance(node, ast.BinOp):
            return ast.unparse(node)
        sides = [below(node.left), below(node.right)]
        if not isinstance(node.op, ast.Sub):
            sides.sort()
        return f"({sides[0]} {type(node.op).__name__} {sides[1]})"

    return below(ast.parse(text.partition("=")[0].strip(), mode="eval").body)


@pytest.mark.parametrize(
    "task",
    [
        "arithmetic,kind=product,digits=2",
        "arithmetic,operands=2,places=0,low=-20,high=20",
        "arithmetic,operands=4,places=0,low=1,high=2",
    ],
)
def test_counts_are_exact_and_splits_share_no_expression(tmp_path: Path, task: str) -> None:
    samples = (TASKS.build(task).possible or 0) * 3 // 4  # most of what there is
    config = Config(task, samples, split="train=0.7,validation=0.15,test=0.15")
    artifact = make(config, tmp_path)
    found = rows(artifact)
    counts = {f"rows_{split}": len(made) for split, made in found.items()}
    assert artifact.manifest.counts == counts | {"rows": samples}
    assert abs(counts["rows_train"] - 0.7 * samples) < 1
    texts = [row.text for made in found.values() for row in made]
    assert len(set(texts)) == len(texts) == samples, "a text comes twice"
    classes = [{canonical(row.text) for row in made} for made in found.values()]
    assert not classes[0] & classes[1] | classes[0] & classes[2] | classes[1] & classes[2]


def test_a_split_of_several_units_is_whole(tmp_path: Path) -> None:
    unit = TASKS.build("arithmetic").unit_rows
    artifact = make(Config("arithmetic", unit + 100, split="train=1"), tmp_path)
    assert sorted(path.name for path in artifact.path.glob("train-*")) == [
        "train-00000.jsonl", "train-00001.jsonl",
    ]  # fmt: skip
    made = rows(artifact)["train"]
    assert [row.id for row in made] == [f"train-{number}" for number in range(unit + 100)]
    assert len({row.text for row in made}) == len(made)


def test_seed_split_samples_and_settings_make_another_version(tmp_path: Path) -> None:
    configs = [
        SMALL,
        replace(SMALL, seed=1),
        replace(SMALL, samples=301),
        replace(SMALL, split="test=0.5"),
        replace(SMALL, task="arithmetic,operands=4"),
    ]
    assert len({make(config, tmp_path).version for config in configs}) == len(configs)
    same = replace(SMALL, workers=2, task="arithmetic,figures=3,operands=2")
    reordered = replace(SMALL, split="test=.1,validation=0.10,train=0.8")
    assert make(SMALL, tmp_path).version == make(same, tmp_path).version
    assert make(SMALL, tmp_path).version == make(reordered, tmp_path).version


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=4).filter(lambda parts: sum(parts) <= 1000),
    st.integers(1000, 10**7),
)
def test_shares_are_given_out_whole(parts: list[int], samples: int) -> None:
    text = ",".join(f"s{k}={part / 1000}" for k, part in enumerate(parts))
    splits = split_rows(text, samples)
    assert sum(split.rows for split in splits) == samples
    assert [split.begin for split in splits[1:]] == [split.end for split in splits[:-1]]
    assert (splits[0].begin, splits[-1].end) == (0, SHARES)
    for split in splits:
        assert abs(split.rows - split.share * samples) <= 1.001
    assert ("train" in [split.name for split in splits]) == (sum(parts) < 1000)


# --- who makes it, and when --------------------------------------------------------------------


def test_workers_make_what_one_process_makes(tmp_path: Path) -> None:
    alone = make(replace(SMALL, workers=1), tmp_path / "one")
    assert contents(make(replace(SMALL, workers=2), tmp_path / "two")) == contents(alone)


def test_any_operation_may_fail_and_the_next_run_goes_on(tmp_path: Path) -> None:
    make(SMALL, tmp_path / "warm-up")
    with installed(Plan("trace")) as faults:
        whole = contents(make(SMALL, tmp_path / "whole"))
    failed = 0
    for at in range(1, len(faults.trace) + 1):
        root = tmp_path / str(at)
        try:
            with installed(Plan("eio", at)):
                make(SMALL, root)
        except StoreError:
            failed += 1
        if root.exists():
            assert all(not verify(artifact).problems for artifact in Store(root).artifacts())
        assert contents(make(SMALL, root)) == whole
    assert failed > len(faults.trace) * 2 // 3


def test_a_killed_run_keeps_what_is_finished(tmp_path: Path) -> None:
    def start(plan: str, root: Path, **environment: str) -> int:
        options = ["--store", str(root), "gen", SMALL.task, "--samples", str(SMALL.samples)]
        return subprocess.run(
            [sys.executable, "-m", "tests.faults", plan, "--", "numtok", *options],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            check=False,
            timeout=120,
        ).returncode

    log = tmp_path / "log"
    assert start("trace", tmp_path / "whole", NUMTOK_TRACE=str(log)) == 0
    trace = [line.split()[1] for line in log.read_text().splitlines()]
    writes = [at for at, name in enumerate(trace, 1) if name == "write"]
    root = tmp_path / "store"
    assert start(f"killtorn@{writes[2]}", root) == -signal.SIGKILL  # of the second unit's file
    (receipt,) = root.glob(f"data/*/.draft-*/{RECEIPTS}/[!.]*.json")
    assert receipt.name == "test-00000.json"
    assert list(root.glob("data/*/.draft-*/.train-00000.jsonl.part"))
    before = receipt.stat().st_mtime_ns
    artifact = make(SMALL, root)
    assert (artifact.path / RECEIPTS / receipt.name).stat().st_mtime_ns == before
    assert contents(artifact) == contents(Store(tmp_path / "whole").artifacts()[0])
    assert verify(artifact).problems == []


# --- the command -------------------------------------------------------------------------------


def test_the_ref_is_on_stdout_and_the_table_on_stderr(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--operands=2", "--low", "-5", "--places", "1"]
    first = numtok(*arguments, "--samples", "200", "--seed", "7")
    assert first.code == 0
    assert re.fullmatch(r"arithmetic@[0-9a-f]{16}\n", first.out)
    lines = [line.split() for line in first.err.splitlines()]
    assert lines[0] == ["made", "by", "arithmetic,operands=2,places=1,low=-5"]
    for row in (["rows", "200"], ["test", "20"], ["train", "160"], ["seed", "7"]):
        assert row in lines
    again = numtok(*arguments, "--samples", "200", "--seed", "7")
    assert (again.code, again.out) == (0, first.out)
    assert again.err.startswith("found, not made again: arithmetic,operands=2,places=1,low=-5\n")
    assert "seconds" not in again.err
    spec = numtok("-q", "gen", "arithmetic,operands=2,places=1,low=-5", "--samples=200", "--seed=7")
    assert (spec.code, spec.out, spec.err) == (0, first.out, "")


def test_programs_get_json_and_csv(numtok: Shell) -> None:
    made = json.loads(numtok("gen", "arithmetic", "--samples", "100", "--json").out)
    counts = {"rows": 100, "rows_test": 10, "rows_train": 80, "rows_validation": 10}
    assert made == {"schema": 1, "ref": made["ref"], "made": True, "counts": counts}
    table = numtok("gen", "arithmetic", "--samples", "100", "--format", "csv")
    assert table.out.splitlines()[:3] == ["what,value", f"ref,{made['ref']}", "rows,100"]
    assert table.err == ""


def test_a_dry_run_makes_nothing_and_tells_the_size(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--samples", "5000"]
    ran = numtok(*arguments, "--dry-run", "--json")
    told = {row["what"]: row["value"] for row in json.loads(ran.out)["rows"]}
    assert not Path("artifacts").exists()
    made = numtok(*arguments)
    artifact = Store(Path("artifacts")).resolve(made.out.strip())
    assert told["would make"] == artifact.ref
    assert told["rows"] == 5000
    assert abs(told["size, about"] / artifact.manifest.bytes - 1) < 0.02
    found = numtok(*arguments, "--dry-run", "--json")
    assert json.loads(found.out)["ref"] == artifact.ref


def test_force_and_restart_make_the_same_again(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--samples", "100", "--json"]
    first = json.loads(numtok(*arguments).out)
    assert json.loads(numtok(*arguments, "--force").out) == first
    assert json.loads(numtok(*arguments, "--restart").out) == first | {"made": False}


def test_show_prints_the_command_that_makes_it_again(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--low=-2.5", "--places=1", "--split", "ood-low=1"]
    ref = numtok(*arguments, "--samples", "50", "--name", "low").out.strip()
    assert ref.startswith("low@")
    line = " ".join(Store(Path("artifacts")).resolve(ref).manifest.command)
    assert line == (
        "numtok gen arithmetic,places=1,low=-2.5 --samples 50 --seed 0 --split ood-low=1 --name low"
    )
    again = numtok(*shlex.split(line)[1:], "--json")
    assert json.loads(again.out) == {
        "schema": 1, "ref": ref, "made": False, "counts": {"rows": 50, "rows_ood-low": 50},
    }  # fmt: skip


def test_help_shows_a_task_and_its_options(numtok: Shell) -> None:
    ran = numtok("gen", "arithmetic", "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "three significant figures" in ran.out
    assert ">>>" not in ran.out
    _, panel, own = ran.out.partition("Options of arithmetic")
    assert panel
    own = own.partition("╰")[0]
    words = " ".join(own.replace("│", " ").split())
    assert "Of a tree: how many. Default: 3. Allowed: from 2 to 8." in words
    assert own.count("│ --") == 9
    every = numtok("gen", "--help")
    assert every.code == 0
    assert "Options of" not in every.out
    assert f"Tasks: {KNOWN}" in " ".join(every.out.split())  # over two lines


@pytest.mark.parametrize("task", list(TASKS))
def test_the_help_of_every_task_fits_80_columns(numtok: Shell, task: str) -> None:
    ran = numtok("gen", task, "--help")
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []


def test_the_help_of_tasks_fills_its_lines() -> None:
    assert doctest.testmod(_kinds) == (0, 1)


def test_encode_finds_splits_targets_and_groups(numtok: Shell) -> None:
    ref = numtok("gen", "arithmetic", "--operands", "3", "--samples", "400").out.strip()
    made = rows(Store(Path("artifacts")).resolve(ref))
    encoded = numtok("encode", "--scheme", "p1000", ref)
    assert encoded.code == 0, encoded.err
    artifact = Store(Path("artifacts")).resolve(encoded.out.strip())
    assert artifact.manifest.counts["rejected"] == 0
    for split in ("train", "validation", "test"):
        table = pq.read_table(artifact.path / f"{split}-00000.parquet").to_pylist()
        assert [row["id"] for row in table] == [row.id for row in made[split]]
        for row, source in zip(table, made[split], strict=True):
            answer = source.text.partition(" = ")[2]
            assert (row["target_name"], row["target_literal"]) == (["answer"], [answer])
            assert row["target_index"] == [3]
            assert row["number_start"][3] == row["answer_start"]
            assert row["group_operands"] == "3"
            assert source.group is not None
            assert row["group_operator"] == source.group["operator"]


# --- errors ------------------------------------------------------------------------------------

KNOWN = ", ".join(TASKS)
SHARE = (
    " is not a new split's name and a share above 0 and up to 1; write for example "
    "train=0.8,validation=0.1,test=0.1 (names: lower-case letters, digits, - and _, and neither "
    "clipped nor rejected)"
)
WRONG = [
    ("", f"gen needs a task; known: {KNOWN}; `numtok gen TASK --help` says what it is"),
    ("arithmatic", f"unknown task 'arithmatic'; did you mean 'arithmetic'? known: {KNOWN}"),
    ("arithmatic --help", "unknown task 'arithmatic'; did you mean 'arithmetic'? known: "
     f"{KNOWN}"),
    ("arithmetic --operand 3", "no such option: --operand (Possible options: --operands, "
     "--operators); `numtok gen --help` says what is possible"),
    ("arithmetic,operand=3", "unknown setting of 'arithmetic' 'operand'; did you mean 'operands'? "
     "known: digits, figures, high, kind, low, operands, operators, places, spaces"),
    ("arithmetic --operands", "option '--operands' requires an argument; `numtok --help` says what "
     "is possible"),
    ("arithmetic --operands=", "arithmetic: operands='' is not an integer"),
    ("arithmetic 3", "got unexpected extra argument(s) (3); `numtok gen --help` says what is "
     "possible"),
    ("arithmetic,operands=3 --operands 4",
     "task 'arithmetic,operands=3' and --operands give 'operands' twice"),
    ("arithmetic --operands three", "arithmetic: operands='three' is not an integer"),
    ("arithmetic --operands 9", "--operands 9 is not possible; it is from 2 to 8"),
    ("arithmetic --samples 0", "--samples 0 is not possible; it is from 1 to 1,000,000,000,000"),
    ("arithmetic --seed 1000000000000000000", "--seed 1000000000000000000 is not possible; allowed "
     "are integers of at most 18 digits"),
    ("arithmetic --name Big", "--name 'Big' cannot be used; allowed are lower-case letters, digits "
     "and ._- after a first letter or digit"),
    ("arithmetic --workers 0", "--workers 0 is not possible; it is 1 or more"),
    ("arithmetic --split test", f"--split 'test': 'test'{SHARE}"),
    ("arithmetic --split Test=0.1", f"--split 'Test=0.1': 'Test=0.1'{SHARE}"),
    ("arithmetic --split test=0", f"--split 'test=0': 'test=0'{SHARE}"),
    ("arithmetic --split test=1.5", f"--split 'test=1.5': 'test=1.5'{SHARE}"),
    ("arithmetic --split test=10", f"--split 'test=10': 'test=10'{SHARE}"),
    ("arithmetic --split a=.1,a=.2", f"--split 'a=.1,a=.2': 'a=.2'{SHARE}"),
    ("arithmetic --split a=0.6,b=0.6", "--split 'a=0.6,b=0.6': the shares add up to 1.2; make it "
     "1, or leave train out, which is then what is left"),
    ("arithmetic --split train=0.6,b=0.3", "--split 'train=0.6,b=0.3': the shares add up to 0.9; "
     "make it 1, or leave train out, which is then what is left"),
    ("arithmetic --samples 5", "--samples 5 leaves no row for the split 'test' of "
     "train=0.8,validation=0.1,test=0.1; give more samples, or a larger share"),
    ("arithmetic --kind product --digits 1 --samples 1000000",
     "arithmetic,kind=product,digits=1 has only 81 different rows, and --samples asks for "
     "1,000,000; give fewer, or settings with more rows"),
    ("arithmetic --kind product --digits 1 --samples 81 --split test=0.9",
     "arithmetic,kind=product,digits=1 has 81 different expressions, and at most some 95% can be "
     "drawn: too few for 9 in the split 'train'; give fewer --samples, or settings with more "
     "expressions"),
]  # fmt: skip


def failed(ran: Ran, message: str) -> None:
    assert ran.err == f"numtok: {message}\n"
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_cannot_be_done_is_told_in_one_line(
    numtok: Shell, arguments: str, message: str
) -> None:
    failed(numtok("gen", *arguments.split()), message)


@pytest.mark.parametrize("threads", ["x", "0"])
def test_the_number_of_threads_is_checked(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", threads)
    failed(
        numtok("gen", "arithmetic"), f"NUMTOK_THREADS={threads!r} is not possible; it is 1 or more"
    )


def test_an_error_in_a_unit_leaves_no_artifact(tmp_path: Path) -> None:
    config = Config("arithmetic,kind=product,digits=1", 81, split="test=0.9")
    with pytest.raises(UsageError):
        make(config, tmp_path)
    with pytest.raises(NumtokError):
        Store(tmp_path).resolve("arithmetic")


def test_progress_is_told_as_each_unit_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the end of all: when a unit is told of, later ones have not begun."""
    events: list[str] = []
    make = gen.GenUnit.__call__

    def noting(self: gen.GenUnit, unit: gen.GenPart) -> Any:
        events.append("made")
        return make(self, unit)

    monkeypatch.setattr(gen.GenUnit, "__call__", noting)
    gen.run(
        gen.Config("arithmetic", samples=300), Store(tmp_path), lambda *_: events.append("told")
    )
    assert events == ["made", "told"] * 3
