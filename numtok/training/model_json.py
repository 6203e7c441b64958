"""Contents of ``model.json``: the settings of a model, and the record of its training.

Text models and table models use the same format. The key ``reads`` tells them apart.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from numtok.data.tables.table import Feature
from numtok.models.heads.base import Calibration
from numtok.models.settings import ModelSettings
from numtok.registry import Settings
from numtok.reports import Configuration
from numtok.store.artifact import Artifact
from numtok.stored_json import Natural, StoredJson, convert
from numtok.training.features import Inputs
from numtok.training.trained_table import FitRecord, LearntFrom

FORMAT = 1
MODEL_FILE = "model.json"
_LARGEST = 256 << 20  # bytes: a model may have many labels


class Trained(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Record of the training of a text model.

    configuration
        Options in readable form, without the seed. Reports with the same configuration form one
        experiment.
    calibration
        Constants of the head's predicted distribution (see ``models.heads.base``), measured on the
        split ``calibrated_on``.
    train_mean
        Mean of the targets in the train split, or of all its numbers if it has no targets. It
        replaces invalid predictions.
    samples, tokens, steps, flops
        Number of rows, tokens and steps trained on, and training FLOPs.
    """

    configuration: Configuration
    seed: int
    calibration: Calibration
    calibrated_on: str | None
    train_mean: float | None
    samples: Natural
    tokens: Natural
    steps: Natural
    flops: float

    def __post_init__(self) -> None:
        for key in ("preset", "embedder", "head"):  # which --init-from takes from here
            if not isinstance(self.configuration.get(key, ""), str):
                raise ValueError(f"the {key} in the configuration is not a string")
        if (self.calibrated_on is None) == bool(self.calibration):
            raise ValueError("it has a calibration without its split, or a split without one")


class TextModelFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="reads", tag="texts"
):
    """Contents of a text model's ``model.json``."""

    format: int
    settings: ModelSettings
    trained: Trained

    def __post_init__(self) -> None:
        if (self.settings.head is None) != bool(self.settings.classes):
            raise ValueError("it must have either a head for numbers or classes")


class Fold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that was fitted on the train split of one fold, except the weights.

    Most fields are described in :class:`numtok.training.trained_table.FittedTable`.

    scaling
        Constants of the target normalization.
    flops
        Training FLOPs; a multiplication and an addition count as two.
    """

    fold: Natural
    inputs: Inputs
    scaling: dict[str, float]
    calibration: Calibration
    learnt_from: LearntFrom
    fit: FitRecord
    flops: float


class FitOptions(msgspec.Struct, frozen=True):
    """Options of a table model that evaluation reads from the model's configuration.

    scheme
        Spec of the head.
    validation
        Fraction of the training rows that was held back for validation.
    rows
        Maximum number of training rows; None if there was no limit.
    """

    scheme: str
    validation: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    rows: Natural | None = None


class TableModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of a table model, without weights and without constants fitted to the train split.

    The trunk, the head and the normalizer are stored with all their settings
    (``registry.settings_of``).
    """

    target: str
    features: list[Feature]
    trunk: Settings
    head: Settings
    normalizer: Settings


class TrainedFolds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Record of the training of a table model, with one entry per trained fold.

    ``configuration`` is described in :class:`Trained`. All folds are in one artifact, because their
    results are only meaningful together.
    """

    configuration: Configuration
    seed: int
    folds: list[Fold]

    def __post_init__(self) -> None:
        _ = self.options
        if not self.folds or len({fold.fold for fold in self.folds}) < len(self.folds):
            raise ValueError("there is no fold, or a fold occurs twice")

    @property
    def options(self) -> FitOptions:
        """The options in ``configuration`` that evaluation needs.

        Raises ValueError if they are missing.
        """
        return convert(self.configuration, FitOptions)


class TableModelFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="reads", tag="tables"
):
    """Contents of a table model's ``model.json``."""

    format: int
    settings: TableModelSettings
    trained: TrainedFolds

    def __post_init__(self) -> None:
        features = self.settings.features
        numbers = sum(feature.kind == "number" for feature in features)
        for fold in self.trained.folds:
            sizes = len(fold.inputs.means), len(fold.inputs.values)
            if sizes != (numbers, len(features) - numbers):
                raise ValueError(f"the inputs of fold {fold.fold} do not match the features")


ModelFile = TextModelFile | TableModelFile


def model_path(artifact: Artifact) -> Path:
    """Return the path of an artifact's ``model.json``."""
    return artifact.path / MODEL_FILE


def read_model_file(artifact: Artifact) -> ModelFile:
    """Read an artifact's ``model.json``.

    Raises StoreError if the file was changed or has a newer format.
    """
    return artifact.read(_MODEL)


def write_model_file(folder: Path, file: ModelFile) -> None:
    """Write a ``model.json`` to a folder, in the format that :func:`read_model_file` reads."""
    _MODEL.write(folder, file)


# mypy does not accept a union as a type object.
_KINDS: Any = ModelFile
_MODEL: StoredJson[ModelFile] = StoredJson(
    name=MODEL_FILE, kind=_KINDS, limit=_LARGEST, newest=FORMAT
)
