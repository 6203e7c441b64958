"""``numtok fetch nupa``: the published strings, and files with unexpected contents."""

import json
from pathlib import Path
from typing import Any

import pytest

from numtok.data.nupa.keys import DIGITS, KEYS, allowed, chosen
from numtok.data.sources.base import SOURCES
from numtok.data.sources.nupa import NupaSource
from numtok.errors import DataError, UsageError
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_fetch import fetched

SAMPLE = Path(__file__).parents[4] / "shared/data/nupa/nupa_text_test_1_per_stratum.json"
needs_sample = pytest.mark.skipif(not SAMPLE.is_file(), reason="no sample of NUPA beside numtok")
HINT = "Directly return the answer as an integer without any comma separator, like 123 . "
RATIO = "Directly return the answer as an **irreducible** fraction without any comma separator, "
SUM = f"{HINT}Add two numbers: 744 + 543 = 1287"
DIVISION = (
    f"{RATIO}like 7/13 . Divide two numbers and return the result as a fraction. "
    "(3/8) / (2/5) = 15/16"
)
SUMS, DIVISIONS = "add_Integer_Integer_Integer", "truediv_Fraction_Fraction_Fraction"
Content = dict[str, Any]


def written(folder: Path, content: Content, name: str = "test.json") -> str:
    path = folder / name
    path.write_text(json.dumps(content, indent=2), "utf-8")
    return str(path)


def rows(artifact: Artifact) -> list[dict[str, Any]]:
    (path,) = artifact.path.glob("*-00000.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_string_becomes_a_row_with_its_operands_and_its_answer(tmp_path: Path) -> None:
    path = written(tmp_path, {SUMS: {"3": [SUM]}, DIVISIONS: {"1": [DIVISION]}})
    (artifact,) = fetched(Store(tmp_path / "store"), "nupa", from_=path)
    assert (artifact.kind, artifact.name) == ("data", "nupa-test")
    first, second = rows(artifact)
    assert first == {
        "id": "test-add_Integer_Integer_Integer-3-0",
        "text": SUM,
        "targets": {"answer": [[len(SUM) - 4, len(SUM)]]},
        "answer_start": len(SUM) - 4,
        "group": {"task": SUMS, "operation": "add", "representation": "Integer", "digits": 3},
        "operands": ["744", "543"],
        "operand_spans": [[len(HINT) + 17, len(HINT) + 20], [len(HINT) + 23, len(HINT) + 26]],
        "gold": "1287",
    }
    assert second["operands"] == ["3/8", "2/5"]
    assert [second["text"][a:b] for a, b in second["targets"]["answer"]] == ["15", "16"]
    facts = artifact.manifest.facts
    assert facts["licence"] == "MIT"
    assert facts["attribution"].startswith("NUPA: Yang, Hu, Kang, Lin and Zhang, Number Cookbook")


@needs_sample
def test_every_string_of_the_sample_is_read_and_stands_under_its_digit_key(tmp_path: Path) -> None:
    (artifact,) = fetched(Store(tmp_path), "nupa", from_=str(SAMPLE))
    assert artifact.manifest.counts == {"rows": 2025, "rows_test": 2025}
    texts = [
        text for strata in json.loads(SAMPLE.read_text()).values() for (text,) in strata.values()
    ]
    assert sorted(row["text"] for row in rows(artifact)) == sorted(texts)


def test_the_short_prompt_a_preset_and_digits_choose(tmp_path: Path) -> None:
    large = SUM.replace("744", "12345678").replace("1287", "12346221")
    place = "Get the digit at the given position (from left to right, starting from 0). "
    content = {
        SUMS: {"3": [SUM], "8": [large]},
        "get_digit_Integer_int_int": {"5": [f"{HINT}{place}12345 at position 0 = 1"]},
    }
    path = written(tmp_path, content)
    store = Store(tmp_path / "store")
    (artifact,) = fetched(store, "nupa", from_=path, preset="value-aware", prompt="short")
    assert [row["text"] for row in rows(artifact)] == ["Add two numbers: 744 + 543 = 1287"]
    (artifact,) = fetched(store, "nupa", from_=path, digits="5..9")
    assert [row["group"]["digits"] for row in rows(artifact)] == [8, 5]
    (artifact,) = fetched(store, "nupa", from_=path, tasks="get_digit")
    assert [row["operands"] for row in rows(artifact)] == [["12345", "0"]]


@pytest.mark.parametrize(("set", "file"), [("validation", "valid"), ("train", "train")])
def test_a_folder_has_a_file_for_each_split(tmp_path: Path, set: str, file: str) -> None:
    written(tmp_path, {SUMS: {"3": [SUM]}}, f"{file}.json")
    (artifact,) = fetched(Store(tmp_path / "store"), "nupa", from_=str(tmp_path), set=set)
    assert artifact.manifest.counts == {"rows": 1, f"rows_{set}": 1}
    assert artifact.manifest.facts["notes"] == [
        f"the numbers of strings of 1 strata were not checked: the published numbers of {set} are "
        "unknown"
    ]


def test_strings_of_tasks_that_are_not_published_are_told_of(tmp_path: Path) -> None:
    content = {
        SUMS: {"3": [SUM]},
        "min_Integer_Integer_Integer": {"3": ["x", "y"], "4": ["z"]},
        "get_digit_Integer_int_int": {"5": ["not asked for"]},
    }
    path = written(tmp_path, content, "train.json")
    (artifact,) = fetched(
        Store(tmp_path / "store"), "nupa", from_=path, set="train", preset="value-aware"
    )
    assert artifact.manifest.facts["notes"] == [
        "skipped 3 strings of min_Integer_Integer_Integer: these tasks are not in the published "
        "data. Generate them: numtok gen nupa --preset paper",
        "the numbers of strings of 1 strata were not checked: the published numbers of train are "
        "unknown",
    ]


def test_by_default_it_is_the_file_of_the_publishers() -> None:
    (origin,) = NupaSource().origins()
    assert origin.files == {
        "test.json": "https://huggingface.co/datasets/HaotongYang/NUPA_text/resolve/"
        "01e3831ec00dfd618a77d9f6fe7fc0d327ad16d7/test.json"
    }


# --- counts --------------------------------------------------------------------------------------


def sums(count: int, digits: int) -> list[str]:
    return [
        f"{HINT}Add two numbers: {10**digits - 1 - n} + 1 = {10**digits - n}" for n in range(count)
    ]


def noted(tmp_path: Path, content: Content, **options: Any) -> list[str]:
    (artifact,) = fetched(
        Store(tmp_path / "s"), "nupa", from_=written(tmp_path, content), **options
    )
    notes: list[str] = artifact.manifest.facts["notes"]
    return notes


UNCHECKED = "the strings themselves were not checked: no checksum of the file is published"


def test_counts_as_published_are_said_to_be_so(tmp_path: Path) -> None:
    content = {SUMS: {"4": sums(1000, 4)}}
    assert noted(tmp_path, content, tasks="add_Integer", digits="4") == [
        "every stratum has the published number of strings",
        UNCHECKED,
    ]


def test_counts_that_differ_are_named(tmp_path: Path) -> None:
    content = {SUMS: {"4": sums(999, 4), "25": sums(1, 25)}}
    told, last = noted(tmp_path, content, tasks="add_Integer", digits="4..25")
    assert told == (
        f"18 strata differ from the published test split: {SUMS} 4 has 999 strings instead of "
        f"1,000; {SUMS} 5 has 0 strings instead of 1,000; {SUMS} 6 has 0 strings instead of "
        f"1,000; {SUMS} 7 has 0 strings instead of 1,000; {SUMS} 8 has 0 strings instead of "
        "1,000, and 13 more"
    )
    assert last == UNCHECKED


def test_of_some_strata_a_range_alone_is_known(tmp_path: Path) -> None:
    assert allowed(KEYS["to_float_Fraction_none_Float"], 5) == (967, 1038)
    content = {SUMS: {"4": sums(1, 4)}}
    told = noted(tmp_path, content, tasks="to_float_Fraction+add_Integer", digits="4..5")
    assert told[1] == "only a range is known for 2 strata of to_float_Fraction_none_Float"


def test_a_string_under_another_digit_key_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path, {SUMS: {"4": [SUM]}})
    (artifact,) = fetched(Store(tmp_path / "store"), "nupa", from_=path)
    assert artifact.manifest.counts["digit_key_differs"] == 1
    assert set(DIGITS) == {key.first for key in chosen("published", "all")}


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ({"add_Integer": {"3": [SUM]}}, ["'add_Integer'", "add_Integer_Integer_Integer?"]),
        ({"x": {"3": [SUM]}}, ["'x'", "x 3, string 1: unknown task key 'x'"]),
        ({SUMS: {"three": [SUM]}}, [f"{SUMS} three, string 1", "digit key", "'three'"]),
        ({SUMS: {"3": [SUM, 5]}}, [f"{SUMS} 3, string 2: 5"]),
        (
            {SUMS: {"3": [SUM.replace("1287", "12x7")]}},
            [f"{SUMS} 3, string 1", "Integer", "'12x7'"],
        ),
        (
            {SUMS: {"3": [SUM.replace("1287", "1287.0")]}},
            [f"{SUMS} 3, string 1", "'1287.0'"],
        ),
        ({SUMS: {"3": [DIVISION]}}, [f"{SUMS} 3, string 1", f"not a question of {SUMS}"]),
        ({SUMS: [[SUM]]}, [f"{SUMS}, string 1", "a task key and a digit key"]),
    ],
)
def test_what_cannot_be_used_is_one_line_or_counted(
    tmp_path: Path, content: Content, parts: list[str], says: Says
) -> None:
    good = {DIVISIONS: {"1": [DIVISION]}}
    path = written(tmp_path, {**good, **content})
    store = Store(tmp_path / "store")
    with pytest.raises(DataError) as error:
        fetched(store, "nupa", from_=path)
    says(error, f"{path}: ", *parts, "--on-error skip")
    (artifact,) = fetched(store, "nupa", from_=path, on_error="skip")
    assert artifact.manifest.counts["rejected"] == 1
    (told,) = artifact.manifest.facts["rejected"]
    assert str(error.value) == f"{told}. Skip bad rows: --on-error skip"


def test_a_file_that_is_cut_off_is_one_line(tmp_path: Path, says: Says) -> None:
    for text, parts in [
        ('{"a": {"3": ["x", "y', ["Unterminated string", "after 1 items"]),
        ('{"a": {"3": ["x"]', ["end of the file", "','", "after 1 items"]),
        ('{"a": 5}', ["'5'", "a list or an object"]),
    ]:
        with case(text, parts):
            path = tmp_path / "test.json"
            path.write_text(text.replace('"a"', f'"{SUMS}"').replace('"x"', json.dumps(SUM)))
            with says.raises(DataError, f"{path} is not JSON: ", *parts, "ownload it again"):
                fetched(Store(tmp_path / "store"), "nupa", from_=str(path))


def test_options_that_cannot_be_are_one_line(says: Says) -> None:
    for option, value, parts in [
        ("set", "dev", ["--set ", "test, validation or train (got 'dev')"]),
        ("preset", "paper", ["--preset ", "published or value-aware (got 'paper')"]),
        ("prompt", "long", ["--prompt ", "published or short (got 'long')"]),
        ("on_error", "stop", ["--on-error ", "fail or skip (got 'stop')"]),
        ("digits", "x", ["--digits ", "published", "a number or a range", "(got x)"]),
    ]:
        with case(option, value, parts), says.raises(UsageError, *parts):
            SOURCES.build("nupa", {option: value})


def test_the_command_tells_licence_counts_and_what_is_not_known(
    numtok: Shell, tmp_path: Path
) -> None:
    path = written(tmp_path, {SUMS: {"3": [SUM]}})
    ran = numtok("fetch", "nupa", "--from", path, "--tasks", "add_Integer", "--digits", "3")
    assert ran.code == 0
    assert ran.out.startswith("nupa-test@")
    assert "numtok: licence: MIT\n" in ran.err
    assert f"{SUMS} 3 has 1 strings instead of 1,000\n" in ran.err
    assert f"numtok: {UNCHECKED}\n" in ran.err
