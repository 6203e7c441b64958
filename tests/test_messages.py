"""Checks of messages, and the file that ``--write-messages`` writes."""

import json
from pathlib import Path

import pytest

from tests import messages
from tests.messages import Says

pytest_plugins = ["pytester"]


def test_parts_must_be_in_a_message_and_folders_of_a_run_are_written_alike(tmp_path: Path) -> None:
    says = Says({str(tmp_path): "TMP", "/base": "BASE"})
    says(f"no file {tmp_path}/a12, /base/data3/b4 of sums@0123456789abcdef", "no file")
    assert says.texts == ["no file TMP/a12, BASE/data/b4 of sums@VERSION"]
    with pytest.raises(AssertionError):
        says("no file", "a12")


def test_messages_are_written_if_asked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = pytester.path / "messages.json"
    monkeypatch.setattr(messages, "SNAPSHOT", file)
    pytester.makepyfile(test_it="def test_it(says):\n    says('a rate of 1', 'rate')\n")
    quiet = ["-p", "no:zarr"]  # zarr's plugin would register its own marks
    pytester.inline_run(*quiet, plugins=[messages])
    assert not file.exists()
    pytester.inline_run(*quiet, "--write-messages", plugins=[messages])
    assert json.loads(file.read_text()) == {"test_it.py::test_it": ["a rate of 1"]}
