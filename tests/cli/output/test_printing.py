"""Notes and tables for people."""

from pathlib import Path

import pytest

from numtok.cli.output.printing import Format, print_made
from numtok.store.store import Store
from tests.fakereports import Fake, make


def test_notes_hold_no_raw_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = make(Store(tmp_path), Fake())
    rows: list[tuple[str, object]] = [("units", "K\x1b[2J")]
    notes = ["by \x1b[31mnobody\r\n"]
    print_made(artifact, "a field", rows, made=True, format=Format.TABLE, quiet=False, notes=notes)
    shown = capsys.readouterr()
    assert shown.out == f"{artifact.ref}\n"
    assert "\x1b" not in shown.err and "\r" not in shown.err
    assert r"numtok: by \x1b[31mnobody\r\n" in shown.err
