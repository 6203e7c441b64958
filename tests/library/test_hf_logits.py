"""numtok.hf.NumberLogitsProcessor: whatever a model predicts, ``generate`` writes a number."""

import re
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from numtok.errors import UsageError
from tests import fakemodels
from tests.cases import case, each
from tests.fakepretrained import tokenizer
from tests.faketokenizers import for_transformers, marked_spaces, word_pieces
from tests.messages import Says

transformers = pytest.importorskip("transformers")
hf = pytest.importorskip("numtok.hf")
pytestmark = pytest.mark.integration

one_thread = fakemodels.one_thread

PROMPTS = ["the weight of 120 apples is", "1 and", "is 12.5 kg or"]


def byte_level() -> Any:
    """Return a tokenizer with tokens of several digits, some with spaces, points and signs."""
    return for_transformers(tokenizer("the 12 120 -3.5 of 4,000 and (17)(17)(-12,5).25.25\n" * 9))


def model(words: Any, **settings: Any) -> Any:
    """Return a GPT-2 with random weights and an embedding table larger than the vocabulary."""
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, **settings}
    end = {"bos_token_id": words.eos_token_id, "eos_token_id": words.eos_token_id}
    torch.manual_seed(0)
    made = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=len(words) + 7, **shape, **end)
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.3)
    return made.eval()


def generated(words: Any, processor: Any, **how: Any) -> list[str]:
    """Return the text after each prompt, with special tokens."""
    inputs = words(PROMPTS, return_tensors="pt", padding=True)
    assert (inputs.attention_mask[:, 0] == 0).any()  # padded on the left
    length = processor.prompt_length = inputs.input_ids.shape[1]
    more = {"max_new_tokens": processor.max_new_tokens} | how
    torch.manual_seed(0)
    ids = model(words).generate(**inputs, logits_processor=[processor], **more)
    return [str(text) for text in words.batch_decode(ids[:, length:])]


@each(
    "how",
    [
        {},
        {"do_sample": True, "num_return_sequences": 10},
        {"num_beams": 4, "num_return_sequences": 4},
        {"num_beams": 3, "do_sample": True, "num_return_sequences": 3},
        {"use_cache": False},
    ],
)
@each(
    ("settings", "expression"),
    [
        ({"max_digits": 3, "max_decimals": 2}, r"-?\d{1,3}(\.\d{1,2})?"),
        ({"min_digits": 2, "max_digits": 2, "max_decimals": 0, "signs": ""}, r"\d\d"),
        (
            {"max_digits": 1, "min_decimals": 3, "max_decimals": 3, "percent": True},
            r"-?\d\.\d{3}%?",
        ),
        (
            {"max_digits": 6, "min_digits": 4, "max_decimals": 0, "groups": True, "signs": "+"},
            r"\+?(\d{4,6}|\d{1,3},\d{3})",
        ),
    ],
)
def test_every_row_is_one_number(
    how: dict[str, Any], settings: dict[str, Any], expression: str
) -> None:
    words = byte_level()
    processor = hf.NumberLogitsProcessor(words, prompt_length=0, **settings)
    end = re.escape(words.eos_token)
    for text in generated(words, processor, **how):
        assert re.fullmatch(rf" ?{expression}({end})+", text), text


def test_it_is_the_model_that_chooses() -> None:
    """Scores of allowed tokens are unchanged, and every allowed number is eventually written."""
    words = byte_level()
    processor = hf.NumberLogitsProcessor(
        words, prompt_length=0, max_digits=1, max_decimals=0, signs=""
    )
    found = generated(words, processor, do_sample=True, num_return_sequences=60, temperature=9.0)
    numbers = {text.removesuffix(words.eos_token).strip() for text in found}
    assert {number.replace(words.eos_token, "") for number in numbers} == {*"0123456789"}
    scores = torch.randn(1, len(words))
    processor.prompt_length = 2
    after = processor(torch.tensor([[1, 2]]), scores)
    allowed = after.isfinite()
    assert torch.equal(after[allowed], scores[allowed])
    assert allowed.sum() == sum(
        re.fullmatch(r" ?\d| ", words.decode([token])) is not None for token in range(len(words))
    )


def test_text_goes_on_after_a_stop() -> None:
    words = byte_level()
    processor = hf.NumberLogitsProcessor(
        words,
        prompt_length=0,
        max_digits=2,
        max_decimals=0,
        stop=["\n", " of", 33],
    )
    ends = "|".join([re.escape("\n"), " of", re.escape(words.decode([33]))])
    for text in generated(words, processor, max_new_tokens=12):
        begun = re.match(rf" ?-?\d\d?({ends})", text)
        assert begun is not None and len(text) > begun.end(), text


def test_a_special_token_stops_by_its_name_or_its_id() -> None:
    words = byte_level()
    one, other, default = (
        hf.NumberLogitsProcessor(words, prompt_length=1, stop=stop)
        for stop in (words.eos_token, words.eos_token_id, None)
    )
    [five] = words("5", add_special_tokens=False).input_ids
    size = len(words)
    expected = allowed(default, five, columns=size)
    assert words.eos_token_id in expected
    assert allowed(one, five, columns=size) == allowed(other, five, columns=size) == expected


def rows(*tokens: int) -> Tensor:
    return torch.tensor([[0, *tokens]])


def allowed(processor: Any, *tokens: int, columns: int) -> set[int]:
    scores = processor(rows(*tokens), torch.zeros(1, columns))
    return {*scores[0].isfinite().nonzero()[:, 0].tolist()}


def test_marked_spaces_and_bytes_are_read_as_the_text_they_are() -> None:
    words = marked_spaces(
        "\u2581", "\u25811", "1", "23", "\u00b2", "\u00bd", "5.", "1,", ".5", "</s>"
    )
    ids = words.get_vocab()
    one_digit = {ids[f"<0x{ord(digit):02X}>"] for digit in "023456789"} | {ids["1"]}
    of = hf.NumberLogitsProcessor(
        words, prompt_length=1, max_digits=2, max_decimals=1, signs="", stop="</s>"
    )
    size = len(ids)
    assert allowed(of, columns=size) == one_digit | {
        *(ids[name] for name in ("\u2581", "\u25811", "23", "5."))
    }
    point = {ids["<0x2E>"], ids[".5"], ids["</s>"]}
    assert allowed(of, ids["23"], columns=size) == point
    assert allowed(of, ids["1"], columns=size) == one_digit | point | {ids["5."]}
    assert allowed(of, ids["5."], columns=size) == one_digit
    assert allowed(of, ids["23"], ids["</s>"], columns=size + 3) == {*range(size + 3)}


def test_a_row_that_is_no_number_is_left_alone_beside_others() -> None:
    """Beam search fills up with such rows, whose score is -inf."""
    words = byte_level()
    of = hf.NumberLogitsProcessor(words, prompt_length=1, max_digits=2, max_decimals=0)
    digit, letter = (words.convert_tokens_to_ids(name) for name in ("1", "k"))
    scores = of(torch.tensor([[0, digit], [0, letter]]), torch.zeros(2, len(words)))
    assert scores[0].isinf().any() and not scores[1].isinf().any()
    # There is one number, of one token, and more beams than that.
    words.add_tokens(["7777"])
    one = hf.NumberLogitsProcessor(
        words, prompt_length=0, min_digits=4, max_digits=4, max_decimals=0, signs=""
    )
    found = generated(words, one, num_beams=8)
    assert all(re.fullmatch(r" ?\d{4}", text.replace(words.eos_token, "")) for text in found)


def test_wrong_input_is_refused_by_the_name_of_the_argument(says: Says) -> None:
    words = byte_level()
    no_end: Tokenizer = tokenizer()

    def made(given: Any = words, length: Any = 0, **settings: Any) -> Any:
        return hf.NumberLogitsProcessor(given, prompt_length=length, **settings)

    refused: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("tokenizer must be", "str"), {"given": "gpt2"}),
        (("prompt_length must be an integer", "'3'"), {"length": "3"}),
        (("min_digits and max_digits", "2 and 1"), {"min_digits": 2, "max_digits": 1}),
        (("signs must", "'*'"), {"signs": "*"}),
        (("tokenizer has no EOS token", "Pass stop"), {"given": no_end}),
        (("stop must be", "'kilograms'"), {"stop": "kilograms"}),
        (("stop must be", "1.5"), {"stop": 1.5}),
        (("stop must be", "[2]"), {"stop": [[2]]}),
        (("stop '.' may also continue the number", "max_decimals=0"), {"stop": "."}),
        (("tokenizer cannot write a number",), {"given": word_pieces("kg"), "stop": "kg"}),
    ]
    for parts, settings in refused:
        with case(settings), says.raises(UsageError, *parts):
            made(**settings)
    scores = torch.zeros(1, len(words))
    with says.raises(UsageError, "prompt_length is 3", "2 tokens"):
        made(length=3)(rows(1), scores)
    with says.raises(UsageError, "prompt_length is -1"):
        made(length=-1)(rows(1), scores)
    with says.raises(UsageError, "prompt_length=1", "not a number"):
        made(length=1)(rows(words.convert_tokens_to_ids("k")), scores)
    with says.raises(UsageError, "tokenizer has tokens up to", "predicts 20"):
        made()(rows(), scores[:, :20])
