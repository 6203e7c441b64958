"""Architectures of models from the transformers library, without weights. An architecture is the
canonical JSON of a model's config.

Only code from the transformers library is run: code in a model's folder is never run, and no config
can cause code to be downloaded.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from numtok.errors import UsageError, is_out_of_memory, needing
from numtok.models.batches import PAD
from numtok.models.modes import in_evaluation_mode
from numtok.models.training_batch import END

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

#: Keys of a config that do not affect hidden states; those that start with _ are ignored as well.
_BOOKKEEPING = frozenset(
    {
        *("architectures", "attn_implementation", "auto_map", "chunk_size_feed_forward"),
        *("custom_pipelines", "dtype", "experts_implementation", "finetuning_task", "id2label"),
        *("label2id", "language", "name_or_path", "num_labels", "output_attentions"),
        *("output_hidden_states", "problem_type", "return_dict", "summary_activation"),
        *("summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"),
        *("task_specific_params", "torch_dtype", "torchscript", "transformers_version"),
        *("use_cache", "use_return_dict"),
    }
)
_LAYERS = 1024  # maximum; each layer takes time to build, even without memory
#: Modules next to the states: they read, for example, the first state, and do not affect the
#: others.
_REMOVED = ("pooler", "pooling_layer")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Properties of an architecture that are known without its weights.

    kind, width
        The config's ``model_type``, such as ``gpt2``, and the width of the hidden states.
    words
        Number of rows in the table of token vectors.
    context
        Maximum number of tokens per row; None if unlimited.
    causal
        True if each state depends only on the tokens up to its own position, False if it depends on
        all tokens.
    position_weights
        Number of weights in the position vectors that are added to embeddings; 0 if positions are
        encoded in another way, such as by rotation.
    tied
        True if the table of token vectors also serves as the output table. False if the input
        vectors are scaled, as in Gemma.
    layers, heads, head_width
        Number of blocks, number of key-value heads per block, and width of each of these heads.
    """

    kind: str
    width: int
    words: int
    context: int | None
    causal: bool
    position_weights: int
    tied: bool
    layers: int
    heads: int
    head_width: int


def canonical(config: Mapping[str, Any]) -> str:
    """Return a config as canonical JSON, without keys that do not affect hidden states.

    >>> canonical({"n_layer": 2, "model_type": "gpt2", "transformers_version": "5.24.0"})
    '{"model_type":"gpt2","n_layer":2}'
    """
    kept = {
        key: value
        for key, value in config.items()
        if key not in _BOOKKEEPING and not key.startswith("_")
    }
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=64)
def facts(architecture: str) -> Facts:
    """Return the properties of an architecture. Raises UsageError if it cannot be a trunk."""
    config, causal = _config(architecture), is_causal(architecture)
    with torch.device("meta"):  # takes no memory
        model = _model(config)
        words = model.get_input_embeddings()
    kind = config.model_type
    if not isinstance(words, nn.Embedding):
        raise cannot(kind, "does not store its token vectors in one table")
    width = int(config.hidden_size)
    if words.embedding_dim != width:
        raise cannot(kind, f"has vectors of {words.embedding_dim} but states of width {width}")
    positions = _position_tables(model)
    heads = int(config.num_attention_heads)
    return Facts(
        kind=kind,
        width=width,
        words=words.num_embeddings,
        context=_context(config, positions, causal),
        causal=causal,
        position_weights=sum(table.weight.numel() for table in positions),
        tied=bool(getattr(config, "tie_word_embeddings", True)) and type(words) is nn.Embedding,
        layers=int(config.num_hidden_layers),
        heads=int(getattr(config, "num_key_value_heads", None) or heads),
        head_width=int(getattr(config, "head_dim", None) or width // heads),
    )


def build(architecture: str) -> "PreTrainedModel":
    """Build the module of an architecture with random float32 weights and without its table of
    token vectors.

    The module takes vectors as input. transformers always creates a table, so it is made as short
    as possible and then removed.
    """
    config = _config(architecture)
    config.vocab_size = 1 + max(0, getattr(config, "pad_token_id", None) or 0)
    model = _model(config)
    model.set_input_embeddings(nn.Identity())
    for name in _REMOVED:
        if isinstance(getattr(model, name, None), nn.Module):
            setattr(model, name, None)
    return model


@torch.no_grad()
def whole(
    architecture: str, weights: Mapping[str, Tensor], vectors_VD: Tensor, outputs_VD: Tensor
) -> "PreTrainedModel":
    """Return a causal language model that combines the weights of a module from :func:`build` with
    two tables of token vectors.

    ``vectors_VD`` and ``outputs_VD`` are the input and output vectors; they may be the same tensor.
    """
    config: Any = _config(architecture)
    config.vocab_size = len(vectors_VD)
    config.pad_token_id, config.bos_token_id, config.eos_token_id = PAD, END, END
    config.tie_word_embeddings = outputs_VD is vectors_VD
    with quiet():
        from transformers import AutoModelForCausalLM

        kinds: Any = AutoModelForCausalLM
        model: Any = kinds.from_config(config, dtype=torch.float32, trust_remote_code=False)
    words, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    own = dict(model.base_model.named_parameters())
    for name, weight in weights.items():
        own[name].copy_(weight)
    words.weight.fill_(1)
    scale = float(words(torch.zeros(1, dtype=torch.long))[0, 0])  # Gemma scales its input vectors
    outputs.weight.copy_(outputs_VD)
    if outputs.bias is not None:
        outputs.bias.zero_()
    words.weight.copy_(vectors_VD / scale)
    return cast("PreTrainedModel", model.eval())


def is_removed(name: str) -> bool:
    """Return whether a weight belongs to a module that :func:`build` removes, such as a pooler."""
    return name.partition(".")[0] in _REMOVED


def blocks(model: nn.Module, layers: int) -> list[nn.Module]:
    """Return the ``layers`` blocks of a model, in the order in which they run; an empty list if
    they are not found."""
    lists = (modules for modules in model.modules() if isinstance(modules, nn.ModuleList))
    return next(([*modules] for modules in lists if len(modules) == layers), [])


@torch.no_grad()
def first_norm_of(model: nn.Module, x_BLD: Tensor) -> tuple[nn.LayerNorm | None, Tensor]:
    """Run a model on vectors [B, L, D] up to its first layer norm. Return that norm and its input,
    or None and ``x_BLD`` if the model has no layer norm."""

    class Met(Exception):
        pass

    def meet(norm: nn.Module, inputs: tuple[Any, ...]) -> None:
        raise Met(norm, inputs[0])

    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    hooks = [module.register_forward_pre_hook(meet) for module in norms]
    try:
        with in_evaluation_mode(model), first_run(cast(Any, model).config.model_type):
            model(inputs_embeds=x_BLD, use_cache=False)
    except Met as met:
        return met.args[0], met.args[1]
    finally:
        for hook in hooks:
            hook.remove()
    return None, x_BLD


def config_of(architecture: str) -> "PreTrainedConfig":
    """Return a new transformers config for an architecture. Raises UsageError if it is invalid."""
    with quiet():
        from transformers import CONFIG_MAPPING
        from transformers import __version__ as version

        settings = json.loads(architecture)
        kind = settings.get("model_type")
        if kind not in CONFIG_MAPPING:
            raise UsageError(
                f"--preset hf: transformers {version} has no architecture {kind!r}, and code in a "
                "model's folder is never run. Use a model with another architecture, or a newer "
                "transformers"
            )
        try:
            config: PreTrainedConfig = CONFIG_MAPPING[kind].from_dict(settings)
        except Exception as error:  # validation in configs can raise anything
            raise _impossible(kind, error) from None
    return config


def cannot(kind: str, why: str) -> UsageError:
    """Return an error that says ``why`` an architecture of this ``kind`` cannot be a trunk."""
    return UsageError(
        f"--preset hf: a model of the architecture {kind} {why}. Use a causal or masked "
        "language model, such as GPT-2, Llama, Qwen or RoBERTa"
    )


@contextmanager
def first_run(kind: str) -> Iterator[None]:
    """Context manager for the first run of a model. Raises UsageError if settings in the model's
    config are incompatible, such as if ``num_key_value_heads`` does not divide the number of
    heads."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise _impossible(kind, error, "run") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Context manager that turns off the log messages and progress bars of transformers. Raises
    UsageError if transformers is not installed."""
    with needing("--preset hf", "transformers and peft"):
        from transformers.utils import logging
    own: Any = logging  # it is only partly annotated
    level, bars = own.get_verbosity(), own.is_progress_bar_enabled()
    own.set_verbosity(own.CRITICAL)
    own.disable_progress_bar()
    try:
        yield
    finally:
        own.set_verbosity(level)
        if bars:
            own.enable_progress_bar()


def _config(architecture: str) -> "PreTrainedConfig":
    """Return the result of :func:`config_of`. Raises UsageError if it cannot be a trunk."""
    config = config_of(architecture)
    kind = config.model_type
    if config.is_encoder_decoder:
        raise cannot(kind, "has an encoder and a decoder; a trunk is only one of them")
    if getattr(config, "quantization_config", None):
        raise cannot(kind, "has quantized weights, which cannot be trained further")
    if config.sub_configs:
        raise cannot(kind, "consists of several models, for example for images or audio")
    if getattr(config, "is_heterogeneous", False):  # its settings cannot be read as one value
        raise cannot(kind, "has layers of different shapes")
    for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"):
        if not isinstance(getattr(config, key, None), int):
            raise cannot(kind, f"has no {key}")
    if (layers := int(config.num_hidden_layers)) > _LAYERS:
        raise cannot(kind, f"has num_hidden_layers={layers:,}; the maximum is {_LAYERS:,}")
    return config


def is_causal(architecture: str) -> bool:
    """Return whether a language model is causal. Raises UsageError if an architecture is not a
    causal or masked language model."""
    config = config_of(architecture)
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    decoder = getattr(config, "is_decoder", False)
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not decoder:
        return False
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise cannot(config.model_type, "is not a causal or masked language model")
    return True


def _model(config: "PreTrainedConfig") -> "PreTrainedModel":
    with quiet():
        from transformers import AutoModel

        kinds: Any = AutoModel

        def made(attention: str) -> Any:
            return kinds.from_config(
                config, dtype=torch.float32, attn_implementation=attention, trust_remote_code=False
            )

        try:
            try:
                model: PreTrainedModel = made("sdpa")
            except (ValueError, ImportError):  # not every architecture supports it
                model = made("eager")
        except Exception as error:  # code of transformers can raise anything for some configs
            if is_out_of_memory(error):
                raise
            raise _impossible(config.model_type, error) from None
    return model


def learned_positions(model: nn.Module) -> int | None:
    """Return the number of positions per row that have a learned vector; None if the model has no
    table of position vectors."""
    return context_of(model) if _position_tables(model) else None


def context_of(model: nn.Module) -> int | None:
    """Return the maximum number of tokens per row, apart from sliding windows; None if
    unlimited."""
    return _context(getattr(model, "config", None), _position_tables(model), False)


def _impossible(kind: str, error: Exception, what: str = "build") -> UsageError:
    """Return the error for a config that transformers cannot build or run a model from."""
    unknown = isinstance(error, KeyError)  # the name of an activation or a type of rope
    why = f"unknown name {error}" if unknown else " ".join(str(error).split())
    return UsageError(
        f"--preset hf: transformers cannot {what} this {kind} ({why}). Correct its config.json, or "
        "install a later transformers"
    )


def _position_tables(model: nn.Module) -> list[nn.Embedding]:
    """Return the tables of position vectors; tables of relative positions do not count."""
    return [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding)
        and any(part in name.rpartition(".")[2] for part in ("position_emb", "wpe", "embed_pos"))
    ]


def _context(config: Any, positions: list[nn.Embedding], causal: bool) -> int | None:
    """Return the smallest limit on the length of a row.

    A sliding window counts for causal models, because numtok's cache has none.
    """
    limits = [getattr(config, "max_position_embeddings", None)]
    for table in positions:  # RoBERTa's first rows belong to no position
        limits.append(
            table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        )
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]
    windows = any("sliding" in kind or "chunked" in kind for kind in kinds)
    if causal and windows and getattr(config, "use_sliding_window", True):
        limits += [getattr(config, key, None) for key in ("sliding_window", "attention_chunk_size")]
    finite = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(finite, default=None)
