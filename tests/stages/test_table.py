"""``numtok table``: tables from user files, and errors in such files."""

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.reading.split_rule import SplitRule
from numtok.data.tables import file
from numtok.data.tables.table import Table, read_table
from numtok.errors import DataError, NumtokError, UsageError
from numtok.stages.table import SPLIT, Config, run
from numtok.store.store import Store
from numtok.store.verification import verify
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell

HOUSES = """id,rooms,garden,street,price
1,3,true,elm,200.5
2,,false,oak,310
3,5,true,,150.25
4,4,true,elm,99
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(config: Config) -> Table:
    artifact = run(config, Store(Path("store"))).artifact
    names = [file.path for file in artifact.files() if file.path.endswith(".parquet")]
    assert verify(artifact).problems == []
    return read_table(artifact.path, names)


def of_csv(content: str | bytes, **options: Any) -> Table:
    """Make a table from a CSV file with this content, with the target y."""
    Path("a.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return made(Config("a.csv", **{"target": "y"} | options))


def refused(says: Says, config: Config, *parts: str, kind: type[NumtokError] = DataError) -> None:
    with says.raises(kind, *parts):
        run(config, Store(Path("store")))


def columns(table: Table) -> dict[str, list[object]]:
    """Return the values of each feature by name."""
    numbers, categories = iter(table.numbers.T.tolist()), iter(table.categories)
    return {
        feature.name: next(numbers) if feature.kind == "number" else next(categories).to_pylist()
        for feature in table.file.features
    }


# --- results -----------------------------------------------------------------------------------


def test_numbers_booleans_and_strings_become_features(here: Path) -> None:
    table = of_csv(HOUSES, target="price", split="test=0.7", drop=("id",))
    found = columns(table)
    assert str(found.pop("rooms")) == "[3.0, nan, 5.0, 4.0]"
    garden, street = ["true", "false", "true", "true"], ["elm", "oak", None, "elm"]
    assert found == {"garden": garden, "street": street}
    assert table.target.tolist() == [200.5, 310, 150.25, 99]
    assert table.file.notes == []
    # Features have the order in which they are named.
    named = of_csv(HOUSES, target="price", features=("street", "rooms"))
    assert list(columns(named)) == ["street", "rooms"]


def test_parquet_and_csv_of_the_same_table_are_read_the_same(here: Path) -> None:
    street = pa.array(["elm", "oak", None, "elm"]).dictionary_encode()
    garden = pa.array([True, False, True, True])
    rooms = pa.array([3, None, 5, 4], pa.int8())
    price = pa.array([200.5, 310, 150.25, 99], pa.float32())
    content = {"id": pa.array(["1"] * 4, pa.large_string()), "rooms": rooms, "garden": garden}
    pq.write_table(pa.table(content | {"street": street, "price": price}), here / "houses.parquet")
    first = of_csv(HOUSES, target="price", drop=("id",))
    second = made(Config("houses.parquet", target="price", drop=("id",)))
    assert str(columns(first)) == str(columns(second))
    assert first.target.tolist() == second.target.tolist()
    assert first.file == second.file


def test_semicolons_and_decimal_commas_are_read_and_noted(here: Path) -> None:
    how: dict[str, Any] = {"target": "price", "split": "test=0.7", "drop": ("id",)}
    european = HOUSES.replace(",", ";").replace(".", ",").replace("\n", "\r\n")
    usual, table = of_csv(HOUSES, **how), of_csv("\ufeff" + european, **how)
    assert str(columns(table)) == str(columns(usual))
    assert table.target.tolist() == usual.target.tolist()
    (note,) = table.file.notes
    assert "';'" in note and "decimal comma" in note


def test_rows_are_shared_out_by_a_hash_of_their_number(here: Path) -> None:
    content = "x,y\n" + "".join(f"{k},{k % 7}\n" for k in range(2000))
    table = of_csv(content)
    rule = SplitRule.parse(SPLIT)
    assert table.assigned[0].to_pylist() == [rule.split_of(str(row)) for row in range(2000)]
    assert abs(len(table.split("test")) - 400) < 80
    other = of_csv(content, split="test=0.5,seed=3")
    assert abs(len(other.split("test")) - 1000) < 120
    assert other.file.splits == ["split"]


def test_split_columns_of_the_file_are_kept_and_numbered_ones_are_folds(here: Path) -> None:
    table = of_csv("split,x,y\ntest,1,2\ntrain,2,3\n,3,4\nood-far,4,5\n")
    assert table.assigned[0].to_pylist() == ["test", "train", None, "ood-far"]
    assert list(columns(table)) == ["x"]
    rows = [f"{k},{k},train,test,train" for k in range(4)] + ["4,4,test,train,train"]
    table = of_csv("x,y,split_10,split_2,split_0\n" + "\n".join(rows) + "\n")
    assert table.file.splits == ["split_0", "split_2", "split_10"]
    assert table.split("test", 2).tolist() == [4]
    told = "the split 'test' of 'split_0' is empty. Evaluate another one: --split"
    assert table.file.notes == [told]


def test_what_a_reader_might_not_expect_is_noted(here: Path) -> None:
    table = of_csv(",age,code,none,y,split\n0,1,1,,1,train\n1,?,2,,2,test\n2,3,3,,3,\n")
    assert list(columns(table)) == ["age", "code"]
    assert table.file.notes == [
        "column 1 has no name, so it is skipped",
        "'age' is a category, because '?' in row 2 is not a number",
        "'none' is empty, so it is skipped",
        "rows in no split of 'split': 1",
    ]


def test_numbers_that_are_not_written_as_numbers_are_noted(here: Path) -> None:
    prices = ['"1,000.50"', "2\u202f001.50", "12%", "\u22125", "7"]
    lines = [f"{price},2020-01-0{row},10.0.0.{row},{row}" for row, price in enumerate(prices, 1)]
    table = of_csv("\n".join(["price,day,address,y", *lines]), drop=("day",))
    told = "'price' is a category, because '1,000.50' in row 1 is not a number"
    assert table.file.notes[0] == told
    assert not [note for note in table.file.notes if "address" in note]


@pytest.mark.parametrize("rows, noted", [(99, False), (100, True)])
def test_a_category_that_names_rows_is_noted(here: Path, rows: int, noted: bool) -> None:
    lines = [f"H{row},{'ab'[row % 2]},{row}" for row in range(rows)]
    told = (
        f"'house' is a category with {rows:,} values in {rows:,} rows. If it identifies rows, drop "
        "it: --drop house"
    )
    assert of_csv("\n".join(["house,kind,y", *lines])).file.notes == [told][:noted]


def test_codes_that_are_read_as_numbers_are_noted(here: Path) -> None:
    table = of_csv("zip,hex,plain,y\n10037,0x1F,0.5,1\n00074,0x20,0,2\n90210,0x21,10,3\n")
    told = "looks like a code. To make it a category, prefix a letter (z00037)"
    assert table.file.notes[:2] == [
        f"'zip' is read as a number, but '00074' in row 2 {told}",
        f"'hex' is read as a number, but '0x1F' in row 1 {told}",
    ]
    assert not [note for note in table.file.notes if "plain" in note]


def test_integers_that_float64_rounds_are_told_of(here: Path, says: Says) -> None:
    large = [2**60 + row for row in range(9)]
    content = {"x": large, "y": list(range(9)), "none": [float("nan")] * 9}
    pq.write_table(pa.table(content), here / "a.parquet")
    table = made(Config("a.parquet", target="y"))
    assert "'x' has integers beyond 2^53, which are rounded" in table.file.notes
    assert "'none' is empty, so it is skipped" in table.file.notes
    told = "a.parquet: target 'x' has integers beyond 2^53, which are rounded, to 1.15292e+18"
    refused(says, Config("a.parquet", target="x"), told, "Subtract a common offset")


def test_a_name_with_a_comma_stands_in_quotes(numtok: Shell) -> None:
    Path("a.csv").write_text('"a,b",c,d,y\n1,2,3,4\n2,3,4,5\n3,4,5,6\n4,5,6,8\n')
    made = numtok("table", "a.csv", "--target", "y", "--drop", '"a,b",c')
    assert made.code == 0
    (file,) = Path("artifacts/table/a").glob("*/table.json")
    assert [one["name"] for one in json.loads(file.read_text())["features"]] == ["d"]


def test_an_index_that_pandas_wrote_is_no_feature(here: Path) -> None:
    content = {"__index_level_0__": [5, 6], "x": [1, 2], "y": [1.0, 2.0]}
    pq.write_table(pa.table(content), here / "a.parquet")
    table = made(Config("a.parquet", target="y", split="test=0.001"))
    assert list(columns(table)) == ["x"]
    assert "'__index_level_0__' is a pandas index, so it is skipped" in table.file.notes


def test_files_as_spreadsheets_write_them_are_read(here: Path) -> None:
    text = '\ufeff"the x",y\r\n"a, ""b""",1\r\n"c\nd",2\r\n'
    assert columns(of_csv(text, split="test=0.0001")) == {"the x": ['a, "b"', "c\nd"]}
    # A value at the end of the file affects the type like one at the beginning.
    rows = "".join(f"{k},{k}\n" for k in range(300_000))  # more than Arrow's type inference reads
    table = of_csv(f"x,y\n{rows}word,1\n")
    assert table.file.features[0].kind == "category"
    assert table.file.notes == ["'x' is a category, because 'word' in row 300001 is not a number"]
    # Numbers keep every digit.
    table = of_csv("x,y\n0.1,1e-300\n123456789012345678,-2.5\n", split="test=0.0001")
    assert table.numbers[:, 0].tolist() == [0.1, 123456789012345678.0]
    assert table.target.tolist() == [1e-300, -2.5]


def test_the_same_content_and_settings_are_one_artifact(here: Path) -> None:
    (here / "a.csv").write_text("x,y\n1,2\n2,3\n3,4\n4,5\n5,6\n")
    (here / "b.csv").write_text((here / "a.csv").read_text())
    store = Store(here / "store")
    first = run(Config("a.csv", target="y"), store)
    assert first.made
    assert not run(Config("a.csv", target="y"), store).made
    same = run(Config("b.csv", target="y"), store).artifact.version
    others = {
        run(Config("a.csv", target=target, split=split), store).artifact.version
        for target, split in (("x", None), ("y", "test=0.2"), ("y", "test=0.2,seed=1"))
    }
    assert same == first.artifact.version
    assert len(others | {same}) == 4


# --- the command -------------------------------------------------------------------------------


def test_the_command_prints_the_ref_and_a_table(numtok: Shell) -> None:
    rows = "".join(f"{k},{k % 3},?\n" for k in range(30))
    Path("My Houses.csv").write_text("x,y,z\n" + rows)
    ran = numtok("table", "My Houses.csv", "--target", "y", "--drop", "z")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("my-houses@")
    lines = [line.split() for line in ran.err.splitlines()]
    assert lines[0] == ["table", "with", "target", "'y'"]
    assert ["rows", "30"] in lines and ["features", "1"] in lines and ["numbers", "1"] in lines
    command = Store(Path("artifacts")).resolve(ran.out.strip()).manifest.command
    line = "numtok table 'My Houses.csv' --target y --drop z --name my-houses"
    assert shlex.join(command) == line
    told = json.loads(numtok(*command[1:], "--json").out)
    counts = told.pop("counts")
    assert told == {"schema": 1, "ref": ran.out.strip(), "made": False, "notes": []}
    assert (counts["rows"], counts["features"]) == (30, 1)
    assert sum(counts[key] for key in counts if key.startswith("rows_")) == 30


def test_notes_are_told_on_stderr_or_in_json(numtok: Shell) -> None:
    Path("a.csv").write_text("x,y,split\n1,1,train\n2,2,train\n1,9,test\n3,3,test\n2,2,dev\n")
    ran = numtok("table", "a.csv", "--target", "y", "--json")
    twins = ["1 of 1 dev rows have a twin in trai", "1 of 2 test rows have a twin in tra"]
    assert [note[:35] for note in json.loads(ran.out)["notes"]] == twins
    Path("a.csv").write_text("x,y,split\n1,1,train\n2,2,train\n")
    ran = numtok("table", "a.csv", "--target", "y")
    note = "the split 'test' of 'split' is empty. Evaluate another one: --split"
    assert ran.err.endswith(f"\nnumtok: {note}\n")
    assert numtok("-q", "table", "a.csv", "--target", "y").err == ""


@pytest.mark.parametrize("bad", ["", "NA", "nan", "inf", "-3e307", "unknown"])
def test_rows_without_a_usable_target_are_skipped(here: Path, bad: str) -> None:
    """Skipped rows do not change the values and splits of other rows."""
    lines = [f"{k},z{k % 3},{k * k}" for k in range(60)]
    whole = of_csv("\n".join(["x,kind,y", *lines]))
    for k in (0, 7, 59):
        lines[k] = f"{k},z{k % 3},{bad}"
    table = of_csv("\n".join(["x,kind,y", *lines]), on_error="skip")
    kept = [k for k in range(60) if k not in (0, 7, 59)]
    assert table.target.tolist() == [k * k for k in kept]
    assert columns(table) == {"x": [*map(float, kept)], "kind": [f"z{k % 3}" for k in kept]}
    for split in ("train", "validation", "test"):
        usable = [row for row in whole.split(split).tolist() if row in kept]
        assert [kept[row] for row in table.split(split).tolist()] == usable
    [note] = table.file.notes
    assert note.startswith("Skipped 3 of 60 rows: a.csv:2: target 'y' must be a number")
    assert "a.csv:9: " in note and "a.csv:61: " in note
    with pytest.raises(DataError, match="row 1"):
        of_csv(f"x,y\n1,{bad}\n2,{bad}\n", on_error="skip")


# --- errors ------------------------------------------------------------------------------------

OF_DATES = "date32[day]"
BAD_TABLES: tuple[tuple[str, *tuple[str, ...]], ...] = (
    ("x,y\n1,2\n2,three\n3,4\n", "'y'", "'three' in row 2", "--target"),
    ("x,y\n1,2\n2,\n3,4\n", "'y'", "missing in row 2", "--on-error skip"),
    ("x,y\n1,2\n2,-3e307\n3,4\n", "'y'", "-3e+307 in row 2", "at most 1e+150", "logarithm"),
    ("x,y\n1,2\n2,-inf\n3,4\n", "'y'", "-inf in row 2", "--on-error skip"),
    ("x,y\n1,2020-01-01\n2,2020-01-02\n", "'y'", OF_DATES, "--target"),
    ("x,y\n", "no rows", "at least two"),
    ("x,y\n1,2\n", "one row", "at least two"),
    ("x,y\n1,2\n2,2\n3,2\n", "'y' is 2 in every row", "--target"),
    ("y\n1\n2\n3\n4\n5\n6\n", "no column is left as a feature", "the target 'y'"),
    ("x,x,y\n1,2,3\n1,2,4\n", "the column 'x' 2 times", "unique name"),
    (",,y\n1,2,3\n1,2,4\n", "a column without a name 2 times", "unique name"),
    ("x,y\n1,1\ninf,2\n", "feature 'x'", "inf in row 2", "--drop x"),
    ("x,y,split\n1,1,test\n2,2,validation\n", "split 'train' of 'split'", "at least one"),
    ("x,y,split\n1,1,train\n2,2,My Test\n", "'split' is 'My Test' in row 2", "lower-case letters"),
    ("x,y,split\n1,1,0\n2,2,1\n", "'split'", "int64", "train and test", "--drop split"),
    ("x,y\n1,2\n2\n", ":3: the row has 1 cell", "header has 2", "--on-error skip"),
    ("x,t,y\n1,'a',2\n2,a\rb,3\n", ":3: ", "(\\r)", "in quotes"),
    ('x,t,y\n1,"a\rb\n",2\n2,a\rb,3\n', ":5: ", "(\\r)", "in quotes"),
    ("", "is empty", "a header and rows"),
)


def test_what_is_wrong_with_a_table_is_told_in_one_line(here: Path, says: Says) -> None:
    for content, *told in BAD_TABLES:
        with case(content):
            (here / "a.csv").write_text(content)
            refused(says, Config("a.csv", target="y"), "a.csv", *told)


def test_a_table_with_too_many_columns_is_refused_before_it_is_read(
    here: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(file, "_COLUMNS", 3)
    pq.write_table(pa.table({name: [1, 2] for name in "wxyz"}), here / "a.parquet")
    refused(says, Config("a.parquet", target="y"), "a.parquet", "(got 4)", "at most 3")
    for newline in ("\n", "\r", "\r\n"):
        with case(newline):
            (here / "a.csv").write_text(newline.join(["", "w,x,y,z", "1,2,3,4", "2,3,4,5"]))
            refused(says, Config("a.csv", target="y"), "a.csv", "(got 4)", "at most 3")
            table = of_csv(newline.join(["", "w,x,y", "1,2,3", "2,3,4", "3,4,5"]))
            assert table.file.target == "y"


def test_bytes_and_kinds_that_no_feature_has_are_refused(here: Path, says: Says) -> None:
    (here / "a.csv").write_bytes(b"x,y\n\xff\xfe,1\nb,2\n")
    refused(says, Config("a.csv", target="y"), "a.csv: column 'x' ", "not UTF-8", ": --drop x")
    parquet, y = Config("a.parquet", target="y"), [1.0, 2.0]
    (here / "a.parquet").write_bytes(b"x,y\n1,2\n")
    refused(says, parquet, "a.parquet: cannot be read as Parquet: ", "Restore")
    for columns, *told in (
        (
            {"x": pa.array([[1], [2]]), "y": y},
            "column 'x' must be numbers, booleans or strings",
            "list<",
        ),
        ({"x": [1, 2], "y": [True, False]}, "target 'y' must be numeric (it is bool)", "--target"),
        ({"x": [1, 2], "y": [1.0, float("nan")]}, "target 'y' must be a finite", "nan in row 2"),
    ):
        with case(told):
            pq.write_table(pa.table(columns), here / "a.parquet")
            refused(says, parquet, "a.parquet: ", *told)


def test_a_column_that_is_not_there_is_named(here: Path, says: Says) -> None:
    dropped: dict[str, Any] = {"drop": ("x3",)}
    for header, options, *told in (
        ("x1,x2,y", {"target": "z"}, "target 'z'. Known: x1, x2, y"),
        ("x1,x2,yy", {}, "target 'y'. Did you mean 'yy'? Known: x1, x2, yy"),
        ("x1|x2|y", {}, "Known: x1|x2|y", "by commas, semicolons or tabs"),
        ("x1,x2,y", dropped, "--drop 'x3'. Did you mean 'x2'? Known: x1, x2, y"),
        ("x1,x2,y", {"features": ("z",)}, "feature 'z'. Known: x1, x2, y"),
    ):
        with case(told[0]):
            row = header.translate(str.maketrans("xy", "12"))
            (here / "a.csv").write_text(f"{header}\n{row}\n{row}\n")
            config = Config("a.csv", **{"target": "y"} | options)
            refused(says, config, "a.csv: ", *told, kind=UsageError)


def test_options_that_cannot_be_used_are_told(here: Path, says: Says) -> None:
    (here / "a.csv").write_text("x,y,split\n1,1,train\n2,2,test\n")
    (here / "folder.csv").mkdir()
    both: dict[str, Any] = {"features": ("x",), "drop": ("x",)}
    for path, options, *told in (
        ("a.txt", {}, "a.txt: ", ".csv, .tsv, .parquet"),
        ("b.csv", {}, "b.csv: file not found"),
        ("a.csv", {"split": "test=0.5"}, "--split ", "the column 'split' of a.csv", "drop split)"),
        ("a.csv", both, "--features and --drop", "Choose one"),
        ("a.csv", {"drop": ("y",)}, "--drop ", "the target 'y'"),
        ("folder.csv", {}, "folder.csv: this is a folder"),
    ):
        with case(told), says.raises(UsageError, *told):
            run(Config(path, target="y", **options), Store(Path("store")))
    for mark in b",", b";":
        (here / "c.csv").write_bytes(b"x,y,z\n1,2,3\n\xe9,1\n".replace(b",", mark))
        for on_error, remedy in (("fail", "--on-error skip"), ("skip", "not UTF-8")):
            asked = Config("c.csv", target="y", on_error=on_error)
            with case(mark, on_error):
                refused(says, asked, "c.csv:3: ", "2 cells", remedy)
    (here / "cp.csv").write_bytes("größe,y\n1,2\n3,4\n".encode("cp1252"))
    refused(says, Config("cp.csv", target="y"), "cp.csv: the name of a column is not UTF-8")
