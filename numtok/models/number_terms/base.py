"""The contract of a number loss: a term of an objective that knows what tokens are worth.

Cross-entropy takes 9 in place of 3 for as wrong as 4. A number loss looks, where the next token is
one of digits, at the probabilities of all tokens of digits and at their values.

Shapes: N places, T tokens that have a value, V tokens.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.errors import UsageError
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry, name_of


class DigitLogits(NamedTuple):
    """What is said of the tokens with a value, where the right one has one.

    logits, log_p
        [N, T]: of these tokens, and their logarithmic probabilities among all tokens.
    values, lengths
        [T]: theirs, which rise, and of how many digits each is where some have one value, as ``1``,
        ``01`` and ``001`` have; else 0.
    right
        [N]: which of them is the right one; 0 where none is.
    places
        [N]: where it stands in its run of digits: 1 is the last before the point, 2 the one before
        it; behind a point 0 is the first, -1 the next one. Runs are taken as they are written, so
        reversed digits have the places of others.
    runs
        [N]: which run it is of, from 0 on, rising; -1 where the right one has no value.
    """

    logits_NT: Tensor
    log_p_NT: Tensor
    values_T: Tensor
    lengths_T: Tensor
    right_N: Tensor
    places_N: Tensor
    runs_N: Tensor

    @property
    def p_NT(self) -> Tensor:
        """Probabilities of tokens with a value, given that it is one of them."""
        return self.log_p_NT.softmax(dim=1)

    @property
    def truth_N(self) -> Tensor:
        """The value of the right one."""
        return self.values_T[self.right_N]

    @property
    def apart_NT(self) -> Tensor:
        """How much larger each value is than the right one."""
        return self.values_T - self.truth_N[:, None]

    def near_NT(self, spread: float) -> Tensor:
        """Probabilities that fall with the distance d from the right one, as exp(-d^2 / spread), of
        those of as many digits as it has."""
        others_NT = self.lengths_T != self.lengths_T[self.right_N][:, None]
        near_NT = -self.apart_NT.square() / spread
        return near_NT.masked_fill(others_NT, -torch.inf).softmax(dim=1)


class NumberTerm(ABC):
    """A number loss. Subclasses are final frozen dataclasses; their fields are settings.

    weight
        With which its mean over the places is added to the cross-entropy; None: it takes the place
        of the cross-entropy of these tokens.
    """

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def weight(self) -> float | None: ...

    @abstractmethod
    def losses(self, said: DigitLogits) -> Tensor:
        """[N]: of each place."""


class NumberTermModule(nn.Module):
    """A number loss, and the values of the tokens of a vocabulary: those of digits, as integers.

    Raises UsageError where there are fewer than two.
    """

    def __init__(self, term: NumberTerm, vocabulary: Vocabulary) -> None:
        super().__init__()
        ids = np.flatnonzero(~np.isnan(vocabulary.digits))
        if len(ids) < 2:
            raise UsageError(
                f"number-loss={name_of(term)} is of tokens that are digits, one behind the other, "
                "and these data have none; encode with --scheme digits, or leave number-loss out"
            )
        values = vocabulary.digits[ids]
        order = np.argsort(values, kind="stable")
        ids, values = vocabulary.first + ids[order], values[order]
        self.term = term
        self._is_valued = np.isin(np.arange(vocabulary.size), ids)
        self._is_point = np.zeros(vocabulary.size, np.bool_)
        self._is_point[vocabulary.first : vocabulary.first_of_text] = [
            name == "." for name in vocabulary.names
        ]
        index = np.zeros(vocabulary.size, np.int64)
        index[ids] = np.arange(len(ids))
        lengths = np.array([len(vocabulary.names[one]) for one in ids - vocabulary.first])
        lengths *= len(np.unique(values)) < len(values)
        for name, array in (
            ("ids", ids),
            ("values", values.astype(np.float32)),
            ("lengths", lengths),
            ("index", index),
            ("is_valued", self._is_valued),
        ):
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def scale(self, labels: NDArray[np.int64]) -> float:
        """How many labels [K] there are to each one that has a value; 0 where none has."""
        valued = int(self._is_valued[labels].sum())
        return len(labels) / valued if valued else 0.0

    def places(self, labels: NDArray[np.int64], where: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[K, 2]: places and runs as :class:`DigitLogits` has them, of labels [K] at rising
        places [K]; 0 and -1 where one has no value. Labels whose places do not come one after the
        other are of two runs."""
        digit, index = self._is_valued[labels], np.arange(len(labels))
        goes_on = np.append(False, np.diff(where) == 1)[: len(labels)]
        starts = digit & ~(goes_on & np.append(False, digit[:-1])[: len(labels)])
        behind_point = goes_on & np.append(False, self._is_point[labels[:-1]])[: len(labels)]
        run = np.cumsum(starts) - 1
        first = np.flatnonzero(starts)
        if not len(first):
            return np.tile(np.array([0, -1]), (len(labels), 1))
        within = index - first[run]
        lengths = np.bincount(run[digit], minlength=len(first))
        found = np.where(behind_point[first][run], -within, lengths[run] - within)
        return np.stack([np.where(digit, found, 0), np.where(digit, run, -1)], axis=1)

    def forward(
        self, logits_NV: Tensor, labels_N: Tensor, scale: Tensor | float, places_N2: Tensor
    ) -> Tensor:
        """[]: what is added to the mean cross-entropy of some labels; ``scale`` and ``places`` as
        these have them, of all that are learnt at once the one, of these the other."""
        log_p_NV = logits_NV.log_softmax(dim=1)
        ids_T, index_V = cast(Tensor, self.ids), cast(Tensor, self.index)
        places_N, runs_N = places_N2.unbind(dim=1)
        said = DigitLogits(
            logits_NT=logits_NV[:, ids_T],
            log_p_NT=log_p_NV[:, ids_T],
            values_T=cast(Tensor, self.values),
            lengths_T=cast(Tensor, self.lengths),
            right_N=index_V[labels_N],
            places_N=places_N,
            runs_N=runs_N,
        )
        each_N = self.term.losses(said)
        weight = self.term.weight
        if weight is None:
            each_N = each_N + log_p_NV.gather(1, labels_N[:, None])[:, 0]
            weight = scale = 1.0
        valued_N = cast(Tensor, self.is_valued)[labels_N]
        total = torch.where(valued_N, each_N, 0.0).sum()
        return total * weight * scale / max(1, len(labels_N))


def reweighed(losses_N: Tensor, said: DigitLogits, power: int) -> Tensor:
    """[N]: times the probability m of any token with a value, and 1.01 times the largest loss that
    there is (a distance to a power) times 1 - m: what is no number is worse than any."""
    mass_N = said.log_p_NT.exp().sum(dim=1)
    worst = (said.values_T[-1] - said.values_T[0]) ** power
    return mass_N * losses_N + 1.01 * worst * (1 - mass_N)


NUMBER_TERMS = Registry[NumberTerm]("numtok.models.number_terms", "number loss", NumberTerm)
