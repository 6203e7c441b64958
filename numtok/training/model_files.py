"""A model artifact: ``weights.safetensors``, ``model.json``, ``scheme.json``, ``metrics.jsonl``.

Loading trusts nothing: names, types and shapes are compared with what the
settings give before anything is copied.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from numtok import files
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_codec
from numtok.errors import DataError, StoreError, naming
from numtok.models.heads.base import Calibration, ValueHead
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.settings import ModelSettings, ScalingSettings
from numtok.models.trunk_settings import KEYS, from_file, in_file
from numtok.models.vocabulary import Vocabulary
from numtok.plugins import fault_of, is_plugin
from numtok.records import SCHEME_FILE, Natural
from numtok.registry import Settings
from numtok.reports import Configuration, Costs
from numtok.store.artifact import Artifact
from numtok.stored_json import StoredJson

FORMAT = 1  # of model.json
WEIGHTS, MODEL_FILE = "weights.safetensors", "model.json"
LARGEST = 256 << 20  # bytes of model.json, which may hold many labels
_FEW = 64  # of anything: what may be without weights of its own
_PLACES = 1 << 20  # tokens of a context, which has weights only where places are learnt
_HELD = 1 << 29  # bytes that a model may hold beside its weights: tables of places, computed


class Trained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What training left beside the weights.

    configuration
        What was asked for, the seed apart, in a form for people: what reports are grouped by.
    calibration
        What the head's distribution needs (``nn.heads.base``), and on which split it was measured.
    train_mean
        Of the targets (or numbers) of the train split; what an invalid prediction counts as.
    """

    configuration: Configuration
    seed: int
    calibration: dict[str, float]
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


class _StoredSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """:class:`ModelSettings` as format 1 has them: the trunk under a key of its own
    (``trunk_settings.KEYS``), or by its name under ``trunk``."""

    vocabulary: int
    shape: Settings | None
    head_layers: int
    tied: bool
    embedder: Settings
    head: Settings | None
    objective: Settings
    scaling: ScalingSettings | None = None
    classes: tuple[str, ...] = ()
    bigru: Settings | None = None
    trunk: Settings | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, settings: ModelSettings) -> "_StoredSettings":
        there = {"shape": None} | vars(settings) | {"trunk": msgspec.UNSET}
        known = {key: there[key] for key in cls.__struct_fields__ if key in there}
        return cls(**(known | in_file(settings.trunk)))

    def settings(self) -> ModelSettings:
        """ValueError unless there is one trunk."""
        stored = {key: getattr(self, key) for key in self.__struct_fields__}
        named = None if self.trunk is msgspec.UNSET else self.trunk
        trunk = from_file({"trunk": named} | {key: stored.pop(key) for key in KEYS})
        return ModelSettings(**(stored | {"trunk": trunk}))


class _ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    settings: _StoredSettings
    trained: Trained

    def __post_init__(self) -> None:
        if (self.settings.head is None) != bool(self.settings.classes):
            raise ValueError("there is a head for numbers, or there are classes")
        self.settings.settings()  # refuses what is of no trunk


_MODEL = StoredJson(MODEL_FILE, _ModelFile, limit=LARGEST, newest=FORMAT, dataclasses=True)


@dataclass(frozen=True)
class LoadedModel:
    """A model artifact in memory."""

    artifact: Artifact
    model: Model
    codec: Codec
    trained: Trained

    def costs(self, lengths: NDArray[np.int32]) -> Costs:
        """What it took to train; ``lengths`` are the tokens of each number that a report is of."""
        parameters, tables = self.model.parameter_counts()
        return Costs(
            self.trained.samples,
            self.trained.tokens,
            self.trained.steps,
            self.trained.flops,
            parameters,
            tables,
            float(lengths.mean()) if len(lengths) else 0.0,
        )


def write_model(folder: Path, model: Model, codec: Codec, trained: Trained) -> None:
    """Write what ``read_model`` reads."""
    weights = {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}
    files.write_atomic(folder / WEIGHTS, save(weights))
    _MODEL.write(folder, _ModelFile(FORMAT, _StoredSettings.of(model.settings), trained))
    files.write_atomic(folder / SCHEME_FILE, codec.to_json())


def is_causal(artifact: Artifact) -> bool:
    """Whether the model predicts from left to right; nothing of its weights is read.

    Raises as :func:`read_model`.
    """
    settings = _MODEL.read(artifact.path).settings
    with artifact.naming_plugins(), naming_model(artifact.path / MODEL_FILE):
        return OBJECTIVES.from_settings(settings.objective).causal


def says_labels(artifact: Artifact) -> bool:
    """As :func:`is_causal`: whether the model predicts labels, and no numbers."""
    return bool(_MODEL.read(artifact.path).settings.classes)


def read_model(artifact: Artifact, device: torch.device) -> LoadedModel:
    """The model, ready for evaluation.

    Raises StoreError where files are damaged, of a newer format or do not belong together,
    UsageError for a revision that this numtok does not know.
    """
    path = artifact.path / MODEL_FILE
    content = _MODEL.read(artifact.path)
    codec = read_codec(artifact)
    if content.settings.vocabulary != codec.vocabulary_size:
        raise StoreError(
            f"{path} is for {content.settings.vocabulary} tokens, {SCHEME_FILE} beside it has "
            f"{codec.vocabulary_size}; `numtok verify {artifact.ref}` says which is damaged"
        )
    vocabulary = Vocabulary.of(codec)
    settings = content.settings.settings()
    make = partial(Model, settings, vocabulary)
    with artifact.naming_plugins():
        weights = load_weights(artifact.path / WEIGHTS, path, asdict(settings), make)
    model = make()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    if isinstance(model.head, ValueHead) and content.trained.calibration:
        check_calibration(path, model.head, content.trained.calibration)
    return LoadedModel(artifact, model.to(device).eval(), codec, content.trained)


def check_calibration(path: Path, head: ValueHead, calibration: Calibration) -> None:
    """Raise StoreError for a head of numtok's own without the deviation that it measured."""
    if head.calibrated and not is_plugin(head) and not calibration.get("deviation", 0) > 0:
        raise StoreError(
            f"{path} is damaged (its head has no deviation above 0); `numtok verify` says what "
            "else is"
        )


def check_reads(loaded: LoadedModel, samples: EncodedSplit, told: str) -> None:
    """Raises DataError for rows that are too long, and for a head without its calibration;
    ``told`` is what the rows are."""
    context = loaded.model.settings.context - int(loaded.model.objective.causal)
    if samples.longest > context:
        raise DataError(
            f"{told} has a row of {samples.longest:,} tokens, "
            f"{loaded.artifact.ref} reads {context:,}; train with a --preset of more context"
        )
    head = loaded.model.head
    if isinstance(head, ValueHead) and head.calibrated and not loaded.trained.calibration:
        raise DataError(
            f"{loaded.artifact.ref} has no spread for its value head: no number of the split "
            "that it is measured on was asked for; train on data with more numbers in it"
        )


def load_weights(
    path: Path, of: Path, settings: Mapping[str, Any], make: Callable[[], nn.Module]
) -> dict[str, Tensor]:
    """The tensors of a safetensors file: float32, of exactly the names and shapes that a model has.

    of, settings
        The file that says what the model is, and what that says. No size in it is believed that the
        bytes of the weights cannot hold.
    make
        Makes the model.

    Raises StoreError for what does not fit, UsageError for settings that this numtok lacks.
    """
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
            return {name: file.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError, MemoryError) as error:  # it maps the file as a whole
        raise StoreError(
            f"{path} cannot be read: {error}; `numtok verify` says which files are damaged"
        ) from error


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
        with torch.device("meta"):  # takes no memory
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
