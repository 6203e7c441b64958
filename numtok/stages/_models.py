"""A model artifact: ``weights.safetensors``, ``model.json``, ``scheme.json``, ``metrics.jsonl``.

Loading trusts nothing: names, types and shapes are compared with what the
settings give before anything is copied.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from numtok import files
from numtok.artifact import Artifact
from numtok.codec import Codec
from numtok.errors import StoreError, UsageError
from numtok.nn.model import Model, ModelSettings
from numtok.nn.transformer import Shape
from numtok.records import SCHEME_FILE

FORMAT = 1  # of model.json
WEIGHTS, MODEL_FILE, METRICS = "weights.safetensors", "model.json", "metrics.jsonl"


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


class _ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    settings: dict[str, Any]
    trained: Trained


@dataclass(frozen=True)
class LoadedModel:
    """A model artifact in memory."""

    artifact: Artifact
    model: Model
    codec: Codec
    trained: Trained


def write_model(folder: Path, model: Model, codec: Codec, trained: Trained) -> None:
    """Write what ``read_model`` reads."""
    weights = {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}
    files.write_atomic(folder / WEIGHTS, save(weights))
    content = _ModelFile(FORMAT, asdict(model.settings), trained)
    files.write_atomic(
        folder / MODEL_FILE, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
    )
    files.write_atomic(folder / SCHEME_FILE, codec.to_json())


def read_model(artifact: Artifact, device: torch.device) -> LoadedModel:
    """The model, ready for evaluation.

    Raises StoreError where files are damaged or do not belong together, UsageError for a format
    or a revision that this numtok does not know.
    """
    path = artifact.path / MODEL_FILE
    try:
        content = msgspec.json.decode(files.read_bytes(path, 1 << 30), type=_ModelFile)
        settings = ModelSettings(**content.settings | {"shape": Shape(**content.settings["shape"])})
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} is damaged ({error}); `numtok verify {artifact.ref}` says what else is"
        ) from error
    if content.format != FORMAT:
        raise UsageError(
            f"{path} has format {content.format}, this numtok knows {FORMAT}; "
            "use the numtok that made it, or a newer one"
        )
    codec = Codec.from_json(files.read_bytes(artifact.path / SCHEME_FILE, 1 << 30))
    model = Model(settings).to(device).eval()
    copy_weights(model, artifact)
    return LoadedModel(artifact, model, codec, content.trained)


def copy_weights(model: Model, artifact: Artifact) -> None:
    """Copy an artifact's weights into a model of the same shape; StoreError if it has another."""
    path = artifact.path / WEIGHTS
    tensors = load_tensors(path, {name: p.shape for name, p in model.named_parameters()})
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])


def load_tensors(path: Path, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, which must have exactly these names and shapes."""
    try:
        with safe_open(path, "pt") as file:
            there = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            wanted = {name: tuple(shape) for name, shape in shapes.items()}
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
