"""The commands on the store: what they print, where, and with which exit code."""

import concurrent.futures
import csv
import errno
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import popen_spawn_posix
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import Mock

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok import __version__, cli, interrupts
from numtok.cli.output import printing
from numtok.cli.output.printing import Sheet, print_parts, print_table
from numtok.errors import needing
from numtok.reports import Figure
from numtok.store.artifact import MANIFEST, Artifact, Parent
from numtok.store.engines.local import Workers
from numtok.store.store import Store
from tests.cases import case
from tests.fakestage import make
from tests.faults import Plan, installed
from tests.messages import Says
from tests.shell import Ran, Shell

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from numtok.cli.main import main; main()"
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    return make(Store(tmp_path / "artifacts"), name="toy")


def child_of(parent: Artifact) -> Artifact:
    return made_of([parent], "child")


def made_of(parents: Sequence[Artifact], name: str) -> Artifact:
    store = Store(parents[0].path.parent.parent.parent)
    origins = [parent.as_parent() for parent in parents]
    with store.draft("model", name, {"name": name}, origins, ["numtok", "x"]) as draft:
        assert not isinstance(draft, Artifact)
        return draft.publish({}, {})


@contextmanager
def process(*arguments: str, cwd: Path, **options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run numtok in its own process."""
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NUMTOK_STORE")}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(ROOT), *arguments],
        cwd=cwd,
        env=environment | options,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        yield running


# --- tables ------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["xval", "scheme=fone,whole=6,decimals=6", "a-name-of-many-letters"]),
            st.floats(-1e12, 1e12),
            st.text("ab ", max_size=60),
            st.integers(0, 10**15),
            st.sampled_from(["5f4742f56278213b5f2337a8a6a1fa5dead048ac", "0ff"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([30, 60, 80, 100]),
    st.booleans(),
)
def test_numbers_names_and_hashes_are_never_folded(
    rows: list[tuple[object, ...]], limit: int, in_lists: bool
) -> None:
    columns = ("experiment", "value", "note", "count", "digest")
    sheet = Sheet("", columns, rows, words=("note",), in_lists=in_lists)
    out = io.StringIO()
    print_parts([sheet], to=out)  # not a terminal: nothing is folded
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(limit))
        narrow = io.StringIO()
        print_parts([sheet], to=narrow)
    for row in rows:
        for cell in (row[0], row[1], row[3], row[4]):
            assert printing.human(cell) in out.getvalue()
            assert printing.human(cell) in narrow.getvalue()
    long = [line for line in narrow.getvalue().splitlines() if len(line) > limit]
    # Longer lines contain only one cell, which is itself longer.
    assert all(len(line.split()) == 1 or "  " not in line.strip() for line in long)


def test_what_does_not_fit_is_stacked_and_then_left_out_with_a_note(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    columns = ["name", *(f"a-long-heading-{number}" for number in range(20))]
    print_parts([Sheet("", columns, [["x", *(0.5 for _ in range(20))]])])
    out = capsys.readouterr().out
    assert all(len(line) <= 60 for line in out.splitlines())
    assert "8 columns left out for lack of room: a-long-heading-12, " in " ".join(out.split())


def test_an_interval_is_a_column_of_its_own_or_below_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["model-a", *[Figure(0.5, 0.4, 0.6, 9)] * 3], ["model-b", *[Figure(12, 9, 15, 9)] * 3]]
    sheet = Sheet("", ["model", "first", "second", "third"], rows)
    monkeypatch.setenv("COLUMNS", "80")
    print_parts([sheet])
    wide = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert wide[2] == ["model-a", *["0.50", "0.40", "to", "0.60"] * 3]
    monkeypatch.setenv("COLUMNS", "60")
    print_parts([sheet])
    narrow = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert narrow[2:4] == [["model-a", "0.50", "0.50", "0.50"], ["0.40", "to", "0.60"] * 3]


def test_decimal_points_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts([Sheet("", ["a", "b"], [["x", 1.5], ["y", 23.25], ["z", 12345.0], ["w", None]])])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert lines[0].index(".") == lines[1].index(".")


def test_a_table_folds_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    row = ("numerologic", "a note of many words that has to be folded", "verylongword" * 2)
    print_table("title", ("scheme", "note", "what"), [row])
    assert capsys.readouterr().out.splitlines() == [
        "title",
        "scheme       note                                       what",
        "\u2500" * 80,
        "numerologic  a note of many words that has to be        verylongwordverylongword",
        "             folded",
    ]


# --- reading commands --------------------------------------------------------------------------


def test_ls_lists_what_is_there(numtok: Shell, artifact: Artifact) -> None:
    ran = numtok("ls")
    assert (ran.code, ran.err) == (0, "")
    line = next(line for line in ran.out.splitlines() if "toy@" in line)
    assert line.split()[:2] == ["fake", f"toy@{artifact.version[:8]}"]
    assert line.split()[-3:] == ["9", "84", "B"]


def test_ls_lists_the_newest_first_and_its_short_refs_work(
    numtok: Shell, artifact: Artifact
) -> None:
    made_of([artifact], "child")
    os.utime(artifact.path / MANIFEST, (0, 0))
    rows = [line.split() for line in numtok("ls").out.splitlines()[3:]]
    assert [row[1].partition("@")[0] for row in rows] == ["child", "toy"]
    listed = json.loads(numtok("ls", "--json").out)["rows"]
    assert [row["ref"].partition("@")[0] for row in listed] == ["child", "toy"]
    for _, ref, *_ in rows:
        assert len(ref.partition("@")[2]) == 8
        assert numtok("show", ref).code == 0


def test_ls_prints_for_programs(numtok: Shell, artifact: Artifact) -> None:
    row = {"kind": "fake", "ref": artifact.ref, "rows": 9, "files": 4, "bytes": 84}
    assert json.loads(numtok("ls", "--json").out) == {"schema": 1, "rows": [row]}
    assert numtok("ls", "--format", "json").out == numtok("ls", "--json").out
    table = list(csv.DictReader(io.StringIO(numtok("ls", "--format", "csv").out)))
    assert table == [{key: str(value) for key, value in row.items()}]
    assert numtok("ls", "--format", "md").out.splitlines() == [
        "| kind | ref | rows | files | bytes |",
        "| --- | --- | --- | --- | --- |",
        f"| fake | {artifact.ref} | 9 | 4 | 84 B |",
    ]


def test_ls_lists_what_is_like_a_pattern(numtok: Shell, artifact: Artifact) -> None:
    make(Store(artifact.path.parent.parent.parent), name="other")
    begun = artifact.version[:8]
    for patterns, listed in (
        (["toy"], ["toy"]),
        (["fake/toy"], ["toy"]),
        ([artifact.ref], ["toy"]),
        ([f"toy@{begun}"], ["toy"]),
        ([f"fake/toy@{begun}"], ["toy"]),
        ([begun], ["other", "toy"]),  # both have the same settings
        ([f"to@{begun}"], []),
        (["t?y@*"], ["toy"]),
        (["fake/toy@*"], ["toy"]),
        (["model", "toy*"], ["toy"]),
        (["fake"], ["other", "toy"]),
        (["fa*"], ["other", "toy"]),
        (["o*", "toy"], ["other", "toy"]),
        (["TOY"], []),
        (["model"], []),
        (["to"], []),
    ):
        rows = json.loads(numtok("ls", *patterns, "--json").out)["rows"]
        assert [row["ref"].partition("@")[0] for row in rows] == listed, patterns


def test_ls_lists_a_damaged_artifact_and_says_so(
    numtok: Shell, artifact: Artifact, says: Says
) -> None:
    (artifact.path / MANIFEST).write_text("{")
    ran = numtok("ls")
    assert ran.code == 0
    assert f"toy@{artifact.version[:8]}" in ran.out
    assert ran.err.count("\n") == 1
    says(ran.err, "numtok: ", "manifest.json is damaged: ", "make it again\n")
    assert numtok("-q", "ls").err == ""


def test_ls_is_fast_whatever_the_number_of_shards(numtok: Shell, artifact: Artifact) -> None:
    for number in range(300):
        (artifact.path / f"{number}.parquet").write_bytes(b"")
    with installed(Plan("trace")) as traced:
        assert numtok("ls").code == 0
    assert len(traced.trace) < 20


def test_show_prints_every_setting_and_the_command(numtok: Shell, artifact: Artifact) -> None:
    ran = numtok("show", "toy")
    assert (ran.code, ran.err) == (0, "")
    words = " ".join(ran.out.split())
    for expected in (
        f"fake/{artifact.ref}",
        "numtok fake data.jsonl",
        "made from file data.jsonl",
        "rows 9",
        "scheme.name fake",
        "seed 7",
        f"numtok {__version__}",
        "84 B in 4 files",
        "part/unit-0.txt 27 B",
    ):
        assert expected in words
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "scheme.revision" not in words and artifact.manifest.content not in words
    full = " ".join(numtok("show", "toy", "--full").out.split())
    assert "scheme.revision 1" in full and artifact.manifest.content in full


def test_show_as_json_is_the_manifest_and_the_files(numtok: Shell, artifact: Artifact) -> None:
    shown = json.loads(numtok("show", "toy", "--json").out)
    assert shown["schema"] == 1
    assert shown["ref"] == artifact.ref
    assert Path(shown["folder"]).samefile(artifact.path)
    assert shown["manifest"] == json.loads((artifact.path / MANIFEST).read_bytes())
    assert [file["path"] for file in shown["files"]][-1] == "scheme.json"


def test_lineage_goes_up_to_the_raw_files(numtok: Shell, artifact: Artifact) -> None:
    child = child_of(artifact)
    ran = numtok("lineage", "child")
    assert ran.out.splitlines() == [
        f"model {child.ref}",
        f"  0 B, sha256 {child.manifest.content[:16]}",
        f"  from fake {artifact.ref}",
        f"    84 B, sha256 {artifact.manifest.content[:16]}",
        "    from file data.jsonl",
        "      12 B, sha256 abababababababab",
    ]
    tree = json.loads(numtok("lineage", "child", "--json").out)["lineage"]
    assert tree["parents"][0]["parents"][0]["digest"] == "ab" * 32


def test_lineage_of_shared_ancestors_shows_the_origins_of_each_once(
    numtok: Shell, artifact: Artifact
) -> None:
    """30 generations with two parents each would have a billion nodes if printed as a tree."""
    pair = [artifact]
    for generation in range(30):
        pair = [made_of(pair, f"{side}-{generation}") for side in ("left", "right")]
    nodes = numtok("lineage", pair[0].ref).out.splitlines()[::2]
    above = 2 * 28 + 1  # the two parents of each node on the right; the only parent of the first
    assert len(nodes) == 1 + 2 * 29 + above + len(["toy", "data.jsonl"])
    tree = json.loads(numtok("lineage", pair[0].ref, "--json").out)["lineage"]
    first, second = tree["parents"][0]["parents"]
    again = tree["parents"][1]["parents"]
    assert [node["digest"] for node in again] == [first["digest"], second["digest"]]
    assert [(node["above"], node["parents"]) for node in again] == [(True, [])] * 2


def test_lineage_says_what_is_no_longer_there(numtok: Shell, artifact: Artifact) -> None:
    child_of(artifact)
    assert numtok("rm", "toy", "--force").code == 0
    assert "84 B, sha256" in numtok("lineage", "child").out
    assert ", not in this store" in numtok("lineage", "child").out


def test_lineage_escapes_what_would_move_the_cursor(numtok: Shell, tmp_path: Path) -> None:
    parents = [Parent("file", "a\n\x1b[31mb", "00" * 32, 1)]
    with Store(tmp_path / "artifacts").draft("k", "n", {}, parents, ["x", "\x1b[31m"]) as draft:
        assert not isinstance(draft, Artifact)
        draft.publish({}, {})
    assert "from file a\\n\\x1b[31mb\n" in numtok("lineage", "n").out
    shown = numtok("show", "n").out
    assert "a\\n\\x1b[31mb" in shown and "\x1b" not in shown


def test_verify_says_what_it_checked(numtok: Shell, artifact: Artifact) -> None:
    child_of(artifact)
    assert numtok("verify") == Ran(0, "checked 2 artifacts, 4 files, 84 B\n", "")
    assert numtok("verify", "toy").out == "checked 1 artifact, 4 files, 84 B\n"


def test_verify_can_read_some_files_of_each_only(numtok: Shell, artifact: Artifact) -> None:
    assert re.fullmatch(
        r"checked 1 artifact, 2 files of 4, [0-9]+ B\n",
        numtok("verify", "toy", "--sample", "2").out,
    )
    assert numtok("verify", "toy", "--sample", "9").out == (
        "checked 1 artifact, 4 files of 4, 84 B\n"
    )
    assert numtok("verify", "--sample", "0").code == 2


def test_verify_finds_a_changed_byte_and_exits_1(
    numtok: Shell, artifact: Artifact, says: Says
) -> None:
    (artifact.path / "scheme.json").write_bytes(b"[]\n")
    (artifact.path / "more").write_bytes(b"")
    ran = numtok("verify")
    assert ran.code == 1
    assert ran.out.splitlines()[0].startswith(f"{artifact.ref}: 'scheme.json' was changed: its ")
    assert ran.out.splitlines()[1:] == [
        f"{artifact.ref}: 'more' is not listed in files.jsonl",
        "checked 1 artifact, 4 files, 84 B",
    ]
    says(ran.err, "numtok: 2 problems in 1 artifact", "`numtok rm --force REF`", "show REF`")
    found = json.loads(numtok("verify", "--json").out)
    assert (found["schema"], found["artifacts"], len(found["problems"])) == (1, 1, 2)


# --- changing commands -------------------------------------------------------------------------


def test_rm_removes_and_says_so(numtok: Shell, artifact: Artifact) -> None:
    assert numtok("rm", artifact.ref) == Ran(0, f"removed fake/{artifact.ref}\n", "")
    assert not artifact.path.exists()


def test_rm_refuses_a_parent(numtok: Shell, artifact: Artifact, says: Says) -> None:
    child = child_of(artifact)
    ran = numtok("rm", "toy")
    assert (ran.code, ran.out) == (2, "")
    says(ran.err, f"numtok: {artifact.ref} is a parent of {child.ref}", "--force")
    assert numtok("rm", "toy", "--force").code == 0


def test_gc_says_what_it_swept(numtok: Shell, artifact: Artifact) -> None:
    trash = artifact.path.parent / f".trash-{artifact.version}.1"
    trash.mkdir()
    (trash / "a").write_bytes(b"12345")
    row = {"removed": str(Path("artifacts", "fake", "toy", trash.name)), "bytes": 5}
    before = sorted(Path("artifacts").rglob("*"))
    assert numtok("gc", "--dry-run").out.startswith("would remove 1 leftover, 5 B\n")
    assert json.loads(numtok("gc", "--json", "--dry-run").out) == {"schema": 1, "rows": [row]}
    assert sorted(Path("artifacts").rglob("*")) == before
    assert json.loads(numtok("gc", "--json").out) == {"schema": 1, "rows": [row]}
    assert numtok("gc").out == "removed 0 leftovers, 0 B\n"


# --- global options and configuration ----------------------------------------------------------


def test_the_version_is_printed(numtok: Shell) -> None:
    assert numtok("--version") == Ran(0, f"numtok {__version__}\n", "")


def test_the_help_of_a_command_fills_its_lines(numtok: Shell) -> None:
    told = numtok("diagnose", "--help").out.partition("Example:")[0]
    _, *paragraphs = [part.splitlines() for part in re.split(r"\n *\n", told)]
    for lines in paragraphs:
        for line, after in pairwise(lines):
            assert len(line.rstrip()) + 1 + len(after.split()[0]) > 79, line


def test_a_new_command_is_one_new_file(
    numtok: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "say_it.py").write_text(
        'CONTEXT = {"ignore_unknown_options": True}\n'
        'def command(number: str) -> None:\n    """Say it."""\n    print(number)\n'
    )
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    assert numtok("say-it", "-60.2") == Ran(0, "-60.2\n", "")


def test_the_store_is_that_of_the_flag_then_the_environment_then_the_file(
    numtok: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("artifacts", "file", "environment", "flag"):
        make(Store(tmp_path / name), name=name)

    def listed(*arguments: str) -> str:
        return str(json.loads(numtok(*arguments, "ls", "--json").out)["rows"][0]["ref"])

    assert listed().startswith("artifacts@")
    (tmp_path / "numtok.toml").write_text('store = "file"')
    assert listed().startswith("file@")
    monkeypatch.setenv("NUMTOK_STORE", "environment")
    assert listed().startswith("environment@")
    assert listed("--store", "flag").startswith("flag@")


def test_the_file_sets_options_and_a_flag_wins(
    numtok: Shell, tmp_path: Path, artifact: Artifact
) -> None:
    (tmp_path / "numtok.toml").write_text('[ls]\nformat = "csv"')
    assert numtok("ls").out.startswith("kind,ref,")
    assert numtok("ls", "--format", "md").out.startswith("| kind |")


def test_a_mistake_in_the_file_is_exit_2(numtok: Shell, tmp_path: Path, says: Says) -> None:
    for text, told in (
        ("[lss]", "numtok.toml 'lss'. Did you mean 'ls'?"),
        ("[ls]\nfromat = 'csv'", "[ls] of numtok.toml 'fromat'. Did you mean 'format'?"),
        ("[ls]\nformat = 'xml'", "[ls] format must be table, json, csv or md"),
        ("[plugins]\nfolders = ['none']", "plugin folder 'none'"),
        ("store", "numtok.toml cannot be read: "),
    ):
        with case(text):
            (tmp_path / "numtok.toml").write_text(text)
            ran = numtok("ls")
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            says(ran.err, "numtok: ", told)


# --- errors ------------------------------------------------------------------------------------


def test_a_file_in_place_of_an_artifact_is_told_from_a_typing_error(
    numtok: Shell, artifact: Artifact, says: Says
) -> None:
    Path("toys.jsonl").write_text("{}")
    ran = numtok("show", "toys.jsonl")
    assert (ran.code, ran.out) == (2, "")
    says(ran.err, "numtok: ", "'toys.jsonl' is a file", "numtok encode", "numtok table")


def test_an_error_is_one_line_on_stderr(
    numtok: Shell, artifact: Artifact, tmp_path: Path, says: Says
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (artifact.path / "files.jsonl").write_bytes(b"")
    for words, code, *told in (
        ("show to", 2, "'to' in artifacts. Did you mean 'toy'?", "numtok ls"),
        ("lineage ./x", 2, "'x' is not an artifact's folder", "manifest.json"),
        ("--store none ls", 4, "no store at none"),
        ("--store none gc", 4, "no store at none"),
        ("--store none verify", 4, "no store at none"),
        ("--store file ls", 4, "cannot list file: ", "Check the path"),
        ("show toy", 4, f"{Path(artifact.ref.replace('@', '/'))}/files.jsonl is damaged: "),
    ):
        with case(words):
            ran = numtok(*words.split())
            assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
            says(ran.err, "numtok: ", *told)


def test_a_usage_error_is_one_line_and_exit_2(numtok: Shell, says: Says) -> None:
    for words, *told in (
        ("lss", "command 'lss'. Did you mean 'ls'?"),
        ("ls --jsn", "--jsn. Did you mean --json?", "`numtok ls --help`"),
        ("show", "REF is missing", "`numtok show --help`"),
        ("gen arithmetic --rows 1e5", "--rows ", "an integer", "'1e5'", "Write 100000"),
        ("ls --format", "--format needs a value", "`numtok ls --help`"),
        ("--bogus ls", "unknown option --bogus", "`numtok --help`"),
        ("ls --store", "--store needs a value", "`numtok --help`"),
        ("gen rooms --longset 3", "--longset", "--longest?", "`numtok gen rooms --help`"),
        ("gen rooms,longest=3 --seed", "--seed needs a value", "`numtok gen rooms --help`"),
        ("fetch uci", "--set is missing", "`numtok fetch uci --help`"),
    ):
        with case(words):
            ran = numtok(*words.split())
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            says(ran.err, "numtok: ", *told)


def test_without_a_command_the_help_is_shown(numtok: Shell) -> None:
    ran = numtok()
    assert ran.code == 2 and "Usage: numtok [OPTIONS] COMMAND" in ran.out + ran.err
    assert "numtok: " not in ran.err


def test_a_bug_shows_its_traceback_and_exits_70(
    numtok: Shell, artifact: Artifact, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    def broken(store: Store) -> list[Artifact]:
        raise RuntimeError("no room")

    monkeypatch.setattr(Store, "artifacts", broken)
    ran = numtok("ls")
    assert (ran.code, ran.out) == (70, "")
    assert ran.err.startswith("Traceback (most recent call last):")
    says("\n".join(ran.err.splitlines()[-2:]), "RuntimeError: no room", "numtok: this is a bug")


def test_running_out_of_memory_anywhere_is_one_line_and_exits_5(
    numtok: Shell, artifact: Artifact, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    unloaded = ImportError("libtorch_cpu.so: failed to map segment from shared object")
    hidden = OSError("Could not find/load shared object file 'libllvmlite.so'")
    hidden.__context__ = OSError("libllvmlite.so: failed to map segment from shared object")
    for error in (
        MemoryError("no room"),
        RuntimeError("could not create a primitive"),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        unloaded,
        hidden,
    ):
        with case(error):
            monkeypatch.setattr(Store, "artifacts", Mock(side_effect=error))
            ran = numtok("ls")
            assert (ran.code, ran.out, ran.err.count("\n")) == (5, "", 1)
            says(ran.err, "out of memory", type(error).__name__)


def test_warnings_of_numpy_do_not_reach_the_terminal(
    numtok: Shell, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflowing(store: Store) -> list[Artifact]:
        np.float64(1e308) * np.float64(10)
        return []

    monkeypatch.setattr(Store, "artifacts", overflowing)
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    for shown in (True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            if shown:
                warnings.simplefilter("always")
            assert numtok("ls").code == 0
        assert bool(caught) == shown
    assert os.environ["PYTHONWARNINGS"] == "ignore::RuntimeWarning"


def test_a_package_that_memory_has_no_room_for_is_not_called_missing() -> None:
    with pytest.raises(ImportError, match="map segment"), needing("X", "xarray"):
        raise ImportError("libx.so: failed to map segment from shared object")


@dataclass(frozen=True)
class Signaled:
    """Runs ``numtok ls`` with other work instead of listing, and expects the signal to end it."""

    numtok: Shell
    monkeypatch: pytest.MonkeyPatch
    number: signal.Signals
    ended: Ran

    def __call__(self, works: Callable[[Store], object]) -> None:
        self.monkeypatch.setattr(Store, "artifacts", works)
        assert self.numtok("ls") == self.ended


@pytest.fixture(
    params=[
        (signal.SIGINT, Ran(130, "", "numtok: interrupted\n")),
        (signal.SIGTERM, Ran(143, "", "numtok: terminated\n")),
    ],
    ids=["SIGINT", "SIGTERM"],
)
def signaled(
    request: pytest.FixtureRequest,
    numtok: Shell,
    artifact: Artifact,
    monkeypatch: pytest.MonkeyPatch,
) -> Signaled:
    return Signaled(numtok, monkeypatch, *request.param)


def test_a_signal_has_its_exit_code(signaled: Signaled) -> None:
    signaled(lambda store: os.kill(os.getpid(), signaled.number))


def test_a_signal_is_not_lost_in_an_import(
    signaled: Signaled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"with_an_optional_dependency_{signaled.ended.code}"
    tries = (
        f"try:\n    os.kill({os.getpid()}, {signaled.number})\nexcept BaseException:\n    pass\n"
    )
    (tmp_path / f"{name}.py").write_text(f"import os\n{tries}whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def imports(store: Store) -> None:
        assert importlib.import_module(name).whole
        time.sleep(60)

    signaled(imports)


def test_a_signal_that_comes_when_all_is_done_changes_nothing(
    numtok: Shell, artifact: Artifact, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "late_import.py").write_text(f"import os\nos.kill({os.getpid()}, 15)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("numtok.cli._signals._PAUSE", 30)
    plain = Store.artifacts
    before = [signal.getsignal(number) for number in SIGNALS]

    def imports(store: Store) -> list[Artifact]:
        importlib.import_module("late_import")
        return plain(store)

    expected = numtok("ls")
    monkeypatch.setattr(Store, "artifacts", imports)
    assert numtok("ls") == expected
    assert "late_import" in sys.modules
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_worker_is_started_whole_before_a_signal_ends_the_run(
    signaled: Signaled, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = getattr(popen_spawn_posix.Popen, "_launch")  # noqa: B009 (not in the stubs)
    whole: list[int] = []

    def interrupted(process: Any, work: Any) -> None:
        if not whole:
            os.kill(os.getpid(), signaled.number)
        launch(process, work)
        whole.append(process.pid)

    def works(store: Store) -> None:
        with Workers(2) as workers:
            list(workers.run(abs, [-1, -2, -3]))

    monkeypatch.setattr(popen_spawn_posix.Popen, "_launch", interrupted)
    signaled(works)
    assert whole
    assert not any(psutil.pid_exists(worker) for worker in whole)


def test_a_signal_leaves_no_interrupts_blocked(signaled: Signaled) -> None:
    """Processes started later would inherit the block. The signal arrives at each line in turn."""
    of_module = interrupts.BlockedInterrupts.__enter__.__code__.co_filename
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ()), sys.gettrace()
    lines, at = 1, 0

    def works(store: Store) -> None:
        nonlocal lines
        lines = 0

        def counted(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal lines
            if frame.f_code.co_filename != of_module:
                return None
            lines += 1
            if lines == at:
                os.kill(os.getpid(), signaled.number)
            return counted

        sys.settrace(counted)
        with interrupts.BlockedInterrupts():
            pass
        sys.settrace(before[1])
        if at > lines:
            os.kill(os.getpid(), signaled.number)
        time.sleep(60)

    while at <= lines:
        at += 1
        try:
            signaled(works)
        finally:
            sys.settrace(before[1])
            mask = signal.pthread_sigmask(signal.SIG_SETMASK, before[0])
        assert mask == before[0], at
    assert at > 10


def test_blocked_interrupts_keep_a_handler_that_was_set_meanwhile() -> None:
    """After a first interrupt, a second one ends the process."""
    before = signal.getsignal(signal.SIGINT)
    try:
        with interrupts.BlockedInterrupts():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_waits_until_work_is_handed_over_to_a_thread(signaled: Signaled) -> None:
    """``wait`` locks the futures, and their threads wait for these locks."""
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    thread = threading.Thread(target=future.set_result, args=(None,), daemon=True)
    within = concurrent.futures.wait.__globals__["_AcquireFutures"].__exit__.__code__
    before = sys.gettrace()  # of a coverage measurement, for example

    def at_the_end(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code is within:
            sys.settrace(before)
            os.kill(os.getpid(), signaled.number)

    def works(store: Store) -> None:
        sys.settrace(at_the_end)
        concurrent.futures.wait([future], timeout=60)

    signaled(works)
    thread.start()
    thread.join(10)
    assert future.done()


def test_a_signal_on_the_brink_of_a_wait_ends_it(signaled: Signaled) -> None:
    """A signal that another thread receives does not wake the main thread, which handles it."""

    def works(store: Store) -> None:
        later = threading.Timer(
            0.2, lambda: signal.pthread_kill(threading.get_ident(), signaled.number)
        )
        later.start()
        assert threading.Event().wait(60)

    signaled(works)


# --- terminals and pipes -----------------------------------------------------------------------


def test_a_wide_table_that_is_piped_has_each_row_on_one_line(
    numtok: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    artifact = make(Store(tmp_path / "artifacts"), name="a-long-name-" * 12 + "end")
    ran = numtok("ls")
    [line] = ran.out.splitlines()[-1:]
    assert line.split()[1] == f"{artifact.name}@{artifact.version[:8]}"


def test_a_long_name_is_whole_at_80_columns(numtok: Shell, tmp_path: Path) -> None:
    name = "a-name-that-is-much-longer-than-a-terminal-is-wide-" * 2 + "end"
    artifact = make(Store(tmp_path / "artifacts"), name=name)
    for arguments in (["ls"], ["show", artifact.version]):
        lines = numtok(*arguments).out.splitlines()
        assert any(name in line for line in lines)
        assert all(len(line) <= 80 for line in lines if name not in line)


@pytest.mark.parametrize("word", ["ls", "--help"])
def test_a_closed_pipe_is_quiet(tmp_path: Path, word: str) -> None:
    make(Store(tmp_path / "artifacts"))
    with process(word, cwd=tmp_path) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()  # as `head` does, and before numtok wrote anything
        assert running.stderr.read() == b""
    assert running.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("format", ["json", "table"])
def test_a_full_disk_behind_stdout_is_exit_4(tmp_path: Path, format: str) -> None:
    make(Store(tmp_path / "artifacts"))
    command = f'"$0" -c "{PROGRAM}" "$1" ls --format {format} > /dev/full'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, str(ROOT)], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 4
    assert done.stderr.startswith(b"numtok: ")
    assert b"No space left on device" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("variable", "command"),
    [({"NO_COLOR": "1"}, "ls"), ({"TERM": "dumb"}, "show toy"), ({"NO_COLOR": "1"}, "--help")],
)
def test_no_colour_where_none_is_wanted(
    tmp_path: Path, variable: dict[str, str], command: str
) -> None:
    make(Store(tmp_path / "artifacts"))
    with process(*command.split(), cwd=tmp_path, **variable) as running:
        out, err = running.communicate()
    assert (running.returncode, err) == (0, b"")
    assert b"\x1b" not in out


def test_output_that_only_takes_ascii_is_no_failure(tmp_path: Path) -> None:
    make(Store(tmp_path / "artifacts"))
    with process("ls", cwd=tmp_path, PYTHONIOENCODING="ascii") as running:
        out, err = running.communicate()
    assert (running.returncode, err) == (0, b"")
    assert b"toy@" in out


# --- printing ----------------------------------------------------------------------------------


def test_a_size_is_readable() -> None:
    sizes = {0: "0 B", 999: "999 B", 1536: "1.54 kB", 999_499: "999 kB", 999_500: "1 MB"}
    sizes |= {61_123_456: "61.1 MB", 5 * 10**15: "5e+03 TB"}
    assert {size: str(printing.Size(size)) for size in sizes} == sizes


def test_a_table_can_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_table("t", ("a", "b"), [(1234, None), (0.5, "x|y")], to=sys.stderr)
    out, err = capsys.readouterr()
    assert out == ""
    assert "1,234" in err and "x|y" in err
    printing.print_table("t", ("a", "b"), [(1234, "x|y")], printing.Format.MD)
    assert capsys.readouterr().out.splitlines()[-1] == r"| 1,234 | x\|y |"


def test_notes_hold_no_raw_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = make(Store(tmp_path))
    rows: list[tuple[str, object]] = [("units", "K\x1b[2J")]
    notes = ["by \x1b[31mnobody\r\n"]
    printing.print_made(
        artifact, "a field", rows, made=True, format=printing.Format.TABLE, quiet=False, notes=notes
    )
    shown = capsys.readouterr()
    assert shown.out == f"{artifact.ref}\n"
    assert "\x1b" not in shown.err and "\r" not in shown.err
    assert r"numtok: by \x1b[31mnobody\r\n" in shown.err
