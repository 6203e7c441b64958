"""Numbers in other notations, encoded and decoded.

Every scheme sees their values, texts survive byte for byte, and zones contain no numbers.
"""

import json
from pathlib import Path

import polars as pl

from numtok.library.codec import TextCodec
from tests.cases import each
from tests.shell import Shell

TEXTS = [
    "Net (1,200.50), up 3 % on 2.5M in Na147 and – 40x60",
    "1'234.5 and 12 345 and 1½ of 4×10^5, 5- or ５",
    "nothing",
    "٣.5 then –7 and 1/3",
]
EVERYTHING = (
    "thousands,percent,suffixes,fractions,units,dimensions,unicode,"
    "groups=apostrophe+space+underscore+indian,signs=dash+paren+trailing"
)
VALUES = [-1200.5, 0.03, 2.5e6, 147, 40, 60, 1234.5, 12345, 1.5, 4e5, -5, 5, 3.5, -7, 1 / 3]


def codec(scheme: str) -> TextCodec:
    return TextCodec.fit(TEXTS, scheme=scheme, numerals=EVERYTHING, text_tokenizer="bytes")


@each("scheme", ["digits", "numerologic", "numvalue", "bpe", "native", "xval", "p1000", "fone"])
def test_every_scheme_sees_the_values(scheme: str) -> None:
    encoded = codec(scheme).encode(TEXTS)
    assert encoded.numbers.tolist() == VALUES
    assert not encoded.outcomes.any()


@each("scheme", ["digits", "numerologic", "numvalue"])
def test_texts_come_back_byte_for_byte(scheme: str) -> None:
    own = codec(scheme)
    assert own.decode(own.encode(TEXTS)) == TEXTS


def test_a_codec_keeps_its_policy_and_zones(tmp_path: Path) -> None:
    own = TextCodec.fit(
        TEXTS, scheme="digits", numerals="eu,units", not_numbers=["dates", "run [0-9]+"]
    )
    own.save(tmp_path / "codec")
    loaded = TextCodec.load(tmp_path / "codec")
    assert loaded.inner.policy == own.inner.policy
    assert loaded.digest == own.digest
    found = loaded.find("run 5 on 2024-01-02: 7,5 mg")
    assert [(one.literal, one.value, one.flags) for one in found.numbers] == [
        ("7,5", 7.5, ("decimal=comma",))
    ]
    assert [word.advice for word in found.unread][:1] == ["--not-numbers run [0-9]+"]


def _rows(numtok: Shell, rows: list[dict[str, object]], *options: str) -> pl.DataFrame:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = numtok("encode", "--scheme", "p1000", *options, "rows.jsonl")
    assert done.code == 0, done.err
    (path,) = Path("artifacts").rglob("train-*.parquet")
    return pl.read_parquet(path)


def test_shards_keep_the_numbers_as_in_the_text(numtok: Shell) -> None:
    shard = _rows(numtok, [{"text": text} for text in TEXTS], "--numbers", EVERYTHING)
    rows = zip(shard["text"].to_list(), shard["number_text"].to_list(), strict=True)
    restored = []
    for text, numbers in rows:
        pieces = text.split("[NUM]")
        restored.append("".join(map("".join, zip(pieces, [*numbers, ""], strict=True))))
    assert restored == TEXTS
    assert shard["numbers"].explode().drop_nulls().to_list() == VALUES


def test_a_policy_without_other_notations_stores_nothing_more(numtok: Shell) -> None:
    shard = _rows(numtok, [{"text": "1,234 and 5"}], "--numbers", "thousands")
    assert "number_text" not in shard.columns


def test_rows_and_options_name_zones_without_numbers(numtok: Shell) -> None:
    rows: list[dict[str, object]] = [
        {"text": "é 12 and 7", "not_numbers": [[2, 4]]},
        {"text": "2024-01-02: 8", "not_numbers": []},
        {"text": "run 3, 9", "not_numbers": None},
        {"text": "4 5 6", "not_numbers": [[0, 1], [4, 5]]},
    ]
    shard = _rows(numtok, rows, "--not-numbers", "dates", "--not-numbers", "run [0-9]+")
    assert shard["numbers"].to_list() == [[7.0], [8.0], [9.0], [5.0]]
    assert shard["text"][0] == "é 12 and [NUM]"


def test_parquet_rows_name_zones_too(numtok: Shell) -> None:
    rows = {"text": ["12 and 7", "5"], "not_numbers": [[[0, 2]], None]}
    pl.DataFrame(rows).write_parquet("rows.parquet")
    assert numtok("encode", "--scheme", "p1000", "rows.parquet").code == 0
    (path,) = Path("artifacts").rglob("train-*.parquet")
    assert pl.read_parquet(path)["numbers"].to_list() == [[7.0], [5.0]]


@each(
    ("row", "parts"),
    [
        ({"text": "7", "not_numbers": [[0, 9]]}, ("not_numbers [0, 9]", "length 1")),
        ({"text": "7", "not_numbers": [[1, 0]]}, ("not_numbers [1, 0]",)),
        ({"text": "7", "not_numbers": [[0]]}, ("not_numbers",)),
        (
            {"text": "7", "targets": {"y": [[0, 1]]}, "not_numbers": [[0, 1]]},
            ("target 'y' [0, 1]", "exactly one number"),
        ),
    ],
)
def test_a_wrong_zone_of_a_row_is_refused(
    numtok: Shell, row: dict[str, object], parts: tuple[str, ...]
) -> None:
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    done = numtok("encode", "--scheme", "p1000", "rows.jsonl")
    assert done.code == 3, done
    assert all(part in done.err for part in ("rows.jsonl:1", *parts)), done.err


def test_auto_proposes_and_chooses_nothing(numtok: Shell) -> None:
    Path("rows.jsonl").write_text('{"text": "up 3 % to 1,234.5"}\n' * 40)
    refused = numtok("encode", "--scheme", "p1000", "--numbers", "auto", "rows.jsonl")
    assert refused.code == 2
    assert "numtok profile --numbers auto" in refused.err
    shown = numtok("profile", "--numbers", "auto", "--scheme", "p1000", "rows.jsonl")
    assert shown.code == 0
    assert "proposed: --numbers thousands,percent" in shown.out
    plain = numtok("profile", "--scheme", "p1000", "--json", "rows.jsonl")
    assert json.loads(plain.out)["policies"]["proposed"] == "thousands,percent"
