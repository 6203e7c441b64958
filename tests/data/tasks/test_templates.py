"""Texts with fields, filled in; and what is wrong with a file of templates, in one line."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from numtok.data.tasks._templates import Pattern
from numtok.data.tasks.base import TASKS, TaskSplit
from numtok.errors import UsageError
from numtok.registry import settings_of
from numtok.stages import gen
from numtok.stages.gen import Config
from numtok.store.store import Store
from tests.cases import case
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Shell
from tests.messages import Says

numtok = test_cli_store.numtok

JUDGED = ("measurement", "comparison", "wordproblems")


def filled(text: str, *numbers: int) -> list[str]:
    return Pattern.parse(text, ["N"]).fill({"N": np.array(numbers)})


def test_words_go_with_their_number() -> None:
    assert filled("There [N is/are] [N] [N egg/eggs].", 1, 2, -1, -2, 11) == [
        "There is 1 egg.",
        "There are 2 eggs.",
        "There is -1 egg.",
        "There are -2 eggs.",
        "There are 11 eggs.",
    ]


def test_articles_go_with_how_a_number_is_said() -> None:
    vowels = (8, 11, 18, 80, 89, 800, 8000, 11000, 18999, 80000, 11000000)
    others = (1, 7, 10, 12, 70, 81 - 70, 110, 118, 180, 1100, 1800, 110000, 180000, 1800000)
    assert filled("[N a/an] [N] m drop", *vowels) == [f"an {n} m drop" for n in vowels]
    some = [n for n in others if n != 11]
    assert filled("[N A/An] [N] m drop", *some) == [f"A {n} m drop" for n in some]


def test_a_text_that_cannot_be_filled_in_is_told(says: Says) -> None:
    for text, parts in [
        ("[N] and [M]", ["[N]", "[M]", "known: [N]"]),
        ("[]: [N]", ["[N]", "known: [N]"]),
        ("no number", ["the field [N] is there 0 times, and must be"]),
        ("[N] or [N]", ["[N]", "the field [N] is there 2 times, and must"]),
        ("[N egg/eggs]", ["the field [N] is there 0 times, and must be"]),
        ("[N] [N eggs]", ["eggs]", "[N eggs] is not two words, written [N"]),
        ("[N] [N a/b/c]", ["a/b/c]", "[N a/b/c] is not two words, written [N"]),
        ("[N] [N", ["' [N'", "a bracket is not closed, or not opened,"]),
        ("[N] of 3 eggs", ["'3'", "write it as a word"]),
        ("[N].5 eggs", ["'80.5'", "write it as a word"]),
        ("x[N] eggs", ["'x80 eggs'", "keep letters, points and other digits"]),
        ("[N]_", ["'80_'", "keep letters, points and other digits"]),
    ]:
        with case(text, parts), says.raises(ValueError, *parts):
            Pattern.parse(text, ["N"])


# --- files -------------------------------------------------------------------------------------

STORY = 'text = "[NUMA] and [NUMB]?"\nanswer = "NUMA + NUMB"\n'
SENTENCE = 'text = "[NUMA] < [NUMB]"\nnumbers = [1, 9]\ncorrect = "NUMA < NUMB"\n'
QUESTION = '[[templates]]\nname = "w"\ntext = "How heavy [INT is/are] [INT] [OBJ]?"\n'
THING = '[[objects]]\nname = "egg"\nplural = "eggs"\n'

NAMED = '[[templates]]\nname = "a"\n'
WRONG = [
    ("wordproblems", "[[templates]\n", ["']]'", "line 1, column 12)"]),
    ("wordproblems", "\x00", ["line 1, column 1)", "FILE cannot be read: Invalid statement"]),
    ("wordproblems", "", ["FILE has no [[templates]]", "at least one is needed"]),
    ("wordproblems", "templates = []\n", ["templates", "at least one is needed"]),
    ("wordproblems", f'[[template]]\nname = "a"\n{STORY}', ["'template'", "did you mean"]),
    ("wordproblems", f"[[templates]]\n{STORY}", ["'name'", "FILE: templates 1: Object missing"]),
    (
        "wordproblems",
        f'[[templates]]\nname = "a"\nrange = 3\n{STORY}',
        ["'range'", "FILE: templates 1 (a): Object contains"],
    ),
    (
        "wordproblems",
        '[[templates]]\nname = "a"\nanswer = "NUMA + NUMB"\ntext = "[NUMA] [NUMC]"\n',
        ["[NUMA]", "[NUMC]", "known: [NUMA], [NUMB]"],
    ),
    (
        "wordproblems",
        '[[templates]]\nname = "a"\nanswer = "NUMA + NUMB"\ntext = "[NUMA]"\n',
        ["NUMB", "FILE: templates 1 (a): the field [NUMB]"],
    ),
    (
        "wordproblems",
        '[[templates]]\nname = "a"\nanswer = "NUMA * NUMB"\ntext = "[NUMA] [NUMB]"\n',
        ["'NUMA * NUMB'", "'answer'"],
    ),
    ("wordproblems", f"{NAMED}{STORY}" * 2, ["'a'", "give each its own"]),
    (
        "comparison",
        f"{NAMED}{SENTENCE}".replace("[1, 9]", "[9, 1]"),
        [
            "FILE: templates 1 (a): the range [9, 1] is not",
            "allowed are two whole numbers from 1 to",
        ],
    ),
    (
        "comparison",
        f"{NAMED}{SENTENCE}".replace("[1, 9]", "[0, 9]"),
        [
            "FILE: templates 1 (a): the range [0, 9] is not",
            "allowed are two whole numbers from 1 to",
        ],
    ),
    ("comparison", f"{NAMED}{SENTENCE}".replace("[1, 9]", "[1]"), ["'array'", "'numbers'"]),
    (
        "comparison",
        f"{NAMED}{SENTENCE}".replace("[1, 9]", "[5, 5]"),
        ["FILE: a: no two different numbers from 5 to 5", "give a wider range"],
    ),
    ("measurement", QUESTION, ["FILE has no [[objects]]", "at least one is needed"]),
    (
        "measurement",
        f"{QUESTION}{THING}ranges = {{}}\n",
        ["FILE: objects 1 (egg): it has no range", "give one for a template at least"],
    ),
    ("measurement", f"{QUESTION}{THING}ranges = {{ v = [35, 70] }}\n", ["'v'", "FILE: objects 1"]),
    ("measurement", f"{QUESTION}{THING}ranges = {{ w = [1, 70] }}\n", ["[1, 70]", "allowed are"]),
    ("measurement", QUESTION.replace("[OBJ]", "eggs"), ["[OBJ]", "FILE: templates 1 (w): the"]),
    (
        "measurement",
        f"{QUESTION}{THING}ranges = {{ w = [35, 70] }}\n".replace('"eggs"', '"size 3 eggs"'),
        ["'3'", "write it as a word"],
    ),
]


def test_a_file_that_is_not_right_is_told_with_its_entry(numtok: Shell, says: Says) -> None:
    for task, content, parts in WRONG:
        with case(task, content, parts):
            Path("mine.toml").write_text(content)
            if task == "measurement" and "objects" not in content and "eggs" in content:
                Path("mine.toml").write_text(f"{content}{THING}ranges = {{ w = [35, 70] }}\n")
            ran = numtok("gen", task, "--templates", "mine.toml")
            assert (ran.code, ran.out) == (2, "")
            says(
                ran.err,
                "numtok: ",
                "mine.toml",
                *(part.replace("FILE", "mine.toml") for part in parts),
            )


def test_a_file_that_is_not_there_is_told(numtok: Shell, says: Says) -> None:
    ran = numtok("gen", "comparison", "--templates", "mine.toml")
    says(ran.err, "--templates mine.toml", "no such file")
    assert ran.code == 2


@pytest.mark.parametrize("name", JUDGED)
def test_a_file_of_ones_own_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    own = Path(gen.__file__).parents[1] / "data" / "tasks" / "templates" / f"{name}.toml"
    made = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "mine.toml"
        path.write_bytes(own.read_bytes())
        config = Config(f"{name},templates={path}", samples=100)
        made.append(gen.run(config, Store(tmp_path / folder), lambda *_: None).artifact)
    first, second = made
    assert first is not None and second is not None
    assert first.version == second.version
    assert (first.path / "train-00000.jsonl").read_bytes() == (
        second.path / "train-00000.jsonl"
    ).read_bytes()
    assert [parent.where for parent in first.manifest.parents] == [str(tmp_path / "a/mine.toml")]
    assert str(tmp_path) not in json.dumps(first.manifest.settings)
    path.write_bytes(own.read_bytes() + b"\n")
    changed = gen.run(config, Store(tmp_path / "b"), lambda *_: None)
    assert changed.made and changed.ref != second.ref


@pytest.mark.parametrize("name", JUDGED)
def test_another_process_needs_no_file(name: str, tmp_path: Path) -> None:
    own = Path(gen.__file__).parents[1] / "data" / "tasks" / "templates" / f"{name}.toml"
    path = tmp_path / "mine.toml"
    path.write_bytes(own.read_bytes())
    task = TASKS.build(f"{name},templates={path}")
    sent = pickle.dumps(task)
    path.write_text("")
    made = pickle.loads(sent).unit(0, TaskSplit("train", 20), 0)
    assert made == TASKS.build(name).unit(0, TaskSplit("train", 20), 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", JUDGED)
def test_the_templates_of_numtok_are_those_of_a_file_that_holds_them(
    name: str, tmp_path: Path
) -> None:
    own = Path(gen.__file__).parents[1] / "data" / "tasks" / "templates" / f"{name}.toml"
    task = TASKS.build(f"{name},templates={own}")
    split = TaskSplit("train", 50)
    assert task.unit(0, split, 0) == TASKS.build(name).unit(0, split, 0)  # type: ignore[attr-defined]
    assert settings_of(task)["templates"] == str(own)
    assert task.files["templates"].bytes == own.stat().st_size
    with pytest.raises(UsageError):
        TASKS.build(f"{name},templates={tmp_path}")
