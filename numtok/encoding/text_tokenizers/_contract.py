"""Contract checks for text tokenizers, run by ``numtok check text-tokenizer NAME``."""

import json
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from tokenizers import Tokenizer

from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    expect,
    expect_array,
    expect_kind,
    fail,
    wrong,
)
from numtok.encoding.text_tokenizers.base import (
    TEXT_TOKENIZERS,
    FittedTokenizer,
    TextTokenizer,
)
from numtok.encoding.texts import Texts
from numtok.errors import UsageError

#: Letters of one to four bytes, words, quoted keys, whitespace, and the replacement of numbers.
SAMPLE = (
    'The temperature is "temperature": [',
    ", the pressure and the temperature of the air, ",
    "] äöü ß naïve 日本語 日本語 temperature\n\n",
    " \t  the [NUM] the [\\NUM] [MASK] \x00\x00 the end.",
    "pressure pressure of of of a b c d e f, , , ; ; the\u00a0air 🙂🙂",
    "{'m': {'m': 'm': 'm': é\"é/ x\": \"é/ x\": \"é/ x\": \"é/ x\": the",
)
_LETTERS = "ab_ 09[]'\":-\\.,\n\t\x00\x7fßé日🙂\u00a0\u2212\u200d"


def _fitted(tokenizer: TextTokenizer) -> FittedTokenizer:
    """Fit the tokenizer to the sample. A tokenizer that cannot be fitted loads the vocabulary of
    another one."""
    try:
        result = tokenizer.fit(Texts.of(SAMPLE))
    except UsageError:
        for name in TEXT_TOKENIZERS:
            other = TEXT_TOKENIZERS.build(TEXT_TOKENIZERS.checked_at(name))
            if type(other) is type(tokenizer):
                continue
            try:
                result = tokenizer.load(other.fit(Texts.of(SAMPLE)).state())
            except (UsageError, ValueError, TypeError):
                continue
            break
        else:
            raise
    fitted: FittedTokenizer = expect_kind(tokenizer, "fit", result, FittedTokenizer)
    return fitted


def _texts(seed: int) -> list[str]:
    """Return texts that the tokenizer was not fitted on, including an empty one."""
    generator = np.random.default_rng(seed)
    drawn = [generator.choice([*_LETTERS], generator.integers(1, 12)) for _ in range(60)]
    mixed = [
        generator.choice([*SAMPLE, "[NUM]", " the", "the ", "'m'", ": "], 3) for _ in range(20)
    ]
    return ["", *SAMPLE, *map("".join, drawn), *map("".join, mixed)]


def _encoded(fitted: FittedTokenizer, texts: list[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield each text with its tokens."""
    runs = fitted.encode(Texts.of(texts))
    expect_array(fitted, "encode, ids", runs.ids, (None,), dtype="uint32")
    expect_array(fitted, "encode, bounds", runs.bounds, (len(texts) + 1,), dtype="int32")
    ends = runs.bounds.tolist()
    if ends[0] != 0 or ends[-1] != len(runs.ids) or sorted(ends) != ends:
        expected = "bounds that increase from 0 to the number of ids"
        wrong(fitted, "encode, bounds", f"bounds from {ends[0]} to {ends[-1]}", expected)
    ids = runs.ids.tolist()
    for text, (begin, end) in zip(texts, pairwise(ends), strict=True):
        yield text, ids[begin:end]


def check_declarations(tokenizer: TextTokenizer, seed: int) -> None:
    """All declared attributes exist."""
    check_declared(tokenizer, "declarations", revision=int)
    check_settings(TEXT_TOKENIZERS, tokenizer, "declarations")
    expect_kind(tokenizer, "needs_sample", tokenizer.needs_sample, bool)


def check_vocabulary(tokenizer: TextTokenizer, seed: int) -> None:
    """All tokens have distinct bytes, and an id out of range raises IndexError."""
    name, fitted = "vocabulary", _fitted(tokenizer)
    size = len(fitted.vocabulary())
    tokens = [fitted.decode(np.array([token], np.uint32)) for token in range(size)]
    expect(tokenizer, name, "tokens with the same bytes", size - len(set(tokens)), 0)
    try:
        fitted.decode(np.array([size], np.uint32))
    except IndexError:
        return
    fail(tokenizer, name, f"the id {size}: got bytes, expected an IndexError")


def check_bytes(tokenizer: TextTokenizer, seed: int) -> None:
    """Decoding restores every byte, even of texts that were not in the sample."""
    fitted = _fitted(tokenizer)
    for text, ids in _encoded(fitted, _texts(seed)):
        got = fitted.decode(np.array(ids, np.uint32))
        expect(tokenizer, "bytes", repr(text), got, text.encode())
    expect(tokenizer, "bytes", "tokens without texts", len(fitted.encode(Texts.of([])).ids), 0)


def check_pieces(tokenizer: TextTokenizer, seed: int) -> None:
    """Each piece is tokenized separately, so no token crosses a number."""
    fitted = _fitted(tokenizer)
    for text, ids in _encoded(fitted, _texts(seed)):
        [(_, alone)] = _encoded(fitted, [text])
        expect(tokenizer, "pieces", f"{text!r} among others", ids, alone)


def check_state(tokenizer: TextTokenizer, seed: int) -> None:
    """The JSON state and the sample both reproduce the tokenizer."""
    fitted, texts = _fitted(tokenizer), _texts(seed)
    tokens = [*_encoded(fitted, texts)]
    again = tokenizer.load(json.loads(json.dumps(fitted.state())))
    for what, other in (("loaded", again), ("fitted again", _fitted(tokenizer))):
        same = other.vocabulary() == fitted.vocabulary()
        expect(tokenizer, "state", f"{what}: the same vocabulary", same, True)
        same = [*_encoded(other, texts)] == tokens
        expect(tokenizer, "state", f"{what}: the same tokens", same, True)


def check_hugging_face(tokenizer: TextTokenizer, seed: int) -> None:
    """Hugging Face's library gives the same tokens."""
    fitted = _fitted(tokenizer)
    exported = Tokenizer.from_str(json.dumps(fitted.huggingface()))
    for text, ids in _encoded(fitted, _texts(seed)):
        # Encoded as part of a text, without Hugging Face's own special tokens.
        got = exported.encode(text, add_special_tokens=False).ids
        expect(tokenizer, "hugging face", repr(text), got, ids)


CHECKS = checks_of(__name__)
