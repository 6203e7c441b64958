"""The share of answers that a model writes exactly, as training logs it."""

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
from numtok.encoding.splits import learnt_values, read_codec, read_split
from numtok.models.batches import Batch, Batches
from numtok.models.generation import Writer, WrittenAnswers, last_tokens
from numtok.reports import PREDICTIONS_FILE
from numtok.stages import compare, encode, eval, gen, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.examples import ExactAnswers
from numtok.training.log import Look, read_log
from tests import fakemodels
from tests.stages.test_eval import TINY, quiet

one_thread = fakemodels.one_thread
SETTINGS = "digits=1..3,train=40,validation=12,test=1,prompt=short"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Lengths of numbers, which are soon told, and sums, which are not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        made = Store(tmp_path_factory.mktemp("exact") / "artifacts")
        spec = f"nupa,tasks=length_Integer+add_Integer,{SETTINGS}"
        assert gen.run(gen.Config(spec, samples=None, name="mixed"), made, quiet).artifact
        yield made


def encoded(store: Store, scheme: str) -> Artifact:
    found = encode.run(encode.Config(("data/mixed",), scheme=scheme), store, quiet).artifact
    assert found is not None
    return found


def trained(store: Store, data: Artifact, **more: Any) -> train.Result:
    given: dict[str, Any] = {"preset": TINY, "objective": "ar", "steps": 200, "batch": 16}
    return train.run(train.Config(data.ref, **given | more), store, quiet)


class Asked(NamedTuple):
    """What answers are asked of: the validation split of encoded data."""

    codec: Codec
    samples: EncodedSplit

    @classmethod
    def of(cls, store: Store, scheme: str = "digits") -> "Asked":
        data = encoded(store, scheme)
        return cls(read_codec(data), read_split(data, "validation"))

    @property
    def answers(self) -> ExactAnswers | None:
        batches = Batches(self.samples, learnt_values(self.samples, self.codec), 16)
        return ExactAnswers.of(self.samples, batches, self.codec, 16)


def log(model: Artifact) -> list[Look]:
    return [one for one in read_log(model.path) if one.split == "validation"]


@pytest.mark.integration
def test_the_share_is_that_of_the_texts_that_eval_finds(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    data = encoded(store, "digits")
    made = trained(store, data)
    config = eval.Config(made.artifact.ref, data.ref, split="validation", fill="answers")
    table = pq.read_table(eval.run(config, store, quiet).artifact.path / PREDICTIONS_FILE)
    said, true, ended = (table[name].to_pylist() for name in ("prediction", "answer", "ended"))
    exact = [one == gold and end for one, gold, end in zip(said, true, ended, strict=True)]
    assert 0.2 < np.mean(exact) < 1
    looks = [one.figures for one in log(made.artifact)]
    assert looks[-1]["exact"] == np.mean(exact)
    groups = read_split(data, "validation").groups
    for group, value, column in (
        ("operation", "add", table["group_operation"]),
        ("operation", "length", table["group_operation"]),
        ("digits", "2", table["group_digits"]),
    ):
        assert value in groups[group].to_pylist()
        of = [one for one, other in zip(exact, column.to_pylist(), strict=True) if other == value]
        assert looks[-1][f"exact,{group}={value}"] == np.mean(of)
    assert (first := looks[0]["exact"]) is not None and first < np.mean(exact)
    print_result(made, Format.TABLE, quiet=False)
    [line] = [
        one for one in capsys.readouterr().err.splitlines() if "validation answers, exact" in one
    ]
    assert line.split()[-1] == f"{100 * np.mean(exact):.3g}%"
    print_result(made, Format.JSON, quiet=False)
    assert msgspec.json.decode(capsys.readouterr().out)["exact"] == {"validation": np.mean(exact)}


@pytest.mark.integration
def test_compare_says_how_many_tokens_a_share_took(store: Store) -> None:
    data = encoded(store, "digits")
    model = trained(store, data).artifact
    report = eval.run(eval.Config(model.ref, data.ref, fill="answers"), store, quiet).artifact
    config = compare.Config((report.ref,), until=("exact>=0.1", "exact>=1"))
    some, whole = compare.run(config, store).tokens_to_target
    assert some.statistics.value is not None and some.statistics.value > 0
    assert whole.tokens == [None]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("scheme", "more"),
    [
        ("xval", {}),  # a value is never exact
        ("digits", {"objective": "mlm"}),  # writes no answers
    ],
)
def test_where_nothing_can_be_exact_nothing_is_told(
    store: Store, scheme: str, more: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = trained(store, encoded(store, scheme), steps=2, **more)
    assert {one.figures.get("exact") for one in log(made.artifact)} == {None}
    print_result(made, Format.TABLE, quiet=False)
    assert "exact" not in capsys.readouterr().err


def test_rows_without_an_answer_are_not_asked(store: Store) -> None:
    codec, samples = Asked.of(store)
    starts = samples.answer_start.copy()
    starts[::2] = -1
    found = Asked(codec, replace(samples, answer_start=starts)).answers
    assert found is not None
    assert sorted(found.rows.tolist()) == list(range(1, len(samples), 2))
    none = replace(samples, answer_start=np.full_like(starts, -1))
    assert Asked(codec, none).answers is None


@pytest.mark.parametrize("scheme", ["digits", "p1000", "numvalue", "numerologic"])
def test_answers_are_the_tokens_behind_the_prompt(store: Store, scheme: str) -> None:
    codec, samples = asked = Asked.of(store, scheme)
    found = asked.answers
    assert found is not None and len(found.rows) == len(samples)
    for row, answer in zip(found.rows.tolist(), found.answers, strict=True):
        text, start = samples.answer(row).tokens, int(samples.answer_start[row])
        own = samples.tokens[samples.token_rows[row] : samples.token_rows[row + 1]]
        assert text.tolist() == own[start:].tolist()
        assert answer == codec.decode(*samples.answer(row)[:3])


@pytest.mark.parametrize(
    ("of", "expected"), [("the count", 1), ("the first digit", 0), ("the end", 0)]
)
def test_counts_of_numerologic_are_not_held_against_an_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch, of: str, expected: float
) -> None:
    """A model that writes every answer, but for one thing: ``{1:5}`` as ``{7:5}``, as ``{1:7}``."""
    codec, samples = split = Asked.of(store, "numerologic")
    found = split.answers
    assert found is not None
    seven = codec.number_first + codec.scheme.vocabulary().index("7")
    colon = codec.number_first + codec.scheme.vocabulary().index(":")

    def write(writer: Writer, batch: Batch, memory: object) -> tuple[WrittenAnswers, object]:
        tokens = np.full((len(batch.tokens), writer.longest), -1)
        begins = np.zeros(tokens.shape, np.bool_)
        for place, row in enumerate(asked):
            own, starts, _, _ = samples.answer(row)
            tokens[place, : len(own)] = own
            begins[place, starts] = True
            counted = np.flatnonzero(own == colon)[0]
            if of != "the end":
                tokens[place, counted + (1 if of == "the first digit" else -1)] = seven
        asked.clear()
        ended = np.full(len(tokens), of != "the end")
        inside = (tokens >= codec.number_first) & (tokens < codec.text_first)
        return WrittenAnswers(
            tokens=tokens,
            starts=begins,
            ends=last_tokens(inside, begins),
            values=np.ones(tokens.shape, np.float32),
            ended=ended,
        ), memory

    # Answers that have a 7 there would be right by chance.
    keep = [k for k, answer in enumerate(found.answers) if answer[0] != "7"]
    some = replace(found, rows=found.rows[keep], answers=[found.answers[k] for k in keep])
    asked = some.rows.tolist()
    some = replace(some, size=len(asked), parts={})
    monkeypatch.setattr(Writer, "write", write)
    assert some.shares(fakemodels.model("numerologic", "ar")) == {"exact": expected}


def test_groups_are_told_where_they_have_a_few_values_of_many_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked.of(store)

    def parts(**settings: int) -> dict[str, list[bool]]:
        for name, setting in settings.items():
            monkeypatch.setattr(f"numtok.training.examples.{name}", setting)
        found = asked.answers
        assert found is not None
        for part, of in found.parts.items():
            group, _, value = part.partition("=")
            assert of.tolist() == [
                asked.samples.groups[group][row].as_py() == value for row in found.rows.tolist()
            ]
        return {part: of.tolist() for part, of in found.parts.items()}

    assert {"operation=add", "operation=length", "digits=2"} < set(parts())
    assert not any(part.startswith("representation") for part in parts())  # all are integers
    assert not any(part.startswith("digits") for part in parts(_VALUES=2))
    assert parts(_ENOUGH=1000) == {}


def test_long_answers_are_fewer_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked.of(store)
    whole = asked.answers
    monkeypatch.setattr("numtok.training.examples._TOKENS", 60)
    few = asked.answers
    assert whole is not None and few is not None
    assert 1 <= len(few.rows) == 60 // (few.longest + 1) < len(whole.rows)
