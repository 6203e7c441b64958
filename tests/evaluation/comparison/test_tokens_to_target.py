"""``numtok compare --tokens-to``: tokens until a validation metric reached a level."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok import files
from numtok.cli.output.comparison import _reached
from numtok.errors import DataError, UsageError
from numtok.evaluation.comparison.tokens_to_target import Level, TokensToTarget, tokens_to_target
from numtok.evaluation.report_files import Evaluation, read
from numtok.store.artifact import MODEL, Artifact
from numtok.store.store import Store
from numtok.training.log import LOG_FILE
from tests.cases import case
from tests.fakereports import Fake, make
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_compare import store

__all__ = ["store"]  # a fixture


def logged(store: Store, losses: Sequence[float | None], seed: int, split: str) -> Artifact:
    """Make a model with validation every 100 tokens; only its log exists."""
    with store.draft(MODEL, "model-p1000", {"seed": seed}, [], ["numtok", "train"]) as draft:
        assert not isinstance(draft, Artifact)
        lines = [
            {"step": step, "tokens": 100 * step, "split": split, "loss": loss, "exact": 0.1}
            for step, loss in enumerate(losses, 1)
        ]
        lines.insert(0, {"step": 1, "tokens": 100, "split": "train", "loss": 0.0})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        files.write_atomic(draft.path / LOG_FILE, text.encode())
        return draft.publish({}, {})


def evaluated(
    store: Store, *losses: Sequence[float | None], split: str = "validation"
) -> list[Evaluation]:
    """Make one report per log, each with its own seed."""
    result = []
    for seed, log in enumerate(losses):
        evaluation = read(make(store, Fake(seed=seed)))
        report = msgspec.structs.replace(
            evaluation.report, model=logged(store, log, seed, split).ref
        )
        result.append(replace(evaluation, report=report))
    return result


def of(store: Store, level: str, evaluations: Sequence[Evaluation]) -> TokensToTarget:
    [evaluation] = tokens_to_target([Level.parse(level)], [("p1000", evaluations)], store.resolve)
    return evaluation


@pytest.mark.parametrize(
    ("level", "looks", "tokens"),
    [
        # Between two validations, a metric is interpolated linearly.
        ("loss<=2", [(100, 3.0), (200, 1.0), (300, 0.5)], 150),
        ("loss<=1", [(100, 3.0), (200, 1.0), (300, 0.5)], 200),
        ("loss<1", [(100, 3.0), (200, 1.0), (300, 0.5)], 200),  # below right after this point
        ("exact>=0.9", [(100, 0.0), (300, 1.0)], 280),
        ("loss<=5", [(100, 3.0), (200, 1.0)], 100),  # reached at the first validation
        ("loss<=1", [(100, 2.0), (200, 0.0), (300, 2.0), (400, 0.0)], 150),  # the first time
        ("loss<=1", [(100, 3.0), (200, 1.1)], None),
        ("loss<=1", [], None),
        ("loss<=1", [(100, 2.0), (200, None), (300, 0.5)], 300),  # no interpolation across a gap
    ],
)
def test_tokens_are_those_at_which_the_level_is_first_reached(
    level: str, looks: list[tuple[float, float | None]], tokens: float | None
) -> None:
    assert Level.parse(level).tokens(looks) == tokens


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8), st.floats(0, 10), st.floats(0, 10))
def test_a_stricter_level_takes_no_fewer_tokens(
    figures: list[float], one: float, other: float
) -> None:
    looks = [(100.0 * at, value) for at, value in enumerate(figures, 1)]
    strict, loose = sorted((one, other))
    early = Level("loss", "<=", loose).tokens(looks)
    late = Level("loss", "<=", strict).tokens(looks)
    if late is not None:
        assert early is not None and early <= late + 1e-9
        assert 100 <= late <= 100 * len(figures)


def test_a_level_of_several_seeds_has_an_interval_over_them(store: Store) -> None:
    result = of(store, "loss<=1", evaluated(store, [2.0, 1.0], [2.0, 0.0], [1.0, 0.0]))
    assert result.tokens == [200, 150, 100]
    assert result.level == "loss<=1"
    assert result.statistics.value == 150 and result.statistics.seeds == 3
    assert result.statistics.low is not None and result.statistics.low < 100


def test_a_seed_that_never_got_there_leaves_no_mean(store: Store) -> None:
    result = of(store, "loss<=1", evaluated(store, [2.0, 1.0], [2.0, 2.0]))
    assert result.tokens == [200, None]
    assert result.statistics.value is None


def test_an_unknown_figure_is_told_with_those_of_the_log(store: Store, says: Says) -> None:
    [evaluation] = evaluated(store, [1.0])
    with says.raises(UsageError, "--tokens-to", "'exat'", "'exact'?", "Known: exact, loss"):
        of(store, "exat>=0.9", [evaluation])


def test_an_experiment_whose_logs_lack_the_figure_is_told_as_such(store: Store) -> None:
    with_it, without = evaluated(store, [2.0, 0.0], [3.0, 0.0])
    log = store.resolve(without.report.model).path / LOG_FILE
    log.write_text(log.read_text().replace('"exact"', '"other"'))
    level = Level.parse("exact>=0.1")
    evaluation, other = tokens_to_target(
        [level], [("p1000", [with_it]), ("xval", [without])], store.resolve
    )
    assert evaluation.tokens == [100] and evaluation.statistics.value == 100
    assert other.tokens is None and other.statistics.value is None
    assert _reached(other) == ("not logged", "-", "-", "-")
    [mixed] = tokens_to_target([level], [("p1000", [with_it, without])], store.resolve)
    assert mixed.tokens is None
    by_group = Level.parse("exact,operation=add>=0.1")
    for alone in tokens_to_target([level, by_group], [("xval", [without])], store.resolve):
        assert _reached(alone) == ("not logged", "-", "-", "-")


def test_a_run_that_looked_at_nothing_is_refused(store: Store, says: Says) -> None:
    [evaluation] = evaluated(store, [1.0], split="train")
    with says.raises(DataError, evaluation.report.model, "validation split"):
        of(store, "loss<=1", [evaluation])


def test_what_is_no_model_of_texts_has_no_log(store: Store, says: Says) -> None:
    [evaluation] = evaluated(store, [1.0])
    report = msgspec.structs.replace(evaluation.report, model=evaluation.ref)
    with says.raises(UsageError, "--tokens-to", evaluation.ref, "Remove --tokens-to"):
        of(store, "loss<=1", [replace(evaluation, report=report)])


def test_a_malformed_level_is_refused(says: Says) -> None:
    for text in ["loss", "loss=1", "loss<=", "<=1", "loss<=low"]:
        with case(text), says.raises(UsageError, "--tokens-to", repr(text), ">=, >, <=, <"):
            Level.parse(text)


@pytest.mark.integration
def test_the_table_says_how_many_seeds_got_there(numtok: Shell, tmp_path: Path) -> None:
    """Both models reach the first level, and none reaches the second."""
    assert numtok("gen", "arithmetic", "--rows", "400", "--name", "sums")[0] == 0
    assert numtok("encode", "sums", "--scheme", "p1000")[0] == 0
    shape = "--preset", "nano,layers=1,width=16,heads=2", "--steps", "4", "--batch", "16"
    refs = []
    for seed in ("0", "1"):
        model = numtok("train", "sums-p1000", *shape, "--seed", seed)[1].strip()
        refs.append(numtok("eval", model, "sums-p1000")[1].strip())
    code, out, err = numtok("compare", *refs, "--tokens-to", "loss<=100", "--tokens-to", "loss<=0")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    title = lines.index("training tokens until the validation split reached")
    first, second = (lines.index(f"loss<={limit}:") for limit in (100, 0))
    assert "experiment seeds tokens least most" in lines[title:first]
    assert any(line.startswith("p1000 2 of 2 ") for line in lines[first:second])
    assert "p1000 0 of 2 - - -" in lines[second:]
    assert max(map(len, out.splitlines())) <= 80
    _, out, _ = numtok("compare", *refs, "--tokens-to", "loss<=100", "--format", "csv")
    [row] = [line for line in out.splitlines() if line.startswith("tokens until,")]
    assert row.split(",")[:3] == ["tokens until", "p1000", "loss<=100"]
    _, out, _ = numtok("compare", *refs, "--tokens-to", "loss<=100", "--json")
    [evaluation] = json.loads(out)["tokens_to_target"]
    assert [tokens > 0 for tokens in evaluation["tokens"]] == [True, True]
