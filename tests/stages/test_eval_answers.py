"""``numtok eval --fill answers``: what a model writes, scored as whole answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from numtok.encoding.grammar import Grammar
from numtok.encoding.splits import learnt_values, read_split
from numtok.errors import DataError, UsageError
from numtok.evaluation.report_files import read
from numtok.models.batches import Batches
from numtok.models.generation import Writer
from numtok.reports import PREDICTIONS_FILE
from numtok.stages import compare, encode, eval, gen, nupa, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import read_model
from tests import fakemodels
from tests.messages import Says
from tests.stages.test_eval import TINY, quiet

one_thread = fakemodels.one_thread
CPU = torch.device("cpu")
TASKS = "add_Integer+add_Fraction+to_scient_Integer"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Some of NUPA."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        made = Store(tmp_path_factory.mktemp("answers") / "artifacts")
        spec = f"nupa,tasks={TASKS},digits=1..5,train=12,validation=0,test=3,prompt=short"
        assert gen.run(gen.Config(spec, samples=None, name="sums"), made, quiet).artifact
        yield made


def encoded(store: Store, scheme: str, *inputs: str) -> Artifact:
    config = encode.Config(inputs or ("data/sums",), scheme=scheme)
    found = encode.run(config, store, quiet).artifact
    assert found is not None
    return found


def trained(store: Store, data: Artifact, objective: str = "ar", **more: Any) -> Artifact:
    given: dict[str, Any] = {"preset": TINY, "steps": 3, "batch": 16}
    config = train.Config(data.ref, objective=objective, **given | more)
    return train.run(config, store, quiet).artifact


def evaluated(store: Store, model: Artifact, data: Artifact, **more: Any) -> Artifact:
    config = eval.Config(model.ref, data.ref, fill="answers", **more)
    return eval.run(config, store, quiet).artifact


@pytest.mark.parametrize("scheme", ["digits", "p1000", "xval", "bpe"])
def test_a_report_says_what_the_model_wrote(store: Store, scheme: str) -> None:
    data = encoded(store, scheme)
    report = evaluated(store, trained(store, data, steps=150 if scheme == "digits" else 10), data)
    table = pq.read_table(report.path / PREDICTIONS_FILE)
    golds = {}
    for line in (store.resolve("data/sums").path / "test-00000.jsonl").read_text().splitlines():
        row = json.loads(line)
        golds[row["id"]] = row["gold"]
    assert dict(zip(*(table.column(name).to_pylist() for name in ("id", "answer")))) == golds  # noqa: B905
    told = read(report).report
    assert told.measures == "answers"
    assert told.numbers == len(golds)
    exact = told.baselines["quantisation"]["answer-exact-match"].value
    assert exact is not None
    if scheme in ("digits", "bpe"):
        assert exact == 1
    else:  # there are answers of more digits than they have
        assert 0 < exact < 1
    said = nupa.run(nupa.Config(report.ref), store)
    assert (said.n, said.rule) == (len(golds), "published")


@pytest.mark.parametrize("scheme", ["xval", "numgpt"])
def test_values_in_float32_can_say_every_short_answer(store: Store, scheme: str) -> None:
    spec = "nupa,tasks=add_Integer+add_Float,digits=1..3,train=20,validation=0,test=9,prompt=short"
    made = gen.run(gen.Config(spec, samples=None, name="short"), store, quiet).artifact
    assert made is not None
    data = encoded(store, scheme, made.ref)
    told = read(evaluated(store, trained(store, data), data)).report
    assert told.baselines["quantisation"]["answer-exact-match"].value == 1


def test_texts_are_those_of_the_tokens_written(store: Store) -> None:
    data = encoded(store, "digits")
    artifact = trained(store, data, steps=150)
    report = evaluated(store, artifact, data)
    loaded, samples = read_model(artifact, CPU), read_split(data, "test")
    batches = Batches(samples, learnt_values(samples, loaded.codec), 1)
    longest = read(report).report.texts.longest  # type: ignore[union-attr]
    writer = Writer(
        model=loaded.model,
        codec=loaded.codec,
        grammar=Grammar(loaded.codec.scheme),
        constrained=True,
        longest=longest,
    )
    table = pq.read_table(report.path / PREDICTIONS_FILE)
    for row, (text, ended) in enumerate(
        zip(*(table.column(name).to_pylist() for name in ("prediction", "ended")), strict=True)
    ):
        written, _ = writer.write(batches.of(np.array([row])))
        assert loaded.codec.decode(*written.answer(0)) == text
        assert bool(written.ended[0]) == ended


def test_reports_of_answers_are_compared_and_put_into_groups(store: Store) -> None:
    data = [encoded(store, scheme) for scheme in ("digits", "p1000")]
    reports = [evaluated(store, trained(store, one), one).ref for one in data]
    found = compare.run(compare.Config(tuple(reports)), store)
    assert found.measures == "answers"
    assert "answer-exact-match" in found.metrics
    by = compare.run(compare.Config(tuple(reports), by="digits"), store)
    assert [part.value for part in by.parts] == ["1", "2", "3", "4", "5"]


def test_what_cannot_write_answers_is_one_line(store: Store, tmp_path: Path, says: Says) -> None:
    data = encoded(store, "digits")
    masked = trained(store, data, "mlm")
    with pytest.raises(UsageError) as caught:
        evaluated(store, masked, data)
    says(caught, "--fill answers", f"{masked.ref} is masked", "parallel or left-to-right")
    model = trained(store, data)
    for option, value in (("point", "mean"), ("draws", 4)):
        with pytest.raises(UsageError) as caught:
            evaluated(store, model, data, **{option: value})
        says(caught, f"--{option} ", "--fill answers", "Remove it")
    path = tmp_path / "bare.jsonl"
    path.write_text('{"id": 1, "text": "1 + 1 = 2", "split": "test"}\n')
    config = encode.Config((str(path),), like=data.ref)
    bare = encode.run(config, store, quiet).artifact
    assert bare is not None
    with pytest.raises(DataError) as refused:
        evaluated(store, model, bare)
    says(refused, f"split 'test' of {bare.ref}", "answer_start")


def test_a_report_of_numbers_has_a_rule_of_its_own(store: Store, says: Says) -> None:
    data = encoded(store, "digits")
    model = trained(store, data)
    report = eval.run(eval.Config(model.ref, data.ref), store, quiet).artifact
    with pytest.raises(UsageError) as caught:
        nupa.run(nupa.Config(report.ref, rule="strict"), store)
    says(caught, "--rule strict ", "a report of numbers", "`numtok eval --fill answers`")
