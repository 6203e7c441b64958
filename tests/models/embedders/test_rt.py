"""The scheme ``rt`` and its embedder: digits by decimal place, with fixed numerical encodings."""

import pytest
import torch

from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.vocabulary import Vocabulary
from tests.cases import each
from tests.encoding.schemes.test_digits import read, written
from tests.fakemodels import codec
from tests.messages import Says


@each(
    ("literal", "tokens"),
    [
        ("12", "_1_1_ _2_0_"),
        ("-1.5e-12", "- _1_0_ . _5_-1_ e - 1 2"),
        ("1,234,567", "_1_6_ , _2_5_ _3_4_ _4_3_ , _5_2_ _6_1_ _7_0_"),
        (".25%", ". _2_-1_ _5_-2_ %"),
        ("007", "_0_2_ _0_1_ _7_0_"),
        ("12345678", "1 2 3 4 5 6 7 8"),
        ("1.2345", "1 . 2 3 4 5"),
    ],
)
def test_digits_have_the_place_where_they_are_written(literal: str, tokens: str) -> None:
    spec = "rt,whole=7,decimals=3"
    assert written(spec, "9", literal, "nan", "88")[1] == tokens
    assert read(spec, tokens) == ("NONE", literal)


@each(
    "tokens",
    ["_1_1_", "_1_2_ _2_0_", "_1_0_ _2_0_", "_1_0_ . _5_-2_", "_1_0_ . 5", "1 _2_0_", ". _5_0_",
     "_1_3_ , _2_2_ _3_1_", "_1_4_ , _2_3_ _3_2_ _4_1_ _5_0_",
     "_1_6_ , _2_5_ _3_4_ _4_3_ _5_2_ _6_1_ _7_0_"],
)  # fmt: skip
def test_places_that_do_not_descend_to_the_units_are_no_number(tokens: str) -> None:
    assert read("rt,whole=7", tokens)[0] == "MALFORMED"


def test_places_are_those_of_the_data() -> None:
    suited = SCHEMES.build("rt").suited(1234.5, 2)
    assert {name[3:-1] for name in suited.vocabulary() if name[0] == "_"} == {
        "3", "2", "1", "0", "-1", "-2",
    }  # fmt: skip


def encoding(spec: str, token: str, scheme: str = "rt,whole=2,decimals=1") -> list[float]:
    """Return the encoding added to the vector of a token, at width 6."""
    vocabulary = Vocabulary.of(codec(scheme))
    module = EMBEDDERS.build(spec).build(vocabulary, 6)
    tokens = torch.tensor([[vocabulary.first + vocabulary.names.index(token)]])
    added = module(tokens, torch.ones(1, 1)) - module.get_parameter("table.weight")[tokens]
    vector: list[float] = added.detach().flatten().tolist()
    return vector


@each(
    ("spec", "token", "expected"),
    [
        ("rt,largest=1", "_3_-1_", [3, -3, 1, -1, 0.6, -0.6]),
        ("rt:100", "_6_1_", [6, -6, 2, -2, 1.2, -1.2]),
        ("rt", "_9_1_", [10, -10, 10 / 3, -10 / 3, 2, -2]),  # 90, the largest value of a token
        ("rt", "_0_0_", [0] * 6),
        ("rt", "-", [0] * 6),
    ],
)
def test_a_digit_is_encoded_by_its_value(spec: str, token: str, expected: list[float]) -> None:
    assert encoding(spec, token) == pytest.approx(expected, abs=1e-6)


def test_other_schemes_have_no_digits_with_places(says: Says) -> None:
    with says.raises(UsageError, "--embedder rt", "--scheme rt"):
        encoding("rt", "-", "digits")
