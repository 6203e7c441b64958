"""The contract of a number loss: a term of an objective that knows what tokens are worth.

Cross-entropy takes 9 in place of 3 for as wrong as 4. A number loss looks, where the next token is
one of digits, at the probabilities of all tokens of digits and at their values.

Shapes: N places, T tokens that have a value, V tokens.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.errors import UsageError
from numtok.models.vocabulary import Vocabulary
from numtok.plugins import MemberCall, a
from numtok.registry import Registry, name_of


class NumberTerm(ABC):
    """A number loss. Subclasses are final frozen dataclasses; their fields are settings.

    weight
        With which its mean over the places is added to the cross-entropy.
    replaces
        Whether it stands in place of the cross-entropy of these tokens instead.
    """

    revision: ClassVar[int]
    source: ClassVar[str]
    replaces: ClassVar[bool] = False

    @property
    @abstractmethod
    def weight(self) -> float: ...

    @abstractmethod
    def losses(self, log_p_NT: Tensor, values_T: Tensor, truth_N: Tensor) -> Tensor:
        """[N]: of each place.

        ``log_p``: of the tokens with a value among all tokens; ``values``: theirs, which rise;
        ``truth``: the value of the right one.
        """


class NumberTermModule(nn.Module):
    """A number loss, and the values of the tokens of a vocabulary: those of digits, as integers.

    Raises UsageError where there are fewer than two.
    """

    def __init__(self, term: NumberTerm, vocabulary: Vocabulary) -> None:
        super().__init__()
        named = [
            (int(name), vocabulary.first + index)
            for index, name in enumerate(vocabulary.names)
            if name.isascii() and name.isdigit()
        ]
        if len(named) < 2:
            raise UsageError(
                f"number-loss={name_of(term)} is of tokens that are digits, and these data have "
                "none; encode with --scheme digits, or leave number-loss out"
            )
        self.term = term
        values, ids = (np.array(column) for column in zip(*sorted(named), strict=True))
        self._is_valued = np.isin(np.arange(vocabulary.size), ids)
        of_id = np.zeros(vocabulary.size)
        of_id[ids] = values
        for name, array in (
            ("ids", ids),
            ("values", values.astype(np.float32)),
            ("of_id", of_id.astype(np.float32)),
            ("is_valued", self._is_valued),
        ):
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def scale(self, labels: NDArray[np.int64]) -> float:
        """How many labels [K] there are to each one that has a value; 0 where none has."""
        valued = int(self._is_valued[labels].sum())
        return len(labels) / valued if valued else 0.0

    def forward(self, logits_NV: Tensor, labels_N: Tensor, scale: Tensor | float) -> Tensor:
        """[]: what is added to the mean cross-entropy of some labels; ``scale`` as :meth:`scale`
        has it, of these or of all that are learnt at once."""
        log_p_NV = logits_NV.log_softmax(dim=1)
        log_p_NT = log_p_NV[:, cast(Tensor, self.ids)]
        truth_N = cast(Tensor, self.of_id)[labels_N]
        each_N = self.term.losses(log_p_NT, cast(Tensor, self.values), truth_N)
        if self.term.replaces:
            each_N, scale = each_N + log_p_NV.gather(1, labels_N[:, None])[:, 0], 1.0
        valued_N = cast(Tensor, self.is_valued)[labels_N]
        total = torch.where(valued_N, each_N, 0.0).sum()
        return total * self.term.weight * scale / max(1, len(labels_N))


def among_themselves(log_p_NT: Tensor) -> Tensor:
    """[N, T]: probabilities of tokens with a value, given that it is one of them."""
    return log_p_NT.softmax(dim=1)


def reweighed(losses_N: Tensor, log_p_NT: Tensor, values_T: Tensor, power: int) -> Tensor:
    """[N]: times the probability m of any token with a value, and 1.01 times the largest loss that
    there is (a distance to a power) times 1 - m: what is no number is worse than any."""
    mass_N = log_p_NT.exp().sum(dim=1)
    worst = (values_T[-1] - values_T[0]) ** power
    return mass_N * losses_N + 1.01 * worst * (1 - mass_N)


def _losses(asked: MemberCall, answer: Any) -> Any:
    log_p_NT, _, _ = asked.given
    return asked.array(answer, "Tensor float[N]", N=len(log_p_NT))


NUMBER_TERMS: Registry[NumberTerm] = Registry(
    "numtok.models.number_terms",
    "number loss",
    {"weight": a(float), "replaces": a(bool), "losses": _losses},
)
