"""Functions that accept a data frame in place of a file."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.errors import DataError, UsageError
from numtok.library.stored import StoredArtifact
from tests import fakemodels
from tests.cases import case
from tests.messages import Says

pytestmark = pytest.mark.integration
one_thread = fakemodels.one_thread

ROWS = 120
KINDS = ["oak, tall", "elm\nlow", "ash"] * 40
WIDTHS = np.arange(ROWS) % 17
FRAME = pd.DataFrame(
    {"kind": KINDS, "width": WIDTHS, "code": ["007", "008"] * 60, "price": 2.5 * WIDTHS + 1},
    index=np.arange(1000, 1000 + ROWS),
)
SMALL: dict[str, Any] = {"preset": "nano,layers=1,width=32", "steps": 5}


def frames() -> dict[str, Any]:
    polars = pl.from_pandas(FRAME)
    data_set = pytest.importorskip("datasets").Dataset.from_pandas(FRAME, preserve_index=False)
    shuffled = data_set.select([*range(1, ROWS), 0]).select([ROWS - 1, *range(ROWS - 1)])
    return {"pandas": FRAME, "polars": polars, "arrow": pa.table(polars), "datasets": shuffled}


def hidden(store: Path) -> list[str]:
    """Return the files left in a store other than artifacts."""
    return [path.name for path in store.iterdir() if path.name.startswith(".spool")]


def test_a_frame_is_encoded_like_its_file(tmp_path: Path) -> None:
    store = tmp_path / "store"
    pq.write_table(pa.table(pl.from_pandas(FRAME)), tmp_path / "mine.parquet")
    of_file = numtok.encode(tmp_path / "mine.parquet", target="price", scheme="xval", store=store)
    for name, frame in frames().items():
        with case(name):
            encoded = numtok.encode(frame, target="price", scheme="xval", store=store)
            assert encoded.ref.startswith("frame-xval@")
            assert encoded.to_arrow() == of_file.to_arrow()
    named = numtok.encode(inputs=FRAME, target="price", scheme="xval", store=store, name="woods")
    assert named.ref.startswith("woods@")
    assert hidden(store) == []


def test_a_text_model_predicts_a_frame(tmp_path: Path) -> None:
    encoded = numtok.encode(FRAME, target="price", scheme="xval", store=tmp_path)
    model = numtok.train(encoded, **SMALL)
    rows = FRAME.drop(columns="price")
    predicted = numtok.predict(model, rows)
    assert predicted.select(range(3)).to_pylist() == rows.to_dict("records")
    assert predicted.column_names[3] == "predicted" and "q95" in predicted.column_names
    assert np.isfinite(predicted["predicted"].to_numpy()).all()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    of_csv = numtok.predict(model, tmp_path / "rows.csv")
    assert of_csv["predicted"].to_pylist() == predicted["predicted"].to_pylist()


def test_a_table_model_is_trained_on_a_frame_and_predicts_one(tmp_path: Path) -> None:
    table = numtok.table(FRAME, target="price", name="woods", store=tmp_path)
    assert table.ref.startswith("woods@") and table.counts["rows"] == ROWS
    model: StoredArtifact = numtok.train(
        frames()["polars"], target="price", preset="mlp,layers=1,width=8", epochs=1, store=tmp_path
    )
    predicted = numtok.predict(model, FRAME.drop(columns="price"))
    assert predicted.num_rows == ROWS and predicted["code"].to_pylist() == FRAME["code"].to_list()


def test_a_frame_is_profiled_and_raced(tmp_path: Path) -> None:
    profiled = numtok.profile(FRAME, target="price", schemes=["xval"], store=tmp_path)
    assert profiled.result.rows == ROWS
    more = pd.concat([FRAME] * 3, ignore_index=True)
    plan = numtok.race(more, target="price", minutes=1, dry_run=True, store=tmp_path)
    assert 2 * ROWS < sum(plan.result.rows) < 3 * ROWS  # without the rows for calibration
    for shown in (profiled, plan):
        assert "frame" in f"{shown} {shown.result}" and "spool" not in f"{shown} {shown.result}"
    assert hidden(tmp_path) == []


def test_a_frame_with_texts_is_encoded_as_texts(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": ["1 + 2 = 3", "2 + 2 = 4"]})
    assert numtok.encode(frame, scheme="p10", store=tmp_path).counts["numbers"] == 6


def test_categories_of_polars_and_bytes_are_words(tmp_path: Path) -> None:
    words = [kind.split()[0] for kind in KINDS]
    of_words = pl.DataFrame({"kind": words, "y": WIDTHS})
    expected = numtok.encode(of_words, target="y", scheme="p10", store=tmp_path)
    for kind in (pl.Categorical, pl.Enum(["ash", "elm", "oak,"]), pl.Binary):
        with case(kind):
            frame = of_words.with_columns(pl.col("kind").cast(kind))
            encoded = numtok.encode(frame, target="y", scheme="p10", store=tmp_path)
            assert encoded.to_arrow() == expected.to_arrow()
            table = numtok.table(frame, target="y", split="test=0.2", store=tmp_path)
            assert table.counts["features"] == 1


def test_answers_in_a_frame_are_scored_by_another_function(says: Says) -> None:
    answers = pd.DataFrame({"answer": ["5"], "truth": [5]})
    for given, named in (((answers,), {}), ((), {"files": answers}), (("a",), {"truth": answers})):
        with case(given, named), says.raises(UsageError, "data frame", "score_answers"):
            numtok.score(*given, **named)


def test_values_without_text_are_refused(tmp_path: Path, says: Says) -> None:
    """Arrow would write periods and durations as a count of their unit."""
    columns: dict[str, Any] = {
        "period": pd.period_range("2020-01", periods=ROWS, freq="M"),
        "hours": pd.to_timedelta(WIDTHS, unit="h"),
        "sparse": pd.arrays.SparseArray(WIDTHS),
    }
    for name, values in columns.items():
        frame = pd.DataFrame({name: values, "y": WIDTHS})
        with case(name), says.raises(DataError, "frame", name):
            numtok.encode(frame, target="y", scheme="p10", store=tmp_path)


def test_errors_name_the_frame(tmp_path: Path, says: Says) -> None:
    store = tmp_path / "store"
    mixed = pd.DataFrame({"m": [1, "b"], "y": [1, 2]})
    cases: list[tuple[Any, type[Exception], tuple[str, ...]]] = [
        (FRAME, UsageError, ("frame: unknown field 'prize'", "'price'")),
        (mixed, DataError, ("frame cannot be read", "column m")),
        (FRAME.set_axis(list("aabc"), axis=1), DataError, ("frame cannot be read", "uplicate")),
    ]
    for frame, kind, parts in cases:
        with case(parts[0]), says.raises(kind, *parts):
            numtok.encode(frame, target="prize", scheme="xval", store=store)
    with pytest.raises(UsageError, match="model must be a string"):
        numtok.eval(FRAME, store=store)
    assert not store.exists()
