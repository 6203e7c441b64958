"""Exact schemes, embedders and heads: encoding, training and evaluation."""

from pathlib import Path
from typing import Any

import pytest

from numtok.errors import UsageError
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_json import TextModelFile, read_model_file
from tests import chain

TINY = "nano,layers=1,heads=2,width=32"


def encoded(root: Path, scheme: str, **options: Any) -> Artifact:
    texts = [f"{k}.5 + 1234567890.12345 = {k}" for k in range(40)]
    rows = [
        {"text": text, "answer_start": text.index("=") + 2, "split": split}
        for split in ("train", "test")
        for text in texts
    ]
    path = chain.jsonl(root / "sums.jsonl", rows)
    return chain.encoded(Store(root / "artifacts"), path, scheme=scheme, **options)


def trained(root: Path, data: Artifact, **options: Any) -> Artifact:
    how = {"preset": TINY, "objective": "ar:answer", "steps": 2}
    return chain.trained(Store(root / "artifacts"), data.ref, **how | options)


def configuration(model: Artifact) -> dict[str, Any]:
    file = read_model_file(model)
    assert isinstance(file, TextModelFile)
    return dict(file.trained.configuration)


@pytest.mark.parametrize("part", ["embedder", "head"])
def test_what_is_of_all_digits_refuses_data_that_are_scaled(tmp_path: Path, part: str) -> None:
    data = encoded(tmp_path, "xval")
    with pytest.raises(UsageError, match="encode --scheme xval --normalize none") as caught:
        trained(tmp_path, data, **{part: "fone"})
    assert f"--{part} fone" in str(caught.value) and data.ref in str(caught.value)


def test_a_scheme_of_fifteen_digits_is_encoded_learnt_and_evaluated(tmp_path: Path) -> None:
    data = encoded(tmp_path, "fone")
    assert data.manifest.counts.get("inexact", 0) == 0
    model, store = trained(tmp_path, data), Store(tmp_path / "artifacts")
    report = chain.report_of(chain.evaluated(store, model.ref, data.ref, rows=8))
    assert report.baselines["quantization"]["mse"].value == 0
    assert report.metrics["nll"].value is not None


def test_fone_is_learnt_slowly_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    data, usual = encoded(tmp_path, "fone"), {"learning_rate": 2e-3, "warmup": 0.05}
    for options, wanted in (
        ({}, {"learning_rate": 2e-4, "warmup": 0.2}),
        (usual, usual),
        ({"embedder": "lookup"}, usual),
    ):
        assert configuration(trained(tmp_path, data, **options)).items() >= wanted.items()


def test_a_number_that_the_scheme_rounds_is_counted(tmp_path: Path) -> None:
    data = encoded(tmp_path, "fone,decimals=2")
    assert data.manifest.counts["inexact"] == 80
    told = configuration(trained(tmp_path, data))
    assert told["embedder"] == told["head"] == "fone,decimals=2"  # the decimals of the scheme
    assert encoded(tmp_path, "xval", normalize="none").manifest.counts["inexact"] == 80
