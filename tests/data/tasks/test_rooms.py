"""``numtok gen rooms``."""

import json
from decimal import Decimal

from numtok.data.tasks.base import SHARES, TaskSplit
from numtok.data.tasks.rooms import Rooms
from numtok.errors import UsageError
from tests.messages import Says


def rows(task: Rooms, split: TaskSplit) -> list[dict[str, object]]:
    units = range(-(-split.rows // task.unit_rows))
    lines = b"".join(task.unit(3, split, index).rows for index in units).splitlines()
    return [json.loads(line) for line in lines]


def sides_and_area(row: dict[str, object]) -> tuple[Decimal, Decimal, Decimal]:
    words = str(row["text"]).split()
    return Decimal(words[3]), Decimal(words[6]), Decimal(words[12])


def test_areas_are_exact_and_marked_as_targets() -> None:
    for row in rows(Rooms(), TaskSplit("train", 4095)):
        first, second, area = sides_and_area(row)
        assert first * second == area
        start = str(row["text"]).rindex(str(area))
        assert row["targets"] == {"area": [[start, start + len(str(area))]]}


def test_no_room_is_in_two_splits_even_with_its_sides_swapped() -> None:
    half = SHARES // 2
    splits = [TaskSplit("train", 2000, 0, half), TaskSplit("test", 2000, half, SHARES)]
    rooms = [
        {frozenset(sides_and_area(row)[:2]) for row in rows(Rooms(), split)} for split in splits
    ]
    assert [len(each) for each in rooms] == [2000, 2000]
    assert not rooms[0] & rooms[1]


def test_more_rooms_need_longer_sides(says: Says) -> None:
    split = TaskSplit("train", 5000)
    with says.raises(UsageError, "5,000", "--longest"):
        Rooms().unit(0, split, 0)
    assert len(rows(Rooms(longest=30.0), split)) == 5000
    assert Rooms().possible == 4095
