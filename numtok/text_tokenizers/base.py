"""The contract of a text tokenizer: pieces of text to token ids and back, byte for byte.

A piece is the text between two numbers. A tokenizer is a frozen dataclass of
settings (``words:8192``); :meth:`TextTokenizer.fit` turns it into a
:class:`Fitted` one with a vocabulary, a pure function of the sample.
"""

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.registry import Registry


class Pieces(NamedTuple):
    """``n`` pieces of text: piece i is ``data[bounds[i]:bounds[i + 1]]``, valid UTF-8."""

    data: NDArray[np.uint8]  # [bytes]
    bounds: NDArray[np.int32]  # [n + 1]

    def strings(self) -> list[str]:
        """The pieces as strings."""
        whole, bounds = self.data.tobytes(), self.bounds.tolist()
        return [whole[start:end].decode() for start, end in pairwise(bounds)]


NO_PIECES = Pieces(np.empty(0, np.uint8), np.zeros(1, np.int32))


class Tokens(NamedTuple):
    """The tokens of ``n`` pieces: those of piece i are ``ids[bounds[i]:bounds[i + 1]]``."""

    ids: NDArray[np.uint32]
    bounds: NDArray[np.int32]  # [n + 1]


class Fitted(ABC):
    """A text tokenizer with its vocabulary. Ids are local, 0 to ``len(vocabulary()) - 1``."""

    @abstractmethod
    def vocabulary(self) -> list[str]:
        """The tokens by id, as a person reads them; bytes that are no text are ``<0xFF>``."""

    @abstractmethod
    def encode(self, pieces: Pieces) -> Tokens:
        """Tokenise every piece by itself, so that no token crosses a number."""

    @abstractmethod
    def decode(self, ids: NDArray[np.uint32]) -> bytes:
        """The bytes that the tokens stand for; ids outside the vocabulary raise IndexError."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What :meth:`TextTokenizer.load` needs beside the settings: JSON values."""

    @abstractmethod
    def huggingface(self) -> dict[str, Any]:
        """The same tokenizer as a Hugging Face ``tokenizer.json`` dictionary."""


class TextTokenizer(ABC):
    """The settings of a text tokenizer. Subclasses are final frozen dataclasses."""

    revision: ClassVar[int]
    positional: ClassVar[str]

    @property
    @abstractmethod
    def needs_sample(self) -> bool:
        """False if :meth:`fit` looks at nothing."""

    @abstractmethod
    def fit(self, sample: Pieces) -> Fitted:
        """Choose the vocabulary; the same sample gives the same one, on any machine."""

    @abstractmethod
    def load(self, state: dict[str, Any]) -> Fitted:
        """The inverse of :meth:`Fitted.state`."""


TEXT_TOKENIZERS: Registry[TextTokenizer] = Registry("numtok.text_tokenizers", "text tokenizer")
