"""Reads and writes model files: ``model.json``, ``weights.safetensors`` and ``scheme.json``.

Only text models have a ``scheme.json``. For a table model, the weights file contains the weights of
the models for all folds.
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
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError, StoreError, UsageError
from numtok.models.heads.base import (
    HEADS,
    CalibratedReader,
    Calibration,
    ValueHead,
    ValueReader,
    default_point,
)
from numtok.models.model import Model, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.regressor import Regressor
from numtok.models.settings import ModelSettings
from numtok.models.steps import compile_passes
from numtok.models.trunks.base import ColumnTrunk, stored_trunk
from numtok.models.vocabulary import Vocabulary
from numtok.plugins import is_plugin
from numtok.registry import name_of
from numtok.reports import Costs
from numtok.store.artifact import Artifact
from numtok.stored_json import VERIFY
from numtok.training.model_json import (
    FORMAT,
    ModelFile,
    TableModelFile,
    TextModelFile,
    Trained,
    model_path,
    read_model_file,
    write_model_file,
)
from numtok.training.trained_table import FittedTable
from numtok.training.weights import load_weights, naming_model, weights_of, write_weights


class AskedModel(Protocol):
    """Protocol for text models in memory that can be evaluated, such as :class:`LoadedModel`.

    Evaluation uses this protocol because a model need not come from a store.
    """

    @property
    def ref(self) -> str:
        """Name of the model, for messages."""
        ...

    @property
    def model(self) -> Model:
        """Neural network with its weights."""
        ...

    @property
    def codec(self) -> Codec:
        """Codec that encodes the inputs of the model and decodes its outputs."""
        ...

    @property
    def trained(self) -> Trained:
        """Record of the model's training, including the calibration of its head."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModelInMemory:
    """A text model that belongs to no store. ``ref`` is its name in messages."""

    ref: str
    model: Model
    codec: Codec
    trained: Trained


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A text model that was loaded from an artifact.

    compiled
        True if PyTorch compiles the forward passes that predict numbers.
    """

    artifact: Artifact
    model: Model
    codec: Codec
    trained: Trained
    compiled: bool = False

    @property
    def ref(self) -> str:
        """REF of the artifact, ``name@version``."""
        return self.artifact.ref

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a REF: other processes read the model from the store onto their own device."""
        device = torch.device(next(self.model.parameters()).device.type)
        return read_model, (self.artifact, device, None, self.compiled)

    def costs(self, lengths: NDArray[np.int32]) -> Costs:
        """Return the training costs of the model.

        ``lengths``, int32[n], contains the number of tokens of each reported number. The mean of
        these lengths is one of the costs.
        """
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
    """Write a text model to a folder, in the format that :func:`read_model` loads."""
    write_weights(folder, weights)
    write_model_file(folder, TextModelFile(FORMAT, settings, trained))
    files.write_atomic(folder / SCHEME_FILE, codec.to_json())


def is_causal(artifact: Artifact, file: TextModelFile) -> bool:
    """Return whether a text model predicts left to right.

    Raises UsageError if its objective is unknown.
    """
    with artifact.naming_plugins(), naming_model(model_path(artifact)):
        return OBJECTIVES.from_settings(file.settings.objective).causal


def default_point_of(artifact: Artifact, file: TextModelFile) -> str:
    """Return the default value of ``--point`` for a text model.

    Raises UsageError if the head of the model is unknown.
    """
    settings = file.settings.head
    with artifact.naming_plugins(), naming_model(model_path(artifact)):
        return default_point(None if settings is None else HEADS.from_settings(settings))


def read_model(
    artifact: Artifact, device: torch.device, file: ModelFile | None = None, compiled: bool = False
) -> LoadedModel:
    """Load a text model for evaluation.

    file
        Contents of the artifact's ``model.json``, if it was already read.
    compiled
        True to let PyTorch compile the forward passes that predict numbers.

    Raises StoreError if files are damaged, have a newer format or do not match each other. Raises
    UsageError if the artifact is a table model, or if a part of the model has an unknown revision.
    """
    file, path = file or read_model_file(artifact), model_path(artifact)
    if not isinstance(file, TextModelFile):
        raise UsageError(f"{artifact.ref} is a table model. Choose a text model")
    codec = read_codec(artifact)
    if file.settings.vocabulary != codec.vocabulary_size:
        raise StoreError(
            f"{path} has {file.settings.vocabulary} tokens, but {SCHEME_FILE} next to it has "
            f"{codec.vocabulary_size}. Find the damaged file: `numtok verify {artifact.ref}`"
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
    """Raise StoreError if a value head lacks the standard deviation that calibration measures.

    Only numtok's own heads that need a calibration are checked, not those of plugins. ``path`` is
    the path of the ``model.json``, for the message.
    """
    own = isinstance(reader, CalibratedReader) and not is_plugin(reader)
    if own and not calibration.get("deviation", 0) > 0:
        raise StoreError(
            f"{path} is damaged (its head has no standard deviation above 0). {VERIFY}"
        )


def row_limit(model: Model) -> int:
    """Return the maximum number of tokens per row that a model can read."""
    return model.settings.context - int(model.objective.causal)


def check_reads(loaded: AskedModel, samples: EncodedSplit, title: str, remedy: str = "") -> None:
    """Raise DataError if a row is too long for the model, or if the model's value head is not
    calibrated.

    title
        Name for the rows in messages.
    remedy
        Text that is appended to the advice about long rows.
    """
    context = row_limit(loaded.model)
    if samples.longest > context:
        raise DataError(
            f"{title} has a row of {samples.longest:,} tokens, but {loaded.ref} reads at most "
            f"{context:,}. Train with a larger context in --preset{remedy}"
        )
    calibrated = isinstance(loaded.model.value_head, CalibratedReader)
    if calibrated and not loaded.trained.calibration:
        raise DataError(
            f"{loaded.ref} has no calibration for its value head, because its calibration split "
            "has no numbers to predict. Train on data with more numbers"
        )


@dataclass(frozen=True)
class LoadedRegressor:
    """A table model that was loaded from an artifact.

    ``fitted`` maps each fold to its fitted model.
    """

    artifact: Artifact
    file: TableModelFile
    fitted: dict[int, FittedTable]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a REF: other processes read the model from the store onto their own device."""
        device = next(next(iter(self.fitted.values())).model.parameters()).device
        return read_regressor, (self.artifact, torch.device(device.type))


def write_regressor(folder: Path, file: TableModelFile, models: Sequence[Regressor]) -> None:
    """Write a table model to a folder, in the format that :func:`read_regressor` loads.

    ``models`` contains one model for each fold in ``file``, in the same order.
    """
    write_weights(folder, weights_of(_of_folds(file, models)))
    write_model_file(folder, file)


def read_regressor(
    artifact: Artifact, device: torch.device, file: ModelFile | None = None
) -> LoadedRegressor:
    """Load a table model with the models of all folds, for evaluation.

    ``file`` is the content of the artifact's ``model.json``, if it was already read.

    Raises StoreError if files are damaged, have a newer format or do not match each other. Raises
    UsageError if the artifact is a text model, or if a part of the model has an unknown revision.
    """
    file, path = file or read_model_file(artifact), model_path(artifact)
    if not isinstance(file, TableModelFile):
        raise UsageError(f"{artifact.ref} is a text model. Choose a table model")
    folds = file.trained.folds
    with artifact.naming_plugins(), naming_model(path):
        trunk = stored_trunk(file.settings.trunk)
        if not isinstance(trunk, ColumnTrunk):
            raise ValueError(f"the trunk {name_of(trunk)} takes tokens, not columns")
        head = cast(ValueHead, HEADS.from_settings(file.settings.head))

    def make() -> nn.ModuleDict:
        return _of_folds(file, [Regressor(fold.inputs.width, trunk, head) for fold in folds])

    with artifact.naming_plugins():
        models = load_weights(path, msgspec.to_builtins(file.settings), make).to(device).eval()
    fitted = {}
    for fold, module in zip(folds, models.values(), strict=True):
        with naming_model(path):
            scaling = stored_normalizer(file.settings.normalizer, fold.scaling)
            low, high = scaling.inverse(np.array([0.0, 1.0])).tolist()
            if fold.learnt_from.low < fold.learnt_from.high and not low < high:
                raise ValueError(f"its target range from {low} to {high} is empty")
        model = cast(Regressor, module)
        check_calibration(path, model.reader, fold.calibration)
        fitted[fold.fold] = FittedTable(
            model=model,
            inputs=fold.inputs,
            scaling=scaling,
            calibration=fold.calibration,
            learnt_from=fold.learnt_from,
            fit=fold.fit,
        )
    return LoadedRegressor(artifact, file, fitted)


def _of_folds(file: TableModelFile, models: Sequence[Regressor]) -> nn.ModuleDict:
    """Combine the models of all folds in one module; the fold is the prefix of weight names."""
    names = [f"fold{fold.fold}" for fold in file.trained.folds]
    return nn.ModuleDict(dict(zip(names, models, strict=True)))
