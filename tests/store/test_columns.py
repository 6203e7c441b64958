"""Reading Parquet files: files with unexpected content are rejected before memory is allocated."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.errors import StoreError
from numtok.store.columns import check_nulls, check_schema, opened, read_columns
from tests.cases import case

WANTED = pa.schema({"id": pa.string(), "values": pa.list_(pa.float64())})
WHOLE = pa.table({"id": ["a", "b"], "values": [[1.0], []]}, schema=WANTED)


def read(path: Path) -> pa.Table:
    found = read_columns(path, lambda there: check_schema(path, there, WANTED))
    check_nulls(path, found, lambda name: False)
    return found


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    pq.write_table(WHOLE, tmp_path / "whole.parquet")
    assert read(tmp_path / "whole.parquet") == WHOLE


DAMAGED: dict[str, tuple[pa.Table, str]] = {
    "a column missing": (WHOLE.drop(["id"]), "it lacks the column 'id'"),
    "a column doubled": (WHOLE.append_column("id", WHOLE["id"]), "the column 'id' 2 times"),
    "a column more": (WHOLE.append_column("x", WHOLE["id"]), "unexpected column 'x'"),
    "another type": (
        WHOLE.set_column(0, "id", [[1, 2]]),
        "its column 'id' is int64, not string",
    ),
    "another type inside": (
        WHOLE.set_column(1, "values", [[["a"], []]]),
        "its column 'values' is list",
    ),
    "a null": (WHOLE.set_column(0, "id", [["a", None]]), "a value of its column 'id' is missing"),
    "a null inside": (
        WHOLE.set_column(1, "values", [[[None, 1.0], []]]),
        "a value of its column 'values' is missing",
    ),
    "no text": (
        WHOLE.set_column(0, "id", pa.array([b"\xff", b"b"]).view(pa.string())),
        "Invalid UTF8",
    ),
}


def test_columns_are_compared_with_what_they_must_be(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    for what, (table, why) in DAMAGED.items():
        pq.write_table(table, path)
        with case(what):
            with pytest.raises(StoreError) as found:
                read(path)
            assert str(found.value).startswith(f"{path} cannot be read: ")
            assert why in str(found.value)
            assert "\n" not in str(found.value)


@pytest.mark.integration
def test_a_small_file_that_says_it_is_of_billions_of_values_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "claims.parquet"
    rows = 40_000_000
    table = pa.table({"a": pa.nulls(rows, pa.bool_())})
    pq.write_table(table, path, row_group_size=rows, max_rows_per_page=rows, write_batch_size=rows)
    assert path.stat().st_size < 1 << 14
    with pytest.raises(StoreError, match=r"claims [0-9,]+ bytes"), opened(path):
        pass


def test_what_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "text.parquet").write_text("text")
    for name in ("folder.parquet", "text.parquet", "nothing.parquet"):
        with pytest.raises(StoreError, match=name), opened(tmp_path / name):
            pass
