"""What a model of transformers is but its weights, as the canonical JSON of its config.

Only transformers' own code is ever built: nothing of a model's folder runs, and no config can have
any fetched.
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
from numtok.models.training_batch import END

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

#: Keys of a config that no hidden state depends on; those that begin with _ are left out as well.
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
_LAYERS = 1024  # at most; each takes time to build, even without memory
#: Parts beside the states: they read the first of them, say, and have no part in the others.
_BESIDE = ("pooler", "pooling_layer")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of an architecture before it has weights.

    words
        Rows of its table of token vectors.
    context
        The most tokens of a row; None where nothing says so.
    causal
        Whether a state sees the tokens up to its own alone; else it sees all.
    position_weights
        How many weights are vectors that are added at positions; 0 where positions are told in
        another way, by a rotation say.
    tied
        Whether the table of its outputs is that of its token vectors, as they go in: Gemma's are
        scaled on their way.
    layers, heads, head_width
        How many blocks, and in each how many heads have keys of their own, of what width.
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
    """The JSON of a config, without what no state depends on.

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
    """Raises UsageError for what can be no trunk."""
    config, causal = _config(architecture), _is_causal(architecture)
    with torch.device("meta"):  # takes no memory
        model = _model(config)
        words = model.get_input_embeddings()
    kind = config.model_type
    if not isinstance(words, nn.Embedding):
        raise cannot(kind, "keeps its token vectors in another form than one table")
    width = int(config.hidden_size)
    if words.embedding_dim != width:
        raise cannot(kind, f"has vectors of {words.embedding_dim} and states of {width}")
    positions = _position_tables(model)
    heads = int(config.num_attention_heads)
    return Facts(
        kind=kind,
        width=width,
        words=words.num_embeddings,
        context=_context(config, positions, causal),
        causal=causal,
        position_weights=sum(one.weight.numel() for one in positions),
        tied=bool(getattr(config, "tie_word_embeddings", True)) and type(words) is nn.Embedding,
        layers=int(config.num_hidden_layers),
        heads=int(getattr(config, "num_key_value_heads", None) or heads),
        head_width=int(getattr(config, "head_dim", None) or width // heads),
    )


def build(architecture: str) -> "PreTrainedModel":
    """The module, of drawn weights in float32, without its table of token vectors: it is given
    vectors. So that table is as short as can be from the start, whatever the config says."""
    config = _config(architecture)
    config.vocab_size = 1 + max(0, getattr(config, "pad_token_id", None) or 0)
    model = _model(config)
    model.set_input_embeddings(nn.Identity())
    for name in _BESIDE:
        if isinstance(getattr(model, name, None), nn.Module):
            setattr(model, name, None)
    return model


@torch.no_grad()
def whole(
    architecture: str, weights: Mapping[str, Tensor], vectors_VD: Tensor, outputs_VD: Tensor
) -> "PreTrainedModel":
    """The causal model of language of :func:`build` with these weights between two tables, which
    may be one: vectors of tokens as they go in, and those by which tokens are predicted."""
    config: Any = _config(architecture)
    config.vocab_size = len(vectors_VD)
    config.pad_token_id, config.bos_token_id, config.eos_token_id = PAD, END, END
    config.tie_word_embeddings = outputs_VD is vectors_VD
    with quiet():
        from transformers import AutoModelForCausalLM

        kinds: Any = AutoModelForCausalLM
        made: Any = kinds.from_config(config, dtype=torch.float32, trust_remote_code=False)
    words, outputs = made.get_input_embeddings(), made.get_output_embeddings()
    own = dict(made.base_model.named_parameters())
    for name, one in weights.items():
        own[name].copy_(one)
    words.weight.fill_(1)
    scale = float(words(torch.zeros(1, dtype=torch.long))[0, 0])  # Gemma's are scaled on their way
    outputs.weight.copy_(outputs_VD)
    if outputs.bias is not None:
        outputs.bias.zero_()
    words.weight.copy_(vectors_VD / scale)
    return cast("PreTrainedModel", made.eval())


def is_beside(name: str) -> bool:
    """Whether a weight is of a part that :func:`build` leaves out."""
    return name.partition(".")[0] in _BESIDE


def blocks(model: nn.Module, layers: int) -> list[nn.Module]:
    """Those of a model that run one after the other."""
    lists = (one for one in model.modules() if isinstance(one, nn.ModuleList))
    return next(([*one] for one in lists if len(one) == layers), [])


@torch.no_grad()
def first_norm_of(model: nn.Module, x_BLD: Tensor) -> tuple[nn.LayerNorm | None, Tensor]:
    """The layer norm that vectors [B, L, D] meet first, and what it is given of these; None where
    they meet none. No more of the model is run."""

    class Met(Exception):
        pass

    def meet(norm: nn.Module, given: tuple[Any, ...]) -> None:
        raise Met(norm, given[0])

    norms = [one for one in model.modules() if isinstance(one, nn.LayerNorm)]
    hooks = [one.register_forward_pre_hook(meet) for one in norms]
    training = model.training
    model.eval()
    try:
        with first_run(cast(Any, model).config.model_type):
            model(inputs_embeds=x_BLD, use_cache=False)
    except Met as met:
        return met.args[0], met.args[1]
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    return None, x_BLD


def config_of(architecture: str) -> "PreTrainedConfig":
    """That of transformers, new each time; UsageError for one that it cannot be."""
    with quiet():
        from transformers import CONFIG_MAPPING
        from transformers import __version__ as version

        settings = json.loads(architecture)
        kind = settings.get("model_type")
        if kind not in CONFIG_MAPPING:
            raise UsageError(
                f"--preset hf: transformers {version} has no architecture {kind!r}, and code of a "
                "model's folder is never run; give a model of another one, or install a later "
                "transformers"
            )
        try:
            config: PreTrainedConfig = CONFIG_MAPPING[kind].from_dict(settings)
        except Exception as error:  # whatever its own checks raise
            raise _impossible(kind, error) from None
    return config


def cannot(kind: str, why: str) -> UsageError:
    """Of an architecture that can be no trunk: what about it."""
    return UsageError(
        f"--preset hf: a model of the architecture {kind} {why}; give a causal or masked model of "
        "language, such as GPT-2, Llama, Qwen or RoBERTa"
    )


@contextmanager
def first_run(kind: str) -> Iterator[None]:
    """While a model runs for the first time: UsageError for a config whose parts do not fit, such
    as ``num_key_value_heads`` that do not divide the heads."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise _impossible(kind, error, "run") from None


@contextmanager
def quiet() -> Iterator[None]:
    """transformers is imported within, and keeps to itself what it has to say; UsageError where it
    is missing."""
    with needing("--preset hf", "transformers and peft"):
        from transformers.utils import logging
    own: Any = logging  # what it holds is half typed
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
    """As :func:`config_of`; UsageError for one that no trunk can be."""
    config = config_of(architecture)
    kind = config.model_type
    if config.is_encoder_decoder:
        raise cannot(kind, "is an encoder and a decoder, and a trunk is one of them")
    if getattr(config, "quantization_config", None):
        raise cannot(kind, "has quantised weights, and these cannot be trained further")
    if config.sub_configs:
        raise cannot(kind, "is made of several models, for pictures or sounds, say")
    for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"):
        if not isinstance(getattr(config, key, None), int):
            raise cannot(kind, f"says no {key}")
    if (layers := int(config.num_hidden_layers)) > _LAYERS:
        raise cannot(kind, f"says num_hidden_layers={layers:,}, and {_LAYERS:,} are allowed")
    return config


def _is_causal(architecture: str) -> bool:
    """UsageError for what is no model of language."""
    config = config_of(architecture)
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    decoder = getattr(config, "is_decoder", False)
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not decoder:
        return False
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise cannot(config.model_type, "is no causal or masked model of language")
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
            except (ValueError, ImportError):  # which not every architecture has
                model = made("eager")
        except Exception as error:  # whatever its code raises at the values of a config
            if is_out_of_memory(error):
                raise
            raise _impossible(config.model_type, error) from None
    return model


def learned_positions(model: nn.Module) -> int | None:
    """Number of tokens per row with a position vector; None if the model has no such table."""
    positions = _position_tables(model)
    return _context(getattr(model, "config", None), positions, False) if positions else None


def _impossible(kind: str, error: Exception, what: str = "build") -> UsageError:
    """The error for a config that transformers cannot build a model from, or run as one."""
    unknown = isinstance(error, KeyError)  # of a name: an activation, a type of rope
    why = f"unknown name {error}" if unknown else " ".join(str(error).split())
    return UsageError(
        f"--preset hf: transformers cannot {what} this {kind} ({why}). Correct its config.json, or "
        "install a later transformers"
    )


def _position_tables(model: nn.Module) -> list[nn.Embedding]:
    """Vectors that are added at positions: those of relative ones are no tables of positions."""
    return [
        one
        for name, one in model.named_modules()
        if isinstance(one, nn.Embedding)
        and any(part in name.rpartition(".")[2] for part in ("position_emb", "wpe", "embed_pos"))
    ]


def _context(config: Any, positions: list[nn.Embedding], causal: bool) -> int | None:
    """The least of what limits a row. A window counts where a row is written token by token, since
    the cache has none."""
    limits = [getattr(config, "max_position_embeddings", None)]
    for one in positions:  # of RoBERTa the first ones are of no token
        limits.append(one.num_embeddings - (0 if one.padding_idx is None else one.padding_idx + 1))
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]
    windows = any("sliding" in kind or "chunked" in kind for kind in kinds)
    if causal and windows and getattr(config, "use_sliding_window", True):
        limits += [getattr(config, key, None) for key in ("sliding_window", "attention_chunk_size")]
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known, default=None)
