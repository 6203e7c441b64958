"""Texts of tokens in all kinds of tokenizers, and which tokens are numbers."""

import pytest
from tokenizers import Tokenizer

from numtok.encoding.token_texts import token_texts
from numtok.encoding.valued_tokens import ValuedTokens
from numtok.errors import UsageError
from tests.cases import check_examples, each
from tests.fakepretrained import tokenizer
from tests.faketokenizers import LOOKALIKES, for_transformers, marked_spaces, word_pieces


def numbers(tokenizer: object) -> dict[str, float]:
    """Return the value of each number token, by its text."""
    texts = token_texts(tokenizer)
    found = ValuedTokens.of_texts(texts)
    return {str(texts[token]): value for token, value in zip(found.ids, found.values, strict=True)}


def test_byte_level_numbers_have_spaces_and_several_digits() -> None:
    made = tokenizer(" 12 120 (17)(17) 3.5 6\u00b2 \u00bd " * 9)
    assert numbers(made) == {
        **{str(digit): digit for digit in range(10)},
        **{"12": 12, " 12": 12, " 120": 120, " 3": 3, "17": 17},
    }


def test_marked_spaces_are_spaces_and_lookalikes_are_not_numbers() -> None:
    digits = {"5": 5, " 5": 5, "123": 123, " 123": 123, "05": 5}
    bytes_of_others = {str(digit): digit for digit in range(10) if digit != 5}
    assert numbers(marked_spaces(*LOOKALIKES)) == digits | bytes_of_others


def test_a_byte_is_a_digit_only_where_no_token_is() -> None:
    made = marked_spaces("5")
    texts, ids = token_texts(made), made.get_vocab()
    assert texts[ids["<0x35>"]] is None
    assert texts[ids["<0x36>"]] == "6"
    assert texts[ids["<0xE2>"]] is None  # the first of several bytes


def test_word_pieces_begin_with_a_space_unless_they_continue() -> None:
    texts = token_texts(word_pieces("5", "##5", "the"))
    assert texts == [None, " 5", "5", " the"]


def test_added_tokens_are_their_text_and_special_tokens_are_none() -> None:
    made = for_transformers(tokenizer())
    size = len(made)
    made.add_tokens(["42", " 7"])
    made.add_special_tokens({"additional_special_tokens": ["8", "<s>"]})
    assert token_texts(made)[size:] == ["42", " 7", None, None][: len(made) - size]
    assert token_texts(made)[made.eos_token_id] is None


def test_a_tokenizer_in_python_has_the_same_texts() -> None:
    transformers = pytest.importorskip("transformers")
    made = transformers.ByT5Tokenizer()
    assert numbers(made) == {str(digit): digit for digit in range(10)}


def test_forms_tell_tokens_of_one_value_apart() -> None:
    found = ValuedTokens.of_texts([" 1", "1", "01", "2", " 2", "  2", "\n2"])
    forms = dict(zip(found.ids.tolist(), found.forms.tolist(), strict=True))
    assert forms[0] == forms[4] and forms[1] == forms[3]
    assert len({forms[token] for token in (0, 1, 2, 5, 6)}) == 5
    assert not ValuedTokens.of_texts(["1", "12", " 3"]).forms.any()


@each("given", [None, 3, {"5": 5}, Tokenizer])
def test_what_is_no_tokenizer_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="tokenizer must be a tokenizer of transformers"):
        token_texts(given)


def test_values_are_small_enough_to_be_squared() -> None:
    found = ValuedTokens.of_texts(["1" * 15, "1" * 17, "0" * 40, "9" * 400])
    assert found.ids.tolist() == [2, 0]


def test_examples() -> None:
    check_examples("encoding.token_texts", "encoding.valued_tokens")
