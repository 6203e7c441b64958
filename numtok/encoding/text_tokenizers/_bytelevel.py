"""Byte-level tokenizers in Hugging Face's ``tokenizer.json``."""

from collections.abc import Sequence
from typing import Any


def byte_level_json(vocabulary: Sequence[str], pattern: str) -> dict[str, Any]:
    """Return a ``tokenizer.json`` that splits text by a pattern and looks up whole pieces. A piece
    that is not in the vocabulary is split into its bytes."""
    isolated = {"behavior": "Isolated", "invert": False}
    split = {"type": "Split", "pattern": {"Regex": pattern}} | isolated
    plain = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    level = {"type": "ByteLevel"} | plain
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split, level],
        },
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {token: index for index, token in enumerate(vocabulary)},
            "merges": [],
        },
    }
