"""Encoding real and synthetic data: nothing is lost, and the result depends only on the input."""

import gzip
import hashlib
import json
import random
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache, partial
from itertools import chain as chained
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok import files
from numtok.data.reading import batches as batches_module
from numtok.data.reading import file_part
from numtok.data.reading import sources as sources_module
from numtok.data.reading import units as inputs_module
from numtok.data.reading.split_rule import SplitRule
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schema import encoded_schema
from numtok.encoding.unit import EncodeUnit
from numtok.errors import DataError, NegativeVerdict, NumtokError, StoreError, UsageError
from numtok.registry import spec_of
from numtok.store.artifact import Artifact
from numtok.store.engines.local import Workers
from numtok.store.store import Store
from numtok.store.verification import verify
from tests import chain, hub
from tests.cases import case
from tests.chain import jsonl as write
from tests.chain import standard_input
from tests.faults import Plan, installed
from tests.forged import forge_manifest
from tests.messages import Says
from tests.shell import Shell

datasets = hub.datasets

ROOT = Path(__file__).resolve().parents[2]
ERA5 = ROOT.parent / "shared/data/text/era5-uk-2019-03.jsonl"
SAMPLE = ROOT / "numtok/data/sample/era5-uk.jsonl"
LITERAL = ("bpe", "digits", "digits:3,reverse=yes", "numerologic", "numerologic:answer", "numvalue")
SCHEMES = ("b1999", "fp15", "hamming", "nd", "p10", "p1000", "ud", "xval", *LITERAL)
ROUNDING = ("b1999", "fp15", "p10", "p1000")  # these round to three digits
UNIT = {"hamming": 0.5 / 256, "nd": 0.5e-4}  # largest error, as a fraction of the range

#: Finds numbers independently of numtok's scanner. It suffices for the texts of these tests.
NUMBER = re.compile("(?<![A-Za-z0-9_])[-+\u2212]?[0-9]+(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def texts(path: Path, *values: str) -> Path:
    return write(path, [{"text": value} for value in values])


def encode(store: Store, *inputs: object, scheme: str | None = "p1000", **options: Any) -> Artifact:
    made = chain.encoded(store, *inputs, scheme=None if "like" in options else scheme, **options)
    assert verify(made).problems == []
    return made


def shards(artifact: Artifact, name: str = "train") -> list[Path]:
    return sorted(artifact.path.glob(f"{name}-*.parquet"))


def table(artifact: Artifact, name: str = "train") -> pa.Table:
    return pa.concat_tables(
        pq.read_table(path, page_checksum_verification=True) for path in shards(artifact, name)
    )


def rows(artifact: Artifact, name: str = "train") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(artifact, name).to_pylist()
    return found


def arrays(artifact: Artifact) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the lists of every row as arrays. This is much faster than ``rows`` for real data."""
    columns = {}
    for name, column in zip(table(artifact).column_names, table(artifact).columns, strict=True):
        if pa.types.is_list(column.type):
            joined = column.combine_chunks()
            ends = joined.offsets.to_numpy()[1:-1] - joined.offsets[0].as_py()
            columns[name] = np.split(joined.flatten().to_numpy(zero_copy_only=False), ends)
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def splits(artifact: Artifact) -> dict[str, list[str]]:
    names = {path.name.rpartition("-")[0] for path in artifact.path.glob("*.parquet")}
    return {name: table(artifact, name)["id"].to_pylist() for name in names}


def codec_of(artifact: Artifact) -> Codec:
    return Codec.from_json((artifact.path / "scheme.json").read_bytes())


def decoded(codec: Codec, row: Mapping[str, Any]) -> str:
    """Decode a row's text from its tokens and, if present, its channel."""
    return codec.decode(
        np.asarray(row["tokens"], np.uint32),
        np.asarray(row["number_start"], np.int32),
        np.asarray(row["number_length"], np.int32),
        np.asarray(row["channel"], np.float32) if "channel" in row else None,
    )


def rounded(literal: str, digits: int) -> float:
    """Round the decimal value of a literal half to even, with Python's decimal arithmetic."""
    exact = Decimal(literal.replace("\u2212", "-"))
    return float(Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(exact)) + 0.0  # avoids -0.0


def values_of(literals: Sequence[str]) -> NDArray[np.float64]:
    return np.array([float(literal.replace("\u2212", "-")) for literal in literals], np.float64)


@cache
def apart(text: str) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Return the text between the numbers of a text, their literals and their values."""
    literals = NUMBER.findall(text)
    return NUMBER.split(text), literals, values_of(literals)


def assert_nothing_is_lost(artifact: Artifact, originals: list[str], scheme: str) -> list[str]:
    """Compare every row with its original text, and return the literals of all numbers."""
    codec = codec_of(artifact)
    literals: list[str] = []
    factor = codec.normalizer.constants.get("factor", 1.0)
    half_to_even = cache(partial(rounded, digits=4 if scheme == "ud" else 3))
    for row, original in zip(arrays(artifact), originals, strict=True):
        back = decoded(codec, row)
        between, own, numbers = apart(original)
        assert NUMBER.split(back) == between  # byte for byte
        assert np.array_equal(row["numbers"], numbers)
        read = NUMBER.findall(back)
        values = values_of(read)
        if scheme in LITERAL:
            assert read == own
        elif scheme in (*ROUNDING, "ud"):
            assert values.tolist() == list(map(half_to_even, own))
        elif scheme in UNIT:
            most = UNIT[scheme] * codec.normalizer.constants["width"]
            assert np.abs(values - numbers).max(initial=0) <= most * (1 + 1e-9)
        else:
            assert np.array_equal(row["channel"], (numbers * factor).astype(np.float32))
            assert np.allclose(values, numbers, rtol=2.0**-23, atol=0)
        literals += own
    return literals


# --- nothing is lost ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_shipped_sample_comes_back(tmp_path: Path, scheme: str) -> None:
    originals = [json.loads(line)["text"] for line in SAMPLE.read_text().splitlines()]
    artifact = encode(Store(tmp_path), SAMPLE, scheme=scheme)
    assert len(assert_nothing_is_lost(artifact, originals, scheme)) > 4000
    assert table(artifact)["id"].to_pylist()[0] == "39"


@pytest.mark.skipif(not ERA5.exists(), reason=f"the full ERA5 file is not at {ERA5}")
@pytest.mark.parametrize(
    "scheme",
    [one if one == "xval" else pytest.param(one, marks=pytest.mark.slow) for one in SCHEMES],
)
def test_real_weather_data_comes_back(tmp_path: Path, scheme: str) -> None:
    originals = [json.loads(line)["text"] for line in ERA5.read_text().splitlines()]
    artifact = encode(Store(tmp_path), ERA5, scheme=scheme)
    literals = assert_nothing_is_lost(artifact, originals, scheme)
    counts = artifact.manifest.counts
    assert (counts["rows"], counts["numbers"]) == (300, len(literals)) == (300, 337_314)
    assert sum(float(literal) == 0 for literal in literals) == 537
    numbers = np.concatenate([row["numbers"] for row in arrays(artifact)])
    assert int((numbers == 0).sum()) == 537
    if scheme in ROUNDING:
        assert counts["zero"] + counts["negative_zero"] == 537
    assert not any(key.endswith("flow") for key in counts)


AWKWARD = (
    "",
    "no number at all",
    "5",
    "  -1.5e-3  ",
    "naïve café −5.5 é 12",
    "日本 3.25 語 😀 7",
    "[NUM]",
    "a [NUM] 1 [NUM][NUM] 2",
    r"[\NUM] 3 [\\NUM] [\\\MASK] [\PAD] 4 [END",
    "[MASK] [PAD] [END] [ NUM] [num] 8",
    "x1 utf8 5 planet0",
    "tab\t6 line\nbreak 7 nul\0 8 return\r 9",
    "e\u0301 10 \u200f11 \ufeff12",
    "0.5 -0 0.0 +7 007",
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_awkward_rows_come_back(tmp_path: Path, scheme: str) -> None:
    path = texts(tmp_path / "a.jsonl", *AWKWARD)
    for tokenizer in ("words", "bytes", "bpe:300"):
        with case(tokenizer=tokenizer):
            artifact = encode(Store(tmp_path), path, scheme=scheme, text_tokenizer=tokenizer)
            assert_nothing_is_lost(artifact, list(AWKWARD), scheme)


def test_a_literal_special_of_the_text_is_never_taken_for_one(tmp_path: Path) -> None:
    path = texts(tmp_path / "a.jsonl", "[NUM] [PAD] [MASK] [END] 5")
    artifact = encode(Store(tmp_path), path)
    (row,) = rows(artifact)
    assert row["text"] == r"[\NUM] [\PAD] [\MASK] [\END] [NUM]"
    codec = codec_of(artifact)
    text = [token for token in row["tokens"] if token >= codec.text_first]
    assert len(text) + 3 == len(row["tokens"])
    assert row["number_start"] == [len(text)]


CLIPPED = (
    ("p1000", "1e400", "positive_overflow", "[NUM:+OVERFLOW]" * 3),
    ("p10", "-1e-400", "negative_underflow", "[NUM:-UNDERFLOW]" * 5),
    ("fp15", "1e10", "positive_overflow", "[NUM:+OVERFLOW]"),
    ("xval", "1e400", "positive_overflow", "[NUM:+OVERFLOW]"),
)


def test_what_is_clipped_is_counted_and_listed(tmp_path: Path) -> None:
    for scheme, literal, outcome, written in CLIPPED:
        with case(scheme=scheme):
            made = [{"text": "1 2"}, {"id": "z", "text": f"3 is {literal}"}]
            artifact = encode(Store(tmp_path), write(tmp_path / "a.jsonl", made), scheme=scheme)
            assert artifact.manifest.counts[outcome] == 1
            listed = {"id": "z", "number": 1, "literal": literal, "outcome": outcome}
            assert rows(artifact, "clipped/clipped") == [listed]
            assert written in decoded(codec_of(artifact), rows(artifact)[1])


def test_the_file_of_lost_numbers_is_printed(tmp_path: Path, numtok: Shell) -> None:
    for literal, told in (("1e400", 1), ("4", 0)):
        ran = numtok(*P1000, str(texts(tmp_path / "a.jsonl", f"3 is {literal}")))
        assert ran.code == 0
        assert ran.err.count("listed in clipped/clipped-*.parquet") == told


# --- shards in other libraries -----------------------------------------------------------------

P1000 = ("encode", "--scheme", "p1000")
FULL: list[dict[str, Any]] = [
    {
        "id": 7, "text": "é 1 + 22 = 23", "answer_start": 11, "label": "add",
        "targets": {"sum": [[11, 13]], "terms": [[2, 3], [6, 8]]},
        "group": {"digits": 2, "carry": False, "op": "+"},
    },
    {"id": "b", "text": "nothing", "label": 3},
    {"id": "c", "text": "-4.5e1 °C", "group": {"op": "°", "half": 0.5}},
]  # fmt: skip


@pytest.fixture
def full(tmp_path: Path) -> Path:
    return write(tmp_path / "full.jsonl", FULL)


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_shards_have_the_promised_columns(tmp_path: Path, full: Path, scheme: str) -> None:
    import polars

    artifact = encode(Store(tmp_path), full, scheme=scheme)
    codec = codec_of(artifact)
    groups = ["group_carry", "group_digits", "group_half", "group_op"]
    assert codec.ids.channel == (scheme == "xval")
    wanted = encoded_schema(codec.ids, groups)
    for path in shards(artifact):
        assert pq.read_schema(path).remove_metadata().equals(wanted)
    first, second, third = rows(artifact)
    assert first.items() >= {
        "id": "7", "text": "é [NUM] + [NUM] = [NUM]", "numbers": [1.0, 22.0, 23.0],
        "target_name": ["sum", "terms", "terms"], "target_index": [2, 0, 1],
        "target_literal": ["23", "1", "22"], "answer_start": first["number_start"][2],
        "label": "add", "group_carry": "false", "group_digits": "2", "group_op": "+",
    }.items()  # fmt: skip
    assert (second["label"], third["label"]) == ("3", None)
    assert (second["group_op"], third["group_op"], third["group_half"]) == (None, "°", "0.5")
    assert second["numbers"] == second["target_name"] == []
    assert second["answer_start"] is None
    frame = polars.read_parquet(artifact.path / "train-*.parquet")
    assert frame.to_dicts() == rows(artifact)
    assert frame.schema["tokens"] == polars.List(polars.UInt16)
    assert frame.schema["numbers"] == polars.List(polars.Float64)
    assert frame.schema["answer_start"] == polars.Int32


def test_a_large_vocabulary_has_wide_tokens(tmp_path: Path) -> None:
    words = [f"w{chr(97 + n % 26)}{n:x}z" for n in range(40_000)]
    path = texts(tmp_path / "a.jsonl", " ".join(words), " ".join(words))
    artifact = encode(Store(tmp_path), path, scheme="fp15", text_tokenizer="words:60000")
    assert codec_of(artifact).vocabulary_size > 1 << 16
    assert pq.read_schema(shards(artifact)[0]).field("tokens").type.value_type == pa.uint32()


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
def test_shards_open_in_datasets(tmp_path: Path, full: Path, datasets: Any) -> None:
    artifact = encode(Store(tmp_path), full, scheme="xval")
    loaded = datasets.load_dataset(
        "parquet",
        data_files={"train": [str(path) for path in shards(artifact)]},
        cache_dir=str(tmp_path / "cache"),
    )["train"]
    assert list(loaded) == rows(artifact)
    wanted = encoded_schema(codec_of(artifact).ids, ["group_carry"])
    for name in ("tokens", "numbers", "channel", "target_literal", "answer_start", "group_carry"):
        assert loaded.features.arrow_schema.field(name).type == wanted.field(name).type


def test_a_flipped_byte_is_found(tmp_path: Path, numtok: Shell) -> None:
    artifact = encode(Store(tmp_path / "artifacts"), SAMPLE, name="toy")
    (path,) = shards(artifact)
    content = path.read_bytes()
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(k).path_in_schema: group.column(k) for k in range(group.num_columns)}
    for column in ("tokens.list.element", "numbers.list.element", "text"):
        with case(column=column):
            data, facts = bytearray(content), columns[column]
            data[facts.data_page_offset + facts.total_compressed_size - 9] ^= 1  # in the last page
            path.write_bytes(data)
            with pytest.raises(OSError, match="CRC"):
                pq.read_table(path, page_checksum_verification=True)
            ran = numtok("verify", "toy")
            assert ran.code == 1
            assert f"{artifact.ref}: 'train-00000.parquet' was changed: its sha256 is " in ran.out


# --- formats -----------------------------------------------------------------------------------


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def gz(path: Path, *cuts: int) -> Path:
    """Write a gzip file with one member per section of the data between the cuts."""
    data = as_jsonl(FULL)
    parts = [data[begin:end] for begin, end in pairwise((0, *cuts, len(data)))]
    path.with_suffix(".jsonl.gz").write_bytes(b"".join(map(gzip.compress, parts)))
    return path.with_suffix(".jsonl.gz")


def zst(path: Path) -> Path:
    data = as_jsonl(FULL)
    frames = [pa.compress(part, "zstd", asbytes=True) for part in (data[:50], data[50:])]
    path.with_suffix(".jsonl.zst").write_bytes(b"".join(frames))
    return path.with_suffix(".jsonl.zst")


def parquet(path: Path, kind: str) -> Path:
    spans, told = pa.list_(pa.list_(pa.int64())), [row.get("targets") for row in FULL]
    targets = pa.array(told, pa.struct({"sum": spans, "terms": spans}))
    if kind == "map":
        targets = pa.array([one and list(one.items()) for one in told], pa.map_(pa.string(), spans))
    group = pa.struct(
        {"digits": pa.int8(), "carry": pa.bool_(), "op": pa.string(), "half": pa.float32()}
    )
    columns: dict[str, Any] = {
        "extra": pa.array([1.5, None, 2.0]),
        "id": pa.array(["7", "b", "c"], pa.large_string()),
        "text": pa.array([row["text"] for row in FULL], pa.large_string()),
        "targets": targets,
        "answer_start": pa.array([row.get("answer_start") for row in FULL], pa.int16()),
        "label": pa.array(["add", "3", None]).dictionary_encode(),
        "group": pa.array([row.get("group") for row in FULL], group),
    }  # fmt: skip
    made = path.with_suffix(".parquet")
    pq.write_table(pa.table(columns), made, row_group_size=2)
    return made


def folder(path: Path) -> Path:
    place = path.parent / "folder"
    (place / "more").mkdir(parents=True)
    write(place / "a.jsonl", FULL[:1])
    (place / "b.jsonl.gz").write_bytes(gzip.compress(as_jsonl(FULL[1:2])))
    write(place / "more" / "c.jsonl", FULL[2:])
    (place / "README.md").write_text("not data")
    (place / ".hidden.jsonl").write_text("not data")
    return place


def test_every_format_gives_the_same_tokens(tmp_path: Path, full: Path) -> None:
    store = Store(tmp_path / "store")
    plain = encode(store, full)
    for convert, *more in (
        (gz,), (gz, 40, 41, 41), (zst,), (folder,), (parquet, "struct"), (parquet, "map"),
    ):  # fmt: skip
        with case(convert=convert.__name__, more=more):
            other = encode(store, convert(full, *more))
            assert table(other).equals(table(plain))
            assert codec_of(other).digest == codec_of(plain).digest


def test_files_called_like_splits_and_those_left_out_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fold").mkdir()
    for name in ("train", "test", "val-00000"):
        Path(f"fold/{name}.jsonl").write_text(f'{{"text": "{name} is 1"}}\n')
    Path("fold/more.json").write_text("{}")
    Path("fold/README.md").write_text("about it")
    told: list[str] = []
    store = Store(Path("store"), note=told.append)
    made = encode(store, Path("fold"))
    assert made.manifest.counts["rows_train"] == 3
    unread, test, validation = told
    says(unread, "fold: skipped", ".jsonl", ".parquet: more.json")
    says(test, "fold/test.jsonl: ", "test=fold/test.jsonl")
    says(validation, "fold/val-00000.jsonl: ", "validation=fold/val-00000.jsonl")


def test_a_parquet_id_can_be_an_integer_or_absent(tmp_path: Path) -> None:
    store, path, text = Store(tmp_path / "store"), tmp_path / "a.parquet", ["a 1", "b", "c"]
    pq.write_table(pa.table({"id": [5, None, 6], "text": text}), path)
    assert table(encode(store, path))["id"].to_pylist() == ["5", "0:1", "6"]
    pq.write_table(pa.table({"text": text}), path, row_group_size=1)
    assert table(encode(store, path))["id"].to_pylist() == ["0:0", "0:1", "0:2"]


def test_standard_input_is_the_same_as_a_file(tmp_path: Path, full: Path) -> None:
    store = Store(tmp_path / "store")
    file = encode(store, full)
    with standard_input(full):
        piped = encode(store, "-")
    assert (piped.name, piped.version) == ("stdin-p1000", file.version)
    assert piped.manifest.content == file.manifest.content
    assert piped.manifest.parents[0].where == "standard input"
    assert not list(store.root.glob(".spool*"))


def test_ids_that_are_absent_are_file_and_offset(tmp_path: Path) -> None:
    a = texts(tmp_path / "a.jsonl", "é", "b")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"\n" + as_jsonl([{"text": "c"}] * 2)))
    ids = table(encode(Store(tmp_path), a, tmp_path / "b.jsonl.gz"))["id"].to_pylist()
    assert ids == ["0:0", "0:15", "1:1", "1:15"]


def test_any_other_field_is_left_alone_and_the_text_can_have_another_name(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"body": "a 1", "text": 5, "n": [1, {"k": 1}, {"k": 2}], "big": ' + "9" * 5000 + "}\n"
        '{"\\u0062ody": "b \\u00e9 \\ud83d\\ude00", "x": null}\n'
    )
    found = rows(encode(Store(tmp_path), path, text_field="body"))
    assert [row["text"] for row in found] == ["a [NUM]", "b é 😀"]


# --- splits ------------------------------------------------------------------------------------


def test_a_row_says_its_split_and_is_not_moved_by_shares(tmp_path: Path) -> None:
    named = {"a": None, "b": "test", "c": "train", "d": "ood-big", "e": "test"}
    made = [{"id": name, "text": "x", "split": split} for name, split in named.items()]
    artifact = encode(Store(tmp_path), write(tmp_path / "a.jsonl", made))
    assert splits(artifact) == {"train": ["a", "c"], "test": ["b", "e"], "ood-big": ["d"]}
    counts = artifact.manifest.counts
    assert (counts["rows_train"], counts["rows_test"], counts["rows_ood-big"]) == (2, 2, 1)
    path = write(
        tmp_path / "a.jsonl", [{"id": n, "text": "x", "split": "train"} for n in range(50)]
    )
    assert list(splits(encode(Store(tmp_path), path, split="test=0.9"))) == ["train"]


def test_a_split_of_the_rule_without_rows_is_noted(tmp_path: Path, says: Says) -> None:
    told: list[str] = []
    store = Store(tmp_path / "store", note=told.append)
    made = [{"text": f"x {year}", "group": {"year": year}} for year in (2020, 2021)]
    path = write(tmp_path / "a.jsonl", made)
    for split, *parts in (
        ("by=year,test=2021",),
        ("by=yaer,test=2021", "'test'", "'yaer'"),
        ("by=yaer,test=2021", "'test'", "'yaer'"),  # the artifact now exists
        ("by=year,test=2021,validation=2031", "'validation'", "'year'"),
        ("test=0.0001", "'test'", "fraction"),
    ):
        with case(split):
            told.clear()
            encode(store, path, split=split)
            assert len(told) == bool(parts)
            says("".join(told), *parts)


def test_a_file_can_be_a_split(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [{"id": "a", "text": "1"}])
    b = write(tmp_path / "b.jsonl", [{"id": "b", "text": "2", "split": "test"}])
    artifact = encode(Store(tmp_path), f"train={a}", f"test={b}")
    assert splits(artifact) == {"train": ["a"], "test": ["b"]}
    assert artifact.name == "a-p1000"
    equals = texts(tmp_path / "test=1.jsonl", "x")  # a file, not a split
    assert list(splits(encode(Store(tmp_path), equals))) == ["train"]


def test_shares_are_a_seeded_hash_of_the_id(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    rng = random.Random(1)
    made = [{"id": f"row-{n}", "text": "x"} for n in range(3000)]
    path = write(tmp_path / "a.jsonl", made)
    first = splits(encode(store, path, split="test=0.1,ood-x=0.2,seed=3"))
    assert sum(map(len, first.values())) == 3000
    for name, share in (("test", 0.1), ("ood-x", 0.2), ("train", 0.7)):
        spread = (3000 * share * (1 - share)) ** 0.5
        assert abs(len(first[name]) - 3000 * share) < 4 * spread
    more = [{"id": f"new-{n}", "text": "y"} for n in range(50)] + made
    rng.shuffle(more)
    longer = splits(encode(store, write(path, more), split="test=0.1,ood-x=0.2,seed=3"))
    for name in first:
        assert set(first[name]) <= set(longer[name])
    other = splits(encode(store, write(path, made), split="test=0.1,ood-x=0.2,seed=4"))
    assert set(other["test"]) != set(first["test"])


def test_rows_of_a_cluster_stay_together(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = [{"id": n, "text": "x"} for n in range(1000)]
    store, path = Store(tmp_path), write(tmp_path / "a.jsonl", made)
    by_id = splits(encode(store, path, split="test=0.3"))
    for row in made[:400]:
        row["cluster"] = f"patient-{row['id'] % 40}"
    found = splits(encode(store, write(path, made), split="test=0.3"))
    met = {name: {int(row) % 40 for row in ids if int(row) < 400} for name, ids in found.items()}
    assert met["test"] and met["train"] and met["test"].isdisjoint(met["train"])
    for name in ("test", "train"):
        alone = [[row for row in one[name] if int(row) >= 400] for one in (found, by_id)]
        assert alone[0] == alone[1] != []


def test_numbers_too_long_for_a_channel_are_reported(tmp_path: Path, numtok: Shell) -> None:
    path = str(texts(tmp_path / "a.jsonl", "12345 * 54321 = 670592745", "at most 2e9", "7 9"))
    ran = numtok("encode", "--scheme", "xval", path)
    assert ran.code == 0 and " ".join(ran.err.split()).count("rounded numbers 1 ") == 1
    assert "1 of 6 numbers (16.7%) are rounded" in ran.err and "--scheme bits" in ran.err
    counts = json.loads(numtok("encode", "--scheme", "xval", path, "--json").out)["counts"]
    assert counts["inexact"] == 1
    long = str(texts(tmp_path / "b.jsonl", "0.1234567"))
    told = numtok("encode", "--scheme", "fone,whole=10", long).err
    assert "(100%) are rounded: 5 decimals are kept. Set decimals=" in told
    for options in (["digits"], ["p1000"]):
        assert "rounded" not in numtok("encode", "--scheme", *options, path).err


def test_a_scheme_without_settings_is_sized_to_the_numbers_of_all_splits(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    rows = [{"text": "1.25", "split": "train"}, {"text": "at -340", "split": "test"}]
    path = write(tmp_path / "a.jsonl", rows)
    sized = encode(store, path, scheme="fone")
    assert spec_of(codec_of(sized).scheme) == "fone,whole=3,decimals=2"
    assert sized.manifest.counts.get("positive_overflow", 0) == 0
    assert sized.manifest.settings["encoding"]["scheme"]["whole"] == 3
    named = encode(store, path, scheme="fone,whole=3,decimals=2")
    assert named.version == sized.version
    usual = encode(store, path, scheme="fone,whole=10,decimals=5")
    assert spec_of(codec_of(usual).scheme) == "fone" and usual.version != sized.version
    assert spec_of(codec_of(encode(store, path, scheme="dice")).scheme) == "dice,range=-340..340"


def clipped_and_rejected(tmp_path: Path, **options: Any) -> Artifact:
    """Encode 40 rows of two splits, each with a number out of range, and one invalid row."""
    splits = [("train", "test")[index % 4 == 0] for index in range(40)]
    made = [{"id": n, "text": f"{n} and 1e40", "split": one} for n, one in enumerate(splits)]
    path = write(tmp_path / "a.jsonl", [*made, {"text": 5}])
    return encode(Store(tmp_path), path, on_error="skip", **options)


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
def test_clipped_and_rejected_rows_leave_one_data_set(tmp_path: Path, datasets: Any) -> None:
    import polars as pl

    artifact = clipped_and_rejected(tmp_path)
    assert len(rows(artifact, "clipped/clipped")) == 40
    assert len(list(artifact.path.glob("rejected/*.jsonl"))) == 1
    ids = sorted(map(str, range(40)))
    every = f"{artifact.path}/*.parquet"
    assert sorted(pl.scan_parquet(every).collect()["id"]) == ids
    cache = {"cache_dir": str(tmp_path / "cache")}
    loaded = datasets.load_dataset("parquet", data_files=every, split="train", **cache)
    assert sorted(loaded["id"]) == ids
    # Loaded as a folder, the artifact keeps its splits.
    folder = datasets.load_dataset(str(artifact.path), **cache)
    assert {name: len(part) for name, part in folder.items()} == {"train": 30, "test": 10}
    duckdb = pytest.importorskip("duckdb")
    counts = duckdb.sql(f"select count(*), count(distinct id) from '{every}'")
    assert counts.fetchall() == [(40, 40)]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True).filter(
            lambda name: name not in ("train", "seed", "clipped", "rejected")
        ),
        st.floats(0.001, 0.3),
        min_size=1,
        max_size=3,
    ),
    st.integers(-(10**17), 10**17),
)
def test_a_split_rule_may_be_typed_in_any_order(shares: dict[str, float], seed: int) -> None:
    typed = [f"{name}={share!r}" for name, share in shares.items()]
    one = SplitRule.parse(",".join([*typed, f"seed={seed}"]))
    other = SplitRule.parse(",".join([f"seed={seed}", *reversed(typed)]))
    assert one.settings() == other.settings() == {"shares": shares, "seed": seed}
    assert [one.split_of(str(n)) for n in range(50)] == [other.split_of(str(n)) for n in range(50)]


# --- targets, answers, groups ------------------------------------------------------------------


def test_targets_of_any_length_keep_their_digits(tmp_path: Path) -> None:
    a, b = "9" * 100, "-" + "123" * 33 + ".5"
    text = f"😀 {a} and {b}"
    start = text.index("-")
    row = {"text": text, "targets": {"a": [[2, 102]], "b": [[start, len(text)]]}}
    (found,) = rows(encode(Store(tmp_path), write(tmp_path / "a.jsonl", [row])))
    assert found["target_literal"] == [a, b]
    assert found["target_index"] == [0, 1]
    assert found["numbers"] == [float(a), float(b)]


ANSWERS = (
    ("2 + 2 = 4", 8),
    ("2 + 2 = 4", 0),
    ("2 + 2 = 4", 9),
    ("2 + 2 = 4", 5),
    ("日本😀 é = [NUM] x", 8),
    ("日本😀 é = 5", 6),
    ("12", 2),
    ("", 0),
    ("abcdef", 3),
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_answer_begins_a_token(tmp_path: Path, scheme: str) -> None:
    made: list[dict[str, object]] = [{"text": "é 1"}]
    made += [{"text": text} for text, _ in ANSWERS]
    made += [{"text": text, "answer_start": answer} for text, answer in ANSWERS]
    artifact = encode(Store(tmp_path), write(tmp_path / "a.jsonl", made), scheme=scheme)
    codec = codec_of(artifact)
    before, *found = rows(artifact)
    assert before["answer_start"] is None
    half = len(ANSWERS)
    for (text, answer), plain, row in zip(ANSWERS, found[:half], found[half:], strict=True):
        with case(text=text, answer=answer):
            assert plain["answer_start"] is None
            assert row["text"] == plain["text"]
            at = row["answer_start"]
            inside = sum(start < at for start in row["number_start"])
            head: dict[str, Any] = {
                key: row[key][: at if key == "tokens" else inside]
                for key in ("tokens", "number_start", "number_length", "channel")
                if key in row
            }
            assert NUMBER.split(decoded(codec, head)) == NUMBER.split(text[:answer])
            assert NUMBER.split(decoded(codec, row)) == NUMBER.split(text)


def test_a_group_that_comes_late_has_its_column_in_every_shard(tmp_path: Path) -> None:
    a = packed(tmp_path, "a", {"text": "1", "group": {"x": 1}})
    b = packed(tmp_path, "b", {"text": "2", "group": {"y": 2, "x": "k", "z": None}})
    c = write(tmp_path / "c.jsonl", [{"id": "c", "text": "3", "group": {"w": True}}])
    store = Store(tmp_path / "store")
    # The text sample ends with the first unit, so it does not contain the groups of the others.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numtok.encoding.fit_codec.SAMPLE", 1)
        artifact = encode(store, a, b, c)
    whole = encode(Store(tmp_path / "other"), a, b, c)
    assert artifact.manifest.content == whole.manifest.content
    for path in shards(artifact):  # no row has a value for z
        names = pq.read_schema(path).names
        groups = [name for name in names if name.startswith("group_")]
        assert groups == ["group_w", "group_x", "group_y"]
    assert [row["group_x"] for row in rows(artifact)] == ["1", "k", None]
    backwards = encode(store, c, b, a)
    by_id = {row["id"]: row for row in rows(backwards)}
    assert [by_id[row["id"]] for row in rows(artifact)] == rows(artifact)


def test_floors_of_rows_stand_beside_their_targets_whatever_the_format(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = [
        {"text": "1 2 3", "targets": {"b": [[2, 3]], "a": [[4, 5], [0, 1]]},
         "floors": {"a": {"last": [0.5, None], "mood": [7, 8]}}},
        {"text": "4", "targets": {"a": [[0, 1]]}},
        {"text": "5 6", "targets": {"b": [[2, 3]], "a": [[0, 1]]},
         "floors": {"b": {"last": [-2.0]}, "a": {"none": [None]}}},
    ]  # fmt: skip
    store = Store(tmp_path / "store")
    plain = encode(store, write(tmp_path / "rows.jsonl", told))
    names = pq.read_schema(shards(plain)[0]).names
    assert names[-2:] == ["floor_last", "floor_mood"]
    nan = np.nan
    wanted = [
        (["b", "a", "a"], [1, 2, 0], [nan, 0.5, nan], [nan, 7, 8]),
        (["a"], [0], [nan], [nan]),
        (["b", "a"], [1, 0], [-2, nan], [nan, nan]),
    ]
    for row, (target, index, last, mood) in zip(rows(plain), wanted, strict=True):
        assert (row["target_name"], row["target_index"]) == (target, index)
        np.testing.assert_array_equal(row["floor_last"], last)
        np.testing.assert_array_equal(row["floor_mood"], mood)
    samples = EncodedSplit.read(shards(plain), codec_of(plain).ids)
    np.testing.assert_array_equal(samples.floors["last"], [nan, 0.5, nan, nan, -2, nan])
    np.testing.assert_array_equal(samples.take(np.arange(2)).floors["mood"], [nan, 7, 8, nan])
    made = tmp_path / "rows.parquet"
    pq.write_table(pa.table({key: [row.get(key) for row in told] for key in
                             ("text", "targets", "floors")}), made)  # fmt: skip
    other = encode(store, made)
    for row, same in zip(rows(plain), rows(other), strict=True):
        assert repr(row | {"id": ""}) == repr(same | {"id": ""})  # because NaN != NaN


def test_a_floor_that_comes_late_has_its_column_in_every_shard(tmp_path: Path) -> None:
    paths = [
        packed(tmp_path, name, {"text": "1", "targets": {"x": [[0, 1]]}, "floors": floors})
        for name, floors in (("a", {}), ("b", {"x": {"last": [3]}}))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numtok.encoding.fit_codec.SAMPLE", 1)
        artifact = encode(Store(tmp_path / "store"), *paths)
    first, second = (row["floor_last"] for row in rows(artifact))
    assert np.isnan(first).tolist() == [True] and second == [3]


# --- settings ----------------------------------------------------------------------------------


def test_like_encodes_as_the_earlier_artifact(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    train = texts(tmp_path / "train.jsonl", "the wind is 5.25", "the wind is -100")
    test = texts(tmp_path / "test.jsonl", "the wind is 7 and new words come")
    first = encode(store, train, scheme="xval", text_tokenizer="words:20")
    second = encode(store, f"test={test}", like=first.ref)
    assert (second.path / "scheme.json").read_bytes() == (first.path / "scheme.json").read_bytes()
    assert codec_of(second).digest == codec_of(first).digest
    assert [parent.where for parent in second.manifest.parents] == [str(test), first.ref]
    (row,) = rows(second, "test")
    assert row["channel"] == [np.float32(7 * 0.05)]
    again = encode(store, train, like=first.ref)
    assert table(again).equals(table(first))
    with pytest.raises(UsageError, match="--normalize and --reuse-encoding cannot be"):
        encode(store, test, like=first.ref, normalize="none")


VALUES = np.array([0.0, 5.0, -100.0])
CHANNELS = {
    "none": VALUES.tolist(),
    "scale:5": [0.0, 0.25, -5.0],
    "scale:1": [0.0, 0.05, -1.0],
    "unit": [1.0, 1.05, 0.0],
    "signed-log": [0.0, 0.778151250, -2.004321374],
    "affine": ((VALUES - np.mean([0, -100, 0])) / np.std([0, -100, 0])).tolist(),
}


def test_a_normalisation_is_fitted_on_train_and_undone(tmp_path: Path) -> None:
    # The train split, on which the scaling is fitted, has values from -100 to 0.
    made = [{"text": "0 -100"}, {"text": "0"}, {"text": "-1e6 3e6", "split": "test"}]
    path, other = write(tmp_path / "a.jsonl", made), texts(tmp_path / "b.jsonl", "0 5 -100")
    for normalize, channel in CHANNELS.items():
        with case(normalize=normalize):
            artifact = encode(Store(tmp_path), path, scheme="xval", normalize=normalize)
            (row,) = rows(encode(Store(tmp_path), other, like=artifact.ref))
            assert np.allclose(row["channel"], channel, rtol=1e-6, atol=1e-7)
            assert row["numbers"] == VALUES.tolist()
            back = [float(literal) for literal in decoded(codec_of(artifact), row).split()]
            assert np.allclose(back, VALUES, rtol=1e-6, atol=1e-5)


def test_answers_are_scaled_by_their_own_factor(tmp_path: Path) -> None:
    """Both factors are fitted on the train split. Rows without an answer have only operands."""
    made: list[dict[str, object]] = [
        {"text": "40*50=2000", "answer_start": 6},
        {"text": "x 20"},
        {"text": "10*99=1e9", "answer_start": 6, "split": "test"},
    ]
    path, other = write(tmp_path / "a.jsonl", made), tmp_path / "b.jsonl"
    write(other, [{"text": "50*20=1000", "answer_start": 6}])
    spec = "scale:5,by=answer"
    artifact = encode(Store(tmp_path), path, scheme="xval", normalize=spec)
    assert [row["channel"] for row in rows(artifact)] == [[4.0, 5.0, 5.0], [2.0]]
    (row,) = rows(encode(Store(tmp_path), str(other), like=artifact.ref))
    assert row["channel"] == [5.0, 2.0, 2.5]
    assert artifact.manifest.counts.get("inexact") in (None, 0)
    with pytest.raises(UsageError, match="--scheme xval"):
        encode(Store(tmp_path), path, scheme="p1000", normalize=spec)
    with pytest.raises(DataError, match="by=answer"):
        encode(Store(tmp_path), texts(tmp_path / "c.jsonl", "1 2"), scheme="xval", normalize=spec)


def test_a_scheme_without_a_channel_writes_the_normalised_value(tmp_path: Path) -> None:
    path = texts(tmp_path / "a.jsonl", "x 200 -50")
    artifact = encode(Store(tmp_path), path, normalize="scale:1")
    (row,) = rows(artifact)
    assert row["numbers"] == [200.0, -50.0]
    names = codec_of(artifact).scheme.vocabulary()
    first = codec_of(artifact).number_first
    spans = [row["tokens"][start : start + 3] for start in row["number_start"]]
    numbers = [names[token - first] for token in chained.from_iterable(spans)]
    assert numbers == ["+", "100", "E-2", "-", "250", "E-3"]
    assert decoded(codec_of(artifact), row) == "x 200.0 -50.0"


def test_every_text_tokenizer_gives_the_text_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = texts(tmp_path / "a.jsonl", *AWKWARD, *["the wind in the hills"] * 3)
    trained = encode(store, path, text_tokenizer="bpe:400")
    given = tmp_path / "tokenizer.json"
    given.write_text(json.dumps(codec_of(trained).text.huggingface()))
    for spec in ("words", "words:2", "words:0", "bpe:256", "bytes", str(given)):
        artifact = encode(store, path, text_tokenizer=spec)
        assert [NUMBER.split(decoded(codec_of(artifact), row)) for row in rows(artifact)] == [
            NUMBER.split(text) for text in [*AWKWARD, *["the wind in the hills"] * 3]
        ]
    moved = tmp_path / "elsewhere" / "mine.json"
    moved.parent.mkdir()
    moved.write_bytes(given.read_bytes())
    assert artifact.version == encode(store, path, text_tokenizer=str(moved)).version
    assert [row["tokens"] for row in rows(artifact)] == [row["tokens"] for row in rows(trained)]


POLICIES = {
    "default": [1.0, 234.0, 23.0, 2.0],
    "thousands": [1234.0, 23.0, 2.0],
    "percent": [1.0, 234.0, 0.23, 2.0],
    "thousands,percent": [1234.0, 0.23, 2.0],
    "xval": [1.0, 234.0, 23.0, -2.0, 1.0],
}


def test_the_numeral_policy_is_a_setting(tmp_path: Path) -> None:
    path = texts(tmp_path / "a.jsonl", "1,234 or 23% of a-2 x1")
    for policy, numbers in POLICIES.items():
        artifact = encode(Store(tmp_path), path, numerals=policy)
        assert rows(artifact)[0]["numbers"] == numbers, policy


# --- the same input, the same bytes ------------------------------------------------------------


def packed(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    """Write rows to a gzip file, which is always a single unit."""
    path = folder / f"{name}.jsonl.gz"
    path.write_bytes(gzip.compress(as_jsonl([{"id": name} | row for row in rows])))
    return path


@pytest.fixture
def two_units(tmp_path: Path) -> list[Path]:
    made = []
    for name in ("a", "b"):
        rng = random.Random(name)
        rows = [{"text": f"{name} wind {rng.random()} {rng.randint(-99, 99)}"} for _ in range(200)]
        made.append(packed(tmp_path, name, *rows))
    return made


def test_the_content_depends_on_the_input_alone(tmp_path: Path, two_units: list[Path]) -> None:
    first = encode(Store(tmp_path / "one"), *two_units, scheme="p10", workers=1)
    moved = [path.with_name(f"x{path.name}") for path in two_units]
    for path, there in zip(two_units, moved, strict=True):
        there.write_bytes(path.read_bytes())
    other = encode(Store(tmp_path / "two"), *moved, scheme="p10", workers=2, name="other")
    assert len(shards(first)) == 2
    assert other.name == "other"
    assert (other.version, other.manifest.content) == (first.version, first.manifest.content)
    assert list(chain.contents(first).values()) == list(chain.contents(other).values())


def test_a_file_has_one_version_under_any_name_that_it_is_read_by(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    for path in (plain, packed):
        path.write_bytes(gzip.compress(b'{"text": "a 1"}\nnonsense\n', mtime=0))
    good = write(tmp_path / "good.jsonl", [{"text": "b 2"}])
    one = encode(Store(tmp_path / "one"), good, plain, name="x", on_error="skip")
    other = encode(Store(tmp_path / "other"), good, packed, name="x", on_error="skip")
    assert (one.version, one.manifest.content) == (other.version, other.manifest.content)
    assert one.manifest.settings["file_formats"] == ["jsonl", "gzip"]
    for artifact in (one, other):
        counts = artifact.manifest.counts
        assert (counts["rows"], counts["rejected"]) == (2, 1)


def test_a_rerun_writes_nothing(tmp_path: Path, full: Path, numtok: Shell) -> None:
    ran = numtok(*P1000, str(full))
    assert ran.code == 0
    assert re.fullmatch(r"full-p1000@[0-9a-f]{16}\n", ran.out)
    with installed(Plan("trace")) as traced:
        again = numtok(*P1000, str(full))
    assert (again.code, again.out) == (0, ran.out)
    assert "already encoded" in again.err
    assert not {"write", "rename", "mkdir", "unlink"} & set(traced.trace)


def test_force_keeps_what_is_identical(tmp_path: Path, full: Path) -> None:
    store = Store(tmp_path / "store")
    first = encode(store, full)
    before = {path: path.stat().st_mtime_ns for path in first.path.rglob("*")}
    assert encode(store, full, force=True).manifest == first.manifest
    assert {path: path.stat().st_mtime_ns for path in first.path.rglob("*")} == before
    assert not list(first.path.parent.glob(".*"))


def test_force_names_differing_files(tmp_path: Path, full: Path, numtok: Shell, says: Says) -> None:
    first = encode(Store(tmp_path / "artifacts"), full)
    listing = (first.path / "files.jsonl").read_bytes()
    digest = hashlib.sha256((first.path / "scheme.json").read_bytes()).hexdigest().encode()
    changed = listing.replace(digest, b"0" * 64)
    assert changed != listing
    (first.path / "files.jsonl").write_bytes(changed)
    forge_manifest(first.path, content=hashlib.sha256(changed).hexdigest())
    ran = numtok(*P1000, str(full), "--force")
    ran = ran._replace(err=ran.err.replace(first.ref, "REF"))
    says.refused(ran, 1, "REF differs in scheme.json", "numtok verify REF", "numtok rm REF")


def test_a_run_that_was_stopped_continues_unless_told_to_restart(
    tmp_path: Path, two_units: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = encode(Store(tmp_path / "whole"), *two_units)
    store = Store(tmp_path / "store")
    real = EncodeUnit.__call__
    done: list[int] = []
    stop = True

    def call(work: EncodeUnit, unit: inputs_module.Unit) -> Any:
        if stop and unit.index == 1:
            raise KeyboardInterrupt
        done.append(unit.index)
        return real(work, unit)

    monkeypatch.setattr(EncodeUnit, "__call__", call)
    for restart, expected in ((False, [0, 1]), (True, [0, 0, 1])):
        done.clear()
        stop = True
        with pytest.raises(KeyboardInterrupt):
            encode(store, *two_units)
        assert store.artifacts() == []
        stop = False
        made = encode(store, *two_units, restart=restart)
        assert done == expected
        assert made.manifest.content == whole.manifest.content
        store.remove(made)


def test_json_and_a_dry_run_tell_the_artifact(tmp_path: Path, full: Path, numtok: Shell) -> None:
    ran = numtok(*P1000, str(full), "--dry-run", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert not [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert json.loads(ran.out)["schema"] == 1
    made = numtok(*P1000, str(full), "--json")
    told = json.loads(made.out)
    assert (made.code, made.err) == (0, "")
    assert (told["schema"], told["made"], told["counts"]["numbers"]) == (1, True, 4)
    assert told["counts"]["rows"] == told["counts"]["rows_train"] == 3
    assert told["ref"].startswith("full-p1000@") and told["ref"] in ran.out
    again = numtok(*P1000, str(full), "--dry-run")
    assert (again.code, again.out) == (0, f"{told['ref']}\n")
    assert "already encoded" in again.err


@pytest.mark.parametrize(
    "options",
    [
        ["--scheme", "p1000"],
        ["--scheme", "xval", "--normalize", "unit", "--text-tokenizer", "bpe:300"],
        ["--scheme", "p10,exponents=-3..3", "--numbers", "xval", "--split", "test=0.5,seed=9"],
        ["--scheme", "fp15", "--text-field", "my text", "--on-error", "skip", "--max-line", "500"],
        ["--reuse-encoding", "made-p1000"],
    ],
    ids=" ".join,
)
def test_show_prints_the_command_that_makes_it_again(
    tmp_path: Path, numtok: Shell, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    made = [{"id": n, "text": f"a {n}", "my text": f"b {n}"} for n in range(20)]
    write(tmp_path / "made.jsonl", made)
    write(tmp_path / "it's here.jsonl", made[:15])
    assert numtok(*P1000, "made.jsonl").code == 0
    first = numtok("encode", *options, "it's here.jsonl", "train=made.jsonl")
    assert first.code == 0, first.err
    if options[0] == "--reuse-encoding":  # the name alone is now ambiguous
        assert numtok(*P1000, "made.jsonl", "--numbers", "xval").code == 0
    shown = json.loads(numtok("show", first.out.strip(), "--json").out)
    command = shlex.join(shown["manifest"]["command"])
    table = numtok("show", first.out.strip()).out
    assert "".join(command.split()) in "".join(table.split("made from")[0].split())
    assert numtok("rm", first.out.strip()).code == 0
    program, *arguments = shlex.split(command)
    assert program == "numtok"
    assert numtok(*arguments).out == first.out


# --- cutting the input into units and blocks ---------------------------------------------------

LINES = st.sampled_from(
    [
        b'{"text": "1 and 2"}', '{"text": "é 😀 3", "id": "x"}'.encode(), b' {"text": ""} ',
        b'{"text": "' + b"a long line 4 " * 9 + b'"}',
        b'{"text": "a \\" quote, a \\\\", "other": {"a": [1, {"b": "}"}]}}',
        b"", b"", b" \t ", b" " * 70, b"nonsense", b'{"text": "x", "text": "y"}',
        b'{"text": "x"} {"text": "y"}', b'{"text": "x", "n": {"k": 1, "\\u006b": 2}}', b'{"text":',
        b'"y"}', b'{"text": 5}', b'{"text": "a", "other": "\xff"}',
        b'{"text": "a", "other": "\xed\xa0\x80"}', b"\0", b"{", b"}",
    ]
)  # fmt: skip


def is_row(line: bytes) -> bool:
    """Return whether a line is a valid row, according to Python's own JSON parser."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        value = json.loads(line.decode(), object_pairs_hook=once)
    except ValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get("text"), str)


@given(
    st.lists(LINES, min_size=1, max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 150),
    st.integers(1, 150),
    st.integers(1, 150),
    st.sampled_from([30, 60, 69, 70, 71, 1 << 20]),
)
def test_no_row_depends_on_where_the_input_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    end: bytes,
    last: bool,
    packed: bool,
    unit: int,
    block: int,
    piece: int,
    max_line: int,
) -> None:
    data = end.join(lines) + (end if last else b"")
    if not data:
        return
    path = tmp_path_factory.getbasetemp() / ("cut.jsonl.gz" if packed else "cut.jsonl")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs_module, "UNIT", unit)
        patch.setattr(inputs_module, "BLOCK", block)
        patch.setattr(files, "PIECE", piece)
        sources = [sources_module.InputFile(path, None, "cut")]
        units, parents = inputs_module.plan(sources, lambda *_: None, Workers(1))
        batches = [
            batch
            for unit in units
            for batch in inputs_module.read(unit, batches_module.ReadingOptions("text", max_line))
        ]
        found = []
        for batch in batches:
            columns = batch.rows.ids.to_pylist(), batch.rows.texts.to_pylist()
            for index, row in enumerate(zip(batch.numbers.tolist(), *columns, strict=True)):
                place = file_part.location_of(batch.part, row[0])
                found.append((place, *row[1:], batch.contents(index)))
        rejected = [
            (bad.number, bad.content, bad.reason.startswith("the line has more than"))
            for batch in batches
            for bad in batch.rejected
        ]
    expected: list[tuple[str, str, str, bytes]] = []
    wrong: list[tuple[int, bytes | None, bool]] = []
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip(b" \t\r"):
            if len(line) > max_line:
                wrong.append((number, None, True))
            elif is_row(line):
                value = json.loads(line)
                name = value.get("id", f"0:{offset}")
                expected.append((f"cut:{number}", name, value["text"], line))
            else:
                wrong.append((number, line, False))
        offset += len(line) + 1
    assert found == expected
    assert rejected == wrong
    assert parents[0].digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_tokens_do_not_depend_on_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    made = [
        {"text": f"é wind {rng.gauss(0, 9)} in {rng.randint(0, 99)} places", "answer_start": 2}
        for _ in range(40)
    ]
    path = write(tmp_path / "a.jsonl", made)
    path.write_bytes(path.read_bytes() + b'\n\n{"text": 5}\r\n{"text": "end 1"}')
    whole = encode(Store(tmp_path / "whole"), path, scheme="xval", on_error="skip")
    kept = (whole.path / "rejected/rejected-00000.jsonl").read_bytes()
    assert json.loads(kept)["row"] == 43
    monkeypatch.setattr(files, "PIECE", 50)
    for unit, block in [(64, 1 << 20), (1 << 20, 64), (100, 37), (1, 1)]:
        with case(unit=unit, block=block):
            monkeypatch.setattr(inputs_module, "UNIT", unit)
            monkeypatch.setattr(inputs_module, "BLOCK", block)
            store = Store(tmp_path / f"cut {unit} {block}")
            cut = encode(store, path, scheme="xval", on_error="skip", workers=1)
            assert (len(shards(cut)) > 10) == (unit < 1000)
            assert table(cut).equals(table(whole))
            same = (whole.path / "scheme.json").read_bytes()
            assert (cut.path / "scheme.json").read_bytes() == same
            rejected = sorted(cut.path.glob("rejected/rejected-*.jsonl"))
            assert [one.read_bytes() for one in rejected] == [kept]
            with pytest.raises(DataError, match=r"a\.jsonl:43: "):
                encode(store, path, scheme="xval", workers=1)


def test_parquet_rows_ignore_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"wind {n}" for n in range(50)]}), path, row_group_size=7)
    for unit in (1, 1000, 1 << 30):
        monkeypatch.setattr(inputs_module, "UNIT", unit)
        artifact = encode(Store(tmp_path / str(unit)), path, workers=1)
        assert len(shards(artifact)) == {1: 8, 1000: len(shards(artifact)), 1 << 30: 1}[unit]
        assert table(artifact)["id"].to_pylist() == [f"0:{n}" for n in range(50)], unit
        assert [row["numbers"] for row in rows(artifact)] == [[float(n)] for n in range(50)], unit


# --- memory ------------------------------------------------------------------------------------


def peak_of(command: list[str]) -> int:
    """Return the peak proportional set size of a command and its children, in bytes."""
    psutil = pytest.importorskip("psutil")
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        parent = psutil.Process(running.pid)
        while running.poll() is None:
            try:
                family = [parent, *parent.children(recursive=True)]
                peak = max(peak, sum(one.memory_full_info().pss for one in family))
            except psutil.Error:
                pass  # a process ended meanwhile
            time.sleep(0.02)
        assert running.stderr is not None
        assert running.returncode == 0, running.stderr.read().decode()
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_a_line_of_100_mb_stays_below_1_gib(tmp_path: Path, scheme: str) -> None:
    rng = random.Random(1)
    orbit = json.dumps({"x": [rng.random() * 10 for _ in range(5000)]})
    text = orbit * (100_000_000 // len(orbit))
    path = write(tmp_path / "big.jsonl", [{"text": text}])
    program = "from numtok.cli.main import main; main()"
    command = [sys.executable, "-c", program, "--store", str(tmp_path / "store"), "encode"]
    peak = peak_of([*command, "--scheme", scheme, str(path)])
    (artifact,) = Store(tmp_path / "store").artifacts()
    assert artifact.manifest.counts["numbers"] == text.count(".")
    assert peak < 1 << 30, f"{peak / 2**20:.0f} MiB"


# --- versions and errors -----------------------------------------------------------------------


def test_numbers_that_the_normalisation_flushes_to_zero_are_counted(tmp_path: Path) -> None:
    path = texts(tmp_path / "a.jsonl", "1e300 and 1e-30 and 0")
    assert encode(Store(tmp_path), path, scheme="xval").manifest.counts["positive_underflow"] == 1
    with pytest.raises(DataError, match=r"a\.jsonl:1: number 1 \(1e-30\) .*positive underflow"):
        encode(Store(tmp_path), path, scheme="xval", on_clip="error")


def test_what_cannot_be_encoded_and_what_can(tmp_path: Path) -> None:
    path, store = texts(tmp_path / "a.jsonl", "1 2"), Store(tmp_path / "artifacts")
    made = encode(store, path)
    shard = made.path / "train-00000.parquet"
    assert encode(store, tmp_path, name="again").manifest.counts["rows"] == 1
    bytes_ = encode(store, f"test={path}", text_tokenizer="bytes")  # needs no train rows
    assert bytes_.manifest.counts["rows_test"] == 1
    refused: list[tuple[type[NumtokError], str, tuple[object, ...], dict[str, Any]]] = [
        (DataError, "is already encoded", (shard,), {}),
        (UsageError, "^expected unencoded data, but .* is encoded data", (made.path,), {}),
        (UsageError, "is given twice", (path, tmp_path / "." / "a.jsonl"), {}),
        (UsageError, "--split has no effect", (f"train={path}",), {"split": "test=0.1"}),
    ]
    for kind, told, inputs, options in refused:
        with case(told), pytest.raises(kind, match=told):
            encode(store, *inputs, **options)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(NegativeVerdict, match=r"differs in train-00000\.parquet"):
        encode(store, path, force=True)
    (made.path / "scheme.json").write_bytes(b'{"format": 1}')
    with pytest.raises(StoreError, match=r"scheme\.json is damaged"):
        encode(store, path, like=made.ref)


def test_row_groups_are_small_whatever_the_scheme_makes_of_a_batch(tmp_path: Path) -> None:
    rows = [{"text": "1 2 3 4 5 6 7 8 9 " * 50} for _ in range(6000)]
    made = encode(Store(tmp_path), write(tmp_path / "a.jsonl", rows), scheme="p10")
    metadata = pq.ParquetFile(made.path / "train-00000.parquet").metadata
    sizes = [metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups)]
    assert len(sizes) > 2
    assert max(sizes) < 32 << 20


def test_a_parquet_map_without_targets_is_no_bad_row(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.list_(pa.int64())))
    targets = pa.array([[("x", [[0, 1]])], []], kind)
    table = pa.table({"text": ["1", "2"], "targets": targets})
    pq.write_table(table, tmp_path / "a.parquet")
    made = encode(Store(tmp_path), tmp_path / "a.parquet")
    assert made.manifest.counts["rows"] == 2


def test_digits_in_no_number_are_counted_and_told(tmp_path: Path, numtok: Shell) -> None:
    path = str(texts(tmp_path / "a.jsonl", *(f"T{n}.5 at {n % 7}" for n in range(100, 400))))
    ran = numtok("encode", "--scheme", "xval", path)
    told = " ".join(ran.err.split())
    assert "1,200 of 1,500 digits (80%) are not part of any number, in words such as T0.0 (" in told
    again = numtok("encode", "--scheme", "xval", path)  # already encoded
    assert "1,200 of 1,500 digits (80%)" in " ".join(again.err.split())
    shown = json.loads(numtok("encode", "--scheme", "xval", path, "--json").out)
    assert shown["unread_digits"] == {"digits": 1500, "unread": 1200, "shapes": {"T0.0": 300}}
    all_read = str(texts(tmp_path / "b.jsonl", "1.5 and 2"))
    assert "not part of any number" not in numtok("encode", "--scheme", "xval", all_read).err
