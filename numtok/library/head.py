"""``numtok.head``: hidden states to numbers in raw units, for a model of your own."""

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
from numtok.encoding.normalizers.base import (
    FittedNormalizer,
    no_scaling,
    stored_normalizer,
)
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
from numtok.models.number_heads import (
    NumberHeads,
    calibration_of,
    check_head,
    own_scaling,
)
from numtok.models.settings import ScalingSettings
from numtok.models.steps import ParallelFill
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.column import Numerals
from numtok.registry import settings_of, spec_of

_LARGEST = 1 << 20  # bytes of what is kept beside the weights


class _HeadState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a head is beside its weights: kept with them by ``state_dict``."""

    scaling: ScalingSettings | None
    calibration: dict[str, float]


class _TrueNumbers(NamedTuple):
    """True numbers as a head learns them."""

    tokens: Ints  # [N, W] local ids
    which: NDArray[np.bool_]  # [N] those of which a value is learnt
    values: Floats  # [K] of these, as the value head has them


class NumberHead(NumberHeads):
    """A head with its scaling: what goes in and comes out are the numbers of the text.

    Of N numbers it takes the hidden states [N, D] at ``batch.where``; or [N, W, D] where the
    scheme writes W tokens for a number, of which a head that reads a value looks at the first.

    calibration
        What :meth:`calibrate` measured.
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
        self._says_tokens = not isinstance(head, ValueHead) or splits_numbers(inner.scheme)
        if isinstance(head, ValueHead):
            self.value_head = head.build(width)
        self._set_scaling(None)
        words: nn.Module = nn.Identity()
        if self._says_tokens:
            words = projection(width, inner.vocabulary_size, 1, bias=False)
        vocabulary = Vocabulary.of(inner)
        self.token_head = self.says_tokens(words, vocabulary, width)
        if self._says_tokens and inner.scheme.tokens_per_number is None:
            raise UsageError(
                f"--head {spec_of(head)} says each number by its tokens, and in "
                f"{spec_of(inner.scheme)} nobody knows how many these are; give a head that reads "
                "a value, such as mdn:5, or a scheme with as many for all, such as p1000"
            )

    def scale_by(self, truths: Any) -> None:
        """Have the value head learn numbers in the range of these, float64[n] in raw units.

        Nothing for heads that learn numbers as they are. Raises DataError where there is no finite
        one.
        """
        if not isinstance(self.head, ValueHead) or self.head.exact:
            return
        given = floats(truths, "truths")
        _, values = self._encoded(given)
        self._set_scaling(own_scaling(self.head, values))

    def _set_scaling(self, own: FittedNormalizer | None) -> None:
        """Set the scaling fitted to ``truths``, or the default one for None."""
        self._own = own
        self.scaling = no_scaling() if own is None else own

    def loss(self, hidden: Tensor, truths: Any) -> Tensor:
        """[]: the mean loss of N numbers, from the states [N, D] or [N, W, D] that predict them and
        the numbers float64[N] as they are in the text.

        Where tokens say the number, or its exponent, cross-entropy in nats; where a value head
        does, the head's own loss, of the scaled number; the sum of both where both do. What cannot
        be learnt as a value, an infinity, is left out of that. Of nothing 0, with gradients of 0.

        Raises UsageError for states of another shape, DataError for a truth that is NaN.
        """
        states = self._states(hidden)
        learnt = self._learnt(floats(truths, "truths", len(states)))
        losses = []
        if self._says_tokens:
            labels = torch.from_numpy(learnt.tokens.ravel() + self.codec.number_first)
            logits = self.token_head(states.flatten(0, 1)).float()
            labels = labels.to(logits.device)
            losses.append(F.cross_entropy(logits, labels) if len(labels) else logits.sum())
        if self.value_head is not None:
            assert isinstance(self.head, ValueHead)
            which = torch.from_numpy(learnt.which).to(states.device)
            targets = torch.from_numpy(self.head.targets(learnt.values)).to(states.device)
            tokens = learnt.tokens.size
            losses.append(self.value_loss(states[:, 0][which], targets, tokens))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def calibrate(self, hidden: Tensor, truths: Any) -> None:
        """Measure what the distribution needs, from states [N, D] or [N, W, D] of data that were
        not learnt and their numbers float64[N]; nothing for a head that needs nothing.

        ``scalar``, say, says one number, and its doubts are how far it is off here.
        Raises as :meth:`loss`, and DataError where there is nothing to measure by.
        """
        states = self._states(hidden)
        learnt = self._learnt(floats(truths, "truths", len(states)))
        if not isinstance(self.value_head, CalibratedReader):
            return
        which = torch.from_numpy(learnt.which).to(states.device)
        parameters = self.value_head(states[:, 0][which].float())
        self.calibration = calibration_of(self.value_head, parameters, learnt.values)
        if not self.calibration:
            raise DataError(
                f"none of the {len(states):,} numbers can be predicted as a finite one, so nothing "
                "can be measured; give other data, or train first"
            )

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> PredictedNumbers:
        """The distributions of N numbers in raw units, from states [N, D] or [N, W, D].

        Raises UsageError for states of another shape. A head that must be calibrated and is not
        says points alone.
        """
        states = self._states(hidden)
        count, width, _ = states.shape
        raw = self._raw
        if not self._says_tokens:
            assert self.value_head is not None
            parameters = self.value_head(states[:, 0].float())
            nothing = np.empty((count, 0), np.int64)
            reading = NumberReadings(nothing, np.ones(count, np.bool_), None, parameters)
            points = raw.points(parameters)
        else:
            steps = ParallelFill(states.flatten(0, 1), np.full(count, width))
            reader = Reader(model=self, codec=self.codec, grammar=self._grammar, constrained=True)
            reading = reader.read(steps, keep_logits=True)
            values, _, valid = raw.values(reading)
            points = np.where(valid, values, np.nan)
        return PredictedNumbers(
            raw=raw,
            reading=reading,
            points=points,
            calibration=self.calibration,
            why_none=self._why_none(raw),
        )

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self.codec.scheme)

    @cached_property
    def _raw(self) -> RawNumbers:
        """Made once: to list all numbers of a scheme takes its time."""
        return RawNumbers(self.codec, self, listed(self.codec, self, self._grammar))

    def _why_none(self, raw: RawNumbers) -> str | None:
        """Why there is no distribution; None where there is one."""
        assert self.head is not None
        spec = spec_of(self.head)
        if isinstance(self.head, ValueHead):
            if isinstance(self.value_head, CalibratedReader) and not self.calibration:
                return (
                    f"the head {spec} says one number and needs to know how far it is off; call "
                    "head.calibrate(hidden, truths) on data that were not learnt, or take .point()"
                )
        elif raw.support is None:
            return (
                f"the numbers of {spec_of(self.codec.scheme)} are too many to be listed, so there "
                "is no distribution over them; take .point(), or a head that reads a value"
            )
        return None

    def _states(self, hidden: Tensor) -> Tensor:
        """[N, W, D]; UsageError for other states than the head reads."""
        width = self.codec.scheme.tokens_per_number or 1
        shapes = [(self.width,), (width, self.width)]
        if self._says_tokens and width > 1:
            del shapes[0]
        if not isinstance(hidden, Tensor) or hidden.shape[1:] not in shapes or hidden.dim() < 2:
            given = list(hidden.shape) if isinstance(hidden, Tensor) else type(hidden).__name__
            expected = str(["N", *shapes[0]]).replace("'", "")
            raise UsageError(
                f"hidden must be a tensor {expected} (got {given}). Pass hidden[batch.where], of a "
                "model of that width" + (" and a batch that is not causal" * (len(shapes) == 1))
            )
        states = hidden if hidden.dim() == 3 else hidden[:, None]
        return states if self._says_tokens else states[:, :1]

    def _encoded(self, truths: Floats) -> tuple[Ints, Channel]:
        """The tokens [N, W] of numbers, -1 behind their ends, and what is learnt beside them
        [N], NaN for nothing."""
        if np.isnan(truths).any():
            place = int(np.flatnonzero(np.isnan(truths))[0])
            raise DataError(
                f"truth {place} is NaN, which cannot be learnt; a batch of mask='holes' is for "
                "prediction alone"
            )
        encoded = self.codec.encode_numbers(Numerals(truths), np.zeros(len(truths), np.bool_))
        lengths = encoded.lengths.astype(np.int64)
        inside = np.arange(int(lengths.max(initial=1))) < lengths[:, None]
        tokens = np.full(inside.shape, -1, np.int64)
        tokens[inside] = encoded.tokens
        if encoded.channel is None:
            return tokens, normalised_values(truths, self.codec.normalizer)
        return tokens, self._channel_values(tokens[:, 0], encoded.channel, truths)

    @cached_property
    def _channel_values(self) -> ChannelValues:
        assert isinstance(self.codec.scheme, ChannelScheme)
        return ChannelValues(self.codec.scheme, self.codec.normalizer)

    def _learnt(self, truths: Floats) -> _TrueNumbers:
        tokens, values = self._encoded(truths)
        which = ~np.isnan(values)
        if self.is_exact:
            return _TrueNumbers(tokens, which, truths[which])
        which &= np.isfinite(single(values))  # the channel of an exact scheme is float64
        return _TrueNumbers(tokens, which, self.scaling.forward(values[which].astype(np.float64)))

    def get_extra_state(self) -> Tensor:
        """uint8[bytes]: scaling and calibration, which ``state_dict`` keeps with the weights."""
        own = self._own
        scaling = None
        if own is not None:
            scaling = ScalingSettings(settings_of(own.normalizer), own.constants)
        content = msgspec.json.encode(_HeadState(scaling, self.calibration))
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """The inverse of :meth:`get_extra_state`; DataError for what it has not given."""
        try:
            content = state.cpu().numpy().tobytes()
            if len(content) > _LARGEST:
                raise ValueError(f"{len(content):,} bytes are too many")
            kept = msgspec.json.decode(content, type=_HeadState)
            own = None
            if kept.scaling is not None:
                own = stored_normalizer(kept.scaling.normalizer, kept.scaling.constants)
            elif learns_unit_interval(self.head):
                raise ValueError(f"it has no scaling, which {spec_of(self.head)} needs")
        except (AttributeError, ValueError) as error:
            raise DataError(
                f"the state of the head is damaged ({error}); save it again with state_dict()"
            ) from None
        self._set_scaling(own)
        self.calibration = kept.calibration


@as_arguments()
@typed
def head(spec: str, codec: TextCodec, *, width: int, truths: Any = None) -> NumberHead:
    """A head of the registry, such as ``scalar``, ``mdn:5``, ``riemann:256``, ``decoder:ud`` or,
    for schemes that write numbers by tokens alone, ``token``.

    width
        D of the hidden states.
    truths
        float64[n]: numbers like those to be predicted, in raw units, whose range the head scales
        its numbers to. Without them numbers are scaled as the codec has them, which heads of a
        range, as ``riemann`` is, cannot do with.

    >>> head = numtok.head("mdn:5", codec, width=128)
    >>> loss = head.loss(torch.zeros(2, 128), [6.0, -7.0])
    >>> head.predict(torch.zeros(2, 128)).quantiles([0.05, 0.95]).shape
    (2, 2)

    Raises UsageError for a spec that does not exist, a head that cannot say the numbers of the
    codec, and one that needs ``truths``; DataError where none of these is finite.
    """
    check_width(width)
    made = NumberHead(HEADS.build(spec), codec, width)
    if truths is not None:
        made.scale_by(truths)
    elif learns_unit_interval(made.head):
        raise UsageError(
            f"--head {spec_of(made.head)} says numbers of a range, which it must be told; give "
            "truths, the numbers to be learnt"
        )
    return made
