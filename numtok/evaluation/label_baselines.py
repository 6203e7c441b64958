"""Baselines for labels: predictions without a model.

majority
    Always predicts the most frequent label in the train split. Its probabilities are the label
    frequencies in the train split. (NumGPT uses the most frequent label in the test split.)
tfidf
    Logistic regression on TF-IDF weights of words and numbers (Salton & Buckley 1988). It ignores
    word order and the values of numbers. It is fitted to a sample of the train split, if
    scikit-learn is installed. The probability of a label that is not in the sample is its frequency
    in the train split.
"""

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.config import threads
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import class_codes
from numtok.encoding.splits import read_labels, read_words
from numtok.evaluation.rows import sampled
from numtok.evaluation.scoring import BaselineAnswers, Progress
from numtok.metrics.base import Predictions
from numtok.store.artifact import Artifact

FITTED_ON = 20_000  # maximum number of train rows that are used
_WEIGHTS = 1 << 20  # maximum number of weights; only the most frequent words are kept
_STEPS = 200  # maximum number of solver steps
_CELLS = 1 << 20  # probabilities per block


class Guesses(NamedTuple):
    """Predicted classes for n rows, and the log probabilities of the true classes.

    best
        int64[n], index of the most probable class.
    log_true
        float64[n], log probability of the true class; NaN if the true label is not a class.
    """

    best: Ints
    log_true: Floats

    @classmethod
    def of(cls, log_NC: NDArray[np.floating], true: Ints) -> "Guesses":
        """Build predictions from log probabilities [n, classes] and the indices of the true
        classes, int64[n], which are -1 if the true label is not a class."""
        log_true = log_NC[np.arange(len(true)), true].astype(np.float64)
        return cls(log_NC.argmax(axis=1), np.where(true < 0, np.nan, log_true))

    @classmethod
    def joined(cls, parts: Sequence["Guesses"]) -> "Guesses":
        """Concatenate the predictions of several blocks of rows."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class RowWords(NamedTuple):
    """Selected rows of a split of encoded data, whose words can be read. ``rows`` contains their
    indices, ascending, int64[k]."""

    encoded: Artifact
    split: str
    rows: Ints

    def read(self) -> Iterator[tuple[str, ...]]:
        """Yield the words and numbers of each selected row."""
        return read_words(self.encoded, self.split, self.rows)


def label_baselines(
    answers: Predictions,
    queried: RowWords,
    training: Artifact,
    classes: Sequence[str],
    progress: Progress,
) -> Iterator[BaselineAnswers]:
    """Yield the predictions of each available baseline.

    Baselines are fitted to the train split of ``training``. ``queried`` contains the rows to which
    ``answers`` belong, in the same order. ``classes`` are the labels that the model can predict.
    """
    codes = class_codes(read_labels(training, TRAIN), classes)
    true = class_codes(pa.array(answers.truth_literal, pa.string()), classes)
    with np.errstate(divide="ignore"):
        shares = np.log(np.bincount(codes, minlength=len(classes)) / len(codes))
    most = np.full(len(true), shares.argmax())
    guesses = Guesses(most, np.where(true < 0, np.nan, shares[true]))
    yield BaselineAnswers("majority", _answers(answers, classes, guesses))
    if find_spec("sklearn") is None:
        return
    rows = sampled(np.arange(len(codes)), FITTED_ON, "floor")
    if len(np.unique(codes[rows])) < 2:  # a single class cannot be fitted
        return
    tfidf = _tfidf(
        RowWords(training, TRAIN, rows),
        codes[rows],
        queried,
        true=true,
        shares=shares,
        progress=progress,
    )
    if tfidf is not None:
        yield BaselineAnswers("tfidf", _answers(answers, classes, tfidf))


def _answers(answers: Predictions, classes: Sequence[str], guesses: Guesses) -> Predictions:
    """Return the same true labels with other predictions."""
    return Predictions.of_labels(
        list(answers.truth_literal or ()),
        [classes[index] for index in guesses.best.tolist()],
        log_probability=guesses.log_true,
        sample=answers.sample,
    )


def _tfidf(
    training: RowWords,
    codes: Ints,
    queried: RowWords,
    true: Ints,
    shares: Floats,
    progress: Progress,
) -> Guesses | None:
    """Fit the regression to the rows ``training`` and predict the rows ``queried``.

    ``shares`` are the log frequencies of the classes in the train split. Returns None if no
    training row has a word.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    done, total = 0, len(training.rows) + len(queried.rows)

    def read(rows: RowWords) -> Iterator[tuple[str, ...]]:
        nonlocal done
        for row in rows.read():
            done += 1
            if done % 1000 == 0 or done == total:
                progress("baseline tfidf", done, total)
            yield row

    def words(row: tuple[str, ...]) -> tuple[str, ...]:
        return row

    present = np.unique(codes)
    vectors: Any = TfidfVectorizer(
        analyzer=words, max_features=max(1, _WEIGHTS // len(present)), sublinear_tf=True
    )
    try:
        training_vectors = vectors.fit_transform(read(training))
    except ValueError:  # "empty vocabulary", the only ValueError for words that are already split
        return None
    # The estimator has no option that limits it to NUMTOK_THREADS.
    with threadpool_limits(threads()), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # bounded on purpose
        model = LogisticRegression(max_iter=_STEPS).fit(training_vectors, codes)
    absent = np.setdiff1d(np.arange(len(shares)), present)
    left = np.log1p(-np.exp(shares[absent]).sum())
    step = max(1, _CELLS // len(shares))
    parts, reading = [], read(queried)
    for first in range(0, len(true), step):
        some = true[first : first + step]
        log_NC = np.broadcast_to(shares, (len(some), len(shares))).copy()
        queried_vectors = vectors.transform(next(reading) for _ in some)
        log_NC[:, present] = left + model.predict_log_proba(queried_vectors)
        parts.append(Guesses.of(log_NC, some))
    return Guesses.joined(parts)
