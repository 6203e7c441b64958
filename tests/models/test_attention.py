"""The transformer: visible tokens, the cache, positions, sizes, and attention in parts."""

import math
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from numtok.contracts import results
from numtok.errors import UsageError
from numtok.models import attention
from numtok.models.attention import POSITIONS, Cache, Shape, Transformer
from numtok.models.trunks import _contract as contract
from numtok.models.trunks.base import TRUNKS
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import embedded, real, states
from tests.messages import Says

one_thread = fakemodels.one_thread

SHAPE = Shape(layers=2, heads=2, width=16, context=32)


def trunk(causal: bool, positions: str = "learned", dropout: float = 0.0) -> Transformer:
    """Return random weights, large enough that every token matters to every state it reaches."""
    torch.manual_seed(0)
    made = Transformer(
        Shape(layers=2, heads=2, width=16, context=32, positions=positions, dropout=dropout), causal
    )
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.3)
    return made.eval()


# --- what a state depends on -------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_every_kind_of_positions_keeps_the_contract_of_trunks(positions: str) -> None:
    of = TRUNKS.build(f"transformer,layers=2,heads=2,width=16,positions={positions}")
    assert [one.message for one in results(contract.CHECKS, of, 0) if not one.passed] == []


@each("positions", POSITIONS)
@each("changed", [0, 3, 8])
@each("causal", [True, False])
def test_a_state_depends_on_every_token_in_sight(
    causal: bool, positions: str, changed: int
) -> None:
    of, x = trunk(causal, positions), embedded(2, 9)
    other = x.clone()
    other[:, changed] *= -1
    before, after = states(of, x), states(of, other)
    hidden = changed if causal else 0
    assert torch.equal(before[:, :hidden], after[:, :hidden])
    assert not torch.isclose(before[:, hidden:], after[:, hidden:]).all(dim=-1).any()


@each("positions", POSITIONS)
def test_the_order_of_tokens_matters_where_positions_are_told(positions: str) -> None:
    of, x = trunk(False, positions), embedded(1, 6)
    same = torch.isclose(states(of, x.flip(1)), states(of, x).flip(1), atol=1e-6).all(dim=-1)
    assert same.tolist() == [[positions == "none"] * 6]


@pytest.mark.parametrize("positions", POSITIONS)
def test_bfloat16_is_for_matrix_products_alone(
    positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bfloat16, attention takes many times as long on a CPU, so it stays in float32."""
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
def prompted(of: Transformer, x_BLD: Tensor, lengths: list[int], cache: Cache) -> Tensor:
    """Return the states of the first tokens of rows, which the cache then holds."""
    found = of.extend(x_BLD[:, : max(lengths)], cache)
    cache.rewind(torch.tensor(lengths), max(lengths))
    return found


@torch.no_grad()
def continued(of: Transformer, x_BLD: Tensor, lengths: list[int], cache: Cache) -> Tensor:
    """Return the state of the token after each row's ``lengths``."""
    at = torch.tensor(lengths)
    found: Tensor = of.extend(x_BLD[torch.arange(len(at)), at][:, None], cache)[:, 0]
    return found


@settings(max_examples=10)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 6))
@each("positions", POSITIONS)
def test_reading_token_by_token_with_a_cache_gives_the_same_states(
    positions: str, lengths: list[int], further: int
) -> None:
    of, room = trunk(True, positions), max(lengths) + further
    x = embedded(len(lengths), room + 1)
    cache, whole = Cache(of.shape, len(lengths), room, x), states(of, x)
    found = prompted(of, x, lengths, cache)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(found[row, :length], whole[row, :length], rtol=0, atol=1e-5)
    for step in range(further):
        at = [length + step for length in lengths]
        expected = whole[torch.arange(len(at)), torch.tensor(at)]
        torch.testing.assert_close(continued(of, x, at, cache), expected, rtol=0, atol=1e-5)
    assert cache.length.tolist() == [length + further for length in lengths]
    assert cache.longest == room


@each("positions", POSITIONS)
def test_first_states_that_are_asked_for_are_those_of_all(positions: str) -> None:
    of, x, asked = trunk(True, positions), embedded(3, 9), torch.tensor([[8, 0], [2, 3], [0, 0]])
    with torch.no_grad():
        some = of.extend(x, Cache(of.shape, 3, 9, x), asked)
    expected = states(of, x)[torch.arange(3)[:, None], asked]
    torch.testing.assert_close(some, expected, rtol=0, atol=1e-6)


def test_a_cache_can_be_rewound_and_what_stood_behind_is_written_over() -> None:
    of, x, other = trunk(True), embedded(2, 9), embedded(2, 9, seed=2)
    cache = Cache(of.shape, 2, 9, x)
    prompted(of, x, [7, 7], cache)
    once = torch.cat([x[:, :3], other[:, 3:]], dim=1)
    cache.rewind(torch.tensor([3, 3]), 3)
    for at in (3, 4, 5):
        expected = states(of, once)[:, at]
        found = continued(of, once, [at, at], cache)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_rows_taken_from_a_cache_go_on_by_themselves() -> None:
    """Rows can be taken twice or not at all, in another order, with room for one more token."""
    of, x, lengths, rows = trunk(True), embedded(3, 8), [5, 2, 7], [2, 0, 2]
    cache = Cache(of.shape, 3, 7, x)
    prompted(of, x, lengths, cache)
    taken = cache.take(torch.tensor(rows), 8)
    assert (taken.rows, taken.tokens, taken.length.tolist()) == (3, 8, [7, 5, 7])
    for row in range(3):  # later changes to the first cache have no effect
        cache.rewind(torch.tensor([1, 1, 1]), 1)
        continued(of, embedded(3, 8, seed=row + 5), [1, 1, 1], cache)
    whole = states(of, x)
    found = continued(of, x[rows], [7, 5, 7], taken)
    expected = torch.stack([whole[2, 7], whole[0, 5], whole[2, 7]])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_memory_of_a_cache_serves_the_next_one_where_it_is_enough() -> None:
    of, x = trunk(True), embedded(4, 12)
    large = Cache(of.shape, 4, 12, x)
    prompted(of, x, [12, 12, 12, 12], large)

    def memory(cache: Cache) -> int:
        """Return the address of the first layer's keys."""
        token = torch.zeros(cache.rows, 2, 1, 8)
        return cache.put(0, token, token)[0].data_ptr()

    place = memory(large)
    small = large.resized(3, 9)
    assert (small.rows, small.tokens, small.longest) == (3, 9, 0)
    found = prompted(of, x[:3], [9, 9, 9], small)
    torch.testing.assert_close(found, states(of, x[:3, :9]), rtol=0, atol=1e-5)
    assert memory(small) == place
    larger = small.resized(4, 13)
    assert (larger.rows, larger.tokens, larger.longest) == (4, 13, 0)
    prompted(of, x, [12, 12, 12, 12], larger)
    assert memory(larger) != place


def test_a_token_behind_a_full_cache_changes_no_other_row() -> None:
    of, x, lengths = trunk(True), embedded(2, 9), [8, 3]
    cache = Cache(of.shape, 2, 8, x)
    prompted(of, x, lengths, cache)
    for step in range(3):
        at = torch.tensor([8, 3 + step])
        with torch.no_grad():
            found = of.extend(x[torch.arange(2), at][:, None], cache)[1, 0]
        torch.testing.assert_close(found, states(of, x)[1, 3 + step], rtol=0, atol=1e-5)


@each("causal", [False, True])
@each("positions", POSITIONS)
def test_states_asked_for_are_those_of_all(positions: str, causal: bool) -> None:
    of, x, lengths = trunk(causal, positions), embedded(3, 9), [9, 4, 1]
    asked = torch.tensor([[8, 0, 3], [2, 3, 1], [0, 0, 0]])  # in any order, and repeated
    all_, some = states(of, x, real(lengths, 9)), states(of, x, real(lengths, 9), asked)
    expected = all_[torch.arange(3)[:, None], asked]
    torch.testing.assert_close(some, expected, rtol=0, atol=1e-6)


@each("causal", [False, True])
@each("positions", POSITIONS)
def test_pads_and_other_rows_change_nothing(positions: str, causal: bool) -> None:
    of, x, lengths = trunk(causal, positions), embedded(4, 11), [11, 3, 7, 1]
    mask = real(lengths, 11)
    together = states(of, x, mask)
    other = states(of, torch.where(mask[:, :, None], x, embedded(4, 11, seed=2)), mask)
    for row, length in enumerate(lengths):
        alone = states(of, x[row : row + 1, :length])[0]
        torch.testing.assert_close(together[row, :length], alone, rtol=0, atol=3e-6)
        torch.testing.assert_close(other[row, :length], alone, rtol=0, atol=3e-6)


# --- positions ---------------------------------------------------------------------------------


@each("positions", POSITIONS)
def test_attention_sees_where_tokens_stand_only_if_positions_are_added(positions: str) -> None:
    """Masked tokens before a row move it to later positions."""
    of, x = trunk(False, positions), embedded(1, 6)
    moved = torch.cat([embedded(1, 5, seed=2), x], dim=1)
    mask = torch.tensor([[False] * 5 + [True] * 6])
    same = torch.allclose(states(of, moved, mask)[:, 5:], states(of, x), rtol=0, atol=1e-5)
    assert same == (positions in ("rotary", "none"))


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


@each("positions", POSITIONS)
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
        adds = name.endswith(("out.weight", "down.weight"))  # to the residual, twice per block
        assert deviation == pytest.approx(0.02 / math.sqrt(16) if adds else 0.02, rel=0.05)
    assert len(deviations) == 8 * 4 + 1


def shape(**settings: object) -> Shape:
    return Shape(**{**vars(SHAPE), **settings})


@each(
    ("settings", "parts"),
    [
        ({"layers": 0}, ("layers", "at least 1", "got 0")),
        ({"heads": 0}, ("heads", "at least 1", "got 0")),
        ({"width": -4}, ("width", "at least 1", "got -4")),
        ({"context": -1}, ("context", "at least 0", "got -1")),
        ({"width": 18}, ("width", "2 heads", "multiple of 4", "got 18")),
        ({"positions": "alibi"}, ("positions", "'alibi'", "learned, sinusoidal, rotary, none")),
        ({"dropout": 1.0}, ("dropout", "below 1", "got 1.0")),
        ({"dropout": -0.1}, ("dropout", "at least 0", "got -0.1")),
        ({"dropout": math.nan}, ("dropout", "got nan")),
    ],
)
def test_a_shape_that_cannot_be_is_refused(
    settings: dict[str, object], parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        shape(**settings)


@each(
    ("causal", "masked"), [(True, "nothing"), (False, "nothing"), (False, "keys"), (False, "pairs")]
)
@each("dropout", [0.0, 0.4])
def test_attention_in_parts_is_that_of_all_at_once_and_has_its_gradient(
    monkeypatch: pytest.MonkeyPatch, causal: bool, masked: str, dropout: float
) -> None:
    """With dropout, attention weights are read by passing the identity matrix as values."""
    monkeypatch.setattr(attention, "_PART", 80)  # two queries per part, one in the last
    rows, heads, length = 2, 2, 9
    q, k, v = (torch.randn(rows, heads, length, length, requires_grad=True) for _ in range(3))
    mask = None
    if masked == "keys":
        mask = torch.arange(length) < torch.tensor([9, 5])[:, None, None, None]
    elif masked == "pairs":
        mask = torch.rand(rows, 1, length, length) < 0.7
        mask[..., 0] = True

    def attended(values: Tensor) -> Tensor:
        torch.manual_seed(5)
        found = attention._InParts.apply(  # type: ignore[no-untyped-call]
            q, k, values, mask, causal, dropout
        )
        return cast(Tensor, found)

    weights = attended(torch.eye(length).expand(rows, heads, -1, -1))
    whole = F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal)
    if dropout:
        kept = weights != 0
        plain = F.scaled_dot_product_attention(
            q, k, torch.eye(length).expand_as(weights), mask, 0.0, causal
        )
        torch.testing.assert_close(weights, torch.where(kept, plain / (1 - dropout), 0.0))
        assert 0.2 < 1 - kept.sum() / (plain != 0).sum() < 0.6
    else:
        torch.testing.assert_close(weights @ v, whole)
    out, direction = attended(v), torch.randn(rows, heads, length, length)
    torch.testing.assert_close(out, weights @ v)
    expected = torch.autograd.grad((weights @ v * direction).sum(), (q, k, v))
    torch.testing.assert_close(torch.autograd.grad((out * direction).sum(), (q, k, v)), expected)


def test_a_long_row_with_dropout_is_learnt_from_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(layers=2, heads=2, width=8, context=32, dropout=0.2)
    trunk, x = Transformer(shape, causal=True), torch.randn(3, 20, 8)
    asked: list[int] = []
    parts = attention._parts

    def counted(q: Tensor, *rest: Any) -> Any:
        asked.append(q.shape[2])
        return parts(q, *rest)

    monkeypatch.setattr(attention, "_parts", counted)
    trunk(x, None)
    assert not asked
    monkeypatch.setattr(attention, "_MANY", 3 * 2 * 20 * 20 - 1)
    trunk(x, None).sum().backward()
    assert asked == [20] * 4  # forward and backward, in each of two layers
    trunk.eval()(x, None)
    with torch.no_grad():
        trunk.train()(x, None)
    assert asked == [20] * 4
