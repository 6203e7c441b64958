"""What every task must do, whichever it is; a new file in numtok/tasks/ is tested by its name."""

import hashlib
from dataclasses import fields, is_dataclass, replace

import msgspec
import pyarrow as pa
import pytest

from numtok.codec import Texts
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.records import Row
from numtok.registry import settings_of, spec_of
from numtok.tasks.base import SHARES, TASKS, Split

TRAIN = Split("train", 100)  # with all places: the sample that digests are taken over
TEST = Split("test", 60, SHARES - SHARES // 10, SHARES)
REST = Split("rest", 300, 0, SHARES - SHARES // 10)


def rows(content: bytes) -> list[Row]:
    return msgspec.json.Decoder(Row).decode_lines(content)


@pytest.mark.parametrize("name", TASKS.names())
def test_a_task_gives_what_its_revision_gave(name: str) -> None:
    task = TASKS.build(name)
    digest = hashlib.sha256(task.unit(0, TRAIN, 0)).hexdigest()[:16]
    assert digest == task.digest, "raise the task's revision"


@pytest.mark.parametrize("name", TASKS.names())
def test_a_unit_depends_on_nothing_but_seed_split_and_index(name: str) -> None:
    long = replace(REST, rows=TASKS.build(name).unit_rows + 10)
    first = [TASKS.build(name).unit(3, long, index) for index in (0, 1)]
    again = [TASKS.build(name).unit(3, long, index) for index in (1, 0)]
    assert first == again[::-1]
    assert TASKS.build(name).unit(4, long, 1) != first[1]
    assert [part.count(b"\n") for part in first] == [TASKS.build(name).unit_rows, 10]


@pytest.mark.parametrize("name", TASKS.names())
def test_rows_are_those_of_records_and_no_text_or_id_comes_twice(name: str) -> None:
    task = TASKS.build(name)
    made = [row for split in (TEST, REST) for row in rows(task.unit(0, split, 0))]
    assert len(made) == TEST.rows + REST.rows
    assert len({row.text for row in made}) == len({row.id for row in made}) == len(made)
    assert all(isinstance(row.id, str) and row.split is None for row in made)


@pytest.mark.parametrize("name", TASKS.names())
def test_every_target_is_exactly_one_number(name: str) -> None:
    made = rows(TASKS.build(name).unit(0, REST, 0))
    texts = Texts.of(pa.array([row.text for row in made], pa.string()))
    starts, ends, counts = (found.tolist() for found in scan(*texts, NumeralPolicy()))
    place = 0
    for row, offset, count in zip(made, texts.rows.tolist(), counts, strict=False):
        found = {
            (len(row.text.encode()[: start - offset].decode()), end - start)
            for start, end in zip(starts[place:][:count], ends[place:][:count], strict=True)
        }
        place += count
        assert row.targets
        for start, end in (span for spans in row.targets.values() for span in spans):
            assert (start, end - start) in found, row.text


@pytest.mark.parametrize("name", TASKS.names())
def test_every_setting_has_help_and_is_read_back(name: str) -> None:
    task = TASKS.build(name)
    assert is_dataclass(task)
    assert all(field.metadata["help"].endswith(".") for field in fields(task))
    assert TASKS.build(spec_of(task)) == TASKS.from_settings(settings_of(task)) == task
