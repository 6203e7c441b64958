"""Planning several input files in parallel gives the same units as in one process."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.reading import units
from numtok.data.reading.batches import ReadingOptions
from numtok.data.reading.sources import InputFile
from numtok.errors import DataError
from numtok.store.engines.local import Workers

pytestmark = pytest.mark.integration


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[InputFile]:
    """Write seven files, the longer of them larger than a unit."""
    found = []
    for number in range(7):
        rows = b"".join(b'{"text": "%d and %d"}\n' % (number, k) for k in range(5 + number))
        name = f"{number}.jsonl" + (".gz" if number % 3 == 1 else "")
        path = tmp_path / name
        path.write_bytes(gzip.compress(rows) if name.endswith(".gz") else rows)
        found.append(InputFile(path, "train" if number == 2 else None, name))
    monkeypatch.setattr(units, "UNIT", max(one.size for one in found) * 2 // 3)
    return found


def test_workers_plan_what_one_process_plans(sources: list[InputFile]) -> None:
    alone: list[tuple[int, int]] = []
    side_by_side: list[tuple[int, int]] = []
    planned = units.plan(sources, lambda *facts: alone.append(facts), Workers(1))
    with Workers(2) as workers:
        assert units.plan(sources, lambda *facts: side_by_side.append(facts), workers) == planned
    assert side_by_side == alone
    assert max(part.begin for unit in planned[0] for part in unit.parts) > 0  # one was cut


def test_the_first_file_that_cannot_be_read_is_named(sources: list[InputFile]) -> None:
    for number in (3, 5):
        sources[number].path.write_bytes(b"")  # type: ignore[union-attr]
    with Workers(2) as workers, pytest.raises(DataError, match=r"3\.jsonl is empty"):
        units.plan(sources, lambda *facts: None, workers)


def test_a_first_look_reads_the_rows_that_are_planned_later(
    sources: list[InputFile], tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": [f"{k} of 99" for k in range(99)]}), path, row_group_size=9)
    every = [*sources, InputFile(path, None, "rows.parquet")]

    def texts(some: Iterable[units.Unit], how: ReadingOptions) -> list[str]:
        batches = (batch for unit in some for batch in units.read(unit, how))
        return [text for batch in batches for text in batch.rows.texts.to_pylist()]

    planned, _ = units.plan(every, lambda *facts: None, Workers(1))
    expected = texts(planned, ReadingOptions())
    assert texts(units.unread(every), ReadingOptions(checked=False)) == expected
