"""Features of the texts of rows: TF-IDF weights (Salton & Buckley 1988) and their main components.
Requires scikit-learn.

The terms are words, pairs of adjacent words, and 2 to 5 adjacent characters within words. Numbers
are words. A term must be in two training rows, and only the most frequent terms are used.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from numtok.evaluation.label_baselines import FITTED_ON
from numtok.evaluation.rows import Rows
from numtok.seeds import generator

_MOST_CHARACTERS = 4_000_000  # of the training texts together; TF-IDF takes about 3 s per million
_MOST_TERMS = 50_000  # of words and pairs, and of characters
_WORD = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\w+"
_COMPONENTS = 30
_COMPONENTS_OF = 5000  # maximum number of training texts that main components are fitted to
_BLOCK = 1000  # rows that are transformed together


def sampled(train: Rows) -> tuple[Rows, list[str]]:
    """Return the training rows to which baselines are fitted, and their texts.

    They are random, at most 20,000, and have at most 4 million characters.
    """
    drawn = generator(0, "words").permutation(train.chosen)[:FITTED_ON]
    rows = train._replace(chosen=np.sort(drawn))
    texts = list(rows.texts())
    order = np.searchsorted(rows.chosen, drawn)
    lengths = np.array([len(text) for text in texts], np.int64)[order]
    kept = np.sort(order[np.cumsum(lengths) <= _MOST_CHARACTERS])
    return rows._replace(chosen=rows.chosen[kept]), [texts[index] for index in kept.tolist()]


class WordFeatures(NamedTuple):
    """Functions from texts to features, fitted to the training texts. Both are estimators of
    scikit-learn.

    weights
        From texts to TF-IDF weights, a sparse matrix [n, terms].
    components
        From weights to their main components, float64[n, 30] (fewer if there are few terms).
    """

    weights: Any
    components: Any

    @classmethod
    def fit(cls, texts: Sequence[str]) -> "tuple[WordFeatures, Any] | None":
        """Fit to the training texts, and also return their weights. Returns None if fewer than two
        terms are in two texts."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import FeatureUnion

        usual: dict[str, Any] = {
            "min_df": 2,
            "max_features": _MOST_TERMS,
            "sublinear_tf": True,
            "dtype": np.float32,
        }
        words = TfidfVectorizer(token_pattern=_WORD, ngram_range=(1, 2), **usual)
        characters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), lowercase=False, **usual
        )
        weights = FeatureUnion([("words", words), ("characters", characters)])
        try:
            of_training = weights.fit_transform(texts).tocsr()
        except ValueError:  # no term is left, the only ValueError for texts
            return None
        if of_training.shape[1] < 2:
            return None
        count = min(_COMPONENTS, of_training.shape[1] - 1)
        some = generator(0, "components").permutation(len(texts))[:_COMPONENTS_OF]
        components = TruncatedSVD(count, n_iter=2, random_state=0).fit(of_training[np.sort(some)])
        return cls(weights, components), of_training

    def blocks(self, texts: Sequence[str]) -> Iterator[Any]:
        """Yield the weights of texts, 1,000 texts at a time."""
        for begin in range(0, len(texts), _BLOCK):
            yield self.weights.transform(texts[begin : begin + _BLOCK]).tocsr()
