"""What comes next is chosen in two steps: text or numeral, then which."""

from typing import cast

import torch
from torch import Tensor, nn

from numtok.models.heads.base import projection
from numtok.models.vocabulary import Vocabulary


class Selector(nn.Module):
    """log p(z) + log p(token | z) of every token (NumGPT, Equations 7 to 10), without bias.

    z = 0 is text, z = 1 a numeral: one of the tokens with a value beside it. ``select`` is W_z,
    ``words`` W, and ``exponents`` W_e. ``words`` has a row for numerals, too, that says nothing, so
    that it can be the table by which tokens go in.
    """

    def __init__(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        self.words = words
        self.select = projection(width, 2, 1, bias=False)
        self.exponents = projection(width, len(vocabulary.numbers), 1, bias=False)
        self.register_buffer("numerals", torch.from_numpy(vocabulary.numbers), persistent=False)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, vocabulary], float32: log-probabilities, which sum to 1."""
        numerals = cast(Tensor, self.numerals)
        kind_N2 = self.select(hidden_ND).float().log_softmax(dim=1)
        words_NV = self.words(hidden_ND).float().index_fill(1, numerals, -torch.inf)
        exponents_NE = self.exponents(hidden_ND).float().log_softmax(dim=1)
        of_words_NV = words_NV.log_softmax(dim=1) + kind_N2[:, :1]
        joint_NV: Tensor = of_words_NV.index_copy(1, numerals, exponents_NE + kind_N2[:, 1:])
        return joint_NV
