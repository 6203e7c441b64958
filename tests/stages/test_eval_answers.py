"""``numtok eval --fill answers``: generated answers, scored as a whole."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from numtok.encoding.grammar import Grammar
from numtok.encoding.splits import learnt_values, read_split
from numtok.errors import DataError, NumtokError, UsageError
from numtok.models.batches import Batches
from numtok.models.generation import Writer
from numtok.stages import compare, nupa
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import read_model
from tests import chain, fakemodels
from tests.cases import case
from tests.chain import encoded, generated, jsonl, predictions_of, report_of, there
from tests.messages import Says
from tests.stages.test_eval import TINY

one_thread = fakemodels.one_thread
CPU = torch.device("cpu")
TASKS = "add_Integer+add_Fraction+to_scient_Integer"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Yield a store with some tasks of NUPA."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        made = Store(tmp_path_factory.mktemp("answers") / "artifacts")
        spec = f"nupa,tasks={TASKS},digits=1..5,train=12,validation=0,test=3,prompt=short"
        generated(made, spec, name="sums")
        yield made


def trained(store: Store, data: Artifact, objective: str = "ar", **more: Any) -> Artifact:
    given: dict[str, Any] = {"preset": TINY, "steps": 3, "batch": 16}
    return chain.trained(store, data.ref, objective=objective, **given | more)


def evaluated(store: Store, model: Artifact, data: Artifact, **more: Any) -> Artifact:
    return chain.evaluated(store, model.ref, data.ref, fill="answers", **more)


@pytest.mark.parametrize("scheme", ["digits", "p1000", "xval", "bpe"])
def test_a_report_says_what_the_model_wrote(store: Store, scheme: str) -> None:
    data = encoded(store, "data/sums", scheme=scheme)
    report = evaluated(store, trained(store, data, steps=150 if scheme == "digits" else 10), data)
    lines = (store.resolve("data/sums").path / "test-00000.jsonl").read_text().splitlines()
    golds = {row["id"]: row["gold"] for row in map(json.loads, lines)}
    assert {row["id"]: row["answer"] for row in predictions_of(report)} == golds
    told = report_of(report)
    assert (told.measures, told.numbers) == ("answers", len(golds))
    exact = there(told.baselines["quantization"]["answer-exact-match"].value)
    # Some answers have more digits than the other schemes keep.
    assert exact == 1 if scheme in ("digits", "bpe") else 0 < exact < 1
    said = nupa.run(nupa.Config((report.ref,), benchmark="nupa"), store)
    assert (said.n, said.rule) == (len(golds), "published")


@pytest.mark.parametrize("scheme", ["xval", "numgpt"])
def test_values_in_float32_can_say_every_short_answer(store: Store, scheme: str) -> None:
    spec = "nupa,tasks=add_Integer+add_Float,digits=1..3,train=20,validation=0,test=9,prompt=short"
    data = encoded(store, generated(store, spec, name="short").ref, scheme=scheme)
    told = report_of(evaluated(store, trained(store, data), data))
    assert told.baselines["quantization"]["answer-exact-match"].value == 1


@pytest.mark.parametrize("scheme", ["digits", "p1000", "xval"])
def test_integers_in_answers_stay_integers_if_they_are_no_targets(
    store: Store, tmp_path: Path, scheme: str
) -> None:
    """Otherwise, schemes that do not encode the notation would add digits to answers."""
    rows = [
        {"id": str(k), "text": f"{k} + 7 = {k + 7} or {k / 2}", "answer_start": len(f"{k} + 7 = ")}
        for k in range(1, 40, 2)
    ]
    jsonl(tmp_path / "rows.jsonl", rows)
    data = encoded(store, tmp_path / "rows.jsonl", scheme=scheme, split="test=0.3")
    found = predictions_of(evaluated(store, trained(store, data), data))
    assert found
    for row in found:
        k = int(row["id"])
        assert row["answer"] == f"{k + 7} or {k / 2}"


def test_texts_are_those_of_the_tokens_written(store: Store) -> None:
    data = encoded(store, "data/sums", scheme="digits")
    artifact = trained(store, data, steps=150)
    report = evaluated(store, artifact, data)
    loaded, samples = read_model(artifact, CPU), read_split(data, "test")
    batches = Batches(samples, learnt_values(samples, loaded.codec), 1)
    grammar, longest = Grammar(loaded.codec.scheme), there(report_of(report).texts).longest
    how: dict[str, Any] = {"grammar": grammar, "constrained": True, "longest": longest}
    writer = Writer(model=loaded.model, codec=loaded.codec, **how)
    for index, row in enumerate(predictions_of(report)):
        written, _ = writer.write(batches.of(np.array([index])))
        assert loaded.codec.decode(*written.answer(0)) == row["prediction"]
        assert bool(written.ended[0]) == row["ended"]


def test_reports_of_answers_are_compared_and_put_into_groups(store: Store) -> None:
    data = [encoded(store, "data/sums", scheme=scheme) for scheme in ("digits", "p1000")]
    reports = [evaluated(store, trained(store, one), one).ref for one in data]
    found = compare.run(compare.Config(tuple(reports)), store)
    assert found.measures == "answers"
    assert "answer-exact-match" in found.metrics
    by = compare.run(compare.Config(tuple(reports), by="digits"), store)
    assert [part.value for part in by.parts] == ["1", "2", "3", "4", "5"]


def test_what_cannot_write_answers_is_one_line(store: Store, tmp_path: Path, says: Says) -> None:
    data = encoded(store, "data/sums", scheme="digits")
    masked, model = trained(store, data, "mlm"), trained(store, data)
    rows = [{"id": 1, "text": "1 + 1 = 2", "split": "test"}]
    bare = encoded(store, jsonl(tmp_path / "bare.jsonl", rows), like=data.ref)
    cases: list[tuple[Artifact, Artifact, dict[str, Any], type[NumtokError], tuple[str, ...]]] = [
        (masked, data, {}, UsageError,
         ("--fill answers", f"{masked.ref} is masked", "parallel or left-to-right")),
        (model, data, {"point": "mean"}, UsageError, ("--point ", "--fill answers", "Remove it")),
        (model, data, {"draws": 4}, UsageError, ("--num-samples ", "--fill answers", "Remove it")),
        (model, bare, {}, DataError, (f"no row in split 'test' of {bare.ref} has answer_start",)),
    ]  # fmt: skip
    for of, rows_of, options, kind, told in cases:
        with case(told), says.raises(kind, *told):
            evaluated(store, of, rows_of, **options)
    # Reports of numbers have their own scoring rule.
    report = chain.evaluated(store, model.ref, data.ref)
    told = "--rule strict ", f"{report.ref} is one of numbers", "`numtok eval --fill answers`"
    with says.raises(UsageError, *told):
        nupa.run(nupa.Config((report.ref,), benchmark="nupa", rules=("strict",)), store)
