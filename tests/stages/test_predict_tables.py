"""``numtok predict`` on tables: rows without a target get the same predictions as in ``eval``."""

import csv
import io
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.data.tables.table import Feature, read_table_file
from numtok.evaluation import table_rows
from numtok.evaluation.predicted_rows import with_predictions
from numtok.reports import QUANTILES, quantile_column
from numtok.stages import predict
from numtok.store.store import Store
from tests.cases import case
from tests.chain import csv_rows, predictions_of
from tests.messages import Says
from tests.shell import Ran, Shell

#: size (number, some missing), kind, code (words, some of which look like numbers), new, price
ROWS: list[list[object]] = [
    [
        None if n % 9 == 4 else n + n % 7 / 10,
        ("flat", "house, old")[n % 2],
        ("a", "007", None)[n % 3],
        ("true", "false")[n % 5 // 3],
        30 * n + 40 * (n % 2) + n % 5,
    ]
    for n in range(60)
]
FEATURES = ["size", "kind", "code", "new"]


def write(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return name


def fitted(numtok: Shell, head: str = "mdn:2", folds: int = 1) -> str:
    """Train a model on the first 40 rows, and on other rows in further folds. Return its REF."""
    rows = [
        [*row, *("test" if (n + 20 * k) % 60 >= 40 else "train" for k in range(folds))]
        for n, row in enumerate(ROWS)
    ]
    path = write("homes.csv", [*FEATURES, "price", *(f"split_{k}" for k in range(folds))], rows)
    options = ("--target", "price", "--head", head, "--epochs", "3", "--batch", "8")
    ran = numtok("train", path, *options)
    assert ran.code == 0, ran.err
    return ran.out.split()[-1]


def evaluated(numtok: Shell, model: str, *options: str) -> list[dict[str, Any]]:
    ran = numtok("eval", model, *options)
    return predictions_of(Store(Path("artifacts")).resolve(ran.out.strip()))


def records(ran: Ran) -> list[dict[str, str]]:
    assert (ran.code, ran.err) == (0, "")
    return csv_rows(ran.out)


def predicted(numtok: Shell, model: str, path: str) -> list[str]:
    return [one["predicted"] for one in records(numtok("predict", model, path))]


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ("mdn:2", ()),
        ("pointwise", ("--point", "mean")),
        ("riemann:20", ("--point", "raft")),
        ("decoder:ud", ("--num-samples", "16", "--temperature", "0.5")),
    ],
)
def test_predictions_are_those_of_eval(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, head: str, options: tuple[str, ...]
) -> None:
    model = fitted(numtok, head)
    known = evaluated(numtok, model, *options)
    # The target is missing, there is an additional column, and the order differs.
    asked = [[f"{n:03}", *ROWS[n][3::-1]] for n in range(40, 60)]
    write("asked.csv", ["id", *FEATURES[::-1]], asked)
    ran = numtok("predict", model, "asked.csv", *options)
    said = records(ran)
    assert len(said) == len(known) == 20
    for row, one, true in zip(asked, said, known, strict=True):
        assert list(one)[:5] == ["id", *FEATURES[::-1]]
        assert list(one.values())[:5] == ["" if field is None else str(field) for field in row]
        assert float(one["predicted"]) == true["prediction"]
        for level in QUANTILES:
            name = quantile_column(level)
            assert (float(one[name]) if one[name] else None) == true[name]
    assert len({one["predicted"] for one in said}) > 10
    if "--num-samples" not in options:  # samples depend on which rows are read together
        monkeypatch.setattr(table_rows, "AT_ONCE", 7)
        assert numtok("predict", model, "asked.csv", *options) == ran


def test_words_that_look_like_numbers_stay_words(numtok: Shell) -> None:
    model = fitted(numtok)
    write("all.csv", FEATURES, [row[:4] for row in ROWS])
    known = [one for one in records(numtok("predict", model, "all.csv")) if one["code"] == "007"]
    # No other value in this file shows that they are words.
    rows = [row[:4] for row in ROWS if row[2] == "007"]
    write("codes.csv", FEATURES, rows)
    assert records(numtok("predict", model, "codes.csv")) == known
    # Empty columns and unseen values do not change the kind of a column.
    for size, code in ((None, None), (1e300, "new one")):
        write("few.csv", FEATURES, [[size, "flat", code, "true"], [size, "castle", code, "false"]])
        one, other = records(numtok("predict", model, "few.csv"))
        assert float(one["predicted"]) != float(other["predicted"])


def test_a_row_is_read_alike_whatever_is_beside_it(numtok: Shell) -> None:
    """Arrow infers the type of a column from all rows: booleans, dates, infinite numbers."""
    spelt = ("True", "False", "unknown", "2024-01-01", "inf", "7")
    rows = [[n, spelt[n % 6], spelt[n % 2], 50 * (n % 6) + n] for n in range(60)]
    path = write("kinds.csv", ["size", "kind", "new", "price"], rows)
    model = numtok("train", path, "--target", "price", "--epochs", "9", "--batch", "4").out.strip()
    write("all.csv", ["size", "kind", "new"], [row[:3] for row in rows])
    known = predicted(numtok, model, "all.csv")
    for n in range(6):
        write("one.csv", ["size", "kind", "new"], [rows[n][:3]])
        assert predicted(numtok, model, "one.csv") == [known[n]]
    # A word in a column that had none, and booleans and dates in Parquet.
    write("word.csv", ["size", "kind", "new"], [rows[0][:3], [1, "True", "perhaps"]])
    assert predicted(numtok, model, "word.csv")[0] == known[0]
    kinds = {0: pa.array([True]), 3: pa.array([date(2024, 1, 1)]), 5: pa.array([7])}
    for n, kind in kinds.items():
        columns = {"size": pa.array([n]), "kind": kind, "new": pa.array([spelt[n % 2]])}
        pq.write_table(pa.table(columns), "one.parquet")
        assert predicted(numtok, model, "one.parquet") == [known[n]]


def test_whatever_stands_in_a_field_comes_out(numtok: Shell) -> None:
    model = fitted(numtok)
    odd = ["a\rb", "a\nb", 'say "a"', "x" * 200_000, "\udcff", ""]
    header = ["note", *FEATURES]
    with Path("odd.csv").open("w", newline="", errors="surrogateescape") as file:
        csv.writer(file).writerows([header, *([one, *ROWS[0][:4]] for one in odd)])
    ran = predict.run(predict.Config(model, "odd.csv"), Store(Path("artifacts")))
    text = b"".join(ran).decode("utf-8", "surrogateescape")
    parsed = list(csv.reader(io.StringIO(text, newline="")))
    assert [one[0] for one in parsed] == ["note", *odd]
    assert len({tuple(one[5:]) for one in parsed[1:]}) == 1


def test_semicolons_and_decimal_commas_are_read(numtok: Shell) -> None:
    model = fitted(numtok)
    rows = [[f"{n},5", "flat", "a", "true"] for n in range(20)]
    with Path("european.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([FEATURES, *rows])
    usual = write("usual.csv", FEATURES, [[f"{n}.5", *rest] for n, (_, *rest) in enumerate(rows)])
    expected = records(numtok("predict", model, usual))
    assert all(row.pop("size") for row in expected)
    ran = numtok("predict", model, "european.csv")
    found = list(csv.DictReader(io.StringIO(ran.out), delimiter=";"))
    assert [row.pop("size") for row in found] == [row[0] for row in rows]
    added = [{name: text.replace(",", ".") for name, text in row.items()} for row in found]
    assert "." not in ran.out.replace("e-", "") and added == expected


@pytest.mark.parametrize(
    ("train", "new", "same"),
    [
        ("d,y\n25/12/2020,1\n03/04/2021,2\n", "d\n03/04/2020\n", "d\n2020-04-03\n"),
        ("d,y\n25.12.2020,1\n03.04.2021,2\n", "d\n03/04/20 9:30\n", "d\n2020-04-03 09:30\n"),
        ("d,y\n12/25/2020,1\n04/03/2021,2\n", "d\n04/03/2020\n", "d\n2020-04-03\n"),
        ("d;y\n1.234,5;1\n900,5;2\n", "d;k\n1.500;\n", "d,k\n1500,\n"),
        ("d;y\n1.234,5;1\n900,5;2\n", "d;k\n1.500,0;\n", "d,k\n1500,\n"),
        ("d;y\n1.234,5;1\n900,5;2\n", "d\n1.500,5\n", "d\n1500.5\n"),
        ("d;y\n1.234,5;1\n900,5;2\n", "d;k\n2.5;\n", "d,k\n2.5,\n"),
        ("d;y\n1,234.5;1\n900.5;2\n", "d;k\n1,5;\n", "d,k\n1.5,\n"),
        ("d;y\n1,234.5;1\n900.5;2\n", "d;k\n1,500;\n", "d,k\n1500,\n"),
        ("d,y\n1.234,1\n900.5,2\n", "d;k\n1,500;\n", "d,k\n1.5,\n"),
    ],
)
def test_ambiguous_cells_are_read_as_in_training(
    numtok: Shell, train: str, new: str, same: str
) -> None:
    for name, text in (("train", train), ("new", new), ("same", same)):
        Path(f"{name}.csv").write_text(text)
    made = numtok("-q", "table", "train.csv", "--target", "y", "--split", "test=0.01")
    table = Store(Path("artifacts")).resolve(made.out.strip())
    wanted = read_table_file(table).features
    read, expected = (
        table_rows.read_features(name, wanted, (), "m").numbers for name in ("new.csv", "same.csv")
    )
    assert read.tolist() == expected.tolist()


def test_numbers_of_any_type_are_the_categories_of_training(tmp_path: Path) -> None:
    def read(column: "pa.Array[Any]", known: Sequence[str]) -> list[str | None]:
        path = tmp_path / "new.parquet"
        pq.write_table(pa.table({"k": column}), path)
        features = table_rows.read_features(str(path), [Feature("k", "category")], [known], "m")
        words: list[str | None] = features.categories[0].to_pylist()
        return words

    for kind in (pa.float64(), pa.float32(), pa.decimal128(5, 2)):
        column = pa.array([1, 2.5, 4, None], pa.float64()).cast(kind)
        for each in (column, column.dictionary_encode()):
            with case(kind=each.type):
                assert read(each, ["1.0", "2.50", "x"])[:2] == ["1.0", "2.50"]
                assert read(each, ["1", "2.5", "04"]) == ["1", "2.5", "04", None]
    assert read(pa.array([1, 7, 2**53 + 1]), ["007", "1.0", str(2**53)]) == [
        *("1.0", "007", str(2**53 + 1)),
    ]
    assert read(pa.array([1.0, float("nan")]), ["1", "nan"]) == ["1", None]


def test_predictions_have_the_decimal_mark_of_training_if_the_file_is_ambiguous(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new.csv"
    for row, mark in ("1.500;a", ","), ("1,234.5;a", "."):
        path.write_text(f"w;k\n{row}\n")
        numbers = iter([{"y": {"predicted": 15.5}}])
        lines = with_predictions(str(path), ["y"], ["predicted"], numbers, decimal=",")
        assert list(lines) == [b"w;k;predicted\n", f"{row};15{mark}5\n".encode()]


def test_parquet_is_read_as_csv_is(numtok: Shell) -> None:
    model = fitted(numtok)
    write("asked.csv", FEATURES, [row[:4] for row in ROWS])
    columns: dict[str, Any] = {name: [row[k] for row in ROWS] for k, name in enumerate(FEATURES)}
    columns["kind"] = pa.array(columns["kind"]).dictionary_encode()
    columns["new"] = [one == "true" for one in columns["new"]]
    pq.write_table(pa.table(columns), "asked.parquet")
    expected = records(numtok("predict", model, "asked.csv"))
    rows = records(numtok("predict", model, "asked.parquet"))
    sizes, known = ([float(one.pop("size") or -1) for one in some] for some in (rows, expected))
    assert (sizes, rows) == (known, expected)


def test_one_of_several_models_has_to_be_named(numtok: Shell, says: Says) -> None:
    model = fitted(numtok, folds=2)
    write("asked.csv", FEATURES, [row[:4] for row in ROWS])
    known = {(one["position"], one["id"]): one["prediction"] for one in evaluated(numtok, model)}
    assert len(known) == 40
    for fold in (0, 1):
        said = records(numtok("predict", model, "asked.csv", "--fold", str(fold)))
        of_fold = {int(id): one for (position, id), one in known.items() if position == fold}
        assert {n: float(said[n]["predicted"]) for n in of_fold} == of_fold
    for options, told in (
        ((), f"{model} has 2 folds. "),
        (("--fold", "2"), f"{model} has no fold 2. "),
    ):
        ran = numtok("predict", model, "asked.csv", *options)
        says.refused(ran, 2, told, "Pass --fold K; available: 0, 1\n")


def test_what_cannot_be_asked_is_told_in_one_line(numtok: Shell, says: Says) -> None:
    model = fitted(numtok)
    rows = [row[:4] for row in ROWS]
    write("short.csv", ["size", "kind"], [row[:2] for row in rows])
    write("said.csv", [*FEATURES, "predicted"], [[*row, 1] for row in rows])
    write("twice.csv", [*FEATURES, "kind"], [[*row, "flat"] for row in rows])
    write("words.csv", FEATURES, [*rows, ["large", "flat", "a", "true"]])
    write("endless.csv", FEATURES, [["inf", "flat", "a", "true"]])
    words = pa.array(["flat", "flat"])
    of = {"size": pa.array(["1", "1e999"]), "kind": words, "code": words, "new": words}
    pq.write_table(pa.table(of), "endless.parquet")
    of["size"] = pa.array([1, 2])
    pq.write_table(pa.table(of | {"kind": pa.array([[1], [2]])}), "lists.parquet")
    far = pa.array([[10**15], [1]], pa.list_(pa.timestamp("s")))
    pq.write_table(pa.table(of | {"more": far}), "long.parquet")
    write("bars.csv", ["|".join(FEATURES)], [["1|flat|a|true"]])
    Path("asked.jsonl").write_text('{"size": 3}\n')
    fitted_to = f"{model} needs size (number), kind (category), "
    for line, code, *told in (
        ("gone.csv", 2, "gone.csv: file not found"),
        ("asked.jsonl", 2, "asked.jsonl has no column 'kind'", fitted_to),
        ("short.csv", 2, "short.csv has no column 'code', 'new' (it has 'size', 'kind'", fitted_to),
        ("said.csv", 2, "said.csv has a column 'predicted'", "Rename it"),
        ("twice.csv", 3, "twice.csv has the column 'kind' 2 times"),
        ("words.csv", 3, "words.csv: ", "row 61: feature 'size'", "'large'", "leave it empty"),
        ("endless.csv", 3, "endless.csv: ", "'size' must be finite", "(got inf in row 1)"),
        ("endless.parquet", 3, "endless.parquet: ", "'size' must be finite", "(got inf in row 2)"),
        ("lists.parquet", 3, "lists.parquet: ", "column 'kind' must be ", "list<element: int64>"),
        ("long.parquet", 3, "long.parquet: ", "'more' cannot be written as text", "Remove it"),
        ("bars.csv", 2, "(it has 'size|kind|code|new')", "separated by commas", fitted_to),
        ("-", 2, "standard input", "Pass a file"),
        ("short.csv --num-samples -1", 2, "--num-samples ", "at least 0 (got -1)"),
        ("short.csv --fold 3", 2, f"{model} has no fold 3", "--fold K; available: 0"),
        ("short.csv --batch 3", 2, "--batch ", "Remove it"),
        ("short.csv --temperature 2", 2, "--temperature, --top-k and --top-p ", "--num-samples N"),
        ("short.csv --point best", 2, "--point ", "mode, median, mean or raft (got 'best')"),
    ):
        with case(line):
            says.refused(numtok("predict", model, *line.split()), code, *told)


def test_nothing_is_written_where_options_cannot_be(numtok: Shell, says: Says) -> None:
    """Not even the header is written: the output may replace a good file."""
    model = fitted(numtok)
    write("rows.csv", FEATURES, [row[:4] for row in ROWS])
    ran = numtok("predict", model, "rows.csv", "--num-samples", "5", "--top-p", "0.9")
    says.refused(ran, 2, "--top-p only ", f"decoder heads; {model} has no decoder. Remove them")
    write("none.csv", FEATURES, [])
    limit = csv.field_size_limit()
    ran = numtok("predict", model, "none.csv")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
    assert csv.field_size_limit() == limit  # a setting of the whole process
