"""Evaluation mode of a module, for the duration of a block."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def in_evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Context manager that turns off dropout, then restores the mode of every submodule.

    >>> dropout = nn.Dropout()
    >>> with in_evaluation_mode(dropout):
    ...     print(dropout.training)
    False
    >>> dropout.training
    True
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
