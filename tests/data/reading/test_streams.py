"""Standard input and pipes, stored as files."""

from pathlib import Path

import pytest

from numtok import files
from numtok.data.reading.streams import Spool
from numtok.errors import DataError
from numtok.store.quota import Quota
from tests.messages import Says

ROWS = b'{"text": "1"}\n' * 1000


def spool(folder: Path, longest: int | None) -> Spool:
    return Spool(lambda: folder, Quota.parse("10MB"), longest)


def test_a_line_that_never_ends_is_refused_as_soon_as_it_is_too_long(
    tmp_path: Path, says: Says
) -> None:
    with says.raises(DataError, "/dev/zero:1: ", "65,536 bytes", "--max-line"):
        spool(tmp_path, 1 << 16).keep("/dev/zero", ".jsonl")
    assert list(tmp_path.iterdir()) == []


def test_the_line_that_is_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows").write_bytes(ROWS + b"x" * 100)
    for piece in (7, 1 << 20):
        monkeypatch.setattr(files, "PIECE", piece)
        with pytest.raises(DataError, match="rows:1001: "):
            spool(tmp_path, 99).keep(str(tmp_path / "rows"), ".jsonl")


def test_other_streams_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(ROWS + b"x" * 100)
    for ending, longest in ((".jsonl", 100), (".jsonl", None), (".parquet", 10)):
        kept = spool(tmp_path, longest).keep(str(tmp_path / "rows"), ending)
        assert kept.read_bytes() == ROWS + b"x" * 100
