"""The process around a command: closed streams and odd terminals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import case
from tests.shell import Shell

pytestmark = pytest.mark.integration
ROWS = "".join(f'{{"text": "reading {n} of 7.5"}}\n' for n in range(40))


def shell(folder: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which ``numtok`` is this checkout."""
    main = "from numtok.cli.main import main; main()"
    script = f'numtok() {{ "{sys.executable}" -c "{main}" "$@"; }}; {line}'
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root} | more
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_closed_streams_change_no_exit_code_and_no_other_stream(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    encode = "numtok encode --scheme p10 a.jsonl"
    first = shell(tmp_path, encode)
    assert first.returncode == 0
    for line, code, out, err in (
        ("numtok ls >&-", 0, "", ""),
        ("numtok ls 2>&- | head -1", 0, None, ""),
        (f"{encode} --name b >&- 2>&- <&-", 0, "", ""),
        (f"{encode} 2>&-", 0, first.stdout, ""),
        ("numtok encode --scheme p10 - <&-", 3, "", "numtok: standard input is empty"),
        ("numtok encode --scheme nope a.jsonl 2>&-", 2, "", ""),
    ):
        with case(line=line):
            ran = shell(tmp_path, line)
            assert ran.returncode == code
            assert out is None or ran.stdout == out
            assert ran.stderr.startswith(err) and ran.stderr.count("\n") == bool(err)


def test_a_terminal_of_no_columns_has_the_usual_width(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    for line in ("numtok -q profile a.jsonl", "numtok schemes", "numtok --help"):
        with case(line=line):
            usual = shell(tmp_path, f"unset COLUMNS; {line}")
            none = shell(tmp_path, line, COLUMNS="0")
            assert (none.returncode, none.stdout) == (0, usual.stdout)


def test_a_message_that_quotes_a_long_option_is_cut_in_its_middle(numtok: Shell) -> None:
    for words in (("explain", "7" * 5000 + "x"), ("encode", "a.jsonl", "--scheme", "x" * 5000)):
        ran = numtok(*words)
        assert ran.code == 2 and ran.err.startswith("numtok: ")
        assert len(ran.err) < 1100 and " ... " in ran.err


def test_an_empty_value_is_refused_instead_of_taken_for_the_current_folder(numtok: Shell) -> None:
    for words, told in (
        (("ls", "--store", ""), "--store"),
        (("--store=", "gen", "rooms"), "--store"),
        (("encode", "", "--scheme", "p10"), "input"),
        (("gen", "rooms", "--split", ""), "--split"),
        (("encode", "a.csv", "--target", "x", "--drop", "", "--scheme", "p10"), "field ''"),
    ):
        with case(words=words):
            Path("a.csv").write_text("x,y\n1,2\n")
            ran = numtok(*words)
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1) and told in ran.err


def test_names_in_a_registry_are_completed(tmp_path: Path) -> None:
    for words, completed in (("gen ari", "arithmetic"), ("encode --scheme xv", "xval")):
        with case(words=words):
            more = {"_NUMTOK_COMPLETE": "complete_bash", "COMP_WORDS": f"numtok {words}"}
            ran = shell(tmp_path, "numtok", COMP_CWORD=str(words.count(" ") + 1), **more)
            assert ran.stdout.split() == [completed]
