"""Every scheme learns a hundred samples by heart, so each stage from data to report works.

If a number were lost, shifted or normalized wrongly between text and loss, or between hidden state
and prediction, it could not be learned: the error would stay above the scheme's own rounding.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.encoding.schemes.base import SCHEMES, ChannelScheme, Failure, is_exact, splits_numbers
from numtok.encoding.splits import read_split
from numtok.encoding.stored_codec import read_codec
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.chain import encoded, evaluated, generated, jsonl, predictions_of, trained

pytestmark = pytest.mark.slow

SAMPLES = 100
PRESET = "nano,layers=2,heads=2,width=64"
BIGRU = "bigru,width=64"
#: Largest errors: in a value channel, a thousandth of its range, [-5, 5]; in a mantissa, a
#: thousandth of [-10, 10]. A mixture may sharpen before its mean has converged, so a tenth of its
#: errors may be larger.
TOLERANCE = 1e-3 * 10
OF_MANTISSAS = 1e-3 * 20
OF_MIXTURES = 0.5


def steps_of(spec: str) -> dict[str, int]:
    """Return the measured number of steps, with all 100 rows each, that suffice per objective.

    Values need more steps: their loss is the squared error, which is small long before the error
    is. They are trained only on answers, because operands are unpredictable, and next to their
    losses such a small loss has no effect.
    """
    scheme = SCHEMES.build(spec)
    if splits_numbers(scheme):
        return {"mlm:targets": 1500, "ar:answer": 1500}
    if isinstance(scheme, ChannelScheme):
        return {"mlm:targets": 3000, "ar:answer": 3000}
    tokens = scheme.tokens_per_number or 3
    answers = 300 if tokens < 8 else 1200  # bits, which are unrelated to their neighbors
    masked = 400 * min(tokens, 3) if tokens < 8 else 250 * tokens
    steps = {"mlm:targets": answers, "ar:answer": answers, "ar": answers, "mlm": masked}
    if spec == "numvalue":  # a masked prefix has no value, and `ar` does not train it to generate
        return {"mlm:targets": answers, "numvalue:answer": answers, "numvalue": answers}
    return steps


#: DICE distinguishes numbers on the scale of its range. Without a linear layer, bits would need a
#: wider model.
DICE, BITS = "dice,range=0..100", "bits:linear"
_BY_DEFAULT = [
    (scheme, objective, steps, {"dice": DICE, "bits": BITS}.get(scheme), None)
    for scheme in SCHEMES
    for objective, steps in steps_of(scheme).items()
]
CASES = [
    *_BY_DEFAULT,
    *(("xval", objective, steps, "fourier", None) for objective, steps in steps_of("xval").items()),
    # The embedder of one scheme with the head of another.
    ("numgpt", "mlm:targets", 3000, "numgpt", "mdn:5"),
    ("numgpt", "mlm:targets", 1500, "numgpt", "riemann:1024"),
    ("numgpt", "mlm:targets", 1500, "numgpt", "scalar"),
    ("numgpt", "mlm:targets", 3000, "scaled", "numgpt"),
    ("numgpt", "mlm:targets", 1500, "fourier", "numgpt"),
    ("numgpt", "mlm:targets", 1500, DICE, "numgpt"),
    ("xval", "mlm:targets", 3000, "numgpt", "scalar"),
    # In the channel, operands are at most 0.12 and answers at most 5.
    ("xval", "mlm:targets", 3000, "dice,range=0..0.2", "scalar"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("overfit") / "artifacts")


@pytest.mark.parametrize(("scheme", "objective", "steps", "embedder", "head"), CASES)
def test_a_hundred_samples_are_learnt_by_heart(
    store: Store,
    scheme: str,
    objective: str,
    steps: int,
    embedder: str | None,
    head: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    data = arithmetic(store, scheme)
    parts = {"embedder": embedder, "head": head, "preset": PRESET}
    found = by_heart(store, data, objective=objective, steps=steps, **parts)
    assert len(found) == SAMPLES and all(row["valid"] for row in found)
    predicted, truth = (np.array([row[name] for row in found]) for name in ("prediction", "truth"))
    if splits_numbers(SCHEMES.build(scheme)):
        errors = np.abs(predicted - truth) / 10 ** np.floor(np.log10(np.abs(truth)))
        assert np.quantile(errors, 0.9) <= OF_MANTISSAS
        assert errors.max() <= (OF_MIXTURES if head == "mdn:5" else OF_MANTISSAS)
    elif is_exact(SCHEMES.build(scheme)):
        assert predicted.tolist() == truth.tolist()
    elif isinstance(SCHEMES.build(scheme), ChannelScheme):
        factor = read_codec(data).normalizer.constants["factor"]
        assert np.abs(predicted - truth).max() * factor <= TOLERANCE
    else:
        wrong = np.flatnonzero(predicted != rounded(data))
        assert len(wrong) == 0, [found[row] for row in wrong]


def by_heart(store: Store, data: Artifact, **options: Any) -> list[dict[str, Any]]:
    """Train a model, and return its predictions for the training rows."""
    model = trained(store, data.ref, batch=SAMPLES, learning_rate=3e-3, **options)
    return predictions_of(evaluated(store, model.ref, data.ref, split="train"))


@pytest.mark.parametrize("scheme", ["p10,digits=1", "hamming", "nd,length=2", "p1000"])
def test_no_two_samples_share_their_operands(store: Store, scheme: str) -> None:
    data = arithmetic(store, scheme)
    assert len(told_apart(data)) == len(read_split(data, "train")) == SAMPLES


@pytest.mark.parametrize(
    ("objective", "preset"),
    [("classify", PRESET), ("classify,causal=yes", PRESET), ("classify", BIGRU)],
)
@pytest.mark.parametrize(
    ("scheme", "embedder"),
    [
        *((spec, {"dice": "dice,range=0..1", "bits": BITS}.get(spec)) for spec in SCHEMES),
        *(("xval", "fourier"), ("xval", "numgpt")),
    ],
)
def test_labels_of_a_hundred_samples_are_learnt_by_heart(
    store: Store,
    tmp_path: Path,
    scheme: str,
    embedder: str | None,
    objective: str,
    preset: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    # Random labels, so that only a row's own number determines its label. Embeddings along one
    # direction or by smooth functions do not separate a hundred neighbors in so few steps, so
    # twenty neighbors share a label.
    labels = np.random.default_rng(0).integers(0, 3, SAMPLES).tolist()
    if issubclass(SCHEMES[scheme], ChannelScheme) and embedder != "fourier":
        labels = np.repeat([1, 2, 0, 2, 1], SAMPLES // 5).tolist()
    rows = [{"text": f"is {row / 128} of it", "label": label} for row, label in enumerate(labels)]
    data = encoded(store, jsonl(tmp_path / "labels.jsonl", rows), scheme=scheme)
    how = {"preset": preset, "embedder": embedder, "objective": objective}
    found = by_heart(store, data, steps=400, **how)
    assert [row["prediction"] for row in found] == list(map(str, labels))


def arithmetic(store: Store, scheme: str) -> Artifact:
    """Make sums, differences and products of two operands, all in the train split.

    Products are left out if they make the steps of the scheme too large for operands.
    """
    for task in ("arithmetic,operands=2", "arithmetic,operands=2,operators=+-"):
        drawn = generated(store, task, 2 * SAMPLES, split="train=1")
        [shard] = drawn.path.glob("train-*.jsonl")
        rows = shard.read_text("utf-8").splitlines(keepends=True)
        every = encoded(store, shard, scheme=scheme)
        chosen = told_apart(every)
        if len(chosen) >= SAMPLES:
            path = store.root.parent / f"{drawn.version}-{scheme}.jsonl"
            path.write_text("".join(rows[row] for row in chosen[:SAMPLES]), "utf-8")
            return encoded(store, path, like=every.ref)
    raise AssertionError(f"{scheme} does not tell {SAMPLES} samples apart")


def told_apart(data: Artifact) -> list[int]:
    """Return the rows whose encoded operands differ from those of all earlier rows. If two rows
    have equal operands and different answers, one of them cannot be learned."""
    samples, seen, found = read_split(data, "train"), set(), []
    for row, answer in enumerate(samples.targets.tolist()):
        start = int(samples.token_rows[row])
        tokens = samples.tokens[start : start + int(samples.number_start[answer])]
        values = None
        if samples.channel is not None:
            values = samples.channel[int(samples.number_rows[row]) : answer].tobytes()
        asked = (tokens.tobytes(), values)
        if asked not in seen:
            found.append(row)
        seen.add(asked)
    return found


def rounded(data: Artifact) -> NDArray[np.float64]:
    """Return the answers as the scheme represents them, float64[samples]. The answer is the last
    number of each row."""
    codec, samples = read_codec(data), read_split(data, "train")
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
