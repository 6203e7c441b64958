"""Curricula: phases that train on their own rows, and the learning rate in them."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_split
from numtok.errors import UsageError
from numtok.stages.train import run
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.curriculum import Curriculum, CurriculumSampler, shares
from numtok.training.trainer import Recipe
from tests import fakemodels
from tests.cases import each
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_train
from tests.stages.test_train import records, tiny, train

data, one_thread, store = test_train.data, test_train.one_thread, test_train.store


EASY_FIRST = """
restart = true

[[phase]]
rows = [{ where = { digits = "1..2" } }]

[[phase]]
length = 2
rows = [{ where = { digits = [3, "4"] } }, { where = { digits = "1..2" }, weight = 0.25 }]
"""


def samples(digits: str = "11223344" * 10) -> EncodedSplit:
    """Return one row per digit. The digit is the length of the text and the group ``digits``."""
    split = fakemodels.samples("digits", ["1" * int(digit) for digit in digits])
    split.groups["digits"] = pa.array(list(digits))
    split.groups["task"] = pa.array(["add"] * len(digits))
    return split


def curriculum(tmp_path: Path, text: str = EASY_FIRST) -> Curriculum:
    path = tmp_path / "phases.toml"
    path.write_text(text)
    return Curriculum.read(path)


def digits_of(rows: np.ndarray[Any, Any], split: EncodedSplit) -> str:
    return "".join(sorted(split.groups["digits"].take(pa.array(rows)).to_pylist()))


# --- which rows ---------------------------------------------------------------------------------


def test_each_phase_learns_its_own_rows_and_some_come_back(tmp_path: Path) -> None:
    split = samples()
    sampler = CurriculumSampler(curriculum(tmp_path), split, 5, 30)
    for step in range(30):
        digits = digits_of(sampler.at(0, step), split)
        assert len(digits) == 5
        easy = sum(digit in "12" for digit in digits)
        assert easy == (5 if step < 10 else 1)


def test_the_rows_of_a_choice_are_gone_through_epoch_after_epoch(tmp_path: Path) -> None:
    split = samples()
    sampler = CurriculumSampler(curriculum(tmp_path), split, 5, 30)
    first = np.concatenate([sampler.at(0, step) for step in range(8)])
    assert sorted(first) == [row for row in range(80) if row % 8 < 4]
    hard = np.concatenate([sampler.at(0, step) for step in range(10, 20)])
    hard_rows = [row for row in hard.tolist() if row % 8 >= 4]
    assert sorted(hard_rows) == [row for row in range(80) if row % 8 >= 4]
    again = np.concatenate([sampler.at(0, step) for step in range(20, 30)])
    assert hard.tolist() != again.tolist()


def test_few_rows_that_come_back_have_their_share_of_every_batch(tmp_path: Path) -> None:
    split = samples("3" * 70 + "1" * 9)
    text = EASY_FIRST.replace("0.25", "0.5")
    sampler = CurriculumSampler(curriculum(tmp_path, text), split, 21, 60)
    of_one_pass = []
    for step in range(20, 60):
        rows = sampler.at(0, step)
        assert digits_of(rows, split) == "1" * 7 + "3" * 14
        of_one_pass += [row for row in rows.tolist() if row >= 70]
    assert {*of_one_pass[:14]} == {*range(70, 79)}  # two batches of 7 cover the 9 rows
    scarce = samples("3" * 70 + "1" * 2)  # fewer rows than their fraction of a batch
    sampler = CurriculumSampler(curriculum(tmp_path, text), scarce, 21, 60)
    assert digits_of(sampler.at(0, 30), scarce) == "1" * 7 + "3" * 14


def test_a_step_is_a_function_of_the_seed_and_the_step(tmp_path: Path) -> None:
    split, phases = samples(), curriculum(tmp_path)
    straight, late = (CurriculumSampler(phases, split, 5, 30) for _ in range(2))
    expected = [straight.at(7, step).tolist() for step in range(30)]
    assert [late.at(7, step).tolist() for step in reversed(range(30))] == expected[::-1]
    assert late.at(8, 3).tolist() != expected[3]


def test_rows_that_were_seen_are_counted(tmp_path: Path) -> None:
    split = samples("1112344")  # the last batch of an epoch is smaller
    sampler = CurriculumSampler(curriculum(tmp_path), split, 3, 12)
    for steps in range(13):
        assert sampler.row_count(steps) == sum(len(sampler.at(0, step)) for step in range(steps))


def test_shares_of_a_batch_are_all_of_it() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        weights = random.exponential(size=random.integers(1, 6)).tolist()
        size = int(random.integers(len(weights), 40))
        counts = shares(weights, size)
        assert sum(counts) == size
        assert min(counts) >= 1
        for count, weight in zip(counts, weights, strict=True):
            assert abs(count - size * weight / sum(weights)) < len(weights)


def test_without_where_all_rows_are_chosen(tmp_path: Path) -> None:
    split = samples()
    sampler = CurriculumSampler(curriculum(tmp_path, "[[phase]]\nrows = [{}]"), split, 8, 10)
    assert sorted(np.concatenate([sampler.at(0, step) for step in range(10)])) == [*range(80)]


# --- the learning rate --------------------------------------------------------------------------


def test_the_rate_begins_anew_in_each_phase_and_ends_where_it_is_told(tmp_path: Path) -> None:
    starts = curriculum(tmp_path).restarts(30)
    assert starts == (0, 10, 30)
    recipe = Recipe(learning_rate=5e-5, warmup=0.3, final_rate=6e-6, starts=starts)
    for first, end in pairwise(starts):
        own = Recipe(learning_rate=5e-5, warmup=0.3, final_rate=6e-6)
        for step in range(first, end):
            assert recipe.rate(step, 30) == own.rate(step - first, end - first)
    assert recipe.rate(2, 30) == recipe.rate(15, 30) == 5e-5  # 3 and 6 steps of warm-up
    assert recipe.rate(10, 30) == pytest.approx(5e-5 / 6)
    last = Recipe(learning_rate=5e-5, final_rate=6e-6).rate(10**6 - 1, 10**6)
    assert last == pytest.approx(6e-6)
    assert curriculum(tmp_path, "[[phase]]\nrows = [{}]").restarts(30) is None


# --- a whole run --------------------------------------------------------------------------------

OPERATORS = """
[[phase]]
rows = [{ where = { operator = ["+", "-"] } }]

[[phase]]
rows = [{ where = { operator = "*" } }, { where = { operator = "+" }, weight = 0.5 }]
"""


def train_phases(store: Store, tmp_path: Path, text: str = OPERATORS, **more: Any) -> Artifact:
    path = tmp_path / "operators.toml"
    path.write_text(text)
    options: dict[str, Any] = {"steps": 6, "name": "phases"} | more
    return train(store, tiny(curriculum=str(path), **options))


@pytest.mark.integration
def test_a_model_depends_on_what_the_file_says_and_not_on_where_it_is(
    store: Store, tmp_path: Path
) -> None:
    model = train_phases(store, tmp_path)
    assert model.manifest.counts["samples"] == 6 * 64
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "again.toml").write_text("# the same\n" + OPERATORS)
    again = run(
        tiny(steps=6, name="phases", curriculum=str(other / "again.toml")), store, lambda _: None
    )
    assert not again.made
    changed = train_phases(store, tmp_path, OPERATORS.replace("0.5", "0.75"))
    plain = train(store, tiny(steps=6, name="phases"))
    assert len({artifact.version for artifact in (model, changed, plain)}) == 3
    assert model.manifest.settings["curriculum"]["phase"][1]["rows"][1]["weight"] == 0.5
    assert "curriculum" not in plain.manifest.settings


@pytest.mark.integration
def test_a_phase_of_all_rows_is_a_run_over_all_rows_in_another_order(
    store: Store, tmp_path: Path
) -> None:
    model = train_phases(store, tmp_path, "[[phase]]\nrows = [{}]", steps=8)
    rows = len(read_split(store.resolve("arithmetic-xval"), "train"))
    assert model.manifest.counts["samples"] == rows == model.manifest.counts["rows"]
    plain = train(store, tiny(steps=8))
    assert records(plain, "train")[-1]["tokens"] == records(model, "train")[-1]["tokens"]


# --- errors -------------------------------------------------------------------------------------


@each(
    ("text", "parts"),
    [
        ("", ("'phase'",)),
        ("phase = []", ("[[phase]]", "at least one")),
        ("[[phase]]", ("'rows'", "'phase[0]'")),
        ("[[phase]]\nrows = []", ("phase 1", "rows = [{}]")),
        ("[[phase]]\nrows = [{}]\nlength = 0", ("phase 1", "length", "1e-12 to 1e+12")),
        (
            "[[phase]]\nrows = [{ weight = -1.5 }]",
            ("phase 1", "weight", "1e-12 to 1e+12 (got -1.5)"),
        ),
        ("[[phase]]\nrows = [{ were = {} }]", ("phase 1: rows 1", "'were'", "'where'")),
        ("[[phase]]\nrows = [{}]\n[[phase]]\nlenght = 1", ("phase 2", "'lenght'", "'length'")),
        ("[data]", ("'data'", "Known: phase, restart")),
    ],
)
def test_files_that_are_no_curriculum_are_one_line(
    tmp_path: Path, text: str, parts: tuple[str, ...], says: Says
) -> None:
    path = tmp_path / "phases.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        Curriculum.read(path)
    says(caught, f"--curriculum {path}", *parts)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path, says: Says) -> None:
    missing, broken = tmp_path / "missing.toml", tmp_path / "broken.toml"
    with says.raises(UsageError, f"--curriculum {missing}", "file not found. Check the path"):
        Curriculum.read(missing)
    broken.write_text("[[phase")
    with pytest.raises(UsageError, match=f"^--curriculum {broken} cannot be read: [^\n]*$"):
        Curriculum.read(broken)


@each(
    ("rows", "parts"),
    [
        ('{ where = { digit = "1" } }', ("phase 1", "'digit'", "digits, task")),
        ('{ where = { digits = "5..9" } }', ("phase 1", "digits 5..9", "1, 2, 3, 4")),
        ('{ where = { digits = ["x", 7] } }', ("phase 1", "digits x, 7", "1, 2, 3, 4")),
        ("{}, {}, {}, {}, {}", ("phase 1", "5 choices", "--batch 4")),
    ],
)
def test_rows_that_are_not_there_are_one_line(
    tmp_path: Path, rows: str, parts: tuple[str, ...], says: Says
) -> None:
    phases = curriculum(tmp_path, f"[[phase]]\nrows = [{rows}]")
    with says.raises(UsageError, *parts):
        CurriculumSampler(phases, samples(), 4, 10)


def test_a_phase_without_a_step_is_refused_before_anything_is_begun(
    store: Store, tmp_path: Path, says: Says
) -> None:
    with says.raises(UsageError, "--steps 6", "phase 1 of --curriculum"):
        train_phases(store, tmp_path, OPERATORS.replace("[[phase]]", "[[phase]]\nlength = 1e-3", 1))


def test_a_curriculum_divides_steps(store: Store, tmp_path: Path, says: Says) -> None:
    with says.raises(UsageError, "--curriculum", "Set --steps"):
        train_phases(store, tmp_path, steps=None, tokens=1000)
    with says.raises(UsageError, "--lr-end", "(got 0.002)", "--lr, 0.001"):
        Recipe(learning_rate=1e-3, final_rate=2e-3)


@pytest.mark.integration
def test_the_command_takes_a_file_and_a_rate_to_end_at(
    numtok: Shell, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "operators.toml").write_text(OPERATORS)
    words = "train arithmetic-xval --steps 2 --batch 16 --curriculum operators.toml --lr-end 1e-5"
    numtok(*words.split(), "--preset", test_train.TINY, "--lr", "1e-3")
    (model,) = (artifact for artifact in Store(store.root).artifacts() if artifact.kind == "model")
    assert model.manifest.settings["final_rate"] == 1e-5
    again = model.manifest.command
    assert again[again.index("--curriculum") + 1] == "operators.toml"
    assert again[again.index("--lr-end") + 1] == "1e-05"


def test_the_schedule_of_value_aware_is_there() -> None:
    path = Path(__file__).resolve().parents[2] / "pipelines/curricula/value-aware.toml"
    schedule = Curriculum.read(path)
    assert schedule.title == (
        "5586474 of digits=1..3; 7962412 of digits=4..5 1, digits=1..3 0.048; "
        "8340750 of digits=6..7 1, digits=1..5 0.098; restart"
    )
    assert schedule.starts(85507) == [0, 21822, 52926, 85507]
