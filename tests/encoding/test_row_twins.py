"""Rows with twins in the train split: which rows are alike, for any division of the data."""

import numpy as np
import pyarrow as pa
import pytest

from numtok.data.reading.rows import Categories
from numtok.encoding import row_twins
from numtok.encoding.row_twins import RowTwins, row_hashes
from numtok.encoding.targets import ResolvedTargets
from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy


def hashes(rows: list[str], targets: tuple[int, ...] = ()) -> list[int]:
    """Return the hashes of rows; ``targets`` are indices of numbers, counted over all rows."""
    texts = Texts.of(pa.array(rows, pa.string()))
    spans = texts.find(NumeralPolicy())
    counts = np.zeros(len(rows), np.int32)
    none = np.empty(0, np.int32)
    resolved = ResolvedTargets(
        counts=counts,
        numbers=none,
        names=Categories(none, []),
        spans=np.array(targets, np.int64),
        answers=None,
        problems={},
    )
    return [int(code) for code in row_hashes(texts, spans, resolved)]


def test_case_spaces_and_target_numbers_do_not_tell_rows_apart() -> None:
    first, second, third, fourth = hashes(
        ["A car of 1.5 t costs 900", " a CAR of  1.5\tt costs 31.25\n", "a car of 1.5 t costs x",
         "a car of 2 t costs 900"], (1, 3, 6),
    )  # fmt: skip
    assert first == second
    assert len({first, third, fourth}) == 3


def test_numbers_that_are_no_targets_and_the_ends_of_words_tell_rows_apart() -> None:
    rows = ["1 2", "12", "1 2 3", "ab c", "a bc", "abc", "", "a", "b"]
    assert len(set(hashes(rows))) == len(rows)
    assert len(set(hashes(["x 1 y 2", "x 1 y 2"], (0, 3)))) == 2  # other numbers are targets


def of(train: list[int], test: list[int]) -> RowTwins:
    found = RowTwins()
    splits = Categories.of(["train"] * len(train) + ["test"] * len(test))
    found.add(np.array(train + test, np.uint64), splits)
    return found


def test_twins_are_counted_for_each_row_of_the_other_splits() -> None:
    found = of([1, 2, 2, 3], [2, 2, 3, 4, 5])
    assert found.counts() == {"test": (3, 5)}
    [note] = found.notes({"train": 4, "test": 5})
    assert note.startswith("3 of 5 test rows ")
    assert of([1, 2], [3, 4]).counts() == {}


def test_of_many_rows_the_same_are_compared_in_any_division(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_twins, "MOST", 100)
    random = np.random.default_rng(0)
    train = random.integers(0, 1 << 63, 900, np.uint64)
    test = np.concatenate([train[:300], random.integers(0, 1 << 63, 300, np.uint64)])
    whole = of(train.tolist(), test.tolist())
    parts = [of(train[i::7].tolist(), test[i::7].tolist()) for i in range(7)]
    merged = parts[3]
    merged.merge(parts[:3] + parts[4:])
    assert (whole.limit, whole.counts()) == (merged.limit, merged.counts())
    [(twins, kept)] = whole.counts().values()
    assert 20 < kept <= 100 and 0.3 < twins / kept < 0.7
