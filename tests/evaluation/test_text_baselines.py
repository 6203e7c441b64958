"""Baselines that read the words of a row: input, training, and when they are missing."""

import json
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model

from numtok.encoding.splits import read_split
from numtok.evaluation import rows as rows_module
from numtok.evaluation import text_baselines as module
from numtok.evaluation import word_features
from numtok.evaluation.baselines import FittedBaselines
from numtok.evaluation.fields import anchored_fields
from numtok.evaluation.queries import queries_of
from numtok.evaluation.rows import Rows
from numtok.evaluation.text_baselines import text_baselines
from numtok.stages import encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store

pytestmark = pytest.mark.integration

COLORS = ("red", "green", "blue", "black")
PRICES = dict(zip(COLORS, (1.5, 20.0, 300.0, 4000.0), strict=True))


@pytest.fixture(autouse=True)
def nothing_is_fitted_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    monkeypatch.setattr(module, "_fits", {})


Row = dict[str, Any]


def row(text: str, split: str, **targets: str) -> Row:
    """Replace ``{name}`` in a text by the literal of each target."""
    spans = {}
    for name in sorted(targets, key=lambda name: text.index(f"{{{name}}}")):
        begin = text.index(f"{{{name}}}")
        text = text.replace(f"{{{name}}}", targets[name])
        spans[name] = [[begin, begin + len(targets[name])]]
    return {"text": text, "targets": spans, "split": split}


def encoded(folder: Path, rows: Sequence[Row], scheme: str = "xval") -> Artifact:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"id": at} | row) + "\n" for at, row in enumerate(rows)))
    config = encode.Config((str(path),), scheme=scheme)
    result = encode.run(config, Store(folder / scheme), lambda *_: None)
    assert result.artifact is not None
    return result.artifact


def rows_of(data: Artifact, split: str) -> Rows:
    samples = read_split(data, split)
    return Rows(data, split, samples, np.unique(samples.target_row))


def fitted(data: Artifact) -> FittedBaselines:
    parts = rows_of(data, "train"), rows_of(data, "test")
    train, test = anchored_fields(*parts)
    return text_baselines(train, test, queries_of(parts[1].samples, False))


def truth(data: Artifact) -> np.ndarray[Any, np.dtype[np.float64]]:
    samples = read_split(data, "test")
    return samples.numbers[samples.targets]


def priced(count: int = 200, tested: str = "") -> list[Row]:
    """Return rows whose price depends only on a word after it; ``tested`` replaces test prices."""
    random = np.random.default_rng(0)
    rows = []
    for at in range(count):
        color = COLORS[random.integers(4)]
        price = f"{PRICES[color] * (1 + 0.01 * random.random()):.4f}"
        split = "test" if at % 4 == 0 else "train"
        text = f"Sold on day {at} for {{price}} dollars: a {color} lamp"
        rows.append(row(text, split, price=tested or price if split == "test" else price))
    return rows


def test_texts_hide_the_targets_and_nothing_else(tmp_path: Path) -> None:
    lines = ["{a} of -2.50 and 7, é [NUM] 1e30; {b} m", "x1 {b} 3.25, {a}"]
    data = encoded(tmp_path, [row(line, "train", a="5", b="-0.5") for line in lines])
    assert list(rows_of(data, "train").texts()) == [
        " of -2.5 and 7, é [NUM] 1e+30;  m",
        "x1  3.25, ",
    ]


def test_texts_of_some_rows_are_those_of_these_rows(tmp_path: Path) -> None:
    data = encoded(tmp_path, [row(f"row {at}: {{y}}", "train", y=f"{at}.5") for at in range(9)])
    every = rows_of(data, "train")
    drawn = np.array([1, 4, 8])
    some = Rows(data, "train", every.samples.take(drawn), np.array([0, 2]), drawn)
    assert list(every._replace(chosen=np.array([2, 7])).texts()) == ["row 2: ", "row 7: "]
    assert list(some.texts()) == ["row 1: ", "row 8: "]


def test_long_texts_are_cut_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_MOST_CHARACTERS", 10)
    data = encoded(tmp_path, [row("begin with words, end at {y}", "train", y="5")])
    assert list(rows_of(data, "train").texts()) == ["begin d at "]


@pytest.mark.parametrize("scheme", ["xval", "digits"])
def test_words_after_the_target_are_learned(tmp_path: Path, scheme: str) -> None:
    """The scale is logarithmic, so relative errors are small even for cheap lamps."""
    data = encoded(tmp_path, priced(), scheme)
    result, expected = fitted(data), truth(data)
    assert list(result.values) == ["tfidf", "boosted-text"] and result.notes == []
    for values in result.values.values():
        assert np.abs(np.log(values / expected)).max() < 0.2


def test_predictions_do_not_depend_on_the_values_to_predict(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    expected = fitted(encoded(one, priced())).values
    data = encoded(other, priced(tested="77.7777"))
    assert set(truth(data)) == {77.7777}
    for name, values in fitted(data).values.items():
        np.testing.assert_array_equal(values, expected[name])


def test_values_that_are_not_positive_have_a_signed_logarithm(tmp_path: Path) -> None:
    signs = {"up": 1, "down": -1, "flat": 0}
    sizes = {"tiny": 1e-2, "mid": 1.0, "huge": 1e4}
    rows = []
    for at in range(270):
        sign, size = list(signs)[at % 3], list(sizes)[at // 3 % 3]
        text = f"{sign}-{size} moves by {{y}}"
        rows.append(
            row(text, "test" if at % 10 == 0 else "train", y=f"{signs[sign] * sizes[size]:g}")
        )
    data = encoded(tmp_path, rows)
    result, expected = fitted(data), truth(data)
    assert np.abs(result.values["tfidf"] - expected).mean() < 0.1 * np.abs(expected).mean()


def test_predictions_stay_in_the_range_of_the_training_values(tmp_path: Path) -> None:
    """Ten words that each add to the value occur together only in the test rows."""
    words = [f"w{letter}" for letter in "abcdefghij"]
    rows = [row(f"{words[at % 10]} gives {{y}}", "train", y=str(at % 10 + 1)) for at in range(100)]
    rows.append(row(f"{' '.join(words)} gives {{y}}", "test", y="55"))
    result = fitted(encoded(tmp_path, rows))
    for values in result.values.values():
        assert 1 <= values[0] <= 10


def test_each_of_several_targets_has_its_own_fit(tmp_path: Path) -> None:
    rows = []
    for at in range(120):
        color = COLORS[at % 4]
        literal = {"price": f"{PRICES[color]}", "letters": str(len(color))}
        text = f"A {color} lamp: {{price}} dollars, {{letters}} letters"
        rows.append(row(text, "test" if at % 5 == 0 else "train", **literal))
    data = encoded(tmp_path, rows)
    result = fitted(data)
    assert result.values["tfidf"] == pytest.approx(truth(data), rel=0.05)


def test_results_are_the_same_again_and_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = []
    fit = linear_model.Ridge.fit

    def counting(self: Any, x: Any, y: Any) -> Any:
        fits.append(len(y))
        return fit(self, x, y)

    monkeypatch.setattr(linear_model.Ridge, "fit", counting)
    rows = priced()
    first = fitted(encoded(tmp_path, rows))
    once = len(fits)
    again = fitted(encoded(tmp_path, rows, "digits"))  # another scheme, the same texts
    assert len(fits) == once
    module._fits.clear()
    monkeypatch.setenv("NUMTOK_THREADS", "2")
    anew = fitted(encoded(tmp_path, rows))
    assert len(fits) == 2 * once
    for name, values in first.values.items():
        assert values.tobytes() == again.values[name].tobytes() == anew.values[name].tobytes()


def test_the_training_rows_are_a_sample_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encoded(tmp_path, priced(400))
    monkeypatch.setattr(word_features, "FITTED_ON", 120)
    train = rows_of(data, "train")
    kept, texts = word_features.sampled(train)
    assert (
        len(texts) == len(kept.chosen) == 120 and kept.chosen.min() < 30 < 270 < kept.chosen.max()
    )
    assert texts == list(kept.texts())
    monkeypatch.setattr(word_features, "_MOST_CHARACTERS", 3000)
    kept, texts = word_features.sampled(train)
    assert sum(map(len, texts)) <= 3000 < sum(map(len, texts)) + 60
    assert texts == list(kept.texts())
    [note] = fitted(data).notes
    assert f"{len(texts)} of 300" in note


def test_the_targets_of_a_name_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If rows have several targets of one name, there are more targets than rows."""
    fits = []
    fit = linear_model.Ridge.fit

    def counting(self: Any, x: Any, y: Any) -> Any:
        fits.append(len(y))
        return fit(self, x, y)

    monkeypatch.setattr(linear_model.Ridge, "fit", counting)
    monkeypatch.setattr(module, "_MOST_TARGETS", 90)
    rows = []
    for at in range(60):
        text = f"{COLORS[at % 4]}: {PRICES[COLORS[at % 4]]} {PRICES[COLORS[at % 4]]}"
        begin = text.index(" ") + 1
        middle = text.rindex(" ")
        spans = {"price": [[begin, middle], [middle + 1, len(text)]]}
        rows.append({"text": text, "targets": spans, "split": "test" if at % 6 == 0 else "train"})
    data = encoded(tmp_path, rows)
    result = fitted(data)
    assert fits[-1] == 90 and result.values["tfidf"] == pytest.approx(truth(data), rel=0.05)


def test_too_few_rows_and_rows_without_common_words_are_noted(tmp_path: Path) -> None:
    few = [row("a lamp for {y}", "train", y=str(at)) for at in range(9)]
    few.append(row("a lamp for {y}", "test", y="1"))
    result = fitted(encoded(tmp_path, few))
    assert result.values == {} and "9 training rows are too few" in result.notes[0]
    other = [row(f"{{y}} {chr(97 + at) * 2}", "train", y=str(at)) for at in range(12)]
    other.append(row("{y}", "test", y="1"))
    result = fitted(encoded(tmp_path, other))
    assert result.values == {} and "share no words" in result.notes[0]


def test_numbers_in_turn_are_not_fitted(tmp_path: Path) -> None:
    rows = [{"text": f"a lamp for {at}", "split": "train"} for at in range(30)]
    rows += [{"text": "a lamp for 5", "split": "test"}]
    assert fitted(encoded(tmp_path, rows)) == FittedBaselines({}, [])


def test_without_scikit_learn_one_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str) -> Any:
        return None if name == "sklearn" else util.find_spec(name)

    monkeypatch.setattr(module, "find_spec", find_spec)
    result = fitted(encoded(tmp_path, priced(60)))
    assert result.values == {} and len(result.notes) == 1 and "scikit-learn" in result.notes[0]
