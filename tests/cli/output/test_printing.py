"""Notes and tables for people."""

import pytest

from numtok.cli.output.printing import Format, print_made


def test_notes_hold_no_raw_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[str, object]] = [("units", "K\x1b[2J")]
    print_made("a field", "ref", rows, Format.TABLE, False, ["by \x1b[31mnobody\r\n"])
    shown = capsys.readouterr()
    assert shown.out == "ref\n"
    assert "\x1b" not in shown.err and "\r" not in shown.err
    assert r"numtok: by \x1b[31mnobody\r\n" in shown.err
