"""The embedder ``soft-bins``: the two neighboring bin edges, weighted by how near they are."""

import numpy as np
import torch

from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS, FeatureEmbedder, FeatureModule
from numtok.models.number_heads import lacks_digits
from numtok.models.vocabulary import Vocabulary
from tests.cases import each
from tests.fakemodels import codec
from tests.messages import Says


@each(
    ("value", "expected"),
    [
        (4.5, [0, 0, 0.75, 0.25, 0]),  # edges 0, 2, 4, 6, 8: a quarter of the way from 4 to 6
        (0.5, [0.75, 0.25, 0, 0, 0]),
        (6, [0, 0, 0, 1, 0]),
        (8, [0, 0, 0, 0, 1]),
        (-3, [1, 0, 0, 0, 0]),
        (np.inf, [0, 0, 0, 0, 1]),
    ],
)
def test_a_number_is_between_two_edges(value: float, expected: list[float]) -> None:
    embedder = EMBEDDERS.build("soft-bins:4,range=0..8")
    assert isinstance(embedder, FeatureEmbedder)
    [features] = embedder.features(np.array([value]))
    assert features.tolist() == expected


def test_the_vector_is_that_of_the_token_and_the_interpolated_one() -> None:
    vocabulary = Vocabulary.of(codec("xval"))
    module = EMBEDDERS.build("soft-bins:4,range=0..8").build(vocabulary, 8)
    assert isinstance(module, FeatureModule)
    tokens = torch.tensor([[int(vocabulary.numbers[0]), vocabulary.first_of_text]])
    number, text = module(tokens, torch.tensor([[4.5, 1.0]]))[0]
    own, edges = module.table(tokens)[0], module.linear.weight
    torch.testing.assert_close(number, own[0] + 0.75 * edges[:, 2] + 0.25 * edges[:, 3])
    assert torch.equal(text, own[1])


def test_normalized_numbers_do() -> None:
    encoding = FittedNormalizer(NORMALIZERS.build("signed-log"), {})
    assert not lacks_digits(EMBEDDERS.build("soft-bins"), encoding)
    assert lacks_digits(EMBEDDERS.build("fone"), encoding)


@each("spec", ["soft-bins,range=2..2", "soft-bins,range=0..inf"])
def test_a_range_has_a_width(says: Says, spec: str) -> None:
    with says.raises(UsageError, "soft-bins: range must have a finite width (got "):
        EMBEDDERS.build(spec)


def test_tokens_of_digits_have_no_value_to_embed(says: Says) -> None:
    with says.raises(UsageError, "--embedder soft-bins", "--scheme xval"):
        EMBEDDERS.build("soft-bins").build(Vocabulary.of(codec("digits")), 8)
