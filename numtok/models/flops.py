"""Number of floating-point operations in a forward pass, measured with PyTorch.

A multiplication and an addition count as two operations. Padding is counted. Pairs of tokens that
causal attention masks are also counted, so the result does not depend on the attention kernel.

Running a model a second time for every batch would be slow. Instead, its parts are run on tiny
inputs, and the counts are scaled up: counts for heads and embedders grow linearly with the number
of tokens, and counts for a trunk grow quadratically with the row length.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from numtok.models.heads.base import ValueHead, ValueReader
from numtok.models.inputs import ModelInputs
from numtok.models.model import Model
from numtok.models.objectives.base import FirstPass, OwnLosses
from numtok.models.regressor import Regressor

Module = TypeVar("Module", bound=nn.Module)

_ATEN = torch.ops.aten
#: PyTorch has no formula for its attention on CPUs, whose operations are those of the one on GPUs.
_FORMULAS = flop_registry | {
    _ATEN._scaled_dot_product_flash_attention_for_cpu: flop_registry[
        _ATEN._scaled_dot_product_flash_attention
    ]
}

#: Row lengths and numbers of queried states at which a trunk is measured.
_MEASURED = ((2, None), (4, None), (2, 1), (4, 1))


class Operations(NamedTuple):
    """Number of operations for a batch: in total, and in the objective's additional passes."""

    total: int
    further: int


class ModelFlops:
    """Callable that returns the number of operations that a text model needs for a batch.

    The counts depend only on array shapes. They are measured on a copy without weights, so the
    model may be on any device, or sharded.
    """

    def __init__(self, model: Model) -> None:
        hollow = _hollow(model)
        width = model.settings.width
        self._embedder = hollow.embedder
        self._has_places = model.places is not None
        self._by_shapes: dict[tuple[tuple[int, ...], ...], tuple[int, int]] = {}
        self._trunk = _trunk_polynomial(hollow)
        self._first_head = counted(hollow.first_head, torch.zeros(1, width))
        self._value_head = 0
        if isinstance(model.head, ValueHead) and hollow.value_head is not None:
            self._value_head = value_flops(model.head, hollow.value_head, width)
        self._own, self._passes = 0, 0
        if model.own_losses is not None and hollow.own is not None:
            self._own, self._passes = _of_objective(model.own_losses, hollow.own, width)

    def __call__(self, inputs: ModelInputs) -> Operations:
        """Return the number of operations for a batch: in total, and in the objective's additional
        passes."""
        rows, length = inputs.tokens.shape
        predicted = self._first_head * len(inputs.labels)
        first = self._of_trunk(rows, length, inputs.asked) + predicted
        first += self._value_head * len(inputs.number_where) + self._of_embedder(inputs)
        if inputs.own is None:
            return Operations(first, 0)
        further = self._passes * (self._of_trunk(rows, length, None) + predicted)
        return Operations(first + self._own * len(inputs.own) + further, further)

    def _of_trunk(self, rows: int, length: int, asked_BQ: Tensor | None) -> int:
        queried = length if asked_BQ is None else asked_BQ.shape[1]
        return rows * int(np.dot(self._trunk, _terms(length, queried)))

    def _of_embedder(self, inputs: ModelInputs) -> int:
        """Return the operations of the embedder, linear in the tokens and in the numbers prepared
        on the host."""
        arrays = inputs.of_host[:-1] if self._has_places else inputs.of_host
        shapes = tuple(tuple(array.shape[1:]) for array in arrays)
        if shapes not in self._by_shapes:
            single, double = (
                counted(
                    self._embedder,
                    torch.zeros(1, 1, dtype=torch.int64),
                    torch.ones(1, 1),
                    *(
                        array.new_zeros((numbers, *array.shape[1:]), device="cpu")
                        for array in arrays
                    ),
                )
                for numbers in (1, 2)
            )
            self._by_shapes[shapes] = 2 * single - double, double - single
        token, number = self._by_shapes[shapes]
        return token * inputs.tokens.numel() + number * (len(arrays[0]) if arrays else 0)


def regressor_flops(model: Regressor, rows: int) -> int:
    """Return the number of operations in a table model's forward pass over ``rows`` rows."""
    hollow = _hollow(model)
    trunk = counted(hollow.trunk, torch.zeros(1, model.inputs))
    return rows * (trunk + value_flops(model.head, hollow.reader, model.width))


def counted(run: Callable[..., object], *arguments: Any) -> int:
    """Return the number of operations in the matrix products and the attention in one call of
    ``run``.

    The call is made without gradients. It does not select an attention kernel, because that would
    apply to the whole process, and other threads may run models at the same time.
    """
    counter = _Counter()
    with torch.no_grad(), counter:
        run(*arguments)
    return counter.total


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """PyTorch's ``FlopCounterMode`` without its global module hooks, which would disturb a model
    that another thread runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Avoid importing PyTorch's compiler, which takes a second."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if (formula := _FORMULAS.get(func._overloadpacket)) is not None:
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


def _hollow(module: Module) -> Module:
    """Copy a module to the CPU in float32, with zero weights that take no memory."""
    memo: dict[int, Any] = {}
    for weight in module.parameters():
        memo[id(weight)] = nn.Parameter(torch.zeros(()).expand(weight.shape), requires_grad=False)
    for buffer in module.buffers():
        dtype = torch.float32 if buffer.is_floating_point() else buffer.dtype
        memo[id(buffer)] = torch.zeros(buffer.shape, dtype=dtype)
    return copy.deepcopy(module, memo).eval()


def _terms(length: int, queried: int) -> tuple[int, int, int, int]:
    return length, length**2, queried, queried * length


def _trunk_polynomial(model: Model) -> NDArray[np.int64]:
    """Return the coefficients of :func:`_terms` for one row."""
    counts = []
    for length, queried in _MEASURED:
        asked_BQ = None if queried is None else torch.zeros(1, queried, dtype=torch.int64)
        vectors = torch.zeros(1, length, model.settings.width)
        counts.append(counted(model.trunk, vectors, None, asked_BQ))
    terms = np.array([_terms(length, queried or length) for length, queried in _MEASURED])
    return np.rint(np.linalg.solve(terms, np.array(counts))).astype(np.int64)


def value_flops(head: ValueHead, reader: ValueReader, width: int) -> int:
    """Return the number of operations that a value head needs for one number, including the
    loss."""
    learned = torch.from_numpy(head.targets(np.array([0.5])))
    return counted(lambda: reader.losses(reader(torch.zeros(1, width)), learned))


def _of_objective(objective: OwnLosses, module: nn.Module, width: int) -> tuple[int, int]:
    """Return the operations of the objective's additional losses at one position, and the number of
    its further passes."""
    passes = 0

    def again(vectors: Tensor) -> Tensor:
        nonlocal passes
        passes += 1
        return vectors

    vectors = torch.zeros(1, 2, width)
    first_pass = FirstPass(
        embedded=vectors,
        hidden=vectors,
        places=torch.tensor([1]),
        trunk=again,
        token_loss=lambda states: states.sum(),
    )
    return counted(objective.losses, module, first_pass), passes
