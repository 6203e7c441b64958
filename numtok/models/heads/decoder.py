"""decoder: a small transformer that writes the number as tokens of a codec."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.automaton import automaton
from numtok.encoding.schemes.base import SCHEMES, Scheme
from numtok.errors import UsageError
from numtok.models.attention import Shape
from numtok.models.distributions.decoder_cells import nearest_tokens
from numtok.models.heads._decoder import DecoderReader
from numtok.models.heads.base import ValueHead, ValueReader

_OF_CODEC = ("base", "length", "exponent", "mantissa", "repeat")


@dataclass(frozen=True)
class DecoderHead(ValueHead):
    """A causal transformer whose first position is the projected feature vector (Section 3.2).

    codec
        A scheme whose numbers have a fixed number of tokens: ``ud``, which writes numbers as they
        are, ``nd`` or ``hamming``, which write the range of the train split as [0, 1], or another.
    base, length, exponent, mantissa, repeat
        The codec's settings, where it has them; its own defaults for 0.
    layers, heads, width
        Of the transformer. The paper's small one has some 22,000 parameters: under 10% of a model
        whose trunk has 5 layers of 256 or 3 of 512, a quarter beside 2 layers of 256.
    masked
        Whether tokens that cannot follow are left out of the loss, too. Reading always leaves them
        out and normalises over the others, so that the numbers share a probability of 1.

    The loss is -log p of all tokens together, in nats.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Decoding-based Regression, Sections 3 and 4, Appendix D"
    by_density: ClassVar[bool] = False  # it is one of cells, whose widths differ
    positional: ClassVar[str] = "codec"
    checked_at: ClassVar[str] = "decoder:ud"
    codec: str
    base: int = 0
    length: int = 0
    exponent: int = 0
    mantissa: int = 0
    repeat: int = 0
    layers: int = 1
    heads: int = 1
    width: int = 32
    masked: bool = True

    def __post_init__(self) -> None:
        there = {field.name for field in fields(type(SCHEMES.build(self.codec)))}  # type: ignore[arg-type]
        for name in _OF_CODEC:
            if getattr(self, name) and name not in there:
                known = [name for name in _OF_CODEC if name in there]
                raise UsageError(
                    f"decoder: {name}={getattr(self, name)} means nothing to {self.codec}; "
                    f"it has {', '.join(known) or 'none of these settings'}"
                )
        automaton(self.scheme)
        self._shape  # noqa: B018  # refuses impossible sizes

    @property
    def scheme(self) -> Scheme:
        """That of the ``codec``, with those of its settings that are given."""
        given = [f"{name}={getattr(self, name)}" for name in _OF_CODEC if getattr(self, name)]
        return SCHEMES.build(",".join([self.codec, *given]))

    @property
    def _shape(self) -> Shape:
        context = self.scheme.tokens_per_number
        assert context is not None
        return Shape(layers=self.layers, heads=self.heads, width=self.width, context=context)

    @property
    def normalizer(self) -> str:
        return self.scheme.normalizer

    @property
    def bounded(self) -> bool:
        return self.scheme.unit_interval

    @property
    def scaled(self) -> bool:
        return self.bounded

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """int64[N, 2 K]: the tokens, and the state of the codec before each."""
        tokens, _ = nearest_tokens(self.scheme, values)
        return np.concatenate([tokens, automaton(self.scheme).states(tokens)], axis=1)

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        _, beyond = nearest_tokens(self.scheme, values)
        return ~beyond

    def build(self, width: int) -> ValueReader:
        scheme = self.scheme
        return DecoderReader(width, scheme, automaton(scheme), self._shape, self.masked)

    def describe(self) -> str:
        return f"token probabilities of a decoder of {self.codec}, uniform within its cells"
