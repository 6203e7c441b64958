"""Modules that predict numbers from hidden states: a token head, a value head, and their scaling.

A text model applies them to the states of its trunk. In the Python library, they can follow any
module.
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
    """Base class for modules that predict numbers from hidden states, with a token head and a value
    head.

    ``head`` contains the settings of these heads; it is None if the model predicts labels instead
    of numbers.
    """

    head: Head | None
    token_head: nn.Module  #: [N, D] to logits [N, vocabulary]
    value_head: ValueReader | None
    #: Maps values of the encoding to values of the value head.
    scaling: Scaling

    def token_module(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module that predicts tokens: the head's own module, or ``words`` if it has
        none.

        ``width`` is the width of the hidden states. Raises UsageError if the head does not support
        the vocabulary.
        """
        if isinstance(self.head, TokenHead):
            return self.head.tokens(words, vocabulary, width)
        return words

    @property
    def is_exact(self) -> bool:
        """True if the head predicts numbers in raw units, with all of their digits."""
        return self.head is not None and self.head.exact

    @property
    def values_per_token(self) -> bool:
        """True if the value loss is averaged over the target tokens instead of over the
        numbers."""
        return isinstance(self.head, TokenHead) and self.head.per_token

    def value_loss(self, states_ND: Tensor, targets_NW: Tensor, tokens: int) -> Tensor:
        """Return the loss [] for numbers, computed from the states that predict them.

        ``tokens`` is the number of target tokens. If ``states_ND`` is empty, the loss is 0 and
        every weight has a gradient of 0.
        """
        assert self.value_head is not None
        # Not in bfloat16: 8 bits are too coarse for a value.
        with torch.autocast(states_ND.device.type, enabled=False):
            parameters = self.value_head(states_ND.float())
        if len(targets_NW):
            each = self.value_head.losses(parameters, targets_NW)
            return each.sum() / tokens if self.values_per_token else each.mean()
        return sum((0 * p.sum() for p in self.value_head.parameters()), parameters.sum())

    def value_point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """Return [N]: the predicted values, normalized as in the encoding."""
        assert self.value_head is not None
        return self.scaling.inverse(self.value_head.point(parameters_NP))

    def channel(self, parameters_NP: Tensor) -> Channel:
        """Return the predicted values [N] in the form in which the model reads them as input
        values.

        If the head is exact, they are float64. Otherwise they are float32, and infinite if out of
        range.
        """
        values = self.value_point(parameters_NP)
        return values if self.is_exact else single(values)


def check_head(head: Head, scheme: Scheme) -> None:
    """Raise UsageError if the head cannot predict numbers that are encoded with the scheme."""
    if isinstance(scheme, ChannelScheme) and not isinstance(head, ValueHead):
        raise UsageError(
            f"--head {spec_of(head)} cannot be combined with {spec_of(scheme)}, whose tokens do "
            "not determine a number. Use a head that predicts values, such as "
            f"{scheme.defaults.head}"
        )
    if head.exact and splits_numbers(scheme):
        raise UsageError(
            f"--head {spec_of(head)} predicts whole numbers, but in {spec_of(scheme)} the token "
            "is a part of the number. Encode with xval or a scheme without a channel, "
            f"or use --head {scheme.defaults.head}"
        )


def lacks_digits(part: Embedder | Head, encoding: FittedNormalizer) -> bool:
    """Return True if an embedder or a head needs all digits of numbers, but the data is
    normalized."""
    needs_all = isinstance(part, Head | FeatureEmbedder) and part.exact
    return needs_all and not encoding.normalizer.identity


def own_scaling(head: ValueHead, values: NDArray[np.floating]) -> FittedNormalizer:
    """Fit the head's own normalizer to ``values`` [n], which are already normalized as in the
    encoding."""
    return fit(NORMALIZERS.build(head.normalizer), Moments.of(values.astype(np.float64)))


def calibration_of(
    reader: ValueReader, parameters_NP: Tensor, values: NDArray[np.float64]
) -> Calibration:
    """Measure the calibration of a head's predictive distribution, such as its standard deviation.

    ``parameters_NP`` are the head's predictions on held-out data, and ``values`` float64[N] the
    true values. The result is empty if the head needs no calibration, or if no prediction is
    finite.
    """
    valid = parameters_NP.isfinite().all(dim=1)  # NaN after an extreme input, such as 1e30
    if not isinstance(reader, CalibratedReader) or not valid.any():
        return {}
    return reader.calibrate(parameters_NP[valid], values[valid.cpu().numpy()])
