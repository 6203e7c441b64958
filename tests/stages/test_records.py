"""Files of records with a field as the target: texts, models and predictions made from them."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.tables.table import read_table_of
from numtok.encoding.codec import Codec
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.splits import read_split
from numtok.reports import QUANTILES, quantile_column
from numtok.store.store import Store
from tests.messages import Says
from tests.shell import Shell

WORDS = ("a flat near the park", "an old house", "a cabin by the lake")
TINY = ("--preset", "nano,layers=1,width=32", "--steps", "4", "--batch", "8", "--device", "cpu")
LEVELS = [quantile_column(level) for level in QUANTILES]


def homes(rows: int = 60) -> list[dict[str, object]]:
    return [
        {
            "about": WORDS[n % 3],
            "rooms": 1 + n % 5,
            "sold": f"20{10 + n % 9}-0{1 + n % 9}-11",
            "price": f"{100 * (1 + n % 5) + 7 * (n % 3)}.50",
        }
        for n in range(rows)
    ]


def write_csv(name: str, rows: Sequence[dict[str, object]], separator: str = ",") -> str:
    with Path(name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)
    return name


def write_jsonl(name: str, rows: Sequence[dict[str, object]]) -> str:
    """Write rows as JSON Lines, with prices as numbers of the same digits."""
    lines = []
    for row in rows:
        price = row.get("price")
        lines.append(json.dumps(row).replace(f'"{price}"', str(price)) + "\n")
    Path(name).write_text("".join(lines))
    return name


def write_parquet(name: str, rows: Sequence[dict[str, object]]) -> str:
    pq.write_table(pa.Table.from_pylist(list(rows)), name)
    return name


def encoded(numtok: Shell, *arguments: str) -> Path:
    ran = numtok("encode", "--scheme", "xval", *arguments)
    assert ran.code == 0, ran.err
    return Store(Path("artifacts")).resolve(ran.out.strip()).path


def test_every_format_gives_the_same_rows(numtok: Shell) -> None:
    rows = homes()
    write_csv("a.csv", rows)
    write_csv("a.tsv", rows, "\t")
    write_jsonl("a.jsonl", rows)
    columns = {name: [str(row[name]) for row in rows] for name in rows[0]}
    pq.write_table(pa.table(columns), "a.parquet")
    found = []
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet"):
        options = ("--target", "price", "--split", "test=0.2", "--name", name.replace(".", "-"))
        folder = encoded(numtok, name, *options)
        split = read_split(Store(Path("artifacts")).resolve(str(folder)), "test")
        literals = split.target_literal.to_pylist()
        found.append((split.ids.to_pylist(), literals, split.numbers.tolist()))
        assert split.target_name.to_pylist() == ["price"] * len(split)
        codec = Codec.read(folder / SCHEME_FILE)
        assert codec.template is not None
        assert codec.template.fields == ["about", "rooms", "sold"]
    assert all(rows == found[0] for rows in found) and len(found[0][0]) > 3


def test_a_dry_run_shows_rows_and_keeps_nothing(numtok: Shell) -> None:
    write_csv("a.csv", homes())
    ran = numtok("encode", "--scheme", "xval", "a.csv", "--target", "price", "--dry-run")
    assert ran.code == 0 and not Path("artifacts").exists()
    assert "about: a flat near the park" in ran.out and "price: 100.50" in ran.out


def test_data_without_a_test_split_have_a_note(numtok: Shell) -> None:
    command = ("encode", "--scheme", "xval", write_csv("a.csv", homes()), "--target", "price")
    assert "all rows are train rows" in numtok(*command).err
    assert "all rows are" not in numtok(*command, "--split", "test=0.2").err


def test_a_dry_run_of_long_rows_fits_the_terminal(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    write_csv("a.csv", [row | {"about": "a flat near the park " * 900} for row in homes()])
    options = ("--scheme", "xval", "a.csv", "--target", "price", "--fields", "about", "--dry-run")
    ran = numtok("encode", *options)
    lines = ran.out.splitlines()
    assert ran.code == 0 and max(map(len, lines)) <= 80 and len(lines) < 60
    assert "about: a flat" in ran.out and "price: 100.50" in ran.out


@pytest.mark.parametrize("command", ["race", "profile", "encode --scheme xval"])
def test_a_file_that_cannot_be_read_leaves_no_store(numtok: Shell, command: str) -> None:
    Path("bad.csv").write_text("a,b\n1,2\n3\n")
    dry = [] if command == "profile" else ["--dry-run"]
    ran = numtok(*command.split(), "bad.csv", "--target", "b", *dry)
    assert ran.code == 3 and "bad.csv:3: " in ran.err and not Path("artifacts").exists()


def test_predictions_of_a_csv_are_a_csv(numtok: Shell) -> None:
    rows = homes()
    encoded(numtok, write_csv("a.csv", rows), "--target", "price", "--name", "a")
    assert numtok("train", "a", *TINY, "--name", "m").code == 0
    for row in rows:
        del row["price"]
    write_csv("new.csv", rows)
    ran = numtok("predict", "m", "new.csv")
    assert ran.code == 0, ran.err
    found: list[dict[str, str]] = list(csv.DictReader(io.StringIO(ran.out)))
    assert list(found[0]) == ["about", "rooms", "sold", "predicted", *LEVELS]
    assert [row["about"] for row in found] == [row["about"] for row in rows]
    for predicted in found:
        levels = [float(predicted[name]) for name in LEVELS]
        assert levels == sorted(levels) and levels[0] < float(predicted["predicted"]) < levels[-1]
    of_tabs = numtok("predict", "m", write_csv("new.tsv", rows, "\t"))
    assert list(csv.DictReader(io.StringIO(of_tabs.out), delimiter="\t")) == found
    write_csv("bare.csv", [{"rooms": 3}])
    ran = numtok("predict", "m", "bare.csv")
    assert ran.code == 2 and "unknown column 'about'" in ran.err and ran.out == ""
    write_csv("taken.csv", [rows[0] | {"predicted": 1}])
    assert "reserved" in numtok("predict", "m", "taken.csv").err


def test_a_text_without_a_hole_is_the_text_field_of_a_record(numtok: Shell) -> None:
    write_csv("homes.csv", homes())
    encoded(numtok, "homes.csv", "--target", "price", "--text-field", "about", "--name", "t")
    assert numtok("train", "t", *TINY, "--name", "m").code == 0
    write_jsonl("new.jsonl", [{"about": WORDS[1]}])
    of_file = json.loads(numtok("predict", "m", "new.jsonl").out)["predicted"]["price"]
    ran = numtok("predict", "m", "--text", WORDS[1])
    assert ran.code == 0, ran.err
    predicted = json.loads(ran.out)["predicted"]
    assert predicted["text"].startswith(f"{WORDS[1]}\nprice: ")
    assert predicted["numbers"][0]["value"] == of_file["predicted"]
    whole = numtok("predict", "m", "--text", f"{WORDS[1]}\nprice: [?]")
    assert json.loads(whole.out)["predicted"] == predicted


@pytest.mark.parametrize("name", ["text", "about"])
def test_the_text_field_is_the_whole_text_under_any_name(numtok: Shell, name: str) -> None:
    rows = [{name: row["about"], "rooms": row["rooms"], "price": row["price"]} for row in homes()]
    write_csv("homes.csv", rows)
    whole = encoded(numtok, "homes.csv", "--target", "price", "--text-field", name)
    template = Codec.read(whole / SCHEME_FILE).template
    assert template is not None and template.bare and template.fields == [name]
    every = encoded(numtok, "homes.csv", "--target", "price")
    template = Codec.read(every / SCHEME_FILE).template
    assert template is not None and not template.bare and template.fields == [name, "rooms"]


def test_the_default_text_field_of_texts_may_be_chosen(numtok: Shell) -> None:
    Path("a.jsonl").write_text('{"text": "3 rooms", "targets": {"rooms": [[0, 1]]}}\n')
    assert encoded(numtok, "a.jsonl") == encoded(numtok, "a.jsonl", "--text-field", "text")


def test_predictions_of_json_lines_are_json_lines_for_each_target(numtok: Shell) -> None:
    rows = [row | {"rent": n % 7} for n, row in enumerate(homes())]
    write_jsonl("a.jsonl", rows)
    targets = ("--target", "price", "--target", "rent")
    encoded(numtok, "a.jsonl", *targets, "--fields", "about,rooms", "--name", "a")
    assert numtok("train", "a", *TINY, "--name", "m").code == 0
    new = [{"about": "a [?] in the text", "rooms": 2, "more": [1.0, {"x": "é"}]}]
    write_jsonl("new.jsonl", new)
    ran = numtok("predict", "m", "new.jsonl")
    assert ran.code == 0, ran.err
    [line] = ran.out.splitlines()
    row = json.loads(line)
    predicted = row.pop("predicted")
    assert row == new[0] and list(predicted) == ["price", "rent"]
    assert all(numbers["predicted"] is not None for numbers in predicted.values())


def test_texts_with_holes_still_work_for_a_model_of_records(numtok: Shell) -> None:
    encoded(numtok, write_csv("a.csv", homes()), "--target", "price", "--name", "a")
    assert numtok("train", "a", *TINY, "--name", "m").code == 0
    ran = numtok("predict", "m", "--text", "about: an old house\nprice: [?]")
    assert ran.code == 0 and len(json.loads(ran.out)["predicted"]["numbers"]) == 1
    Path("t.jsonl").write_text('{"text": "price: [?]"}\n')
    assert numtok("predict", "m", "t.jsonl").code == 0


def test_an_encoding_is_reused_for_records(numtok: Shell) -> None:
    rows = homes()
    first = encoded(numtok, write_csv("a.csv", rows[:40]), "--target", "price", "--name", "a")
    write_csv("b.csv", rows[40:], ";")
    ran = numtok("encode", "--reuse-encoding", "a", "b.csv", "--name", "b")
    assert ran.code == 0, ran.err
    second = Store(Path("artifacts")).resolve(ran.out.strip()).path
    assert (second / SCHEME_FILE).read_bytes() == (first / SCHEME_FILE).read_bytes()


def test_a_reused_encoding_has_its_own_fields(numtok: Shell, says: Says) -> None:
    path = write_csv("homes.csv", homes())
    made = numtok("-q", "encode", "--scheme", "digits", path, "--target", "price").out.strip()
    reused = ("-q", "encode", "--reuse-encoding", made, path)
    assert numtok(*reused, "--target", "price").out == numtok(*reused).out
    for more in (("--target", "rooms"), ("--target", "price", "--drop", "about")):
        told = ("cannot be combined with --reuse-encoding", "the target price")
        says.refused(numtok(*reused, *more), 2, *told)


def test_decimal_commas_of_texts_and_a_target_are_refused(numtok: Shell, says: Says) -> None:
    Path("eu.csv").write_text("text;price\nkostet 7,5;1,234\nkostet 8,5;2,345\n")
    command = ("encode", "--scheme", "digits", "eu.csv", "--target", "price", "--numbers")
    told = ("decimal commas", "--target")
    says.refused(numtok(*command, "eu"), 2, *told)
    for other in (("race", "--dry-run"), ("profile",)):
        asked = (*other, "eu.csv", "--target", "price", "--numbers")
        says.refused(numtok(*asked, "eu"), 2, *told)
    assert numtok(*asked, "auto").code == 0
    assert numtok(*command, "english").code == 0


def test_a_year_begins_a_split_by_dates(numtok: Shell) -> None:
    days = ("2018-01-01", "2019-12-31", "2020-01-01", "2021-05-05")
    rows: list[dict[str, object]] = [{"day": day, "x": n, "y": n} for n, day in enumerate(days)]
    path = write_csv("days.csv", rows)
    command = ("-q", "encode", "--scheme", "digits", path, "--target", "y")
    made = numtok(*command, "--split", "by=day,test=2020")
    counts = Store(Path("artifacts")).resolve(made.out.strip()).manifest.counts
    assert (counts["rows_train"], counts["rows_test"]) == (2, 2)
    none = numtok(*command[1:], "--split", "by=day,test=2031")
    assert (none.code, "no rows in 'test'" in none.err) == (0, True)


def test_nested_columns_may_hold_any_value(numtok: Shell) -> None:
    logs = pa.array([[datetime(2020, 1, 1)], [], None], pa.list_(pa.timestamp("us")))
    words = pa.array([["é"], ["b"], []], pa.list_(pa.string()))
    boxes = pa.array(
        [[{"size": 0.13, "at": [("x", 0.1)]}], [None], None],
        pa.list_(pa.struct({"size": pa.float32(), "at": pa.map_(pa.string(), pa.float16())})),
    )
    table = pa.table({"log": logs, "words": words, "boxes": boxes, "y": [1.0, 2.0, 3.0]})
    pq.write_table(table, "log.parquet")
    command = ("encode", "--scheme", "digits", "log.parquet", "--target", "y", "--dry-run")
    ran = numtok(*command)
    assert ran.code == 0 and '["é"]' in ran.out
    assert '[{"size": 0.13, "at": [["x", 0.1]]}]' in " ".join(ran.out.split())
    assert numtok(*command, "--drop", "log").code == 0


def test_structs_have_the_fields_of_json_objects(numtok: Shell) -> None:
    rows = [
        {"name": f"n{k % 3}", "specs": {"ram": k % 4, "cpu": {"cores": k % 5}}, "y": {"low": k}}
        for k in range(40)
    ]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), "a.parquet")
    texts = {}
    for file in ("a.jsonl", "a.parquet"):
        ran = numtok("encode", "--scheme", "digits", file, "--target", "y.low", "--dry-run")
        assert ran.code == 0, ran.err
        texts[file] = [line for line in ran.out.splitlines() if "specs.cpu.cores" in line]
    assert texts["a.parquet"] == texts["a.jsonl"] and len(texts["a.jsonl"]) == 2
    made = numtok("-q", "table", "a.parquet", "--target", "y.low")
    features = read_table_of(Store(Path("artifacts")).resolve(made.out.strip())).file.features
    assert [each.name for each in features] == ["name", "specs.ram", "specs.cpu.cores"]


def test_strings_of_every_type_are_numbers_and_dates_of_a_table(numtok: Shell) -> None:
    columns = {"sold": ["2019-03-04", "2020-01-02"] * 9, "area": ["1,234", "999"] * 9}
    target = pa.array([float(n) for n in range(18)])
    made = set()
    for number, kind in enumerate(
        (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    ):
        table = {name: pa.array(each, pa.string()).cast(kind) for name, each in columns.items()}
        pq.write_table(pa.table(table | {"y": target}), f"{number}.parquet")
        ran = numtok("-q", "table", f"{number}.parquet", "--target", "y")
        file = read_table_of(Store(Path("artifacts")).resolve(ran.out.strip())).file
        made.add(str(file.features))
    assert len(made) == 1 and "(days)" in made.pop()


def test_profiles_read_records(numtok: Shell) -> None:
    write_csv("a.csv", homes())
    ran = numtok("profile", "a.csv", "--target", "price", "--format", "json")
    assert ran.code == 0 and not Path("artifacts").exists()
    profile = json.loads(ran.out)
    assert "price" in profile["targets"] and profile["inputs"] == ["a.csv"]


def test_rows_without_a_usable_target_are_skipped_if_asked(numtok: Shell) -> None:
    rows = homes()
    rows[3]["price"], rows[5]["price"] = "", "on request"
    write_csv("a.csv", rows)
    options = ("--scheme", "xval", "a.csv", "--target", "price")
    ran = numtok("encode", *options)
    assert ran.code == 3 and "a.csv:5: target 'price' must be a number" in ran.err
    ran = numtok("encode", *options, "--on-error", "skip")
    assert ran.code == 0 and "Skipped 2 of 60 rows: a.csv:5: target 'price'" in ran.err


BAD_ROWS = {
    "csv": ("x,5\n", 'x,"5\n",6,7,8\n', "x,1,2019-01-01,NaN\n", "x,1,2019-01-01,soon\n"),
    "jsonl": ('{"rooms": 3\n', "[1]\n", '{"rooms": 3, "price": NaN}\n', '{"price": "soon"}\n'),
}


@pytest.mark.parametrize("ending", BAD_ROWS)
@pytest.mark.parametrize("first", [0, 7])
def test_bad_rows_are_refused_with_their_line_or_skipped(
    numtok: Shell, ending: str, first: int
) -> None:
    write = {"csv": write_csv, "jsonl": write_jsonl}[ending]
    lines = Path(write(f"good.{ending}", homes())).read_text().splitlines(keepends=True)
    at = first + (ending == "csv")
    for bad in BAD_ROWS[ending]:
        Path(f"a.{ending}").write_text("".join([*lines[:at], "\n", bad, *lines[at:]]))
        for command in (("encode", "--scheme", "xval"), ("race", "--dry-run"), ("table",)):
            ran = numtok(*command, f"a.{ending}", "--target", "price")
            assert ran.code == 3 and "--on-error skip" in ran.err, ran.err
            if command != ("table",) or ("NaN" not in bad and "soon" not in bad):
                assert f"a.{ending}:{at + 2}: " in ran.err
    Path(f"a.{ending}").write_text("".join([*lines[:at], *BAD_ROWS[ending], *lines[at:]]))
    options = ("--target", "price", "--split", "test=0.2", "--on-error", "skip")
    folder = encoded(numtok, f"a.{ending}", *options)
    split = read_split(Store(Path("artifacts")).resolve(str(folder)), "test")
    ran = numtok("table", f"a.{ending}", *options)
    assert ran.code == 0 and f"Skipped 4 of 64 rows: a.{ending}:{at + 1}: " in ran.err
    table = read_table_of(Store(Path("artifacts")).resolve(ran.out.strip()))
    assert len(table.target) == 60
    test = table.split("test").tolist()
    assert sorted(map(int, split.ids.to_pylist())) == test
    prices = dict(zip(split.ids.to_pylist(), split.target_literal.to_pylist(), strict=True))
    assert [float(prices[str(row)]) for row in test] == table.target[test].tolist()


def test_a_file_of_bad_rows_is_refused(numtok: Shell) -> None:
    Path("a.csv").write_text("x,y\n1\n2\n")
    Path("a.jsonl").write_text('{"x": 1, "y": 2\n')
    for name, line in (("a.csv", 2), ("a.jsonl", 1)):
        ran = numtok("encode", "--scheme", "xval", name, "--target", "y", "--on-error", "skip")
        assert ran.code == 3 and f"{name}:{line}: " in ran.err and ran.out == ""


def test_a_table_has_the_parts_of_dates(numtok: Shell) -> None:
    rows = homes()
    write_csv("a.csv", rows)
    options = ("--target", "price", "--head", "mdn:2", "--epochs", "2", "--device", "cpu")
    assert numtok("train", "a.csv", *options, "--name", "m").code == 0
    features = ("about", "rooms", "sold")
    write_jsonl("new.jsonl", [{key: row[key] for key in features} for row in rows])
    ran = numtok("predict", "m", "new.jsonl")
    assert ran.code == 0, ran.err
    first = json.loads(ran.out.splitlines()[0])
    assert first["sold"] == rows[0]["sold"] and "q05" in first["predicted"]["price"]
    write_csv("bad.csv", [{"about": "x", "rooms": 1, "sold": "soon"}])
    ran = numtok("predict", "m", "bad.csv")
    assert ran.code == 3 and "column 'sold' must have dates" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("a.csv", "--fields", "rooms"), 2, "--fields needs the field to predict"),
        (("a.csv", "b.csv", "--target", "price"), 2, "single file"),
        (("a.csv", "--target", "prize"), 2, "unknown field 'prize'. Did you mean 'price'?"),
        (("a.csv", "--target", "about"), 3, "target 'about' must be a number"),
        (("a.csv", "--target", "price", "--split", "by=sald,test=2018"), 2, "sald"),
    ],
)
def test_bad_choices_are_one_line(
    numtok: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    write_csv("a.csv", homes())
    write_csv("b.csv", homes())
    ran = numtok("encode", "--scheme", "xval", *arguments)
    assert ran.code == code and words in " ".join(ran.err.split()) and ran.out == ""


def test_the_answer_of_a_rendered_row_is_its_first_target(numtok: Shell) -> None:
    rows = [{**row, "rent": n % 7 + 1} for n, row in enumerate(homes())]
    folder = encoded(numtok, write_csv("homes.csv", rows), "--target", "price", "--target", "rent")
    split = read_split(Store(Path("artifacts")).resolve(str(folder)), "train")
    prices = np.array(split.target_name.to_pylist()) == "price"
    starts = split.number_start[split.targets[prices]]
    assert starts.tolist() == split.answer_start[split.target_row[prices]].tolist()
    assert len(starts) == len(split)


COMMANDS = {
    "encode": ("encode", "--scheme", "xval"),
    "profile": ("profile",),
    "race": ("race", "--dry-run"),
    "features": ("features", "--model", "hf:none"),
    "table": ("table",),
}
#: Contradictory options, with parts of the message. Tables have --features instead of --fields.
CONTRADICTIONS: Sequence[tuple[Sequence[str], Sequence[str]]] = (
    (["--fields", "rooms,price"], ["--fields", "the target 'price'"]),
    (["--fields", "rooms,rooms"], ["--fields", "'rooms' twice"]),
    (["--fields", "rooms", "--drop", "sold"], ["--fields and --drop", "Choose one"]),
    (["--fields", "rooms", "--fields", "sold"], ["rooms, sold", "--fields rooms,sold"]),
    (["--drop", "price"], ["--drop", "the target 'price'"]),
    (["--drop", "sold,sold"], ["--drop", "'sold' twice"]),
    (["--drop", "rooms", "--drop", "sold"], ["rooms, sold", "--drop rooms,sold"]),
    (["--text-field", "price"], ["--text-field", "the target 'price'"]),
    (["--text-field", "about", "--text-field", "sold"], ["--text-field", "about, sold"]),
    (["--text-field", "about", "--fields", "rooms"], ["--text-field and --fields"]),
    (["--text-field", "about", "--drop", "rooms"], ["--text-field and --drop"]),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_contradictory_choices_of_fields_are_refused(
    numtok: Shell, says: Says, command: str
) -> None:
    write_csv("a.csv", homes())
    for options, parts in CONTRADICTIONS:
        if command == "table" and "--text-field" in options:
            continue
        if command == "table":
            options, parts = (
                [word.replace("--fields", "--features") for word in words]
                for words in (options, parts)
            )
        ran = numtok(*COMMANDS[command], "a.csv", "--target", "price", *options)
        says.refused(ran, 2, *parts)
    several = command in ("encode", "profile")
    for second in ("price", "rooms"):
        if not (several and second == "rooms"):
            ran = numtok(*COMMANDS[command], "a.csv", "--target", "price", "--target", second)
            says.refused(ran, 2, "--target", "twice" if several else f"once (got price, {second})")
    ran = numtok(*COMMANDS[command], "a.csv", "--target", "price", "--drop", "about,rooms,sold")
    says.refused(ran, 3, "a.csv", "is left")
    assert not Path("artifacts").exists() or not list(Store(Path("artifacts")).artifacts())


def test_fields_of_texts_cannot_be_chosen_for_features(numtok: Shell, says: Says) -> None:
    Path("t.jsonl").write_text('{"text": "y: 1", "targets": {"y": [[3, 4]]}}\n')
    for target, code, words in (((), 2, "Pass --target"), (("--target", "y"), 2, "texts")):
        ran = numtok("features", "t.jsonl", "--model", "hf:none", *target, "--drop", "x")
        says.refused(ran, code, "--drop", words)


@pytest.mark.parametrize(
    "command",
    [
        "encode --scheme xval FILE --target price",
        "encode --scheme xval FILE",
        "profile FILE --target price",
        "race FILE --target price",
        "race FILE",
        "table FILE --target price",
        "features FILE --target price --model gpt2",
        "train FILE --target price",
        "train FILE",
    ],
)
def test_a_file_that_does_not_exist_is_reported_with_the_nearest_name(
    numtok: Shell, command: str
) -> None:
    write_csv("homes.csv", homes())
    Path("artifacts").mkdir()
    ran = numtok(*command.replace("FILE", "hoems.csv").split())
    assert ran.code == 2 and "hoems.csv: file not found" in ran.err and "'homes.csv'" in ran.err


#: Names that have a meaning in rows of texts, in tables or in reports.
NAMES = ("cluster", "id", "text", "targets", "split", "split_1", "not_numbers", "label", "group")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_target_may_have_any_name(numtok: Shell, name: str, ending: str) -> None:
    rows = [{"rooms": row["rooms"], name: float(str(row["price"]))} for row in homes()]
    write = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[ending]
    path = write(f"a.{ending}", rows)
    folder = encoded(numtok, path, "--target", name, "--split", "test=0.2")
    split = read_split(Store(Path("artifacts")).resolve(str(folder)), "test")
    assert set(split.target_name.to_pylist()) == {name}
    ran = numtok("table", path, "--target", name, "--split", "test=0.2")
    assert ran.code == 0, ran.err
    table = read_table_of(Store(Path("artifacts")).resolve(ran.out.strip()))
    assert table.file.target == name and len(table.target) == len(rows)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_field_may_have_any_name(numtok: Shell, name: str, ending: str) -> None:
    values = ["train", "test"] if name.startswith("split") else ["red", "blue"]
    rows = [{name: values[n % 2], **row} for n, row in enumerate(homes())]
    write = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[ending]
    folder = encoded(numtok, write(f"a.{ending}", rows), "--target", "price")
    template = Codec.read(folder / SCHEME_FILE).template
    assert template is not None and (name in template.fields) == (name != "split")


def test_a_field_named_split_and_a_rule_cannot_be_combined(numtok: Shell, says: Says) -> None:
    path = write_csv("a.csv", [{"split": "ab"[n % 2], **row} for n, row in enumerate(homes())])
    options = (path, "--target", "price", "--split", "test=0.2")
    for command in (("encode", "--scheme", "xval"), ("race", "--dry-run"), ("table",)):
        ran = numtok(*command, *options)
        says.refused(ran, 2, "cannot be combined with the column 'split' of a.csv", "--drop split")
    folder = encoded(numtok, *options, "--fields", "split,rooms")
    template = Codec.read(folder / SCHEME_FILE).template
    assert template is not None and template.fields == ["split", "rooms"]
    by_field = (*options[:-1], "by=split,test=b")
    test = Store(Path("artifacts")).resolve(str(encoded(numtok, *by_field)))
    assert len(read_split(test, "test")) == len(homes()) / 2


@pytest.mark.parametrize("choice", ["--drop split", "--fields rooms,split"])
def test_a_field_named_split_has_no_splits_if_chosen_otherwise(numtok: Shell, choice: str) -> None:
    rows = [{"split": f"{n % 7}.5", **row} for n, row in enumerate(homes())]
    path = write_csv("a.csv", rows)
    ran = numtok("encode", "--scheme", "xval", path, "--target", "price")
    assert ran.code == 3 and "--drop split" in ran.err
    folder = encoded(numtok, path, "--target", "price", *choice.split())
    assert len(read_split(Store(Path("artifacts")).resolve(str(folder)), "train")) == len(rows)
