"""``numtok.read_answer`` and ``numtok.score_answers``, and the examples of docs/how-to/score.md."""

import importlib.util
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numtok
from numtok.errors import DataError, UsageError
from numtok.evaluation.answer_scores.answer_files import model_names
from tests.messages import Says

GUIDE = (Path(__file__).resolve().parents[2] / "docs/how-to/score.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", GUIDE, re.M | re.S)


def test_answers_are_exact_decimals(says: Says) -> None:
    assert numtok.read_answer("It costs -$1,250.50 now.") == Decimal("-1250.5")
    assert numtok.read_answer("from 3 to 4", "first-number") == 3
    assert numtok.read_answer("60%", numbers="percent") == Decimal("0.6")
    assert numtok.read_answer(None) is None
    mixed = r"It is $1\frac{1}{2}$."
    assert numtok.read_answer(mixed, numbers="fractions") == Decimal("1.5")
    assert numtok.read_answer(mixed, "first-number") == 1
    with says.raises(UsageError, "text must be a string or None", "5"):
        numtok.read_answer(5)
    with says.raises(UsageError, "'last'"):
        numtok.read_answer("5", "last")


def test_the_dash_of_a_list_is_no_sign_of_an_amount() -> None:
    for text, value in {
        "The refund is:\n- $5": 5, "10 - $5": 5, "-$5": -5, "\u2212€5": -5, "- 5": 5,
    }.items():  # fmt: skip
        assert numtok.read_answer(text, "last-number") == value, text


def test_models_are_named_after_their_files() -> None:
    names = model_names(["out/gpt-4.1.jsonl", "out/claude-3.5.jsonl.gz"])
    assert names == ["gpt-4.1", "claude-3.5"]


def test_arrays_are_true_values_and_rows_without_a_cluster_are_apart() -> None:
    truth, clusters = np.array([1.0, 2.0, 3.0]), ["a", None, None]
    shown = numtok.score_answers(["1", "2", "4"], truth, rules="strict", clusters=clusters)
    assert shown.result.clusters == 3
    shown = numtok.score_answers(["1", "2", "4"], truth, rules="strict", clusters=[None] * 3)
    assert shown.result.clusters is None


def test_true_values_that_are_no_texts_have_a_point() -> None:
    shown = numtok.score_answers(["1,234"], [1.234], rules="strict", numbers="decimal=comma")
    assert shown.result.models[0].rules[0].metrics["exact-match"].value == 1


def test_answers_in_memory_are_scored(says: Says) -> None:
    truth = [3, 4.5, "1,000", Decimal("0.10")]
    models = {"a": ["3", "4.50", "1000", "0.1"], "b": ["3", None, "x", "0.2"]}
    shown = numtok.score_answers(models, truth, rules="last-number", clusters=[1, 1, 2, 3])
    values = [model.rules[0].metrics["exact-match"].value for model in shown.result.models]
    assert (values, shown.result.clusters) == ([1, 0.25], 3)
    assert "difference in exact-match from a" in str(shown) and "<table>" in shown._repr_html_()
    with says.raises(DataError, "3 answers", "4 true values"):
        numtok.score_answers(["1", "2", "3"], truth)
    with says.raises(DataError, "truth[1]", "'nan'"):
        numtok.score_answers(["1", "2"], [1, float("nan")])
    with says.raises(DataError, "clusters has 1 element "):
        numtok.score_answers(["1", "2"], [1, 2], clusters=[1])
    with says.raises(DataError, "answers are empty"):
        numtok.score_answers([], [])
    with says.raises(UsageError, "an answer must be a string or a number or None", "True"):
        numtok.score_answers([True], [3])
    with says.raises(UsageError, "truth_field", "numtok.score"):
        numtok.score_answers(["3"], [3], truth_field="y")


def test_answers_may_be_numbers_as_in_files() -> None:
    answers = [5, 4.5, Decimal("0.10"), np.float64(2), np.int64(3), None, float("nan")]
    shown = numtok.score_answers(answers, [5, 4.5, 0.1, 2, 3, 1, 1], rules="last-number")
    assert shown.result.models[0].rules[0].metrics["exact-match"].value == pytest.approx(5 / 7)
    comma = numtok.score_answers([1.234], [1.234], rules="strict", numbers="decimal=comma")
    assert comma.result.models[0].rules[0].metrics["exact-match"].value == 1


def test_the_earlier_name_of_the_benchmark_works(tmp_path: Path) -> None:
    with (
        pytest.warns(FutureWarning, match="numtok.nupa is now numtok.score"),
        pytest.raises(UsageError, match="absent"),
    ):
        numtok.nupa("absent", store=tmp_path)
    assert "nupa" not in dir(numtok)


def test_the_examples_of_the_guide_give_what_they_say() -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES[0], names)
    for line in EXAMPLES[0].splitlines():
        code, mark, value = line.partition("  # ")
        if mark:
            assert repr(eval(code.partition(" = ")[2] or code, names)) == value


class _Filter(ABC):
    """The base class of filters of lm-evaluation-harness 0.4."""

    @abstractmethod
    def apply(self, resps: Iterable[list[str]], docs: list[dict[str, Any]]) -> Iterable[list[str]]:
        """Filter the responses to each document."""


def _harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install what the example imports from lm-evaluation-harness, unless it is available."""
    if importlib.util.find_spec("lm_eval") is not None:
        return

    def registering(*_: Any, **__: Any) -> Callable[[Any], Any]:
        return lambda registered: registered

    modules = {
        name: ModuleType(name)
        for name in ("lm_eval", "lm_eval.api", *(f"lm_eval.api.{one}" for one in _MODULES))
    }
    vars(modules["lm_eval.api.filter"])["Filter"] = _Filter
    vars(modules["lm_eval.api.registry"])["register_filter"] = registering
    vars(modules["lm_eval.api.registry"])["register_metric"] = registering
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            vars(modules[parent])[child] = module


_MODULES = ("filter", "metrics", "registry")


def test_the_filter_and_the_metric_of_the_guide_judge_by_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _harness(monkeypatch)
    names: dict[str, Any] = {}
    exec(EXAMPLES[1], names)
    responses = [[r"so \boxed{18.0}"], ["It is $1,801."], ["no idea"]]
    targets = ["18", "1,800", "7"]
    filtered = names["NumberFilter"]().apply(responses, [{} for _ in targets])
    scores = [
        names["same_number"](references=[target], predictions=texts)
        for target, texts in zip(targets, filtered, strict=True)
    ]
    assert scores == [1.0, 0.0, 0.0]
    assert names["same_number"](references=["none"], predictions=["none"]) == 0.0
