"""``model.json``: what a model is, except for its weights, and what training recorded.

Text and table models share the format; ``reads`` says which of them a file is.
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
    """What training on texts left beside the weights.

    configuration
        What was asked for, the seed apart, in a form for people: what reports are grouped by.
    calibration
        What the head's distribution needs (``models.heads.base``), and on which split it was
        measured.
    train_mean
        Of the targets (or numbers) of the train split; what an invalid prediction counts as.
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
        for key in ("preset", "embedder", "head"):  # which another model may begin with
            if not isinstance(self.configuration.get(key, ""), str):
                raise ValueError(f"the configuration does not say its {key}")
        if (self.calibrated_on is None) == bool(self.calibration):
            raise ValueError("a calibration and the split that it is of go together")


class TextModelFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="reads", tag="texts"
):
    """What ``model.json`` says of a model of texts."""

    format: int
    settings: ModelSettings
    trained: Trained

    def __post_init__(self) -> None:
        if (self.settings.head is None) != bool(self.settings.classes):
            raise ValueError("there is a head for numbers, or there are classes")


class Fold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was fitted on one fold's train split, beside the weights; see
    ``trained_table.FittedTable``.

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


class TableModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that a model of tables is but its weights, and what is fitted on a train split;
    trunk, head and normaliser as ``registry.settings_of`` expands them."""

    target: str
    features: list[Feature]
    trunk: Settings
    head: Settings
    normalizer: Settings


class TrainedFolds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What training on a table left beside the weights: ``configuration`` as in :class:`Trained`,
    and for each fold that was asked for a model, since their results only mean something
    together."""

    configuration: Configuration
    seed: int
    folds: list[Fold]

    def __post_init__(self) -> None:
        _ = self.options
        if not self.folds or len({one.fold for one in self.folds}) < len(self.folds):
            raise ValueError("there is no fold, or one twice")

    @property
    def options(self) -> FitOptions:
        """What is needed again of the configuration; ValueError where it is not there."""
        return convert(self.configuration, FitOptions)


class TableModelFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="reads", tag="tables"
):
    """What ``model.json`` says of a model of tables."""

    format: int
    settings: TableModelSettings
    trained: TrainedFolds

    def __post_init__(self) -> None:
        features = self.settings.features
        numbers = sum(one.kind == "number" for one in features)
        for fold in self.trained.folds:
            sizes = len(fold.inputs.means), len(fold.inputs.values)
            if sizes != (numbers, len(features) - numbers):
                raise ValueError(f"the inputs of fold {fold.fold} are not those of the features")


ModelFile = TextModelFile | TableModelFile


def model_path(artifact: Artifact) -> Path:
    """The file that says what a model is."""
    return artifact.path / MODEL_FILE


def read_model_file(artifact: Artifact) -> ModelFile:
    """Read what a model is, without its weights.

    Raises StoreError if the file is damaged or of a newer format.
    """
    return _MODEL.read(artifact.path)


def write_model_file(folder: Path, file: ModelFile) -> None:
    """Write what :func:`read_model_file` reads."""
    _MODEL.write(folder, file)


# A union is no type to the checker of types.
_KINDS: Any = ModelFile
_MODEL: StoredJson[ModelFile] = StoredJson(
    name=MODEL_FILE, kind=_KINDS, limit=_LARGEST, newest=FORMAT
)
