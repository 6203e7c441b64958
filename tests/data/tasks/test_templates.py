"""Texts with fields to fill in, and one-line errors for mistakes in files of templates."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from numtok.data.tasks._templates import Pattern
from numtok.data.tasks.base import TASKS, TaskSplit, TextTask
from numtok.errors import UsageError
from numtok.registry import settings_of
from numtok.stages import gen
from numtok.stages.gen import Config
from numtok.store.store import Store
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_gen import make

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
        ("[N] and [M]", ["[N]", "[M]", "Known: [N]"]),
        ("[]: [N]", ["[N]", "Known: [N]"]),
        ("no number", ["the field [N] must appear once"]),
        ("[N] or [N]", ["[N]", "must appear once"]),
        ("[N egg/eggs]", ["the field [N] must appear once"]),
        ("[N] [N eggs]", ["eggs]", "[N eggs] must have two words"]),
        ("[N] [N a/b/c]", ["a/b/c]", "[N a/b/c] must have two words"]),
        ("[N] [N", ["' [N'", "bracket"]),
        ("[N] of 3 eggs", ["'3'", "Spell it out"]),
        ("[N].5 eggs", ["'80.5'", "Spell it out"]),
        ("x[N] eggs", ["'x80 eggs'", "letters, points and digits"]),
        ("[N]_", ["'80_'", "letters, points and digits"]),
    ]:
        with case(text, parts), says.raises(ValueError, *parts):
            Pattern.parse(text, ["N"])


# --- files -------------------------------------------------------------------------------------

NAMED = '[[templates]]\nname = "a"\n'
QUESTION = '[[templates]]\nname = "w"\ntext = "How heavy [INT is/are] [INT] [OBJ]?"\n'


def story(text: str = "[NUMA] and [NUMB]?", answer: str = "NUMA + NUMB", begin: str = NAMED) -> str:
    return f'{begin}text = "{text}"\nanswer = "{answer}"\n'


def sentence(numbers: list[int]) -> str:
    return f'{NAMED}text = "[NUMA] < [NUMB]"\nnumbers = {numbers}\ncorrect = "NUMA < NUMB"\n'


def egg(ranges: str = "w = [35, 70]", plural: str = "eggs", question: str = QUESTION) -> str:
    thing = f'[[objects]]\nname = "egg"\nplural = "{plural}"\nranges = {{ {ranges} }}\n'
    return f"{question}{thing}"


WRONG = {
    "wordproblems": [
        ("[[templates]\n", ["']]'", "line 1, column 12)"]),
        ("\x00", ["line 1, column 1)", "FILE cannot be read: Invalid statement"]),
        ("", ["FILE", "at least one [[templates]]"]),
        ("templates = []\n", ["templates", "at least one"]),
        (story(begin='[[template]]\nname = "a"\n'), ["'template'", "Did you mean"]),
        (story(begin="[[templates]]\n"), ["'name'", "FILE: templates 1: "]),
        (story(begin=f"{NAMED}range = 3\n"), ["'range'", "FILE: templates 1 (a): "]),
        (story("[NUMA] [NUMC]"), ["[NUMA]", "[NUMC]", "Known: [NUMA], [NUMB]"]),
        (story("[NUMA]"), ["NUMB", "FILE: templates 1 (a): the field [NUMB]"]),
        (story(answer="NUMA * NUMB"), ["'NUMA * NUMB'", "'answer'"]),
        (story() * 2, ["'a'", "unique names"]),
    ],
    "comparison": [
        (sentence([9, 1]), ["FILE: templates 1 (a): the range", "[9, 1]", "two increasing whole"]),
        (sentence([0, 9]), ["FILE: templates 1 (a): the range", "[0, 9]", "two increasing whole"]),
        (sentence([1]), ["an array of length 2", "'numbers'"]),
        (sentence([5, 5]), ["FILE: a: ", "no two different numbers from 5 to 5", "wider range"]),
    ],
    "measurement": [
        (QUESTION, ["FILE", "at least one [[objects]]"]),
        (egg(""), ["FILE: objects 1 (egg): ", "at least one template"]),
        (egg("v = [35, 70]"), ["'v'", "FILE: objects 1"]),
        (egg("w = [1, 70]"), ["[1, 70]", "from 2 to"]),
        (egg(question=QUESTION.replace("[OBJ]", "eggs")), ["[OBJ]", "FILE: templates 1 (w): the"]),
        (egg(plural="size 3 eggs"), ["'3'", "Spell it out"]),
    ],
}


def test_a_file_that_is_not_right_is_told_with_its_entry(numtok: Shell, says: Says) -> None:
    for task, wrong in WRONG.items():
        for content, parts in wrong:
            with case(task, content, parts):
                Path("mine.toml").write_text(content)
                ran = numtok("gen", task, "--templates", "mine.toml")
                assert (ran.code, ran.out) == (2, "")
                told = [part.replace("FILE", "mine.toml") for part in parts]
                says(ran.err, "numtok: ", "mine.toml", *told)


def test_a_file_that_is_not_there_is_told(numtok: Shell, says: Says) -> None:
    ran = numtok("gen", "comparison", "--templates", "mine.toml")
    says(ran.err, "--templates mine.toml: file not found")
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
        made.append(make(config, tmp_path / folder))
    first, second = made
    assert first.version == second.version
    train = [one.path / "train-00000.jsonl" for one in made]
    assert train[0].read_bytes() == train[1].read_bytes()
    assert [parent.where for parent in first.manifest.parents] == [str(tmp_path / "a/mine.toml")]
    assert str(tmp_path) not in json.dumps(first.manifest.settings)
    path.write_bytes(own.read_bytes() + b"\n")
    changed = gen.run(config, Store(tmp_path / "b"), lambda *_: None)
    assert changed.made and changed.ref != second.ref


@pytest.mark.parametrize("name", JUDGED)
def test_the_templates_of_numtok_are_those_of_a_file_that_holds_them(
    name: str, tmp_path: Path
) -> None:
    own = Path(gen.__file__).parents[1] / "data" / "tasks" / "templates" / f"{name}.toml"
    path = tmp_path / "mine.toml"
    path.write_bytes(own.read_bytes())
    task = TASKS.build(f"{name},templates={path}")
    assert settings_of(task)["templates"] == str(path)
    assert task.files["templates"].bytes == own.stat().st_size
    sent = pickle.dumps(task)
    path.write_text("")  # another process does not need the file
    own_task, split = TASKS.build(name), TaskSplit("train", 50)
    assert isinstance(own_task, TextTask)
    assert pickle.loads(sent).unit(0, split, 0) == own_task.unit(0, split, 0)
    with pytest.raises(UsageError):
        TASKS.build(f"{name},templates={tmp_path}")
