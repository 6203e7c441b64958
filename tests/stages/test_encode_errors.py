"""What a user can do wrong with ``encode``: the exact line that is printed, and the exit code."""

import base64
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok import files
from numtok.data.reading import units
from numtok.stages import encode as stage
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Ran, Shell
from tests.known import known

numtok = test_cli_store.numtok

GOOD = b'{"id": "good", "text": "row 1"}\n'
SKIP = " (--on-error skip leaves such rows out and keeps them aside)"


def failed(ran: Ran, code: int, message: str) -> None:
    assert ran.err == f"numtok: {message}\n"
    assert (ran.code, ran.out) == (code, "")


def encode(numtok: Shell, *arguments: str) -> Ran:
    return numtok("encode", "--scheme", "p1000", *arguments)


def put(content: bytes, name: str = "a.jsonl") -> str:
    Path(name).write_bytes(content)
    return name


def rejected(place: Path = Path("artifacts")) -> list[dict[str, Any]]:
    """What the one artifact keeps of the rows that it has left out."""
    (path,) = place.glob("encoded/*/*/rejected/rejected-*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- lines -------------------------------------------------------------------------------------

#: A line, and what is wrong with it.
LINES: dict[str, tuple[bytes, str]] = {
    "not JSON": (
        b"text = 5",
        "JSON is malformed: invalid character (byte 4); each line is one JSON object",
    ),
    "cut short": (
        b'{"text": "row',
        "the JSON object goes on after the line; each line is one (jq -c . makes it so)",
    ),
    "two on a line": (
        b'{"text": "a"} {"text": "b"}',
        "JSON is malformed: trailing characters (byte 15); each line is one JSON object",
    ),
    "a comma after it": (
        b'{"text": "a"},',
        "JSON is malformed: trailing characters (byte 14); each line is one JSON object",
    ),
    "an array": (
        b'["a"]',
        "Expected `object`, got `array`; each line is one JSON object "
        "(jq -c '.[]' makes it so from an array)",
    ),
    "a number": (
        b"5",
        "Expected `object`, got `int`; each line is one JSON object "
        "(jq -c '.[]' makes it so from an array)",
    ),
    "null bytes": (
        b"\0\0\0\0",
        "JSON is malformed: invalid character (byte 0); each line is one JSON object",
    ),
    "no text": (
        b'{"id": 1}',
        "Object missing required field `text`; name the field that holds the text by --text-field",
    ),
    "text a number": (
        b'{"text": 5}',
        "Expected `str`, got `int` - at `$.text`; it must be a string",
    ),
    "text a list": (
        b'{"text": ["a"]}',
        "Expected `str`, got `array` - at `$.text`; it must be a string",
    ),
    "text null": (
        b'{"text": null}',
        "Expected `str`, got `null` - at `$.text`; it must be a string",
    ),
    "text NaN": (b'{"text": NaN}', "NaN is not JSON; write null, or a string"),
    "another field Infinity": (
        b'{"text": "NaN", "x": [-Infinity]}',
        "-Infinity is not JSON; write null, or a string",
    ),
    "invalid UTF-8": (
        b'{"text": "caf\xe9 1"}',
        "invalid UTF-8 at byte 13 of the line (0xe9); write the file as UTF-8",
    ),
    "invalid UTF-8 in a field that is not read": (
        b'{"text": "a", "x": {"y": "\xc3("}}',
        "invalid UTF-8 at byte 26 of the line (0xc3); write the file as UTF-8",
    ),
    "invalid UTF-8 in a key that is not read": (
        b'{"text": "a", "\xff": 1}',
        "invalid UTF-8 at byte 15 of the line (0xff); write the file as UTF-8",
    ),
    "a character cut short": (
        b'{"text": "a", "x": "\xf0\x9f\x98"}',
        "invalid UTF-8 at byte 20 of the line (0xf0); write the file as UTF-8",
    ),
    "an overlong character": (
        b'{"text": "a", "x": "\xc0\xaf"}',
        "invalid UTF-8 at byte 20 of the line (0xc0); write the file as UTF-8",
    ),
    "a byte order mark": (
        b'\xef\xbb\xbf{"text": "a"}',
        "it begins with a byte order mark; write the file as UTF-8 without one",
    ),
    "UTF-16": (
        '{"text": "a"}'.encode("utf-16-le"),
        "JSON is malformed: object keys must be strings (byte 1); each line is one JSON object",
    ),
    "half a surrogate pair": (
        rb'{"text": "a \ud83d b"}',
        r"a string has half a surrogate pair (\ud800 to \udfff), which is no character; "
        r"write the other half, or \ufffd",
    ),
    "half a surrogate pair in a field that is not read": (
        rb'{"text": "a", "x": "\udc00"}',
        r"a string has half a surrogate pair (\ud800 to \udfff), which is no character; "
        r"write the other half, or \ufffd",
    ),
    "a control character": (
        b'{"text": "a\tb"}',
        "JSON is malformed: invalid character (byte 11); each line is one JSON object",
    ),
    "a key twice": (
        b'{"text": "a", "text": "b"}',
        "the key 'text' is there twice; each key may be there once",
    ),
    "a key twice, once escaped": (
        rb'{"text": "a", "te\u0078t": "b"}',
        "the key 'text' is there twice; each key may be there once",
    ),
    "a key twice in a field": (
        b'{"text": "a 1", "targets": {"x": [[2, 3]], "y": [], "x": []}}',
        "the key 'x' is there twice; each key may be there once",
    ),
    "a key twice in a field that is not read": (
        '{"text": "a", "x": [{"é": 1, "b": {}, "é": 2}]}'.encode(),
        "the key 'é' is there twice; each key may be there once",
    ),
    "a key twice beside a large number": (
        b'{"text": "a", "n": ' + b"7" * 5000 + rb', "\u006e": 1}',
        "the key 'n' is there twice; each key may be there once",
    ),
    "nested too deeply": (
        b'{"text": "a", "x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        "it is nested too deeply to be read; leave out the field with the nesting",
    ),
    "an id that is no id": (
        b'{"text": "a", "id": 1.5}',
        "Expected `int | str | null`, got `float` - at `$.id`",
    ),
    "an id of 5000 digits": (
        b'{"text": "a", "id": ' + b"9" * 5000 + b"}",
        "Integer value out of range - at `$.id`",
    ),
    "a label that is none": (
        b'{"text": "a", "label": true}',
        "Expected `int | str | null`, got `bool` - at `$.label`",
    ),
    "a group that is none": (
        b'{"text": "a", "group": {"x": [1]}}',
        "Expected `bool | int | float | str | null`, got `array` - at `$.group[...]`",
    ),
    "targets that are none": (
        b'{"text": "a 1", "targets": {"x": [2, 3]}}',
        "Expected `array`, got `int` - at `$.targets[...][0]`",
    ),
    "a target of one end": (
        b'{"text": "a 1", "targets": {"x": [[2]]}}',
        "Expected `array` of length 2 - at `$.targets[...][0]`",
    ),
    "a target that is no number": (
        b'{"text": "a 1 b", "targets": {"x": [[0, 3]]}}',
        "target 'x' at [0, 3] is 'a 1', not exactly one number; "
        "give the span of a number as `numtok explain` reads it, up to behind its last character",
    ),
    "a target that is a part of a number": (
        '{"text": "é -12", "targets": {"x": [[3, 5]]}}'.encode(),
        "target 'x' at [3, 5] is '12', not exactly one number; "
        "give the span of a number as `numtok explain` reads it, up to behind its last character",
    ),
    "a target with commas": (
        b'{"text": "1,594.86", "targets": {"x": [[0, 8]]}}',
        "target 'x' at [0, 8] is '1,594.86', not exactly one number; "
        "--numerals default,thousands=yes reads it as one",
    ),
    "a target in percent": (
        b'{"text": "93.5%", "targets": {"x": [[0, 5]]}}',
        "target 'x' at [0, 5] is '93.5%', not exactly one number; "
        "--numerals default,percent=yes reads it as one",
    ),
    "a target that is two numbers": (
        b'{"text": "1 2", "targets": {"x": [[0, 3]]}}',
        "target 'x' at [0, 3] is '1 2', not exactly one number; "
        "give the span of a number as `numtok explain` reads it, up to behind its last character",
    ),
    "a target backwards": (
        b'{"text": "a 1", "targets": {"x": [[3, 2]]}}',
        "target 'x' at [3, 2] is '', not exactly one number; "
        "give the span of a number as `numtok explain` reads it, up to behind its last character",
    ),
    "a target of much text": (
        b'{"text": "' + b"a" * 99 + b'", "targets": {"x": [[0, 99]]}}',
        f"target 'x' at [0, 99] is '{'a' * 37}...', not exactly one number; "
        "give the span of a number as `numtok explain` reads it, up to behind its last character",
    ),
    "a target outside": (
        '{"text": "é 1", "targets": {"x": [[2, 4]]}}'.encode(),
        "target 'x' at [2, 4] is outside the text, which has 3 characters (code points)",
    ),
    "a target before the text": (
        b'{"text": "1", "targets": {"x": [[-1, 1]]}}',
        "target 'x' at [-1, 1] is outside the text, which has 1 characters (code points)",
    ),
    "floors of no target": (
        b'{"text": "1", "targets": {"x": [[0, 1]]}, "floors": {"y": {"last": [1]}}}',
        "floors are of 'y', which is no target of the row",
    ),
    "a floor for more numbers than there are": (
        b'{"text": "1", "targets": {"x": [[0, 1]]}, "floors": {"x": {"last": [1, null]}}}',
        "floor 'last' of target 'x' has 2 numbers for 1 spans; "
        "write one for each, null where there is none",
    ),
    "a floor called as another": (
        b'{"text": "1", "targets": {"x": [[0, 1]]}, "floors": {"x": {"mean": [1]}}}',
        "a floor cannot be called 'mean', as one of those that every report has; "
        "give it another name",
    ),
    "a floor that is no number": (
        b'{"text": "1", "targets": {"x": [[0, 1]]}, "floors": {"x": {"last": ["1"]}}}',
        "Expected `float | null`, got `str` - at `$.floors[...][...][0]`",
    ),
    "an answer within a number": (
        '{"text": "é is 12.5", "answer_start": 7}'.encode(),
        "answer_start 7 lies within the number '12.5'; give where the number begins",
    ),
    "an answer outside": (
        '{"text": "é", "answer_start": 2}'.encode(),
        "answer_start 2 is outside the text, which has 1 characters (code points)",
    ),
    "an answer that is no place": (
        b'{"text": "a", "answer_start": "0"}',
        "Expected `int | null`, got `str` - at `$.answer_start`",
    ),
    "a split that cannot be a name": (
        b'{"text": "a", "split": "Test"}',
        "split 'Test' cannot be a name; allowed are lower-case letters, digits, - and _, "
        "and neither clipped nor rejected",
    ),
    "a split that leaves the folder": (
        b'{"text": "a", "split": "../x"}',
        "split '../x' cannot be a name; allowed are lower-case letters, digits, - and _, "
        "and neither clipped nor rejected",
    ),
    "a split that is reserved": (
        b'{"text": "a", "split": "rejected"}',
        "split 'rejected' cannot be a name; allowed are lower-case letters, digits, - and _, "
        "and neither clipped nor rejected",
    ),
    "a split that is a number": (
        b'{"text": "a", "split": 1}',
        "Expected `str | null`, got `int` - at `$.split`",
    ),
}


@pytest.mark.parametrize(("line", "reason"), LINES.values(), ids=LINES.keys())
def test_a_bad_line_ends_the_run_and_says_where_it_is(
    numtok: Shell, line: bytes, reason: str
) -> None:
    path = put(GOOD + b"\n" + line + b"\n" + GOOD)
    failed(encode(numtok, path), 3, f"a.jsonl, line 3: {reason}{SKIP}")
    assert not list(Path("artifacts").glob("encoded/*/[0-9a-f]*"))
    assert numtok("verify").code == 0


@pytest.mark.parametrize(("line", "reason"), LINES.values(), ids=LINES.keys())
def test_a_bad_line_is_kept_aside_when_it_is_skipped(
    numtok: Shell, line: bytes, reason: str
) -> None:
    path = put(GOOD + b"\n" + line + b"\n" + GOOD)
    ran = encode(numtok, path, "--on-error", "skip", "--json")
    assert (ran.code, ran.err) == (0, "")
    counts = json.loads(ran.out)["counts"]
    assert (counts["rows"], counts["rejected"]) == (2, 1)
    (kept,) = rejected()
    content = kept.pop("content", "").encode() or base64.b64decode(kept.pop("content_base64"))
    assert (kept, content) == ({"file": 0, "row": 3, "reason": reason}, line)
    assert numtok("verify").code == 0


def test_one_object_over_several_lines_is_no_row(numtok: Shell) -> None:
    pretty = json.dumps({"text": "a 1", "id": 5}, indent=1).encode() + b"\n"
    reason = "the JSON object goes on after the line; each line is one (jq -c . makes it so)"
    failed(encode(numtok, put(pretty * 2)), 3, f"a.jsonl, line 1: {reason}{SKIP}")


def test_skipped_rows_are_told_and_listed_by_file_and_row(numtok: Shell) -> None:
    put(b"x\n" + GOOD + b'{"text": "\xff"}\r\n', "a.jsonl")
    put(GOOD + b'{"text": "b", "split": "train"}\n{"text": 1}', "b.jsonl")
    ran = encode(numtok, "train=a.jsonl", "test=b.jsonl", "--on-error", "skip")
    assert ran.code == 0
    told = re.search(
        r"numtok: every rejected row is in (\S+)/rejected/rejected-\*\.jsonl\n$", ran.err
    )
    assert told is not None and list(Path(told[1]).glob("rejected/rejected-*.jsonl"))
    assert " ".join(ran.err.split()).count("rejected rows 4") == 1
    listed = [(bad["file"], bad["row"], bad.get("content")) for bad in rejected()]
    assert listed == [
        (0, 1, "x"),
        (0, 3, None),
        (1, 2, '{"text": "b", "split": "train"}'),
        (1, 3, '{"text": 1}'),
    ]
    assert base64.b64decode(rejected()[1]["content_base64"]) == b'{"text": "\xff"}\r'


def test_a_row_and_its_file_must_not_disagree_on_the_split(numtok: Shell) -> None:
    put(GOOD + b'{"text": "b", "split": "test"}\n')
    reason = "its split is 'test', but the file is given as 'train'; leave out one of them"
    failed(encode(numtok, "train=a.jsonl"), 3, f"a.jsonl, line 2: {reason}{SKIP}")


def test_the_text_field_that_was_named_must_be_there(numtok: Shell) -> None:
    reason = (
        "Object missing required field `body`; name the field that holds the text by --text-field"
    )
    ran = encode(numtok, put(GOOD), "--text-field", "body")
    failed(ran, 3, f"a.jsonl, line 1: {reason}{SKIP}")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("block", [1, 7, 1 << 22])
def test_a_line_over_the_limit_is_bad_wherever_it_ends(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, name: str, block: int
) -> None:
    monkeypatch.setattr(units, "BLOCK", block)
    line = b'{"text": "' + b"5 " * 30 + b'"}\n'
    exact = b'{"id": "exactly", "text": "' + b"1" * 11 + b'"}\n'
    assert len(exact) == 41
    data = GOOD + line + exact + b" " * 50 + b"\n" + line[:-1]
    put(gzip.compress(data) if name.endswith("gz") else data, name)
    reason = "the line has more than 40 bytes; split the row, or raise --max-line"
    failed(encode(numtok, name, "--max-line", "40"), 3, f"{name}, line 2: {reason}{SKIP}")
    ran = encode(numtok, name, "--max-line", "40", "--on-error", "skip", "--json")
    assert json.loads(ran.out)["counts"]["rows"] == 2
    assert rejected() == [{"file": 0, "row": row, "reason": reason} for row in (2, 5)]


# --- whole files -------------------------------------------------------------------------------


def zst(data: bytes) -> bytes:
    packed = pa.compress(data, "zstd", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


ROWS = b"".join(b'{"text": "row %d"}\n' % n for n in range(100))
UNPACK = "the file is damaged or cut short, so fetch or compress it again"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "a.jsonl is empty; give a file with at least one row"),
        ("a.jsonl.gz", b"", "a.jsonl.gz is empty; give a file with at least one row"),
        ("a.parquet", b"", "a.parquet is empty; give a file with at least one row"),
        (
            "a.jsonl",
            b"\n \t\r\n\n",
            "the input has no rows, only blank lines; give a file with at least one",
        ),
        (
            "a.jsonl.gz",
            gzip.compress(b"", mtime=0),
            "the input has no rows, only blank lines; give a file with at least one",
        ),
        (
            "a.jsonl.gz",
            gzip.compress(ROWS, mtime=0)[:-9],
            f"a.jsonl.gz: cannot be unpacked (Truncated compressed stream); {UNPACK}",
        ),
        (
            "a.jsonl.gz",
            gzip.compress(ROWS, mtime=0)[:5],
            f"a.jsonl.gz: cannot be unpacked (Truncated compressed stream); {UNPACK}",
        ),
        (
            "a.jsonl.gz",
            ROWS,
            "a.jsonl.gz: cannot be unpacked (zlib inflate failed: incorrect header check); "
            + UNPACK,
        ),
        (
            "a.jsonl.gz",
            gzip.compress(ROWS, mtime=0) + b"more",
            "a.jsonl.gz: cannot be unpacked (zlib inflate failed: incorrect header check); "
            + UNPACK,
        ),
        (
            "a.jsonl.gz",
            gzip.compress(ROWS, mtime=0)[:-6] + b"\0" + gzip.compress(ROWS, mtime=0)[-5:],
            "a.jsonl.gz: cannot be unpacked (zlib inflate failed: incorrect data check); " + UNPACK,
        ),
        (
            "a.jsonl.zst",
            zst(ROWS)[:-3],
            f"a.jsonl.zst: cannot be unpacked (Truncated compressed stream); {UNPACK}",
        ),
        (
            "a.jsonl.zst",
            ROWS,
            "a.jsonl.zst: cannot be unpacked (ZSTD decompress failed: Unknown frame descriptor); "
            + UNPACK,
        ),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_file_that_cannot_be_read_ends_the_run(
    numtok: Shell, name: str, content: bytes, message: str, on_error: str
) -> None:
    failed(encode(numtok, put(content, name), "--on-error", on_error), 3, message)
    put(GOOD, "good.jsonl")
    assert encode(numtok, "good.jsonl").code == 0
    failed(numtok("encode", "--like", "good-p1000", name, "--on-error", on_error), 3, message)


def parquet(name: str = "a.parquet", **columns: Any) -> str:
    pq.write_table(pa.table(columns), name)
    return name


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"body": ["a"], "n": [1]},
            "a.parquet has no column 'text'; its columns are body, n; "
            "name the one with the text by --text-field",
        ),
        (
            {"text": [1, 2]},
            "a.parquet: the column 'text' is of type int64; it must be string",
        ),
        (
            {"text": [b"a"]},
            "a.parquet: the column 'text' is of type binary; it must be string",
        ),
        (
            {"text": ["a"], "id": [1.5]},
            "a.parquet: the column 'id' is of type double; it must be string or integer",
        ),
        (
            {"text": ["a"], "label": pa.array([0], pa.timestamp("ns"))},
            "a.parquet: the column 'label' is of type timestamp[ns]; it must be string or integer",
        ),
        (
            {"text": ["a"], "answer_start": [0.0]},
            "a.parquet: the column 'answer_start' is of type double; it must be integer",
        ),
        (
            {"text": ["a"], "split": [1]},
            "a.parquet: the column 'split' is of type int64; it must be string",
        ),
        (
            {"text": ["a"], "targets": [{"x": [[0.5, 1.0]]}]},
            "a.parquet: the column 'targets' is of type struct<x: list<element: list<element: "
            "double>>>; it must be a map or struct of lists of pairs of integers",
        ),
        (
            {"text": ["a"], "floors": [{"x": {"last": [b"b"]}}]},
            "a.parquet: the column 'floors' is of type struct<x: struct<last: list<element: "
            "binary>>>; it must be a map or struct of maps or structs of lists of numbers",
        ),
        (
            {"text": ["a"], "group": [{"x": b"a"}]},
            "a.parquet: the column 'group' is of type struct<x: binary>; "
            "it must be a map or struct of strings and numbers",
        ),
        (
            {"text": pa.array([], pa.string())},
            "a.parquet has no rows; give a file with at least one",
        ),
    ],
)
def test_a_parquet_file_of_other_columns_ends_the_run(
    numtok: Shell, columns: dict[str, Any], message: str
) -> None:
    failed(encode(numtok, parquet(**columns), "--on-error", "skip"), 3, message)


def invalid_utf8(*values: bytes) -> "pa.Array[Any]":
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    ("columns", "reason", "content"),
    [
        (
            {"text": ["a 1", None, "b"], "id": [7, 8, 9]},
            "'text' is null; it must be a string",
            '{"text":null,"id":8}',
        ),
        (
            {"text": ["a 1", "b", "c"], "targets": [{"x": [[2, 3]]}, {"x": [[0, 1]]}, None]},
            "target 'x' at [0, 1] is 'b', not exactly one number; "
            "give the span of a number as `numtok explain` reads it, up to behind its last "
            "character",
            '{"text":"b","targets":{"x":[[0,1]]}}',
        ),
        (
            {
                "text": ["1", "2", "3"],
                "targets": [None, {"x": [[0, 1]]}, None],
                "floors": [None, {"x": {"last": [float("inf")]}}, None],
            },
            "floor 'last' of target 'x' has a number that is not finite",
            '{"text":"2","targets":{"x":[[0,1]]},"floors":{"x":{"last":[null]}}}',
        ),
        (
            {"text": ["a", "b", "c"], "split": [None, "Test", None]},
            "split 'Test' cannot be a name; allowed are lower-case letters, digits, - and _, "
            "and neither clipped nor rejected",
            '{"text":"b","split":"Test"}',
        ),
        (
            {"text": invalid_utf8(b"a", b"\xff", "é".encode())},
            "a string is invalid UTF-8; write it as UTF-8",
            None,
        ),
        (
            {"text": ["a", "b", "c"], "id": invalid_utf8(b"a", b"\xff", b"c")},
            "a string is invalid UTF-8; write it as UTF-8",
            "b",
        ),
    ],
)
def test_a_bad_row_of_parquet_is_named_and_kept(
    numtok: Shell, columns: dict[str, Any], reason: str, content: str | None
) -> None:
    parquet(**columns)
    failed(encode(numtok, "a.parquet"), 3, f"a.parquet, row 1: {reason}{SKIP}")
    ran = encode(numtok, "a.parquet", "--on-error", "skip", "--json")
    assert json.loads(ran.out)["counts"]["rows"] == 2
    (kept,) = rejected()
    if content is None:
        assert base64.b64decode(kept.pop("content_base64")) == b"\xff"
    else:
        assert kept.pop("content") == content
    assert kept == {"file": 0, "row": 1, "reason": reason}


@pytest.mark.parametrize("damage", ["garbage", "cut", "flipped"])
def test_a_damaged_parquet_file_ends_the_run(numtok: Shell, damage: str) -> None:
    made = pa.table({"text": [f"row {n}" for n in range(1000)]})
    pq.write_table(made, "a.parquet", write_page_checksum=True)
    data = bytearray(Path("a.parquet").read_bytes())
    if damage == "garbage":
        data = bytearray(ROWS)
    elif damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[100] ^= 1
    put(bytes(data), "a.parquet")
    ran = encode(numtok, "a.parquet", "--on-error", "skip")
    assert (ran.code, ran.out) == (3, "")
    what = "cannot be read as Parquet" if damage == "flipped" else "not a Parquet file"
    assert ran.err.startswith(f"numtok: a.parquet: {what}")
    assert ran.err.endswith("; fetch or write it again\n")
    assert ran.err.count("\n") == 1


# --- files that change -------------------------------------------------------------------------


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(GOOD)


def overwrite(path: Path) -> None:
    """Other bytes, no more and no fewer."""
    data = path.read_bytes()
    path.write_bytes(data[:-4] + bytes(255 - byte for byte in data[-4:]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def replace(path: Path) -> None:
    overwrite(path)
    path.rename("moved")
    Path("moved").rename(path)


CHANGED = "changed while it was read; run the command again when nothing writes to it"


@pytest.mark.parametrize("change", [append, overwrite, cut, replace])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
@pytest.mark.parametrize("when", ["planned", "fitted"])
def test_a_file_that_changes_meanwhile_is_noticed(
    numtok: Shell,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    name: str,
    when: str,
) -> None:
    content = {"a.jsonl": ROWS, "a.jsonl.gz": gzip.compress(ROWS)}
    if name in content:
        put(content[name], name)
    else:
        parquet(name, text=[f"row {n}" for n in range(100)])
    os.utime(name, (0, 0))
    where, what = {"planned": (stage, "plan"), "fitted": (stage._Job, "fit")}[when]
    real = getattr(where, what)

    def changing(*arguments: Any) -> Any:
        result = real(*arguments)
        change(Path(name))
        return result

    monkeypatch.setattr(where, what, changing)
    failed(encode(numtok, name), 3, f"{name} {CHANGED}")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_other_bytes_are_noticed_even_if_the_clock_stands_still(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    other = ROWS.replace(b"row 5", b"row 6")
    before, after = (
        gzip.compress(data, 0, mtime=0) if "gz" in name else data for data in (ROWS, other)
    )
    put(before, name)
    os.utime(name, (5, 5))
    real = units.plan

    def plan(*arguments: Any) -> Any:
        result = real(*arguments)
        put(after, name)
        os.utime(name, (5, 5))
        return result

    monkeypatch.setattr(stage, "plan", plan)
    assert len(before) == len(after)
    if "gz" in name:  # CRC-32 would not tell them apart: each contains its own
        assert zlib.crc32(before) == zlib.crc32(after)
    failed(encode(numtok, name), 3, f"{name} {CHANGED}")


def test_a_file_that_grows_while_it_is_digested_is_noticed(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(ROWS)
    real = files.FileSystem.read

    def read(system: files.FileSystem, fd: int, size: int) -> bytes:
        data = real(fd, size)
        if data.startswith(ROWS[:20]):
            append(Path("a.jsonl"))
        return data

    monkeypatch.setattr(files.FileSystem, "read", read)
    failed(encode(numtok, "a.jsonl"), 3, f"a.jsonl {CHANGED}")


# --- inputs ------------------------------------------------------------------------------------

KNOWN = ".jsonl, .jsonl.gz, .jsonl.zst, .parquet"
SPLIT = (
    "write split=PATH, the split in lower-case letters, digits, - and _, "
    "and neither clipped nor rejected"
)


@pytest.mark.parametrize(
    ("argument", "code", "message"),
    [
        ("none.jsonl", 2, "none.jsonl: there is no such file; check the path"),
        ("test=none.jsonl", 2, "none.jsonl: there is no such file; check the path"),
        (
            "none",
            2,
            "none: there is no such file or folder, and no artifact 'none' in artifacts; "
            "`numtok ls` lists them all",
        ),
        (
            "no/folder",
            2,
            "no/folder: there is no such file or folder, and 'no/folder' is not an artifact's "
            "folder (it has no manifest.json); `numtok ls` lists the artifacts of the store",
        ),
        (
            "good-p1000",
            2,
            "good-p1000: there is no such file or folder, and 'good-p1000' is of kind encoded; "
            "here it must be data",
        ),
        (
            "a.csv",
            2,
            "a.csv is a table: `numtok table` reads CSV, to learn one column from others; for "
            'text, write each row as a line {"text": "..."} of a .jsonl file',
        ),
        (
            "a.xml",
            2,
            f"a.xml: cannot tell what kind of file this is; allowed are {KNOWN}, "
            "a folder of them, a pipe, - and the REF of a data artifact",
        ),
        ("folder", 2, f"folder: no file in this folder ends in {KNOWN}"),
        (
            "Test=good.jsonl",
            2,
            f"'Test=good.jsonl': 'Test' cannot be the name of a split; {SPLIT}",
        ),
        (
            "clipped=good.jsonl",
            2,
            f"'clipped=good.jsonl': 'clipped' cannot be the name of a split; {SPLIT}",
        ),
        ("=good.jsonl", 2, f"'=good.jsonl': '' cannot be the name of a split; {SPLIT}"),
        (
            "test=good.jsonl",
            3,
            "no row is in the split 'train', so there is nothing to fit the encoding on; "
            "give train data as well, or --like REF to use an earlier encoding",
        ),
    ],
)
def test_an_input_that_is_none(numtok: Shell, argument: str, code: int, message: str) -> None:
    put(GOOD, "good.jsonl")
    put(b"1,2\n", "a.csv")
    put(b"<a/>", "a.xml")
    Path("folder").mkdir()
    put(b"", "folder/a.txt")
    put(GOOD, "folder/.a.jsonl")
    assert encode(numtok, "good.jsonl").code == 0
    failed(encode(numtok, argument), code, message)


def test_an_input_that_is_none_where_there_is_no_store(numtok: Shell) -> None:
    failed(
        encode(numtok, "data.txt"),
        4,
        "data.txt: there is no such file or folder, and there is no store at artifacts; a command "
        "that makes an artifact creates it, and --store or NUMTOK_STORE names another",
    )
    assert not Path("artifacts").exists()


@contextmanager
def standard_input(content: bytes) -> Iterator[None]:
    Path("stdin").write_bytes(content)
    saved, given = os.dup(0), os.open("stdin", os.O_RDONLY)
    os.dup2(given, 0)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(given)


@pytest.mark.parametrize(
    ("arguments", "content", "code", "message"),
    [
        (["-"], b"", 3, "standard input is empty; give a file with at least one row"),
        (["-", "test=-"], GOOD, 2, "standard input can be given once: it can be read only once"),
        (
            ["-"],
            GOOD + b"[]\n",
            3,
            "standard input, line 2: Expected `object`, got `array`; each line is one JSON object "
            "(jq -c '.[]' makes it so from an array)" + SKIP,
        ),
    ],
)
def test_standard_input_that_is_no_data(
    numtok: Shell, arguments: list[str], content: bytes, code: int, message: str
) -> None:
    with standard_input(content):
        failed(encode(numtok, *arguments), code, message)
    assert not list(Path("artifacts").glob(".spool*"))


def test_nothing_to_read_is_a_usage_error(numtok: Shell) -> None:
    ran = encode(numtok)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "numtok: missing argument 'INPUT...'; `numtok encode --help` says what is possible\n"
    )


def test_a_folder_of_good_and_bad_files_names_the_bad_one(numtok: Shell) -> None:
    Path("data").mkdir()
    put(GOOD, "data/a.jsonl")
    put(GOOD + GOOD + b"{}\n", "data/b.jsonl")
    reason = LINES["no text"][1]
    failed(encode(numtok, "data"), 3, f"data/b.jsonl, line 3: {reason}{SKIP}")


# --- settings ----------------------------------------------------------------------------------

SHARES = (
    "is not a new split's name and a share between 0 and 1; write for example test=0.1,seed=3 "
    "(names: lower-case letters, digits, - and _, and neither clipped nor rejected)"
)
SEED = "is not the one seed, an integer of at most 18 digits; write for example test=0.1,seed=3"
LEAVE = "give shares of the other splits that leave something to train, for example test=0.1"
RANGE = "it is from 1 to 1,073,741,824"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            [],
            2,
            "encode needs --scheme SPEC or --like REF, one of the two; "
            "`numtok schemes` lists the schemes",
        ),
        (
            ["--scheme", "p1000", "--like", "x"],
            2,
            "encode needs --scheme SPEC or --like REF, one of the two; "
            "`numtok schemes` lists the schemes",
        ),
        (
            ["--scheme", "p100"],
            2,
            f"unknown scheme 'p100'; did you mean 'p1000'? {known('scheme')}",
        ),
        (
            ["--scheme", "p1000,exponent=-3..3"],
            2,
            "unknown setting of 'p1000' 'exponent'; did you mean 'exponents'? known: exponents",
        ),
        (
            ["--scheme", "p1000,exponents=3"],
            2,
            "p1000: exponents='3' is not a range like -8..7",
        ),
        (["--scheme", "p1000:3"], 2, "scheme 'p1000' takes no value after ':', got 'p1000:3'"),
        (
            ["--scheme", "p1000,"],
            2,
            "scheme 'p1000,': '' is not key=value; a spec is written name[:value][,key=value...]",
        ),
        (
            ["--scheme", "xval", "--normalize", "scal:5"],
            2,
            f"unknown normaliser 'scal'; did you mean 'scale'? {known('normalizer')}",
        ),
        (
            ["--scheme", "xval", "--normalize", "scale:0"],
            2,
            "scale: limit=0.0 is not possible; it is above 0 and finite",
        ),
        (
            ["--scheme", "xval", "--normalize", "scale:x"],
            2,
            "scale: limit='x' is not a number",
        ),
        (
            ["--scheme", "p10", "--text-tokenizer", "word"],
            2,
            f"unknown text tokenizer 'word'; did you mean 'words'? {known('text-tokenizer')}",
        ),
        (
            ["--scheme", "p10", "--text-tokenizer", "bpe"],
            2,
            "text tokenizer 'bpe' needs a value for 'size'; write bpe,size=VALUE",
        ),
        (
            ["--scheme", "p10", "--text-tokenizer", "bpe:9"],
            2,
            "bpe: size=9 is not possible; it is from 256 to 1,000,000",
        ),
        (
            ["--scheme", "p10", "--text-tokenizer", "words:many"],
            2,
            "words: size='many' is not an integer",
        ),
        (
            ["--scheme", "p10", "--text-tokenizer", "none.json"],
            2,
            "text tokenizer none.json: there is no such file; check the path",
        ),
        (
            ["--scheme", "p10", "--text-tokenizer", "./good.jsonl"],
            2,
            "text tokenizer good.jsonl: it is no tokenizer.json (no model in it), so it would not "
            "give every byte of a text back; give a byte-level BPE tokenizer.json, or use words, "
            "bpe:N or bytes",
        ),
        (
            ["--scheme", "p10", "--numerals", "xvla"],
            2,
            "unknown numeral policy 'xvla'; known: default, xval; "
            "give for example --numerals default,thousands=yes",
        ),
        (
            ["--scheme", "p10", "--numerals", "xval,percent=yes"],
            2,
            "the numeral policy 'xval' has no options; use 'default' for them",
        ),
        (
            ["--like", "none"],
            2,
            "no artifact 'none' in artifacts; `numtok ls` lists them all",
        ),
        (
            ["--like", "good-p1000", "--normalize", "none"],
            2,
            "--normalize cannot be changed with --like, which uses the encoding of the earlier "
            "artifact; leave it out, or give --scheme",
        ),
        (
            ["--like", "good-p1000", "--text-tokenizer", "bytes"],
            2,
            "--text-tokenizer cannot be changed with --like, which uses the encoding of the "
            "earlier artifact; leave it out, or give --scheme",
        ),
        (
            ["--like", "good-p1000", "--numerals", "xval"],
            2,
            "--numerals cannot be changed with --like, which uses the encoding of the earlier "
            "artifact; leave it out, or give --scheme",
        ),
        (["--scheme", "p10", "--split", "test"], 2, f"--split 'test': 'test' {SHARES}"),
        (["--scheme", "p10", "--split", "test=x"], 2, f"--split 'test=x': 'test=x' {SHARES}"),
        (["--scheme", "p10", "--split", "test=1"], 2, f"--split 'test=1': 'test=1' {SHARES}"),
        (["--scheme", "p10", "--split", "test=nan"], 2, f"--split 'test=nan': 'test=nan' {SHARES}"),
        (["--scheme", "p10", "--split", "a/b=0.1"], 2, f"--split 'a/b=0.1': 'a/b=0.1' {SHARES}"),
        (
            ["--scheme", "p10", "--split", "clipped=0.1"],
            2,
            f"--split 'clipped=0.1': 'clipped=0.1' {SHARES}",
        ),
        (
            ["--scheme", "p10", "--split", "test=0.1,test=0.2"],
            2,
            f"--split 'test=0.1,test=0.2': 'test=0.2' {SHARES}",
        ),
        (
            ["--scheme", "p10", "--split", "test=0.1,seed=x"],
            2,
            f"--split 'test=0.1,seed=x': 'seed=x' {SEED}",
        ),
        (
            ["--scheme", "p10", "--split", f"test=0.1,seed={'9' * 70}"],
            2,
            f"--split 'test=0.1,seed={'9' * 70}': 'seed={'9' * 70}' {SEED}",
        ),
        (["--scheme", "p10", "--split", "seed=3"], 2, f"--split 'seed=3': {LEAVE}"),
        (["--scheme", "p10", "--split", "train=0.9"], 2, f"--split 'train=0.9': {LEAVE}"),
        (
            ["--scheme", "p10", "--split", "test=0.5,ood=0.5"],
            2,
            f"--split 'test=0.5,ood=0.5': {LEAVE}",
        ),
        (
            ["--scheme", "p10", "--on-error", "ignore"],
            2,
            "--on-error 'ignore' is not possible; allowed are fail and skip",
        ),
        (
            ["--scheme", "p10", "--on-clip", "no"],
            2,
            "--on-clip 'no' is not possible; allowed are count and error",
        ),
        (
            ["--scheme", "p10", "--workers", "0"],
            2,
            "--workers 0 is not possible; it is 1 or more",
        ),
        (["--scheme", "p10", "--max-line", "0"], 2, f"--max-line 0 is not possible; {RANGE}"),
        (
            ["--scheme", "p10", "--max-line", "9999999999"],
            2,
            f"--max-line 9999999999 is not possible; {RANGE}",
        ),
        (
            ["--scheme", "p10", "--name", "My Data"],
            2,
            "--name 'My Data' cannot be used; allowed are lower-case letters, digits and ._- after "
            "a first letter or digit",
        ),
        (
            ["--scheme", "p10", "--text-field", "label"],
            2,
            "--text-field 'label' is not possible: the field has a meaning of its own (id, "
            "targets, floors, label, answer_start, group, cluster, split), or no name; name the "
            "field that holds the text",
        ),
        (
            ["--scheme", "p10", "--on-clip", "error"],
            3,
            "good.jsonl, line 2: number 1, 1e400, is a positive overflow of the scheme; widen its "
            "exponents, give --normalize, or --on-clip count",
        ),
        (
            ["--scheme", "xval", "--normalize", "affine", "--numerals", "xval"],
            3,
            "--normalize affine: numbers from -1.7976931348623157e+308 to 5.0 leave the range of "
            "float64 when normalised; give --normalize signed-log or none",
        ),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_setting_that_is_not_possible(
    numtok: Shell, options: list[str], code: int, message: str
) -> None:
    # Ids may repeat, and the line that is named is still the right one.
    put(b'{"id": "x", "text": "-1.7976931348623157e308"}\n', "good.jsonl")
    put(b'{"id": "x", "text": "5"}\n{"id": "x", "text": "5 1e400"}\n', "good.jsonl")
    if "affine" in options:
        put(b'{"text": "-1.7976931348623157e308 5"}\n', "good.jsonl")
    if "./good.jsonl" in options:
        put(b"{}", "good.jsonl")
    put(GOOD, "first.jsonl")
    assert numtok("encode", "--scheme", "p1000", "first.jsonl", "--name", "good-p1000").code == 0
    failed(numtok("encode", *options, "good.jsonl"), code, message)


def test_a_normaliser_needs_a_number(numtok: Shell) -> None:
    put(b'{"text": "no number, 1e400"}\n')
    failed(
        numtok("encode", "--scheme", "xval", "a.jsonl"),
        3,
        "--normalize scale: the train split has no finite number to fit it on; "
        "give --normalize none, or data with numbers",
    )


@pytest.mark.parametrize("threads", ["x", "0", "-1", "1.5"])
def test_threads_from_the_environment_are_checked(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", threads)
    failed(
        encode(numtok, put(GOOD)),
        2,
        f"NUMTOK_THREADS={threads!r} is not possible; it is 1 or more",
    )


@pytest.mark.parametrize("like", [False, True])
def test_rows_that_are_all_rejected_are_no_data(numtok: Shell, like: bool) -> None:
    put(GOOD, "good.jsonl")
    assert encode(numtok, "good.jsonl").code == 0
    put(b"1\n2\n\n3\n")
    how = ["--like", "good-p1000"] if like else ["--scheme", "p1000"]
    failed(
        numtok("encode", *how, "a.jsonl", "--on-error", "skip"),
        3,
        "none of the 3 rows can be used; run with --on-error fail to see what is wrong with the "
        "first",
    )


def test_rows_that_are_rejected_for_their_targets_alone_are_no_data_either(numtok: Shell) -> None:
    put(b'{"text": "a", "targets": {"x": [[0, 1]]}}\n')
    failed(
        encode(numtok, "a.jsonl", "--on-error", "skip"),
        3,
        "none of the 1 rows can be used; run with --on-error fail to see what is wrong with the "
        "first",
    )


@pytest.mark.parametrize(
    ("store", "named"), [("file", "file/encoded"), ("file/below", "file/below")]
)
def test_a_store_that_cannot_be_written(numtok: Shell, store: str, named: str) -> None:
    put(b"", "file")
    failed(
        numtok("--store", store, "encode", "--scheme", "p1000", put(GOOD)),
        4,
        f"cannot write to {named}: Not a directory; check the path",
    )


@pytest.mark.skipif(os.getuid() == 0, reason="permissions mean nothing to this user")
def test_a_store_without_permission(numtok: Shell) -> None:
    Path("closed").mkdir(mode=0o500)
    ran = numtok("--store", "closed/store", "encode", "--scheme", "p1000", put(GOOD))
    assert (ran.code, ran.out) == (4, "")
    assert "Permission denied; check its permissions; a store elsewhere is named" in ran.err


def test_a_worker_fails_with_the_same_line_as_the_parent(numtok: Shell) -> None:
    bad = gzip.compress(GOOD + b'{"text": "a 1", "targets": {"x": [[0, 1]]}}\n')
    put(bad, "a.jsonl.gz")
    put(gzip.compress(GOOD), "b.jsonl.gz")
    reason = (
        "target 'x' at [0, 1] is 'a', not exactly one number; "
        "give the span of a number as `numtok explain` reads it, up to behind its last character"
    )
    ran = encode(numtok, "b.jsonl.gz", "a.jsonl.gz", "--workers", "2")
    failed(ran, 3, f"a.jsonl.gz, line 2: {reason}{SKIP}")
