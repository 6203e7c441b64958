"""What needs no model, where labels are predicted.

majority
    The label that is most frequent in the train split, with the shares of that split as
    probabilities. (NumGPT's is that of the test split.)
tfidf
    Logistic regression on how often each word and each number is in the row, as a weight by TF-IDF
    (Salton & Buckley 1988): what can be told without reading on or comparing numbers. Where
    scikit-learn is installed, from some rows of the train split at most; a label that none of
    these has keeps its share of the train split.
"""

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.config import threads
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.splits import read_labels, read_words
from numtok.evaluation.scoring import BaselineAnswers, Progress
from numtok.metrics.base import Predictions
from numtok.seeds import generator
from numtok.store.artifact import Artifact

FITTED_ON = 20_000  # rows of the train split at most
_WEIGHTS = 1 << 20  # of the regression, at most: the most frequent words
_STEPS = 200  # of the solver, at most
_CELLS = 1 << 20  # probabilities at a time


class Guesses(NamedTuple):
    """What is predicted of n rows: int64[n] indices of classes, and float64[n] the log-probability
    of the true one, NaN where it is none of the classes."""

    best: Ints
    log_true: Floats

    @classmethod
    def of(cls, log_NC: NDArray[np.floating], true: Ints) -> "Guesses":
        """From log-probabilities [n, classes]; ``true`` is -1 where it is none of these."""
        log_true = log_NC[np.arange(len(true)), true].astype(np.float64)
        return cls(log_NC.argmax(axis=1), np.where(true < 0, np.nan, log_true))

    @classmethod
    def joined(cls, parts: Sequence["Guesses"]) -> "Guesses":
        """Of all rows, from those of some at a time."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class RowWords(NamedTuple):
    """Which rows (int64, rising) of a split of some encoded data are meant."""

    encoded: Artifact
    split: str
    rows: Ints

    def read(self) -> Iterator[tuple[str, ...]]:
        """The words and numbers of each."""
        return read_words(self.encoded, self.split, self.rows)


def label_baselines(
    answers: Predictions,
    asked: RowWords,
    learnt: Artifact,
    classes: Sequence[str],
    progress: Progress,
) -> Iterator[BaselineAnswers]:
    """Each baseline that can be had, by name: the answers with other predictions. ``asked`` are the
    rows that they are of, in this order, ``learnt`` is the data whose train split is learnt."""
    codes = _codes(read_labels(learnt, TRAIN), classes)
    true = _codes(pa.array(answers.truth_literal, pa.string()), classes)
    with np.errstate(divide="ignore"):
        shares = np.log(np.bincount(codes, minlength=len(classes)) / len(codes))
    most = np.full(len(true), shares.argmax())
    guesses = Guesses(most, np.where(true < 0, np.nan, shares[true]))
    yield BaselineAnswers("majority", _answers(answers, classes, guesses))
    if find_spec("sklearn") is None:
        return
    rows = fitted_on(len(codes))
    if len(np.unique(codes[rows])) < 2:  # there is nothing to tell
        return
    told = _tfidf(
        RowWords(learnt, TRAIN, rows),
        codes[rows],
        asked,
        true=true,
        shares=shares,
        progress=progress,
    )
    if told is not None:
        yield BaselineAnswers("tfidf", _answers(answers, classes, told))


def fitted_on(rows: int) -> Ints:
    """[k]: which of so many rows of the train split the regression sees, in order."""
    if rows <= FITTED_ON:
        return np.arange(rows)
    return np.sort(generator(0, "floor").permutation(rows)[:FITTED_ON])


def _codes(labels: "pa.Array[Any] | pa.ChunkedArray", classes: Sequence[str]) -> Ints:
    """int64[n]: which of the classes each label is; -1 for none of them."""
    found = pc.index_in(labels, value_set=pa.array(classes, pa.string()))
    return np.asarray(found.fill_null(-1), np.int64)


def _answers(answers: Predictions, classes: Sequence[str], guesses: Guesses) -> Predictions:
    """The same truths with other predictions."""
    return Predictions.of_labels(
        list(answers.truth_literal or ()),
        [classes[index] for index in guesses.best.tolist()],
        log_probability=guesses.log_true,
        sample=answers.sample,
    )


def _tfidf(
    learnt: RowWords, codes: Ints, asked: RowWords, true: Ints, shares: Floats, progress: Progress
) -> Guesses | None:
    """What the regression on the rows ``learnt`` of these classes says of those ``asked``; None
    where no row has a word. ``shares`` are the logarithms of those of the train split."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    done, total = 0, len(learnt.rows) + len(asked.rows)

    def told(rows: RowWords) -> Iterator[tuple[str, ...]]:
        nonlocal done
        for row in rows.read():
            done += 1
            if done % 1000 == 0 or done == total:
                progress("baseline tfidf", done, total)
            yield row

    def words(row: tuple[str, ...]) -> tuple[str, ...]:
        return row

    seen = np.unique(codes)
    vectors: Any = TfidfVectorizer(
        analyzer=words, max_features=max(1, _WEIGHTS // len(seen)), sublinear_tf=True
    )
    try:
        of_learnt = vectors.fit_transform(told(learnt))
    except ValueError:  # "empty vocabulary": with words as they are it raises for nothing else
        return None
    # It knows of no other way to be held to NUMTOK_THREADS.
    with threadpool_limits(threads()), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # bounded on purpose
        model = LogisticRegression(max_iter=_STEPS).fit(of_learnt, codes)
    unseen = np.setdiff1d(np.arange(len(shares)), seen)
    left = np.log1p(-np.exp(shares[unseen]).sum())
    step = max(1, _CELLS // len(shares))
    parts, reading = [], told(asked)
    for first in range(0, len(true), step):
        some = true[first : first + step]
        log_NC = np.broadcast_to(shares, (len(some), len(shares))).copy()
        of_asked = vectors.transform(next(reading) for _ in some)
        log_NC[:, seen] = left + model.predict_log_proba(of_asked)
        parts.append(Guesses.of(log_NC, some))
    return Guesses.joined(parts)
