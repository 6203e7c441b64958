"""A training batch as tensors, on the host or on a device."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.schemes.base import Channel
from numtok.models.training_batch import TrainingBatch


def moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array of any shape as a tensor on a device."""
    return torch.from_numpy(array).to(device)


def single(values: Channel) -> NDArray[np.float32]:
    """Convert values of any shape to float32, the input type of models.

    Values out of range become infinite.
    """
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)


class ModelInputs(NamedTuple):
    """A :class:`TrainingBatch` as tensors.

    real
        bool[B, L], False for padding; None if no token is padding.
    asked
        int64[B, Q]: the positions in each row whose states are needed; None if all are needed.
    where, number_where
        Flat indices of the states that predict tokens and numbers. They index the states [B, Q] at
        the positions ``asked`` or, if ``asked`` is None, all states [B, L]. ``where`` is None if
        every state predicts a token.
    own
        Flat indices into [B, L] of the positions of the objective's additional losses; None if the
        objective has no such losses.
    of_term
        Additional inputs to a number loss: its scale [], and the digit positions and runs [K, 2].
    of_host
        Additional inputs to the embedder (``NumberModule.of_host``), followed by the indices of
        digit positions if the model uses them.
    """

    tokens: Tensor
    values: Tensor
    real: Tensor | None
    asked: Tensor | None
    where: Tensor | None
    labels: Tensor
    number_where: Tensor
    number_targets: Tensor  # [N, W]
    own: Tensor | None = None
    of_term: tuple[Tensor, ...] = ()
    of_host: tuple[Tensor, ...] = ()

    def predicting(self, hidden_BQD: Tensor) -> Tensor:
        """Return the computed states that predict a token or a label, [K, D]."""
        flat = hidden_BQD.flatten(0, 1)
        return flat if self.where is None else flat.index_select(0, self.where)

    def predicting_numbers(self, hidden_BQD: Tensor) -> Tensor:
        """Return the computed states from which the value head predicts numbers, [N, D]."""
        return hidden_BQD.flatten(0, 1).index_select(0, self.number_where)

    @classmethod
    def on_host(
        cls,
        example: TrainingBatch,
        targets_NW: NDArray[Any],
        own: NDArray[np.int64] | None,
        of_host: tuple[NDArray[Any], ...],
        of_term: tuple[NDArray[Any], ...],
    ) -> "ModelInputs":
        """Convert a training batch to CPU tensors, without copying.

        ``targets_NW`` are the targets of the value head. If ``own`` (flat indices [P]) is given,
        the states at all positions are computed.
        """
        asked_places, where, number_where = example.asked
        if own is not None:
            asked_places, where, number_where = None, example.where, example.number_where
        places = example.tokens.size if asked_places is None else asked_places.size
        arrays = (
            example.tokens,
            single(example.values),
            None if example.real.all() else example.real,
            asked_places,
            None if len(where) == places else where,
            example.labels,
            number_where,
            targets_NW,
            own,
        )
        tensors = (None if array is None else torch.from_numpy(array) for array in arrays)
        several = (tuple(map(torch.from_numpy, some)) for some in (of_term, of_host))
        return cls._make([*tensors, *several])

    def pinned(self) -> "ModelInputs":
        """Return a copy in pinned memory, which :meth:`to` can transfer without waiting for earlier
        work on the GPU."""
        return self._each(Tensor.pin_memory)

    def to(self, device: torch.device) -> "ModelInputs":
        """Return a copy on ``device``. PyTorch keeps pinned memory alive until the transfer is
        complete."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "ModelInputs":
        *tensors, of_term, of_host = self
        changed = (None if tensor is None else change(tensor) for tensor in tensors)
        several = (tuple(map(change, some)) for some in (of_term, of_host))
        return ModelInputs._make([*changed, *several])
