"""Files whose name or encoding is not what the reader expects."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.reading.batches import ReadingOptions, RowBatch
from numtok.data.reading.first_bytes import MARK
from numtok.data.reading.json_lines import row_decoder
from numtok.data.reading.sources import FORMATS, InputFile
from numtok.data.reading.units import read, unread
from numtok.errors import DataError, UsageError
from numtok.row import Row
from tests.cases import case

TEXTS = [f"reading {n} of 7.5" for n in range(4)]
ROWS = "".join(f'{{"text": "{text}"}}\n' for text in TEXTS).encode()


def batches(path: Path, text_field: str = "text") -> list[RowBatch]:
    units = unread([InputFile(path, None, path.name)])
    how = ReadingOptions(text_field, checked=False)
    return [batch for unit in units for batch in read(unit, how)]


def texts(path: Path, text_field: str = "text") -> list[str]:
    found = batches(path, text_field)
    assert not any(batch.rejected for batch in found)
    return [text for batch in found for text in batch.rows.texts.to_pylist()]


def zst(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


def test_the_first_bytes_decide_how_a_file_is_read(tmp_path: Path) -> None:
    for name, content in (
        ("a.ndjson", ROWS),
        ("a.ndjson.gz", gzip.compress(ROWS)),
        ("a.jsonl.zstd", zst(ROWS)),
        ("plain.jsonl.gz", ROWS),
        ("plain.jsonl.zst", b"\n" + ROWS),
        ("packed.jsonl", gzip.compress(ROWS)),
        ("zst.jsonl.gz", zst(ROWS)),
        ("mark.jsonl", MARK + ROWS),
        ("mark.jsonl.gz", gzip.compress(MARK + ROWS)),
        ("mark-plain.jsonl.gz", MARK + ROWS),
        ("crlf.jsonl", MARK + ROWS.replace(b"\n", b"\r\n")),
    ):
        with case(name=name):
            path = tmp_path / name
            path.write_bytes(content)
            assert any(name.endswith(ending) for ending in FORMATS)
            assert texts(path) == TEXTS
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "parquet.jsonl")
    assert texts(tmp_path / "parquet.jsonl") == TEXTS


def test_ids_without_an_id_are_offsets_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(MARK + ROWS)
    (batch,) = batches(tmp_path / "a.jsonl")
    second = len(MARK) + len(ROWS.splitlines(keepends=True)[0])
    assert batch.rows.ids.to_pylist()[:2] == ["0:3", f"0:{second}"]


def test_utf_16_is_named(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        with case(encoding=encoding):
            (tmp_path / "a.jsonl").write_bytes(ROWS.decode().encode(encoding))
            with pytest.raises(DataError, match=r"a\.jsonl is UTF-16.*iconv"):
                batches(tmp_path / "a.jsonl")


def test_a_nul_in_a_line_is_not_utf_16(tmp_path: Path) -> None:
    for start in (b"\0\n", b"\n\0\n", b"\0\r\n", b"\r\n\0\n", b" \0\n"):
        with case(start=start):
            (tmp_path / "a.jsonl").write_bytes(start + ROWS)
            (batch,) = batches(tmp_path / "a.jsonl")
            assert len(batch.rejected) == 1
            assert batch.rows.texts.to_pylist() == TEXTS
    (tmp_path / "a.jsonl").write_bytes(b"\0")
    (batch,) = batches(tmp_path / "a.jsonl")
    assert len(batch.rejected) == 1


def test_a_text_within_another_field_is_read(tmp_path: Path) -> None:
    nested = [{"doc": {"body": text, "n": n}, "id": n} for n, text in enumerate(TEXTS)]
    pq.write_table(pa.Table.from_pylist(nested), tmp_path / "a.parquet")
    lines = "".join(
        f'{{"id": {n}, "doc": {{"n": 1, "body": "{t}"}}}}\n' for n, t in enumerate(TEXTS)
    )
    (tmp_path / "a.jsonl").write_text(lines)
    for name in ("a.parquet", "a.jsonl"):
        with case(name=name):
            assert texts(tmp_path / name, "doc.body") == TEXTS
            assert batches(tmp_path / name, "doc.body")[0].rows.ids.to_pylist() == list("0123")


def test_a_field_of_exactly_that_name_comes_first(tmp_path: Path) -> None:
    row = {"doc.body": "whole name 1", "doc": {"body": "path 2"}}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    line = b'{"doc": {"body": "path 2"}, "doc.body": "whole name 1"}\n'
    (tmp_path / "a.jsonl").write_bytes(line)
    for name in ("a.parquet", "a.jsonl"):
        with case(name=name):
            assert texts(tmp_path / name, "doc.body") == ["whole name 1"]


def test_a_text_that_is_not_there_names_the_field(tmp_path: Path) -> None:
    for line, reason in (
        ("{}", "the field 'doc' is missing"),
        ('{"doc": {"text": "1"}}', "'doc.body' is missing"),
        ('{"doc": {"body": 5}}', "'doc.body' must be a string (got an integer)"),
        ('{"doc": "text 1"}', "'doc' must be an object (got a string)"),
    ):
        with case(line=line):
            (tmp_path / "a.jsonl").write_text(line)
            (batch,) = batches(tmp_path / "a.jsonl", "doc.body")
            (rejected,) = batch.rejected
            assert reason in rejected.reason
    columns: dict[str, Any]
    for columns in ({"doc": ["text"]}, {"doc": [{"text": "1"}]}, {"body": ["1"]}):
        with case(columns=columns):
            pq.write_table(pa.table(columns), tmp_path / "a.parquet")
            with pytest.raises(DataError, match=r"no column 'doc\.body'"):
                batches(tmp_path / "a.parquet", "doc.body")


def test_fields_with_a_meaning_cannot_hold_the_text() -> None:
    for name in ("", "id", "group"):
        with case(name=name), pytest.raises(UsageError, match="--text-field"):
            row_decoder(Row, name)


def test_views_of_strings_in_parquet_are_strings(tmp_path: Path) -> None:
    kept = ["a 1", None, "é 3"]
    ids = pa.array(["x", "y", "z"], pa.string_view())
    pq.write_table(
        pa.table({"text": pa.array(kept, pa.string_view()), "id": ids}), tmp_path / "a.parquet"
    )
    (batch,) = batches(tmp_path / "a.parquet")
    assert batch.rows.texts.to_pylist() == ["a 1", "é 3"]
    assert batch.rows.ids.to_pylist() == ["x", "z"]
    assert "null" in batch.rejected[0].reason
