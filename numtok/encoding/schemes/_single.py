"""What schemes share that write one token a number, with a value beside it in the channel."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import Channel, DecodedNumbers, Failure, Next, Scheme
from numtok.registry import name_of


class SingleTokenScheme(Scheme):
    """One token a number; leaves say what it means beside a value."""

    channel: ClassVar[bool] = True

    @property
    def tokens_per_number(self) -> int:
        return 1

    @abstractmethod
    def read(
        self, tokens: NDArray[np.int64], channel: Channel
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """The values of numbers by their tokens, each of the vocabulary, and their failures."""

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: Channel | None = None,
    ) -> DecodedNumbers:
        if channel is None:
            raise ValueError(f"{name_of(self)}: decoding needs the value channel")
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        single = np.flatnonzero(lengths == 1)
        token = tokens.astype(np.int64)[np.cumsum(lengths, dtype=np.int64)[single] - 1]
        known = token < len(self.vocabulary())
        single = single[known]
        values[single], failures[single] = self.read(token[known], channel[single])
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        return Next(np.full(len(self.vocabulary()), not prefix), may_end=bool(prefix))
