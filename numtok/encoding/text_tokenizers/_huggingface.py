"""Byte-level tokenizers from Hugging Face's library, run once per distinct piece."""

import json
import time
from functools import cached_property
from string import printable
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from numtok.arrays import UInt32s
from numtok.encoding.byte_alphabet import ALPHABET, BYTE_NAMES, from_alphabet
from numtok.encoding.huggingface import Panicked, encode_texts, panics
from numtok.encoding.text_tokenizers.base import FittedTokenizer, TokenRuns
from numtok.encoding.texts import Texts, offsets
from numtok.errors import UsageError

# Whitespace that splitters may drop, letters that normalizers may change, every UTF-8 length.
_PROBE = " \t a  b\n\n\r\nÀÅe\u0301ﬁＡ 'd I'll x1y2_3 [NUM] \x00\x7f\xa0\u200d\u2028日本 🙂🙂 end. "

# Runs of one character, interrupted by another: these make patterns backtrack. All printable
# characters follow, since engines skip texts without a character that a pattern requires.
_RUNS = "".join(f"{letter * 40}{end}" for letter in "aA1 \n.-_日" for end in "!x0 ") + printable
_PATIENCE = 2.0  # seconds for these; a normal pattern takes less than a millisecond
_GAPS = 2  # maximum ratio of ids to tokens


def _mentions(part: Any, kind: str) -> bool:
    """Return whether a part of ``tokenizer.json``, or a step of a sequence in it, has this type."""
    if isinstance(part, dict):
        return part.get("type") == kind or any(_mentions(value, kind) for value in part.values())
    return isinstance(part, list) and any(_mentions(value, kind) for value in part)


def _keeps_spaces(added: Any) -> bool:
    """Return whether an added token keeps the spaces around it, or is special and never matched."""
    if not isinstance(added, dict):
        return False
    return bool(added.get("special")) or not (added.get("lstrip") or added.get("rstrip"))


class HuggingFace(FittedTokenizer):
    """A lossless tokenizer from a ``tokenizer.json``.

    Raises UsageError, with ``source`` in the message, if the tokenizer might not restore every
    byte: if it has no byte-level alphabet, or if it has a normalizer other than NFC, a prefix
    space, dropout, or added tokens that strip spaces. In addition to these settings, a round trip
    of unusual characters is checked.

    Text that spells a special token is encoded as plain text; text that spells another added token
    is encoded as that token, as in the model. An NFC normalizer (as in Qwen) is skipped, so text
    that is not in NFC is not changed.
    """

    def __init__(self, settings: Any, source: str) -> None:
        refuse = self._objection(settings)
        if not refuse:
            # The post-processor only adds special tokens around a whole text.
            unused = dict.fromkeys(("normalizer", "post_processor", "truncation", "padding"))
            self._settings: dict[str, Any] = settings | unused
            try:
                with panics():
                    self._tokenizer = Tokenizer.from_str(json.dumps(self._settings))
                    self._tokenizer.encode_special_tokens = True
                    self._check_ids(source)
                    refuse = self._tried()
            except UsageError:
                raise
            except Panicked as error:
                refuse = f"its pattern fails on a text ({error})"
            except Exception as error:  # the library raises nothing more specific
                refuse = f"it cannot be read ({error})"
        if refuse:
            raise UsageError(
                f"text tokenizer {source} is not lossless: {refuse}. "
                "Use a byte-level BPE tokenizer.json, or words, bpe:N or bytes"
            )

    def _check_ids(self, source: str) -> None:
        ids = self._tokenizer.get_vocab(with_added_tokens=True).values()
        if max(ids) >= (most := _GAPS * len(ids) + len(ALPHABET)):
            raise UsageError(
                f"text tokenizer {source}: ids must be at most {most - 1:,} for {len(ids):,} "
                f"tokens (got {max(ids):,}), since a model has a row for every id. Number the "
                "tokens consecutively"
            )

    def _tried(self) -> str:
        """Return what is wrong with a round trip, or an empty string."""
        if not self._gives_back(_PROBE):
            return "it changes or drops characters"
        begun = time.monotonic()
        if not self._gives_back(_RUNS):
            return "it changes or drops characters"
        if (seconds := time.monotonic() - begun) > _PATIENCE:
            return f"its pattern takes {seconds:.0f} seconds for a short text"
        return ""

    def _gives_back(self, text: str) -> bool:
        """Return whether a round trip restores a text. Characters with a missing byte are left out,
        because texts that contain them are rejected row by row (:meth:`unwritable`)."""
        missing = set(np.flatnonzero(self.missing_bytes).tolist())
        text = "".join(letter for letter in text if not missing & set(letter.encode()))
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return self.decode(np.array(ids, np.uint32)) == text.encode()

    @staticmethod
    def _objection(settings: Any) -> str:
        parts = settings if isinstance(settings, dict) else {}
        model, added = parts.get("model"), parts.get("added_tokens") or []
        if not isinstance(model, dict) or not isinstance(added, list):
            return "it is not a tokenizer.json (no model in it)"
        if model.get("type") != "BPE" or not _mentions(settings.get("decoder"), "ByteLevel"):
            return f"it is not a byte-level BPE (model {model.get('type')!r})"
        if settings.get("normalizer") not in (None, {"type": "NFC"}):
            return "it changes the text first (a normalizer is set)"
        if not all(map(_keeps_spaces, added)):
            return "it has added tokens that strip the spaces around them"
        if '"add_prefix_space": true' in json.dumps(settings.get("pre_tokenizer")):
            return "it adds a space before each piece"
        if model.get("dropout"):
            return "its tokens are random (dropout is set)"
        if not set(ALPHABET) & set(model.get("vocab") or {}):
            return "its vocabulary has no token for any single byte"
        return ""

    @cached_property
    def _bytes(self) -> list[bytes]:
        ids = self._tokenizer.get_vocab(with_added_tokens=True)
        special = {token["content"] for token in self._settings.get("added_tokens", [])}
        names = [b""] * (max(ids.values()) + 1)
        for token, index in ids.items():
            names[index] = token.encode() if token in special else from_alphabet(token)
        return names

    def vocabulary(self) -> list[str]:
        return [_readable(token) for token in self._bytes]

    def encode(self, pieces: Texts) -> TokenRuns:
        try:
            ids, lengths = encode_texts(self._tokenizer, *pieces)
        except Panicked as error:
            raise UsageError(
                f"the pattern of the text tokenizer fails on a text ({error}). "
                "Use another tokenizer.json, or words, bpe:N or bytes"
            ) from None
        return TokenRuns(ids, offsets(lengths))

    def decode(self, ids: UInt32s) -> bytes:
        return b"".join([self._bytes[token] for token in ids.tolist()])

    def state(self) -> dict[str, Any]:
        return {"tokenizer": self._settings}

    def huggingface(self) -> dict[str, Any]:
        return self._settings


def _readable(token: bytes) -> str:
    """Return the text of a token if its bytes are printable UTF-8, else the names of its bytes."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "".join(BYTE_NAMES[byte] for byte in token)
    return text if text.isprintable() else "".join(BYTE_NAMES[byte] for byte in token)
