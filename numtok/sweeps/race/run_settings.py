"""The settings of the training runs and evaluations of a race."""

from collections.abc import Mapping
from typing import Any

from numtok.settings import eval, train
from numtok.store.artifact import Artifact


def training(
    data: Artifact, options: Mapping[str, str], size: str, batch: int, device: str, **more: Any
) -> train.Config:
    """Return the settings of a training run on ``data``: the ``options`` of a candidate, the
    settings shared by all candidates, and ``more``."""
    settings = {**more, **options}
    return train.Config(data=str(data.path), preset=size, batch=batch, device=device, **settings)


def evaluating(data: str, split: str, rows: int | None, device: str) -> eval.Config:
    """Return the settings of an evaluation. It leaves out the baselines, which a race fits once for
    all candidates."""
    return eval.Config(model="", data=data, split=split, rows=rows, baselines="no", device=device)
