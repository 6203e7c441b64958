"""Fields of predicted numbers: the same as in ``profile``, with train-split statistics."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from numtok.encoding.splits import read_split, read_texts
from numtok.errors import StoreError
from numtok.evaluation import fields
from numtok.evaluation.fields import LEAST, NumberFields, anchored_fields, number_fields
from numtok.evaluation.queries import queries_of
from numtok.evaluation.rows import Rows
from numtok.stages import encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cases import case
from tests.counted import count, values

pytestmark = pytest.mark.integration

OTHERS = "(others)"


def encoded(root: Path, train: Sequence[str], test: Sequence[str]) -> Artifact:
    path = root / "rows.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": f"{split}-{index}", "text": text, "split": split}) + "\n"
            for split, texts in (("train", train), ("test", test))
            for index, text in enumerate(texts)
        )
    )
    config = encode.Config((str(path),), scheme="xval", name="rows")
    artifact = encode.run(config, Store(root / "artifacts"), lambda *expected: None).artifact
    assert artifact is not None
    return artifact


def found(artifact: Artifact, rows: int | None = None) -> NumberFields | None:
    whole = read_split(artifact, "test")
    chosen = whole.drawn(rows)
    samples = whole.take(chosen)
    evaluated = Rows(artifact, "test", samples, np.arange(len(samples)), chosen)
    return number_fields(
        evaluated, queries_of(samples, True), artifact, read_split(artifact, "train")
    )


def person(age: float, weight: float, **more: float) -> str:
    return json.dumps({"age": age, "weight": weight} | more)


def test_each_number_has_the_mean_and_median_of_its_field_in_the_train_split(
    tmp_path: Path,
) -> None:
    """Height is in too few test rows and shoe in no train row. The median of an even count is the
    smaller of the two middle numbers."""
    train = [person(10, 50.5, height=1), person(30, 60), person(20, 90), person(60, 80, height=3)]
    test = [person(k, 70) for k in range(LEAST)] + [person(7, 7, height=2, shoe=44)]
    test += [person(k, 7, shoe=45) for k in range(LEAST)]
    result = found(encoded(tmp_path, train, test))
    assert result is not None and result.templates == {}
    of_person, rest = ["age", "weight"], [OTHERS, OTHERS, *["age", "weight", OTHERS] * LEAST]
    assert result.names.tolist() == of_person * (LEAST + 1) + rest
    expected = {"age": (30.0, 20.0), "weight": (70.125, 60.0)}
    for name, mean, median in zip(result.names, result.means, result.medians, strict=True):
        if name == OTHERS:
            assert np.isnan([mean, median]).all()
        else:
            assert (mean, median) == (pytest.approx(expected[name][0]), expected[name][1])


def test_fields_are_those_of_a_profile_of_the_same_rows(tmp_path: Path) -> None:
    """Tested for JSON, tables, templates and words before numbers. In some, only the test split
    shows that two fields are the same; one text contains the mark of a number."""
    sentences = ["Pipe {} has {} m.", "A tank of {} m3 holds {}, {} and {} of [NUM] for {} days."]
    kinds: dict[str, Callable[[int], str]] = {
        "json": lambda k: json.dumps({"a": [k, 2 * k], "b": {"c": k / 2, "d": [1] * (k % 3)}}),
        "lists": lambda k: json.dumps([[k, 1], [k, 2]] if k < 60 else [[k, 3, 4], [5]]),
        "table": lambda k: f"{k},{2 * k},word,{k / 4}",
        "templates": lambda k: sentences[k % 2].format(*range(k, k + 6)),
        "prose": lambda k: f"{'so ' * (k % 12)}{'it ' * (k // 12)}at {k} and after {k + 1}.",
    }
    for name, written in kinds.items():
        with case(name):
            texts = [written(k) for k in range(120)]
            (folder := tmp_path / name).mkdir()
            artifact = encoded(folder, texts[:60], texts[60:])
            result, every = found(artifact), values(count([[texts]]))
            assert result is not None
            numbers, training = (read_split(artifact, split).numbers for split in ("test", "train"))
            for field in set(result.names) - {OTHERS}:
                in_field = result.names == field
                own = Counter(numbers[in_field].tolist())
                assert own.total() >= LEAST
                train = every[field] - own
                assert train.total() + own.total() == every[field].total()
                assert not train - Counter(training.tolist())
                ordered = sorted(train.elements())
                assert set(result.medians[in_field]) == {ordered[(len(ordered) - 1) // 2]}
            few = {field for field, own in every.items() if own.total() < LEAST}
            assert not few & set(result.names)
            letters = {"A", "B"} if name == "templates" else set()
            assert set(result.templates) == letters


def test_texts_without_structure_and_few_numbers_have_no_fields(tmp_path: Path) -> None:
    words = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st", "uv", "wx", "yz"]
    prose = [f"{words[k % 13]}{words[k // 13]}x {k}" for k in range(160)]
    (tmp_path / "prose").mkdir()
    artifact = encoded(tmp_path / "prose", prose[:80], prose[80:])
    assert found(artifact) is None
    rows = [person(k, k) for k in range(60)]
    artifact = encoded(tmp_path, rows[:30], rows[30:])
    assert found(artifact, LEAST) is not None and found(artifact, LEAST - 1) is None


def test_the_fields_with_most_numbers_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "_MOST", 1)
    rows = [person(k, k) for k in range(40)] + [json.dumps({"weight": 1})] * 10
    result = found(encoded(tmp_path, rows[::2], rows[1::2]))
    assert result is not None and set(result.names) == {"weight", OTHERS}


def test_the_largest_numbers_have_a_mean(tmp_path: Path) -> None:
    result = found(encoded(tmp_path, ["a 1.7e308", "a 1.6e308"], ["a 1.5e308"] * LEAST))
    assert result is not None
    assert result.means[0] == pytest.approx(1.65e308) and result.medians[0] == 1.6e308


def test_marks_in_texts_are_the_numbers_of_the_rows_alone(tmp_path: Path) -> None:
    """A mark in the text is escaped, and one that spans two rows does not count."""
    texts = ["[NUM] 1 [NU", "M] 2", "", "M]", "3[NUM]4"]
    artifact = encoded(tmp_path, texts, texts)
    [(read, spans)] = read_texts(artifact, "test", np.array([0, 1, 2, 4]))
    assert spans.counts.tolist() == [1, 1, 0, 2]
    expected = [bytes(read.data[a:b]) for a, b in zip(spans.starts, spans.ends, strict=True)]
    assert expected == [b"_NUM_"] * 4


def test_a_text_without_the_numbers_of_its_row_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = encoded(tmp_path, ["a 1"] * 3, ["a 1"] * 3)
    monkeypatch.setattr("numtok.encoding.splits._NUMBER", "[NUN]")
    with pytest.raises(StoreError, match="a text does not match the numbers of its row"):
        list(read_texts(artifact, "test", np.arange(3)))


def test_fields_are_aligned_in_rows_that_lack_numbers(tmp_path: Path) -> None:
    texts = [
        "long 1 m" if k % 5 == 0 else f"wide {k} m, long 1 m, holes {k} and 7" for k in range(5, 45)
    ]
    artifact = encoded(tmp_path, texts[:30], texts[30:])
    parts = []
    for split in ("train", "test"):
        samples = read_split(artifact, split)
        parts.append(Rows(artifact, split, samples, np.arange(len(samples))))
    anchored = anchored_fields(*parts)
    codes = np.concatenate([part.fields for part in anchored])
    values = np.concatenate([part.samples.numbers for part in anchored])
    assert len(set(codes[values == 1].tolist())) == 1
    assert len(set(codes.tolist())) == 4
    row, other = codes[:1], codes[1:5]
    assert row[0] == other[1] and len(set(other.tolist())) == 4
    some = anchored_fields(parts[0]._replace(chosen=np.array([0, 2])))[0].fields
    assert (some >= 0).tolist() == [True, *[False] * 4, *[True] * 4, *[False] * (len(some) - 9)]
