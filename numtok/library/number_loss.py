"""``numtok.number_loss``: a loss on the values of number tokens, for your own language model."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.codec import Codec
from numtok.encoding.token_texts import token_texts
from numtok.encoding.valued_tokens import ValuedTokens
from numtok.errors import UsageError, unknown
from numtok.library.arguments import as_arguments, typed
from numtok.library.codec import TextCodec
from numtok.models.number_terms.base import NUMBER_TERMS, NumberTerm, NumberTermModule
from numtok.models.vocabulary import Vocabulary

IGNORED = -100  # label of positions without a loss, as in PyTorch and transformers
REDUCTIONS = ("mean", "sum", "none")
_FEWEST = 2  # number tokens, below which no value is nearer than another


class NumberLoss(nn.Module):
    """Module that computes a number loss, which compares the values of predicted number tokens with
    the values of the labels.

    Call it with logits [B, L, V] and labels [B, L]. Labels that are not number tokens, and labels
    of -100, do not contribute to the loss.

    Attributes
    ----------
    weight : float or None
        Recommended weight when the loss is added to the cross-entropy, taken from the spec; None if
        the loss replaces the cross-entropy of number tokens.
    tokens : ValuedTokens
        The number tokens: ``tokens.ids`` [T] are their ids and ``tokens.values`` [T] their values.
    """

    def __init__(
        self, term: NumberTerm, tokens: ValuedTokens, *, reduction: str, shift: bool
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.weight = term.weight
        self.reduction, self.shift = reduction, shift
        self._columns = int(tokens.ids.max()) + 1  # fewest columns of logits
        # Larger labels, which are neither numbers nor points, are mapped to this id.
        self._last = max(self._columns, int(tokens.points.max(initial=0)) + 1)
        self._module = NumberTermModule(term, tokens, self._last + 1)

    @as_arguments()
    def forward(self, logits: Tensor, labels: Tensor, reduction: str | None = None) -> Tensor:
        """Compute the unweighted loss: a scalar [] or, if ``reduction`` is ``none``, [B, L].

        Parameters
        ----------
        logits : Tensor
            [B, L, V], floating-point. V may exceed the vocabulary of the tokenizer.
        labels : Tensor
            int64[B, L]: the tokens that the logits predict, each at the position of its logits or,
            if ``shift`` is set, one position later. Labels of -100 are ignored.
        reduction : {'mean', 'sum', 'none'}, optional
            Overrides the module's reduction. The mean is over number tokens; it is 0 if the labels
            contain no number tokens.

        Raises
        ------
        UsageError
            If the arguments have the wrong shape or type, if a label has no column in the logits,
            or if ``reduction`` is unknown.
        """
        reduction = _reduction(self.reduction if reduction is None else reduction)
        shape = labels.shape if isinstance(labels, Tensor) else ()
        logits, labels = self._aligned(logits, labels)
        each_K, at_K = self._losses(logits, labels)
        if reduction == "mean":
            return each_K.sum() / max(1, len(each_K))
        if reduction == "sum":
            return each_K.sum()
        losses_BL = each_K.new_zeros(labels.numel()).index_put((at_K,), each_K).view(labels.shape)
        return F.pad(losses_BL, (shape[1] - labels.shape[1], 0))

    @as_arguments()
    def with_cross_entropy(
        self, logits: Tensor, labels: Tensor, count: int | Tensor | None = None
    ) -> Tensor:
        """Compute the complete training loss, a scalar []: the mean cross-entropy of all labels
        plus ``weight`` times the mean number loss.

        If ``weight`` is None, as for ``smooth``, the number loss replaces the cross-entropy of
        number tokens. Raises UsageError under the same conditions as :meth:`forward`.

        Parameters
        ----------
        logits, labels : Tensor
            The same as for :meth:`forward`.
        count : int or Tensor, optional
            Number of labels in all batches of a step. Pass it if gradients are accumulated. If
            ``weight`` is None, the losses of the batches then add up to that of the step.
            Otherwise, they do so only if number tokens are the same fraction of the labels in each
            batch, because the mean number loss is that of the batch.
        """
        logits, labels = self._aligned(logits, labels)
        each_K, at_K = self._losses(logits, labels)
        kept = labels.flatten()
        own = max(1, int((kept != IGNORED).sum()))
        share = 1.0 if count is None else own / count
        if self.weight is None:  # the number loss replaces the cross-entropy of number tokens
            kept = kept.index_fill(0, at_K.to(kept.device), IGNORED)
        entropy = F.cross_entropy(
            logits.flatten(0, 1).float(), kept, ignore_index=IGNORED, reduction="sum"
        )
        if self.weight is None:
            return share * (entropy + each_K.sum()) / own
        return share * (entropy / own + self.weight * each_K.sum() / max(1, len(each_K)))

    def _aligned(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Check shapes and types. Return logits and labels aligned so that the logits at each
        position predict the label at the same position."""
        tensors = isinstance(logits, Tensor) and isinstance(labels, Tensor)
        if not tensors or logits.dim() != 3 or logits.shape[:2] != labels.shape:
            shapes = [
                list(one.shape) if isinstance(one, Tensor) else type(one).__name__
                for one in (logits, labels)
            ]
            raise UsageError(
                f"logits must be a tensor [B, L, V] and labels a tensor [B, L] (got {shapes[0]} "
                f"and {shapes[1]}). Pass outputs.logits and its labels"
            )
        if not logits.is_floating_point() or labels.dtype != torch.int64:
            raise UsageError(
                "logits must be floating-point and labels torch.int64 (got "
                f"{logits.dtype} and {labels.dtype}). Convert labels with labels.long()"
            )
        if logits.shape[2] < self._columns:
            raise UsageError(
                f"logits have {logits.shape[2]:,} columns, but the tokenizer has a number token "
                f"with id {self._columns - 1:,}. Pass the tokenizer of this model"
            )
        return (logits[:, :-1], labels[:, 1:]) if self.shift else (logits, labels)

    def _losses(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss at each number token [K], and their indices among all positions [K].

        Raises UsageError if a label has no column in the logits.
        """
        every, length, size = labels.cpu().numpy(), labels.shape[1], logits.shape[2]
        wrong = (every != IGNORED) & ((every < 0) | (every >= size))
        if wrong.any():
            raise UsageError(
                f"labels must be from 0 to {size - 1:,}, or {IGNORED} to ignore a position (got "
                f"{every[wrong][0]:,}). Use the labels that belong to these logits"
            )
        at = np.flatnonzero(every != IGNORED)  # [N] indices of the labels among all positions
        known = np.minimum(every.flatten()[at], self._last)
        # Positions have a gap between rows, so that numbers in two rows are never joined.
        places = self._module.places(known, at + at // max(1, length))
        device, valued = logits.device, self._module.valued(known)
        if self._module.get_buffer("ids").device != device:
            self._module.to(device)
        at_K, labels_K, places_K2 = (
            torch.from_numpy(array[valued]).to(device) for array in (at, known, places)
        )
        logits_KV = logits.flatten(0, 1)[at_K].float()
        log_p_KV = logits_KV.log_softmax(dim=1)
        return self._module.losses(logits_KV, log_p_KV, labels_K, places_K2), at_K


def _reduction(name: str) -> str:
    if name not in REDUCTIONS:
        raise unknown("reduction", name, REDUCTIONS)
    return name


@as_arguments()
@typed
def number_loss(
    spec: str,
    tokenizer: Any,
    *,
    digit_level: bool = False,
    reduction: str = "mean",
    shift: bool = False,
) -> NumberLoss:
    """Build the number loss with the given spec, such as ``was``, ``mse``, ``smooth:1`` or
    ``ntil``, for the logits of a language model.

    Number tokens consist of ASCII digits, possibly with a space before them: ``5``, `` 5`` and
    ``123``, but not ``5.``, ``²`` or ``½``.

    Parameters
    ----------
    spec : str
        Name of the loss, optionally with settings: ``was,reweigh=yes`` is the default in the ntloss
        package. ``numtok train --objective ar,number-loss=SPEC`` takes the same specs.
    tokenizer : tokenizer or numtok.Codec
        The model's tokenizer, from transformers or the tokenizers library.
    digit_level : bool, default False
        Use only the ten tokens ``0`` to ``9``, as ntloss does by default. Other number tokens then
        do not contribute to the loss.
    reduction : {'mean', 'sum', 'none'}, default 'mean'
        How the losses of individual tokens are combined. The mean is over number tokens; 'none'
        returns the losses as [B, L].
    shift : bool, default False
        True if logits at position j predict label j + 1, as with the ``labels`` of causal models in
        transformers. False if they predict label j.

    Raises
    ------
    UsageError
        If the spec or the reduction is unknown, if ``tokenizer`` is not a tokenizer, or if it has
        fewer than two number tokens.

    Examples
    --------
    >>> tokenizer = AutoTokenizer.from_pretrained("gpt2")
    >>> was = numtok.number_loss("was", tokenizer, shift=True)
    >>> loss = outputs.loss + was.weight * was(outputs.logits, labels)
    """
    term = NUMBER_TERMS.build(spec)
    tokens = _number_tokens(tokenizer)
    if digit_level:
        tokens = tokens.single_digits()
    if len(tokens.ids) < _FEWEST:
        raise UsageError(
            f"tokenizer must have at least {_FEWEST} tokens that consist of digits (it has "
            f"{len(tokens.ids)}). Use "
            + ("digit_level=False" if digit_level else "the tokenizer of a model that reads digits")
        )
    return NumberLoss(term, tokens, reduction=_reduction(reduction), shift=shift)


def _number_tokens(tokenizer: Any) -> ValuedTokens:
    """Return the number tokens of a tokenizer or codec."""
    codec = getattr(tokenizer, "inner" if isinstance(tokenizer, TextCodec) else "codec", None)
    if isinstance(codec, Codec):
        return Vocabulary.of(codec).valued
    return ValuedTokens.of_texts(token_texts(tokenizer))
