"""Measurements, comparisons, word problems: answers are correct, labels are balanced and cannot be
guessed, and no row repeats."""

import json
import re
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numtok.data.tasks._contract import rows_in
from numtok.data.tasks._unrepeated import log_draw, shared_out
from numtok.data.tasks.base import SHARES, TASKS, TaskSplit, TextTask
from numtok.errors import UsageError
from numtok.row import Row
from numtok.setting_values import Range
from numtok.stages import gen
from numtok.stages.gen import Config
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_gen import make

JUDGED = ("measurement", "comparison", "wordproblems")
VARIANTS = (
    *JUDGED,
    "measurement,multipliers=1..1000,reach=5",
    "comparison,near=1.1",
    "wordproblems,wrong=digit",
    "wordproblems,wrong=drawn",
    "wordproblems,wrong=operation",
    "wordproblems,numbers=1..1000,answers=100..300",
)
TRAIN = TaskSplit("train", 3200, 0, SHARES * 4 // 5)
TEST = TaskSplit("test", 800, SHARES * 4 // 5, SHARES)
FOLDER = Path(gen.__file__).parents[1] / "data" / "tasks" / "templates"


@cache
def rows(spec: str, split: TaskSplit = TRAIN, seed: int = 0) -> tuple[Row, ...]:
    task = TASKS.build(spec)
    assert isinstance(task, TextTask)
    units = range(-(-split.rows // task.unit_rows))
    return tuple(row for index in units for row in rows_in(task.unit(seed, split, index).rows))


def templates(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


def numbers(row: Row) -> list[int]:
    return [int(found) for found in re.findall(r"-?[0-9]+", row.text)]


def groups(row: Row) -> tuple[str, ...]:
    return tuple(str(value) for value in (row.group or {}).values())


def combination(row: Row) -> tuple[Any, ...]:
    """Return what no two rows share; for measurements, whatever the template."""
    if len(found := groups(row)) and "object" in (row.group or {}):
        return (found[1], *numbers(row))
    return (found[0], *numbers(row)[:2])


def shown(row: Row) -> str:
    """Return the text without its numbers and the words that depend on them."""
    return re.sub(r"-?[0-9]+", "N", row.text)


# --- the sampler -------------------------------------------------------------------------------


def test_the_logarithmic_sampler_has_the_stated_probabilities() -> None:
    low, high, count = 3, 20, 200_000
    drawn = log_draw((np.arange(count) + 0.5) / count, low, high)
    found = np.bincount(drawn, minlength=high + 1) / count
    expected = [log((n + 1) / n) / log((high + 1) / low) for n in range(low, high + 1)]
    assert np.abs(found[low:] - expected).max() < 2 / count
    assert found[:low].sum() == 0


def test_kinds_have_equal_parts_but_for_those_that_have_too_few() -> None:
    def shares(pairs: int, *possible: int) -> list[int] | None:
        found = shared_out(pairs, possible, TaskSplit("train", 2 * pairs, 0, SHARES // 2))
        return None if found is None else found.tolist()

    assert shares(300, 10_000, 10_000, 10_000) == [100, 100, 100]
    assert shares(300, 10_000, 80, 10_000) == [135, 30, 135]  # three quarters of half of 80
    assert shares(300, 80, 80) is None
    few = shares(7, *[10_000] * 5)
    assert few is not None and sorted(few) == [1, 1, 1, 2, 2]


# --- labels and combinations -------------------------------------------------------------------


@pytest.mark.integration
def test_labels_are_balanced_in_every_template_object_and_split() -> None:
    for spec in VARIANTS:
        for split in [TRAIN, TEST, TaskSplit("train", 1601)]:
            with case(spec, split):
                made = rows(spec, split)
                odd = split.rows % 2
                found = Counter(row.label for row in made)
                assert set(found) == {"correct", "incorrect"}
                assert abs(found["correct"] - found["incorrect"]) == odd
                for part in range(len(groups(made[0]))):
                    of = Counter((groups(row)[part], row.label) for row in made)
                    names = {name for name, _ in of}
                    gaps = [abs(of[name, "correct"] - of[name, "incorrect"]) for name in names]
                    assert sum(gaps) == odd
                cells = Counter(map(groups, made)).values()
                assert max(cells) - min(cells) <= 2 + odd


@pytest.mark.integration
def test_no_combination_comes_twice_and_none_is_in_two_splits() -> None:
    for spec in [*VARIANTS, "wordproblems,form=generate,answers=10001..inf"]:
        with case(spec):
            train, test = rows(spec), rows(spec, TEST)
            found = [set(map(combination, made)) for made in (train, test)]
            assert [len(one) for one in found] == [TRAIN.rows, TEST.rows]
            assert not found[0] & found[1]
            if spec.partition(",")[0] != "measurement":  # nor with its numbers swapped
                swapped = {(name, b, a) for name, a, b in found[0]}
                assert not swapped & found[1]


def test_texts_of_both_forms_of_wordproblems_have_the_same_splits() -> None:
    train = set(map(combination, rows("wordproblems,numbers=1..300")))
    test = set(map(combination, rows("wordproblems,form=generate,numbers=1..300", TEST)))
    assert not train & test


def test_every_text_without_its_numbers_has_both_labels_equally_often() -> None:
    for spec in VARIANTS:
        with case(spec):
            made = rows(spec)
            found = Counter((shown(row), row.label) for row in made)
            for text in {text for text, _ in found}:
                counts = [found[text, label] for label in ("correct", "incorrect")]
                assert abs(counts[0] - counts[1]) < 5 * sqrt(sum(counts)) + 1, text


def test_a_question_of_measurement_has_both_labels_equally_often() -> None:
    made = rows("measurement")
    found = Counter((row.text.partition(" A: ")[0], row.label) for row in made)
    for question in {question for question, _ in found}:
        assert found[question, "correct"] == found[question, "incorrect"]


@pytest.mark.integration
@pytest.mark.parametrize("spec", VARIANTS)
def test_labels_cannot_be_guessed_with_the_numbers_removed(spec: str) -> None:
    """TF-IDF with logistic regression, the baseline for labels, is at chance."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    train, test = rows(spec), rows(spec, TEST)
    weigh = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+")
    model = LogisticRegression(C=10, max_iter=1000)
    model.fit(weigh.fit_transform(map(shown, train)), [row.label for row in train])
    said = model.predict(weigh.transform(map(shown, test)))
    accuracy = np.mean(said == np.array([row.label for row in test]))
    assert abs(accuracy - 0.5) < 3.3 * 0.5 / sqrt(TEST.rows)


# --- measurement -------------------------------------------------------------------------------


def test_answers_of_measurement_are_correct_within_the_range_of_the_object() -> None:
    for spec, most, reach in [
        ("measurement", 100, 100),
        ("measurement,multipliers=1..1000,reach=5", 1000, 5),
    ]:
        with case(spec, most, reach):
            things = {one["name"]: one for one in templates("measurement")["objects"]}
            sides = Counter[str]()
            for row in rows(spec):
                template, thing = groups(row)
                multiplier, answer = numbers(row)
                low, high = (multiplier * end for end in things[thing]["ranges"][template])
                assert 1 <= multiplier <= most
                assert (row.label == "correct") == (low <= answer <= high), row.text
                assert low / reach <= answer <= high * reach
                sides["low" if answer < low else "high" if answer > high else "within"] += 1
                assert things[thing]["name" if multiplier == 1 else "plural"] in row.text
            assert abs(sides["low"] - sides["high"]) < 5 * sqrt(len(rows(spec)) / 2)


@pytest.mark.integration
def test_measurement_has_the_paper_s_objects_templates_and_counts(tmp_path: Path) -> None:
    found = templates("measurement")
    assert (len(found["objects"]), len(found["templates"])) == (20, 4)
    made = make(Config("measurement"), tmp_path)
    assert made.manifest.counts == {"rows": 20_000, "rows_train": 16_000, "rows_test": 4_000}
    for split, each in (("train", 200), ("test", 50)):
        lines = (made.path / f"{split}-00000.jsonl").read_bytes().splitlines()
        cells = Counter(tuple(json.loads(line)["group"].values()) for line in lines)
        assert set(cells.values()) == {each} and len(cells) == 80


def test_multipliers_are_drawn_by_their_logarithm() -> None:
    drawn = Counter(numbers(row)[0] for row in rows("measurement") if row.label == "correct")
    below = sum(count for number, count in drawn.items() if number < 10)
    share = log(10) / log(101)
    assert abs(below / 1600 - share) < 0.06


# --- comparison --------------------------------------------------------------------------------


def test_sentences_of_comparison_are_correct_where_their_numbers_say_so() -> None:
    for spec, near in [("comparison", 0), ("comparison,near=1.1", 1.1)]:
        with case(spec, near):
            known = {one["name"]: one for one in templates("comparison")["templates"]}
            assert len(known) == 20
            for row in rows(spec):
                one = known[groups(row)[0]]
                a, b = numbers(row)
                assert a != b and one["numbers"][0] <= min(a, b) < max(a, b) <= one["numbers"][1]
                assert (row.label == "correct") == (a < b if "<" in one["correct"] else a > b)
                if near:
                    assert max(a, b) < near * (min(a, b) + 1)


def test_both_directions_are_asked_for_and_both_orders_drawn() -> None:
    known = [one["correct"] for one in templates("comparison")["templates"]]
    assert Counter(known) == {"NUMA < NUMB": 10, "NUMA > NUMB": 10}
    ascending = sum(a < b for a, b in map(numbers, rows("comparison")))
    assert abs(ascending / TRAIN.rows - 0.5) < 0.05


def test_persons_have_the_ages_of_the_paper() -> None:
    made = [row for row in rows("comparison") if groups(row) == ("person-younger",)]
    ages = [age for row in made for age in numbers(row)]
    assert 15 <= min(ages) < 20 and 90 < max(ages) <= 104


def test_no_word_of_a_comparison_tells_of_its_numbers() -> None:
    made = rows("comparison")
    assert len(set(map(shown, made))) == len(set(map(groups, made))) == 20


@pytest.mark.integration
def test_a_template_of_few_numbers_leaves_its_rows_to_others() -> None:
    made = Counter(map(groups, rows("comparison", TaskSplit("train", 300_000))))
    persons = made.pop(("person-younger",))
    assert 5000 < persons < 0.76 * 90 * 89
    assert max(made.values()) - min(made.values()) <= 2


# --- word problems -----------------------------------------------------------------------------


def right(row: Row) -> int:
    a, b = numbers(row)[:2]
    return a + b if (row.group or {})["operation"] == "addition" else a - b


WORDS = [spec for spec in VARIANTS if spec.startswith("wordproblems")]


def test_answers_of_wordproblems_are_correct_where_they_are() -> None:
    for spec in WORDS:
        with case(spec):
            known = {one["name"]: one for one in templates("wordproblems")["templates"]}
            assert Counter(one["answer"] for one in known.values()) == {
                "NUMA + NUMB": 10, "NUMA - NUMB": 10,
            }  # fmt: skip
            for row in rows(spec):
                answer = numbers(row)[2]
                assert (row.label == "correct") == (answer == right(row)), row.text
                assert answer >= 1 or known[groups(row)[0]].get("signed")
                assert row.targets is None and row.answer_start is None


def test_stories_that_allow_it_have_negative_answers() -> None:
    signed = [row for row in rows("wordproblems") if groups(row)[0] in ("account", "profit")]
    negative = [row for row in signed if numbers(row)[2] < 0]
    assert len(signed) / 4 < len(negative) < len(signed) * 3 / 4


def wrong(spec: str) -> Iterator[tuple[Row, int, int]]:
    for row in rows(spec):
        if row.label == "incorrect":
            yield row, right(row), numbers(row)[2]


def test_near_answers_are_off_by_the_stated_share_either_way() -> None:
    for spec, low, high in (("wordproblems", 0.01, 1), ("wordproblems,off=0.5..2", 0.5, 2)):
        off = [(answer - truth, max(1, abs(truth))) for _, truth, answer in wrong(spec)]
        for gap, size in off:
            assert low * size - 0.51 <= abs(gap) <= max(1, high * size + 0.51)
        if low == 0.01:
            assert 0.4 < np.mean([gap > 0 for gap, _ in off]) < 0.6
            assert 0.05 < np.median([abs(gap) / size for gap, size in off if size > 1000]) < 0.2


def test_an_answer_with_another_digit_has_as_many() -> None:
    places = Counter[int]()
    for _, truth, answer in wrong("wordproblems,wrong=digit"):
        one, other = str(truth), str(answer)
        assert len(one) == len(other)
        assert sum(a != b for a, b in zip(one, other, strict=True)) == 1
        if len(one) == 4 and one[0] != "-":
            places[[a != b for a, b in zip(one, other, strict=True)].index(True)] += 1
    assert set(places) == {0, 1, 2, 3}


def test_the_other_operation_is_the_other_operation() -> None:
    for row, _, answer in wrong("wordproblems,wrong=operation"):
        a, b = numbers(row)[:2]
        added = (row.group or {})["operation"] == "addition"
        assert answer == (abs(a - b) if added else a + b)


def test_drawn_answers_are_spread_as_right_ones_are() -> None:
    truths, answers = zip(
        *((truth, answer) for _, truth, answer in wrong("wordproblems,wrong=drawn")), strict=True
    )
    quantiles = [np.quantile(values, [0.25, 0.5, 0.75]) for values in (truths, answers)]
    assert np.abs(np.log(quantiles[0] / quantiles[1])).max() < 0.35


def test_generate_writes_the_answer_as_the_target(tmp_path: Path) -> None:
    for row in rows("wordproblems,form=generate,answers=10001..inf"):
        assert row.label is None and row.targets is not None
        ((start, end),) = row.targets["answer"]
        assert end == len(row.text) and start == row.answer_start
        assert row.text[:start].endswith(" A: ")
        assert int(row.text[start:]) == right(row) > 10_000


def test_the_subset_of_the_paper_has_its_counts(tmp_path: Path) -> None:
    """With the default range, the fraction of such answers is also about that of the paper."""
    task = "wordproblems,form=generate,answers=10001..inf"
    made = make(Config(task, samples=6850, split="test=0.19533"), tmp_path)
    assert made.manifest.counts == {"rows": 6850, "rows_train": 5512, "rows_test": 1338}
    large = np.mean([right(row) > 10_000 for row in rows("wordproblems")])
    assert abs(large - 6850 / 20_000) < 0.05


def test_answers_are_restricted_wrong_ones_too() -> None:
    for row in rows("wordproblems,numbers=1..1000,answers=100..300"):
        assert 100 <= numbers(row)[2] <= 300 and 100 <= right(row) <= 300


# --- defaults and errors -----------------------------------------------------------------------


@pytest.mark.integration
def test_a_task_brings_its_own_rows_and_splits(tmp_path: Path) -> None:
    def counts(*arguments: Any, **more: Any) -> dict[str, int]:
        made = make(Config(*arguments, **more), tmp_path)
        assert "--split" not in made.manifest.command or "split" in more
        return {key: value for key, value in made.manifest.counts.items() if key != "rows"}

    assert counts("comparison") == {"rows_train": 32_000, "rows_test": 8_000}
    assert counts("wordproblems") == {"rows_train": 32_000, "rows_test": 8_000}
    assert counts("comparison", samples=100) == {"rows_train": 80, "rows_test": 20}
    assert counts("comparison", samples=100, split="test=0.5") == {
        "rows_train": 50,
        "rows_test": 50,
    }
    assert counts("arithmetic", samples=100) == {
        "rows_train": 80, "rows_validation": 10, "rows_test": 10,
    }  # fmt: skip


def test_the_help_of_a_task_says_its_defaults(numtok: Shell) -> None:
    ran = numtok("gen", "measurement", "--help")
    assert ran.code == 0 and "Default: --rows 20000 --split train=0.8,test=0.2" in ran.out


WRONG = [
    ("measurement --multipliers 0..5", ["multipliers", "0..5", "measurement", "whole number"]),
    ("measurement --multipliers 1.5", ["multipliers", "1.5", "measurement", "whole number"]),
    ("measurement --reach 1", ["--reach must be from 2 to 1,000,000", "got 1"]),
    (
        "measurement --multipliers 1..1000000000 --reach 1000",
        ["multipliers=1..1000000000", "reach=1000", "Reduce"],
    ),
    ("measurement --multipliers 1 --rows 40000", ["multipliers=1", "24,786", "--rows"]),
    ("measurement --multipliers 1 --rows 20000", ["'test'", "multipliers=1", "--rows"]),
    ("comparison --near 1", ["near", "got 1", "comparison", "above 1"]),
    ("wordproblems --form ask", ["form must be judge or generate", "ask"]),
    ("wordproblems --wrong far", ["wrong must be near, operation, digit or", "far"]),
    ("wordproblems --form generate --wrong digit", ["wrong=digit", "form=judge"]),
    ("wordproblems --wrong digit --off 0.1", ["off=0.1", "wrong=digit", "wrong=near"]),
    ("wordproblems --off 0..1", ["off", "0..1", "wordproblems", "above 0 and at"]),
    ("wordproblems --numbers 0..5", ["numbers", "0..5", "wordproblems", "range of"]),
    (
        "wordproblems --answers 5..4",
        ["5..4", "range 5..4: the first number must not exceed the last"],
    ),
    ("wordproblems --numbers 1..9 --answers 100..200", ["numbers=1..9", "wider ranges"]),
    ("wordproblems --answers 7..7 --rows 100", ["answers=7", "wordproblems"]),
]


def test_what_cannot_be_done_is_told_in_one_line(numtok: Shell, says: Says) -> None:
    for arguments, parts in WRONG:
        with case(arguments, parts):
            ran = numtok("gen", *arguments.split())
            assert (ran.code, ran.out) == (2, "")
            says(ran.err, "numtok: ", *parts)
            assert ran.err.count("\n") == 1


def test_few_different_rows_are_drawn_to_three_quarters_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "few.toml"
    path.write_text(
        '[[templates]]\nname = "a"\ntext = "[NUMA] below [NUMB]"\nnumbers = [1, 40]\n'
        'correct = "NUMA < NUMB"\n'
    )
    task = TASKS.build(f"comparison,templates={path}")
    assert isinstance(task, TextTask) and task.possible == 40 * 39
    whole = rows(f"comparison,templates={path}", TaskSplit("train", 1160))
    assert len(set(map(combination, whole))) == 1160
    with pytest.raises(UsageError) as caught:
        task.unit(0, TaskSplit("train", 1200), 0)
    assert str(caught.value).endswith(
        "has 1,560 different rows, of which about 75% can be sampled: too few for 1,200 in the "
        "split 'train', which has 1 of them. Reduce --rows, or choose wider ranges"
    )


def test_texts_with_too_few_numbers_are_soon_told(says: Says) -> None:
    started = time.process_time()
    with says.raises(UsageError, "multipliers=1", "too few different numbers", "'test'"):
        rows("measurement,multipliers=1", TaskSplit("test", 80, 0, SHARES // 5))
    assert time.process_time() - started < 30  # 200 rounds of 4 million candidates take minutes


def test_possible_counts_every_row(tmp_path: Path) -> None:
    path = tmp_path / "few.toml"
    path.write_text(
        '[[templates]]\nname = "a"\ntext = "[NUMA] less [NUMB]?"\nanswer = "NUMA - NUMB"\n'
        '[[templates]]\nname = "b"\ntext = "[NUMA] and [NUMB]?"\nanswer = "NUMA + NUMB"\n'
    )
    for low, high, least, most in ((1, 12, 3, 7), (5, 30, -(10**9), 10**9), (2, 9, 1, 12)):
        answers = Range(least, most)
        spec = f"wordproblems,form=generate,numbers={low}..{high},answers={answers},"
        task = TASKS.build(f"{spec}templates={path}")
        pairs = [(a, b) for a in range(low, high + 1) for b in range(low, high + 1)]
        subtract = sum(max(1, least) <= a - b <= most for a, b in pairs)
        added = sum(max(1, least) <= a + b <= most for a, b in pairs)
        assert abs((task.possible or 0) - subtract - added) <= 2
