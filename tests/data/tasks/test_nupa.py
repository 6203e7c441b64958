"""``numtok gen nupa``: answers checked by a separate evaluator, strata, and no question in two
splits."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from numtok.data.nupa.keys import (
    DIGITS,
    FLOAT,
    FRACTION,
    INTEGER,
    KEYS,
    SCIENTIFIC,
    Key,
    allowed,
    chosen,
    published,
)
from numtok.data.nupa.wording import read, wording
from numtok.data.nupa.wording import row as written
from numtok.data.tasks._nupa_answers import answers
from numtok.data.tasks._nupa_operands import Draws
from numtok.data.tasks.base import TaskSplit
from numtok.data.tasks.nupa import NupaTask, variants
from numtok.errors import UsageError
from tests.cases import case
from tests.messages import Says
from tests.nupa_oracle import answer, value
from tests.shell import Shell

SAMPLE = Path(__file__).parents[4] / "shared/data/nupa/nupa_text_test_1_per_stratum.json"
needs_sample = pytest.mark.skipif(not SAMPLE.is_file(), reason="no sample of NUPA beside numtok")
Row = dict[str, Any]


def rows(task: NupaTask, seed: int = 0, name: str | None = None) -> list[Row]:
    """Return the rows of all splits, or of one."""
    found = []
    for split in task.own_splits:
        if name in (None, split.name):
            for index in range(-(-split.rows // task.unit_rows)):
                lines = task.unit(seed, split, index).rows.splitlines()
                found += [json.loads(line) | {"split": split.name} for line in lines]
    return found


def sample() -> dict[str, dict[str, list[str]]]:
    made: dict[str, dict[str, list[str]]] = json.loads(SAMPLE.read_text("utf-8"))
    return made


def spread(key: Key) -> list[int]:
    """Return some digit keys of a task: the smallest, those of its train split, the largest."""
    return sorted({1, 2, 3, 5, key.tested[0], *((8, 40) if key.tested[1] == 100 else (8, 20))})


def stratum(row: Row) -> tuple[str, int]:
    return row["group"]["task"], row["group"]["digits"]


#: Unit tests use some of the keys, slower tests the others.
SOME = [*KEYS.values()][::7]
some_keys = pytest.mark.parametrize(
    "keys",
    [
        SOME,
        pytest.param([k for k in KEYS.values() if k not in SOME], marks=pytest.mark.integration),
    ],
    ids=["some", "others"],
)


# --- questions and answers -----------------------------------------------------------------------


def of_key(key: Key, digits: int, **how: Any) -> list[Row]:
    """Return the rows of one stratum."""
    preset = "published" if key.is_published else "paper"
    return rows(NupaTask(preset, key.name, str(digits), **how))


@some_keys
def test_every_answer_is_that_of_an_evaluator_that_reads_the_text_alone(keys: list[Key]) -> None:
    for key, digits in [(one, digits) for one in keys for digits in spread(one)]:
        with case(key, digits):
            made = of_key(key, digits, train=20, validation=5, test=15, rounding="correct")
            assert made
            for row in made:
                wanted, given = answer(row["text"])
                assert given == wanted, row["text"]
                assert row["gold"] == given and row["text"][row["answer_start"] :] == given
                spans = row["targets"]["answer"]
                assert "/".join(row["text"][begin:end] for begin, end in spans) == given
                operands = [row["text"][begin:end] for begin, end in row["operand_spans"]]
                assert operands == row["operands"] == list(read(key, row["text"]).operands)
                assert row["group"] == {
                    "task": key.name, "operation": key.operation, "representation": key.first,
                    "digits": digits,
                }  # fmt: skip


def test_a_difference_below_one_has_an_exponent_below_zero() -> None:
    key = KEYS["sub_ScientificNotation_ScientificNotation_ScientificNotation"]
    first, second = ("1.044e1", "1.01e1", "1.0e1"), ("9.493e0", "9.99e0", "9.999e0")
    golds = list(answers(key, first, second, "published"))
    assert golds == ["9.47e-1", "1.1e-1", "1.0e-3"]
    asked = wording(key, "published")
    for operands, gold in zip(zip(first, second, strict=True), golds, strict=True):
        text = written(asked, operands, gold).text
        assert answer(text) == (gold, gold)
        assert read(key, text) == (operands, gold)


@some_keys
def test_operands_are_of_the_stratum_and_as_the_task_wants_them(keys: list[Key]) -> None:
    for key, digits in product(keys, (3, 7)):
        task = key.task
        is_cut = task == "mod_easy" or (task == "multiply_easy" and key.first != FRACTION)
        for row in of_key(key, digits, train=60, validation=0, test=60):
            with case(key, row):
                of = 1 if key.second in ("none", "int") else 2
                lengths = [DIGITS[key.first](one) for one in row["operands"][:of]]
                assert max(lengths) == digits
                first, *others = map(value, row["operands"])
                if task in ("sub", "floordiv", "mod", "mod_easy"):
                    assert first >= others[0]
                if task in ("floordiv", "mod", "mod_easy", "truediv"):
                    assert others[0] > 0
                if is_cut:
                    (whole,) = re.findall("^[0-9]+", row["operands"][1])
                    assert lengths[1] <= 3 and len(whole) <= 3
                if task in ("max", "min") and key.first == FRACTION:
                    assert max(first, *others) <= 1
                if key.first == SCIENTIFIC:
                    powers = [int(one.partition("e")[2]) for one in row["operands"]]
                    near = {"add": (-5, 5), "sub": (1, 5)}.get(task)
                    assert near is None or near[0] <= powers[0] - powers[-1] <= near[1]
                    assert all(0 <= power <= 99 for power in powers)
                if row["split"] == "test" and of == 2 and task in ("add", "multiply_hard"):
                    assert min(lengths) >= digits // 2


@pytest.mark.integration
@needs_sample
def test_strings_are_made_as_the_published_ones_are() -> None:
    def form(text: str) -> str:
        return re.sub("[0-9]+", "9", text)

    for name, strata in sample().items():
        forms = {form(text) for texts in strata.values() for text in texts}
        task = NupaTask("published", name, "5", train=0, validation=0, test=200)
        assert {form(row["text"]) for row in rows(task)} == forms


@needs_sample
def test_the_published_answers_come_out_of_the_published_operands() -> None:

    differ = Counter[str]()
    for name, strata in sample().items():
        for (text,) in strata.values():
            asked = read(KEYS[name], text)
            for rounding in ("published", "correct"):
                got = answers(KEYS[name], asked.operands[:1], asked.operands[1:], rounding)
                differ[rounding] += got != [asked.answer]
    assert differ["published"] == 0
    assert 0 < differ["correct"] < 40  # a tenth of 194 strings of sig


SHORT = NupaTask(digits="3", train=0, validation=0, test=1, prompt="short")


def test_the_short_prompt_is_that_of_the_papers_appendix() -> None:
    texts = {stratum(row)[0]: row["text"] for row in rows(SHORT)}
    assert re.fullmatch(
        "[0-9]{3} count the occurrence time of digit [0-9] = [0-3]", texts["count_Integer_int_int"]
    )
    assert texts["length_Integer_none_int"].startswith("The total number of digits of ")
    for row in rows(replace(SHORT, prompt="published")):
        short = texts[stratum(row)[0]]
        if "count" not in short:
            assert row["text"].startswith("Directly return the answer as ")
            assert row["text"].endswith(short)
        assert answer(short) == answer(row["text"])


def test_rounding_changes_the_answers_of_sig_alone() -> None:
    task = NupaTask(tasks="add+sig+to_scient", digits="3", train=0, validation=0, test=200)
    for one, other in zip(rows(task), rows(replace(task, rounding="correct")), strict=True):
        assert one["operands"] == other["operands"]
        assert one["gold"] == other["gold"] or one["group"]["operation"] == "sig"


# --- strata --------------------------------------------------------------------------------------


def test_the_published_keys_and_those_of_the_papers_are_there() -> None:
    presets = {"published": 44, "paper": 41, "value-aware": 38}
    assert {preset: len(chosen(preset, "all")) for preset in presets} == presets
    by_representation = Counter(key.first for key in chosen("paper", "all"))
    assert by_representation == {INTEGER: 16, FLOAT: 12, FRACTION: 7, SCIENTIFIC: 6}


#: Rows of the published test split: in total, and in the strata of Value-Aware.
TEST_ROWS, VALUE_AWARE_ROWS = 2_387_501, 191_698


def test_the_counts_of_the_published_test_add_up() -> None:
    pairs = [
        (key, digits)
        for key in chosen("published", "all")
        for digits in range(key.tested[0], key.tested[1] + 1)
    ]
    counts = [published(*pair) or 0 for pair in pairs]
    assert (len(pairs), sum(counts)) == (2391, TEST_ROWS)
    assert all(
        low <= count <= high
        for count, (low, high) in zip(
            counts, (allowed(*pair) or (0, 0) for pair in pairs), strict=True
        )
    )
    aware = {split.name: split.rows for split in NupaTask().own_splits}
    assert aware["test"] == VALUE_AWARE_ROWS
    assert {s.name: s.rows for s in NupaTask(preset="published").own_splits}["test"] == TEST_ROWS


@pytest.mark.integration
def test_a_stratum_has_as_many_rows_as_published_or_as_asked_for() -> None:
    tasks = "sub_Fraction+max_Fraction+to_scient_Integer+to_float_Fraction"
    task = NupaTask(tasks=tasks, train=0, validation=0)
    counts = Counter(map(stratum, rows(task)))
    assert counts == {
        (key.name, digits): published(key, digits)
        for key in chosen("value-aware", tasks)
        for digits in range(key.tested[0], 8)
    }
    given = Counter(map(stratum, rows(NupaTask(tasks="add_Float", digits="4..6", train=7, test=9))))
    assert given == {("add_Float_Float_Float", digits): 7 + 9 + 1000 for digits in (4, 5, 6)}


def test_a_small_stratum_is_shared_out_and_what_lacks_is_counted() -> None:
    task = NupaTask(tasks="add_Integer", digits="1", train=1000)
    made = Counter(row["split"] for row in rows(task))
    assert 5 <= made["test"] == made["validation"] <= 10  # a tenth of 100 questions
    # Questions of other splits are excluded in either order.
    assert 100 - 4 * made["test"] <= made["train"] <= 100 - 2 * made["test"]
    (train,) = (split for split in task.own_splits if split.name == "train")
    assert task.unit(0, train, 0).counts == {"missing_in_small_strata": 1000 - made["train"]}


@pytest.mark.integration
def test_no_question_of_test_is_in_another_split_even_exchanged_or_of_a_variant() -> None:
    for digits in ["1", "2", "4"]:
        with case(digits):
            tasks = "mod+mod_easy+add_Fraction+add_easy+max_Integer+max_hard_Integer+length_Integer"
            task = NupaTask(tasks=tasks, digits=digits, train=400, validation=100, test=100)
            asked = defaultdict[str, set[tuple[str, ...]]](set)
            seen = Counter[tuple[str, str]]()
            for row in rows(task):
                operation, operands = row["group"]["operation"], row["operands"]
                matters = operation in ("modulo", "length")  # the order of operands
                asked[row["split"]].add((operation, *(operands if matters else sorted(operands))))
                seen[row["group"]["task"], row["text"]] += 1
            assert max(seen.values()) == 1
            assert asked.keys() == {"train", "validation", "test"}
            for one, other in combinations(asked.values(), 2):
                assert not one & other


def test_variants_are_the_tasks_that_ask_in_the_same_words() -> None:
    groups = {tuple(one.task for one in variants(key)) for key in KEYS.values()}
    several = {group for group in groups if len(group) > 1}
    assert several == {
        *(("add", "add_easy"), ("max", "max_hard"), ("mod", "mod_easy")),
        ("multiply_easy", "multiply_hard"),
    }


def test_a_test_split_does_not_depend_on_what_else_is_made() -> None:
    alone = NupaTask(tasks="sub_Float", digits="5", train=0, validation=0, test=30)
    among = NupaTask(tasks="all", digits="4..5", train=3, validation=8, test=50)
    texts = {row["id"]: row["text"] for row in rows(among, name="test")}
    own = {row["id"]: row["text"] for row in rows(alone)}
    assert len(own) == 30
    assert own.items() <= texts.items()
    assert own.keys() == {row["id"] for row in rows(alone, seed=1)}
    assert not set(own.values()) & {row["text"] for row in rows(alone, seed=1)}


def test_a_split_is_the_same_however_many_units_it_is_cut_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = NupaTask(tasks="mod", digits="3..5", train=300, validation=0, test=0)
    whole = {row["id"]: row for row in rows(task)}
    monkeypatch.setattr(NupaTask, "unit_rows", 128)
    assert {row["id"]: row for row in rows(task)} == whole


def test_digits_are_drawn_evenly() -> None:
    drawn = Counter("".join(Draws("even").digits(Draws("l").whole(3, 9, 20_000), first=0)))
    total = sum(drawn.values())
    assert all(abs(count / total - 0.1) < 0.005 for count in drawn.values())
    first = Counter(text[0] for text in Draws("first").digits(Draws("l").whole(1, 3, 20_000)))
    assert set(first) == set("123456789")
    assert all(abs(count / 20_000 - 1 / 9) < 0.01 for count in first.values())


# --- the command ---------------------------------------------------------------------------------

SPEC = "nupa,tasks=mod+sub_Fraction,digits=2..4,train=60,validation=20,test=20,prompt=short"


def test_gen_counts_the_rows_that_were_made(numtok: Shell) -> None:
    made = numtok("gen", "nupa", "--tasks", "add_Integer", "--digits", "1", "--json")
    counts = json.loads(made.out)["counts"]
    assert counts["rows"] == sum(counts[f"rows_{name}"] for name in ("train", "validation", "test"))
    assert counts["rows"] + counts["missing_in_small_strata"] == 3000
    shown = numtok("show", "nupa").out
    assert "numtok gen nupa,tasks=add_Integer,digits=1 --seed 0 --name nupa" in shown
    estimate = numtok("gen", "nupa,tasks=length+count,digits=9", "--dry-run", "--json").out
    assert json.loads(estimate)["rows"][1] == {"what": "rows", "value": 3 * 3 * 1000}
    assert "--rows and --split do not apply to this task" in numtok("gen", "nupa", "--help").out


def test_settings_that_cannot_be_are_one_line(numtok: Shell, says: Says) -> None:
    for spec, parts in [
        ("preset=all", ["--preset", "all", "published, paper,"]),
        ("rounding=half", ["rounding must be published or correct", "'half'"]),
        ("prompt=long", ["prompt must be published or short", "'long'"]),
        ("digits=0..4", ["--digits", "0..4", "published", "a range"]),
        ("digits=5..4", ["--digits", "5..4", "published", "a range"]),
        ("train=-1", ["train must be from 0 to 1,000,000", "-1"]),
        ("test=-2", ["test must be from -1 to 1,000,000", "-2"]),
        ("train=0,validation=0,test=0", ["digits=published", "train=0", "Increase one"]),
    ]:
        with case(spec, parts):
            ran = numtok("gen", f"nupa,{spec}")
            assert (ran.code, ran.out) == (2, "")
            says(ran.err, "numtok: ", *parts)


def test_an_unknown_task_is_named_with_its_nearest_match() -> None:
    with pytest.raises(UsageError) as error:
        NupaTask(tasks="add+multiply")
    told = str(error.value)
    assert told.startswith("unknown task of preset value-aware 'multiply'. Did you mean 'multiply_")
    assert told.endswith("Join several with +")
    with pytest.raises(UsageError, match="unknown task of preset value-aware 'get_digit'"):
        NupaTask(tasks="get_digit")


def test_samples_and_split_mean_nothing(numtok: Shell, says: Says) -> None:
    for option, given in [("--rows", "10"), ("--split", "test=0.5")]:
        with case(option, given):
            ran = numtok("gen", "nupa", option, given)
            assert ran.code == 2
            says(
                ran.err,
                f"numtok: {option} {given} does not apply to gen nupa",
                "`numtok gen nupa --help`",
            )


def test_a_sample_of_a_split_has_some_of_its_strata() -> None:
    task = NupaTask(train=0, validation=0)
    lines = task.unit(0, TaskSplit("test", 160), 0).rows.splitlines()
    found = Counter(stratum(json.loads(line)) for line in lines)
    assert len(lines) == 160
    assert len(found) == 16
