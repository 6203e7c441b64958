"""Reading and writing ``weights.safetensors``. Reading validates everything in the file.

Before a model is built, the sizes in its settings are compared with the weights. Before anything is
copied, the names, types and shapes of the weights are compared with the model.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from numtok import files
from numtok.errors import StoreError, naming
from numtok.models.meta import without_memory
from numtok.plugins import fault_of
from numtok.stored_json import VERIFY
from numtok.training.ranks import whole

_M = TypeVar("_M", bound=nn.Module)

WEIGHTS = "weights.safetensors"
_FEW = 64  # largest setting that needs no weights of that size
#: The same for settings that may be large without weights: a context without trained position
#: embeddings, and the bins of a head that computes them from few values.
_COMPUTED = {"context": 1 << 20, "bins": 1 << 20}
_HELD = 1 << 29  # bytes of buffers, such as computed position tables


def weights_of(model: nn.Module, keep: bool = True) -> dict[str, Tensor]:
    """Return the weights of a model in host memory, keyed by name.

    Sharded weights are gathered, so all ranks must call this function together. Ranks with
    ``keep=False`` return an empty dictionary.
    """
    weights: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        full = whole(parameter.detach())
        weights |= {name: full.cpu().contiguous()} if keep else {}
    return weights


def write_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write ``weights.safetensors`` to a folder, in the format that :func:`load_weights` reads."""
    files.write_atomic(folder / WEIGHTS, save(dict(weights)))


def load_weights(of: Path, settings: Mapping[str, Any], make: Callable[[], _M]) -> _M:
    """Build a model and load its weights, which must be float32 with the model's names and shapes.

    of
        Path of the ``model.json`` next to the weights.
    settings
        The settings in that file. Sizes that exceed those of the weights are rejected.
    make
        Function that builds the model.

    Raises StoreError if the files do not match, and UsageError if settings are unknown.
    """
    path = of.parent / WEIGHTS
    try:
        with files.name_of_open(path) as name, safe_open(name, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            stored = {name: (part.get_dtype(), *part.get_shape()) for name, part in slices.items()}
            wanted = _wanted(of, settings, make, stored)
            if stored != wanted:
                differing = sorted(
                    name
                    for name in stored.keys() | wanted.keys()
                    if stored.get(name) != wanted.get(name)
                )
                raise StoreError(
                    f"{path} does not match its {of.name}: {differing[0]!r} is "
                    f"{stored.get(differing[0])}, expected {wanted.get(differing[0])}. "
                    f"{VERIFY}"
                )
            tensors = {name: file.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError, MemoryError) as error:  # MemoryError: it maps the whole file
        raise StoreError(f"{path} cannot be read: {str(error).rstrip('.')}. {VERIFY}") from error
    model = make()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])
    return model


def _wanted(
    of: Path,
    settings: Mapping[str, Any],
    make: Callable[[], nn.Module],
    stored: Mapping[str, tuple[Any, ...]],
) -> dict[str, tuple[str | int, ...]]:
    """Return the types and shapes of a model's parameters by name.

    Raises StoreError if the settings cannot be those of a model with the ``stored`` weights.
    """
    with naming_model(of):
        sizes = [size for _, *shape in stored.values() for size in shape]
        _check_sizes(settings, len(stored), max(sizes, default=0))
        with without_memory():
            model = make()
        held = sum(buffer.numel() * buffer.element_size() for buffer in model.buffers())
        if held > _HELD:
            raise ValueError(f"its buffers take {held:,} bytes")
    return {name: ("F32", *weight.shape) for name, weight in model.named_parameters()}


@contextmanager
def naming_model(path: Path) -> Iterator[None]:
    """Context manager that adds the path of a model file to errors in the block.

    Raises StoreError if the file does not describe a valid model, and UsageError if it has unknown
    settings.
    """
    try:
        with naming(path):
            yield
    except (RuntimeError, OverflowError, ValueError) as error:
        if (fault := fault_of(error)) is not None:
            raise fault from error
        why = str(error).partition("\n")[0]
        raise StoreError(f"{path} does not describe a valid model ({why}). {VERIFY}") from error


def _check_sizes(settings: Mapping[str, Any], tensors: int, largest: int) -> None:
    """Raise ValueError if a size in the settings exceeds the weights: their number ``tensors``, or
    their ``largest`` dimension."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            _check_sizes(value, tensors, largest)
        most = max(largest, _COMPUTED.get(key, _FEW))
        most = tensors if key.endswith("layers") else most
        if isinstance(value, int) and key not in ("seed", "revision") and abs(value) > most:
            raise ValueError(f"{key} is {value:,}, but its weights are smaller")
