"""Models whose tensors have shapes but no memory, used to check that a model can be built and to
determine its size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_FILLING = {nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_}
_FILLING |= {Tensor.normal_, Tensor.uniform_}
_CONSTANTS = {torch.arange, torch.linspace}


@contextmanager
def without_memory() -> Iterator[None]:
    """Create tensors on PyTorch's "meta" device within this context, and skip their initialization.

    Constants from ``torch.arange`` and ``torch.linspace`` are created on the CPU.
    """
    with torch.device("meta"), _Unfilled():
        yield


class _Unfilled(TorchFunctionMode):
    """Skips initialization: on "meta", PyTorch would import its compiler for it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        if func in _FILLING:
            return args[0] if args else options["tensor"]
        if func in _CONSTANTS:
            return func(*args, **{**options, "device": "cpu"})
        return func(*args, **options)
