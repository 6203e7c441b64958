"""Tails where a head's numbers end: how probable is what lies beyond."""

import numpy as np

from numtok.encoding.normalizers.base import Scaling
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.tailed import Tailed


def with_tails(exact: Predictive, scaling: Scaling, learnt_from: int) -> Predictive:
    """A distribution whose numbers end with what ``scaling`` makes 0 and 1 of, with stated tails
    beyond, for as many numbers as were learnt."""
    low, high = scaling.inverse(np.array([0.0, 1.0]))
    return Tailed(exact, low, high, 1 / (learnt_from + 1)) if low < high else exact
