"""``numtok.head``: a module that predicts numbers in raw units from your own model's hidden
states."""

from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.arrays import Floats, Ints
from numtok.encoding.channel import ChannelValues, normalised_values
from numtok.encoding.grammar import Grammar
from numtok.encoding.normalizers.base import FittedNormalizer, no_scaling, stored_normalizer
from numtok.encoding.schemes.base import Channel, ChannelScheme, splits_numbers
from numtok.errors import DataError, UsageError
from numtok.evaluation.raw_numbers import RawNumbers, listed
from numtok.library.arguments import as_arguments, typed
from numtok.library.codec import TextCodec
from numtok.library.embedder import check_digits, check_width
from numtok.library.prediction import PredictedNumbers, floats
from numtok.models.decoding import NumberReadings, Reader
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Calibration,
    Head,
    ValueHead,
    learns_unit_interval,
    projection,
)
from numtok.models.inputs import single
from numtok.models.number_heads import NumberHeads, calibration_of, check_head, own_scaling
from numtok.models.precision import InFloat32
from numtok.models.settings import ScalingSettings
from numtok.models.steps import ParallelFill
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.column import Numerals
from numtok.registry import settings_of, spec_of

_LARGEST = 1 << 20  # bytes of the extra state saved with the weights


class _HeadState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """State of a head that is not a weight; ``state_dict`` saves it with them."""

    scaling: ScalingSettings | None
    calibration: dict[str, float]


class _TrueNumbers(NamedTuple):
    """True values as training targets of a head."""

    tokens: Ints  # [N, W] local ids
    which: NDArray[np.bool_]  # [N] True if the value head is trained on the number
    values: Floats  # [K] these numbers, scaled for the value head


class NumberHead(InFloat32, NumberHeads):
    """Module that predicts numbers, in the units of the text, from hidden states.

    To predict N numbers, pass the hidden states [N, D] at ``batch.where``, or [N, W, D] if the
    scheme writes W tokens per number. A value head uses only the first state of each number.

    Attributes
    ----------
    calibration : dict
        Constants measured by :meth:`calibrate`.
    """

    def __init__(self, head: Head, codec: TextCodec, width: int) -> None:
        super().__init__()
        inner = codec.inner
        check_head(head, inner.scheme)
        check_digits("head", head, codec)
        self.head = head
        self.codec = inner
        self.width = width
        self.calibration: Calibration = {}
        self.value_head = None
        self._predicts_tokens = not isinstance(head, ValueHead) or splits_numbers(inner.scheme)
        if isinstance(head, ValueHead):
            self.value_head = head.build(width)
        self._set_scaling(None)
        words: nn.Module = nn.Identity()
        if self._predicts_tokens:
            words = projection(width, inner.vocabulary_size, 1, bias=False)
        vocabulary = Vocabulary.of(inner)
        self.token_head = self.token_module(words, vocabulary, width)
        if self._predicts_tokens and inner.scheme.tokens_per_number is None:
            raise UsageError(
                f"--head {spec_of(head)} needs a fixed number of tokens per number, and "
                f"{spec_of(inner.scheme)} has none. Use a head that predicts a value, such as "
                "mdn:5, or a scheme such as p1000"
            )

    def scale_by(self, truths: Any) -> None:
        """Scale the targets of the value head to the range of ``truths``, true values float64[n] in
        raw units.

        This has no effect on heads that predict tokens or are trained on unscaled numbers. Raises
        DataError if no value is finite.
        """
        if not isinstance(self.head, ValueHead) or self.head.exact:
            return
        _, values = self._encoded(floats(truths, "truths"))
        self._set_scaling(own_scaling(self.head, values))

    def _set_scaling(self, own: FittedNormalizer | None) -> None:
        """Set the scaling fitted to ``truths``, or the default scaling if it is None."""
        self._own = own
        self.scaling = no_scaling() if own is None else own

    def loss(self, hidden: Tensor, truths: Any) -> Tensor:
        """Return the mean loss over N numbers, a scalar [].

        If the head predicts both tokens and a value, the loss is the sum of the cross-entropy of
        the tokens, in nats, and the loss of the value head on the scaled numbers. Infinities are
        left out of the value loss. The loss of an empty batch is 0, with zero gradients.

        Parameters
        ----------
        hidden : Tensor
            Hidden states [N, D] or [N, W, D] that predict the numbers.
        truths : array
            True values float64[N], as written in the text.

        Raises
        ------
        UsageError
            If the states have the wrong shape.
        DataError
            If a true value is NaN.
        """
        states = self._states(hidden)
        true = self._targets(floats(truths, "truths", len(states)))
        losses = []
        if self._predicts_tokens:
            labels = torch.from_numpy(true.tokens.ravel() + self.codec.number_first)
            logits = self.token_head(states.flatten(0, 1).float()).float()
            labels = labels.to(logits.device)
            losses.append(F.cross_entropy(logits, labels) if len(labels) else logits.sum())
        if self.value_head is not None:
            assert isinstance(self.head, ValueHead)
            which = torch.from_numpy(true.which).to(states.device)
            targets = torch.from_numpy(self.head.targets(true.values)).to(states.device)
            tokens = true.tokens.size
            losses.append(self.value_loss(states[:, 0][which], targets, tokens))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def calibrate(self, hidden: Tensor, truths: Any) -> None:
        """Measure the constants of the predicted distribution on held-out data.

        For example, ``scalar`` predicts a single value, and the spread of its errors on this data
        becomes its uncertainty. The method has no effect on heads without such constants.

        Parameters
        ----------
        hidden : Tensor
            Hidden states [N, D] or [N, W, D] for data that the model was not trained on.
        truths : array
            True values float64[N].

        Raises
        ------
        UsageError
            If the states have the wrong shape.
        DataError
            If a true value is NaN, or if no prediction is finite.
        """
        states = self._states(hidden)
        true = self._targets(floats(truths, "truths", len(states)))
        if not isinstance(self.value_head, CalibratedReader):
            return
        which = torch.from_numpy(true.which).to(states.device)
        # Not in bfloat16, here and below: 8 bits are too coarse for a value.
        with torch.autocast(states.device.type, enabled=False):
            parameters = self.value_head(states[:, 0][which].float())
            self.calibration = calibration_of(self.value_head, parameters, true.values)
        if not self.calibration:
            raise DataError(
                f"none of the {len(states):,} predictions is finite, so the head cannot be "
                "calibrated. Pass other data, or train longer first"
            )

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> PredictedNumbers:
        """Predict N numbers, in raw units, from hidden states [N, D] or [N, W, D].

        Distributions are predicted as well, with two exceptions: a head that needs calibration
        predicts only points until :meth:`calibrate` is called, and so does a token head whose
        scheme has too many numbers to list. Raises UsageError if the states have the wrong shape.
        """
        states = self._states(hidden)
        with torch.autocast(states.device.type, enabled=False):
            reading, points = self._reading(states)
        return PredictedNumbers(
            raw=self._raw,
            reading=reading,
            points=points,
            calibration=self.calibration,
            why_none=self._why_none(self._raw),
        )

    def _reading(self, states: Tensor) -> tuple[NumberReadings, Floats]:
        """Return the outputs of the heads for states [N, W, D], and the predicted numbers [N], NaN
        for outputs that are not numbers."""
        count, width, _ = states.shape
        if not self._predicts_tokens:
            assert self.value_head is not None
            parameters = self.value_head(states[:, 0].float())
            nothing = np.empty((count, 0), np.int64)
            reading = NumberReadings(nothing, np.ones(count, np.bool_), None, parameters)
            return reading, self._raw.points(parameters)
        steps = ParallelFill(states.flatten(0, 1), np.full(count, width))
        reader = Reader(model=self, codec=self.codec, grammar=self._grammar, constrained=True)
        reading = reader.read(steps, keep_logits=True)
        values, _, valid = self._raw.values(reading)
        return reading, np.where(valid, values, np.nan)

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self.codec.scheme)

    @cached_property
    def _raw(self) -> RawNumbers:
        """Build the list of a scheme's numbers once, since that is slow."""
        return RawNumbers(self.codec, self, listed(self.codec, self, self._grammar))

    def _why_none(self, raw: RawNumbers) -> str | None:
        """Return the reason for having no distribution; None if there is one."""
        assert self.head is not None
        spec = spec_of(self.head)
        if isinstance(self.head, ValueHead):
            if isinstance(self.value_head, CalibratedReader) and not self.calibration:
                return (
                    f"head {spec} is not calibrated, so it has no distribution. Call "
                    "head.calibrate(hidden, truths) on held-out data, or use .point()"
                )
        elif raw.support is None:
            return (
                f"{spec_of(self.codec.scheme)} has too many numbers for a distribution over all "
                "of them. Use .point(), or a head that predicts a value, such as mdn:5"
            )
        return None

    def _states(self, hidden: Tensor) -> Tensor:
        """Return the states as [N, W, D].

        Raises UsageError if the head does not accept their shape.
        """
        width = self.codec.scheme.tokens_per_number or 1
        shapes = [(self.width,), (width, self.width)]
        if self._predicts_tokens and width > 1:
            del shapes[0]
        if not isinstance(hidden, Tensor) or hidden.shape[1:] not in shapes or hidden.dim() < 2:
            actual = list(hidden.shape) if isinstance(hidden, Tensor) else type(hidden).__name__
            expected = str(["N", *shapes[0]]).replace("'", "")
            raise UsageError(
                f"hidden must be a tensor {expected} (got {actual}). Pass hidden[batch.where] of "
                "a model of that width" + (" and a batch that is not causal" * (len(shapes) == 1))
            )
        states = hidden if hidden.dim() == 3 else hidden[:, None]
        return states if self._predicts_tokens else states[:, :1]

    def _encoded(self, truths: Floats) -> tuple[Ints, Channel]:
        """Return the tokens [N, W] of numbers, padded with -1, and their scaled values [N], NaN
        where there is none.
        """
        if np.isnan(truths).any():
            index = int(np.flatnonzero(np.isnan(truths))[0])
            raise DataError(
                f"truths[{index}] is NaN, which cannot be a training target. Use batches of "
                "mask='holes' only for prediction"
            )
        self.codec.normalizer.at(None)  # which of the truths are in answers is unknown
        outside = np.zeros(len(truths), np.bool_)
        encoded = self.codec.encode_numbers(Numerals(truths).of_texts(outside))
        lengths = encoded.lengths.astype(np.int64)
        inside = np.arange(int(lengths.max(initial=1))) < lengths[:, None]
        tokens = np.full(inside.shape, -1, np.int64)
        tokens[inside] = encoded.tokens
        if encoded.channel is None:
            return tokens, normalised_values(truths, self.codec.normalizer)
        return tokens, self._channel_values(tokens[:, 0], encoded.channel, truths, outside)

    @cached_property
    def _channel_values(self) -> ChannelValues:
        assert isinstance(self.codec.scheme, ChannelScheme)
        return ChannelValues(self.codec.scheme, self.codec.normalizer)

    def _targets(self, truths: Floats) -> _TrueNumbers:
        tokens, values = self._encoded(truths)
        which = ~np.isnan(values)
        if self.is_exact:
            return _TrueNumbers(tokens, which, truths[which])
        which &= np.isfinite(single(values))  # the channel of an exact scheme is float64
        return _TrueNumbers(tokens, which, self.scaling.forward(values[which].astype(np.float64)))

    def get_extra_state(self) -> Tensor:
        """Return the scaling and the calibration as bytes, uint8[bytes].

        ``state_dict`` saves them with the weights.
        """
        own = self._own
        scaling = (
            None if own is None else ScalingSettings(settings_of(own.normalizer), own.constants)
        )
        content = msgspec.json.encode(_HeadState(scaling, self.calibration))
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Restore the state from :meth:`get_extra_state`.

        Raises DataError if the state is damaged.
        """
        try:
            content = state.cpu().numpy().tobytes()
            if len(content) > _LARGEST:
                raise ValueError(f"{len(content):,} bytes, more than {_LARGEST:,}")
            saved = msgspec.json.decode(content, type=_HeadState)
            own = None
            if saved.scaling is not None:
                own = stored_normalizer(saved.scaling.normalizer, saved.scaling.constants)
            elif learns_unit_interval(self.head):
                raise ValueError(f"no scaling, which {spec_of(self.head)} needs")
        except (AttributeError, ValueError) as error:
            raise DataError(
                f"the saved state of the head is damaged ({error}). Save it again with state_dict()"
            ) from None
        self._set_scaling(own)
        self.calibration = saved.calibration


@as_arguments()
@typed
def head(spec: str, codec: TextCodec, *, width: int, truths: Any = None) -> NumberHead:
    """Build a head from its spec, such as ``scalar``, ``mdn:5``, ``riemann:256`` or ``decoder:ud``.

    The head ``token`` predicts the number tokens of the scheme.

    Parameters
    ----------
    spec : str
        Name of the head, optionally with settings.
    codec : numtok.Codec
        Codec that encodes the batches.
    width : int
        Width D of the hidden states.
    truths : array, optional
        Training targets, float64[n] in raw units. The head is scaled to their range. If omitted,
        the scaling of the codec is used. Required for heads with a bounded range, such as
        ``riemann``.

    Raises
    ------
    UsageError
        If the spec is unknown, if the head cannot represent the codec's numbers, or if ``truths``
        is missing.
    DataError
        If no value in ``truths`` is finite.

    Examples
    --------
    >>> head = numtok.head("mdn:5", codec, width=128)
    >>> loss = head.loss(torch.zeros(2, 128), [6.0, -7.0])
    >>> head.predict(torch.zeros(2, 128)).quantiles([0.05, 0.95]).shape
    (2, 2)
    """
    check_width(width)
    number_head = NumberHead(HEADS.build(spec), codec, width)
    if truths is not None:
        number_head.scale_by(truths)
    elif learns_unit_interval(number_head.head):
        raise UsageError(
            f"--head {spec_of(number_head.head)} needs truths, the training targets, to set its "
            "range. Pass truths=..."
        )
    return number_head
