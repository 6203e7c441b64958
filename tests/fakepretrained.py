"""Small models with random weights in transformers' format, with a byte-level tokenizer."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

WORDS = "the weight of 12 apples is 3.5 kg and 120 pears are 17 kg\n"
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
ROTARY = {**SIZES, "num_key_value_heads": 2, "intermediate_size": 64}
IDS = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
#: By model type: the prefix of its classes, the class of its head, and its config.
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2", "LMHeadModel", {**SIZES, "max_position_embeddings": 64}),
    "llama": ("Llama", "ForCausalLM", {**ROTARY, "max_position_embeddings": 64}),
    "mistral": ("Mistral", "ForCausalLM", {**ROTARY, "sliding_window": 24}),
    "qwen2": ("Qwen2", "ForCausalLM", {**ROTARY, "tie_word_embeddings": True}),
    "gemma3_text": ("Gemma3", "ForCausalLM", {**ROTARY, "head_dim": 8}),
    "opt": ("OPT", "ForCausalLM", {**SIZES, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bert": ("Bert", "ForMaskedLM", {**SIZES, "intermediate_size": 64}),
    "roberta": ("Roberta", "ForMaskedLM", {**SIZES, "max_position_embeddings": 66}),
    "distilbert": ("DistilBert", "ForMaskedLM", {"dim": 32, "n_layers": 2, "n_heads": 4}),
}


def tokenizer(words: str = WORDS) -> Tokenizer:
    """Return a byte-level BPE of some words, like that of GPT-2."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([words] * 20, trainer)
    return made


def pretrained(kind: str, folder: Path, seed: int = 0, **changes: Any) -> Any:
    """Save and return a model whose weights are so large that every token matters."""
    transformers = pytest.importorskip("transformers")
    name, head, settings = KINDS[kind]
    words = tokenizer()
    config = {"vocab_size": words.get_vocab_size(), **IDS, **settings, **changes}
    torch.manual_seed(seed)
    made = getattr(transformers, name + head)(
        getattr(transformers, f"{name}{'Text' * kind.endswith('_text')}Config")(**config)
    ).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.3)
    made.save_pretrained(folder)
    words.save(str(folder / "tokenizer.json"))
    return made
