"""A batch to learn from as tensors, on the host or on a device."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.schemes.base import Channel
from numtok.models.training_batch import TrainingBatch


def moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array of any shape on a device."""
    return torch.from_numpy(array).to(device)


def single(values: Channel) -> NDArray[np.float32]:
    """float32 of any shape, as values go in; infinite beyond what that holds."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)


class ModelInputs(NamedTuple):
    """An :class:`TrainingBatch` as tensors; ``real`` is None where no token is padding.

    ``where`` and ``number_where`` are flat indices into the states of the places that ``asked``
    names, [B, Q], or of all, [B, L]; ``where`` is None where a token is predicted at each of these.
    ``own``: flat indices into [B, L] of the places at which the objective has losses of its own;
    None where it has none. ``of_term``: what a number loss is given besides logits and labels, its
    scale [] and the places and runs of digits [K, 2]. ``of_host``: what the embedder is given
    besides (``NumberModule.of_host``), and the numbers of places.
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
        """[K, D] of these states those that predict a token."""
        flat = hidden_BQD.flatten(0, 1)
        return flat if self.where is None else flat.index_select(0, self.where)

    def saying(self, hidden_BQD: Tensor) -> Tensor:
        """[N, D] of these states those that the value head says a number from."""
        return hidden_BQD.flatten(0, 1).index_select(0, self.number_where)

    @classmethod
    def on_host(
        cls,
        example: TrainingBatch,
        targets_NW: NDArray[Any],
        own: NDArray[np.int64] | None = None,
        of_host: tuple[NDArray[Any], ...] = (),
        of_term: tuple[NDArray[Any], ...] = (),
    ) -> "ModelInputs":
        """Not yet on a device: on the CPU nothing is copied. With ``own`` (flat indices [P]) all
        states are asked for."""
        asked, where, number_where = example.asked
        if own is not None:
            asked, where, number_where = None, example.where, example.number_where
        places = example.tokens.size if asked is None else asked.size
        arrays = (
            example.tokens,
            single(example.values),
            None if example.real.all() else example.real,
            asked,
            None if len(where) == places else where,
            example.labels,
            number_where,
            targets_NW,
            own,
        )
        tensors = (None if one is None else torch.from_numpy(one) for one in arrays)
        several = (tuple(map(torch.from_numpy, some)) for some in (of_term, of_host))
        return cls._make([*tensors, *several])

    def pinned(self) -> "ModelInputs":
        """In memory of the host that stays in place: a GPU copies from it when it comes to it,
        and :meth:`to` does not wait, as it does for other memory until all before is done."""
        return self._each(Tensor.pin_memory)

    def to(self, device: torch.device) -> "ModelInputs":
        """On ``device``. PyTorch keeps pinned memory for as long as it is copied from."""
        return self._each(lambda one: one.to(device, non_blocking=True))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "ModelInputs":
        *tensors, of_term, of_host = self
        changed = (None if one is None else change(one) for one in tensors)
        several = (tuple(map(change, some)) for some in (of_term, of_host))
        return ModelInputs._make([*changed, *several])
