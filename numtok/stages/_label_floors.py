"""What needs no model, where labels are predicted.

majority
    The label that is most frequent in the train split, with the shares of that split as
    probabilities. (NumGPT's is that of the test split.)
tfidf
    Logistic regression on how often each word and each number is in the row, as a weight by TF-IDF
    (Salton & Buckley 1988): what can be told without reading on or comparing numbers. Where
    scikit-learn is installed, from some rows of the train split at most.
"""

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.artifact import Artifact
from numtok.config import threads
from numtok.metrics.base import Answers
from numtok.nn.batches import generator
from numtok.records import TRAIN
from numtok.samples import Samples
from numtok.stages._data import read_words

FITTED_ON = 20_000  # rows of the train split at most
_WEIGHTS = 1 << 22  # of the regression, at most: the most frequent words
_STEPS = 200  # of the solver, at most


class Words(NamedTuple):
    """Which rows (int64, rising) of a split of some encoded data are meant."""

    encoded: Artifact
    split: str
    rows: NDArray[np.int64]

    def read(self) -> list[tuple[str, ...]]:
        """The words and numbers of each."""
        return list(read_words(self.encoded, self.split, self.rows))


def label_floors(
    answers: Answers, asked: Words, learnt: Artifact, train: Samples, classes: Sequence[str]
) -> Iterator[tuple[str, Answers]]:
    """Each floor that can be had, by name: the answers with other predictions. ``asked`` are the
    rows that they are of, in this order, ``train`` is the train split of ``learnt``."""
    codes = train.class_of(classes)
    with np.errstate(divide="ignore"):
        shares = np.log(np.bincount(codes, minlength=len(classes)) / len(codes))
    everywhere = np.broadcast_to(shares, (len(answers.truth), len(classes)))
    yield "majority", _answers(answers, classes, everywhere)
    if find_spec("sklearn") is None:
        return
    rows = fitted_on(len(train))
    seen, words = np.unique(codes[rows]), Words(learnt, TRAIN, rows).read()
    if len(seen) < 2 or not any(words):  # nothing to tell, or nothing to tell it by
        return
    found = np.full(everywhere.shape, -np.inf)
    found[:, seen] = _tfidf(words, codes[rows], asked.read())
    yield "tfidf", _answers(answers, classes, found)


def fitted_on(rows: int) -> NDArray[np.int64]:
    """Which of so many rows of the train split the regression sees."""
    if rows <= FITTED_ON:
        return np.arange(rows)
    return np.sort(generator(0, "floor").permutation(rows)[:FITTED_ON])


def _answers(answers: Answers, classes: Sequence[str], log_NC: NDArray[np.float64]) -> Answers:
    """The same truths with predictions of these log-probabilities [n, classes]."""
    truth = list(answers.truth_literal or ())
    place = {label: index for index, label in enumerate(classes)}
    true = np.array([place.get(label, -1) for label in truth])
    log_true = np.where(true < 0, -np.inf, log_NC[np.arange(len(true)), true])
    return Answers.of_labels(
        truth,
        [classes[index] for index in log_NC.argmax(axis=1)],
        log_probability=log_true,
        sample=answers.sample,
    )


def _tfidf(
    learnt: Sequence[tuple[str, ...]], codes: NDArray[np.int64], asked: Sequence[tuple[str, ...]]
) -> NDArray[np.float64]:
    """float64[n, k]: log-probabilities of the classes that occur among ``codes``, rising."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    def words(row: tuple[str, ...]) -> tuple[str, ...]:
        return row

    vectors: Any = TfidfVectorizer(
        analyzer=words, max_features=_WEIGHTS // len(np.unique(codes)), sublinear_tf=True
    )
    # It knows of no other way to be held to NUMTOK_THREADS.
    with threadpool_limits(threads()), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # bounded on purpose
        model = LogisticRegression(max_iter=_STEPS).fit(vectors.fit_transform(learnt), codes)
        return np.asarray(model.predict_log_proba(vectors.transform(asked)), np.float64)
