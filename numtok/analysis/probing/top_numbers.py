"""Which whole numbers are probable along a line of predictions, and how probable each is at each.

xVal shows the largest logits of P1000 (Figure 6). Here it is whole numbers, for every scheme that
says numbers by tokens: log P(number) is the sum over its tokens, each normalised over what the
grammar allows after those before it. Single positions are not compared, since they mean something
else in each scheme (a mantissa in P1000, a digit in P10, all of the number in FP15).
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.encoding.grammar import Support
from numtok.evaluation.predict import AUTOREGRESSIVE, Predictor

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


def top_numbers(predictor: Predictor, numbers: Ints, most: int) -> TopNumbers:
    """The ``most`` numbers that are most probable anywhere; of ``numbers``, indices in the split,
    each of which the predictor asks for in one query.

    Where all numbers of a scheme can be listed and one pass gives the probabilities of all, it is
    among all of them; else among those that are predicted, and the most frequent of these.
    """
    if predictor.support is not None:
        return _of_all(predictor, numbers, most)
    return _of_predicted(predictor, numbers, most)


def _of_all(predictor: Predictor, numbers: Ints, most: int) -> TopNumbers:
    support = predictor.support
    assert support is not None
    best = np.full(len(support.values), -np.inf)
    for _, log_p in _log_probabilities(predictor, support, numbers):
        np.maximum(best, log_p.max(axis=0), out=best)
    top = np.sort(np.argsort(-best, kind="stable")[:most])  # ascending in value
    # Once more, since to keep all of them takes a gigabyte for every few thousand numbers.
    found = np.empty((len(numbers), len(top)))
    for places, log_p in _log_probabilities(predictor, support, numbers):
        found[places] = log_p[:, top]
    return _named(predictor, support.paths[top].tolist(), found, "all numbers of the scheme")


def _log_probabilities(
    predictor: Predictor, support: Support, numbers: Ints
) -> Iterator[tuple[list[int], Floats]]:
    """Places in ``numbers``, and float64[some, numbers of the scheme]."""
    place = {number: index for index, number in enumerate(numbers.tolist())}
    for asked, steps in predictor.passes():
        logits = predictor.reader.read(steps, keep_logits=True).logits
        assert logits is not None
        wanted = [index for index, one in enumerate(asked.tolist()) if one in place]
        for first in range(0, len(wanted), _AT_ONCE):
            part = wanted[first : first + _AT_ONCE]
            yield [place[int(asked[one])] for one in part], support.log_probabilities(logits[part])


def _of_predicted(predictor: Predictor, numbers: Ints, most: int) -> TopNumbers:
    place = {number: index for index, number in enumerate(numbers.tolist())}
    said: Counter[tuple[int, ...]] = Counter()
    for asked, steps in predictor.passes():
        read = predictor.reader.read(steps).tokens
        said.update(
            tuple(token for token in path if token >= 0)
            for number, path in zip(asked.tolist(), read.tolist(), strict=True)
            if number in place
        )
    del said[()]  # of what is no number
    top = [list(path) for path, _ in said.most_common(most)]
    log_p = np.full((len(numbers), len(top)), -np.inf)
    for asked, steps in predictor.passes():
        mine = np.array([number in place for number in asked.tolist()], np.bool_)
        rows = [place[number] for number in asked[mine].tolist()]
        for column, path in enumerate(top):
            tokens = np.full((len(asked), len(path)), -1)
            tokens[mine] = path
            # Where the number of masks says how many tokens there are, other numbers cannot be.
            fits = True if steps.lengths is None else steps.lengths[mine] == len(path)
            found = predictor.reader.score(steps, tokens)[mine]
            log_p[rows, column] = np.where(fits, found, -np.inf)
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
