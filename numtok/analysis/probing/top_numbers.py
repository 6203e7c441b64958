"""Which whole numbers are probable along a line of predictions, and how probable each is at each.

xVal shows the largest logits of P1000 (Figure 6). Here it is whole numbers, for every scheme that
says numbers by tokens: log P(number) is the sum over its tokens, each normalised over what the
grammar allows after those before it. Single positions are not compared, since they mean something
else in each scheme (a mantissa in P1000, a digit in P10, all of the number in FP15).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats, Ints
from numtok.evaluation.devices import Devices, Note
from numtok.evaluation.predict import AUTOREGRESSIVE, Predictor
from numtok.models.steps import DecodingStates

Each = Callable[..., Iterator[Any]]  # what becomes of tasks, in order
_AT_ONCE = 16  # numbers whose probabilities over all of a scheme's numbers are held at a time


class TopNumbers(NamedTuple):
    """The numbers, and what they were looked for among.

    log_p
        float64[n, k], nats: of each of the k numbers where each of the n is asked for.
    """

    literals: list[str]
    values: Floats  # [k], raw; NaN for one that is no finite number
    log_p: Floats
    among: str


def top_numbers(
    predictor: Predictor, numbers: Ints, most: int, devices: Devices, note: Note
) -> TopNumbers:
    """The ``most`` numbers that are most probable anywhere; of ``numbers``, indices in the split,
    each of which the predictor asks for in one query.

    Where all numbers of a scheme can be listed and one pass gives the probabilities of all, it is
    among all of them; else among those that are predicted, and the most frequent of these.
    """
    of = _of_predicted if predictor.support is None else _of_all
    return of(predictor, numbers, most, partial(devices.each, predictor, note=note))


def _of_all(predictor: Predictor, numbers: Ints, most: int, each: Each) -> TopNumbers:
    support = predictor.support
    assert support is not None
    best = np.full(len(support.values), -np.inf)
    for highest in each(tasks=(_Highest(part, numbers) for part in predictor.parts())):
        np.maximum(best, highest, out=best)
    top = np.sort(np.argsort(-best, kind="stable")[:most])  # ascending in value
    # Once more, since to keep all of them takes a gigabyte for every few thousand numbers.
    found = np.empty((len(numbers), len(top)))
    for places, log_p in each(tasks=(_Listed(part, numbers, top) for part in predictor.parts())):
        found[places] = log_p
    return _named(predictor, support.paths[top].tolist(), found, "all numbers of the scheme")


def _of_predicted(predictor: Predictor, numbers: Ints, most: int, each: Each) -> TopNumbers:
    said: Counter[tuple[int, ...]] = Counter()
    for paths in each(tasks=(_Predicted(part, numbers) for part in predictor.parts())):
        said.update(paths)
    del said[()]  # of what is no number
    top = [list(path) for path, _ in said.most_common(most)]
    log_p = np.full((len(numbers), len(top)), -np.inf)
    for places, found in each(tasks=(_Scored(part, numbers, top) for part in predictor.parts())):
        log_p[places] = found
    among = "the numbers predicted most often"
    open_ended = predictor.loaded.codec.scheme.tokens_per_number is None
    if open_ended and predictor.options.fill == AUTOREGRESSIVE:
        among += "; that a number ends after its last digit is not part of its probability"
    return _named(predictor, top, log_p, among)


def _named(predictor: Predictor, paths: list[list[int]], log_p: Floats, among: str) -> TopNumbers:
    flat = np.array([token for path in paths for token in path], np.uint32)
    lengths = np.array([len(path) for path in paths], np.int32)
    decoded = predictor.loaded.codec.decode_numbers(flat, lengths)
    names = predictor.loaded.codec.scheme.vocabulary()
    literals = [
        " ".join(dict.fromkeys(names[token] for token in path))  # an extra is said again and again
        if decoded.failures[index]
        else decoded.literal(index)
        for index, path in enumerate(paths)
    ]
    values = np.where(np.isfinite(decoded.values), decoded.values, np.nan)
    return TopNumbers(literals, values, log_p, among)


@dataclass(frozen=True, eq=False)
class _NumberTask:
    """Some queries of a predictor, and the numbers that are followed, of which they ask for a
    few."""

    queries: Ints
    numbers: Ints

    def passes(self, predictor: Predictor) -> Iterator[tuple[Bools, Ints, DecodingStates]]:
        """Which of the numbers that are read together are followed, their places among those, and
        the steps that read all."""
        order = np.argsort(self.numbers)
        known = self.numbers[order]
        for asked, steps in predictor.passes(self.queries):
            at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
            mine = known[at] == asked
            yield mine, order[at[mine]], steps

    def log_probabilities(self, predictor: Predictor) -> Iterator[tuple[Ints, Floats]]:
        """Places, and float64[some, numbers of the scheme]."""
        assert predictor.support is not None
        for mine, places, steps in self.passes(predictor):
            logits = predictor.reader.read(steps, keep_logits=True).logits
            assert logits is not None
            logits = logits[mine]
            for first in range(0, len(places), _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                yield places[part], predictor.support.log_probabilities(logits[part])


class _Highest(_NumberTask):
    """float64[numbers of the scheme]: the log-probability of each where it is highest."""

    def __call__(self, predictor: Predictor, note: Note) -> Floats:
        assert predictor.support is not None
        best = np.full(len(predictor.support.values), -np.inf)
        for _, log_p in self.log_probabilities(predictor):
            np.maximum(best, log_p.max(axis=0), out=best)
        return best


@dataclass(frozen=True, eq=False)
class _Listed(_NumberTask):
    """Places, and the log-probabilities there of some numbers of the scheme, int64[k]."""

    top: Ints

    def __call__(self, predictor: Predictor, note: Note) -> tuple[Ints, Floats]:
        every, parts = [np.zeros(0, np.int64)], [np.zeros((0, len(self.top)))]
        for places, log_p in self.log_probabilities(predictor):
            every.append(places)
            parts.append(log_p[:, self.top])
        return np.concatenate(every), np.concatenate(parts)


class _Predicted(_NumberTask):
    """The tokens of each number that is predicted; none of what is no number."""

    def __call__(self, predictor: Predictor, note: Note) -> list[tuple[int, ...]]:
        return [
            tuple(token for token in path if token >= 0)
            for mine, _, steps in self.passes(predictor)
            for path in predictor.reader.read(steps).tokens[mine].tolist()
        ]


@dataclass(frozen=True, eq=False)
class _Scored(_NumberTask):
    """Places, and the log-probabilities there of numbers by their tokens."""

    paths: Sequence[Sequence[int]]

    def __call__(self, predictor: Predictor, note: Note) -> tuple[Ints, Floats]:
        every, parts = [np.zeros(0, np.int64)], [np.zeros((0, len(self.paths)))]
        for mine, places, steps in self.passes(predictor):
            log_p = np.empty((len(places), len(self.paths)))
            for column, path in enumerate(self.paths):
                tokens = np.full((len(mine), len(path)), -1)
                tokens[mine] = path
                # Where the number of masks says how many tokens there are, others cannot be.
                fits = True if steps.lengths is None else steps.lengths[mine] == len(path)
                found = predictor.reader.score(steps, tokens)[mine]
                log_p[:, column] = np.where(fits, found, -np.inf)
            every.append(places)
            parts.append(log_p)
        return np.concatenate(every), np.concatenate(parts)
