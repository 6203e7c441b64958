"""``weights.safetensors``: the weights of a model, which are read in full distrust.

Names, types and shapes are compared with what the settings give before anything is copied, and the
sizes in the settings with those of the weights before anything is built.
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
from numtok.training.ranks import whole

_M = TypeVar("_M", bound=nn.Module)

WEIGHTS = "weights.safetensors"
_FEW = 64  # of anything: what may be without weights of its own
_PLACES = 1 << 20  # tokens of a context, which has weights only where places are learnt
_HELD = 1 << 29  # bytes that a model may hold beside its weights: tables of places, computed


def weights_of(model: nn.Module, keep: bool = True) -> dict[str, Tensor]:
    """The weights by their names, on the host. Where ranks have parts of them, all put them
    together, and those that do not ``keep`` them have none."""
    weights: dict[str, Tensor] = {}
    for name, one in model.named_parameters():
        every = whole(one.detach())
        weights |= {name: every.cpu().contiguous()} if keep else {}
    return weights


def write_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write what :func:`load_weights` reads."""
    files.write_atomic(folder / WEIGHTS, save(dict(weights)))


def load_weights(of: Path, settings: Mapping[str, Any], make: Callable[[], _M]) -> _M:
    """A model with its weights: float32, of exactly the names and shapes that it has.

    of, settings
        The file beside the weights that says what the model is, and what that says. No size in it
        is believed that the bytes of the weights cannot hold.
    make
        Makes the model.

    Raises StoreError for what does not fit, UsageError for settings that this numtok lacks.
    """
    path = of.parent / WEIGHTS
    try:
        with files.name_of_open(path) as name, safe_open(name, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            there = {name: (one.get_dtype(), *one.get_shape()) for name, one in slices.items()}
            wanted = _wanted(of, settings, make, there)
            if there != wanted:
                differing = sorted(
                    name
                    for name in there.keys() | wanted.keys()
                    if there.get(name) != wanted.get(name)
                )
                raise StoreError(
                    f"{path} does not belong to its {of.name}: {differing[0]!r} is "
                    f"{there.get(differing[0])}, expected {wanted.get(differing[0])}; "
                    "`numtok verify` says which file is damaged"
                )
            tensors = {name: file.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError, MemoryError) as error:  # it maps the file as a whole
        raise StoreError(
            f"{path} cannot be read: {error}; `numtok verify` says which files are damaged"
        ) from error
    model = make()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])
    return model


def _wanted(
    of: Path,
    settings: Mapping[str, Any],
    make: Callable[[], nn.Module],
    there: Mapping[str, tuple[Any, ...]],
) -> dict[str, tuple[str | int, ...]]:
    """The names, types and shapes of a model's parameters; StoreError for a model that cannot be
    one of the weights that are ``there``."""
    with naming_model(of):
        sizes = [size for _, *shape in there.values() for size in shape]
        _check_sizes(settings, len(there), max(sizes, default=0))
        with without_memory():
            model = make()
        held = sum(one.numel() * one.element_size() for one in model.buffers())
        if held > _HELD:
            raise ValueError(f"it holds {held:,} bytes beside its weights")
    return {name: ("F32", *one.shape) for name, one in model.named_parameters()}


@contextmanager
def naming_model(path: Path) -> Iterator[None]:
    """Errors over what a file says a model is, with its name: StoreError where no model can be so,
    UsageError for settings that this numtok does not know."""
    try:
        with naming(path):
            yield
    except (RuntimeError, OverflowError, ValueError) as error:
        if (fault := fault_of(error)) is not None:
            raise fault from error
        why = str(error).partition("\n")[0]
        raise StoreError(
            f"{path} is of no model that can be ({why}); `numtok verify` says which files are "
            "damaged"
        ) from error


def _check_sizes(settings: Mapping[str, Any], tensors: int, largest: int) -> None:
    """ValueError for a number in the settings that weights cannot be of, of which there are so many
    ``tensors``, none longer than ``largest`` in any direction."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            _check_sizes(value, tensors, largest)
        most = max(largest, _PLACES if key == "context" else _FEW)
        most = tensors if key.endswith("layers") else most
        if isinstance(value, int) and key not in ("seed", "revision") and abs(value) > most:
            raise ValueError(f"{key} is {value:,}, which its weights are not of")
