"""A split in memory equals its shards, and errors name damaged files."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok import files
from numtok.data.reading import units
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit, bytes_of
from numtok.encoding.schema import SCHEME_FILE, TokenIds
from numtok.errors import DataError, StoreError
from numtok.stages.encode import Config, run
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.messages import Says

TEXTS = ["add 1 + 22 = 23", "", "nothing", "-4.5 and 0.25 and 7e3 of it", "8", "x 9 y -0.125"]
ROWS: list[dict[str, Any]] = [
    {
        "text": TEXTS[0],
        "targets": {"sum": [[13, 15]], "terms": [[4, 5], [8, 10]]},
        "answer_start": 13,
        "group": {"op": "+", "digits": 2},
    },
    {"text": TEXTS[1]},
    {"id": "named", "text": TEXTS[2], "group": {"op": None}},
    {"text": TEXTS[3], "group": {"digits": 3}},
    {"text": TEXTS[4], "targets": {"it": [[0, 1]]}, "answer_start": 0},
    {"text": TEXTS[5], "targets": {"y": [[6, 12]]}},
]
SCHEMES = ("digits", "fp15", "p1000", "xval")


def encoded(folder: Path, scheme: str) -> tuple[Artifact, list[Path]]:
    """Encode the rows; return the artifact and its shards."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    config = Config((str(path),), scheme=scheme, text_tokenizer="bytes", workers=1)
    artifact = run(config, Store(folder / "artifacts"), lambda *_: None).artifact
    assert artifact is not None
    return artifact, sorted(artifact.path.glob("train-*.parquet"))


def read_rows(shards: list[Path], spill: Path | None = None) -> EncodedSplit:
    """Read shards of :func:`encoded` like a stage."""
    return EncodedSplit.read(shards, ids_of(shards), spill)


def ids_of(shards: list[Path]) -> TokenIds:
    return Codec.read(shards[0].parent / SCHEME_FILE).ids


@pytest.mark.integration
@pytest.mark.parametrize("unit", [1, 1 << 20])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_are_those_of_the_shards_however_many_there_are_in_memory_and_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, unit: int
) -> None:
    monkeypatch.setattr(units, "UNIT", unit)
    monkeypatch.setattr(files, "PIECE", unit)
    _, shards = encoded(tmp_path, scheme)
    assert len(shards) == (len(ROWS) if unit == 1 else 1)
    read = read_rows(shards)
    rows = [row for shard in shards for row in pq.read_table(shard).to_pylist()]
    assert len(read) == len(rows) == len(ROWS)
    assert read.ids.to_pylist() == [row["id"] for row in rows]
    assert read.lengths.tolist() == [len(row["tokens"]) for row in rows]
    assert read.longest == max(len(row["tokens"]) for row in rows)
    assert (read.channel is not None) == (scheme == "xval")
    for index, row in enumerate(rows):
        tokens = slice(*read.token_rows[index : index + 2])
        numbers = slice(*read.number_rows[index : index + 2])
        assert read.tokens[tokens].tolist() == row["tokens"]
        for name in ("numbers", "number_start", "number_length", "channel"):
            if name in row:
                assert getattr(read, name)[numbers].tolist() == row[name]

    spill = tmp_path / "spill"
    spill.mkdir()
    mapped = read_rows(shards, spill)
    for name in ("tokens", "numbers", "number_start", "number_length", "channel"):
        ours, theirs = getattr(mapped, name), getattr(read, name)
        if theirs is None:
            assert ours is None
            continue
        assert isinstance(ours, np.memmap) and ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    size = sum(path.stat().st_size for path in spill.iterdir())
    assert bytes_of(shards, ids_of(shards)) >= size > 0
    assert mapped.token_rows.tolist() == read.token_rows.tolist()
    assert mapped.ids == read.ids


def test_targets_answers_and_groups_are_those_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "UNIT", 1)
    monkeypatch.setattr(files, "PIECE", 1)
    read = read_rows(encoded(tmp_path, "p1000")[1])
    assert read.numbers.tolist() == [1, 22, 23, -4.5, 0.25, 7000, 8, 9, -0.125]
    assert read.number_rows.tolist() == [0, 3, 3, 3, 6, 7, 9]
    assert read.numbers[read.targets].tolist() == [23, 1, 22, 8, -0.125]
    assert read.target_row.tolist() == [0, 0, 0, 4, 5]
    assert read.target_name.to_pylist() == ["sum", "terms", "terms", "it", "y"]
    assert read.target_literal.to_pylist() == ["23", "1", "22", "8", "-0.125"]
    assert read.answer_start.tolist() == [read.number_start[2], -1, -1, -1, 0, -1]
    assert {name: column.to_pylist() for name, column in read.groups.items()} == {
        "op": ["+", None, None, None, None, None],
        "digits": ["2", None, None, "3", None, None],
    }


def test_columns_have_the_types_that_are_promised(tmp_path: Path) -> None:
    read = read_rows(encoded(tmp_path, "xval")[1])
    assert read.tokens.dtype == np.uint16
    assert {read.token_rows.dtype, read.number_rows.dtype, read.targets.dtype} == {np.dtype("i8")}
    assert {read.number_start.dtype, read.number_length.dtype} == {np.dtype("i4")}
    assert read.numbers.dtype == np.float64
    assert read.channel is not None
    assert read.channel.dtype == np.float32


def test_a_row_without_numbers_alone_has_empty_columns(tmp_path: Path) -> None:
    _, (shard,) = encoded(tmp_path, "xval")
    pq.write_table(pq.read_table(shard).slice(1, 2), shard)
    read = read_rows([shard])
    assert read.lengths.tolist() == [0, len(TEXTS[2])]
    assert read.number_rows.tolist() == [0, 0, 0]
    assert len(read.numbers) == len(read.targets) == len(read.target_row) == 0
    assert read.channel is not None
    assert len(read.channel) == 0


def test_rows_without_numbers_can_be_mapped(tmp_path: Path) -> None:
    _, (shard,) = encoded(tmp_path, "xval")
    pq.write_table(pq.read_table(shard).slice(1, 2), shard)
    (tmp_path / "spill").mkdir()
    mapped = read_rows([shard], tmp_path / "spill")
    assert mapped.channel is not None
    assert (len(mapped), len(mapped.numbers), len(mapped.channel)) == (2, 0, 0)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    _, shards = encoded(tmp_path, "p1000")
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(files.system, "write", full)
    with pytest.raises(StoreError) as caught:
        read_rows(shards, tmp_path / "spill")
    assert str(caught.value).startswith(f"cannot write {tmp_path}/spill/")
    assert "No space left on device" in str(caught.value)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def in_a_page(path: Path) -> None:
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    (tokens,) = [one for one in columns if one.path_in_schema == "tokens.list.element"]
    flip(path, tokens.data_page_offset + tokens.total_compressed_size - 9)


def in_a_number(path: Path) -> None:
    """Change a number in an uncompressed file, so that only its checksum reveals the change."""
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    pq.write_table(pq.read_table(path), path, write_page_checksum=True, **plain)
    flip(path, path.read_bytes().index(np.float64(22).tobytes()))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped byte in a page": in_a_page,
    "another number in a page": in_a_number,
    "a flipped byte at the end": lambda path: flip(path, -1),
    "a shard cut short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "an empty file": lambda path: path.write_bytes(b""),
    "a shard that is gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_shard_is_named_as_such(tmp_path: Path, damage: str) -> None:
    _, (shard,) = encoded(tmp_path, "p1000")
    DAMAGE[damage](shard)
    with pytest.raises(StoreError) as caught:
        read_rows([shard])
    assert str(caught.value).startswith(f"{shard} cannot be read: ")
    assert "`numtok verify`" in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("shards", [0, 1, 2])
def test_a_split_without_rows_is_refused(tmp_path: Path, shards: int, says: Says) -> None:
    _, (shard,) = encoded(tmp_path, "p1000")
    pq.write_table(pq.read_table(shard).slice(0, 0), shard)
    with pytest.raises(DataError) as caught:
        EncodedSplit.read([shard] * shards, ids_of([shard]))
    told = shard if shards else "no shard"
    says(caught, f"({told})", "numtok show")


# Column of a shard, an edit of its first row, and part of the expected message.
WRONG: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "more starts than numbers": (
        "number_start",
        lambda one: [*one, 0],
        "the lengths of 'number_start' and 'numbers' differ",
    ),
    "fewer numbers than starts": ("numbers", lambda one: one[1:], "the lengths of"),
    "fewer names than targets": ("target_name", lambda one: one[1:], "the lengths of"),
    "a start below 0": ("number_start", lambda one: [-1, *one[1:]], "a number lies outside"),
    "a length of 0": ("number_length", lambda one: [0, *one[1:]], "a number lies outside"),
    "a length of 2^31 - 1": ("number_length", lambda one: [*one[:-1], 2**31 - 1], "a number lies"),
    "numbers out of order": ("number_start", lambda one: one[::-1], "a number lies outside"),
    "numbers that overlap": (
        "number_length",
        lambda one: [one[0] + 5, *one[1:]],
        "a number lies outside",
    ),
    "a token beyond the vocabulary": (
        "tokens",
        lambda one: [*one[:-1], 65_535],
        "a token is not in the vocabulary",
    ),
    "a special token": ("tokens", lambda one: [0, *one[1:]], "a token is not in"),
    "a token of a number in the text": ("tokens", lambda one: [3, *one[1:]], "a token is not in"),
    "a target below 0": ("target_index", lambda one: [*one[:-1], -1], "a target is not a number"),
    "a target beyond the row": ("target_index", lambda one: [*one[:-1], 3], "a target is not"),
    "a literal that is no number": ("target_literal", lambda one: ["[NUM]", *one[1:]], "literal"),
    "an answer before the row": ("answer_start", lambda one: -5, "begins outside its row"),
    "an answer behind the row": ("answer_start", lambda one: 1000, "begins outside its row"),
    "an answer within a number": ("answer_start", lambda one: one + 1, "begins within a number"),
    "no names": ("target_name", lambda one: None, "'target_name' is missing"),
}


def change(shard: Path, name: str, edit: Callable[[Any], Any]) -> None:
    """Change a column's value in the first row."""
    table = pq.read_table(shard)
    field = table.schema.field(name)
    first, *rest = table.column(name).to_pylist()
    column = pa.array([edit(first), *rest], field.type)
    pq.write_table(table.set_column(table.column_names.index(name), field, column), shard)


def test_rows_that_do_not_hold_together_are_refused(tmp_path: Path) -> None:
    _, (shard,) = encoded(tmp_path, "p1000")
    whole = shard.read_bytes()
    for case, (name, edit, why) in WRONG.items():
        shard.write_bytes(whole)
        change(shard, name, edit)
        with pytest.raises(StoreError) as caught:
            read_rows([shard])
        assert str(caught.value).startswith(f"{shard} cannot be read: "), case
        assert why in str(caught.value), case


def test_a_value_beside_a_number_is_finite(tmp_path: Path) -> None:
    _, (shard,) = encoded(tmp_path, "xval")
    change(shard, "channel", lambda one: [float("nan"), *one[1:]])
    with pytest.raises(StoreError, match="channel value is not finite"):
        read_rows([shard])


def test_shards_of_one_split_have_one_schema(tmp_path: Path) -> None:
    _, (shard,) = encoded(tmp_path, "p1000")
    other = shard.with_name("train-00001.parquet")
    pq.write_table(pq.read_table(shard).drop(["group_op"]), other)
    with pytest.raises(
        StoreError, match=r"train-00001\.parquet .* columns differ from those of train-00000"
    ):
        read_rows([shard, other])


# --- a sample of the rows ----------------------------------------------------------------------


def test_rows_taken_are_those_of_the_whole(tmp_path: Path) -> None:
    _, shards = encoded(tmp_path, "xval")
    whole, rows = read_rows(shards), np.array([0, 3, 5])
    some = whole.take(rows)
    assert some.ids.to_pylist() == [whole.ids[row].as_py() for row in (0, 3, 5)]
    np.testing.assert_array_equal(some.lengths, whole.lengths[rows])
    numbers = [1, 22, 23, -4.5, 0.25, 7e3, 9, -0.125]
    assert some.numbers.tolist() == numbers and some.channel is not None
    np.testing.assert_allclose(some.channel / some.channel[0], numbers, rtol=1e-6)
    assert some.numbers[some.targets].tolist() == [23, 1, 22, -0.125]
    assert some.target_row.tolist() == [0, 0, 0, 2]
    assert some.target_name.to_pylist() == ["sum", "terms", "terms", "y"]
    begin, end = whole.token_rows[3:5].tolist()
    np.testing.assert_array_equal(
        some.tokens[some.token_rows[1] : some.token_rows[2]], whole.tokens[begin:end]
    )
    assert whole.take(np.arange(len(whole))) is whole


def many(folder: Path, scheme: str, cluster: int = 0) -> EncodedSplit:
    """Return 400 rows in order of their numbers; ``cluster`` is the number of rows per cluster."""
    path = folder / "many.jsonl"
    rows = [
        {"id": f"r{k}", "text": f"is {k}"} | ({"cluster": f"c{k // cluster}"} if cluster else {})
        for k in range(400)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = Config((str(path),), scheme=scheme, text_tokenizer="bytes", workers=1)
    artifact = run(config, Store(folder / "artifacts"), lambda *_: None).artifact
    assert artifact is not None
    return read_rows(sorted(artifact.path.glob("train-*.parquet")))


def test_a_sample_of_ordered_rows_is_of_them_all_and_one_for_all_schemes(tmp_path: Path) -> None:
    drawn = {scheme: many(tmp_path, scheme).drawn(100) for scheme in ("xval", "digits")}
    np.testing.assert_array_equal(drawn["xval"], drawn["digits"])
    rows = drawn["xval"]
    assert len(np.unique(rows)) == 100 and (np.diff(rows) > 0).all()
    assert abs(rows.mean() - 199.5) < 4 * 400 / 12**0.5 / 10  # four standard errors
    whole = many(tmp_path, "xval")
    assert whole.drawn(None).tolist() == whole.drawn(1000).tolist() == list(range(400))


def test_clusters_stay_whole_in_a_sample(tmp_path: Path) -> None:
    split = many(tmp_path, "xval", cluster=7)
    for wanted in (20, 50, 3):
        rows = split.drawn(wanted)
        sizes = np.unique(rows // 7, return_counts=True)[1]
        full = np.where(np.unique(rows // 7) == 400 // 7, 400 % 7, 7)
        np.testing.assert_array_equal(sizes, full)
        assert len(rows) <= max(wanted, 7) and len(rows) > wanted - 7
