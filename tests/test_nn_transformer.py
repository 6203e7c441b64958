"""The trunk: what each state may depend on, the cache, positions, sizes and operations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from numtok.errors import UsageError
from numtok.nn.transformer import POSITIONS, Cache, Shape, Transformer
from tests import fakemodels

one_thread = fakemodels.one_thread

SHAPE = Shape(layers=2, heads=2, width=16, context=32)


def trunk(causal: bool, positions: str = "learned", dropout: float = 0.0) -> Transformer:
    """Random weights, large enough that every token matters to every state it reaches."""
    torch.manual_seed(0)
    made = Transformer(Shape(2, 2, 16, 32, positions, dropout), causal)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.3)
    return made.eval()


def embedded(*size: int, seed: int = 1) -> Tensor:
    return torch.randn(*size, 16, generator=torch.Generator().manual_seed(seed))


def real(lengths: list[int], longest: int) -> Tensor:
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


@torch.no_grad()
def states(
    of: Transformer,
    x_BLD: Tensor,
    real_BL: Tensor | None = None,
    asked_BQ: Tensor | None = None,
) -> Tensor:
    found: Tensor = of(x_BLD, real_BL, asked_BQ)
    return found


# --- which states ------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", POSITIONS)
def test_states_asked_for_are_those_of_all(positions: str, causal: bool) -> None:
    of, x, lengths = trunk(causal, positions), embedded(3, 9), [9, 4, 1]
    asked = torch.tensor([[8, 0, 3], [2, 3, 1], [0, 0, 0]])  # in any order, and repeated
    all_, some = states(of, x, real(lengths, 9)), states(of, x, real(lengths, 9), asked)
    expected = all_[torch.arange(3)[:, None], asked]
    torch.testing.assert_close(some, expected, rtol=0, atol=1e-6)


# --- what a state depends on -------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("changed", [0, 3, 8])
def test_a_causal_state_depends_on_nothing_that_comes_later(positions: str, changed: int) -> None:
    of, x = trunk(True, positions), embedded(2, 9)
    other = x.clone()
    other[:, changed] *= -1
    before, after = states(of, x), states(of, other)
    assert torch.equal(before[:, :changed], after[:, :changed])
    assert not torch.isclose(before[:, changed:], after[:, changed:]).all(dim=-1).any()


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("changed", [0, 3, 8])
def test_a_state_that_looks_both_ways_depends_on_every_token(positions: str, changed: int) -> None:
    of, x = trunk(False, positions), embedded(2, 9)
    other = x.clone()
    other[:, changed] *= -1
    assert not torch.isclose(states(of, x), states(of, other)).all(dim=-1).any()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", POSITIONS)
def test_pads_and_other_rows_change_nothing(positions: str, causal: bool) -> None:
    of, x, lengths = trunk(causal, positions), embedded(4, 11), [11, 3, 7, 1]
    mask = real(lengths, 11)
    together = states(of, x, mask)
    other = states(of, torch.where(mask[:, :, None], x, embedded(4, 11, seed=2)), mask)
    for row, length in enumerate(lengths):
        alone = states(of, x[row : row + 1, :length])[0]
        torch.testing.assert_close(together[row, :length], alone, rtol=0, atol=1e-6)
        torch.testing.assert_close(other[row, :length], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_order_of_tokens_matters(positions: str) -> None:
    of, x = trunk(False, positions), embedded(1, 6)
    assert not torch.isclose(states(of, x.flip(1)), states(of, x).flip(1)).all(dim=-1).any()


@pytest.mark.parametrize("positions", POSITIONS)
def test_bfloat16_is_for_matrix_products_alone(
    positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attention in bfloat16 takes many times as long on a CPU, so there it is not."""
    of, x = trunk(False, positions), embedded(3, 7)
    seen: list[torch.dtype] = []
    attend = F.scaled_dot_product_attention

    def watched(*given: Any, **options: Any) -> Tensor:
        seen.extend(tensor.dtype for tensor in given[:3])
        return attend(*given, **options)

    exact = states(of, x)
    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = states(of, x)
    assert seen == [torch.float32] * 3 * SHAPE.layers
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, atol=0.03, rtol=0.03)


def test_dropout_is_of_training_only() -> None:
    of, x = trunk(True, dropout=0.5), embedded(1, 6)
    assert torch.equal(states(of, x), states(of, x))
    assert torch.equal(states(of, x), states(trunk(True), x))
    assert not torch.equal(states(of.train(), x), states(of, x))


# --- the cache ---------------------------------------------------------------------------------


@torch.no_grad()
def in_pieces(of: Transformer, x_BLD: Tensor, counts: list[list[int]], room: int) -> Tensor:
    """The same states, read ``counts`` tokens of each row at a time, with noise for pads."""
    cache = Cache(of.shape, len(x_BLD), room, x_BLD)
    found = torch.full_like(x_BLD, torch.nan)
    done = [0] * len(x_BLD)
    for count in counts:
        piece = embedded(len(x_BLD), max(1, *count), seed=99)
        for row, many in enumerate(count):
            piece[row, :many] = x_BLD[row, done[row] : done[row] + many]
        new = of.extend(piece, cache, torch.tensor(count))
        for row, many in enumerate(count):
            found[row, done[row] : done[row] + many] = new[row, :many]
            done[row] += many
    assert cache.length.tolist() == done
    return found


@pytest.mark.parametrize("positions", POSITIONS)
@given(st.data())
def test_reading_in_pieces_with_a_cache_gives_the_same_states(
    positions: str, data: st.DataObject
) -> None:
    counts = data.draw(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1))
    of, lengths = trunk(True, positions), np.sum(counts, axis=0).tolist()
    room = max(1, *lengths) + 4
    assume(room <= of.shape.context)
    x = embedded(3, room)
    whole, pieces = states(of, x), in_pieces(of, x, counts, room)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(
            pieces[row, :length], whole[row, :length], rtol=0, atol=1e-5, msg=f"row {row}"
        )


@pytest.mark.parametrize("positions", POSITIONS)
def test_pads_behind_the_last_token_of_a_full_row_change_nothing(positions: str) -> None:
    of, x = trunk(True, positions), embedded(2, 32)
    pieces = in_pieces(of, x, [[31, 1], [1, 4], [0, 27]], room=32)
    torch.testing.assert_close(pieces, states(of, x), rtol=0, atol=1e-5)


def test_a_cache_has_room_for_the_tokens_it_was_made_for() -> None:
    assert Cache(SHAPE, 3, 7, torch.zeros(1)).tokens == 7


# --- positions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_rotary_attention_sees_differences_of_positions_only(positions: str) -> None:
    """Hidden tokens before a row move it to later positions."""
    of, x = trunk(False, positions), embedded(1, 6)
    moved = torch.cat([embedded(1, 5, seed=2), x], dim=1)
    mask = torch.tensor([[False] * 5 + [True] * 6])
    same = torch.allclose(states(of, moved, mask)[:, 5:], states(of, x), rtol=0, atol=1e-5)
    assert same == (positions == "rotary")


def test_sinusoids_are_those_of_the_paper_at_the_size_of_learned_positions() -> None:
    table = trunk(True, "sinusoidal").positions
    assert isinstance(table, Tensor)
    expected = [
        [
            0.02 * math.sqrt(2) * f(position / 10_000 ** (2 * k / 16))
            for k in range(8)
            for f in (math.sin, math.cos)
        ]
        for position in range(32)
    ]
    torch.testing.assert_close(table, torch.tensor(expected), rtol=0, atol=1e-6)
    torch.testing.assert_close(table.square().mean(dim=1), torch.full((32,), 0.02**2))


@pytest.mark.parametrize("positions", POSITIONS)
def test_positions_are_parameters_only_where_they_are_learnt(positions: str) -> None:
    of = trunk(True, positions)
    assert ("positions" in dict(of.named_parameters())) == (positions == "learned")
    assert set(of.state_dict()) == set(dict(of.named_parameters()))


# --- sizes -------------------------------------------------------------------------------------


def test_weights_begin_as_those_of_gpt2() -> None:
    torch.manual_seed(0)
    of = Transformer(Shape(layers=8, heads=4, width=128, context=64), causal=True)
    deviations = {
        name: float(parameter.detach().std())
        for name, parameter in of.named_parameters()
        if parameter.dim() > 1
    }
    for name, deviation in deviations.items():
        adds = name.endswith(("out.weight", "down.weight"))  # to the residual stream, twice a block
        assert deviation == pytest.approx(0.02 / math.sqrt(16) if adds else 0.02, rel=0.05)
    assert len(deviations) == 8 * 4 + 1


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (3, 7), (2, 32)])
@pytest.mark.parametrize("causal", [False, True])
def test_operations_are_those_that_torch_counts(causal: bool, rows: int, length: int) -> None:
    of = trunk(causal)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        states(of, embedded(rows, length))
    assert of.flops(rows, length, length) == counter.get_total_flops()


@pytest.mark.parametrize("causal", [False, True])
def test_operations_of_some_states_are_those_that_torch_counts(causal: bool) -> None:
    of, asked = trunk(causal), torch.tensor([[2, 0], [5, 6], [3, 4]])
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        states(of, embedded(3, 7), asked_BQ=asked)
    assert of.flops(3, 7, 2) == counter.get_total_flops() < of.flops(3, 7, 7)


def shape(**settings: object) -> Shape:
    return Shape(**{**vars(SHAPE), **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers=0 is not possible; at least 1"),
        ({"heads": 0}, "heads=0 is not possible; at least 1"),
        ({"width": -4}, "width=-4 is not possible; at least 1"),
        ({"context": 0}, "context=0 is not possible; at least 1"),
        ({"width": 18}, "width=18 is not possible with 2 heads; it is a multiple of 4"),
        (
            {"positions": "alibi"},
            "positions='alibi' is not possible; allowed are learned, sinusoidal, rotary",
        ),
        ({"dropout": 1.0}, "dropout=1.0 is not possible; it is 0 or more, below 1"),
        ({"dropout": -0.1}, "dropout=-0.1 is not possible; it is 0 or more, below 1"),
        ({"dropout": math.nan}, "dropout=nan is not possible; it is 0 or more, below 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as found:
        shape(**settings)
    assert str(found.value) == message
    assert found.value.exit_code == 2
