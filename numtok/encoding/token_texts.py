"""Derives the text of each token of a Hugging Face tokenizer from the names in its vocabulary.

Names are written in one of four ways: in the byte alphabet of GPT-2 (``Ġ5``), with a mark for
spaces (``▁5``, as in Llama and T5), as a byte (``<0x35>``), or with a mark for tokens that continue
a word (``##5``, as in BERT).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from numtok.encoding.byte_alphabet import from_alphabet
from numtok.errors import UsageError

_SPACE = "\u2581"  # stands for a space
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_CONTINUES = "##"
_BYTES_DECODER, _WORDS_DECODER = "ByteLevel", "WordPiece"


def token_texts(tokenizer: Any) -> list[str | None]:
    """Return the text of each token, indexed by id. It is None for special tokens, for tokens whose
    bytes are not complete characters, and for ids without a token.

    ``tokenizer`` must come from transformers or the tokenizers library. A byte token has no text if
    another token has the same text, because texts are then never encoded with the byte token.

    Raises UsageError if ``tokenizer`` is any other object.

    >>> from tokenizers import Tokenizer, decoders, models
    >>> tokenizer = Tokenizer(models.BPE({"a": 0, "\u01205": 1, "\u00c3": 2}, []))
    >>> tokenizer.decoder = decoders.ByteLevel()
    >>> token_texts(tokenizer)
    ['a', ' 5', None]
    """
    backend = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
    try:
        names: Mapping[str, int] = tokenizer.get_vocab()
    except (AttributeError, TypeError, NotImplementedError):
        raise UsageError(
            "tokenizer must be a tokenizer of transformers or of the library tokenizers "
            f"(got {type(tokenizer).__name__}). Load one with AutoTokenizer.from_pretrained"
        ) from None
    kinds = _decoders(backend, names)
    added, special = _added(tokenizer, backend)
    texts: list[str | None] = [None] * (max(names.values(), default=-1) + 1)
    of_bytes: dict[int, str] = {}
    for name, token in names.items():
        if token in special:
            continue
        if token in added:
            texts[token] = added[token]
        elif _BYTES_DECODER in kinds:
            texts[token] = _of_alphabet(name)
        elif match := _BYTE.fullmatch(name):
            if (value := int(match[1], 16)) < 0x80:
                of_bytes[token] = chr(value)
        elif _WORDS_DECODER in kinds:
            continues = name.startswith(_CONTINUES)
            texts[token] = name.removeprefix(_CONTINUES) if continues else f" {name}"
        else:
            texts[token] = name.replace(_SPACE, " ")
    written = set(texts)
    for token, text in of_bytes.items():
        texts[token] = None if text in written else text
    return texts


def _decoders(backend: Any, names: Mapping[str, int]) -> set[str]:
    """Return the types of a tokenizer's decoders. For a tokenizer implemented in Python, they are
    inferred from its vocabulary."""
    decoder = getattr(backend, "decoder", None)
    if hasattr(decoder, "__getstate__") and isinstance(state := decoder.__getstate__(), bytes):
        settings = json.loads(state)
        return {part["type"] for part in (settings, *settings.get("decoders", ()))}
    if "\u0120" in names:
        return {_BYTES_DECODER}
    return {_WORDS_DECODER} if any(name.startswith(_CONTINUES) for name in names) else set()


def _added(tokenizer: Any, backend: Any) -> tuple[dict[int, str], set[int]]:
    """Return the texts of added tokens, keyed by id, and the ids of special tokens."""
    added: dict[int, Any] = dict(getattr(tokenizer, "added_tokens_decoder", None) or {})
    if hasattr(backend, "get_added_tokens_decoder"):
        added |= backend.get_added_tokens_decoder()
    special = {token for token, content in added.items() if content.special}
    special |= {*(getattr(tokenizer, "all_special_ids", None) or ())}
    return {token: content.content for token, content in added.items()}, special


def _of_alphabet(name: str) -> str | None:
    """Return the text that a name in the byte alphabet stands for, or None if it has none."""
    try:
        return from_alphabet(name).decode()
    except (KeyError, UnicodeDecodeError):
        return None
