"""Exports a text model to a folder for the transformers library: config, weights and tokenizer.

There are two formats. A causal transformers model that predicts only tokens keeps its architecture,
with a new table of token embeddings, and loads without numtok. Any other model uses a class that
``import numtok.hf`` registers, and its ``config.json`` contains everything but the weights.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from numtok import files
from numtok.encoding.model_folder import TOKENIZER
from numtok.encoding.schema import SCHEME_FILE, SPECIALS
from numtok.encoding.tokenizer_json import tokenizer_json
from numtok.models.batches import PAD
from numtok.models.model import Model, build_model
from numtok.models.settings import ModelSettings
from numtok.models.training_batch import END, MASK
from numtok.models.trunks.base import PretrainedTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import name_of
from numtok.training.model_files import LoadedModel
from numtok.training.model_json import Trained
from numtok.training.weights import weights_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MODEL_TYPE = "numtok"
MODEL, CAUSAL_MODEL, TOKENIZER_CLASS = "NumtokModel", "NumtokForCausalLM", "NumtokTokenizer"
NETWORK = "network"  # attribute of the class that holds the model: the prefix of weight names
_IDS = {"pad_token_id": PAD, "bos_token_id": END, "eos_token_id": END}
_TOKENS = {
    "pad_token": SPECIALS[PAD],
    "bos_token": SPECIALS[END],
    "eos_token": SPECIALS[END],
    "mask_token": SPECIALS[MASK],
}
_NEVER = [PAD, MASK]  # tokens that are never generated
_COMPARED_TOKENS = 16  # number of tokens that two models are compared on


class TransformersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The ``numtok`` entry of ``config.json``: model settings, training record and vocabulary.

    vocabulary
        Number of tokens.
    first, factors, names, digits
        Fields of :class:`numtok.models.vocabulary.Vocabulary`, with None instead of NaN.
    """

    settings: ModelSettings
    trained: Trained
    vocabulary: int
    first: int
    factors: list[float | None]
    names: list[str]
    digits: list[float | None] = []

    @classmethod
    def of(cls, loaded: LoadedModel) -> "TransformersConfig":
        """Build the entry for a loaded model."""
        tokens = Vocabulary.of(loaded.codec)
        factors, digits = (
            [None if np.isnan(value) else value for value in values.tolist()]
            for values in (tokens.factors, tokens.digits)
        )
        settings = loaded.model.settings
        if settings.objective.get("number_loss") is not None:
            # The exported model predicts only, and its entry has no text tokens.
            objective = settings.objective | {"number_loss": None}
            settings = msgspec.structs.replace(settings, objective=objective)
        return cls(
            settings=settings,
            trained=loaded.trained,
            vocabulary=tokens.size,
            first=tokens.first,
            factors=factors,
            names=[*tokens.names],
            digits=digits,
        )

    def model(self) -> Model:
        """Build the model that the entry describes, with random weights."""
        factors, digits = (
            np.array([np.nan if value is None else value for value in values], np.float64)
            for values in (self.factors, self.digits)
        )
        tokens = Vocabulary(
            size=self.vocabulary,
            first=self.first,
            factors=factors,
            names=tuple(self.names),
            digits=digits,
        )
        return build_model(self.settings, tokens)


def write_transformers(loaded: LoadedModel, folder: Path) -> bool:
    """Export a model to a folder that the transformers library can load.

    Returns True if the model loads without numtok, and False if ``import numtok.hf`` is needed.
    """
    whole = _whole(loaded)
    if whole is not None:
        _write_whole(whole, loaded, folder)
    else:
        _write_own(loaded, folder)
    return whole is not None


def writes(model: Model) -> bool:
    """Return whether transformers' ``generate`` works with the model.

    This requires a causal model that predicts only tokens: no values and no labels.
    """
    is_plain = model.value_head is None and model.ahead is None
    return is_plain and model.objective.causal and not model.settings.classes


@torch.no_grad()
def _whole(loaded: LoadedModel) -> "PreTrainedModel | None":
    """Return the equivalent model in its own architecture, or None if it has none."""
    model, codec = loaded.model, loaded.codec
    is_lookup = name_of(model.embedding) == "lookup" and model.places is None
    if not (writes(model) and is_lookup and isinstance(model.token_head, nn.Linear)):
        return None
    vectors_VD, outputs_VD = model.get_parameter(model.vectors), model.token_head.weight
    trunk = model.settings.of_trunk
    if not isinstance(trunk, PretrainedTrunk):
        return None
    standard: Any = trunk.whole(model.trunk, vectors_VD, outputs_VD)
    if standard is None:
        return None
    # Some architectures postprocess logits (scale or bound them), so compare the outputs.
    length = min(_COMPARED_TOKENS, model.settings.context)
    tokens_BL = torch.from_numpy(
        np.random.default_rng(0).integers(0, codec.vocabulary_size, (1, length))
    )
    hidden_BLD = model.hidden(tokens_BL, torch.ones(tokens_BL.shape), None)
    same = torch.allclose(
        standard(tokens_BL).logits, model.token_head(hidden_BLD), rtol=1e-4, atol=1e-4
    )
    return standard if same else None


def _write_whole(whole: "PreTrainedModel", loaded: LoadedModel, folder: Path) -> None:
    from transformers import GenerationConfig

    from numtok.models.pretrained.architecture import quiet

    whole.generation_config = GenerationConfig(**_IDS, suppress_tokens=_NEVER)
    with quiet(), files.reporting("write", folder):
        whole.save_pretrained(folder)
    tokenizer = tokenizer_json(loaded.codec)
    assert tokenizer is not None  # because the scheme has no value channel
    content = json.loads(tokenizer)
    content["post_processor"] = {  # rows begin with [END]
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": SPECIALS[END], "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [
            {"SpecialToken": {"id": SPECIALS[END], "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 0}},
        ],
        "special_tokens": {
            SPECIALS[END]: {"id": SPECIALS[END], "ids": [END], "tokens": [SPECIALS[END]]}
        },
    }
    files.write_atomic(folder / TOKENIZER, json.dumps(content, ensure_ascii=False).encode())
    _write_tokenizer(folder, "PreTrainedTokenizerFast", loaded.model, padding_side="left")
    for path in folder.iterdir():
        files.fsync_path(path)


def _write_own(loaded: LoadedModel, folder: Path) -> None:
    model, codec = loaded.model, loaded.codec
    architectures = [CAUSAL_MODEL if writes(model) else MODEL]
    config = {
        "model_type": MODEL_TYPE,
        "architectures": architectures,
        "dtype": "float32",
        "tie_word_embeddings": model.settings.tied,
        "vocab_size": codec.vocabulary_size,
        "hidden_size": model.settings.width,
        **_IDS,
        "numtok": msgspec.to_builtins(TransformersConfig.of(loaded)),
    }
    _write_json(folder / "config.json", config)
    if writes(model):
        # There is no cache, so generating a token reads the whole row again.
        _write_json(
            folder / "generation_config.json",
            {**_IDS, "suppress_tokens": _NEVER, "use_cache": False},
        )
    weights = {f"{NETWORK}.{name}": weight for name, weight in weights_of(model).items()}
    files.write_atomic(folder / "model.safetensors", save(weights, {"format": "pt"}))
    files.write_atomic(folder / SCHEME_FILE, codec.to_json())
    _write_tokenizer(folder, TOKENIZER_CLASS, model, causal=model.objective.causal)


def _write_tokenizer(folder: Path, kind: str, model: Model, **more: Any) -> None:
    longest = {"model_max_length": min(model.settings.context, 1 << 30)}
    _write_json(
        folder / "tokenizer_config.json", {"tokenizer_class": kind, **_TOKENS, **longest, **more}
    )


def _write_json(path: Path, content: Any) -> None:
    files.write_atomic(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
