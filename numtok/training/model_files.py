"""A model as an artifact: ``model.json``, ``weights.safetensors`` and ``metrics.jsonl``; for texts
also ``scheme.json``. A model of tables has the weights of one model per fold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok import files
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.normalizers.base import stored_normalizer
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.splits import read_codec
from numtok.errors import DataError, StoreError, UsageError
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Calibration,
    ValueReader,
    default_point,
)
from numtok.models.model import Model, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.regressor import Regressor, RegressorSettings
from numtok.models.settings import ModelSettings
from numtok.models.steps import compile_passes
from numtok.models.trunks.base import ColumnTrunk, stored_trunk
from numtok.models.vocabulary import Vocabulary
from numtok.plugins import is_plugin
from numtok.registry import name_of
from numtok.reports import Costs
from numtok.store.artifact import Artifact
from numtok.training.model_json import (
    FORMAT,
    ModelFile,
    TableModelFile,
    TableModelSettings,
    TextModelFile,
    Trained,
    model_path,
    read_model_file,
    write_model_file,
)
from numtok.training.trained_table import FittedTable
from numtok.training.weights import load_weights, naming_model, weights_of, write_weights


class AskedModel(Protocol):
    """A model in memory that is asked, wherever it was read."""

    @property
    def ref(self) -> str:
        """What messages call it."""
        ...

    @property
    def model(self) -> Model:
        """Its weights."""
        ...

    @property
    def codec(self) -> Codec:
        """What it reads and writes by."""
        ...

    @property
    def trained(self) -> Trained:
        """What training left beside the weights."""
        ...


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model artifact in memory."""

    artifact: Artifact
    model: Model
    codec: Codec
    trained: Trained
    compiled: bool = False

    @property
    def ref(self) -> str:
        """Of the artifact."""
        return self.artifact.ref

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, which read it from the store onto a device of their own."""
        device = torch.device(next(self.model.parameters()).device.type)
        return read_model, (self.artifact, device, None, self.compiled)

    def costs(self, lengths: NDArray[np.int32]) -> Costs:
        """What it took to train; ``lengths`` are the tokens of each number that a report is of."""
        parameters, tables = self.model.parameter_counts()
        return Costs(
            samples=self.trained.samples,
            tokens=self.trained.tokens,
            steps=self.trained.steps,
            flops=self.trained.flops,
            parameters=parameters,
            embedding_parameters=tables,
            tokens_per_number=float(lengths.mean()) if len(lengths) else 0.0,
        )


def write_model(
    folder: Path,
    settings: ModelSettings,
    weights: Mapping[str, Tensor],
    codec: Codec,
    trained: Trained,
) -> None:
    """Write what :func:`read_model` reads."""
    write_weights(folder, weights)
    write_model_file(folder, TextModelFile(FORMAT, settings, trained))
    files.write_atomic(folder / SCHEME_FILE, codec.to_json())


def is_causal(artifact: Artifact, file: TextModelFile) -> bool:
    """Whether the model, whose file was read, predicts from left to right; UsageError for an
    objective that this numtok does not know."""
    with artifact.naming_plugins(), naming_model(model_path(artifact)):
        return OBJECTIVES.from_settings(file.settings.objective).causal


def usual_point(artifact: Artifact, file: TextModelFile) -> str:
    """Return the default of ``--point`` for a model whose file was read; UsageError for a head that
    this numtok does not know."""
    settings = file.settings.head
    with artifact.naming_plugins(), naming_model(model_path(artifact)):
        return default_point(None if settings is None else HEADS.from_settings(settings))


def read_model(
    artifact: Artifact, device: torch.device, file: ModelFile | None = None, compiled: bool = False
) -> LoadedModel:
    """The model, ready for evaluation; ``file`` is what it is, where that was read already.
    ``compiled``: PyTorch compiles what numbers are read by.

    Raises StoreError where files are damaged, of a newer format or do not belong together,
    UsageError for a revision that this numtok does not know, and for a model of tables.
    """
    file, path = file or read_model_file(artifact), model_path(artifact)
    if not isinstance(file, TextModelFile):
        raise UsageError(f"{artifact.ref} is a model of tables; give one of texts")
    codec = read_codec(artifact)
    if file.settings.vocabulary != codec.vocabulary_size:
        raise StoreError(
            f"{path} is for {file.settings.vocabulary} tokens, {SCHEME_FILE} beside it has "
            f"{codec.vocabulary_size}; `numtok verify {artifact.ref}` says which is damaged"
        )
    make = partial(build_model, file.settings, Vocabulary.of(codec))
    with artifact.naming_plugins():
        model = load_weights(path, msgspec.to_builtins(file.settings), make)
    if file.trained.calibration:
        check_calibration(path, model.value_head, file.trained.calibration)
    model = model.to(device).eval()
    if compiled:
        compile_passes(model)
    return LoadedModel(
        artifact=artifact, model=model, codec=codec, trained=file.trained, compiled=compiled
    )


def check_calibration(path: Path, reader: ValueReader | None, calibration: Calibration) -> None:
    """Raise StoreError for a reader of numtok's own without the deviation that it measured."""
    own = isinstance(reader, CalibratedReader) and not is_plugin(reader)
    if own and not calibration.get("deviation", 0) > 0:
        raise StoreError(
            f"{path} is damaged (its head has no deviation above 0); `numtok verify` says what "
            "else is"
        )


def row_limit(model: Model) -> int:
    """The most tokens of a row that a model reads."""
    return model.settings.context - int(model.objective.causal)


def check_reads(loaded: AskedModel, samples: EncodedSplit, told: str, remedy: str = "") -> None:
    """Raises DataError for rows that are too long, and for a head without its calibration;
    ``told`` is what the rows are, ``remedy`` what else helps against long ones."""
    context = row_limit(loaded.model)
    if samples.longest > context:
        raise DataError(
            f"{told} has a row of {samples.longest:,} tokens, "
            f"{loaded.ref} reads {context:,}; train with a --preset of more context{remedy}"
        )
    calibrated = isinstance(loaded.model.value_head, CalibratedReader)
    if calibrated and not loaded.trained.calibration:
        raise DataError(
            f"{loaded.ref} has no spread for its value head: no number of the split "
            "that it is measured on was asked for; train on data with more numbers in it"
        )


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
