"""codec: converts texts with numbers to tokens, and back.

A codec combines a scheme, a text tokenizer, a numeral policy and a normalizer. It is stored in
``scheme.json``. Encoding works on columns, never number by number: it finds the numbers, splits the
text into the pieces between them, tokenizes both, and merges the tokens::

    text     [1.5, -2]         numbers  1.5  -2       pieces  "["  ", "  "]"
    column   [[NUM], [NUM]]    tokens   [ + 150 E-2 ,  - 200 E-2 ]

In the ``text`` column, each number is replaced by ``[NUM]``. To keep this invertible, a literal
``[NUM]`` in the text is escaped with a backslash, ``[\\NUM]``, and a literal that is already
escaped gets another backslash. The other special tokens are escaped in the same way. The escaped
text is tokenized, so text is never mistaken for a special token.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok import files
from numtok.arrays import Bools, Floats, Int32s, UInt8s, UInt32s
from numtok.data.records.row_template import RowTemplate
from numtok.encoding.channel import beyond_digits, beyond_float64, inexact, normalized
from numtok.encoding.normalizers.base import Constants, FittedNormalizer, stored_normalizer
from numtok.encoding.schema import SCHEME_FILE, SPECIALS, TokenIds
from numtok.encoding.schemes.base import (
    SCHEMES,
    Channel,
    ChannelScheme,
    DecodedNumbers,
    Encoded,
    Scheme,
    is_exact,
    outcomes_of,
)
from numtok.encoding.segments import Segments, chunks_of, segments_of
from numtok.encoding.text_tokenizers.base import (
    TEXT_TOKENIZERS,
    FittedTokenizer,
    NumberTokens,
    TextTokenizer,
)
from numtok.encoding.texts import Texts, offsets, unescape
from numtok.encoding.whole_text import among_text, cut_whole, in_text
from numtok.errors import DataError, UsageError, naming
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy
from numtok.plugins import fault_of
from numtok.registry import Settings, settings_of
from numtok.stored_json import StoredJson, Value, check_depth, convert, reading

FORMAT = 1  # version of scheme.json
LARGEST = 512 << 20  # maximum size of scheme.json in bytes

_NO_TOKENS = np.empty(0, np.uint32)
_NO_NUMBERS = _NO_TOKENS, np.empty(0, np.int32), np.empty(0, np.float32)


class _Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    special: list[str]
    number: list[str]
    text: list[str]


class _SchemeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Content of ``scheme.json``: complete settings, the constants of the normalizer, the state of
    the text tokenizer, and all tokens by kind."""

    format: int
    scheme: Settings
    numerals: Settings
    normalize: dict[str, Value]
    text_tokenizer: dict[str, Value]
    vocabulary: _Vocabulary
    template: RowTemplate | None = None


_SCHEME = StoredJson(name=SCHEME_FILE, kind=_SchemeFile, limit=LARGEST, newest=FORMAT)


class EncodedTexts(NamedTuple):
    """``n`` encoded texts as flat columns. Text r begins at ``token_rows[r]`` in the columns of
    tokens and at ``number_rows[r]`` in the columns of numbers."""

    text: "pa.Array[Any]"  # [n] strings, numbers replaced by [NUM]
    tokens: NDArray[np.uint16] | UInt32s  # [all tokens], type by the vocabulary's size
    token_rows: Int32s  # [n + 1]
    number_rows: Int32s  # [n + 1]
    numbers: Floats  # [numbers], raw
    number_start: Int32s  # [numbers], token index within the row
    number_length: Int32s  # [numbers]
    channel: Channel | None  # [numbers]
    outcomes: UInt8s  # [numbers]
    inexact: int  # count of :func:`inexact` or :func:`beyond_float64`
    truncated: int  # count of :func:`beyond_digits`
    marks: Int32s  # [n] token index within the row, -1 if none
    literals: Literals  # [numbers], in the notation of the scanner
    written: Literals  # [numbers], as in the texts


@dataclass(frozen=True, kw_only=True)
class Codec:
    """Converts texts to tokens and back. A codec is immutable and identified by its
    :attr:`digest`.

    ``template`` is the template by which records became texts; None if the data were texts.
    """

    scheme: Scheme
    policy: NumeralPolicy
    normalizer: FittedNormalizer
    text_tokenizer: TextTokenizer
    text: FittedTokenizer
    template: RowTemplate | None = None

    @cached_property
    def number_first(self) -> int:
        """Id of the first number token. Number tokens follow the special tokens; text tokens come
        last."""
        return len(SPECIALS)

    @cached_property
    def number_tokens(self) -> tuple[str, ...]:
        """Number tokens, ordered by id; empty if numbers are written with text tokens."""
        return () if in_text(self.scheme) else tuple(self.scheme.vocabulary())

    @cached_property
    def text_first(self) -> int:
        """Id of the first text token."""
        return self.number_first + len(self.number_tokens)

    @cached_property
    def vocabulary_size(self) -> int:
        """Total number of special, number and text tokens."""
        return self.text_first + len(self.text.vocabulary())

    @property
    def ids(self) -> TokenIds:
        """Id ranges of number tokens and text tokens, for checking stored rows."""
        return TokenIds(
            number_first=self.number_first,
            text_first=self.text_first,
            size=self.vocabulary_size,
            channel=isinstance(self.scheme, ChannelScheme),
            exact=is_exact(self.scheme),
            written=self.policy.is_rewritten,
        )

    def find(self, texts: Texts) -> Spans:
        """Return the spans of the numbers in the given texts, according to the numeral policy."""
        return texts.find(self.policy)

    def encode(self, texts: Texts, spans: Spans, marks: Int32s | None = None) -> EncodedTexts:
        """Encode texts whose numbers have been found by :meth:`find`.

        marks
            int32[n], byte offset in ``texts.data`` at which the answer of each text begins; -1 for
            a text without an answer. A new token begins at the offset, which must not be inside a
            number.

        Raises DataError if the text tokenizer cannot represent a text.
        """
        for text, problem in self.text.unwritable(texts).items():
            raise DataError(f"text {text}: {problem}. Remove the character")
        segments = segments_of(texts, spans, marks)
        in_answer = spans.in_answers(marks)
        chunks, number = [], 0
        for chunk in chunks_of(segments):
            end = number + len(chunk.starts)
            chunks.append(self._encode_chunk(chunk, in_answer[number:end]))
            number = end
        number_rows = offsets(spans.counts)
        counts = segments.counts

        def joined(field: str) -> NDArray[Any]:
            return _joined([chunk.pop(field) for chunk in chunks])

        token_bounds, text_bounds = offsets(joined("token_counts")), offsets(joined("text_sizes"))
        first = np.searchsorted(segments.bounds, texts.rows)  # the first segment of each row
        token_rows, text_rows = token_bounds[first], text_bounds[first]
        # Token positions of numbers are relative to their segment; add the row's tokens before it.
        row = np.searchsorted(texts.rows, segments.bounds[:-1], side="right") - 1
        before = token_bounds[:-1] - token_rows[row]
        starts = joined("places")
        starts += np.repeat(before, counts)
        answers = np.full(len(spans.counts), -1, np.int32)
        if marks is not None:
            marked = np.flatnonzero(marks >= 0)
            at = np.searchsorted(segments.bounds, marks[marked])
            answers[marked] = token_bounds[at] - token_rows[marked]
        return EncodedTexts(
            text=pa.StringArray.from_buffers(
                len(spans.counts), pa.py_buffer(text_rows), pa.py_buffer(joined("text"))
            ),
            tokens=joined("tokens"),
            token_rows=token_rows,
            number_rows=number_rows,
            numbers=joined("numbers"),
            number_start=starts,
            number_length=joined("lengths"),
            channel=joined("channel") if isinstance(self.scheme, ChannelScheme) else None,
            outcomes=joined("outcomes"),
            inexact=int(joined("inexact").sum()),
            truncated=int(joined("truncated").sum()),
            marks=answers,
            literals=spans.literals,
            written=Literals(texts.data, spans.starts, spans.ends),
        )

    def _encode_chunk(self, segments: Segments, in_answer: Bools) -> dict[str, NDArray[Any]]:
        """Encode the given segments to columns. Token positions are relative to each segment."""
        numerals = Numerals.read(segments.literals).of_texts(in_answer)
        raw = numerals.values
        dtype = np.uint16 if self.vocabulary_size <= 1 << 16 else np.uint32
        if in_text(self.scheme):
            woven, lengths = cut_whole(segments, self.text, self.text_first, dtype)
            encoded = Encoded(_NO_TOKENS, lengths, outcomes_of(numerals))
        else:
            encoded = self.encode_numbers(numerals)
            numbers = NumberTokens(encoded.tokens, encoded.lengths, self.number_first)
            woven = self.text.weave(segments, numbers, self.text_first, dtype)
        columns = {
            "text": woven.text,
            "text_sizes": np.diff(woven.text_bounds),
            "tokens": woven.tokens,
            "token_counts": np.diff(woven.token_bounds),
            "numbers": raw,
            "places": woven.places,
            "lengths": encoded.lengths,
            "outcomes": encoded.outcomes,
        }
        lost = truncated = 0
        if encoded.channel is not None:
            assert isinstance(self.scheme, ChannelScheme)
            columns["channel"] = encoded.channel
            lost = inexact(numerals, encoded, self.scheme, self.normalizer)
        elif self.keeps_literals:
            lost = beyond_float64(numerals, encoded.outcomes)
        if (limit := self.scheme.defaults.embedder_digits) is not None:
            truncated = beyond_digits(normalized(numerals, self.normalizer), limit)
        return columns | {"inexact": np.array([lost]), "truncated": np.array([truncated])}

    def decode(
        self,
        tokens: UInt32s,
        number_start: Int32s,
        number_length: Int32s,
        channel: Channel | None = None,
        errors: str = "strict",
    ) -> str:
        """Decode one row to text. Each number is written as its decoded literal, with the
        normalization undone.

        tokens
            uint32[tokens of the row], ids in the whole vocabulary.
        number_start, number_length, channel
            [numbers of the row], as in :class:`EncodedTexts`.
        errors
            Handling of invalid UTF-8, as in :meth:`joined`.

        If the tokens of a number have no value, the number is written as the characters that the
        tokens contain (``883e``) or, if they contain none, as the names of the tokens
        (``[NUM:+OVERFLOW]``). Raises ValueError if a token outside the numbers is not a text token.
        """
        literals = self.literals(tokens, number_start, number_length, channel)
        return self.joined(tokens, number_start, number_length, literals, errors)

    @property
    def keeps_literals(self) -> bool:
        """True if decoding restores numbers as they were written, not only their values."""
        return self.decode_numbers(*_NO_NUMBERS, in_answer=False).written is not None

    def literals(
        self,
        tokens: UInt32s,
        number_start: Int32s,
        number_length: Int32s,
        channel: Channel | None = None,
        in_answer: Bools | bool | None = None,
    ) -> list[str]:
        """Return the literals that :meth:`decode` writes for the numbers of a row.

        The arguments are the row's tokens [t], and the start, length and channel value of each
        number [n]. ``in_answer`` is as in :meth:`FittedNormalizer.at`.
        """
        number_tokens = tokens[_within(len(tokens), number_start, number_length)]
        decoded = self.decode_numbers(
            number_tokens - np.uint32(self.number_first), number_length, channel, in_answer
        )
        ends = np.cumsum(number_length)
        return [
            self.written_number(number_tokens[end - length : end])
            if decoded.failures[index] and decoded.written is None
            else decoded.literal(index)
            for index, (end, length) in enumerate(
                zip(ends.tolist(), number_length.tolist(), strict=True)
            )
        ]

    def joined(
        self,
        tokens: UInt32s,
        number_start: Int32s,
        number_length: Int32s,
        literals: Sequence[str],
        errors: str = "strict",
    ) -> str:
        """Decode the tokens [t] of a row as :meth:`decode` does, but with the given literals for
        its numbers [n].

        ``errors`` has the same meaning as in ``bytes.decode``. It is needed because model output
        may not be valid UTF-8.
        """
        if (tokens[~_within(len(tokens), number_start, number_length)] < self.text_first).any():
            raise ValueError("expected a text token, got a special or number token")
        text = tokens - np.uint32(self.text_first)  # only valid outside of numbers
        begins = [0, *(number_start + number_length).tolist()]
        ends = [*number_start.tolist(), len(tokens)]
        parts = [
            part
            for begin, end, literal in zip(begins, ends, [*literals, ""], strict=True)
            for part in (self.text.decode(text[begin:end]), literal.encode())
        ]
        if in_text(self.scheme):  # tokens of a number may also contain text around it
            spans = zip(number_start.tolist(), number_length.tolist(), strict=True)
            for index, (start, length) in enumerate(spans):
                before, literal, after = self.scheme.parted(text[start : start + length].tolist())
                if literal is not None:
                    parts[2 * index + 1] = before + parts[2 * index + 1] + after
        return unescape(b"".join(parts).decode(errors=errors))

    def encode_numbers(self, numerals: Numerals) -> Encoded:
        """Normalize numbers and encode them to the scheme's local token ids."""
        return self.scheme.encode(normalized(numerals, self.normalizer))

    def decode_numbers(
        self,
        tokens: UInt32s,
        lengths: Int32s,
        channel: Channel | None = None,
        in_answer: Bools | bool | None = None,
    ) -> DecodedNumbers:
        """Decode n numbers, and undo the normalization.

        tokens
            uint32[sum of lengths], the scheme's local ids, concatenated over all numbers.
        lengths
            int32[n], number of tokens of each number.
        channel
            [n], channel value of each number, if the scheme has a value channel.
        in_answer
            bool[n], True for numbers in answers; see :meth:`FittedNormalizer.at`.
        """
        decoded = self.scheme.decode(tokens, lengths, channel)
        if self.normalizer.normalizer.identity:
            return decoded
        normalizer = self.normalizer.at(in_answer)
        return DecodedNumbers(normalizer.inverse(decoded.values), decoded.failures)

    def written_number(self, tokens: NDArray[np.unsignedinteger[Any]]) -> str:
        """Return the concatenated names of a number's tokens [t], given as ids in the whole
        vocabulary: ``[NUM:-][NUM:602][NUM:E-1]``."""
        return "".join(self.names[token] for token in tokens.tolist())

    @cached_property
    def names(self) -> list[str]:
        """Names of all tokens, indexed by id. Number tokens are named as in ``tokenizer.json``, for
        example ``[NUM:602]``."""
        named = (f"[NUM:{token}]" for token in self.vocabulary()["number"])
        return [*SPECIALS, *named, *self.text.vocabulary()]

    def vocabulary(self) -> dict[str, list[str]]:
        """Return the special tokens, number tokens and text tokens, each ordered by id."""
        return {
            "special": list(SPECIALS),
            "number": list(self.number_tokens),
            "text": self.text.vocabulary(),
        }

    def to_json(self) -> bytes:
        """Return the content of ``scheme.json``. Equal codecs produce equal bytes."""
        content = {
            "format": FORMAT,
            "scheme": settings_of(self.scheme),
            "numerals": self.policy.settings(),
            "normalize": settings_of(self.normalizer.normalizer)
            | {"constants": self.normalizer.constants},
            "text_tokenizer": settings_of(self.text_tokenizer) | {"state": self.text.state()},
            "vocabulary": self.vocabulary(),
        }
        if self.template is not None:
            content["template"] = msgspec.to_builtins(self.template)
        return json.dumps(content, ensure_ascii=False, indent=1).encode()

    @classmethod
    def read(cls, path: Path) -> "Codec":
        """Read a codec from a ``scheme.json`` file. Raises the same errors as :meth:`from_json`."""
        return cls.from_json(files.read_bytes(path, LARGEST), path)

    @classmethod
    def from_json(cls, content: bytes, path: Path = Path(SCHEME_FILE)) -> "Codec":
        """Load a codec from the output of :meth:`to_json`. ``path`` is used in error messages.

        Raises UsageError if the codec uses an unknown revision of a scheme or of another part, or
        if the stored vocabulary does not match the settings, and StoreError if the content is
        invalid or its format is newer than this version of numtok.
        """
        stored = _SCHEME.of(content, path)
        with reading(path):
            try:
                return cls._from_stored(stored, path)
            except ValueError as error:
                if (fault := fault_of(error)) is not None:
                    raise fault from error
                raise

    @classmethod
    def _from_stored(cls, stored: _SchemeFile, path: Path) -> "Codec":
        check_depth(stored.text_tokenizer)
        normalize, text = dict(stored.normalize), dict(stored.text_tokenizer)
        constants = convert(normalize.pop("constants", None), Constants)
        state = convert(text.pop("state", None), dict[str, Value])
        with naming(path):
            tokenizer = TEXT_TOKENIZERS.from_settings(convert(text, Settings))
            fitted = tokenizer.load(state)
            codec = cls(
                scheme=among_text(SCHEMES.from_settings(stored.scheme), fitted),
                policy=NumeralPolicy.from_settings(stored.numerals),
                normalizer=stored_normalizer(convert(normalize, Settings), constants),
                text_tokenizer=tokenizer,
                text=fitted,
                template=stored.template,
            )
        if _Vocabulary(**codec.vocabulary()) != stored.vocabulary:
            raise UsageError(
                f"the vocabulary in {path} does not match its settings: the file was edited, or "
                "its scheme was changed without a new revision. Encode the data again"
            )
        return codec

    @cached_property
    def digest(self) -> str:
        """SHA-256 digest of :meth:`to_json`. Codecs with equal digests produce the same tokens."""
        return hashlib.sha256(self.to_json()).hexdigest()


def _within(size: int, starts: Int32s, lengths: Int32s) -> Bools:
    """Return whether each token of a row belongs to a number, bool[size]."""
    inside = np.zeros(size, np.bool_)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        inside[start : start + length] = True
    return inside


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate parts into one array, releasing each part as soon as it is copied."""
    if len(parts) == 1:
        return parts[0]
    whole = np.empty(sum(len(part) for part in parts), parts[0].dtype)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole
