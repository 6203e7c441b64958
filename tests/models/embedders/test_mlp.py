"""The embedder ``mlp``: a network of the value, rounded down to a bin if there are bins."""

import numpy as np
import torch

from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS, FeatureEmbedder, FeatureModule
from numtok.models.vocabulary import Vocabulary
from tests.cases import each
from tests.fakemodels import codec
from tests.messages import Says


def _built(spec: str, width: int = 8) -> tuple[FeatureEmbedder, FeatureModule, Vocabulary]:
    embedder = EMBEDDERS.build(spec)
    vocabulary = Vocabulary.of(codec("xval"))
    module = embedder.build(vocabulary, width)
    assert isinstance(embedder, FeatureEmbedder)
    assert isinstance(module, FeatureModule)
    return embedder, module, vocabulary


@each(
    ("spec", "value", "expected"),
    [
        ("mlp:4,range=0..8", 4.5, 4),
        ("mlp:4,range=0..8", 3.99, 2),
        ("mlp:4,range=0..8", 8, 6),  # the last bin is [6, 8]
        ("mlp:4,range=0..8", -3, 0),
        ("mlp:4,range=0..8", np.inf, 6),
        ("mlp:10,range=0..1", 0.37, 0.3),
        ("mlp:10,range=0..1", 0.3, 0.3),
        ("mlp", 4.5, 4.5),
        ("mlp", -1e300, -1e15),
    ],
)
def test_bins_round_down(spec: str, value: float, expected: float) -> None:
    embedder, _, _ = _built(spec)
    [[feature]] = embedder.features(np.array([value]))
    assert feature == np.float32(expected)


def test_the_network_replaces_the_vector_of_the_number() -> None:
    _, module, vocabulary = _built("mlp", width=2)
    with torch.no_grad():
        for name, values in (
            ("network.0.weight", [[2.0], [-1.0]]),
            ("network.0.bias", [0.5, 1.0]),
            ("network.2.weight", [[1.0, 10.0], [-1.0, 4.0]]),
            ("network.2.bias", [0.25, 0.0]),
        ):
            module.get_parameter(name).copy_(torch.tensor(values))
    tokens = torch.tensor([[int(vocabulary.numbers[0]), vocabulary.first_of_text]])
    number, text = module(tokens, torch.tensor([[3.0, 1.0]]))[0]
    # relu(2 x + 0.5) = 6.5 and relu(-x + 1) = 0 for x = 3
    assert number.tolist() == [6.75, -6.5]
    assert torch.equal(text, module.table(tokens)[0, 1])


def test_the_vector_of_one_starts_as_long_as_that_of_a_token() -> None:
    torch.manual_seed(0)
    embedder, module, vocabulary = _built("mlp", width=256)
    tokens, ones = torch.tensor([[int(vocabulary.numbers[0])]]), torch.ones(1, 1)
    first = module(tokens, ones).norm() / module.table.weight.norm(dim=1).mean()
    assert 0.5 < first < 2
    embedder.rescale(module, 3)
    again = module(tokens, ones).norm() / module.table.weight.norm(dim=1).mean()
    torch.testing.assert_close(again, 3 * first)


@each("spec", ["mlp,range=2..2", "mlp:4,range=0..inf"])
def test_a_range_has_a_width(says: Says, spec: str) -> None:
    with says.raises(UsageError, "mlp: range must have a finite width (got "):
        EMBEDDERS.build(spec)
