"""The snapshot of messages has what tests say, and a message of other words fails."""

import ast
import json
from pathlib import Path

import pytest

from tests import messages
from tests.messages import ROOT, SNAPSHOT, Says

pytest_plugins = ["pytester"]


def test_every_message_of_the_snapshot_is_that_of_a_test() -> None:
    tests = {test.partition("[")[0] for test in json.loads(SNAPSHOT.read_text("utf-8"))}
    for file in {test.partition("::")[0] for test in tests}:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        there = {f"{file}::{one.name}" for one in tree.body if isinstance(one, ast.FunctionDef)}
        assert {test for test in tests if test.partition("::")[0] == file} <= there


def test_folders_of_a_run_are_written_alike(tmp_path: Path) -> None:
    says = Says({str(tmp_path): "TMP", "/base": "BASE"})
    says(f"no file {tmp_path}/a12, /base/data3/b4 of sums@0123456789abcdef", "no file")
    assert says.texts == ["no file TMP/a12, BASE/data/b4 of sums@VERSION"]
    with pytest.raises(AssertionError):
        says("no file", "a12")


def test_other_words_and_fewer_messages_fail_until_they_are_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SNAPSHOT", pytester.path / "messages.json")
    (pytester.path / "messages.json").write_text("{}")
    test = "def test_it(says):\n    says('a rate of {}', 'rate')\n"
    quiet = ["-p", "no:zarr"]  # which would register marks of its own
    for rate, written, outcome in [
        (1, False, {"passed": 1, "errors": 1}),
        (1, True, {"passed": 1}),
        (1, False, {"passed": 1}),
        (2, False, {"passed": 1, "errors": 1}),
    ]:
        pytester.makepyfile(test_it=test.format(rate))
        ran = pytester.inline_run(*quiet, *["--write-messages"] * written, plugins=[messages])
        passed, _, failed = ran.listoutcomes()
        assert {"passed": len(passed), "errors": len(failed)} == {"errors": 0} | outcome
