"""``model.json``: what a model is, beside its weights, and what training left.

One format for models of texts and of tables, which ``reads`` tells apart. Format 1 is still read: a
trunk had a key of its own there instead of a name, and models of tables lay in ``regressor.json``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from numtok.data.tables.table import Feature
from numtok.models.heads.base import Calibration
from numtok.models.settings import ModelSettings
from numtok.models.trunk_settings import KEYS, OF_TABLES, named
from numtok.records import Natural
from numtok.registry import Settings
from numtok.reports import Configuration
from numtok.store.artifact import Artifact
from numtok.stored_json import StoredJson, convert, decode
from numtok.training.features import Inputs
from numtok.training.trained_table import FitRecord, LearntFrom

FORMAT = 2
MODEL_FILE = "model.json"
_REGRESSOR_FILE = "regressor.json"  # of a model of tables, in format 1
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
    former = any(output.path == _REGRESSOR_FILE for output in artifact.files())
    return artifact.path / (_REGRESSOR_FILE if former else MODEL_FILE)


def read_model_file(artifact: Artifact) -> ModelFile:
    """What a model is; nothing of its weights is read.

    Raises StoreError where the file is damaged or of a newer format.
    """
    kinds = _REGRESSOR if model_path(artifact).name == _REGRESSOR_FILE else _MODEL
    return kinds.read(artifact.path)


def write_model_file(folder: Path, file: ModelFile) -> None:
    """Write what :func:`read_model_file` reads."""
    _MODEL.write(folder, file)


class _Text1(msgspec.Struct, forbid_unknown_fields=True):
    """``model.json`` of format 1."""

    format: int
    settings: dict[str, Any]
    trained: Any


class _Table1(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """``regressor.json`` of format 1."""

    format: int
    target: Any
    features: Any
    trunk: Settings
    head: Any
    normalizer: Any
    configuration: Any
    seed: Any
    folds: Any


def _text_of_1(content: bytes) -> bytes:
    """``model.json`` of format 1 as it is now; ValueError for what is none."""
    former = decode(content, _Text1)
    settings = dict(former.settings)
    trunk = _trunk_of_1({key: settings.pop(key, None) for key in (*KEYS, "trunk")})
    return _current("texts", settings | {"trunk": trunk}, former.trained)


def _table_of_1(content: bytes) -> bytes:
    """Likewise of ``regressor.json``."""
    former = msgspec.structs.asdict(decode(content, _Table1))
    settings = {key: former[key] for key in ("target", "features", "trunk", "head", "normalizer")}
    settings["trunk"] = named(former["trunk"], OF_TABLES)
    trained = {key: former[key] for key in ("configuration", "seed", "folds")}
    return _current("tables", settings, trained)


def _current(reads: str, settings: Mapping[str, Any], trained: Any) -> bytes:
    return msgspec.json.encode(
        {"reads": reads, "format": FORMAT, "settings": settings, "trained": trained}
    )


def _trunk_of_1(found: Mapping[str, Any]) -> Settings:
    """The one trunk of a model of format 1, by the key that it has there."""
    there = {key: settings for key, settings in found.items() if settings is not None}
    if len(there) != 1:
        raise ValueError(f"there is one trunk, not {len(there)}")
    [(key, settings)] = there.items()
    settings = convert(settings, Settings)
    return named(settings, KEYS[key]) if key in KEYS else settings


# A union is no type to the checker of types.
_KINDS: Any = ModelFile
_MODEL: StoredJson[ModelFile] = StoredJson(
    name=MODEL_FILE, kind=_KINDS, limit=_LARGEST, newest=FORMAT, upgrade=_text_of_1
)
_REGRESSOR: StoredJson[ModelFile] = StoredJson(
    name=_REGRESSOR_FILE, kind=_KINDS, limit=_LARGEST, newest=FORMAT, upgrade=_table_of_1
)
