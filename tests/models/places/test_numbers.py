"""Digit positions: of tokens in the papers' examples, and their random offsets in training."""

import numpy as np
import pytest

from numtok.errors import UsageError
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.places.base import PLACES, PlaceTable
from numtok.models.vocabulary import Vocabulary
from numtok.training.examples import SplitExamples
from tests.cases import case, each
from tests.fakemodels import batch, codec, model, samples


def numbers(spec: str, text: str, share: float = 0.0) -> list[int]:
    """Return the digit position of each character of a text; every character is a token."""
    table = PlaceTable(PLACES.build(spec), Vocabulary.of(codec("digits")), 4)
    tokens, shares = batch("digits", [text]).tokens, np.full((1, 2), share)
    return [int(one) for one in table.numbers(tokens, shares=shares)[0]]


@each(
    ("spec", "text", "expected"),
    [
        ("abacus", "12+345=", [1, 2, 0, 1, 2, 3, 0]),
        ("abacus", "21+543=753", [1, 2, 0, 1, 2, 3, 0, 1, 2, 3]),
        ("abacus", "-1.25 7", [0, 1, 0, 1, 2, 0, 1]),
        ("coupling,operands=2,pad=3", "012+345=7530", [4, 3, 2, 1, 4, 3, 2, 1, 2, 3, 4, 5]),
        ("coupling", "210+543=7530", [2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 5]),
    ],
)
def test_tokens_are_numbered_as_in_the_papers(spec: str, text: str, expected: list[int]) -> None:
    assert numbers(spec, text) == expected


def test_training_moves_what_is_numbered() -> None:
    assert numbers("abacus", "12+345=", share=0.07) == [8, 9, 0, 8, 9, 10, 0]
    assert numbers("abacus,most=9", "12+345=", share=0.07) == [8, 9, 0, 8, 9, 9, 0]
    split = samples("digits", ["12+3=15", "1+1=2"], answers=[5, 4])
    rows = SplitExamples(split, codec("digits"), OBJECTIVES.build("ar:answer"), 2, seed=0)
    moves = np.array([rows.training_batch(step).moved_places for step in range(20)])
    assert moves.shape == (20, 2, 2) and ((moves >= 0) & (moves < 1)).all()
    assert (moves[:, 0, 0] == moves[:, 1, 0]).all() and len(set(moves[:, 0, 0])) == 20
    assert len(set(moves[:, :, 1].ravel())) == 40
    np.testing.assert_array_equal(rows.training_batch(3).moved_places, moves[3])
    assert all(one.moved_places is None for one in rows.validation_batches())
    for part, expected in zip(rows.training_batch(3).parts(2), moves[3], strict=True):
        np.testing.assert_array_equal(part.moved_places, expected[None])


def test_coupling_moves_each_row_and_abacus_the_batch() -> None:
    vocabulary, shares = Vocabulary.of(codec("digits")), np.array([[0.5, 0.0], [0.5, 0.03]])
    tokens = batch("digits", ["12", "12"]).tokens
    for places, expected in (("abacus", [[51, 52], [51, 52]]), ("coupling", [[2, 3], [5, 6]])):
        table = PlaceTable(PLACES.build(places), vocabulary, 4)
        assert table.numbers(tokens, shares=shares)[:, :2].tolist() == expected


def test_places_are_told_to_a_model() -> None:
    """A token's vector depends on its digit position; position 0 adds nothing."""
    for places in PLACES:
        with case(places):
            of = model("digits", "ar", places=places, size="nano,layers=1,heads=2,width=16")
            seen = OBJECTIVES.build("ar").example(
                batch("digits", ["77 a"]), np.random.default_rng(0)
            )
            given = of.given(seen)
            made = of._embedded(given.tokens, given.values, given.of_host)[0]
            plain = of.embedder(given.tokens, given.values)[0]
            added = (made - plain).detach()
            assert not np.allclose(added[1], added[2])
            assert not added[0].any()


def test_data_without_digits_are_refused() -> None:
    with pytest.raises(UsageError, match="digits,reverse=yes"):
        model("xval", "ar", places="abacus")
