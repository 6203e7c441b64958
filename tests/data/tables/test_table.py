"""Files of the table artifact: reading returns what was written, and damage is named."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.reading.arrow import nullable
from numtok.data.tables.table import (
    Feature,
    TableFile,
    read_table,
    rows_name,
    write_rows,
    write_table_file,
)
from numtok.errors import StoreError, UsageError
from numtok.files import Sink
from tests.cases import case
from tests.messages import Says

FILE = TableFile(
    target="y",
    features=[Feature("a", "number"), Feature("colour", "category"), Feature("b", "number")],
    splits=["split_0", "split_1"],
    notes=["the target is made up"],
)


def rows(a: list[float], colour: list[str | None], y: list[float]) -> pa.Table:
    nan = [float("nan")] * len(a)
    return pa.table(
        [
            nullable(np.array(a)),
            pa.array(colour, pa.string()),
            nullable(np.array(nan)),
            nullable(np.array(y)),
            pa.array((["train", "test"] * len(a))[: len(a)], pa.string()),
            pa.array((["test", None] * len(a))[: len(a)], pa.string()),
        ],
        schema=FILE.schema,
    )


def written(folder: Path) -> list[str]:
    """Write a table of five rows in two files."""
    write_table_file(folder, FILE)
    for k, part in enumerate(
        [rows([1, 2, 3], ["r", None, ""], [7, 8, 9]), rows([4, 5], ["r"] * 2, [0, 1])]
    ):
        with Sink(folder / rows_name(k)) as sink:
            write_rows(sink, part)
    return [rows_name(0), rows_name(1)]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    names = written(tmp_path)
    assert pq.read_table(tmp_path / names[0]).column("b").null_count == 3  # NaN
    table = read_table(tmp_path, names)
    assert table.file == FILE
    assert len(table) == 5
    assert np.array_equal(table.numbers[:, 0], [1, 2, 3, 4, 5])
    assert np.isnan(table.numbers[:, 1]).all()
    assert [column.to_pylist() for column in table.categories] == [["r", None, "", "r", "r"]]
    assert np.array_equal(table.target, [7, 8, 9, 0, 1])
    splits = {("train", 0): [0, 2, 3], ("test", 0): [1, 4], ("test", 1): [0, 2, 3]}
    assert {key: table.split(*key).tolist() for key in splits} == splits


def test_a_split_or_fold_that_is_not_there_is_named(tmp_path: Path, says: Says) -> None:
    for name, fold, parts in [
        ("tst", 0, ["'tst'", "Did you mean 'test'? Known: test, train"]),
        ("train", 1, ["'train'", "Known: test"]),
        ("train", 2, ["'2'", "Known: 0, 1"]),
        ("train", -1, ["'-1'", "Did you mean '1'? Known: 0, 1"]),
    ]:
        with case(name, fold, parts):
            table = read_table(tmp_path, written(tmp_path))
            with says.raises(UsageError, *parts):
                table.split(name, fold)


def test_the_bytes_depend_on_the_rows_alone() -> None:
    whole, parts = io.BytesIO(), io.BytesIO()
    one = rows([1, 2, 3], ["r", None, "g"], [7, 8, 9])
    write_rows(whole, one)
    write_rows(parts, pa.concat_tables([one.slice(0, 1), one.slice(1)]))
    assert whole.getvalue() == parts.getvalue()


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^two columns have the same name$"):
        TableFile(target="y", features=[Feature("y", "number")], splits=[], notes=[])


def test_a_damaged_file_of_rows_is_named(tmp_path: Path) -> None:
    names = written(tmp_path)
    data = bytearray((tmp_path / names[1]).read_bytes())
    data[8] ^= 255
    (tmp_path / names[1]).write_bytes(data)
    with pytest.raises(
        StoreError,
        match=r"rows-00001\.parquet cannot be read: .*[^.]\. List damaged files",
    ):
        read_table(tmp_path, names)


def test_rows_of_other_columns_are_refused(tmp_path: Path) -> None:
    names = written(tmp_path)
    with Sink(tmp_path / names[0]) as sink:
        write_rows(sink, pa.table({"a": [1.0]}))
    with pytest.raises(StoreError, match=r"its columns differ from table\.json"):
        read_table(tmp_path, names)


def test_a_missing_target_is_damage(tmp_path: Path) -> None:
    names = written(tmp_path)
    with Sink(tmp_path / names[0]) as sink:
        write_rows(sink, rows([1], ["r"], [float("nan")]))
    with pytest.raises(
        StoreError,
        match=r"rows-00000\.parquet cannot be read: a value of its column 'y' is missing\. ",
    ):
        read_table(tmp_path, names)


def test_another_format_is_named(tmp_path: Path) -> None:
    names = written(tmp_path)
    content = json.loads((tmp_path / "table.json").read_text())
    (tmp_path / "table.json").write_text(json.dumps(content | {"format": 2}))
    with pytest.raises(StoreError, match=r"table\.json has format 2; this numtok reads up to 1"):
        read_table(tmp_path, names)


@pytest.mark.parametrize(
    "content",
    [b"{", b'{"format":1}', b'{"format":1,"target":"y","features":[],"splits":[],"more":1}'],
)
def test_a_damaged_table_file_is_named(tmp_path: Path, content: bytes) -> None:
    names = written(tmp_path)
    (tmp_path / "table.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"table\.json is damaged: .*`numtok verify`"):
        read_table(tmp_path, names)
