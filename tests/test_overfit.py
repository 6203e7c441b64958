"""Every scheme learns a hundred samples by heart: whatever is between data and report works.

A number lost, shifted or normalised wrongly on the way from text to loss, or from hidden state
to prediction, cannot be learnt; the error would stay above the scheme's own rounding.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from numtok.artifact import Artifact
from numtok.reports import PREDICTIONS_FILE
from numtok.schemes.base import SCHEMES, Failure
from numtok.stages import encode, eval, gen, train
from numtok.stages._data import read_codec, read_split
from numtok.store import Store

pytestmark = pytest.mark.slow

SAMPLES = 100
PRESET = "nano,layers=2,heads=2,width=64"
#: The largest error that is allowed in a value channel: a thousandth of its range, [-5, 5].
TOLERANCE = 1e-3 * 10


#: Eight bits do not tell the operands of 100 samples apart.
SPECS = [{"hamming": "hamming,length=14"}.get(name, name) for name in SCHEMES]


def steps_of(spec: str) -> dict[str, int]:
    """Steps of 100 rows that are enough for each objective, by measurement.

    A value is learnt by its squared error, which is small long before the error is: more steps,
    and only where nothing is learnt but the answer. Beside the losses of operands, which nobody
    can know, so small a one is lost.
    """
    scheme = SCHEMES.build(spec)
    if scheme.channel:
        return {"mlm:targets": 3000, "ar:answer": 3000}
    tokens = scheme.tokens_per_number or 3
    answers = 300 if tokens <= 8 else 1200  # bits that have nothing to do with their neighbours
    masked = 400 * min(tokens, 3) if tokens < 8 else 250 * tokens
    return {"mlm:targets": answers, "ar:answer": answers, "ar": answers, "mlm": masked}


CASES = [
    (scheme, objective, steps, None)
    for scheme in SPECS
    for objective, steps in steps_of(scheme).items()
] + [("xval", objective, steps, "fourier") for objective, steps in steps_of("xval").items()]
#: How numbers of one system go in with how those of another come out, and each in its own way.
ACROSS = [
    ("numgpt", "numgpt", "numgpt"),
    ("numgpt", "numgpt", "mdn:5"),
    ("numgpt", "numgpt", "riemann:4096"),
    ("numgpt", "numgpt", "scalar"),
    ("numgpt", "scaled", "numgpt"),
    ("numgpt", "fourier", "numgpt"),
    ("dice", "dice", "numgpt"),
    ("xval", "numgpt", "scalar"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("overfit") / "artifacts")


@pytest.mark.parametrize(("scheme", "objective", "steps", "embedder"), CASES)
def test_a_hundred_samples_are_learnt_by_heart(
    store: Store,
    scheme: str,
    objective: str,
    steps: int,
    embedder: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    encoded = arithmetic(store, scheme)
    config = train.Config(
        encoded.ref,
        preset=PRESET,
        embedder=embedder,
        objective=objective,
        steps=steps,
        batch=SAMPLES,
        learning_rate=3e-3,
    )
    model = train.run(config, store, lambda *_: None).artifact
    asked = eval.Config(model.ref, encoded.ref, split="train")
    report = eval.run(asked, store, lambda *_: None).artifact

    found = pq.read_table(report.path / PREDICTIONS_FILE)
    assert found.num_rows == SAMPLES and all(found["valid"].to_pylist())
    predicted = np.array(found["prediction"].to_pylist())
    if SCHEMES.build(scheme).channel:
        factor = read_codec(encoded).normalizer.constants["factor"]
        truth = np.array(found["truth"].to_pylist())
        assert np.abs(predicted - truth).max() * factor <= TOLERANCE
    else:
        wrong = np.flatnonzero(predicted != rounded(encoded))
        assert len(wrong) == 0, found.take(wrong).to_pylist()


@pytest.mark.parametrize("objective", ["classify", "classify,causal=yes"])
@pytest.mark.parametrize(
    ("scheme", "embedder"), [*((spec, None) for spec in SPECS), ("xval", "fourier")]
)
def test_labels_of_a_hundred_samples_are_learnt_by_heart(
    store: Store,
    tmp_path: Path,
    scheme: str,
    embedder: str | None,
    objective: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    # By chance, so that nothing but a row's own number tells its label. A value that goes in along
    # one direction does not tell a hundred neighbours apart so soon: there twenty share a label.
    labels = np.random.default_rng(0).integers(0, 3, SAMPLES).tolist()
    if SCHEMES.build(scheme).channel and embedder is None:
        labels = np.repeat([1, 2, 0, 2, 1], SAMPLES // 5).tolist()
    rows = [{"text": f"is {row / 128} of it", "label": label} for row, label in enumerate(labels)]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    encoded = encode.run(encode.Config((str(path),), scheme), store, lambda *_: None).artifact
    assert encoded is not None
    config = train.Config(
        encoded.ref,
        preset=PRESET,
        embedder=embedder,
        objective=objective,
        steps=400,
        batch=SAMPLES,
        learning_rate=3e-3,
    )
    model = train.run(config, store, lambda *_: None).artifact
    asked = eval.Config(model.ref, encoded.ref, split="train")
    report = eval.run(asked, store, lambda *_: None).artifact
    found = pq.read_table(report.path / PREDICTIONS_FILE)
    assert found["prediction"].to_pylist() == list(map(str, labels))


def arithmetic(store: Store, scheme: str) -> Artifact:
    """Sums, differences and products of two operands, all of them to learn from."""
    task = gen.Config("arithmetic,operands=2", SAMPLES, split="train=1")
    data = gen.run(task, store, lambda *_: None).artifact
    assert data is not None
    encoded = encode.run(encode.Config((data.ref,), scheme), store, lambda *_: None).artifact
    assert encoded is not None
    return encoded


def rounded(encoded: Artifact) -> NDArray[np.float64]:
    """float64[samples]: the answers as the scheme writes them, the last number of each row."""
    codec, samples = read_codec(encoded), read_split(encoded, "train")
    last = samples.number_rows[1:] - 1
    assert samples.targets.tolist() == last.tolist()
    found = []
    for row, number in enumerate(last.tolist()):
        start = int(samples.token_rows[row]) + int(samples.number_start[number])
        tokens = samples.tokens[start : start + int(samples.number_length[number])]
        local = tokens.astype(np.uint32) - np.uint32(codec.number_first)
        decoded = codec.decode_numbers(local, samples.number_length[[number]], None)
        assert decoded.failures[0] == Failure.NONE
        found.append(decoded.values[0])
    return np.array(found)
