"""Schemes, embedders and heads of all digits: encoded, learnt, evaluated."""

from pathlib import Path
from typing import Any

import pytest

from numtok.errors import UsageError
from numtok.evaluation.report_files import read
from numtok.settings import encode as encode_settings
from numtok.settings import eval as eval_settings
from numtok.settings import train as train_settings
from numtok.stages import encode, train
from numtok.stages import eval as evaluation
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_json import TextModelFile, read_model_file
from tests.chain import there
from tests.stages.test_eval import quiet

TINY = "nano,layers=1,heads=2,width=32"


def encoded(root: Path, scheme: str, **options: Any) -> Artifact:
    file = root / "sums.jsonl"
    rows = [f"{k}.5 + 1234567890.12345 = {k}" for k in range(40)]
    file.write_text(
        "".join(
            f'{{"text": "{row}", "answer_start": {row.index("=") + 2}, "split": "{split}"}}\n'
            for split in ("train", "test")
            for row in rows
        )
    )
    config = encode_settings.Config((str(file),), scheme=scheme, **options)
    return there(encode.run(config, Store(root / "artifacts"), quiet).artifact)


def trained(root: Path, data: Artifact, **options: Any) -> Artifact:
    config = train_settings.Config(data.ref, preset=TINY, objective="ar:answer", steps=2, **options)
    return train.run(config, Store(root / "artifacts"), quiet).artifact


@pytest.mark.parametrize("part", ["embedder", "head"])
def test_what_is_of_all_digits_refuses_data_that_are_scaled(tmp_path: Path, part: str) -> None:
    data = encoded(tmp_path, "xval")
    with pytest.raises(UsageError, match="encode --scheme xval --normalize none") as caught:
        trained(tmp_path, data, **{part: "fone"})
    assert f"--{part} fone" in str(caught.value) and data.ref in str(caught.value)


def test_a_scheme_of_fifteen_digits_is_encoded_learnt_and_evaluated(tmp_path: Path) -> None:
    data = encoded(tmp_path, "fone")
    assert data.manifest.counts.get("inexact", 0) == 0
    model = trained(tmp_path, data)
    config = eval_settings.Config(model.ref, data.ref, rows=8)
    report = read(evaluation.run(config, Store(tmp_path / "artifacts"), quiet).artifact).report
    assert report.baselines["quantisation"]["mse"].value == 0
    assert report.metrics["nll"].value is not None


def test_fone_is_learnt_slowly_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    data, usual = encoded(tmp_path, "fone"), {"learning_rate": 2e-3, "warmup": 0.05}
    for options, wanted in (
        ({}, {"learning_rate": 2e-4, "warmup": 0.2}),
        (usual, usual),
        ({"embedder": "lookup"}, usual),
    ):
        file = read_model_file(trained(tmp_path, data, **options))
        assert isinstance(file, TextModelFile)
        assert file.trained.configuration.items() >= wanted.items()


def test_a_number_that_the_scheme_rounds_is_counted(tmp_path: Path) -> None:
    data = encoded(tmp_path, "fone,decimals=2")
    assert data.manifest.counts["inexact"] == 80
    file = read_model_file(trained(tmp_path, data))
    assert isinstance(file, TextModelFile)  # its parts have the places of the scheme
    assert {file.trained.configuration[part] for part in ("embedder", "head")} == {
        "fone,decimals=2"
    }
    assert encoded(tmp_path, "xval", normalize="none").manifest.counts["inexact"] == 80
