"""A model artifact: ``weights.safetensors``, ``model.json``, ``scheme.json``, ``metrics.jsonl``.

Loading trusts nothing: names, types and shapes are compared with what the
settings give before anything is copied.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from numtok import files
from numtok.artifact import Artifact
from numtok.codec import Codec
from numtok.errors import DataError, StoreError
from numtok.nn.heads.base import ValueHead
from numtok.nn.model import Model, ModelSettings
from numtok.nn.objectives.base import OBJECTIVES
from numtok.nn.vocabulary import Vocabulary
from numtok.plugins import fault_of
from numtok.records import SCHEME_FILE, read_record
from numtok.reports import Costs
from numtok.samples import Samples

FORMAT = 1  # of model.json
WEIGHTS, MODEL_FILE = "weights.safetensors", "model.json"


class Trained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What training left beside the weights.

    configuration
        What was asked for, the seed apart, in a form for people: what reports are grouped by.
    calibration
        What the head's distribution needs (``nn.heads.base``), and on which split it was measured.
    train_mean
        Of the targets (or numbers) of the train split; what an invalid prediction counts as.
    """

    configuration: dict[str, Any]
    seed: int
    calibration: dict[str, float]
    calibrated_on: str | None
    train_mean: float | None
    samples: int
    tokens: int
    steps: int
    flops: float


class Losses(msgspec.Struct, frozen=True):
    """A line of ``metrics.jsonl``, as far as it is of every numtok; None is not finite. ``exact``
    is the share of answers that were written exactly, where that was looked at."""

    step: int
    split: str
    loss: float | None
    exact: float | None = None


class _ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    settings: ModelSettings
    trained: Trained


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
    content = _ModelFile(FORMAT, model.settings, trained)
    files.write_atomic(
        folder / MODEL_FILE, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
    )
    files.write_atomic(folder / SCHEME_FILE, codec.to_json())


def is_causal(artifact: Artifact) -> bool:
    """Whether the model predicts from left to right; nothing of its weights is read.

    Raises as :func:`read_model`.
    """
    with artifact.naming_plugins():
        return OBJECTIVES.from_settings(_read_file(artifact).settings.objective).causal


def says_labels(artifact: Artifact) -> bool:
    """As :func:`is_causal`: whether the model predicts labels, and no numbers."""
    return bool(_read_file(artifact).settings.classes)


def _read_file(artifact: Artifact) -> _ModelFile:
    then = f"`numtok verify {artifact.ref}` says what else is"
    return read_record(artifact.path / MODEL_FILE, _ModelFile, FORMAT, then)


def read_model(artifact: Artifact, device: torch.device) -> LoadedModel:
    """The model, ready for evaluation.

    Raises StoreError where files are damaged or do not belong together, UsageError for a format
    or a revision that this numtok does not know.
    """
    path = artifact.path / MODEL_FILE
    content = _read_file(artifact)
    with artifact.naming_plugins():
        codec = Codec.from_json(files.read_bytes(artifact.path / SCHEME_FILE, 1 << 30))
    if content.settings.vocabulary != codec.vocabulary_size:
        raise StoreError(
            f"{path} is for {content.settings.vocabulary} tokens, {SCHEME_FILE} beside it has "
            f"{codec.vocabulary_size}; `numtok verify {artifact.ref}` says which is damaged"
        )
    vocabulary = Vocabulary.of(codec)
    try:
        # On "meta" it takes no memory: the sizes may be anything.
        with torch.device("meta"), artifact.naming_plugins():
            empty = Model(content.settings, vocabulary)
            shapes = {name: p.shape for name, p in empty.named_parameters()}
    except RuntimeError as error:
        if (fault := fault_of(error)) is not None:
            raise fault from error
        raise StoreError(
            f"{path} has sizes that no model has; `numtok verify {artifact.ref}` says what is "
            "damaged"
        ) from error
    weights = load_weights(artifact.path / WEIGHTS, shapes)
    model = Model(content.settings, vocabulary)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    return LoadedModel(artifact, model.to(device).eval(), codec, content.trained)


def check_reads(loaded: LoadedModel, samples: Samples, told: str) -> None:
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


def load_weights(path: Path, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """The tensors of a safetensors file: float32, of exactly these names and shapes."""
    files.check_regular(path)
    try:
        with safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            there = {name: (one.get_dtype(), *one.get_shape()) for name, one in slices.items()}
            wanted = {name: ("F32", *shape) for name, shape in shapes.items()}
            if there != wanted:
                differing = sorted(
                    name
                    for name in there.keys() | wanted.keys()
                    if there.get(name) != wanted.get(name)
                )
                raise StoreError(
                    f"{path} does not belong to its model: {differing[0]!r} is "
                    f"{there.get(differing[0])}, expected {wanted.get(differing[0])}; "
                    "`numtok verify` says which file is damaged"
                )
            return {name: file.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}; `numtok verify` says which files are damaged"
        ) from error
