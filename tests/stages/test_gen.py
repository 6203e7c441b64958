"""``numtok gen``: exact counts, disjoint splits, and the same rows for any workers or faults."""

import ast
import hashlib
import json
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

from numtok.data.tasks.base import SHARES, TASKS
from numtok.errors import NumtokError, StoreError, UsageError
from numtok.row import Row
from numtok.stages import gen
from numtok.stages.gen import Config, run, split_rows
from numtok.store.artifact import RECEIPTS, Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from tests.cases import case
from tests.chain import every_file, quiet, there
from tests.faults import Plan, installed, points, sample
from tests.messages import Says
from tests.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
GEN = {1: "247053da941284f3"}
SMALL = Config("arithmetic,operands=2", samples=300)  # three units, one per split


def make(config: Config, root: Path) -> Artifact:
    return there(run(config, Store(root), quiet).artifact)


def rows(artifact: Artifact) -> dict[str, list[Row]]:
    """Return the rows of each split."""
    found: dict[str, list[Row]] = {}
    for path in sorted(artifact.path.glob("*-*.jsonl")):
        lines = msgspec.json.Decoder(Row).decode_lines(path.read_bytes())
        found.setdefault(path.stem.rpartition("-")[0], []).extend(lines)
    return found


# --- results -----------------------------------------------------------------------------------


def test_gen_gives_what_its_revision_gave(tmp_path: Path) -> None:
    found = every_file(make(SMALL, tmp_path))
    files = [[name, found[name].decode()] for name in found if name.endswith(".jsonl")]
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
    assert digest == GEN.get(gen.REVISION), "raise gen.REVISION"


def canonical(text: str) -> str:
    """Return an expression with the operands of + and * in sorted order, using Python's parser."""

    def below(node: ast.AST) -> str:
        if not isinstance(node, ast.BinOp):
            return ast.unparse(node)
        sides = [below(node.left), below(node.right)]
        if not isinstance(node.op, ast.Sub):
            sides.sort()
        return f"({sides[0]} {type(node.op).__name__} {sides[1]})"

    return below(ast.parse(text.partition("=")[0].strip(), mode="eval").body)


@pytest.mark.parametrize(
    "settings",
    [
        "kind=product,digits=2",
        "operands=2,decimals=0,low=-20,high=20",
        "operands=4,decimals=0,low=1,high=2",
    ],
)
def test_counts_are_exact_and_splits_share_no_expression(tmp_path: Path, settings: str) -> None:
    task = f"arithmetic,{settings}"
    samples = (TASKS.build(task).possible or 0) * 3 // 4  # most of the possible rows
    config = Config(task, samples=samples, split="train=0.7,validation=0.15,test=0.15")
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
    artifact = make(Config("arithmetic", samples=unit + 100, split="train=1"), tmp_path)
    names = [f"train-0000{part}.jsonl" for part in (0, 1)]
    assert sorted(path.name for path in artifact.path.glob("train-*")) == names
    made = rows(artifact)["train"]
    assert [row.id for row in made] == [f"train-{number}" for number in range(unit + 100)]
    assert len({row.text for row in made}) == len(made)


def test_seed_split_samples_and_settings_make_another_version(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"seed": 1}, {"samples": 301}, {"split": "test=0.5"}, {"task": "arithmetic,operands=4"},
    ]  # fmt: skip
    versions = [make(replace(SMALL, **change), tmp_path).version for change in changes]
    assert len(set(versions)) == len(changes)
    same = replace(SMALL, workers=2, task="arithmetic,figures=3,operands=2")
    reordered = replace(SMALL, split="test=.1,validation=0.10,train=0.8")
    assert {make(one, tmp_path).version for one in (same, reordered)} == {versions[0]}


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


# --- workers and faults ------------------------------------------------------------------------


def test_workers_make_what_one_process_makes(tmp_path: Path) -> None:
    alone = make(replace(SMALL, workers=1), tmp_path / "one")
    assert every_file(make(replace(SMALL, workers=2), tmp_path / "two")) == every_file(alone)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_any_operation_may_fail_and_the_next_run_goes_on(tmp_path: Path, every: bool) -> None:
    make(SMALL, tmp_path / "warm-up")
    with installed(Plan("trace")) as faults:
        whole = every_file(make(SMALL, tmp_path / "whole"))
    some, failed = sample("eio", faults.trace, 6, every=True), 0
    places = points("eio", faults.trace) if every else some
    for at in places:
        with case(at=at, operation=faults.trace[at - 1]):
            root = tmp_path / str(at)
            try:
                with installed(Plan("eio", at)):
                    make(SMALL, root)
            except StoreError:
                failed += 1
            if root.exists():
                assert all(not verify(artifact).problems for artifact in Store(root).artifacts())
            assert every_file(make(SMALL, root)) == whole
    assert failed > (len(places) * 2 // 3 if every else len(places) // 2)


def main() -> None:
    """Run this file as a program of ``tests.faults``: make SMALL in a folder."""
    make(SMALL, Path(sys.argv[1]))


def test_a_killed_run_keeps_what_is_finished(tmp_path: Path) -> None:
    with installed(Plan("trace")) as faults:
        whole = make(SMALL, tmp_path / "whole")
    writes = points("killtorn", faults.trace)
    root = tmp_path / "store"
    plan = f"killtorn@{writes[2]}"  # a write of the second unit's file
    program = [sys.executable, "-m", "tests.faults", plan, "--", "tests.stages.test_gen", str(root)]
    killed = subprocess.run(program, cwd=ROOT, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (receipt,) = root.glob(f"data/*/.draft-*/{RECEIPTS}/[!.]*.json")
    assert receipt.name == "test-00000.json"
    assert list(root.glob("data/*/.draft-*/.train-00000.jsonl.part"))
    before = receipt.stat().st_mtime_ns
    artifact = make(SMALL, root)
    assert (artifact.path / RECEIPTS / receipt.name).stat().st_mtime_ns == before
    assert every_file(artifact) == every_file(whole)
    assert verify(artifact).problems == []


# --- the command -------------------------------------------------------------------------------


def test_the_ref_is_on_stdout_and_the_table_on_stderr(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--operands=2", "--low", "-5", "--decimals", "1"]
    first = numtok(*arguments, "--rows", "200", "--seed", "7")
    assert first.code == 0
    assert re.fullmatch(r"arithmetic@[0-9a-f]{16}\n", first.out)
    lines = [line.split() for line in first.err.splitlines()]
    assert lines[0] == ["generated", "by", "arithmetic,operands=2,decimals=1,low=-5"]
    for row in (["rows", "200"], ["test", "20"], ["train", "160"], ["seed", "7"]):
        assert row in lines
    again = numtok(*arguments, "--rows", "200", "--seed", "7")
    assert (again.code, again.out) == (0, first.out)
    assert again.err.startswith("already generated by arithmetic,operands=2,decimals=1,low=-5\n")
    assert "time" not in again.err
    spec = numtok("-q", "gen", "arithmetic,operands=2,decimals=1,low=-5", "--rows=200", "--seed=7")
    assert (spec.code, spec.out, spec.err) == (0, first.out, "")


def test_programs_get_json_and_csv(numtok: Shell) -> None:
    made = json.loads(numtok("gen", "arithmetic", "--rows", "100", "--json").out)
    counts = {"rows": 100, "rows_test": 10, "rows_train": 80, "rows_validation": 10}
    assert made == {"schema": 1, "ref": made["ref"], "made": True, "counts": counts}
    table = numtok("gen", "arithmetic", "--rows", "100", "--format", "csv")
    assert table.out.splitlines()[:3] == ["what,value", f"ref,{made['ref']}", "rows,100"]
    assert table.err == ""


def test_a_dry_run_makes_nothing_and_tells_the_size(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--rows", "5000"]
    ran = numtok(*arguments, "--dry-run", "--json")
    told = {row["what"]: row["value"] for row in json.loads(ran.out)["rows"]}
    assert not Path("artifacts").exists()
    made = numtok(*arguments)
    artifact = Store(Path("artifacts")).resolve(made.out.strip())
    assert told["would make"] == artifact.ref
    assert told["rows"] == 5000
    assert abs(told["size (estimate)"] / artifact.manifest.bytes - 1) < 0.02
    found = numtok(*arguments, "--dry-run", "--json")
    assert json.loads(found.out)["ref"] == artifact.ref


def test_force_and_restart_make_the_same_again(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--rows", "100", "--json"]
    first = json.loads(numtok(*arguments).out)
    assert json.loads(numtok(*arguments, "--force").out) == first
    assert json.loads(numtok(*arguments, "--restart").out) == first | {"made": False}


def test_show_prints_the_command_that_makes_it_again(numtok: Shell) -> None:
    arguments = ["gen", "arithmetic", "--low=-2.5", "--decimals=1", "--split", "ood-low=1"]
    ref = numtok(*arguments, "--rows", "50", "--name", "low").out.strip()
    assert ref.startswith("low@")
    line = " ".join(Store(Path("artifacts")).resolve(ref).manifest.command)
    spec = "arithmetic,decimals=1,low=-2.5"
    assert line == f"numtok gen {spec} --rows 50 --seed 0 --split ood-low=1 --name low"
    again = json.loads(numtok(*shlex.split(line)[1:], "--json").out)
    counts = {"rows": 50, "rows_ood-low": 50}
    assert again == {"schema": 1, "ref": ref, "made": False, "counts": counts}


def test_help_shows_a_task_and_its_options(numtok: Shell) -> None:
    ran = numtok("gen", "arithmetic", "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "significant digits" in " ".join(ran.out.split())
    assert ">>>" not in ran.out
    _, panel, own = ran.out.partition("Options of arithmetic")
    assert panel
    own = own.partition("╰")[0]
    words = " ".join(own.replace("│", " ").split())
    assert "Number of operands (tree) (default 3; from 2 to 8)" in words
    assert own.count("│ --") == 9
    every = numtok("gen", "--help")
    assert every.code == 0
    assert "Options of" not in every.out
    assert f"Tasks: {KNOWN}" in " ".join(every.out.split())  # over two lines


def test_the_help_of_every_task_fits_80_columns_and_fills_its_lines(numtok: Shell) -> None:
    for task in TASKS:
        ran = numtok("gen", task, "--help")
        assert ran.code == 0, task
        assert [line for line in ran.out.splitlines() if len(line) > 80] == [], task


def test_encode_finds_splits_targets_and_groups(numtok: Shell) -> None:
    ref = numtok("gen", "arithmetic", "--operands", "3", "--rows", "400").out.strip()
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
#: Invalid arguments, and parts of their error messages.
WRONG: tuple[tuple[str, *tuple[str, ...]], ...] = (
    ("", KNOWN, "`numtok gen TASK --help`"),
    ("arithmatic", "'arithmatic'", "Did you mean 'arithmetic'?"),
    ("arithmatic --help", "'arithmatic'", "Did you mean 'arithmetic'?"),
    ("arithmetic --operand 3", "Did you mean --operands?", "`numtok gen arithmetic --help`"),
    ("arithmetic,operand=3", "'operand'", "Did you mean 'operands'?"),
    ("arithmetic --operands", "--operands needs a value", "`numtok gen arithmetic --help`"),
    ("arithmetic --operands=", "--operands ", "an integer", "''"),
    ("arithmetic 3", "(3)", "`numtok gen arithmetic --help`"),
    ("arithmetic,operands=3 --operands 4", "--operands both set 'operands'"),
    ("arithmetic --operands three", "--operands must be an integer", "got 'three'"),
    ("arithmetic --operands 9", "--operands must", "from 2 to 8", "got 9"),
    ("arithmetic --rows 0", "--rows must", "from 1 to 1,000,000,000,000", "got 0"),
    ("arithmetic --seed 1000000000000000000", "--seed must", "at most 18 digits",
     "got 1000000000000000000"),
    ("arithmetic --name Big", "--name must", "lower-case", "got 'Big'"),
    ("arithmetic --workers 0", "--workers must", "at least 1", "got 0"),
    ("arithmetic --split test", "--split 'test': 'test' must be", "above 0 and at most 1"),
    ("arithmetic --split Test=0.1", "--split 'Test=0.1': 'Test=0.1' must be", "lower-case"),
    ("arithmetic --split test=0", "--split 'test=0': 'test=0' must be", "above 0 and at most 1"),
    ("arithmetic --split test=1.5", "'test=1.5' must be", "above 0 and at most 1"),
    ("arithmetic --split test=10", "'test=10' must be", "above 0 and at most 1"),
    ("arithmetic --split a=.1,a=.2", "--split 'a=.1,a=.2': 'a=.2' must be", "a new split name"),
    ("arithmetic --split a=0.6,b=0.6", "'a=0.6,b=0.6'", "add up to 1 (got 1.2)", "Without train"),
    ("arithmetic --split train=0.6,b=0.3", "'train=0.6,b=0.3'", "add up to 1 (got 0.9)", "train"),
    ("arithmetic --rows 5", "--rows 5", "split 'test'", "Increase --rows"),
    ("arithmetic --kind product --digits 1 --rows 1000000", "only 81", "1,000,000", "Reduce"),
    ("arithmetic --kind product --digits 1 --rows 81 --split test=0.9",
     "81 different", "9 in the split 'train'", "--rows"),
)  # fmt: skip


def test_errors_are_one_line(numtok: Shell, monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    for arguments, *parts in WRONG:
        with case(arguments=arguments):
            says.refused(numtok("gen", *arguments.split()), 2, *parts)
    for threads in ("x", "0"):
        monkeypatch.setenv("NUMTOK_THREADS", threads)
        told = "NUMTOK_THREADS must be a whole number of at least 1", f"(got {threads!r})"
        says.refused(numtok("gen", "arithmetic"), 2, *told)


def test_an_error_in_a_unit_leaves_no_artifact(tmp_path: Path) -> None:
    config = Config("arithmetic,kind=product,digits=1", samples=81, split="test=0.9")
    with pytest.raises(UsageError):
        make(config, tmp_path)
    with pytest.raises(NumtokError):
        Store(tmp_path).resolve("arithmetic")


def test_progress_is_told_unit_by_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit is reported before the next one begins."""
    events: list[str] = []
    make = gen.GenUnit.__call__

    def noting(self: gen.GenUnit, unit: gen.GenPart) -> Any:
        events.append("made")
        return make(self, unit)

    monkeypatch.setattr(gen.GenUnit, "__call__", noting)
    config = gen.Config("arithmetic", samples=300)
    gen.run(config, Store(tmp_path), lambda *_: events.append("told"))
    assert events == ["made", "told"] * 3
