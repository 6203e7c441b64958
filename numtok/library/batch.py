"""``numtok.batch``: texts as tensors, with the positions of the numbers to predict.

``numtok.check_visibility`` checks that a causal model does not attend to the numbers that it
predicts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.arrays import Bools, Ints
from numtok.encoding.codec import Codec
from numtok.encoding.holes import HOLE, filled, hole_numbers
from numtok.encoding.in_memory import rows_of
from numtok.encoding.splits import learnt_values
from numtok.encoding.texts import Texts
from numtok.errors import DataError, UsageError, unknown
from numtok.library.arguments import as_arguments, typed
from numtok.library.codec import TextCodec
from numtok.models.batches import Batch, Batches
from numtok.models.inputs import single
from numtok.models.training_batch import MASK, autoregressive_batch, masked_batch
from numtok.names import counted
from numtok.numerals.find import Spans
from numtok.seeds import generator

MASKS = ("last", "random", "holes", "none")
_SHOWN = 40  # characters of a text in a message, at most


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberBatch:
    """A padded batch of ``B`` texts, at most ``L`` tokens long, with ``N`` numbers to predict.

    Attributes
    ----------
    tokens : int64[B, L]
        Input token ids. Unless the batch is causal, the tokens of numbers to predict are replaced
        with ``[MASK]``.
    values : float32[B, L]
        Scaled value of each visible number if the scheme has a value channel; 1 elsewhere.
    exact : float64[B, L]
        ``values`` with all digits, on the CPU, for embedders that read every digit.
    attention_mask : bool[B, L]
        True at tokens, False at padding.
    positions : int64[B, L]
        0, 1, 2, ... in each row.
    where : tuple of int64[N]
        Rows and columns at which numbers are predicted: ``hidden[batch.where]`` is [N, D]. If the
        scheme writes W tokens per number, the indices are [N, W] and the states [N, W, D].
    truths : float64[N]
        True values as written in the text, on the CPU; NaN for a ``[?]``.
    digest : str
        Digest of the codec that encoded the texts.
    causal : bool
        True if the hidden state at position j predicts token j and must not depend on later tokens.
    """

    tokens: Tensor
    values: Tensor
    exact: Tensor
    attention_mask: Tensor
    positions: Tensor
    where: tuple[Tensor, Tensor]
    truths: Tensor
    digest: str
    causal: bool

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, device: str | torch.device) -> "NumberBatch":
        """Return a copy of the batch on a device. float64 tensors stay on the CPU, where embedders
        read them.
        """
        rows, columns = (index.to(device, non_blocking=True) for index in self.where)
        moved: dict[str, Any] = {
            name: getattr(self, name).to(device, non_blocking=True)
            for name in ("tokens", "values", "attention_mask", "positions")
        }
        return replace(self, where=(rows, columns), **moved)


@as_arguments()
@typed
def batch(
    codec: TextCodec,
    texts: Any,
    *,
    mask: str = "last",
    causal: bool = False,
    rate: float = 0.3,
    seed: int = 0,
) -> NumberBatch:
    """Build a padded batch of texts for your own model.

    Parameters
    ----------
    codec : numtok.Codec
        Codec that turns the texts into tokens.
    texts : sequence of str, NumPy array, Arrow array, or polars or pandas column
        Texts to encode.
    mask : {'last', 'random', 'holes', 'none'}
        Numbers to predict. 'last': the last number of each text. 'random': each number with
        probability ``rate``, but at least one in the batch. 'holes': the unknown numbers, written
        ``[?]``. 'none': no numbers.
    causal : bool
        Build the batch for a model that attends to earlier tokens only. Rows begin with ``[END]``,
        nothing is masked, and the hidden state at position j predicts token j. If a number has
        several tokens, ``where`` contains only the first of them.
    rate : float
        Probability that a number is selected if ``mask`` is 'random'.
    seed : int
        Seed of the random choice if ``mask`` is 'random'.

    Returns
    -------
    NumberBatch

    Raises
    ------
    DataError
        If ``texts`` is not a column of texts, or if a text has no number to predict (for 'random':
        if no text has a number).
    UsageError
        If ``mask`` or ``rate`` is not allowed.

    Examples
    --------
    >>> codec = numtok.Codec.fit(["2 * 3 = 6"], scheme="xval", text_tokenizer="bytes")
    >>> batch = numtok.batch(codec, ["2 * 3 = 6", "-7"])
    >>> batch.tokens.shape, batch.where[1].tolist(), batch.truths.tolist()
    (torch.Size([2, 9]), [8, 0], [6.0, -7.0])
    """
    if mask not in MASKS:
        raise unknown("mask", mask, MASKS)
    if not 0 < rate <= 1:
        raise UsageError(f"rate must be above 0 and at most 1 (got {rate})")
    inner, data = codec.inner, Texts.of(texts)
    if len(data.rows) == 1:
        raise DataError("texts is empty. Pass at least one text")
    chosen_holes = None
    if mask == "holes":
        data, spans, chosen_holes = _with_holes(inner, data)
    else:
        spans = inner.find(data)
    samples = rows_of(inner.encode(data, spans))
    rows = Batches(samples, learnt_values(samples, inner), len(samples)).of(np.arange(len(samples)))
    chosen = _chosen(rows, mask, rate, seed=seed, data=data, holes=chosen_holes)
    truths = rows.number_raw[chosen]
    if chosen_holes is not None:
        truths = np.full(len(truths), np.nan)
    return _tensors(inner, rows, chosen, truths, causal)


def _with_holes(codec: Codec, data: Texts) -> tuple[Texts, Spans, Ints]:
    """Return the texts with stand-in numbers in their holes, all numbers, and the holes'
    indices.
    """
    pieces = [text.split(HOLE) for text in data.strings()]
    whole = Texts.of(pa.array(map(filled, pieces), pa.string()))
    spans = codec.find(whole)
    names = [_name(data, row) for row in range(len(pieces))]
    return whole, spans, hole_numbers(names, pieces, whole, spans, percent=codec.policy.percent)


def _chosen(
    rows: Batch, mask: str, rate: float, seed: int, data: Texts, holes: Ints | None
) -> Bools:
    """Return bool[M]: True for the numbers to predict."""
    count, needed = len(rows.number), "number to predict"
    if mask == "none":
        return np.zeros(count, np.bool_)
    if holes is not None:
        chosen, needed = np.isin(np.arange(count), holes), f"{HOLE}, which mask='holes' needs"
    elif mask == "random":
        if not count:
            raise DataError(f"none of the {len(rows.tokens):,} texts has a number. Pass others")
        drawn = generator(seed, "masks", 0).random(count)
        # At least one: if none is below the rate, the smallest belongs to a random number.
        return drawn <= max(rate, float(drawn.min()))
    else:
        chosen = np.diff(rows.number_row, append=-1) != 0
    lacking = np.setdiff1d(np.arange(len(rows.tokens)), rows.number_row[chosen])
    if len(lacking):
        raise DataError(
            f"{_name(data, int(lacking[0]))} has no {needed} "
            f"({counted(len(lacking), 'such text')} in all). Leave them out"
        )
    return chosen


def _tensors(
    codec: Codec, rows: Batch, chosen: Bools, truths: NDArray[np.float64], causal: bool
) -> NumberBatch:
    if causal:
        example = autoregressive_batch(rows, chosen)
    else:
        example = masked_batch(rows, rows.number_tokens(chosen))
    row, column = rows.number_row[chosen], rows.number_start[chosen]
    width = codec.scheme.tokens_per_number or 1
    if width > 1 and not causal:
        column = column[:, None] + np.arange(width)
        row = np.broadcast_to(row[:, None], column.shape).copy()
    count, length = example.tokens.shape
    return NumberBatch(
        tokens=torch.from_numpy(example.tokens),
        values=torch.from_numpy(single(example.values)),
        exact=torch.from_numpy(example.values.astype(np.float64)),
        attention_mask=torch.from_numpy(example.real),
        positions=torch.arange(length).repeat(count, 1),
        where=(torch.from_numpy(row), torch.from_numpy(column)),
        truths=torch.from_numpy(truths),
        digest=codec.digest,
        causal=causal,
    )


def _name(data: Texts, row: int) -> str:
    """Return the name of a text in messages: its index and its first characters."""
    text = data.data[data.rows[row] : data.rows[row + 1]].tobytes().decode()
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
    return f"text {row} ({shown!r})"


_NEAR = 1e-5  # relative difference of equal states, in float32


@torch.no_grad()
def check_visibility(states: Callable[[NumberBatch], Tensor], batch: NumberBatch) -> None:
    """Check that the hidden states of a causal batch do not depend on later tokens.

    On a causal batch, a bidirectional model reads each number instead of predicting it, and scores
    almost perfectly. To detect this, the model is run twice. For the second run, the first number
    to predict in each row and all tokens after it are replaced. Batches that are not causal are not
    checked, because their numbers are masked. :class:`numtok.hf.NumberModel` runs the check on its
    first causal batch.

    Parameters
    ----------
    states : callable
        Maps a batch to the hidden states [N, D] at ``batch.where``.
    batch : NumberBatch
        The batch to check.

    Raises
    ------
    UsageError
        If a state depends on later tokens.

    Examples
    --------
    >>> numtok.check_visibility(lambda batch: model(embed(batch))[batch.where], batch)
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
    expected, actual = (
        _with_same_dropout(states, inputs)[column == first[row]] for inputs in (batch, changed)
    )
    tolerance = max(_NEAR, torch.finfo(expected.dtype).eps)
    if bool((actual - expected).abs().max() > tolerance * expected.abs().max()):
        raise UsageError(
            "the model attends to later tokens, so on a causal batch it sees the numbers it must "
            "predict. Pass causal=False, or use a decoder such as GPT-2 or Llama"
        )


def _with_same_dropout(states: Callable[[NumberBatch], Tensor], batch: NumberBatch) -> Tensor:
    """Compute the states with the current random state, and leave that state unchanged."""
    device = batch.tokens.device
    own = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(own, device_type="cuda" if device.type == "cpu" else device.type):
        return states(batch)
