"""The interface of number losses, which are terms of an objective that depend on token values.

To cross-entropy, predicting 9 instead of 3 is as wrong as predicting 4. If the next token is a
digit, a number loss uses the probabilities of all digit tokens and the values that they stand for.

Shapes: N positions, T tokens that have a value, V tokens.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.valued_tokens import ValuedTokens
from numtok.errors import UsageError
from numtok.registry import Registry, name_of


class DigitLogits(NamedTuple):
    """Predictions of a model for the T tokens that have a value, at N positions.

    logits, log_p
        [N, T]: logits of the T tokens, and their log-probabilities in the whole vocabulary.
    values, forms
        [T]: values of the T tokens, in ascending order, and their forms (see
        :class:`numtok.encoding.valued_tokens.ValuedTokens`): ``1``, ``01`` and `` 1`` have the same
        value and different forms. All forms are 0 if no two tokens have the same value.
    right
        [N]: index of the target token among the T tokens; 0 if the target has no value.
    places
        [N]: digit position of the target in its run of digits. Before a point, 1 is the last digit
        and 2 the next to last; after a point, 0 is the first digit and -1 the second. Digits are
        counted as written, so reversed digits have reversed positions.
    runs
        [N]: index of the target's run of digits, ascending and starting at 0; -1 if the target has
        no value.
    """

    logits_NT: Tensor
    log_p_NT: Tensor
    values_T: Tensor
    forms_T: Tensor
    right_N: Tensor
    places_N: Tensor
    runs_N: Tensor

    @property
    def p_NT(self) -> Tensor:
        """Probabilities [N, T] of the tokens with a value, normalized over these tokens."""
        return self.log_p_NT.softmax(dim=1)

    @property
    def truth_N(self) -> Tensor:
        """Values [N] of the target tokens."""
        return self.values_T[self.right_N]

    @property
    def span(self) -> Tensor:
        """Difference [] between the largest and the smallest value."""
        return self.values_T[-1] - self.values_T[0]

    @property
    def apart_NT(self) -> Tensor:
        """Differences [N, T] between the value of each token and the value of the target."""
        return self.values_T - self.truth_N[:, None]

    def near_NT(self, spread: float) -> Tensor:
        """Return smoothed target probabilities [N, T], proportional to exp(-d^2 / spread).

        d is the distance of a token's value from the value of the target. Only tokens with the same
        form as the target have a probability above 0.
        """
        others_NT = self.forms_T != self.forms_T[self.right_N][:, None]
        near_NT = -self.apart_NT.square() / spread
        return near_NT.masked_fill(others_NT, -torch.inf).softmax(dim=1)


class NumberTerm(ABC):
    """Base class for number losses, which compare the values of predicted tokens with the target.

    Subclasses are final frozen dataclasses; their fields are settings.

    weight
        Weight with which the mean of the loss over the positions is added to the cross-entropy.
        None if the loss replaces the cross-entropy of tokens with a value.
    """

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def weight(self) -> float | None: ...

    @abstractmethod
    def losses(self, digits: DigitLogits) -> Tensor:
        """Return the loss at each position, [N]."""


class NumberTermModule(nn.Module):
    """Module that computes a number loss from the logits of a vocabulary with ``size`` tokens.

    Raises UsageError if fewer than two tokens have a value.
    """

    def __init__(self, term: NumberTerm, tokens: ValuedTokens, size: int) -> None:
        super().__init__()
        if len(tokens.ids) < 2:
            raise UsageError(
                f"number-loss={name_of(term)} needs numbers written digit by digit; this data has "
                "none. Encode with --scheme digits or native, or omit number-loss"
            )
        self.term = term
        self._is_valued, self._is_point, self._begins = (np.zeros(size, np.bool_) for _ in range(3))
        self._is_valued[tokens.ids] = True
        self._is_point[tokens.points] = True
        self._begins[tokens.ids] = tokens.begins
        index = np.zeros(size, np.int64)
        index[tokens.ids] = np.arange(len(tokens.ids))
        for name, array in (
            ("ids", tokens.ids),
            ("values", tokens.values.astype(np.float32)),
            ("forms", tokens.forms),
            ("index", index),
            ("is_valued", self._is_valued),
        ):
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def scale(self, labels: NDArray[np.int64]) -> float:
        """Return the number of ``labels`` [K] divided by the number of labels with a value; 0 if no
        label has a value."""
        valued = int(self.valued(labels).sum())
        return len(labels) / valued if valued else 0.0

    def valued(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each label [K] has a value, bool[K]."""
        return self._is_valued[labels]

    def places(self, labels: NDArray[np.int64], where: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[K, 2]: the digit position and the run of each label, as in
        :class:`DigitLogits`.

        ``where`` [K] are the ascending positions of ``labels`` [K] in the batch. Labels at
        positions that are not adjacent belong to different runs, and a token that begins with
        whitespace begins a run. A label without a value has position 0 and run -1.
        """
        digit, index = self.valued(labels), np.arange(len(labels))
        is_adjacent = np.append(False, np.diff(where) == 1)[: len(labels)]
        after_digit = is_adjacent & np.append(False, digit[:-1])[: len(labels)]
        starts = digit & (~after_digit | self._begins[labels])
        after_point = is_adjacent & np.append(False, self._is_point[labels[:-1]])[: len(labels)]
        after_point &= ~self._begins[labels]
        run = np.cumsum(starts) - 1
        first = np.flatnonzero(starts)
        if not len(first):
            return np.tile(np.array([0, -1]), (len(labels), 1))
        within = index - first[run]
        lengths = np.bincount(run[digit], minlength=len(first))
        digit_position = np.where(after_point[first][run], -within, lengths[run] - within)
        return np.stack([np.where(digit, digit_position, 0), np.where(digit, run, -1)], axis=1)

    def forward(
        self, logits_NV: Tensor, labels_N: Tensor, scale: Tensor | float, places_N2: Tensor
    ) -> Tensor:
        """Return the number loss [], which is added to the mean cross-entropy of the given labels.

        ``scale`` is the result of :meth:`scale` for all labels that are trained together.
        ``places_N2`` is the result of :meth:`places` for the given labels.
        """
        log_p_NV = logits_NV.log_softmax(dim=1)
        each_N = self.losses(logits_NV, log_p_NV, labels_N, places_N2)
        weight = self.term.weight
        if weight is None:
            each_N = each_N + log_p_NV.gather(1, labels_N[:, None])[:, 0]
            weight = scale = 1.0
        valued_N = cast(Tensor, self.is_valued)[labels_N]
        total = torch.where(valued_N, each_N, 0.0).sum()
        return total * weight * scale / max(1, len(labels_N))

    def losses(
        self, logits_NV: Tensor, log_p_NV: Tensor, labels_N: Tensor, places_N2: Tensor
    ) -> Tensor:
        """Return the unweighted loss [N] of each label. Results for labels without a value are
        meaningless."""
        ids_T, index_V = cast(Tensor, self.ids), cast(Tensor, self.index)
        places_N, runs_N = places_N2.unbind(dim=1)
        return self.term.losses(
            DigitLogits(
                logits_NT=logits_NV[:, ids_T],
                log_p_NT=log_p_NV[:, ids_T],
                values_T=cast(Tensor, self.values),
                forms_T=cast(Tensor, self.forms),
                right_N=index_V[labels_N],
                places_N=places_N,
                runs_N=runs_N,
            )
        )


def reweighed(losses_N: Tensor, digits: DigitLogits, worst: Tensor) -> Tensor:
    """Return losses [N] that also penalize tokens without a value: m * losses_N + (1 - m) * 1.01 *
    worst.

    m is the total probability of the tokens with a value. ``worst`` [] is the largest possible
    loss, so a token without a value has a larger loss than any digit.
    """
    mass_N = digits.log_p_NT.exp().sum(dim=1)
    return mass_N * losses_N + 1.01 * worst * (1 - mass_N)


NUMBER_TERMS = Registry[NumberTerm]("numtok.models.number_terms", "number loss", NumberTerm)
