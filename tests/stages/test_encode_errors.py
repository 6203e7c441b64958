"""User errors of ``numtok encode``: messages and exit codes."""

import base64
import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok import files
from numtok.data.reading import units
from numtok.encoding.byte_alphabet import ALPHABET
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts
from numtok.stages import encode as stage
from numtok.store.store import Store
from tests.cases import case
from tests.chain import standard_input, there
from tests.messages import Says
from tests.shell import Ran, Shell

GOOD = b'{"id": "good", "text": "row 1"}\n'
SKIP = ". Skip bad rows: --on-error skip"


def zst(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


def encode(numtok: Shell, *arguments: str) -> Ran:
    return numtok("encode", "--scheme", "p1000", *arguments)


def put(content: bytes, name: str = "a.jsonl") -> str:
    Path(name).write_bytes(content)
    return name


def rejected(place: Path = Path("artifacts")) -> list[dict[str, Any]]:
    """Return the records of the rows that the only artifact has left out."""
    (path,) = place.glob("encoded/*/*/rejected/rejected-*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def row(fields: str, text: str = "a") -> bytes:
    return f'{{"text": "{text}", {fields}}}'.encode()


def of_x(spans: str, text: str = "a 1") -> bytes:
    """Return a row with the target x."""
    return row(f'"targets": {{"x": {spans}}}', text)


def floors(floors: str) -> bytes:
    return row(f'"targets": {{"x": [[0, 1]]}}, "floors": {floors}', "1")


# --- lines -------------------------------------------------------------------------------------

#: Invalid lines, each with parts of its error message.
LINES: dict[str, tuple[bytes, *tuple[str, ...]]] = {
    "not JSON": (b"text = 5", "(byte 4)", "one JSON object"),
    "cut short": (b'{"text": "row', "on one line", "jq -c ."),
    "two on a line": (b'{"text": "a"} {"text": "b"}', "trailing", "(byte 15)"),
    "a comma after it": (b'{"text": "a"},', "trailing", "(byte 14)"),
    "an array": (b'["a"]', "an array", "jq -c '.[]'"),
    "a number": (b"5", "an object", "an integer"),
    "null bytes": (b"\0\0\0\0", "(byte 0)"),
    "no text": (b'{"id": 1}', "'text'", "--text-field"),
    "text a number": (b'{"text": 5}', "'text'", "a string", "an integer"),
    "text a list": (b'{"text": ["a"]}', "'text'", "an array"),
    "text null": (b'{"text": null}', "'text'", "null"),
    "text NaN": (b'{"text": NaN}', "NaN", "null"),
    "another field Infinity": (b'{"text": "NaN", "x": [-Infinity]}', "-Infinity", "null"),
    "invalid UTF-8": (b'{"text": "caf\xe9 1"}', "byte 13", "(0xe9)", "as UTF-8"),
    "invalid UTF-8 in another field": (b'{"text": "a", "x": {"y": "\xc3("}}', "byte 26", "(0xc3)"),
    "invalid UTF-8 in a key that is not read": (b'{"text": "a", "\xff": 1}', "byte 15", "(0xff)"),
    "a character cut short": (b'{"text": "a", "x": "\xf0\x9f\x98"}', "byte 20", "(0xf0)"),
    "an overlong character": (b'{"text": "a", "x": "\xc0\xaf"}', "byte 20", "(0xc0)"),
    "a byte order mark": (b'\xef\xbb\xbf{"text": "a"}', "byte order mark", "UTF-8 without one"),
    "half a surrogate pair": (rb'{"text": "a \ud83d b"}', "surrogate", r"\ufffd"),
    "half a surrogate pair in another field": (rb'{"text": "a", "x": "\udc00"}', "surrogate"),
    "a control character": (b'{"text": "a\tb"}', "(byte 11)"),
    "a key twice": (b'{"text": "a", "text": "b"}', "'text'", "twice"),
    "a key twice, once escaped": (rb'{"text": "a", "te\u0078t": "b"}', "'text'", "twice"),
    "a key twice in a field": (row('"targets": {"x": [[2, 3]], "y": [], "x": []}'), "'x'", "twice"),
    "a key twice in another field": (row('"x": [{"é": 1, "b": {}, "é": 2}]'), "'é'", "twice"),
    "a key twice beside a large number": (
        row('"n": ' + "7" * 5000 + r', "\u006e": 1'), "'n'", "twice",
    ),
    "nested too deeply": (row('"x": ' + "[" * 20_000 + "]" * 20_000), "too deeply", "Leave out"),
    "an id that is no id": (row('"id": 1.5'), "got a float", "'id'"),
    "an id of 5000 digits": (row('"id": ' + "9" * 5000), "out of range", "'id'"),
    "a label that is none": (row('"label": true'), "got a boolean", "'label'"),
    "a group that is none": (row('"group": {"x": [1]}'), "got an array", "'group[...]'"),
    "targets that are none": (of_x("[2, 3]"), "got an integer", "'targets[...][0]'"),
    "a target of one end": (of_x("[[2]]"), "length 2", "'targets[...][0]'"),
    "a target that is no number": (
        of_x("[[0, 3]]", "a 1 b"), "'x' [0, 3]", "'a 1'", "`numtok explain`",
    ),
    "a target that is a part of a number": (of_x("[[3, 5]]", "é -12"), "'x' [3, 5]", "'12'"),
    "a target with commas": (
        of_x("[[0, 8]]", "1,594.86"), "'1,594.86'", "--numbers thousands",
    ),
    "a target in percent": (of_x("[[0, 5]]", "93.5%"), "'93.5%'", "--numbers percent"),
    "a target that is two numbers": (of_x("[[0, 3]]", "1 2"), "[0, 3]", "'1 2'"),
    "a target backwards": (of_x("[[3, 2]]"), "[3, 2]", "''"),
    "a target of much text": (of_x("[[0, 99]]", "a" * 99), "[0, 99]", "a...'"),
    "a target outside": (of_x("[[2, 4]]", "é 1"), "[2, 4]", "length 3"),
    "a target before the text": (of_x("[[-1, 1]]", "1"), "[-1, 1]", "length 1"),
    "floors of no target": (floors('{"y": {"last": [1]}}'), "'y'", "not a target"),
    "a floor for more numbers than there are": (
        floors('{"x": {"last": [1, null]}}'), "'last' of target 'x'", "got 2, expected 1", "null",
    ),
    "a floor called as another": (floors('{"x": {"mean": [1]}}'), "'mean'", "another name"),
    "a floor that is no number": (
        floors('{"x": {"last": ["1"]}}'), "got a string", "'floors[...][...][0]'",
    ),
    "an answer within a number": (
        row('"answer_start": 7', "é is 12.5"), "answer_start 7", "'12.5'", "start of the number",
    ),
    "an answer outside": (row('"answer_start": 2', "é"), "answer_start 2", "length 1"),
    "an answer that is no place": (row('"answer_start": "0"'), "got a string", "'answer_start'"),
    "a split that cannot be a name": (row('"split": "Test"'), "'Test'", "lower-case"),
    "a split that leaves the folder": (row('"split": "../x"'), "'../x'", "lower-case"),
    "a split that is reserved": (
        row('"split": "rejected"'), "'rejected'", "neither clipped nor rejected",
    ),
    "a split that is a number": (row('"split": 1'), "got an integer", "'split'"),
}  # fmt: skip


def test_a_bad_line_ends_the_run_or_is_kept_aside(numtok: Shell, says: Says) -> None:
    reasons = []
    for name, (line, *parts) in LINES.items():
        with case(line=name):
            put(GOOD + b"\n" + line + b"\n" + GOOD)
            ran = encode(numtok, "a.jsonl")
            says.refused(ran, 3, "a.jsonl:3: ", *parts, SKIP)
            reasons.append(ran.err[len("numtok: a.jsonl:3: ") : -len(SKIP) - 1])
    assert not list(Path("artifacts").glob("encoded/*/[0-9a-f]*"))
    lines = [line for line, *_ in LINES.values()]
    put(b"\n".join([GOOD, *lines, GOOD]))
    ran = encode(numtok, "a.jsonl", "--on-error", "skip", "--json")
    assert (ran.code, ran.err) == (0, "")
    counts = json.loads(ran.out)["counts"]
    assert (counts["rows"], counts["rejected"]) == (2, len(LINES))
    for row, (kept, line, reason) in enumerate(zip(rejected(), lines, reasons, strict=True), 3):
        content = kept.pop("content", "").encode() or base64.b64decode(kept.pop("content_base64"))
        assert (kept, content) == ({"file": 0, "row": row, "reason": reason}, line)
    assert numtok("verify").code == 0


def test_a_row_with_a_byte_that_the_tokenizer_lacks_is_bad(numtok: Shell, says: Says) -> None:
    tokenizer = TEXT_TOKENIZERS.build("bytes").fit(Texts.of([])).huggingface()
    del tokenizer["model"]["vocab"][ALPHABET[0x1B]]
    Path("tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    put(GOOD + b'{"text": "x\\u001b 1"}\n' + GOOD)
    command = "a.jsonl", "--text-tokenizer", "tokenizer.json"
    says.refused(encode(numtok, *command), 3, "a.jsonl:2: ", "0x1B", SKIP)
    ran = encode(numtok, *command, "--on-error", "skip", "--json")
    counts = json.loads(ran.out)["counts"]
    assert (counts["rows"], counts["rejected"]) == (2, 1)
    assert [(bad["row"], "0x1B" in bad["reason"]) for bad in rejected()] == [(2, True)]


def test_a_bad_row_is_named_with_its_file_and_line(numtok: Shell, says: Says) -> None:
    pretty = json.dumps({"text": "a 1", "id": 5}, indent=1).encode() + b"\n"
    put(pretty * 2, "pretty.jsonl")
    put(GOOD + b'{"text": "b", "split": "test"}\n')
    put(GOOD, "good.jsonl")
    Path("data").mkdir()
    put(GOOD, "data/a.jsonl")
    put(GOOD + GOOD + b"{}\n", "data/b.jsonl")
    put(gzip.compress(GOOD + of_x("[[0, 1]]") + b"\n"), "a.jsonl.gz")
    put(gzip.compress(GOOD), "b.jsonl.gz")
    for words, place, *parts in (
        ("train=a.jsonl", "a.jsonl:2: ", "'test'", "'train'", "Remove one"),
        ("good.jsonl --text-field body", "good.jsonl:1: ", "'body'", "--text-field"),
        ("pretty.jsonl", "pretty.jsonl:1: ", "jq -c ."),
        ("data", "data/b.jsonl:3: ", "'text'"),
        # A worker reports the same error as the parent process.
        ("b.jsonl.gz a.jsonl.gz --workers 2", "a.jsonl.gz:2: ", "'x' [0, 1]",
         "`numtok explain`"),
    ):  # fmt: skip
        with case(words):
            says.refused(encode(numtok, *words.split()), 3, place, *parts, SKIP)


def test_skipped_rows_are_told_and_listed_by_file_and_row(numtok: Shell) -> None:
    put(b"x\n" + GOOD + b'{"text": "\xff"}\r\n', "a.jsonl")
    put(GOOD + b'{"text": "b", "split": "train"}\n{"text": 1}', "b.jsonl")
    ran = encode(numtok, "train=a.jsonl", "test=b.jsonl", "--on-error", "skip")
    assert ran.code == 0
    where = r"numtok: rejected rows are in (\S+)/rejected/rejected-\*\.jsonl\n$"
    told = there(re.search(where, ran.err))
    assert list(Path(told[1]).glob("rejected/rejected-*.jsonl"))
    assert " ".join(ran.err.split()).count("rejected rows 4") == 1
    listed = [(bad["file"], bad["row"], bad.get("content")) for bad in rejected()]
    assert listed == [
        (0, 1, "x"),
        (0, 3, None),
        (1, 2, '{"text": "b", "split": "train"}'),
        (1, 3, '{"text": 1}'),
    ]
    assert base64.b64decode(rejected()[1]["content_base64"]) == b'{"text": "\xff"}\r'


def test_a_line_over_the_limit_is_bad_wherever_it_ends(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    line = b'{"text": "' + b"5 " * 30 + b'"}\n'
    exact = b'{"id": "exactly", "text": "' + b"1" * 11 + b'"}\n'
    assert len(exact) == 41
    data = GOOD + line + exact + b" " * 50 + b"\n" + line[:-1]
    for name, block in product(("a.jsonl", "a.jsonl.gz"), (1, 7, 1 << 22)):
        with case(name=name, block=block):
            shutil.rmtree("artifacts", ignore_errors=True)
            monkeypatch.setattr(units, "BLOCK", block)
            put(gzip.compress(data) if name.endswith("gz") else data, name)
            ran = encode(numtok, name, "--max-line", "40")
            says.refused(ran, 3, f"{name}:2: ", "40 bytes", "raise --max-line", SKIP)
            reason = ran.err[len(f"numtok: {name}:2: ") : -len(SKIP) - 1]
            ran = encode(numtok, name, "--max-line", "40", "--on-error", "skip", "--json")
            assert json.loads(ran.out)["counts"]["rows"] == 2
            assert rejected() == [{"file": 0, "row": row, "reason": reason} for row in (2, 5)]


# --- whole files -------------------------------------------------------------------------------


ROWS = b"".join(b'{"text": "row %d"}\n' % n for n in range(100))
PACKED = gzip.compress(ROWS, mtime=0)
UNPACK = "ownload or compress it again"


def test_a_file_that_cannot_be_read_ends_the_run(numtok: Shell, says: Says) -> None:
    put(GOOD, "good.jsonl")
    assert encode(numtok, "good.jsonl").code == 0
    for name, content, *parts in (
        ("a.jsonl", b"", "a.jsonl is empty", "one row"),
        ("a.jsonl.gz", b"", "a.jsonl.gz is empty", "one row"),
        ("a.parquet", b"", "a.parquet is empty", "one row"),
        ("a.jsonl", b"\n \t\r\n\n", "no rows, only blank lines"),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0), "no rows, only blank lines"),
        ("a.jsonl.gz", PACKED[:-9], "a.jsonl.gz: ", "Truncated", UNPACK),
        ("a.jsonl.gz", PACKED[:5], "a.jsonl.gz: ", "Truncated", UNPACK),
        ("a.jsonl.gz", b"??" + PACKED, "a.jsonl.gz: ", "incorrect header", UNPACK),
        ("a.jsonl.gz", PACKED + b"more", "a.jsonl.gz: ", "incorrect header", UNPACK),
        ("a.jsonl.gz", PACKED[:-6] + b"??" + PACKED[-5:], "a.jsonl.gz: ", "data check", UNPACK),
        ("a.jsonl.zst", zst(ROWS)[:-3], "a.jsonl.zst: ", "Truncated", UNPACK),
        ("a.jsonl.zst", b"\0" + zst(ROWS), "a.jsonl.zst: ", "Unknown frame", UNPACK),
        ("a.jsonl", ROWS.decode().encode("utf-16"), "a.jsonl is UTF-16", "iconv"),
        ("a.ndjson.gz", gzip.compress(ROWS.decode().encode("utf-16-le"), mtime=0), "is UTF-16"),
    ):
        with case(name=name, content=content):
            ran = encode(numtok, put(content, name))
            says.refused(ran, 3, *parts)
            for how in (("--scheme", "p1000"), ("--reuse-encoding", "good-p1000")):
                again = numtok("encode", *how, name, "--on-error", "skip")
                assert again == ran, how


def parquet(name: str = "a.parquet", **columns: Any) -> str:
    pq.write_table(pa.table(columns), name)
    return name


def test_a_parquet_file_of_other_columns_ends_the_run(numtok: Shell, says: Says) -> None:
    no_text: dict[str, Any] = {"text": pa.array([], pa.string())}
    time = pa.array([0], pa.timestamp("ns"))
    for columns, *parts in (
        ({"body": ["a"], "n": [1]}, "no column 'text'", "body, n", "--text-field"),
        ({"text": [1, 2]}, "'text'", "int64", "string"),
        ({"text": [b"a"]}, "'text'", "binary", "string"),
        ({"text": ["a"], "id": [1.5]}, "'id'", "double", "string or integer"),
        ({"text": ["a"], "label": time}, "'label'", "timestamp[ns]", "string or integer"),
        ({"text": ["a"], "answer_start": [0.0]}, "'answer_start'", "double", "integer"),
        ({"text": ["a"], "split": [1]}, "'split'", "int64", "string"),
        ({"text": ["a"], "targets": [{"x": [[0.5, 1.0]]}]}, "'targets'", "double", "of integers"),
        ({"text": ["a"], "floors": [{"x": {"last": [b"b"]}}]}, "'floors'", "binary", "of numbers"),
        ({"text": ["a"], "group": [{"x": b"a"}]}, "'group'", "x: binary", "strings and numbers"),
        (no_text, "a.parquet has no rows"),
    ):
        with case(columns=columns):
            ran = encode(numtok, parquet(**columns), "--on-error", "skip")
            says.refused(ran, 3, "a.parquet", *parts)


def invalid_utf8(*values: bytes) -> "pa.Array[Any]":
    return pa.array(values, pa.binary()).view(pa.string())


#: Columns of three rows, the recorded content of the second, and parts of its error message.
BAD_ROWS: tuple[tuple[dict[str, Any], str | None, *tuple[str, ...]], ...] = (
    ({"text": ["a 1", None, "b"], "id": [7, 8, 9]}, '{"text":null,"id":8}', "'text'", "null"),
    (
        {"text": ["a 1", "b", "c"], "targets": [{"x": [[2, 3]]}, {"x": [[0, 1]]}, None]},
        '{"text":"b","targets":{"x":[[0,1]]}}', "'x' [0, 1]", "'b'",
    ),
    (
        {"text": ["1", "2", "3"], "targets": [None, {"x": [[0, 1]]}, None],
         "floors": [None, {"x": {"last": [float("inf")]}}, None]},
        '{"text":"2","targets":{"x":[[0,1]]},"floors":{"x":{"last":[null]}}}',
        "'last' of target 'x'", "not finite",
    ),
    (
        {"text": ["a", "b", "c"], "split": [None, "Test", None]},
        '{"text":"b","split":"Test"}', "'Test'", "lower-case",
    ),
    ({"text": invalid_utf8(b"a", b"\xff", "é".encode())}, None, "invalid UTF-8"),
    ({"text": ["a", "b", "c"], "id": invalid_utf8(b"a", b"\xff", b"c")}, "b", "invalid UTF-8"),
)  # fmt: skip


def test_a_bad_row_of_parquet_is_named_and_kept(numtok: Shell, says: Says) -> None:
    for columns, content, *parts in BAD_ROWS:
        with case(columns=columns):
            shutil.rmtree("artifacts", ignore_errors=True)
            parquet(**columns)
            failed_run = encode(numtok, "a.parquet")
            says.refused(failed_run, 3, "a.parquet, row 1: ", *parts, SKIP)
            ran = encode(numtok, "a.parquet", "--on-error", "skip", "--json")
            assert json.loads(ran.out)["counts"]["rows"] == 2
            (kept,) = rejected()
            raw = {"content": content} if content else {"content_base64": "/w=="}
            reason = kept.pop("reason")
            assert kept == {"file": 0, "row": 1} | raw
            assert failed_run.err == f"numtok: a.parquet, row 1: {reason}{SKIP}\n"


@pytest.mark.parametrize("damage", ["garbage", "cut", "flipped"])
def test_a_damaged_parquet_file_ends_the_run(numtok: Shell, damage: str) -> None:
    made = pa.table({"text": [f"row {n}" for n in range(1000)]})
    pq.write_table(made, "a.parquet", write_page_checksum=True)
    data = bytearray(Path("a.parquet").read_bytes())
    if damage == "garbage":
        data = bytearray(b"?" + ROWS)
    elif damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[100] ^= 1
    put(bytes(data), "a.parquet")
    ran = encode(numtok, "a.parquet", "--on-error", "skip")
    what = "cannot be read as Parquet" if damage == "flipped" else "not a readable Parquet file"
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert ran.err.startswith(f"numtok: a.parquet: {what}")
    assert ran.err.endswith(". Download or write it again\n")


# --- files that change -------------------------------------------------------------------------


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(GOOD)


def overwrite(path: Path) -> None:
    """Change bytes of a file, but not its size."""
    data = path.read_bytes()
    path.write_bytes(data[:-4] + bytes(255 - byte for byte in data[-4:]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def replace(path: Path) -> None:
    overwrite(path)
    path.rename("moved")
    Path("moved").rename(path)


CHANGED = "changed while it was read"


@pytest.mark.parametrize("when", ["planned", "fitted"])
def test_a_file_that_changes_meanwhile_is_noticed(numtok: Shell, says: Says, when: str) -> None:
    where, what = {"planned": (stage, "plan"), "fitted": (stage._Job, "fit")}[when]
    real = getattr(where, what)
    names = ("a.jsonl", "a.jsonl.gz", "a.parquet")
    for name, change in product(names, (append, overwrite, cut, replace)):

        def changing(
            *arguments: Any, name: str = name, change: Callable[[Path], None] = change
        ) -> Any:
            result = real(*arguments)
            change(Path(name))
            return result

        with case(name=name, change=change.__name__), pytest.MonkeyPatch.context() as patch:
            shutil.rmtree("artifacts", ignore_errors=True)
            if name == "a.parquet":
                parquet(name, text=[f"row {n}" for n in range(100)])
            else:
                put(PACKED if name.endswith("gz") else ROWS, name)
            os.utime(name, (0, 0))
            patch.setattr(where, what, changing)
            says.refused(encode(numtok, name), 3, f"{name} {CHANGED}")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_other_bytes_are_noticed_even_if_the_clock_stands_still(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, says: Says, name: str
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
    if "gz" in name:  # each contains its own CRC-32, so theirs are equal
        assert zlib.crc32(before) == zlib.crc32(after)
    says.refused(encode(numtok, name), 3, f"{name} {CHANGED}")


def test_a_file_that_grows_while_it_is_digested_is_noticed(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    put(ROWS)
    real = files.FileSystem.read

    def read(system: files.FileSystem, fd: int, size: int) -> bytes:
        data = real(fd, size)
        if data.startswith(ROWS[:20]):
            append(Path("a.jsonl"))
        return data

    monkeypatch.setattr(files.FileSystem, "read", read)
    says.refused(encode(numtok, "a.jsonl"), 3, f"a.jsonl {CHANGED}")


# --- inputs ------------------------------------------------------------------------------------


def test_an_input_that_is_none(numtok: Shell, says: Says) -> None:
    says.refused(encode(numtok), 2, "INPUT... is missing", "`numtok encode --help`")
    put(GOOD, "good.jsonl")
    put(b"1,2\n", "a.csv")
    put(b"<a/>", "a.xml")
    Path("folder").mkdir()
    put(b"", "folder/a.txt")
    put(GOOD, "folder/.a.jsonl")
    assert encode(numtok, "good.jsonl").code == 0
    for argument, code, *parts in (
        ("none.jsonl", 2, "none.jsonl: ", "not found", "path"),
        ("test=none.jsonl", 2, "none.jsonl: ", "not found", "path"),
        ("none", 2, "none: ", "no artifact 'none' in artifacts", "numtok ls"),
        ("no/folder", 2, "no/folder: ", "no manifest.json", "numtok ls"),
        ("good-p1000", 2, "good-p1000: ", "is encoded data", "expected unencoded data"),
        ("a.csv", 2, "a.csv is a table", "--target", ".jsonl"),
        ("a.xml", 2, "a.xml: ", ".jsonl or .ndjson", ".parquet"),
        ("folder", 2, "folder: ", "no file", ".jsonl or .ndjson", ".parquet"),
        ("Test=good.jsonl", 2, "'Test=good.jsonl'", "'Test' cannot", "lower-case"),
        ("clipped=good.jsonl", 2, "'clipped=good.jsonl'", "'clipped' cannot", "neither clipped"),
        ("=good.jsonl", 2, "'=good.jsonl'", "'' cannot", "split=PATH"),
        (
            "test=good.jsonl",
            3,
            "the split 'train' has no rows",
            "train data",
            "--reuse-encoding REF",
        ),
    ):
        with case(argument=argument):
            says.refused(encode(numtok, argument), code, *parts)


def test_an_input_that_is_none_where_there_is_no_store(numtok: Shell, says: Says) -> None:
    ran = encode(numtok, "data.txt")
    says.refused(ran, 4, "data.txt: ", "no store at artifacts", "--store", "NUMTOK_STORE")
    assert not Path("artifacts").exists()


def test_standard_input_that_is_no_data(numtok: Shell, says: Says) -> None:
    for arguments, content, code, *parts in (
        (["-"], b"", 3, "standard input is empty", "one row"),
        (["-", "test=-"], GOOD, 2, "standard input", "once"),
        (["-"], GOOD + b"[]\n", 3, "standard input:2: ", "an array", SKIP),
    ):
        put(content, "stdin")
        with case(arguments=arguments, content=content), standard_input(Path("stdin")):
            says.refused(encode(numtok, *arguments), code, *parts)
            assert not list(Path("artifacts").glob(".spool*"))


# --- settings ----------------------------------------------------------------------------------

_LIKE, _P10, _XVAL = ["--reuse-encoding", "good-p1000"], ["--scheme", "p10"], ["--scheme", "xval"]
_SHARE, _SEED, _LEAVE = "between 0 and 1", "at most 18 digits", "leave something to train"
SETTINGS: tuple[tuple[list[str], int, *tuple[str, ...]], ...] = (
    ([], 2, "either --scheme or --reuse-encoding", "numtok schemes"),
    (["--scheme", "p1000", "--reuse-encoding", "x"], 2, "either", "numtok schemes"),
    (["--scheme", "p100"], 2, "'p100'", "Did you mean 'p1000'?"),
    (["--scheme", "p1000,exponent=-3..3"], 2, "'exponent'", "Did you mean 'exponents'?"),
    (["--scheme", "p1000,exponents=3"], 2, "p1000: exponents must be", "-8..7", "'3'"),
    (["--scheme", "p1000:3"], 2, "'p1000:3'", "no value"),
    (["--scheme", "p1000,"], 2, "'p1000,'", "name[:value][,key=value...]"),
    ([*_XVAL, "--normalize", "scal:5"], 2, "'scal'", "Did you mean 'scale'?", "signed-log"),
    ([*_XVAL, "--normalize", "scale:0"], 2, "limit must be above 0"),
    ([*_XVAL, "--normalize", "scale:x"], 2, "limit must be a number", "'x'"),
    ([*_P10, "--text-tokenizer", "word"], 2, "'word'", "Did you mean 'words'?", "bytes"),
    ([*_P10, "--text-tokenizer", "bpe"], 2, "'bpe'", "bpe,size=VALUE"),
    ([*_P10, "--text-tokenizer", "bpe:9"], 2, "size must be from 256 to 1,000,000"),
    ([*_P10, "--text-tokenizer", "words:many"], 2, "size must be an integer", "'many'"),
    ([*_P10, "--text-tokenizer", "none.json"], 2, "none.json: ", "Check the path"),
    ([*_P10, "--text-tokenizer", "./good.jsonl"], 2, "good.jsonl", "no model", "bpe:N or bytes"),
    ([*_P10, "--numbers", "xvla"], 2, "'xvla'", "Did you mean 'xval'?"),
    ([*_P10, "--numbers", "xval,percent=yes"], 2, "'xval' has no flags", "Use 'default'"),
    (["--reuse-encoding", "none"], 2, "'none' in artifacts", "numtok ls"),
    ([*_LIKE, "--normalize", "none"], 2, "--normalize and --reuse-encoding", "Choose one"),
    ([*_LIKE, "--text-tokenizer", "bytes"], 2, "--text-tokenizer and --reuse-encoding", "Choose"),
    ([*_LIKE, "--numbers", "xval"], 2, "--numbers and --reuse-encoding", "Choose one"),
    ([*_P10, "--split", "test"], 2, "--split 'test': 'test'", _SHARE, "test=0.1,seed=3"),
    ([*_P10, "--split", "test=x"], 2, "--split 'test=x': 'test=x'", _SHARE),
    ([*_P10, "--split", "test=1"], 2, "--split 'test=1': 'test=1'", _SHARE),
    ([*_P10, "--split", "test=nan"], 2, "--split 'test=nan': 'test=nan'", _SHARE),
    ([*_P10, "--split", "a/b=0.1"], 2, "--split 'a/b=0.1': 'a/b=0.1'", "lower-case"),
    ([*_P10, "--split", "clipped=0.1"], 2, "'clipped=0.1'", "neither clipped nor rejected"),
    ([*_P10, "--split", "test=0.1,test=0.2"], 2, "'test=0.1,test=0.2': 'test=0.2'", _SHARE),
    ([*_P10, "--split", "test=0.1,seed=x"], 2, "'test=0.1,seed=x': 'seed=x'", _SEED),
    ([*_P10, "--split", f"test=0.1,seed={'9' * 70}"], 2, f"'seed={'9' * 70}'", _SEED),
    ([*_P10, "--split", "seed=3"], 2, "--split 'seed=3'", _LEAVE),
    ([*_P10, "--split", "train=0.9"], 2, "--split 'train=0.9'", _LEAVE),
    ([*_P10, "--split", "test=0.5,ood=0.5"], 2, "--split 'test=0.5,ood=0.5'", _LEAVE),
    ([*_P10, "--on-error", "ignore"], 2, "--on-error must be fail or skip", "'ignore'"),
    ([*_P10, "--on-overflow", "no"], 2, "--on-overflow must be count or error", "'no'"),
    ([*_P10, "--workers", "0"], 2, "--workers must be at least 1 (got "),
    ([*_P10, "--max-line", "0"], 2, "--max-line must be from 1 to 1,073,741,824"),
    ([*_P10, "--max-line", "9999999999"], 2, "--max-line must be from 1 to 1,073,741,824"),
    ([*_P10, "--name", "My Data"], 2, "--name must be lower-case", "'My Data'"),
    ([*_P10, "--text-field", "label"], 2, "--text-field 'label'", "another meaning"),
    # Repeated ids do not change the line in the message.
    ([*_P10, "--on-overflow", "error"], 3, "good.jsonl:2: number 1 (1e400)", "--on-overflow count"),
    (
        [*_XVAL, "--normalize", "affine", "--numbers", "xval"],
        3,
        "-1.7976931348623157e+308 to 5.0", "--normalize signed-log",
    ),
)  # fmt: skip


def test_a_setting_that_is_not_possible(numtok: Shell, says: Says) -> None:
    put(GOOD, "first.jsonl")
    assert numtok("encode", "--scheme", "p1000", "first.jsonl", "--name", "good-p1000").code == 0
    for options, code, *parts in SETTINGS:
        with case(options=options):
            put(b'{"id": "x", "text": "5"}\n{"id": "x", "text": "5 1e400"}\n', "good.jsonl")
            if "affine" in options:
                put(b'{"text": "-1.7976931348623157e308 5"}\n', "good.jsonl")
            if "./good.jsonl" in options:
                put(b"{}", "good.jsonl")
            says.refused(numtok("encode", *options, "good.jsonl"), code, *parts)


def test_threads_from_the_environment_and_numbers_to_normalise_are_checked(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    put(b'{"text": "no number, 1e400"}\n')
    ran = numtok("encode", "--scheme", "xval", "a.jsonl")
    says.refused(
        ran, 3, "--normalize scale", "finite numbers", "train split has none", "--normalize none"
    )
    for threads in ("x", "0", "-1", "1.5"):
        monkeypatch.setenv("NUMTOK_THREADS", threads)
        told = "NUMTOK_THREADS ", "at least 1", f"got {threads!r}"
        says.refused(encode(numtok, "a.jsonl"), 2, *told)


def test_rows_that_are_all_rejected_are_no_data(numtok: Shell, says: Says) -> None:
    put(GOOD, "good.jsonl")
    assert encode(numtok, "good.jsonl").code == 0
    # The second input is rejected only because of its targets.
    for rows, told in ((b"1\n2\n\n3\n", "3 rejected"), (of_x("[[0, 1]]", "a"), "1 rejected")):
        put(rows)
        for how in (["--reuse-encoding", "good-p1000"], ["--scheme", "p1000"]):
            ran = numtok("encode", *how, "a.jsonl", "--on-error", "skip")
            says.refused(ran, 3, told, "--on-error fail")


def test_a_store_that_cannot_be_written(numtok: Shell, says: Says) -> None:
    put(b"", "file")
    put(GOOD)
    for store, named in (("file", "file/encoded"), ("file/below", "file/below")):
        ran = numtok("--store", store, "encode", "--scheme", "p1000", "a.jsonl")
        says.refused(ran, 4, f"cannot write to {named}: Not a directory", "Check the path")


@pytest.mark.skipif(os.getuid() == 0, reason="permissions mean nothing to this user")
def test_a_store_without_permission(numtok: Shell) -> None:
    Path("closed").mkdir(mode=0o500)
    ran = numtok("--store", "closed/store", "encode", "--scheme", "p1000", put(GOOD))
    assert (ran.code, ran.out) == (4, "")
    assert "Permission denied. Check its permissions, or use another store" in ran.err


@pytest.mark.parametrize("scheme", ["xval", "fone", "chronos"])
def test_skipped_rows_do_not_scale_the_others(numtok: Shell, scheme: str) -> None:
    good = [f'{{"text": "a {n} b {2 * n}", "targets": {{"x": [[2, 3]]}}}}\n' for n in range(1, 9)]
    bad = '{"text": "a 1000000 b", "targets": {"x": [[0, 1]]}}\n'
    Path("good.jsonl").write_text("".join(good))
    Path("some.jsonl").write_text("".join([*good[:3], bad, *good[3:]]))
    codecs = []
    for name, more in (("good", ()), ("some", ("--on-error", "skip"))):
        ran = numtok("-q", "encode", "--scheme", scheme, f"{name}.jsonl", *more)
        assert ran.code == 0, ran.err
        made = Store(Path("artifacts")).resolve(ran.out.strip())
        codecs.append((made.path / SCHEME_FILE).read_bytes())
    assert codecs[0] == codecs[1]
