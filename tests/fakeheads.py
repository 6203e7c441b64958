"""Decoder heads with given probabilities, and a list of all numbers of a small codec."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.automaton import automaton
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Scaling
from numtok.encoding.schemes.base import SCHEMES, Scheme
from numtok.models.attention import Shape
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import Empirical
from numtok.models.heads._decoder import DecoderBeginnings, DecoderReader
from numtok.models.heads.base import HEADS, Calibration, ValueHead, ValueReader

Floats = NDArray[np.float64]

PLAIN = FittedNormalizer(NORMALIZERS.build("none"), {})
SIGNED_LOG = FittedNormalizer(NORMALIZERS.build("signed-log"), {})


def value_head(spec: str) -> ValueHead:
    """Build a head that predicts values."""
    head = HEADS.build(spec)
    assert isinstance(head, ValueHead)
    return head


def draws_alone(
    reader: ValueReader, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
) -> Predictive:
    """Replace the ``predictive`` of a reader by nine samples per number, without a density.

    The samples do not depend on the reader's point, which may be their median.
    """
    centers = parameters_NP.float().mean(dim=1, keepdim=True).sigmoid().cpu().double().numpy()
    around = np.clip(centers + np.linspace(-0.04, 0.04, 9), 0, 1)
    return Empirical(scaling.inverse(around))


@dataclass(frozen=True, eq=False)
class Listed:
    """All ``m`` finite numbers of a codec, in the order of their token ids."""

    scheme: Scheme

    @cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """Return the token sequence of each number, as the scheme's grammar allows it."""
        width, names = self.scheme.tokens_per_number, self.scheme.vocabulary()
        assert width is not None
        paths: list[tuple[int, ...]] = [()]
        for _ in range(width):
            paths = [
                (*path, token)
                for path in paths
                for token in np.flatnonzero(self.scheme.next(path).allowed).tolist()
                if token < self.scheme.paper_vocabulary_size or names[token] == "ZERO"
            ]
        return paths

    @cached_property
    def values(self) -> Floats:
        """float64[m]: the decoded value of each number."""
        tokens = np.array(self.paths, np.uint32)
        return self.scheme.decode(tokens.ravel(), np.full(len(tokens), tokens.shape[1])).values

    @cached_property
    def ends(self) -> Floats:
        """float64[m, 2]: the scheme's interval of each number; zero gets the gap between its
        neighbors."""
        ends = np.array([self.scheme.interval(path) for path in self.paths])
        points = ends[:, 0] == ends[:, 1]
        positive = ends[(ends[:, 0] >= 0) & ~points]
        ends[points] = [-positive[:, 0].min(), positive[:, 0].min()] if points.any() else 0.0
        return ends

    def shares(self, low: float, high: float) -> Floats:
        """float64[m]: the fraction of each cell that lies between two normalized values."""
        first, last = self.ends.T
        shares: Floats = np.clip(
            (np.minimum(high, last) - np.maximum(low, first)) / (last - first), 0, 1
        )
        return shares


@cache
def listed(spec: str) -> Listed:
    """Return the numbers of a scheme, listed once for all tests."""
    return Listed(SCHEMES.build(spec))


class Told(DecoderReader):
    """A reader with given log-probabilities per number: float64[n, m], in the listed order.

    Its parameters are [n, 1], the rows of that table.
    """

    def __init__(self, numbers: Listed, log_masses: Floats) -> None:
        scheme = numbers.scheme
        assert scheme.tokens_per_number is not None
        super().__init__(
            2,
            scheme,
            automaton(scheme),
            Shape(layers=1, heads=1, width=2, context=scheme.tokens_per_number),
            True,
        )
        self.paths, self.log_masses = np.array(numbers.paths), log_masses
        self.known: dict[tuple[int, tuple[int, ...]], Floats] = {}

    @property
    def rows(self) -> Tensor:
        return torch.arange(len(self.log_masses), dtype=torch.float32)[:, None]

    def following(self, row: int, prefix: tuple[int, ...]) -> Floats:
        """float64[V]: log-probabilities of the next token; uniform after an impossible prefix."""
        if (row, prefix) not in self.known:
            there = (self.paths[:, : len(prefix)] == np.array(prefix, np.int64)).all(axis=1)
            tokens, logs = self.paths[there, len(prefix)], self.log_masses[row, there]
            if logs.max() == -np.inf:
                logs = np.zeros(len(logs))
            sums = np.full(len(self.table.weight), -np.inf)
            np.logaddexp.at(sums, tokens, logs)
            self.known[row, prefix] = sums - np.logaddexp.reduce(sums)
        return self.known[row, prefix]

    def log_probabilities(
        self, parameters_NP: Tensor, tokens_NK: Tensor, states_NK: Tensor
    ) -> Tensor:
        made = [
            [self.following(int(row), tuple(path[:place])) for place in range(len(path))]
            for row, path in zip(parameters_NP[:, 0].tolist(), tokens_NK.tolist(), strict=True)
        ]
        return torch.from_numpy(np.array(made))

    def begun(self, parameters_NP: Tensor) -> DecoderBeginnings:
        return ToldBeginnings(self, parameters_NP)


class ToldBeginnings(DecoderBeginnings):
    """Prefixes of the numbers that a :class:`Told` reader writes."""

    def __init__(self, reader: Told, parameters_NP: Tensor) -> None:
        self._reader: Told = reader
        self._prefixes = [(int(row), ()) for row in parameters_NP[:, 0].tolist()]
        self._say([(row, ()) for row, _ in self._prefixes])

    def _say(self, prefixes: list[tuple[int, tuple[int, ...]]]) -> None:
        reader = self._reader
        assert isinstance(reader, Told)
        self._prefixes = prefixes  # type: ignore[assignment]
        self.log_p = torch.from_numpy(np.array([reader.following(*one) for one in prefixes]))
        states = []
        for _, prefix in prefixes:
            state = 0
            for token in prefix:
                state = int(reader.automaton.next[state, token])
            states.append(state)
        self.state = torch.tensor(states)

    def extend(self, which: Tensor, tokens: Tensor) -> Tensor:
        pairs = list(zip(which.tolist(), tokens.tolist(), strict=True))
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        before = self._prefixes
        self._say([(before[at][0], (*before[at][1], token)) for at, token in distinct])
        return torch.tensor([distinct[pair] for pair in pairs])
