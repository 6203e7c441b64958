"""``numtok predict --baseline``: rows of a file, predicted by a freshly fitted baseline."""

import csv
import io
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import numtok
from numtok.data.records.row_template import TEMPLATE
from numtok.errors import DataError, UsageError
from numtok.evaluation.record_splits import read_record_splits
from numtok.evaluation.rivals import TUNED, rivals
from numtok.evaluation.tabular_rival import tabular_rival
from numtok.reports import BASELINE
from numtok.settings.predict import Config
from numtok.stages import encode, eval, table, train
from numtok.store.artifact import DATA, TABLE, Artifact
from numtok.store.store import Store
from numtok.sweeps.baseline_rows import command_for, run
from tests.chain import predictions_of, quiet
from tests.messages import Says
from tests.shell import Shell

pytestmark = pytest.mark.integration

SPLIT = "validation=0.15,calibration=0.15,test=0.2"
WORDS = ("a flat near the park", "an old house in the hills", "a cabin by the lake")
TINY: dict[str, Any] = {
    "preset": "nano,layers=1,width=16,heads=2",
    "steps": 2,
    "batch": 8,
    "device": "cpu",
}


def homes(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return records whose price depends on words and numbers, with noise."""
    random = np.random.default_rng(seed)
    kinds, rooms = random.integers(3, size=rows), random.integers(1, 6, rows)
    areas, noise = random.uniform(20, 90, rows).round(1), random.normal(0, 8, rows)
    prices = (50 * kinds + 20 * rooms + areas + noise + 100).round(2)
    return [
        {
            "about": f"{WORDS[kind]}, number {n}",
            "rooms": int(room),
            "area": float(area),
            "sold": f"20{10 + n % 9}-0{1 + n % 9}-11",
            "price": float(price),
        }
        for n, (kind, room, area, price) in enumerate(zip(kinds, rooms, areas, prices, strict=True))
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose store has the records as a table, as rows and as encoded data."""
    folder = tmp_path_factory.mktemp("homes")
    path, store = write(folder / "homes.csv", homes(400)), Store(folder / "artifacts")
    features = ("rooms", "area", "sold")
    table.run(table.Config(path, target="price", split=SPLIT, features=features), store)
    settings = encode.Config((path,), scheme="xval", target=("price",), split=SPLIT)
    encode.run(settings, store, lambda *_: None)
    return folder


def stored(folder: Path, ref: str) -> Artifact:
    return Store(folder / "artifacts").resolve(ref)


def new_rows(folder: Path, tmp_path: Path, ids: list[str]) -> str:
    """Write the records with these ids, without the target, and return the path."""
    rows = homes(400)
    kept = [{name: v for name, v in rows[int(n)].items() if name != "price"} for n in ids]
    return write(tmp_path / "new.csv", kept)


def predicted(folder: Path, ref: str, file: str, baseline: str, **more: Any) -> dict[str, Any]:
    lines = run(Config(ref, file, baseline=baseline, **more), Store(folder / "artifacts"))
    rows = list(csv.DictReader(io.StringIO(b"".join(lines).decode())))
    return {name: [row[name] for row in rows] for name in rows[0]}


def check_equal(
    folder: Path, tmp_path: Path, ref: str, ids: list[str], known: Mapping[str, Any]
) -> None:
    file = new_rows(folder, tmp_path, ids)
    for name, values in known.items():
        found = predicted(folder, ref, file, name)
        assert list(found) == ["about", "rooms", "area", "sold", "predicted"]
        assert np.array(found["predicted"], float) == pytest.approx(np.asarray(values), rel=1e-6)


@pytest.mark.parametrize("ref", ["homes", "homes-xval"])
def test_rows_get_the_values_of_a_report_on_texts(folder: Path, tmp_path: Path, ref: str) -> None:
    store = Store(folder / "artifacts")
    model = train.run(train.Config("homes-xval", **TINY), store, quiet).artifact
    report = predictions_of(eval.run(eval.Config(model.ref), store, quiet).artifact)
    names = ["mean", "linear", "boosted", "tfidf", "boosted-text"]
    known = {name: [row[BASELINE + name] for row in report] for name in names}
    if ref == "homes":  # the table and the rendered rows have this name; the table has priority
        ref = f"data/{ref}"
    check_equal(folder, tmp_path, ref, [row["id"] for row in report], known)


def test_rows_get_the_values_of_a_report_on_a_table(folder: Path, tmp_path: Path) -> None:
    store = Store(folder / "artifacts")
    settings = train.Config("table/homes", head="pointwise", epochs=1, device="cpu")
    model = train.run(settings, store, quiet).artifact
    report = predictions_of(eval.run(eval.Config(model.ref), store, quiet).artifact)
    names = ["mean", "median", "linear", "boosted"]
    known = {name: [row[BASELINE + name] for row in report] for name in names}
    check_equal(folder, tmp_path, "homes", [row["id"] for row in report], known)


def test_rows_get_the_values_of_a_race(folder: Path, tmp_path: Path) -> None:
    of_table, of_rows = stored(folder, "table/homes"), stored(folder, "data/homes")
    tuned = rivals(of_table, "test")
    ids = [row for row, *_ in tuned.keys]
    check_equal(folder, tmp_path, "homes", ids, {TUNED: tuned.values[TUNED]})
    tabular = tabular_rival(read_record_splits(of_rows, "price", "test"))
    assert [row for row, *_ in tabular.keys] == ids
    check_equal(folder, tmp_path, "homes", ids, tabular.values)


@pytest.mark.parametrize(("ref", "baseline"), [("table/homes", "linear"), ("homes", "tfidf")])
def test_intervals_cover_new_rows(folder: Path, tmp_path: Path, ref: str, baseline: str) -> None:
    rows = homes(1500, seed=1)
    file = write(tmp_path / "new.csv", rows)
    found = predicted(folder, ref, file, baseline, interval=0.9)
    assert list(found)[-4:] == ["price", "predicted", "interval_low", "interval_high"]
    truth = np.array([row["price"] for row in rows])
    low, point, high = (
        np.array(found[name], float) for name in ("interval_low", "predicted", "interval_high")
    )
    assert 0.82 < np.mean((low <= truth) & (truth <= high)) < 0.97
    assert np.ptp(high - low) < 1e-6 and (low < point).all()
    assert point.tolist() == pytest.approx(
        [float(value) for value in predicted(folder, ref, file, baseline)["predicted"]]
    )


def test_json_lines_come_back_with_each_target(tmp_path: Path) -> None:
    rows = [row | {"rent": row["price"] / 100} for row in homes(200)]
    store = Store(tmp_path / "artifacts")
    settings = encode.Config(
        (write(tmp_path / "homes.csv", rows),),
        scheme="xval",
        target=("price", "rent"),
        split="validation=0.2",
    )
    encode.run(settings, store, lambda *_: None)
    path = tmp_path / "new.jsonl"
    given = [{name: row[name] for name in ("about", "rooms", "area", "sold")} for row in rows[:5]]
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    config = Config("homes-xval", str(path), baseline="linear", interval=0.5)
    found = [json.loads(line) for line in run(config, store)]
    assert [{name: row[name] for name in given[0]} for row in found] == given
    for row in found:
        price, rent = row["predicted"]["price"], row["predicted"]["rent"]
        assert list(price) == list(rent) == ["predicted", "interval_low", "interval_high"]
        assert rent["predicted"] == pytest.approx(price["predicted"] / 100, rel=1e-6)
        assert rent["interval_low"] < rent["predicted"] < rent["interval_high"] < 10


def test_a_frame_is_predicted_in_python(folder: Path) -> None:
    frame = pl.DataFrame(homes(5, seed=2)).drop("price", "about")
    store = folder / "artifacts"
    found = numtok.predict("table/homes", frame, baseline="boosted", interval=0.9, store=store)
    assert found.column_names == [*frame.columns, "predicted", "interval_low", "interval_high"]
    assert len(found) == 5


def test_the_command_of_a_race_uses_the_data_that_fits(folder: Path, tmp_path: Path) -> None:
    data = [stored(folder, f"{TABLE}/homes"), stored(folder, f"{DATA}/homes")]
    [of_table] = command_for("linear", data, "new.csv")
    [of_rows] = command_for("tfidf", data, "new.csv")
    assert f"{TABLE}/homes@" in of_table and f"{DATA}/homes@" in of_rows
    assert command_for("place", data, "new.csv") == []
    words = shlex.split(command_for(TUNED, data, "new.csv")[0])
    assert words[:4] == ["numtok", "predict", "--baseline", TUNED] and words[5:] == ["new.csv"]


def test_bad_requests_are_refused_in_a_line(
    folder: Path, tmp_path: Path, numtok: Shell, says: Says
) -> None:
    store = ("--store", str(folder / "artifacts"))
    rows = [{name: value for name, value in row.items() if name != "price"} for row in homes(5)]
    write(Path("new.csv"), rows)
    write(Path("short.csv"), [{"about": row["about"], "rooms": row["rooms"]} for row in rows])
    write(Path("words.csv"), [row | {"area": "large"} for row in rows])
    every = ("mean", "median", "linear", "boosted", "tuned boosting")
    for words, code, parts in (
        (("homes", "new.csv", "--baseline", "tfidff"), 2, (*every, "tfidf", "tabular")),
        (("table/homes", "new.csv", "--baseline", "tfidf"), 2, every),
        (("homes", "short.csv", "--baseline", "tfidf"), 2, ("short.csv", "'area', 'sold'")),
        (("homes", "short.csv", "--baseline", "linear"), 2, ("short.csv", "'area', 'sold'")),
        (("homes", "words.csv", "--baseline", "linear"), 3, ("row 1", "'area'", "'large'")),
        (("homes", "words.csv", "--baseline", "tabular"), 3, ("words.csv", "'area'", "numbers")),
        (("homes", "new.csv", "--baseline", "linear", "--point", "mean"), 2, ("--point",)),
        (("homes", "new.csv", "--baseline", "tfidf", "--fold", "0"), 2, ("--fold",)),
        (("homes", "new.csv", "--baseline", "linear", "--fold", "3"), 2, ("no fold 3",)),
    ):
        ran = numtok(*store, "predict", *words)
        assert (ran.code, ran.out) == (code, "") and len(ran.err.splitlines()) == 1, ran.err
        says(ran.err, *parts)


def test_data_without_a_target_or_calibration_rows_is_refused(tmp_path: Path, says: Says) -> None:
    store = Store(tmp_path / "artifacts")
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": f"it is {n}"}) + "\n" for n in range(9)))
    encode.run(encode.Config((str(texts),), scheme="xval"), store, lambda *_: None)
    new = write(tmp_path / "new.csv", homes(5))
    with says.raises(UsageError, "texts-xval", "--target"):
        list(run(Config("texts-xval", new, baseline="tfidf"), store))
    path = write(tmp_path / "homes.csv", homes(100))
    encode.run(encode.Config((path,), scheme="xval", target=("price",)), store, lambda *_: None)
    assert TEMPLATE.read(store.resolve("data/homes").path).targets == ["price"]
    with says.raises(UsageError, "neither a split calibration", "--split"):
        list(run(Config("homes", new, baseline="tfidf", interval=0.9), store))
    assert len(list(run(Config("homes", new, baseline="tfidf"), store))) == 6
    with says.raises(UsageError, TUNED, "linear"):  # nothing to tune on
        list(run(Config("homes", new, baseline=TUNED), store))
    few = write(tmp_path / "few.csv", homes(6))
    encode.run(encode.Config((few,), scheme="xval", target=("price",)), store, lambda *_: None)
    with says.raises(UsageError, "'tfidf'", "too few", "another baseline"):
        list(run(Config("few", new, baseline="tfidf"), store))
    Path(new).write_text("about,rooms,area,sold\n")
    with says.raises(DataError, "new.csv", "no rows"):
        list(run(Config("homes", new, baseline="linear"), store))
