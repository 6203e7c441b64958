"""``verify --deep``: shards with correct checksums but wrong rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.shards import ShardWriter
from tests.cases import each
from tests.messages import Says
from tests.shell import Shell

TEXTS = [
    "no number", "a 12.5 of -3e7 [NUM]", "0.1435, -0, 1e-3 and 123456789012345678901", "ü 7",
    "9.995 is 10", r"[\NUM] 3.50",
]  # fmt: skip
WRONG = 4  # the row that is changed


def with_item(column: str, item: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    """Return a function that changes one row's value in a column."""

    def changed(table: pa.Table) -> pa.Table:
        if column not in table.schema.names:  # the table of numbers out of range
            return table
        at = table.schema.get_field_index(column)
        values = table.column(at).to_pylist()
        values[WRONG] = item(values[WRONG])
        return table.set_column(at, table.field(at), pa.array(values, table.field(at).type))

    return changed


def encode(numtok: Shell, scheme: str, *options: str) -> None:
    lines = [f'{{"text": {text!r}}}\n'.replace("'", '"') for text in TEXTS]
    Path("a.jsonl").write_text("".join(lines), "utf-8")
    ran = numtok("encode", "--scheme", scheme, "a.jsonl", "--name", "a", *options)
    assert ran.code == 0, ran.err


@pytest.mark.integration
@each("scheme", [name for name in SCHEMES.names() if not SCHEMES.required(name)])
def test_what_encode_writes_is_right(numtok: Shell, scheme: str) -> None:
    encode(numtok, scheme)
    ran = numtok("verify", "--deep")
    assert (ran.code, ran.out.count("\n")) == (0, 1), ran.out


@each("options", ["--normalize affine", "--text-tokenizer bpe:300", "--numbers xval"])
def test_other_ways_to_encode_are_right(numtok: Shell, options: str) -> None:
    encode(numtok, "p1000", *options.split())
    assert numtok("verify", "--deep").code == 0


@each("scheme", ["p1000", "xval", "fone", "bits", "numgpt", "ud", "digits"])
def test_numbers_beyond_float64_and_other_notations_are_no_damage(
    numtok: Shell, scheme: str
) -> None:
    texts = ["a 2.5k b", "c 5 d", "1e400 -1e400 1e-400 1.7976931348623159e308"]
    Path("a.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    assert numtok("encode", "--scheme", scheme, "--numbers", "suffixes", "a.jsonl").code == 0
    ran = numtok("verify", "--deep")
    assert ran.code == 0, ran.out + ran.err


@each(
    ("scheme", "change"),
    [
        ("p1000", with_item("numbers", lambda numbers: [numbers[0], 11.0])),
        ("xval", with_item("channel", lambda channel: [channel[0], channel[1] / 2])),
        ("digits", with_item("tokens", lambda tokens: [*tokens[:-1], tokens[-1] + 1])),
        ("p1000", with_item("tokens", lambda tokens: [tokens[0], tokens[1] + 1, *tokens[2:]])),
        ("p1000", with_item("text", lambda text: text.replace(" is ", " was "))),
    ],
)
def test_a_row_that_does_not_match_its_tokens_is_named(
    numtok: Shell,
    monkeypatch: pytest.MonkeyPatch,
    says: Says,
    scheme: str,
    change: Callable[[pa.Table], pa.Table],
) -> None:
    """The writer itself is faulty, so the wrong rows have correct checksums."""
    write = ShardWriter.write
    monkeypatch.setattr(ShardWriter, "write", lambda self, table: write(self, change(table)))
    encode(numtok, scheme)
    assert numtok("verify").code == 0
    ran = numtok("verify", "--deep")
    assert ran.code == 1
    says(ran.out.splitlines()[0], "train-00000.parquet", f"row {WRONG}")
