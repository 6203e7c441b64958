"""Texts encoded in memory, and small models with random weights, for tests of models."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from numtok.analysis.probing.probes.base import ProbeInputs
from numtok.encoding.dataset import EncodedSplit
from numtok.models.attention import Transformer
from numtok.models.batches import Batch, Batches
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.models.made_up import batch, codec, samples
from numtok.models.model import Model, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.places.base import PLACES
from numtok.models.presets import preset
from numtok.models.settings import ModelSettings
from numtok.models.trunks.base import TrunkModule
from numtok.models.vocabulary import Vocabulary
from numtok.training.model_files import LoadedModel
from numtok.training.model_json import Trained

__all__ = [
    "CPU", "batch", "batches", "codec", "embedded", "model", "numbers_of", "one_thread",
    "probe_inputs", "real", "samples", "states", "trained", "transformer",
]  # fmt: skip

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread: more only slow down such small models."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def batches(of: EncodedSplit, size: int, classes: Sequence[str] = ()) -> Batches:
    """Return batches for value heads: the channel if there is one, else the numbers themselves."""
    values = of.numbers.astype(np.float32) if of.channel is None else of.channel
    return Batches(of, lambda numbers: values[numbers], size, classes)


def model(
    scheme: str,
    objective: str,
    *,
    size: str = "nano,layers=2,heads=2,width=16",
    context: int = 64,
    embedder: str | None = None,
    head: str | None = None,
    seed: int = 0,
    spread: float = 0.3,
    classes: Sequence[str] = (),
    places: str | None = None,
) -> Model:
    """Build an untrained model, ready for evaluation.

    ``spread`` is the standard deviation of its weights. It is many times the usual one, so that
    predictions are confident and differ between tokens.
    """
    one = codec(scheme)
    settings = ModelSettings.of(
        preset(size),
        vocabulary=one.vocabulary_size,
        context=context,
        embedder=EMBEDDERS.build(embedder or EMBEDDERS.checked_at(one.scheme.defaults.embedder)),
        head=None if classes else HEADS.build(head or HEADS.checked_at(one.scheme.defaults.head)),
        objective=OBJECTIVES.build(objective),
        classes=classes,
        places=None if places is None else PLACES.build(places),
    )
    torch.default_generator.manual_seed(seed)
    made = build_model(settings, Vocabulary.of(one))
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=spread)
    return made.eval()


def trained(**known: Any) -> Trained:
    """Return the training record of an untrained model, updated with ``known``."""
    nothing: dict[str, Any] = {"configuration": {}, "calibration": {}, "calibrated_on": None}
    nothing |= dict.fromkeys(("seed", "samples", "tokens", "steps"), 0)
    return Trained(**nothing | {"train_mean": None, "flops": 0.0} | known)


def transformer(of: Model) -> Transformer:
    """Return the trunk of a model, which must be a transformer."""
    assert isinstance(of.trunk, Transformer)
    return of.trunk


def numbers_of(of: Batch) -> NDArray[np.bool_]:
    """Return a mask that selects every number of a batch."""
    return np.ones(len(of.number), np.bool_)


def probe_inputs(loaded: LoadedModel) -> ProbeInputs:
    """Return the inputs of a probe that needs only the model."""

    def none(kind: str, name: str, version: str) -> None:
        return None

    return ProbeInputs(
        loaded=loaded,
        data=None,
        find=none,
        progress=lambda what, done, total: None,
        note=lambda note: None,
    )


def embedded(*size: int, seed: int = 1) -> torch.Tensor:
    """Return vectors of 16 coordinates, like those of an embedder."""
    return torch.randn(*size, 16, generator=torch.Generator().manual_seed(seed))


def real(lengths: list[int], longest: int) -> torch.Tensor:
    """bool[B, longest]: True at positions that are not padding."""
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


@torch.no_grad()
def states(
    of: TrunkModule,
    x_BLD: torch.Tensor,
    real_BL: torch.Tensor | None = None,
    asked_BQ: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the hidden states of a trunk."""
    found: torch.Tensor = of(x_BLD, real_BL, asked_BQ)
    return found
