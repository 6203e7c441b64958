"""pca: whether the embeddings of number tokens lie in the order of their values."""

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
_PAIRS = 200_000  # of tokens, at most, whose distances are looked at


@dataclass(frozen=True)
class TokenPCA(ProbeKind):
    """The first principal components of the number tokens: whether they follow the values.

    Tokens are those whose names are numbers: mantissas and digits, and whole numbers where these
    are one token; neither signs nor exponents (xVal, Section B.5). With data, only those that their
    train split has: others keep the vectors that they began with.

    Raises UsageError where there are fewer than three.
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
    """Of all number tokens, or of those that some rows have."""
    codec = loaded.codec
    names = codec.scheme.vocabulary()
    values = {index: float(name) for index, name in enumerate(names) if _NUMBER.fullmatch(name)}
    every = len(values)
    if train is not None:
        there = np.unique(train.tokens).astype(np.int64) - codec.number_first
        values = {index: values[index] for index in there.tolist() if index in values}
    if len(values) < COMPONENTS:
        raise UsageError(
            "probe pca needs tokens that stand for numbers, and scheme "
            f"{spec_of(codec.scheme)!r} of {loaded.artifact.ref} has {len(values)}; use probe "
            "embedding, which follows the value beside its token"
        )
    order = sorted(values, key=lambda index: (values[index], index))
    table = loaded.model.embedder.get_parameter("table.weight").detach().double().cpu().numpy()
    found, places = components(
        table[codec.number_first :][order], np.array([values[index] for index in order])
    )
    columns: dict[str, object] = {
        "token": [names[index] for index in order],
        "value": [values[index] for index in order],
    }
    columns |= {f"pc{k + 1}": places[:, k] for k in range(places.shape[1])}
    left_out = f"{every - len(values):,} number tokens are not in the train split and left out."
    return ProbeResult(found, pa.table(columns), [left_out] if every > len(values) else [])


def components(vectors: Floats, values: Floats) -> tuple[TokenComponents, Floats]:
    """Of vectors float64[n, d] in the order of their values float64[n], and float64[n, k] where
    each lies on the first components, each of which points to where values are larger.

    >>> found, places = components(np.outer(np.arange(4.0), [3.0, 4.0]), np.arange(4.0))
    >>> places[:, 0].round(6).tolist(), found.by_value[0], round(found.neighbours, 3)
    ([-7.5, -2.5, 2.5, 7.5], 1.0, 0.6)
    """
    centred = vectors - vectors.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    places = centred @ directions[:COMPONENTS].T
    by_value = [spearman(column, values) for column in places.T]
    for k, one in enumerate(by_value):
        if one is not None and one < 0:
            places[:, k] *= -1
            by_value[k] = -one
    total = float(np.square(sizes).sum())
    neighbours = np.linalg.norm(np.diff(vectors, axis=0), axis=1).mean()
    usual = _mean_distance(vectors)
    return (
        TokenComponents(
            tokens=len(values),
            explained=[float(size**2) / total if total else 0.0 for size in sizes[:COMPONENTS]],
            by_value=by_value,
            by_size=[spearman(column, np.abs(values)) for column in places.T],
            neighbours=float(neighbours) / usual if usual else None,
        ),
        places,
    )


def spearman(x: Floats, y: Floats) -> float | None:
    """The correlation of the ranks of x[n] and y[n] (Spearman 1904), ties at their mean rank; None
    of a constant.

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
    """Of all pairs, or of many random ones."""
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
