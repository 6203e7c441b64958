"""Rows of tables that have a twin in the train split."""

import numpy as np
import pyarrow as pa

from numtok.data.tables.table import Feature, Table, TableFile, count_twins


def table(numbers: list[list[float]], words: list[str | None], splits: list[str]) -> Table:
    features = [Feature(f"x{i}", "number") for i in range(len(numbers[0]))]
    file = TableFile(target="y", features=features, splits=["split"], notes=[])
    values = np.array(numbers, np.float64).reshape(len(numbers), -1)
    columns = [pa.array(words, pa.string())] if words else []
    return Table(
        file=file,
        numbers=values,
        categories=columns,
        target=np.arange(len(numbers), dtype=float),
        assigned=[pa.array(splits)],
    )


def test_twins_have_the_same_features_whatever_their_target() -> None:
    splits = ["train", "train", "train", "test", "test", "test", "test"]
    nan = float("nan")
    numbers = [[1.0, nan], [0.0, 2.0], [5.0, 5.0], [1.0, nan], [-0.0, 2.0], [5.0, 5.0], [7.0, 7.0]]
    assert count_twins(table(numbers, [], splits), "test") == 3
    words = ["Red", None, "blue", " red ", None, "green", "blue"]
    assert count_twins(table(numbers, words, splits), "test") == 2


def test_rows_without_features_have_no_twins() -> None:
    assert count_twins(table([[], []], [], ["train", "test"]), "test") == 0
