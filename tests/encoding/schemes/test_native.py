"""Numbers as text tokens: ids, positions of numbers, and tokens that a model may predict."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from numtok.encoding.codec import Codec, EncodedTexts
from numtok.encoding.fit_codec import Unfitted
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.texts import Texts
from numtok.encoding.whole_text import TextScheme, in_text
from numtok.errors import DataError, UsageError
from numtok.numerals.column import Numerals
from tests.cases import each
from tests.encoding.test_codec import encode as encoded
from tests.fakepretrained import tokenizer
from tests.messages import Says

TEXTS = [
    "is 12.5 kg", "12 apples are 3.5 kg and 120 pears are 17 kg.", "(-2, -3.25e-4)=-5; 1-2 1--2",
    "[NUM] 7 [\\MASK]x1.", "no number", "", "\u22123 é5ñ 6²", "12\n13\t.5 007 1,234", "a=5=b",
]  # fmt: skip
TOKENIZERS = ["file", "words", "bytes", "bpe:300"]
WORDS = " 12 120 3.5 17. (-2 =-5 kg and (12)(12)(17)(17)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a tokenizer whose number tokens have several digits and a space before them."""
    path = tmp_path_factory.mktemp("model") / "tokenizer.json"
    tokenizer(WORDS * 3).save(str(path))
    return path


def codec(model: Path, text_tokenizer: str = "file", numerals: str | None = None) -> Codec:
    chosen = str(model) if text_tokenizer == "file" else text_tokenizer
    scheme = SCHEMES.build("native")
    unfitted = Unfitted.of(scheme, text_tokenizer=chosen, numerals=numerals)
    return unfitted.fit_texts(Texts.of([*TEXTS, "1 2"]))


Row = tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], list[str]]


def rows(found: EncodedTexts) -> list[Row]:
    """Return the tokens, positions, lengths and literals of each row."""
    bounds = zip(*map(pairwise, (found.token_rows, found.number_rows)), strict=True)
    return [
        (
            found.tokens[first:end].astype(np.uint32),
            found.number_start[a:b],
            found.number_length[a:b],
            [found.literals.at(index) for index in range(a, b)],
        )
        for (first, end), (a, b) in bounds
    ]


@each("text_tokenizer", TOKENIZERS)
def test_every_text_comes_back_and_every_number_is_read(text_tokenizer: str, model: Path) -> None:
    of = codec(model, text_tokenizer)
    for text, (ids, starts, lengths, literals) in zip(TEXTS, rows(encoded(of, TEXTS)), strict=True):
        assert of.decode(ids, starts, lengths) == text
        assert of.literals(ids, starts, lengths) == literals
        assert of.joined(ids, starts, lengths, literals) == text


@given(st.text("0123456789.,-+eE%()= \nkg\u2212\u00e9", max_size=40))
def test_any_text_comes_back(text: str) -> None:
    of = Unfitted.of(SCHEMES.build("native"), text_tokenizer="bytes").fit_texts(Texts.of(["1"]))
    [(ids, starts, lengths, literals)] = rows(encoded(of, [text]))
    assert of.decode(ids, starts, lengths) == text
    assert of.literals(ids, starts, lengths) == literals


def test_ids_are_those_of_the_whole_text(model: Path) -> None:
    of, whole = codec(model), tokenizer(WORDS * 3)
    texts = [text for text in TEXTS if "[" not in text]
    for text, (ids, *_) in zip(texts, rows(encoded(of, texts)), strict=True):
        assert (ids - of.text_first).tolist() == whole.encode(text).ids


@pytest.mark.integration
def test_ids_are_those_of_transformers(model: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    given = transformers.PreTrainedTokenizerFast(tokenizer_file=str(model))
    given.save_pretrained(tmp_path)
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path)
    of = codec(tmp_path / "tokenizer.json")
    texts = [text for text in TEXTS if "[" not in text]
    for text, (ids, *_) in zip(texts, rows(encoded(of, texts)), strict=True):
        assert (ids - of.text_first).tolist() == auto(text)["input_ids"]


def test_a_number_is_the_tokens_that_have_some_of_it(model: Path) -> None:
    of = codec(model)
    [(ids, starts, lengths, _)] = rows(encoded(of, ["are 12 kg, (-2"]))
    words = of.text.vocabulary()
    shown = [
        [words[token - of.text_first] for token in ids[start : start + length]]
        for start, length in zip(starts, lengths, strict=True)
    ]
    assert shown == [[" 12"], [" (-", "2"]]  # a token's text before the number is part of it
    assert encoded(of, ["are 12 kg, (-2"]).text.to_pylist() == ["are [NUM] kg, ([NUM]"]


def test_a_token_begins_where_an_answer_does(model: Path) -> None:
    of, text = codec(model), "it is 12"
    [(ids, starts, lengths, _)] = rows(encoded(of, [text], [text.index("12")]))
    assert (starts.tolist(), lengths.tolist()) == ([len(ids) - 1], [1])
    assert of.text.decode(ids[-1:] - np.uint32(of.text_first)) == b"12"
    assert of.decode(ids, starts, lengths) == text


def test_numbers_that_share_a_token(model: Path) -> None:
    of = codec(model)
    [(_, starts, lengths, _)] = rows(encoded(of, ["1--2"]))
    assert (lengths > 0).all() and (starts[1:] >= starts[:-1] + lengths[:-1]).all()


def test_the_codec_is_read_again(model: Path) -> None:
    of = codec(model)
    again = Codec.from_json(of.to_json())
    assert again.digest == of.digest and in_text(again.scheme)
    assert of.vocabulary()["number"] == [] and of.text_first == of.number_first == 3
    assert not in_text(SCHEMES.build("native"))
    assert again.scheme != of.scheme  # each refers to its own text tokenizer


def test_what_may_be_said(model: Path) -> None:
    of = codec(model)
    scheme, words = of.scheme, of.text.vocabulary()
    token = {word: index for index, word in enumerate(words)}
    begin = scheme.next(())
    assert not begin.may_end
    assert all(begin.allowed[token[word]] for word in (" 12", "1", "-", ".", " (-", "=-", "17"))
    assert not any(begin.allowed[token[word]] for word in ("k", " ", "e", "=", "%"))
    after = scheme.next((token[" 12"],))
    assert after.may_end
    assert all(after.allowed[token[word]] for word in ("0", ".", "e", "12", "%"))
    assert not any(after.allowed[token[word]] for word in (" 12", "-", "k", " "))
    point = scheme.next((token["12"], token["."]))
    assert point.may_end  # the point can be the end of the sentence
    found = scheme.decode(np.array([token["12"], token["."]], np.uint32), np.array([2], np.int32))
    assert (found.values.tolist(), found.written) == ([12.0], ("12",))
    assert not scheme.next((token["-"],)).may_end
    assert not scheme.next((token["k"],)).allowed.any()
    assert isinstance(scheme, TextScheme)
    assert scheme.own_tokens[token[" 12"]] and not scheme.own_tokens[token["k"]]


def test_what_is_no_number_is_malformed(model: Path) -> None:
    of = codec(model)
    token = {word: index for index, word in enumerate(of.text.vocabulary())}
    ids = np.array([token["k"], token["-"]], np.uint32)
    found = of.scheme.decode(ids, np.array([1, 1], np.int32))
    assert found.failures.all() and found.written == ("k", "-")


def test_numbers_that_stand_alone_are_written_too(model: Path) -> None:
    of = codec(model)
    [(ids, *_)] = rows(encoded(of, ["12"]))
    assert of.scheme.encode(Numerals.of_literals(["12"])).tokens.tolist() == (ids - 3).tolist()


def test_a_normalisation_is_refused(model: Path, says: Says) -> None:
    with says.raises(UsageError, "--normalize affine", "--scheme native", "Leave out --normalize"):
        Unfitted.of(SCHEMES.build("native"), normalize="affine", text_tokenizer="bytes")


def test_two_numbers_in_one_token_are_refused(tmp_path: Path, says: Says) -> None:
    """The tokenizer merges across spaces."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate([*letters, "1Ġ", "1Ġ2"])}
    made = Tokenizer(models.BPE(vocabulary, [("1", "Ġ"), ("1Ġ", "2")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    of = codec(tmp_path / "tokenizer.json")
    with says.raises(DataError, "'1 2'", "--scheme native", "--text-tokenizer"):
        encoded(of, ["1 2"])
