"""Rows of text rendered from records."""

from pathlib import Path
from typing import Any

import pytest

from numtok.data.records.reader import Records, read_records
from numtok.data.records.row_template import RowTemplate
from numtok.data.records.template import (
    check_targets,
    prompts_of,
    proposals,
    rendered,
    target_literals,
    template_of,
)
from numtok.errors import DataError, UsageError
from tests.cases import case


def records_of(tmp_path: Path, content: str, name: str = "a.csv") -> Records:
    (tmp_path / name).write_text(content)
    return read_records(str(tmp_path / name))


def test_a_row_is_its_fields_then_its_targets(tmp_path: Path) -> None:
    records = records_of(tmp_path, 'title,y,year,z\n"A, B",1.50,1979,"1,200"\n,-2e3,1980,3\n')
    template = template_of(records, ["y", "z"])
    assert template == RowTemplate(
        targets=["y", "z"],
        fields=["title", "year"],
        notations={"y": "default", "z": "thousands", "year": "default"},
    )
    rows = rendered(template, records)
    assert rows.texts.to_pylist() == [
        "title: A, B\nyear: 1979\ny: 1.50\nz: 1200",
        "year: 1980\ny: -2e3\nz: 3",
    ]
    for name, literals in (("y", ["1.50", "-2e3"]), ("z", ["1200", "3"])):
        spans = rows.spans[name].tolist()
        texts = rows.texts.to_pylist()
        assert [text[a:b] for text, (a, b) in zip(texts, spans, strict=True)] == literals


def test_spans_count_characters_not_bytes(tmp_path: Path) -> None:
    records = records_of(tmp_path, '{"x": "über 5 €", "y": 7}\n', "a.jsonl")
    template = template_of(records, ["y"], text_field="x")
    rows = rendered(template, records)
    assert template.bare and rows.texts.to_pylist() == ["über 5 €\ny: 7"]
    assert rows.spans["y"].tolist() == [[12, 13]]


def test_prompts_end_where_the_number_begins(tmp_path: Path) -> None:
    records = records_of(tmp_path, "x,w\n1,a\n,\n")
    template = RowTemplate(targets=["y", "z"], fields=["x", "w"], notations={"x": "default"})
    first, second = prompts_of(template, records)
    assert first.to_pylist() == ["x: 1\nw: a\ny: ", "y: "]
    assert second.to_pylist() == ["\nz: ", "\nz: "]


GERMAN = "x;y\n1.234,5;0,5\n7,5;1,5\n"


@pytest.mark.parametrize(
    ("trained", "new", "texts"),
    [
        # An odd cell does not change the others.
        ('x,y\n"8,250",1\n7,2\n', 'x\n"8,250"\n-\n', ["8250", "-"]),
        ('x,y\n"8,250",1\n-,2\n', 'x\n"8,250"\n7\n', ["8,250", "7"]),
        ("x,y\n8250,1\n7,2\n", 'x\n"8,250"\n$5\nnone\n', ["8250", "5", "none"]),
        ("x,y\n1,1\nb,2\n", "x\n 1\n2\n", [" 1", "2"]),
        # The decimal mark of a new file is unknown without other numbers.
        (GERMAN, "x;k\n1.500;a\n8,2;b\n", ["1500", "8.2"]),
        (GERMAN, "x;k\n1.500,0;a\nb;b\n", ["1500.0", "b"]),
        (GERMAN, "x;k\n1.500,0;0,5\n8.250;0,7\n", ["1500.0", "8250"]),
        ("x;y\n1.5;0,5\n2.5;1,5\n", "x;k\n1.500;0,5\n", ["1.500"]),
        ("x,y\n1.5,1\n2,2\n", "x;k\n0,5;0,5\n", ["0.5"]),
        # The decimal mark is a point in files separated by commas.
        (GERMAN, "x,k\n1.500,a\n", ["1.500"]),
    ],
)
def test_cells_are_read_in_the_notation_of_training(
    tmp_path: Path, trained: str, new: str, texts: list[str]
) -> None:
    template = template_of(records_of(tmp_path, trained), ["y"])
    [prompts] = prompts_of(template, records_of(tmp_path, new))
    assert prompts.to_pylist() == [f"x: {text}\ny: " for text in texts]


def test_numbers_of_other_formats_have_decimal_points(tmp_path: Path) -> None:
    template = template_of(records_of(tmp_path, GERMAN), ["y"])
    records = records_of(tmp_path, '{"x": 1.500}\n{"x": "unknown"}\n', "a.jsonl")
    [prompts] = prompts_of(template, records)
    assert prompts.to_pylist() == ["x: 1.500\ny: ", "x: unknown\ny: "]


def test_targets_are_read_in_the_notation_of_a_template(tmp_path: Path) -> None:
    template = template_of(records_of(tmp_path, "x;y\n0,1;1.234,5\n0,2;2,5\n"), ["y"])
    records = records_of(tmp_path, "x;y\na;1.500\nb;2.750\nc;soon\n")
    usable = check_targets(records, template.targets, template.notations)
    assert usable.kept.to_pylist() == [True, True, False]
    texts = rendered(template, records.take(usable.kept)).texts
    assert texts.to_pylist() == ["x: a\ny: 1500", "x: b\ny: 2750"]


def test_an_index_that_pandas_wrote_is_left_out_unless_it_is_chosen(tmp_path: Path) -> None:
    rows = "".join(f"{k},{k % 3},{k % 2},{k}\n" for k in range(9))
    records = records_of(tmp_path, ",Unnamed: 0,x,y\n" + rows)
    template = template_of(records, ["y"])
    assert template.fields == ["Unnamed: 0", "x"]
    assert "column 1 has no name" in proposals(list(records.columns.values()), template)[0]
    records = records_of(tmp_path, "__index_level_0__,x,y\n0,a,1\n1,b,2\n")
    assert template_of(records, ["y"]).fields == ["x"]
    chosen = ["__index_level_0__"]
    assert template_of(records, ["y"], fields=chosen).fields == chosen


def test_a_target_with_a_unit_is_named(tmp_path: Path) -> None:
    for value, has_unit in (("5%", True), ("1.5 kg", True), ("soon", False), ("1e400", False)):
        records = records_of(tmp_path, f"x,y\na,{value}\nb,{value}\n")
        with case(value), pytest.raises(DataError) as raised:
            check_targets(records, ["y"])
        assert ("has a unit" in str(raised.value)) == has_unit


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no rows"):
        template_of(records_of(tmp_path, "x,y\n"), ["y"])


def test_fields_without_information_are_left_out(tmp_path: Path) -> None:
    records = records_of(
        tmp_path,
        "id,same,none,x,split,y\n" + "".join(f"{k},s,,{k % 3},train,{k}\n" for k in range(9)),
    )
    template = template_of(records, ["y"])
    assert template.fields == ["id", "x"]
    assert "--drop id" in proposals(list(records.columns.values()), template)[0]
    assert template_of(records, ["y"], drop=["id"]).fields == ["x"]
    assert template_of(records, ["y"], fields=["x", "same"]).fields == ["x", "same"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": ["yy"]}, "unknown field 'yy'"),
        ({"targets": ["y"], "fields": ["x", "zz"]}, "unknown field 'zz'"),
        ({"targets": ["y"], "text_field": "zz"}, "unknown field 'zz'"),
        ({"targets": ["y"], "drop": ["zz"]}, "unknown field 'zz'"),
    ],
)
def test_unknown_names(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    records = records_of(tmp_path, "x,y\n1,2\n3,4\n")
    with pytest.raises(UsageError, match=words):
        template_of(records, **options)


def test_a_row_needs_a_field(tmp_path: Path) -> None:
    records = records_of(tmp_path, "x,y\n1,2\n1,4\n")
    with pytest.raises(DataError, match="no field is left"):
        template_of(records, ["y"])


def test_unusable_targets_are_found(tmp_path: Path) -> None:
    records = records_of(tmp_path, "x,y\n1,2\n3,\n4,soon\n5,7\n6,1e200\n")
    assert target_literals(records, "y").to_pylist() == ["2", None, None, "7", None]
    usable = check_targets(records, ["y"])
    assert usable.kept.to_pylist() == [True, False, False, True, False]
    assert usable.skipped.count == 3 and ":3: " in usable.skipped.reasons[0]
    assert "missing" in usable.skipped.reasons[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [("x,y\na,b\nc,d\n", "'b'.*every row"), ("x,y\n1,5\n2,5\n", "is 5 in every row")],
)
def test_targets_without_anything_to_predict(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        check_targets(records_of(tmp_path, content), ["y"])
