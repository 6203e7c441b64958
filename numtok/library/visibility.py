"""``numtok.check_visibility``: whether a causal model sees the numbers that it must predict."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from numtok.errors import UsageError
from numtok.library.batch import NumberBatch
from numtok.models.training_batch import MASK

_NEAR = 1e-5  # relative difference of equal states, in float32


@torch.no_grad()
def check_visibility(states: Callable[[NumberBatch], Tensor], batch: NumberBatch) -> None:
    """Check that the states of a causal batch do not depend on later tokens.

    A bidirectional model on a causal batch reads each number instead of predicting it, and scores
    almost perfectly. The check runs the model twice, with all tokens after the first predicted
    number of each row replaced the second time. Other batches are not checked: their numbers are
    masked. :class:`numtok.hf.NumberModel` runs it on its first causal batch.

    states
        From a batch to the hidden states [N, D] at ``batch.where``.

    >>> numtok.check_visibility(lambda batch: model(embed(batch))[batch.where], batch)

    Raises UsageError if a state depends on later tokens.
    """
    row, column = batch.where
    if not batch.causal or not len(row):
        return
    length = batch.tokens.shape[1]
    first = torch.full((len(batch),), length, device=column.device)
    first = first.scatter_reduce(0, row, column, "amin")
    later = (batch.positions > first[:, None]) & batch.attention_mask
    changed = replace(
        batch,
        tokens=batch.tokens.masked_fill(later, MASK),
        values=batch.values.masked_fill(later, 1),
        exact=batch.exact.masked_fill(later.to(batch.exact.device), 1),
    )
    expected, found = (_drawn_alike(states, of)[column == first[row]] for of in (batch, changed))
    near = max(_NEAR, torch.finfo(expected.dtype).eps)
    if bool((found - expected).abs().max() > near * expected.abs().max()):
        raise UsageError(
            "the model attends to later tokens, and the batch is causal: it sees the numbers that "
            "it must predict. Pass causal=False, or use a decoder such as GPT-2 or Llama"
        )


def _drawn_alike(states: Callable[[NumberBatch], Tensor], batch: NumberBatch) -> Tensor:
    """The states, with the dropout of the current random state, which stays as it was."""
    device = batch.tokens.device
    own = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(own, device_type="cuda" if device.type == "cpu" else device.type):
        return states(batch)
