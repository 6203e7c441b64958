"""decoder: a small transformer that generates each number token by token."""

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
    """A causal transformer that decodes a number from one projected feature vector.

    codec
        Scheme for the tokens of a number: ``ud`` (raw numbers), ``nd`` or ``hamming`` (the training
        range scaled to [0, 1]), or another scheme with a fixed number of tokens per number.
    base, length, exponent, mantissa, repeat
        Settings of the codec, if it has them; 0 keeps the codec's default.
    layers, heads, width
        Size of the transformer. The small transformer in the paper (Decoding-based Regression,
        Section 3.2) has about 22,000 parameters. This is less than 10% of a model whose trunk has 5
        layers of width 256 or 3 of width 512, and a quarter of a model with 2 layers of width 256.
    masked
        In the loss, normalize probabilities over only the tokens that the codec allows. The public
        code of the paper does not; its loss also counts the probability of invalid tokens. Decoding
        is always masked, and therefore the probabilities of all numbers sum to 1.

    The loss is -log p of all tokens together, in nats. ``token-nll`` is this loss per token, and
    lower if it is ``masked``; all other likelihoods are those of decoding.

    The blocks are those of numtok's transformer: layer norm before each part, GELU, and 4 ``width``
    hidden units. The public code normalizes after each part and uses ReLU and ``width`` units.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Decoding-based Regression, Sections 3 and 4, Appendix D; public code"
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
    masked: bool = False

    def __post_init__(self) -> None:
        available = {field.name for field in fields(type(SCHEMES.build(self.codec)))}  # type: ignore[arg-type]
        for name in _OF_CODEC:
            if getattr(self, name) and name not in available:
                applicable = [name for name in _OF_CODEC if name in available]
                raise UsageError(
                    f"decoder: {name}={getattr(self, name)} does not apply to {self.codec}; "
                    f"its settings: {', '.join(applicable) or 'none'}"
                )
        automaton(self.scheme)
        self._shape  # noqa: B018  # rejects impossible sizes

    @property
    def scheme(self) -> Scheme:
        """The scheme named by ``codec``, built with the settings of this head that are not 0."""
        settings = [f"{name}={getattr(self, name)}" for name in _OF_CODEC if getattr(self, name)]
        return SCHEMES.build(",".join([self.codec, *settings]))

    @property
    def _shape(self) -> Shape:
        context = self.scheme.tokens_per_number
        assert context is not None
        return Shape(layers=self.layers, heads=self.heads, width=self.width, context=context)

    @property
    def normalizer(self) -> str:
        return self.scheme.defaults.normalizer

    @property
    def bounded(self) -> bool:
        return self.scheme.unit_interval

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return int64[N, 2 K]: the K tokens of each number, then the state of the codec's
        automaton before each token."""
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
