"""The most probable complete numbers, with their probabilities, as an input of the model varies.

The xVal paper shows the largest logits of P1000 (Figure 6). This module supports every scheme
that writes numbers as tokens. The log-probability of a number is the sum over its tokens, each
normalized over the tokens that the grammar allows at that position. Tokens at individual positions
are not compared, because their meaning depends on the scheme (a mantissa in P1000, a digit in P10,
the complete number in FP15).
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
_AT_ONCE = 16  # predictions whose probabilities over all of a scheme's numbers are held in memory


class TopNumbers(NamedTuple):
    """The most probable numbers, and the probability of each in every prediction.

    literals, values
        The k numbers as the scheme writes them, and their values.
    among
        Description of the set that the numbers were selected from.
    log_p
        float64[n, k], nats: log-probability of each of the k numbers in each of the n predictions.
    """

    literals: list[str]
    values: Floats  # [k], raw; NaN for one that is not a finite number
    log_p: Floats
    among: str


def top_numbers(
    predictor: Predictor, numbers: Ints, most: int, devices: Devices, note: Note
) -> TopNumbers:
    """Return the numbers that are most probable in a set of predictions, with their
    log-probabilities. At most ``most`` numbers are returned.

    If all numbers of the scheme can be listed and one pass gives their probabilities, the result
    contains the numbers with the highest probability in any prediction. Otherwise, it contains the
    most frequent predictions. ``numbers`` are the indices of the predicted numbers in the split;
    each must be predicted in a single query.
    """

    def each(read: Read) -> Iterator[Any]:
        return devices.each(predictor, read, predictor.parts(), note)

    select = _of_predicted if predictor.support is None else _of_all
    return select(predictor, numbers, most, each)


def _of_all(predictor: Predictor, numbers: Ints, most: int, each: Each) -> TopNumbers:
    support = predictor.support
    assert support is not None
    best = np.full(len(support.values), -np.inf)
    for highest in each(partial(_highest, numbers)):
        np.maximum(best, highest, out=best)
    top = np.sort(np.argsort(-best, kind="stable")[:most])  # ascending in value
    # A second pass, since keeping all of them takes a gigabyte per few thousand numbers.
    log_p = np.empty((len(numbers), len(top)))
    for indices, part in each(partial(_listed, numbers, top)):
        log_p[indices] = part
    return _named(predictor, support.paths[top].tolist(), log_p, "all numbers of the scheme")


def _of_predicted(predictor: Predictor, numbers: Ints, most: int, each: Each) -> TopNumbers:
    counts: Counter[tuple[int, ...]] = Counter()
    for paths in each(partial(_predicted, numbers)):
        counts.update(paths)
    del counts[()]  # predictions that are not numbers
    top = [list(path) for path, _ in counts.most_common(most)]
    log_p = np.full((len(numbers), len(top)), -np.inf)
    for indices, part in each(partial(_scored, numbers, top)):
        log_p[indices] = part
    among = "the numbers predicted most often"
    open_ended = predictor.loaded.codec.scheme.tokens_per_number is None
    if open_ended and predictor.options.fill == AUTOREGRESSIVE:
        among += "; probabilities do not include the end of the number after its last digit"
    return _named(predictor, top, log_p, among)


def _named(predictor: Predictor, paths: list[list[int]], log_p: Floats, among: str) -> TopNumbers:
    flat = np.array([token for path in paths for token in path], np.uint32)
    lengths = np.array([len(path) for path in paths], np.int32)
    decoded = predictor.loaded.codec.decode_numbers(flat, lengths)
    names = predictor.loaded.codec.scheme.vocabulary()
    literals = [
        " ".join(dict.fromkeys(names[token] for token in path))  # an extra token repeats
        if decoded.failures[index]
        else decoded.literal(index)
        for index, path in enumerate(paths)
    ]
    values = np.where(np.isfinite(decoded.values), decoded.values, np.nan)
    return TopNumbers(literals, values, log_p, among)


def _passes(
    predictor: Predictor, queries: Ints, numbers: Ints
) -> Iterator[tuple[Bools, Ints, DecodingStates]]:
    """Read queries in passes. For each pass, yield a mask of the predicted numbers that are in
    ``numbers``, their indices in ``numbers``, and the decoding states."""
    order = np.argsort(numbers)
    ascending = numbers[order]
    for predicted, steps in predictor.passes(queries):
        at = np.minimum(np.searchsorted(ascending, predicted), len(ascending) - 1)
        wanted = ascending[at] == predicted
        yield wanted, order[at[wanted]], steps


def _log_probabilities(
    predictor: Predictor, queries: Ints, numbers: Ints
) -> Iterator[tuple[Ints, Floats]]:
    """Yield indices in ``numbers``, and log-probabilities float64[k, numbers of the scheme] of k
    predictions."""
    assert predictor.support is not None
    for wanted, indices, steps in _passes(predictor, queries, numbers):
        logits = predictor.reader.read(steps, keep_logits=True).logits
        assert logits is not None
        logits = logits[wanted]
        for first in range(0, len(indices), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            yield indices[part], predictor.support.log_probabilities(logits[part])


def _highest(numbers: Ints, predictor: Predictor, queries: Ints, note: Note) -> Floats:
    """Return the highest log-probability of each number of the scheme over these queries,
    float64[numbers of the scheme].
    """
    assert predictor.support is not None
    best = np.full(len(predictor.support.values), -np.inf)
    for _, log_p in _log_probabilities(predictor, queries, numbers):
        np.maximum(best, log_p.max(axis=0), out=best)
    return best


def _listed(
    numbers: Ints, top: Ints, predictor: Predictor, queries: Ints, note: Note
) -> tuple[Ints, Floats]:
    """Return indices in ``numbers``, and the log-probabilities of the numbers ``top`` of the
    scheme, int64[k].
    """
    parts = _log_probabilities(predictor, queries, numbers)
    return _stacked(((indices, log_p[:, top]) for indices, log_p in parts), len(top))


def _predicted(
    numbers: Ints, predictor: Predictor, queries: Ints, note: Note
) -> list[tuple[int, ...]]:
    """Return the tokens of each predicted number; empty for a prediction that is not a number."""
    return [
        tuple(token for token in path if token >= 0)
        for wanted, _, steps in _passes(predictor, queries, numbers)
        for path in predictor.reader.read(steps).tokens[wanted].tolist()
    ]


def _scored(
    numbers: Ints, paths: Sequence[Sequence[int]], predictor: Predictor, queries: Ints, note: Note
) -> tuple[Ints, Floats]:
    """Return indices in ``numbers``, and the log-probabilities of numbers given by their tokens."""

    def scored() -> Iterator[tuple[Ints, Floats]]:
        for wanted, indices, steps in _passes(predictor, queries, numbers):
            log_p = np.empty((len(indices), len(paths)))
            for column, path in enumerate(paths):
                tokens = np.full((len(wanted), len(path)), -1)
                tokens[wanted] = path
                # The number of masks fixes the number of tokens; other lengths are impossible.
                fits = True if steps.lengths is None else steps.lengths[wanted] == len(path)
                scores = predictor.reader.score(steps, tokens)[wanted]
                log_p[:, column] = np.where(fits, scores, -np.inf)
            yield indices, log_p

    return _stacked(scored(), len(paths))


def _stacked(parts: Iterable[tuple[Ints, Floats]], width: int) -> tuple[Ints, Floats]:
    """Concatenate indices int64[k] and rows float64[k, width]."""
    every = [(np.zeros(0, np.int64), np.zeros((0, width))), *parts]
    indices, rows = zip(*every, strict=True)
    return np.concatenate(indices), np.concatenate(rows)
