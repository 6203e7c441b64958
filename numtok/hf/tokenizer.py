"""Texts with numbers to tokens and values, as a tokenizer of transformers."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BatchEncoding, PreTrainedTokenizer

from numtok import files
from numtok.encoding.codec import Codec
from numtok.encoding.grammar import Grammar
from numtok.encoding.holes import HOLE
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.schemes.base import ChannelScheme, is_exact
from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.library.batch import batch
from numtok.library.codec import TextCodec
from numtok.models.batches import flush_right
from numtok.models.generation import numbers_among


class NumtokTokenizer(PreTrainedTokenizer):
    """The codec of a model, in the manners of transformers.

    Called with a text, or several, it gives tensors: ``input_ids`` [B, L], ``attention_mask`` and,
    where the scheme has values beside tokens, ``values`` [B, L]. Rows of a causal model begin with
    ``[END]``, and pads stand before them, as ``generate`` wants it. Of a masked one a number that
    nobody knows is written ``[?]``.

    >>> tokenizer("2.5 =").input_ids
    tensor([[  2,   3, 255,  19,  ...]])

    codec
        The codec as the rest of numtok has it.
    """

    vocab_files_names = {"scheme_file": SCHEME_FILE}  # noqa: RUF012  # theirs
    model_input_names = ["input_ids", "attention_mask", "values"]  # noqa: RUF012

    def __init__(self, scheme_file: str, causal: bool = False, **settings: Any) -> None:
        self.codec = Codec.read(Path(scheme_file))
        self.causal = causal
        self._texts = TextCodec(self.codec)
        self._grammar = Grammar(self.codec.scheme)
        self._ids = {name: index for index, name in enumerate(self.codec.names)}
        super().__init__(causal=causal, **settings)

    @property
    def vocab_size(self) -> int:
        """Special tokens, tokens of numbers and tokens of text."""
        return self.codec.vocabulary_size

    def get_vocab(self) -> dict[str, int]:
        """Ids by names: ``[NUM:...]`` are of numbers."""
        return dict(self._ids)

    def __call__(
        self, text: Any, *, padding: Any = True, truncation: Any = False, return_tensors: str = "pt"
    ) -> BatchEncoding:
        """A text or a column of texts as tensors: rows are padded to the longest.

        Raises UsageError for what is asked and cannot be done, DataError for what is no text.
        """
        if truncation or return_tensors != "pt" or padding not in (True, "longest"):
            raise UsageError(
                "a NumtokTokenizer gives whole rows as tensors of PyTorch, padded to the longest; "
                "leave padding, truncation and return_tensors out"
            )
        texts = Texts.of([text] if isinstance(text, str) else text)
        has_holes = any(HOLE in one for one in texts.strings())
        if has_holes and self.causal:
            raise UsageError(
                f"a causal model says a number behind the text before it; give the text up to the "
                f"{HOLE}, or ask model.predict"
            )
        mask = "holes" if has_holes else "none"
        made = batch(self._texts, texts.strings(), mask=mask, causal=self.causal)
        given = {"input_ids": made.tokens, "attention_mask": made.attention_mask.long()}
        if isinstance(self.codec.scheme, ChannelScheme):
            given["values"] = made.exact if is_exact(self.codec.scheme) else made.values
        if self.causal:
            lengths = given["attention_mask"].sum(dim=1).numpy()
            given = {name: _flushed(one.numpy(), lengths) for name, one in given.items()}
        return BatchEncoding(given)

    def _tokenize(self, text: str, **settings: Any) -> list[str]:
        return self._texts.tokens(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids[token]

    def _convert_id_to_token(self, index: int) -> str:
        return self.codec.names[index]

    def _decode(
        self, token_ids: int | list[int], skip_special_tokens: bool = False, *_: Any, **__: Any
    ) -> str:
        """Tokens as text, numbers as their literals; beside a value, which tokens do not have,
        ``[NUM]``. What a model wrote need not be UTF-8."""
        tokens = np.atleast_1d(np.asarray(token_ids, np.int64))
        special = np.flatnonzero(tokens < self.codec.number_first)
        parts, begin = [], 0
        for at in [*special.tolist(), len(tokens)]:
            parts.append(self._text(tokens[begin:at]))
            if at < len(tokens) and not skip_special_tokens:
                parts.append(self.codec.names[tokens[at]])
            begin = at + 1
        return "".join(parts)

    def _text(self, tokens: Any) -> str:
        starts, lengths = numbers_among(tokens, self.codec, self._grammar)
        ids = tokens.astype(np.uint32)
        if isinstance(self.codec.scheme, ChannelScheme):
            literals = ["[NUM]"] * len(starts)
        else:
            literals = self.codec.literals(ids, starts, lengths)
        return self.codec.joined(ids, starts, lengths, literals, errors="replace")

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """Write ``scheme.json``."""
        name = SCHEME_FILE if filename_prefix is None else f"{filename_prefix}-{SCHEME_FILE}"
        path = Path(save_directory) / name
        files.write_atomic(path, self.codec.to_json())
        return (str(path),)


def _flushed(rows: Any, lengths: Any) -> torch.Tensor:
    """Rows [B, L] with what they lack before them."""
    return torch.from_numpy(flush_right(rows, lengths))
