"""Byte-level tokenizers in Hugging Face's ``tokenizer.json``: bytes written as characters."""

from collections.abc import Sequence
from typing import Any

#: Readable names of the bytes, by value.
BYTE_NAMES = tuple(chr(byte) if 0x20 <= byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256))


def _alphabet() -> str:
    """Return one printable character per byte: the byte itself if it is printable in Latin-1, else
    the next free character, starting at U+0100. This is the alphabet of GPT-2's tokenizer."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    free = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(free)) for byte in range(256))


ALPHABET = _alphabet()
_BYTE_OF = {character: byte for byte, character in enumerate(ALPHABET)}


def to_alphabet(token: bytes) -> str:
    """Return bytes written in the alphabet: ``to_alphabet(b" a")`` is ``"Ġa"``."""
    return "".join([ALPHABET[byte] for byte in token])


def from_alphabet(token: str) -> bytes:
    """Return the bytes that :func:`to_alphabet` wrote as ``token``. Raises KeyError if a character
    is not in the alphabet."""
    return bytes([_BYTE_OF[character] for character in token])


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
