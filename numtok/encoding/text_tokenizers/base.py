"""base: interface for text tokenizers, which convert pieces of text to token ids and back.

The conversion is lossless, byte for byte. A piece is the text between two numbers. A tokenizer is a
frozen dataclass whose fields are its settings (``words:8192``). :meth:`TextTokenizer.fit` returns a
:class:`FittedTokenizer` with a vocabulary, which depends only on the sample.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Int32s, UInt8s, UInt32s
from numtok.encoding.segments import Segments, marked
from numtok.encoding.texts import Texts
from numtok.registry import Registry


class TokenRuns(NamedTuple):
    """Tokens of ``n`` pieces of text. Piece i has the tokens ``ids[bounds[i]:bounds[i + 1]]``."""

    ids: UInt32s
    bounds: Int32s  # [n + 1]


class NumberTokens(NamedTuple):
    """Tokens of ``k`` numbers, as local ids of a scheme. Adding ``first`` gives ids in the whole
    vocabulary."""

    ids: UInt32s  # [number tokens]
    lengths: Int32s  # [k]
    first: int


class Woven(NamedTuple):
    """Text and tokens of ``m`` segments with ``k`` numbers, in which the tokens of the numbers are
    inserted between those of the text."""

    text: UInt8s  # [bytes], escaped, numbers replaced by [NUM]
    text_bounds: Int32s  # [m + 1]
    tokens: NDArray[np.uint16] | UInt32s  # ids of the whole vocabulary
    token_bounds: Int32s  # [m + 1]
    places: Int32s  # [k] index of each number's first token within its segment


class FittedTokenizer(ABC):
    """Base class for text tokenizers that have a vocabulary. Token ids are local, 0 to
    ``len(vocabulary()) - 1``."""

    @abstractmethod
    def vocabulary(self) -> list[str]:
        """Return the token names, indexed by id. A byte that is not printable text is shown as
        ``<0xFF>``."""

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """Bytes of each token, indexed by id."""
        ids = range(len(self.vocabulary()))
        return [self.decode(np.array([token], np.uint32)) for token in ids]

    @cached_property
    def missing_bytes(self) -> Bools:
        """bool[256], True for each byte without a token of its own.

        Vocabularies of published models often lack control bytes, which their training data did not
        contain.
        """
        missing = np.ones(256, np.bool_)
        missing[[token[0] for token in self.token_bytes if len(token) == 1]] = False
        return missing

    def unwritable(self, texts: Texts) -> dict[int, str]:
        """Find the texts that cannot be restored by decoding their tokens. Returns the reason for
        each of these texts, keyed by its index in ``texts``.

        Only texts that contain one of :attr:`missing_bytes` are checked.
        """
        if not self.missing_bytes.any():
            return {}
        data, bounds = texts
        at = np.flatnonzero(self.missing_bytes[data])
        at = at[(at >= bounds[0]) & (at < bounds[-1])]
        rows, first = np.unique(np.searchsorted(bounds, at, "right") - 1, return_index=True)
        reasons = {}
        for row, byte in zip(rows.tolist(), data[at[first]].tolist(), strict=True):
            text = data[bounds[row] : bounds[row + 1]]
            ids = self.encode(Texts(text, np.array([0, len(text)], np.int32))).ids
            if self.decode(ids) != text.tobytes():
                reasons[row] = f"the text has the byte 0x{byte:02X}, which the text tokenizer lacks"
        return reasons

    @abstractmethod
    def encode(self, pieces: Texts) -> TokenRuns:
        """Tokenize each piece separately, so that no token crosses a number."""

    def weave(
        self, segments: Segments, numbers: NumberTokens, first: int, dtype: type[np.unsignedinteger]
    ) -> Woven:
        """Tokenize the text between the numbers, and insert the tokens of the numbers.

        first
            Id of the first text token.
        dtype
            Type of the resulting ids.
        """
        from numtok.encoding import interleave

        pieces = segments.pieces()
        own = self.encode(pieces)
        count = len(segments.counts)
        tokens = np.empty(len(own.ids) + len(numbers.ids), dtype)
        token_bounds = np.empty(count + 1, np.int32)
        places = np.empty(len(numbers.lengths), np.int32)
        interleave.interleave(segments.counts, *own, *numbers, first, tokens, token_bounds, places)
        return Woven(*marked(pieces, segments.counts), tokens, token_bounds, places)

    @abstractmethod
    def decode(self, ids: UInt32s) -> bytes:
        """Return the bytes of the given tokens [n]. Raises IndexError if an id is outside the
        vocabulary."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the JSON values that :meth:`TextTokenizer.load` needs, in addition to the
        settings."""

    @abstractmethod
    def huggingface(self) -> dict[str, Any]:
        """Return the same tokenizer as a Hugging Face ``tokenizer.json`` dictionary."""


class TextTokenizer(ABC):
    """Base class for text tokenizers. Subclasses are final frozen dataclasses whose fields are
    settings."""

    revision: ClassVar[int]
    positional: ClassVar[str]

    @property
    @abstractmethod
    def needs_sample(self) -> bool:
        """True if :meth:`fit` needs a sample of the text."""

    @abstractmethod
    def fit(self, sample: Texts) -> FittedTokenizer:
        """Return the tokenizer with a vocabulary chosen from a sample of the text. The same sample
        gives the same vocabulary on any machine."""

    @abstractmethod
    def load(self, state: dict[str, Any]) -> FittedTokenizer:
        """Restore a fitted tokenizer from :meth:`FittedTokenizer.state`. Raises UsageError or
        ValueError if the state is invalid."""


TEXT_TOKENIZERS: Registry[TextTokenizer] = Registry(
    "numtok.encoding.text_tokenizers", "text tokenizer"
)
