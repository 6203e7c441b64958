"""Rows as columns: the fast path returns the same as the path by records, or declines."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.data.reading.json_lines import row_decoder
from numtok.data.reading.lines import FIELDS, find_lines
from numtok.data.reading.rows import (
    NO_ANSWER,
    NO_TARGETS,
    Categories,
    RowColumns,
    RowOffsets,
    problem_in,
)
from numtok.row import Row
from tests.cases import case

# --- both ways ---------------------------------------------------------------------------------


def quickly(block: bytes, text_field: str = "text") -> RowColumns | None:
    lines = find_lines(block, text_field)
    assert not lines.suspicious.any()
    return RowColumns.from_values(block, lines, RowOffsets(7, lines.starts))


def by_records(block: bytes, text_field: str = "text") -> RowColumns:
    decoder = row_decoder(Row, text_field)
    records = [decoder.decode(line) for line in block.split(b"\n") if line.strip()]
    return RowColumns.from_records(records, RowOffsets(7, find_lines(block).starts))


def plain(rows: RowColumns) -> dict[str, Any]:
    """Return every column as lists of Python values."""
    targets = rows.targets or NO_TARGETS

    def words(categories: Categories | None) -> list[Any]:
        if categories is None:
            return [None] * len(rows)
        found: list[Any] = categories.column().to_pylist()
        assert found == [categories.at(row) for row in range(len(categories.codes))]
        return found

    return {
        "ids": rows.ids.to_pylist(),
        "texts": rows.texts.to_pylist(),
        "targets": [
            targets.rows.tolist(),
            words(targets.names),
            targets.starts.tolist(),
            targets.ends.tolist(),
        ],
        "labels": words(rows.labels),
        "answers": [None] * len(rows)
        if rows.answer_starts is None
        else [None if one == NO_ANSWER else one for one in rows.answer_starts.tolist()],
        "groups": {name: words(group) for name, group in sorted((rows.groups or {}).items())},
        "splits": words(rows.splits),
        "clusters": words(rows.clusters),
    }


def block_of(rows: list[dict[str, Any]], **how: Any) -> bytes:
    return b"".join(json.dumps(row, **how).encode() + b"\n" for row in rows)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLACE = st.integers(-3, 10**17)
WORD = st.sampled_from(["a", "b c", "1", "é", 'quo"te', "back\\slash", ""])
SCALAR = st.one_of(WORD, st.integers(-5, 5), st.booleans(), st.none(), st.sampled_from([1.5, 2.0]))
FIELD = {
    "targets": st.none()
    | st.dictionaries(WORD.filter(lambda w: '"' not in w and "\\" not in w),
                      st.lists(st.tuples(PLACE, PLACE), max_size=3), max_size=3),
    "label": st.one_of(WORD, st.integers(-5, 5), st.none()),
    "answer_start": st.none() | PLACE,
    "group": st.none() | st.dictionaries(st.sampled_from(["task", "digits", "ü"]), SCALAR),
    "split": st.sampled_from(["train", "test", None]),
    "cluster": st.one_of(WORD, st.integers(-5, 5), st.none()),
    "other": st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(WORD, inner)),
}  # fmt: skip


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    ids = draw(st.sampled_from([None, st.integers(-(10**17), 10**17).filter(bool), TEXT]))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        row: dict[str, Any] = {"text": draw(TEXT)}
        if ids is not None:
            row["id"] = draw(ids)
        for name in draw(st.lists(st.sampled_from(list(FIELD)), unique=True)):
            row[name] = draw(FIELD[name])
        order = draw(st.permutations(list(row)))
        rows.append({name: row[name] for name in order})
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), ("  ,\t", " \t: ")]))
    # Keys with escapes are checked more closely, so none are written.
    return block_of(rows, separators=separators, ensure_ascii=False)


def has_escaped_key(block: bytes) -> bool:
    return bool(find_lines(block).suspicious.any())


@pytest.mark.integration
@given(blocks())
def test_both_ways_give_the_same_columns(block: bytes) -> None:
    if has_escaped_key(block):  # in "other"
        return
    rows = quickly(block)
    assert rows is not None
    assert plain(rows) == plain(by_records(block))


@pytest.mark.integration
@given(st.text(), st.booleans())
def test_any_text_comes_back(text: str, ascii_only: bool) -> None:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    rows = quickly(block_of([{"text": text}, {"text": "x"}], ensure_ascii=ascii_only))
    assert rows is not None and rows.texts.to_pylist() == [text, "x"]


def test_escapes_are_undone() -> None:
    for written, text in [
        (r"\"\\\/\b\f\n\r\t", '"\\/\b\f\n\r\t'),
        (r"\u00e9\u20AC\ud83d\ude00", "é€😀"),
        (r"é\u0000€😀", "é\0€😀"),
        (r"12345678\n12345678", "12345678\n12345678"),
    ]:
        with case(written, text):
            rows = quickly(f'{{"text":"{written}"}}\n'.encode())
            assert rows is not None and rows.texts.to_pylist() == [text]


def test_the_text_may_have_another_name() -> None:
    block = b'{"text": "no", "body": "yes", "deep": {"body": "no"}, "list": ["body", 1]}\n'
    rows = quickly(block, "body")
    assert rows is not None and rows.texts.to_pylist() == ["yes"]


def test_rows_without_an_id_are_called_by_their_place() -> None:
    block = block_of([{"text": "a"}, {"text": "b", "id": None}])
    for rows in (quickly(block), by_records(block)):
        assert rows is not None and rows.ids.to_pylist() == ["7:0", "7:14"]


def test_what_is_not_plain_is_left_to_the_other_way() -> None:
    fields = [
        *(
            '"label": 1.5',
            '"label": []',
            '"split": 1',
            '"answer_start": 1.5',
            '"answer_start": "1"',
        ),
        *('"group": []', '"group": {"a": []}', '"group": {"a": {}}', '"targets": []'),
        *('"targets": {"a": {}}', '"targets": {"a": null}', '"targets": {"a": [1, 2]}'),
        *(
            '"targets": {"a": [[1, 2, 3]]}',
            '"targets": {"a": [[1]]}',
            '"targets": {"a": [[1, 2.5]]}',
        ),
        *('"targets": {"a": [["1", 2]]}', '"targets": {"a": [[1, 2], 3]}', '"id": -0', '"id": 1.0'),
        *('"id": 1234567890123456789', '"id": true'),
    ]
    for lines in [
        ['{"id": 1, "text": "a"}', '{"id": "1", "text": "a"}'],  # ids of two kinds
        ['{"id": 1, "text": "a"}', '{"text": "a"}'],
        *(['{"text": 1}'], ['{"text": null}'], ['{"id": 1}']),
        *([f'{{"text": "a", {field}}}'] for field in fields),
    ]:
        assert quickly("\n".join(lines).encode()) is None, lines


def test_a_group_without_a_value_is_none() -> None:
    block = block_of(
        [{"text": "a", "group": {"x": None, "y": 1}}, {"text": "b", "group": {"z": 2}}]
    )
    for rows in (quickly(block), by_records(block)):
        assert rows is not None and rows.more_columns == {"group_y", "group_z"}
        assert rows.take(np.array([1])).more_columns == {"group_z"}


def test_some_rows_are_taken() -> None:
    block = block_of(
        [
            {"text": f"{k}", "targets": {"a": [[0, 1]] * k}, "label": k % 2, "answer_start": k,
             "group": {"g": k}, "split": "test"}
            for k in range(5)
        ]
    )  # fmt: skip
    rows = quickly(block)
    assert rows is not None
    whole, some = plain(rows), plain(rows.take(np.array([1, 3, 4])))
    assert some["texts"] == ["1", "3", "4"] and some["labels"] == ["1", "1", "0"]
    assert some["answers"] == [1, 3, 4] and some["groups"] == {"g": ["1", "3", "4"]}
    assert some["targets"][0] == [0, 1, 1, 1, 2, 2, 2, 2]
    assert plain(rows.take(np.arange(5))) == whole


# --- values in lines ---------------------------------------------------------------------------


def test_values_are_found_with_no_space_around_them() -> None:
    line = '{"id" :\t12 , "text":"a,b}" ,"group": {"id": 3, "x": [1, {"text": 2}]}}'
    lines = find_lines(line.encode())
    found = {
        name: line.encode()[lines.value_starts[k, 0] : lines.value_ends[k, 0]].decode()
        for k, name in enumerate(FIELDS)
        if lines.value_starts[k, 0] >= 0
    }
    assert found == {
        "id": "12", "text": '"a,b}"', "group": '{"id": 3, "x": [1, {"text": 2}]}'
    }  # fmt: skip


def test_a_line_cut_or_unbalanced_is_suspicious() -> None:
    for line in [
        *('{"text":}', '{"text": }', '{"text', '{"text":', '{"text":"a', '{"text":"a"'),
        *('{"text":"a"]}', '{"text":[}', '{"text":"a"}}', '{"text":{"a"}'),
    ]:
        assert find_lines(line.encode()).suspicious.all(), line


@given(st.binary(max_size=60))
def test_any_bytes_can_be_looked_at(block: bytes) -> None:
    lines = find_lines(block)
    assert lines.total == block.count(b"\n") + (not block.endswith(b"\n") and block != b"")
    for k in range(len(lines.starts)):
        there = lines.value_starts[:, k] >= 0
        if not lines.suspicious[k]:
            assert (lines.value_ends[there, k] <= lines.ends[k]).all()
            assert (lines.value_starts[there, k] >= lines.starts[k]).all()


def test_the_row_has_the_fields_that_are_looked_for() -> None:
    assert set(FIELDS) == set(Row.__struct_fields__)


# --- offsets beyond int64 ----------------------------------------------------------------------


def test_a_place_far_out_is_told_as_it_was_written() -> None:
    fields: list[tuple[dict[str, Any], str | None]] = [
        ({"answer_start": 10**25}, f"answer_start {10**25} is outside the text"),
        ({"targets": {"a": [[0, 1], [-(10**25), 1]]}}, f"target 'a' at [-{10**25}, 1] is outside"),
        ({"answer_start": 10**18, "targets": {"a": [[0, 10**18]]}}, None),
    ]
    for field, told in fields:
        with case(field, told):
            record = msgspec.convert({"text": "abc"} | field, Row)
            found = problem_in(record)
            if told is None:
                assert found is None
                continue
            assert found is not None and found.startswith(told)
            assert found.endswith("(length 3)")
            assert quickly(block_of([{"text": "abc"} | field])) is None
