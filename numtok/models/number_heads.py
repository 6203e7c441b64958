"""What says numbers of hidden states: a token head, a value head, and the scaling between them.

A model of texts has them on its trunk; a head of the library stands behind any module.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Moments, Scaling, fit
from numtok.encoding.schemes.base import Channel, ChannelScheme, Scheme, splits_numbers
from numtok.errors import UsageError
from numtok.models.embedders.base import Embedder, FeatureEmbedder
from numtok.models.heads.base import (
    CalibratedReader,
    Calibration,
    Head,
    TokenHead,
    ValueHead,
    ValueReader,
)
from numtok.models.inputs import single
from numtok.models.vocabulary import Vocabulary
from numtok.registry import spec_of


class NumberHeads(nn.Module):
    """Modules that say numbers; ``head`` is what they are made of, None where labels are said."""

    head: Head | None
    token_head: nn.Module  #: [N, D] to logits [N, vocabulary]
    value_head: ValueReader | None
    #: From the values of the encoding to those of the value head.
    scaling: Scaling

    def says_tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module that says tokens: ``words``, unless the head has another one.

        Raises UsageError for a vocabulary that the head cannot speak.
        """
        if isinstance(self.head, TokenHead):
            return self.head.tokens(words, vocabulary, width)
        return words

    @property
    def is_exact(self) -> bool:
        """Whether the value head predicts all digits of numbers, in raw units."""
        return self.head is not None and self.head.exact

    @property
    def values_per_token(self) -> bool:
        """Whether the loss of values is a mean over the tokens that are learned, not numbers."""
        return isinstance(self.head, TokenHead) and self.head.per_token

    def value_loss(self, states_ND: Tensor, targets_NW: Tensor, tokens: int) -> Tensor:
        """[]: of numbers, from the states that predict them; ``tokens`` are learnt with them.

        Of no numbers 0, which gives every weight a gradient.
        """
        assert self.value_head is not None
        # Not in bfloat16, whose 8 bits are a grid that a value could not leave.
        with torch.autocast(states_ND.device.type, enabled=False):
            parameters = self.value_head(states_ND.float())
        if len(targets_NW):
            each = self.value_head.losses(parameters, targets_NW)
            return each.sum() / tokens if self.values_per_token else each.mean()
        return sum((0 * p.sum() for p in self.value_head.parameters()), parameters.sum())

    def value_point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """[N] the values, normalised as the encoding does, that a value head predicts."""
        assert self.value_head is not None
        return self.scaling.inverse(self.value_head.point(parameters_NP))

    def channel(self, parameters_NP: Tensor) -> Channel:
        """[N]: the values that stand beside tokens; in float32, infinite beyond what that holds,
        unless the head is exact."""
        values = self.value_point(parameters_NP)
        return values if self.is_exact else single(values)


def check_head(head: Head, scheme: Scheme) -> None:
    """Raise UsageError for a head that cannot say the numbers of a scheme."""
    if isinstance(scheme, ChannelScheme) and not isinstance(head, ValueHead):
        raise UsageError(
            f"--head {spec_of(head)} cannot read {spec_of(scheme)}, whose tokens alone do "
            f"not say a number; give one that reads values, such as {scheme.defaults.head}"
        )
    if head.exact and splits_numbers(scheme):
        raise UsageError(
            f"--head {spec_of(head)} learns whole numbers as they are in the text, and in "
            f"{spec_of(scheme)} the token says a part of each; encode with xval or a scheme "
            f"without a channel, or give --head {scheme.defaults.head}"
        )


def lacks_digits(part: Embedder | Head, encoding: FittedNormalizer) -> bool:
    """Return True if an embedder or a head needs all digits of a number and the data are scaled."""
    needs_all = part.exact if isinstance(part, Head) else isinstance(part, FeatureEmbedder)
    return needs_all and not encoding.normalizer.identity


def own_scaling(head: ValueHead, values: NDArray[np.floating]) -> FittedNormalizer:
    """The scaling of a head by its own normalisation, from numbers [n] as the encoding has them."""
    return fit(NORMALIZERS.build(head.normalizer), Moments.of(values.astype(np.float64)))


def calibration_of(
    reader: ValueReader, parameters_NP: Tensor, values: NDArray[np.float64]
) -> Calibration:
    """Return what a head's distribution needs, from predictions on data that were not learned and
    their true values float64[N]; nothing where it needs none or no prediction is finite."""
    valid = parameters_NP.isfinite().all(dim=1)  # beside a 1e30 that is seen they are NaN
    if not isinstance(reader, CalibratedReader) or not valid.any():
        return {}
    return reader.calibrate(parameters_NP[valid], values[valid.cpu().numpy()])
