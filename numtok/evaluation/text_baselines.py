"""Baselines for targets that read the words of a row. They require scikit-learn.

tfidf
    Ridge regression on TF-IDF weights of the row's text, as in ``word_features``. Its strength and
    scale are chosen on a fifth of the training rows (see ``ridge``).
boosted-text
    Gradient-boosted trees on the features of ``boosted`` and the main components of the TF-IDF
    weights, on the scale that was chosen for ``tfidf``.

These baselines read all of the text and its numbers except targets, including what comes after a
target. If a row has several targets with the same name, ``tfidf`` predicts the same value for each.
"""

import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats, Ints
from numtok.encoding.dataset import clustered
from numtok.evaluation.baselines import FittedBaselines, boosted, remembered
from numtok.evaluation.queries import Queries, target_names
from numtok.evaluation.ridge import Ridge, tuned_ridge
from numtok.evaluation.rows import Rows
from numtok.evaluation.target_features import (
    AnchoredRows,
    NotFitted,
    fitted_on,
    target_features,
)
from numtok.evaluation.word_features import WordFeatures, sampled
from numtok.seeds import generator

TEXT_BASELINES = ("tfidf", "boosted-text")
_NAMES = "Baselines 'tfidf' and 'boosted-text'"
_FEWEST = 10  # training rows, and clusters of rows if rows are held back by cluster
_MOST_TARGETS = 20_000  # of one name; a row may have several
_HELD_BACK = 0.2  # fraction of the training rows that chooses strength and scale
_MOST_FITS = 4  # that are remembered; each has up to 100,000 terms
_fits: dict[bytes, "_Fits | None"] = {}  # by a digest of their inputs


class _Training(NamedTuple):
    """Training data for one target name.

    targets
        Indices int64[m] of the finite targets.
    texts
        Index int64[m] of each target's text.
    values
        Values float64[m].
    held_back
        bool[m], rows that choose strength and scale.
    """

    targets: Ints
    texts: Ints
    values: Floats
    held_back: Bools


class _Fits(NamedTuple):
    """Features and regressions, fitted to the training texts.

    train
        Main components of the training texts, float64[texts, k].
    ridges
        Regression for each target name.
    """

    features: WordFeatures
    train: Floats
    ridges: Mapping[str, Ridge]

    def predicted(self, texts: Sequence[str]) -> tuple[Floats, dict[str, Floats]]:
        """Return the main components of texts, float64[texts, k], and the predictions of each
        regression, float64[texts]."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        components: list[Floats] = []
        predictions: dict[str, list[Floats]] = {name: [] for name in self.ridges}
        with threadpool_limits(1):
            for block in self.features.blocks(texts):
                components.append(self.features.components.transform(block))
                for name, ridge in self.ridges.items():
                    predictions[name].append(ridge.predict(block))
        return np.concatenate(components), {
            name: np.concatenate(parts) for name, parts in predictions.items()
        }


def text_baselines(train: AnchoredRows, queried: AnchoredRows, queries: Queries) -> FittedBaselines:
    """Fit the baselines to the selected rows of the train split, and predict the queried numbers.

    Nothing is fitted if some queried numbers are not targets; ``fitted_baselines`` notes that.
    Recent fits are cached, because the models of a sweep are compared with the same ones, and each
    report predicts a second split, which calibrates intervals.
    """
    if (queries.targets < 0).any():
        return FittedBaselines({}, [])
    if find_spec("sklearn") is None:
        return FittedBaselines({}, [f"{_NAMES} are not fitted: scikit-learn is not installed."])
    rows, texts = sampled(train.rows)
    samples = queried.rows.samples
    names = target_names(samples, queries)
    training = {name: _training(rows, name) for name in np.unique(names).tolist()}
    usable = {name: data for name, data in training.items() if isinstance(data, _Training)}
    fits = _fitted(texts, usable) if usable else None
    if fits is not None:
        components, of_ridges = fits.predicted(list(queried.rows.texts()))
    text_of = np.searchsorted(queried.rows.chosen, samples.target_row[queries.targets])
    values = {name: np.full(len(names), np.nan) for name in TEXT_BASELINES}
    notes = []
    for name, data in training.items():
        if isinstance(data, NotFitted) or fits is None:
            reason = data.reason if isinstance(data, NotFitted) else "its rows share no words"
            notes.append(f"{_NAMES} are not fitted for target {name!r}: {reason}.")
            continue
        has_name = names == name
        ridge = fits.ridges[name]
        values["tfidf"][has_name] = of_ridges[name][text_of[has_name]]
        x, others = fits.train[data.texts], components[text_of[has_name]]
        numeric = target_features(
            train,
            name,
            (train, data.targets),
            (queried, queries.targets[has_name]),
        )
        if not isinstance(numeric, NotFitted):
            x = np.column_stack([numeric.others[0], x])
            others = np.column_stack([numeric.others[1], others])
        on_scale = boosted(x, ridge.scale.forward(data.values), others)
        values["boosted-text"][has_name] = ridge.scale.raw(on_scale)
    if len(texts) < len(train.rows.chosen):
        of_all = f"{len(texts):,} of {len(train.rows.chosen):,}"
        notes.append(f"{_NAMES} are fitted to {of_all} training rows.")
    fitted = {name: found for name, found in values.items() if not np.isnan(found).all()}
    return FittedBaselines(fitted, notes)


def _training(rows: Rows, name: str) -> _Training | NotFitted:
    """Return the training data for a target name in the selected rows."""
    samples = rows.samples
    has_name = samples.target_name.to_numpy(zero_copy_only=False) == name
    targets = np.flatnonzero(has_name & np.isin(samples.target_row, rows.chosen))
    finite = np.isfinite(samples.numbers[samples.targets[targets]])
    targets = fitted_on(targets[finite], name, _MOST_TARGETS)
    values = samples.numbers[samples.targets[targets]]
    texts = np.searchsorted(rows.chosen, samples.target_row[targets])
    units = clustered(np.arange(len(samples)), samples.clusters)[samples.target_row[targets]]
    if len(np.unique(units)) < _FEWEST:
        units = texts
    distinct = generator(0, "held back", name).permutation(np.unique(units))
    if len(distinct) < _FEWEST:
        return NotFitted(f"{len(distinct):,} training rows are too few")
    held_back = np.isin(units, distinct[: int(_HELD_BACK * len(distinct))])
    return _Training(targets, texts, values, held_back)


def _fitted(texts: Sequence[str], training: Mapping[str, _Training]) -> _Fits | None:
    """Fit TF-IDF weights, and a regression for each target name. Returns None if the training texts
    share no words."""
    digest = hashlib.sha256(repr([len(texts), *training]).encode())
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    for data in training.values():
        for part in (data.texts, data.values, data.held_back):
            digest.update(np.ascontiguousarray(part).data)
    return remembered(_fits, digest.digest(), lambda: _fit(texts, training), _MOST_FITS)


def _fit(texts: Sequence[str], training: Mapping[str, _Training]) -> _Fits | None:
    from threadpoolctl import threadpool_limits

    # Products with sparse matrices use one thread anyway. So the results do not depend on threads.
    with threadpool_limits(1):
        fitted = WordFeatures.fit(texts)
        if fitted is None:
            return None
        features, weights = fitted
        ridges = {
            name: tuned_ridge(weights[data.texts], data.values, data.held_back)
            for name, data in training.items()
        }
        return _Fits(features, features.components.transform(weights), ridges)
