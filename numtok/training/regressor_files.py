"""A model of tables as an artifact: ``model.json``, ``weights.safetensors``, ``metrics.jsonl``.

One artifact holds a model for each fold that was asked for, since their results
only mean something together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import torch
from torch import nn

from numtok.encoding.normalizers.base import stored_normalizer
from numtok.errors import UsageError
from numtok.models.regressor import Regressor, RegressorSettings
from numtok.models.trunks.base import ColumnTrunk, stored_trunk
from numtok.registry import name_of
from numtok.store.artifact import Artifact
from numtok.training.model_files import check_calibration
from numtok.training.model_json import (
    ModelFile,
    TableModelFile,
    TableModelSettings,
    model_path,
    read_model_file,
    write_model_file,
)
from numtok.training.trained_table import FittedTable
from numtok.training.weights import load_weights, naming_model, weights_of, write_weights


@dataclass(frozen=True)
class LoadedRegressor:
    """A model artifact in memory: what it says, and a fitted model for each fold in it."""

    artifact: Artifact
    file: TableModelFile
    fitted: dict[int, FittedTable]

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, which read it from the store onto a device of their own."""
        device = next(next(iter(self.fitted.values())).model.parameters()).device
        return read_regressor, (self.artifact, torch.device(device.type))


def write_regressor(folder: Path, file: TableModelFile, models: Sequence[Regressor]) -> None:
    """Write what :func:`read_regressor` reads; a model for each of the file's folds."""
    write_weights(folder, weights_of(_of_folds(file, models)))
    write_model_file(folder, file)


def read_regressor(
    artifact: Artifact, device: torch.device, file: ModelFile | None = None
) -> LoadedRegressor:
    """The models, ready for evaluation; ``file`` is what they are, where that was read already.

    Raises StoreError where files are damaged, of a newer format or do not belong together,
    UsageError for a revision that this numtok does not know, and for a model of texts.
    """
    file, path = file or read_model_file(artifact), model_path(artifact)
    if not isinstance(file, TableModelFile):
        raise UsageError(f"{artifact.ref} is a model of texts; give one of tables")
    folds = file.trained.folds
    with artifact.naming_plugins(), naming_model(path):
        settings = [_settings(file.settings, fold.inputs.width) for fold in folds]

    def make() -> nn.ModuleDict:
        return _of_folds(file, [*map(Regressor, settings)])

    with artifact.naming_plugins():
        models = load_weights(path, msgspec.to_builtins(file.settings), make).to(device).eval()
    fitted = {}
    for one, module in zip(folds, models.values(), strict=True):
        with naming_model(path):
            scaling = stored_normalizer(file.settings.normalizer, one.scaling)
            low, high = scaling.inverse(np.array([0.0, 1.0])).tolist()
            if one.learnt_from.low < one.learnt_from.high and not low < high:
                raise ValueError(f"its numbers from {low} to {high} are one")
        model = cast(Regressor, module)
        check_calibration(path, model.reader, one.calibration)
        fitted[one.fold] = FittedTable(
            model=model,
            inputs=one.inputs,
            scaling=scaling,
            calibration=one.calibration,
            learnt_from=one.learnt_from,
            fit=one.fit,
        )
    return LoadedRegressor(artifact, file, fitted)


def _settings(settings: TableModelSettings, inputs: int) -> RegressorSettings:
    trunk = stored_trunk(settings.trunk)
    if not isinstance(trunk, ColumnTrunk):
        raise ValueError(f"the trunk {name_of(trunk)} takes tokens, not columns")
    return RegressorSettings(inputs, trunk, settings.head)


def _of_folds(file: TableModelFile, models: Sequence[Regressor]) -> nn.ModuleDict:
    """One module, whose weights have the fold's name before their own."""
    names = [f"fold{fold.fold}" for fold in file.trained.folds]
    return nn.ModuleDict(dict(zip(names, models, strict=True)))
