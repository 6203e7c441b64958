"""A model of tables as an artifact: ``weights.safetensors``, ``regressor.json``, ``metrics.jsonl``.

One artifact holds a model for each fold that was asked for, since their results
only mean something together. Loading trusts nothing: names, types and shapes are
compared with what the settings give before anything is copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import msgspec
import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from numtok import files
from numtok.data.tables.table import Feature
from numtok.encoding.normalizers.base import stored_normalizer
from numtok.models.heads.base import Calibration
from numtok.models.regressor import Regressor, RegressorSettings
from numtok.models.trunk_settings import OF_TABLES, named
from numtok.models.trunks.base import TRUNKS, ColumnTrunk
from numtok.records import Natural
from numtok.registry import Settings, name_of
from numtok.reports import Configuration
from numtok.store.artifact import Artifact
from numtok.stored_json import StoredJson, convert
from numtok.training.features import Inputs
from numtok.training.model_files import (
    LARGEST,
    WEIGHTS,
    check_calibration,
    load_weights,
    naming_model,
)
from numtok.training.trained_table import FitRecord, FittedTable, LearntFrom

FORMAT = 1  # of regressor.json
REGRESSOR_FILE = "regressor.json"


class Fold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was fitted on one fold's train split, beside the weights; see ``nn.fitted.FittedTable``.

    scaling
        Constants of the normalisation of the target.
    flops
        Of training; a multiplication and an addition count as two.
    """

    fold: Natural
    inputs: Inputs
    scaling: dict[str, float]
    calibration: Calibration
    learnt_from: LearntFrom
    fit: FitRecord
    flops: float


class FitOptions(msgspec.Struct, frozen=True):
    """Of a configuration: the head's spec, the share of the rows that was held back, and of how
    many rows at most."""

    scheme: str
    validation: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    rows: Natural | None = None


class RegressorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``regressor.json``.

    trunk, head, normalizer
        Expanded settings (``registry.settings_of``), those of a trunk as ``trunk_settings`` has
        them.
    configuration
        What was asked for, the seed apart, in a form for people: what reports are grouped by.
    """

    target: str
    features: list[Feature]
    trunk: Settings
    head: Settings
    normalizer: Settings
    configuration: Configuration
    seed: int
    folds: list[Fold]
    format: int = FORMAT

    def __post_init__(self) -> None:
        _ = self.options
        numbers = sum(one.kind == "number" for one in self.features)
        for fold in self.folds:
            if (len(fold.inputs.means), len(fold.inputs.values)) != (
                numbers,
                len(self.features) - numbers,
            ):
                raise ValueError(f"the inputs of fold {fold.fold} are not those of the features")
        if not self.folds or len({one.fold for one in self.folds}) < len(self.folds):
            raise ValueError("there is no fold, or one twice")

    @property
    def options(self) -> "FitOptions":
        """What is needed again of the configuration; ValueError where it is not there."""
        return convert(self.configuration, FitOptions)


_REGRESSOR = StoredJson(
    REGRESSOR_FILE, RegressorFile, limit=LARGEST, newest=FORMAT, dataclasses=True
)


@dataclass(frozen=True)
class LoadedRegressor:
    """A model artifact in memory: what it says, and a fitted model for each fold in it."""

    artifact: Artifact
    file: RegressorFile
    fitted: dict[int, FittedTable]


def is_regressor(artifact: Artifact) -> bool:
    """Whether a model artifact is one of tables."""
    return any(output.path == REGRESSOR_FILE for output in artifact.files())


def write_regressor(folder: Path, file: RegressorFile, models: Sequence[Regressor]) -> None:
    """Write what :func:`read_regressor` reads; a model for each of the file's folds."""
    weights = {
        name: parameter.detach().cpu().contiguous()
        for fold, model in zip(file.folds, models, strict=True)
        for name, parameter in _named(fold, model).items()
    }
    files.write_atomic(folder / WEIGHTS, save(weights))
    _REGRESSOR.write(folder, file)


def read_regressor(artifact: Artifact, device: torch.device) -> LoadedRegressor:
    """The models, ready for evaluation.

    Raises StoreError where files are damaged, of a newer format or do not belong together,
    UsageError for a revision that this numtok does not know.
    """
    file = read_regressor_file(artifact)
    path = artifact.path / REGRESSOR_FILE
    with artifact.naming_plugins(), naming_model(path):
        settings = {one.fold: _settings(file, one) for one in file.folds}

    def make() -> nn.ModuleDict:
        return nn.ModuleDict({f"fold{one}": Regressor(of) for one, of in settings.items()})

    sizes = {"trunk": file.trunk, "head": file.head}
    with artifact.naming_plugins():
        weights = load_weights(artifact.path / WEIGHTS, path, sizes, make)
    fitted = {}
    for one in file.folds:
        with naming_model(path):
            scaling = stored_normalizer(file.normalizer, one.scaling)
            low, high = scaling.inverse(np.array([0.0, 1.0])).tolist()
            if one.learnt_from.low < one.learnt_from.high and not low < high:
                raise ValueError(f"its numbers from {low} to {high} are one")
        model = Regressor(settings[one.fold])
        check_calibration(path, model.head, one.calibration)
        with torch.no_grad():
            for name, parameter in _named(one, model).items():
                parameter.copy_(weights[name])
        fitted[one.fold] = FittedTable(
            model.to(device).eval(),
            one.inputs,
            scaling,
            one.calibration,
            one.learnt_from,
            one.fit,
        )
    return LoadedRegressor(artifact, file, fitted)


def read_regressor_file(artifact: Artifact) -> RegressorFile:
    """What the models are; nothing of their weights is read. Raises as :func:`read_regressor`."""
    return _REGRESSOR.read(artifact.path)


def _settings(file: RegressorFile, fold: Fold) -> RegressorSettings:
    trunk = TRUNKS.from_settings(named(file.trunk, OF_TABLES))
    if trunk.takes != "columns":
        raise ValueError(f"the trunk {name_of(trunk)} takes {trunk.takes}, not columns")
    return RegressorSettings(fold.inputs.width, cast(ColumnTrunk, trunk), file.head)


def _named(fold: Fold, model: Regressor) -> Mapping[str, Tensor]:
    return {f"fold{fold.fold}.{name}": one for name, one in model.named_parameters()}
