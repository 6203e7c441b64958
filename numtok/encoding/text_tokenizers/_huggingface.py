"""A byte-level tokenizer of Hugging Face's library, run once for each distinct piece."""

import json
import time
from functools import cached_property
from string import printable
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from numtok.arrays import UInt32s
from numtok.encoding.huggingface import Panicked, encode_texts, panics
from numtok.encoding.text_tokenizers._bytelevel import ALPHABET, BYTE_NAMES, from_alphabet
from numtok.encoding.text_tokenizers.base import FittedTokenizer, TokenRuns
from numtok.encoding.texts import Texts, offsets
from numtok.errors import UsageError

# Whitespace that splitters drop or strip, letters that normalizers change, every UTF-8 length.
_PROBE = " \t a  b\n\n\r\nÀÅe\u0301ﬁＡ 'd I'll x1y2_3 [NUM] \x00\x7f\xa0\u200d\u2028日本 🙂🙂 end. "

# Runs of one kind, cut short by another: what patterns go back and forth on. Behind them all
# characters, since nothing is tried in a text without one that a pattern needs.
_RUNS = "".join(f"{letter * 40}{end}" for letter in "aA1 \n.-_日" for end in "!x0 ") + printable
_PATIENCE = 2.0  # seconds for these, which take a usual pattern less than a thousandth of one
_GAPS = 2  # ids there may be for each token


def _mentions(part: Any, kind: str) -> bool:
    """True if a part of ``tokenizer.json``, or a step of a sequence in it, is of a kind."""
    if isinstance(part, dict):
        return part.get("type") == kind or any(_mentions(value, kind) for value in part.values())
    return isinstance(part, list) and any(_mentions(value, kind) for value in part)


def _keeps_spaces(added: Any) -> bool:
    """Whether an added token is never met in a text, or gives back all that it is met in."""
    if not isinstance(added, dict):
        return False
    return bool(added.get("special")) or not (added.get("lstrip") or added.get("rstrip"))


class HuggingFace(FittedTokenizer):
    """A ``tokenizer.json`` that gives every byte back.

    Raises UsageError, naming ``source``, for one that does not: no byte-level alphabet, a
    normalizer, a prefix space, a random choice, or added tokens that take spaces with them. What
    the settings do not tell, a text of odd characters shows.

    A text that spells a special token is text; one that spells another added token is that token,
    as for the model. NFC (Qwen's) is left out: text in another form stays as it is.
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
                refuse = f"its pattern gives up on a text ({error})"
            except Exception as error:  # the library raises nothing more specific
                refuse = f"it cannot be read ({error})"
        if refuse:
            raise UsageError(
                f"text tokenizer {source}: {refuse}, so it would not give every byte of a text "
                "back; give a byte-level BPE tokenizer.json, or use words, bpe:N or bytes"
            )

    def _check_ids(self, source: str) -> None:
        ids = self._tokenizer.get_vocab(with_added_tokens=True).values()
        if max(ids) >= (most := _GAPS * len(ids) + len(ALPHABET)):
            raise UsageError(
                f"text tokenizer {source}: one of its {len(ids):,} tokens has the id {max(ids):,}, "
                f"and a model has a row for every id; ids may go up to {most - 1:,}, so number "
                "the tokens one after the other"
            )

    def _tried(self) -> str:
        """What is wrong with what comes out; empty for nothing."""
        if not self._gives_back(_PROBE):
            return "it changes or drops characters"
        begun = time.monotonic()
        if not self._gives_back(_RUNS):
            return "it changes or drops characters"
        if (seconds := time.monotonic() - begun) > _PATIENCE:
            return f"its pattern takes {seconds:.0f} seconds for a short text"
        return ""

    def _gives_back(self, text: str) -> bool:
        """Return whether a text survives a round trip. Characters with a missing byte are left
        out: texts that have them are rejected row by row (:meth:`unwritable`)."""
        missing = set(np.flatnonzero(self.missing_bytes).tolist())
        text = "".join(letter for letter in text if not missing & set(letter.encode()))
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return self.decode(np.array(ids, np.uint32)) == text.encode()

    @staticmethod
    def _objection(settings: Any) -> str:
        parts = settings if isinstance(settings, dict) else {}
        model, added = parts.get("model"), parts.get("added_tokens") or []
        if not isinstance(model, dict) or not isinstance(added, list):
            return "it is no tokenizer.json (no model in it)"
        if model.get("type") != "BPE" or not _mentions(settings.get("decoder"), "ByteLevel"):
            return f"it is not a byte-level BPE (model {model.get('type')!r})"
        if settings.get("normalizer") not in (None, {"type": "NFC"}):
            return "it changes the text first (a normalizer is set)"
        if not all(map(_keeps_spaces, added)):
            return "it has added tokens, not special ones, that take the spaces beside them away"
        if '"add_prefix_space": true' in json.dumps(settings.get("pre_tokenizer")):
            return "it puts a space in front of each piece"
        if model.get("dropout"):
            return "it chooses tokens at random (dropout is set)"
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
                f"the text tokenizer's pattern gives up on a text ({error}); give another "
                "tokenizer.json, or use words, bpe:N or bytes"
            ) from None
        return TokenRuns(ids, offsets(lengths))

    def decode(self, ids: UInt32s) -> bytes:
        return b"".join([self._bytes[token] for token in ids.tolist()])

    def state(self) -> dict[str, Any]:
        return {"tokenizer": self._settings}

    def huggingface(self) -> dict[str, Any]:
        return self._settings


def _readable(token: bytes) -> str:
    """Text where the bytes are text, else the bytes by name."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "".join(BYTE_NAMES[byte] for byte in token)
    return text if text.isprintable() else "".join(BYTE_NAMES[byte] for byte in token)
