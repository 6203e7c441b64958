"""Which whole numbers are probable along a line of predictions, and how probable each is at each.

xVal shows the largest logits of P1000 (Figure 6). Here it is whole numbers, for every scheme that
says numbers by tokens: log P(number) is the sum over its tokens, each normalised over what the
grammar allows after those before it. Single positions are not compared, since they mean something
else in each scheme (a mantissa in P1000, a digit in P10, all of the number in FP15).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats, Ints
from numtok.evaluation.devices import Devices, Note
from numtok.evaluation.predict import AUTOREGRESSIVE, Predictor
from numtok.models.steps import DecodingStates

Read = Callable[[Predictor, Ints, Note], Any]
Each = Callable[[Read], Iterator[Any]]  # reads all queries
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

    def each(read: Read) -> Iterator[Any]:
        return devices.each(predictor, read, predictor.parts(), note)

    of = _of_predicted if predictor.support is None else _of_all
    return of(predictor, numbers, most, each)


def _of_all(predictor: Predictor, numbers: Ints, most: int, each: Each) -> TopNumbers:
    support = predictor.support
    assert support is not None
    best = np.full(len(support.values), -np.inf)
    for highest in each(partial(_highest, numbers)):
        np.maximum(best, highest, out=best)
    top = np.sort(np.argsort(-best, kind="stable")[:most])  # ascending in value
    # Once more, since to keep all of them takes a gigabyte for every few thousand numbers.
    found = np.empty((len(numbers), len(top)))
    for places, log_p in each(partial(_listed, numbers, top)):
        found[places] = log_p
    return _named(predictor, support.paths[top].tolist(), found, "all numbers of the scheme")


def _of_predicted(predictor: Predictor, numbers: Ints, most: int, each: Each) -> TopNumbers:
    said: Counter[tuple[int, ...]] = Counter()
    for paths in each(partial(_predicted, numbers)):
        said.update(paths)
    del said[()]  # of what is no number
    top = [list(path) for path, _ in said.most_common(most)]
    log_p = np.full((len(numbers), len(top)), -np.inf)
    for places, found in each(partial(_scored, numbers, top)):
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


def _passes(
    predictor: Predictor, queries: Ints, numbers: Ints
) -> Iterator[tuple[Bools, Ints, DecodingStates]]:
    """Read some queries. Of the numbers that are read together, yield which ones are among
    ``numbers``, their indices there, and the steps that read all of them."""
    order = np.argsort(numbers)
    known = numbers[order]
    for asked, steps in predictor.passes(queries):
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        mine = known[at] == asked
        yield mine, order[at[mine]], steps


def _log_probabilities(
    predictor: Predictor, queries: Ints, numbers: Ints
) -> Iterator[tuple[Ints, Floats]]:
    """Yield indices in ``numbers``, and float64[some, numbers of the scheme]."""
    assert predictor.support is not None
    for mine, places, steps in _passes(predictor, queries, numbers):
        logits = predictor.reader.read(steps, keep_logits=True).logits
        assert logits is not None
        logits = logits[mine]
        for first in range(0, len(places), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            yield places[part], predictor.support.log_probabilities(logits[part])


def _highest(numbers: Ints, predictor: Predictor, queries: Ints, note: Note) -> Floats:
    """float64[numbers of the scheme]: the highest log-probability of each in some queries."""
    assert predictor.support is not None
    best = np.full(len(predictor.support.values), -np.inf)
    for _, log_p in _log_probabilities(predictor, queries, numbers):
        np.maximum(best, log_p.max(axis=0), out=best)
    return best


def _listed(
    numbers: Ints, top: Ints, predictor: Predictor, queries: Ints, note: Note
) -> tuple[Ints, Floats]:
    """Indices in ``numbers``, and the log-probabilities of some numbers of the scheme, int64[k]."""
    found = _log_probabilities(predictor, queries, numbers)
    return _stacked(((places, log_p[:, top]) for places, log_p in found), len(top))


def _predicted(
    numbers: Ints, predictor: Predictor, queries: Ints, note: Note
) -> list[tuple[int, ...]]:
    """The tokens of each predicted number; empty for what is not a number."""
    return [
        tuple(token for token in path if token >= 0)
        for mine, _, steps in _passes(predictor, queries, numbers)
        for path in predictor.reader.read(steps).tokens[mine].tolist()
    ]


def _scored(
    numbers: Ints, paths: Sequence[Sequence[int]], predictor: Predictor, queries: Ints, note: Note
) -> tuple[Ints, Floats]:
    """Indices in ``numbers``, and the log-probabilities of numbers given by their tokens."""

    def scored() -> Iterator[tuple[Ints, Floats]]:
        for mine, places, steps in _passes(predictor, queries, numbers):
            log_p = np.empty((len(places), len(paths)))
            for column, path in enumerate(paths):
                tokens = np.full((len(mine), len(path)), -1)
                tokens[mine] = path
                # The number of masks says how many tokens there are; other lengths cannot be.
                fits = True if steps.lengths is None else steps.lengths[mine] == len(path)
                found = predictor.reader.score(steps, tokens)[mine]
                log_p[:, column] = np.where(fits, found, -np.inf)
            yield places, log_p

    return _stacked(scored(), len(paths))


def _stacked(parts: Iterable[tuple[Ints, Floats]], width: int) -> tuple[Ints, Floats]:
    """Concatenate indices int64[k] and rows float64[k, width]."""
    every = [(np.zeros(0, np.int64), np.zeros((0, width))), *parts]
    places, rows = zip(*every, strict=True)
    return np.concatenate(places), np.concatenate(rows)
