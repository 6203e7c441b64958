"""pca: whether the embeddings of number tokens follow the order of their values."""

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from numtok.analysis.probing.probe_records import TokenComponents
from numtok.analysis.probing.probes.base import ProbeInputs, ProbeKind, ProbeResult
from numtok.arrays import Floats
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import check_split, read_split
from numtok.errors import UsageError
from numtok.registry import spec_of
from numtok.seeds import generator
from numtok.store.artifact import Artifact
from numtok.training.model_files import LoadedModel

COMPONENTS = 3
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_PAIRS = 200_000  # most pairs of tokens whose distances are computed


@dataclass(frozen=True)
class TokenPCA(ProbeKind):
    """First principal components of the embeddings of number tokens, which show whether embeddings
    follow the values of the tokens.

    Only tokens whose names are numbers are used: mantissas, digits, and complete numbers that are
    one token, but neither signs nor exponents (xVal, Section B.5). If data is given, only tokens
    that occur in its train split are used, because all others keep their initial vectors.

    Raises UsageError if there are fewer than three such tokens.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section B.5"

    def check(self, model: Artifact, data: Artifact | None) -> None:
        if data is not None:
            check_split(data, TRAIN)

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        train = None if inputs.data is None else read_split(inputs.data, TRAIN)
        return tokens(inputs.loaded, train)


def tokens(loaded: LoadedModel, train: EncodedSplit | None) -> ProbeResult:
    """Run the probe on all number tokens or, with ``train``, on those that occur in the train
    split."""
    codec = loaded.codec
    names = codec.scheme.vocabulary()
    values = {index: float(name) for index, name in enumerate(names) if _NUMBER.fullmatch(name)}
    every = len(values)
    if train is not None:
        present = np.unique(train.tokens).astype(np.int64) - codec.number_first
        values = {index: values[index] for index in present.tolist() if index in values}
    if len(values) < COMPONENTS:
        raise UsageError(
            f"probe pca needs at least {COMPONENTS} tokens that are numbers, but scheme "
            f"{spec_of(codec.scheme)!r} of {loaded.artifact.ref} has {len(values)}. Use probe "
            "embedding, which follows the value of a number"
        )
    order = sorted(values, key=lambda index: (values[index], index))
    table = loaded.model.embedder.get_parameter("table.weight").detach().double().cpu().numpy()
    summary, coordinates = components(
        table[codec.number_first :][order], np.array([values[index] for index in order])
    )
    columns: dict[str, object] = {
        "token": [names[index] for index in order],
        "value": [values[index] for index in order],
    }
    columns |= {f"pc{k + 1}": coordinates[:, k] for k in range(coordinates.shape[1])}
    left_out = f"{every - len(values):,} number tokens are not in the train split and left out."
    return ProbeResult(summary, pa.table(columns), [left_out] if every > len(values) else [])


def components(vectors: Floats, values: Floats) -> tuple[TokenComponents, Floats]:
    """Return a summary of the principal components of ``vectors``, and the coordinates of each
    vector, float64[n, k].

    Vectors float64[n, d] are in ascending order of their values float64[n]. Each component points
    towards larger values.

    >>> summary, coordinates = components(np.outer(np.arange(4.0), [3.0, 4.0]), np.arange(4.0))
    >>> coordinates[:, 0].round(6).tolist(), summary.by_value[0], round(summary.neighbours, 3)
    ([-7.5, -2.5, 2.5, 7.5], 1.0, 0.6)
    """
    centred = vectors - vectors.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    coordinates = centred @ directions[:COMPONENTS].T
    by_value = [spearman(column, values) for column in coordinates.T]
    for k, correlation in enumerate(by_value):
        if correlation is not None and correlation < 0:
            coordinates[:, k] *= -1
            by_value[k] = -correlation
    total = float(np.square(sizes).sum())
    neighbours = np.linalg.norm(np.diff(vectors, axis=0), axis=1).mean()
    typical = _mean_distance(vectors)
    return (
        TokenComponents(
            tokens=len(values),
            explained=[float(size**2) / total if total else 0.0 for size in sizes[:COMPONENTS]],
            by_value=by_value,
            by_size=[spearman(column, np.abs(values)) for column in coordinates.T],
            neighbours=float(neighbours) / typical if typical else None,
        ),
        coordinates,
    )


def spearman(x: Floats, y: Floats) -> float | None:
    """Return the rank correlation of x[n] and y[n] (Spearman 1904); None if x or y is constant.

    Equal values share the mean of their ranks.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 5.0]))
    0.5
    """
    a, b = _ranks(x), _ranks(y)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt(np.square(a).sum() * np.square(b).sum()))
    return float((a * b).sum()) / size if size else None


def _ranks(values: Floats) -> Floats:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[which], np.float64)


def _mean_distance(vectors: Floats) -> float:
    """Return the mean distance of all pairs or, if there are too many, of random pairs."""
    n = len(vectors)
    if n * (n - 1) // 2 <= _PAIRS:
        first, second = np.triu_indices(n, 1)
    else:
        random = generator(0, "pairs")
        first = random.integers(0, n, _PAIRS)
        second = (first + random.integers(1, n, _PAIRS)) % n
    total = 0.0
    for begin in range(0, len(first), 1 << 12):  # 4096 differences at a time
        part = slice(begin, begin + (1 << 12))
        total += float(np.linalg.norm(vectors[first[part]] - vectors[second[part]], axis=1).sum())
    return total / len(first)
