"""Transformers tokenizer that converts texts with numbers to tokens and values."""

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
    """Transformers tokenizer that wraps a model's codec.

    Calling it with one or more texts returns tensors: ``input_ids`` [B, L], ``attention_mask`` and,
    if the scheme pairs tokens with values, ``values`` [B, L]. Rows of causal models begin with
    ``[END]`` and are padded on the left, as ``generate`` requires. In texts for masked models,
    ``[?]`` marks a number to predict.

    >>> tokenizer("2.5 =").input_ids
    tensor([[  2,   3, 255,  19,  ...]])

    codec
        The underlying numtok codec.
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
        """Total number of special tokens, number tokens and text tokens."""
        return self.codec.vocabulary_size

    def get_vocab(self) -> dict[str, int]:
        """Return the token ids, keyed by token name. Number tokens are named ``[NUM:...]``."""
        return dict(self._ids)

    def __call__(
        self, text: Any, *, padding: Any = True, truncation: Any = False, return_tensors: str = "pt"
    ) -> BatchEncoding:
        """Encode a text or a column of texts as tensors [B, L], padded to the longest row.

        Raises UsageError for unsupported options, and DataError if an input is not a text.
        """
        if truncation or return_tensors != "pt" or padding not in (True, "longest"):
            raise UsageError(
                "NumtokTokenizer only returns PyTorch tensors, padded to the longest row and not "
                "truncated. Remove padding, truncation and return_tensors"
            )
        texts = Texts.of([text] if isinstance(text, str) else text)
        has_holes = any(HOLE in string for string in texts.strings())
        if has_holes and self.causal:
            raise UsageError(
                f"{HOLE} cannot be used with a causal model, which predicts from the text before a "
                f"number. Pass the text up to {HOLE}, or call model.predict"
            )
        mask = "holes" if has_holes else "none"
        encoded = batch(self._texts, texts.strings(), mask=mask, causal=self.causal)
        tensors = {"input_ids": encoded.tokens, "attention_mask": encoded.attention_mask.long()}
        if isinstance(self.codec.scheme, ChannelScheme):
            tensors["values"] = encoded.exact if is_exact(self.codec.scheme) else encoded.values
        if self.causal:
            lengths = tensors["attention_mask"].sum(dim=1).numpy()
            tensors = {name: _flushed(rows.numpy(), lengths) for name, rows in tensors.items()}
        return BatchEncoding(tensors)

    def _tokenize(self, text: str, **settings: Any) -> list[str]:
        return self._texts.tokens(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids[token]

    def _convert_id_to_token(self, index: int) -> str:
        return self.codec.names[index]

    def _decode(
        self, token_ids: int | list[int], skip_special_tokens: bool = False, *_: Any, **__: Any
    ) -> str:
        """Decode tokens as text with numbers as literals.

        Numbers whose value is not in their tokens are decoded as ``[NUM]``. Bytes that are not
        UTF-8, which a model may write, are replaced.
        """
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
        """Write the codec to the file ``scheme.json`` in a folder, and return a tuple with the path
        of this file."""
        name = SCHEME_FILE if filename_prefix is None else f"{filename_prefix}-{SCHEME_FILE}"
        path = Path(save_directory) / name
        files.write_atomic(path, self.codec.to_json())
        return (str(path),)


def _flushed(rows: Any, lengths: Any) -> torch.Tensor:
    """Return rows [B, L] padded on the left instead of on the right."""
    return torch.from_numpy(flush_right(rows, lengths))
