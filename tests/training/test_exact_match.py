"""The fraction of exactly correct answers, as logged by training."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from numtok.cli.output.printing import Format
from numtok.cli.output.train import print_result
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_values, read_split
from numtok.encoding.stored_codec import read_codec
from numtok.models.batches import Batch, Batches
from numtok.models.generation import Writer, WrittenAnswers, last_tokens
from numtok.reports import PREDICTIONS_FILE
from numtok.stages import compare, encode, eval, gen, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.examples import ExactAnswers
from numtok.training.log import LoggedMetrics, read_log
from tests import fakemodels
from tests.stages.test_eval import TINY, quiet

one_thread = fakemodels.one_thread
SETTINGS = "digits=1..3,train=40,validation=12,test=1,prompt=short"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Yield a store with lengths of numbers, which are learned quickly, and sums, which are not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        built = Store(tmp_path_factory.mktemp("exact") / "artifacts")
        spec = f"nupa,tasks=length_Integer+add_Integer,{SETTINGS}"
        assert gen.run(gen.Config(spec, samples=None, name="mixed"), built, quiet).artifact
        yield built


def encoded(store: Store, scheme: str) -> Artifact:
    artifact = encode.run(encode.Config(("data/mixed",), scheme=scheme), store, quiet).artifact
    assert artifact is not None
    return artifact


def trained(store: Store, data: Artifact, **more: Any) -> train.Result:
    options: dict[str, Any] = {"preset": TINY, "objective": "ar", "steps": 200, "batch": 16}
    return train.run(train.Config(data.ref, **options | more), store, quiet)


class Validation(NamedTuple):
    """The codec and the validation split of encoded data."""

    codec: Codec
    samples: EncodedSplit

    @classmethod
    def of(cls, store: Store, scheme: str = "digits") -> "Validation":
        data = encoded(store, scheme)
        return cls(read_codec(data), read_split(data, "validation"))

    @property
    def answers(self) -> ExactAnswers | None:
        batches = Batches(self.samples, learnt_values(self.samples, self.codec), 16)
        return ExactAnswers.of(self.samples, batches, self.codec, 16)


def log(model: Artifact) -> list[LoggedMetrics]:
    return [entry for entry in read_log(model.path) if entry.split == "validation"]


@pytest.mark.integration
def test_the_share_is_that_of_the_texts_that_eval_finds(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    data = encoded(store, "digits")
    result = trained(store, data)
    config = eval.Config(result.artifact.ref, data.ref, split="validation", fill="answers")
    table = pq.read_table(eval.run(config, store, quiet).artifact.path / PREDICTIONS_FILE)
    predicted, true, ended = (table[name].to_pylist() for name in ("prediction", "answer", "ended"))
    exact = [text == gold and end for text, gold, end in zip(predicted, true, ended, strict=True)]
    assert 0.2 < np.mean(exact) < 1
    metrics = [entry.figures for entry in log(result.artifact)]
    assert metrics[-1]["exact"] == np.mean(exact)
    groups = read_split(data, "validation").groups
    for group, value, column in (
        ("operation", "add", table["group_operation"]),
        ("operation", "length", table["group_operation"]),
        ("digits", "2", table["group_digits"]),
    ):
        assert value in groups[group].to_pylist()
        rows = zip(exact, column.to_pylist(), strict=True)
        of_value = [is_exact for is_exact, other in rows if other == value]
        assert metrics[-1][f"exact,{group}={value}"] == np.mean(of_value)
    assert (first := metrics[0]["exact"]) is not None and first < np.mean(exact)
    print_result(result, Format.TABLE, quiet=False)
    [line] = [
        text for text in capsys.readouterr().err.splitlines() if "validation exact match" in text
    ]
    assert line.split()[-1] == f"{100 * np.mean(exact):.3g}%"
    print_result(result, Format.JSON, quiet=False)
    assert msgspec.json.decode(capsys.readouterr().out)["exact"] == {"validation": np.mean(exact)}


@pytest.mark.integration
def test_compare_says_how_many_tokens_a_share_took(store: Store) -> None:
    data = encoded(store, "digits")
    model = trained(store, data).artifact
    report = eval.run(eval.Config(model.ref, data.ref, fill="answers"), store, quiet).artifact
    config = compare.Config((report.ref,), until=("exact>=0.1", "exact>=1"))
    tenth, whole = compare.run(config, store).tokens_to_target
    assert tenth.statistics.value is not None and tenth.statistics.value > 0
    assert whole.tokens == [None]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("scheme", "more"),
    [
        ("xval", {}),  # predicts values, not digits
        ("digits", {"objective": "mlm"}),  # writes no answers
    ],
)
def test_where_nothing_can_be_exact_nothing_is_told(
    store: Store, scheme: str, more: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    result = trained(store, encoded(store, scheme), steps=2, **more)
    assert {entry.figures.get("exact") for entry in log(result.artifact)} == {None}
    print_result(result, Format.TABLE, quiet=False)
    assert "exact" not in capsys.readouterr().err


def test_rows_without_an_answer_are_not_asked(store: Store) -> None:
    codec, samples = Validation.of(store)
    starts = samples.answer_start.copy()
    starts[::2] = -1
    answers = Validation(codec, replace(samples, answer_start=starts)).answers
    assert answers is not None
    assert sorted(answers.rows.tolist()) == list(range(1, len(samples), 2))
    none = replace(samples, answer_start=np.full_like(starts, -1))
    assert Validation(codec, none).answers is None


@pytest.mark.parametrize("scheme", ["digits", "p1000", "numvalue", "numerologic"])
def test_answers_are_the_tokens_behind_the_prompt(store: Store, scheme: str) -> None:
    codec, samples = validation = Validation.of(store, scheme)
    answers = validation.answers
    assert answers is not None and len(answers.rows) == len(samples)
    for row, answer in zip(answers.rows.tolist(), answers.answers, strict=True):
        text, start = samples.answer(row).tokens, int(samples.answer_start[row])
        own = samples.tokens[samples.token_rows[row] : samples.token_rows[row + 1]]
        assert text.tolist() == own[start:].tolist()
        assert answer == codec.decode(*samples.answer(row)[:3])


@pytest.mark.parametrize(
    ("wrong", "expected"), [("the count", 1), ("the first digit", 0), ("the end", 0)]
)
def test_counts_of_numerologic_are_not_held_against_an_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch, wrong: str, expected: float
) -> None:
    """The model writes every answer with one error: ``{1:5}`` as ``{7:5}`` or as ``{1:7}``."""
    codec, samples = split = Validation.of(store, "numerologic")
    answers = split.answers
    assert answers is not None
    seven = codec.number_first + codec.scheme.vocabulary().index("7")
    colon = codec.number_first + codec.scheme.vocabulary().index(":")

    def write(writer: Writer, batch: Batch, memory: object) -> tuple[WrittenAnswers, object]:
        tokens = np.full((len(batch.tokens), writer.longest), -1)
        begins = np.zeros(tokens.shape, np.bool_)
        for index, row in enumerate(rows_left):
            own, starts, _, _ = samples.answer(row)
            tokens[index, : len(own)] = own
            begins[index, starts] = True
            counted = np.flatnonzero(own == colon)[0]
            if wrong != "the end":
                tokens[index, counted + (1 if wrong == "the first digit" else -1)] = seven
        rows_left.clear()
        ended = np.full(len(tokens), wrong != "the end")
        inside = (tokens >= codec.number_first) & (tokens < codec.text_first)
        return WrittenAnswers(
            tokens=tokens,
            starts=begins,
            ends=last_tokens(inside, begins),
            values=np.ones(tokens.shape, np.float32),
            ended=ended,
        ), memory

    # Answers with a 7 in this position would be correct by chance.
    keep = [k for k, answer in enumerate(answers.answers) if answer[0] != "7"]
    kept = replace(answers, rows=answers.rows[keep], answers=[answers.answers[k] for k in keep])
    rows_left = kept.rows.tolist()
    kept = replace(kept, size=len(rows_left), parts={})
    monkeypatch.setattr(Writer, "write", write)
    assert kept.shares(fakemodels.model("numerologic", "ar")) == {"exact": expected}


def test_groups_are_told_where_they_have_a_few_values_of_many_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    validation = Validation.of(store)

    def parts(**settings: int) -> dict[str, list[bool]]:
        for name, setting in settings.items():
            monkeypatch.setattr(f"numtok.training.examples.{name}", setting)
        answers = validation.answers
        assert answers is not None
        for part, mask in answers.parts.items():
            group, _, value = part.partition("=")
            assert mask.tolist() == [
                validation.samples.groups[group][row].as_py() == value
                for row in answers.rows.tolist()
            ]
        return {part: mask.tolist() for part, mask in answers.parts.items()}

    assert {"operation=add", "operation=length", "digits=2"} < set(parts())
    assert not any(part.startswith("representation") for part in parts())  # all are integers
    assert not any(part.startswith("digits") for part in parts(_VALUES=2))
    assert parts(_ENOUGH=1000) == {}


def test_long_answers_are_fewer_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    validation = Validation.of(store)
    whole = validation.answers
    monkeypatch.setattr("numtok.training.examples._TOKENS", 60)
    few = validation.answers
    assert whole is not None and few is not None
    assert 1 <= len(few.rows) == 60 // (few.longest + 1) < len(whole.rows)
