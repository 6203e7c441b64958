"""Reading numbers off a model: against plain loops that recompute everything at each token."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from numtok.codec import Codec
from numtok.grammar import Grammar, Support
from numtok.nn.batches import Batch
from numtok.nn.decoding import (
    LONGEST,
    Autoregressive,
    LeftToRight,
    Parallel,
    Reader,
    Reading,
    Steps,
)
from numtok.nn.model import Model
from numtok.nn.objectives.base import END, MASK
from numtok.schemes.base import Failure
from tests import fakemodels
from tests.fakemodels import batch, codec, model, numbers_of

one_thread = fakemodels.one_thread

TEXTS = ["(2 * 3.5) = -7", "8", "x 0 y 12.25 z", "ab 125", "a long text before 0.5 and 31"]
FIXED = ["p10", "p1000", "b1999", "fp15"]
MASKED: dict[str, type[Parallel] | type[LeftToRight]] = {
    "parallel": Parallel,
    "left to right": LeftToRight,
}
WAYS = (*MASKED, "autoregressive")


def reader(of: Model, scheme: str, constrained: bool = True) -> Reader:
    return Reader(of, codec(scheme), Grammar(codec(scheme).scheme), constrained)


def first_numbers(of: Batch) -> NDArray[np.bool_]:
    """The first number of each row chosen."""
    return np.append(True, np.diff(of.number_row) > 0)


def last_starts(of: Batch) -> NDArray[np.int64]:
    """Where the last number of each row begins; every row has one."""
    last = np.append(np.diff(of.number_row) > 0, True)
    starts: NDArray[np.int64] = of.number_start[last]
    return starts


def room_of(scheme: str) -> int:
    return codec(scheme).scheme.tokens_per_number or LONGEST


def steps(way: str, of: Model, scheme: str, rows: Batch) -> Steps:
    """One number of each row, whichever way."""
    if way in MASKED:
        return MASKED[way](of, rows, first_numbers(rows))
    return Autoregressive(of, rows, last_starts(rows), room_of(scheme))


def model_for(way: str, scheme: str, **of: Any) -> Model:
    return model(scheme, "ar" if way == "autoregressive" else "mlm", context=96, **of)


def assert_same(one: Reading, other: Reading) -> None:
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_array_equal(one.on_grammar, other.on_grammar)
    read = other.tokens >= 0
    np.testing.assert_allclose(one.logits[read], other.logits[read], atol=1e-4)
    if other.parameters is not None:
        assert one.parameters is not None
        np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-4)


# --- a model that says what it is told ---------------------------------------------------------


class Told(Steps):
    """Logits [n, W, vocabulary], place after place; the last for all that follow."""

    def __init__(self, logits: NDArray[np.float64], lengths: list[int] | None = None) -> None:
        self.logits = torch.from_numpy(logits)
        self.lengths = None if lengths is None else np.array(lengths)
        self.taken: list[list[int]] = []
        self.values: list[list[float]] = []

    def first(self) -> Tensor:
        return self.logits[:, 0]

    def next(self, tokens: NDArray[np.int64], values: NDArray[np.float32]) -> Tensor:
        self.taken.append(tokens.tolist())
        self.values.append(values.tolist())
        return self.logits[:, min(len(self.taken), self.logits.shape[1] - 1)]


def obedient(scheme: str, constrained: bool) -> Reader:
    """Its logits are the states themselves."""
    silent = SimpleNamespace(token_head=torch.nn.Identity(), value_head=None)
    return reader(cast(Model, silent), scheme, constrained)


def told(scheme: str, *rows: list[str], lengths: list[int] | None = None) -> Told:
    """Each row's favourite token at each place, and a little of all others; ``'a`` is text."""
    one = codec(scheme)
    vocabulary = one.scheme.vocabulary()
    logits = np.random.default_rng(0).random((len(rows), max(map(len, rows)), one.vocabulary_size))
    for row, tokens in enumerate(rows):
        for place, token in enumerate(tokens):
            is_text, first = token.startswith("'"), (one.number_first, one.text_first)
            local = ord(token[1]) if is_text else vocabulary.index(token)
            logits[row, place, first[is_text] + local] = 9
    return Told(logits, lengths)


def names(scheme: str, reading: Reading) -> list[str]:
    vocabulary = codec(scheme).scheme.vocabulary()
    return [
        " ".join(vocabulary[token] for token in row if token >= 0)
        for row in reading.tokens.tolist()
    ]


def test_the_most_probable_tokens_are_read() -> None:
    spoken = told("p1000", ["-", "602", "E-1"], ["+", "125", "E+2"])
    reading = obedient("p1000", constrained=True).read(spoken)
    assert names("p1000", reading) == ["- 602 E-1", "+ 125 E+2"]
    assert reading.on_grammar.tolist() == [True, True]
    assert reading.lengths.tolist() == [3, 3]
    first, end = codec("p1000").number_first, codec("p1000").text_first
    np.testing.assert_allclose(reading.logits, spoken.logits[:, :, first:end])
    vocabulary = codec("p1000").scheme.vocabulary()
    ids = {name: first + k for k, name in enumerate(vocabulary)}
    assert spoken.taken == [[ids["-"], ids["+"]], [ids["602"], ids["125"]]]


def test_what_is_no_number_is_read_only_without_the_grammar() -> None:
    spoken = ["-", "E-1", "602"], ["+", "125", "E+2"]
    free = obedient("p1000", constrained=False).read(told("p1000", *spoken))
    assert names("p1000", free) == ["- E-1 602", "+ 125 E+2"]
    assert free.on_grammar.tolist() == [True, True]
    bound = obedient("p1000", constrained=True).read(told("p1000", *spoken))
    assert names("p1000", bound)[0] != "- E-1 602"
    assert names("p1000", bound)[1] == "+ 125 E+2"
    assert bound.on_grammar.tolist() == [False, True]


def test_text_ends_a_number_where_the_grammar_lets_it_end() -> None:
    spoken = ["1", "2", "'a"], ["7", "'b"], ["'c", "5", "6", "'e"], ["4", ".", "'d", "'e"]
    free = obedient("digits", constrained=False).read(told("digits", *spoken))
    assert names("digits", free) == ["1 2", "7", "", "4 ."]
    assert free.lengths.tolist() == [2, 1, 0, 2]
    bound = obedient("digits", constrained=True).read(told("digits", *spoken))
    assert names("digits", bound)[:2] == ["1 2", "7"]
    assert bound.on_grammar.tolist() == [True, True, False, False]
    assert bound.lengths[2] >= 1
    assert bound.lengths[3] >= 3


def test_the_value_goes_in_beside_the_first_token_alone() -> None:
    spoken = told("xval", ["[NUM]"] * 3, ["[NUM]"] * 3)
    silent = SimpleNamespace(
        token_head=torch.nn.Identity(),
        value_head=lambda states: states[:, :1],
        value_point=lambda parameters: parameters[:, 0],
    )
    reading = reader(cast(Model, silent), "xval").read(spoken, given=np.zeros((2, 3), np.int64))
    assert reading.parameters is not None
    assert spoken.values == [reading.parameters[:, 0].tolist(), [1, 1]]


def test_a_number_that_does_not_end_is_none() -> None:
    reading = obedient("digits", constrained=True).read(told("digits", ["1", "1"], ["1", "'a"]))
    assert reading.tokens.shape == (2, LONGEST)
    assert reading.lengths.tolist() == [0, 1]


def test_a_number_may_be_as_long_as_the_reader_says() -> None:
    short, long = (
        replace(obedient("digits", constrained=True), longest=most).read(
            told("digits", ["1"] * 70 + ["'a"])
        )
        for most in (70, 71)
    )
    assert (short.tokens.shape, short.lengths.tolist()) == ((1, 70), [0])
    assert (long.tokens.shape, long.lengths.tolist()) == ((1, 71), [70])


def test_reading_stops_when_all_numbers_have_ended() -> None:
    spoken = told("digits", ["1", "'a"], ["1", "2", "'b"])
    assert obedient("digits", constrained=True).read(spoken).tokens.shape == (2, 3)
    assert len(spoken.taken) == 2
    assert spoken.taken[1][0] == MASK  # of no meaning: this number has ended


def test_the_number_of_masks_ends_a_number_and_what_is_said_behind_it_does_not_count() -> None:
    spoken = ["5", "+", "+"], ["1", "2", "3"]
    for constrained in (False, True):
        reading = obedient("digits", constrained).read(told("digits", *spoken, lengths=[1, 3]))
        assert names("digits", reading) == ["5", "1 2 3"]
        assert reading.on_grammar.tolist() == [True, True]


def test_numbers_are_drawn_by_their_probability() -> None:
    spec = "p10,digits=1,exponents=0..1"
    one = codec(spec)
    support = Support.of(Grammar(one.scheme))
    width, draws = support.paths.shape[1], 20_000
    logits = np.random.default_rng(3).normal(0, 1.5, (1, width, one.vocabulary_size))
    spoken = Told(np.repeat(logits, draws, axis=0))
    reading = obedient(spec, constrained=True).read(spoken, random=np.random.default_rng(4))
    expected = np.exp(support.log_probabilities(reading.logits[:1]))[0]
    place = {tuple(path): k for k, path in enumerate(support.paths.tolist())}
    drawn = [place[tuple(path)] for path in reading.tokens.tolist()]
    counts = np.bincount(drawn, minlength=len(expected))
    deviation = np.sqrt(draws * expected * (1 - expected))
    assert (np.abs(counts - draws * expected) <= 5 * deviation + 5).all()
    assert (counts > 0).sum() > 20


def test_without_the_grammar_anything_is_drawn_by_its_probability() -> None:
    one, draws = codec("xval"), 20_000
    logits = np.random.default_rng(3).normal(0, 1, (1, 1, one.vocabulary_size))
    logits[:, :, one.number_first] += 6
    spoken = Told(np.repeat(logits, draws, axis=0))
    reading = obedient("xval", constrained=False).read(spoken, random=np.random.default_rng(4))
    numbers = slice(one.number_first, one.text_first)
    expected = (np.exp(logits[0, 0]) / np.exp(logits[0, 0]).sum())[numbers]
    counts = np.bincount(reading.tokens[:, 0] + 1, minlength=1 + len(expected))
    assert (np.abs(counts[1:] - draws * expected) <= 5 * np.sqrt(draws * expected) + 5).all()
    assert 0 < counts[0] < draws


def test_a_draw_is_a_pure_function_of_its_generator() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 5, codec("p10").vocabulary_size))

    def drawn(seed: int) -> Reading:
        return obedient("p10", True).read(Told(logits), random=np.random.default_rng(seed))

    np.testing.assert_array_equal(drawn(0).tokens, drawn(0).tokens)
    assert not np.array_equal(drawn(0).tokens, drawn(1).tokens)


# --- masked models -----------------------------------------------------------------------------


def plain_masked(of: Model, one: Codec, rows: Batch, fill: bool) -> list[list[int]]:
    """The first number of each row alone, token by token, constrained; ``fill`` what was read."""
    found = []
    for number in np.flatnonzero(first_numbers(rows)).tolist():
        row, start = int(rows.number_row[number]), int(rows.number_start[number])
        tokens = rows.tokens[row, : rows.lengths[row]].copy()
        values = rows.values()[row, : rows.lengths[row]].copy()
        length = int(rows.number_length[number])
        tokens[start : start + length], values[start : start + length] = MASK, 1
        read: list[int] = []
        for place in range(length):
            with torch.no_grad():
                state = of.hidden(
                    torch.from_numpy(tokens)[None], torch.from_numpy(values)[None], None
                )
                scores = of.token_head(state)[0, start + place].numpy()
            allowed = one.scheme.next(tuple(read)).allowed
            local = scores[one.number_first : one.text_first]
            read.append(int(np.where(allowed, local, -np.inf).argmax()))
            if fill:
                tokens[start + place] = read[-1] + one.number_first
        found.append(read)
    return found


@pytest.mark.parametrize("scheme", [*FIXED, "xval"])
@pytest.mark.parametrize("way", MASKED)
def test_masked_numbers_are_read_as_by_a_plain_loop(way: str, scheme: str) -> None:
    of, rows = model(scheme, "mlm"), batch(scheme, TEXTS)
    reading = reader(of, scheme).read(MASKED[way](of, rows, first_numbers(rows)))
    expected = plain_masked(of, codec(scheme), rows, fill=way == "left to right")
    assert reading.tokens.tolist() == expected


@pytest.mark.parametrize("scheme", ["fp15", "xval"])
def test_left_to_right_is_parallel_where_numbers_have_one_token(scheme: str) -> None:
    of, rows = model(scheme, "mlm"), batch(scheme, TEXTS)
    both = [reader(of, scheme).read(way(of, rows, numbers_of(rows))) for way in MASKED.values()]
    assert_same(*both)
    np.testing.assert_array_equal(both[0].logits, both[1].logits)


def test_left_to_right_is_not_parallel_where_numbers_have_several() -> None:
    of, rows = model("p10", "mlm"), batch("p10", TEXTS)
    one, other = (
        reader(of, "p10").read(way(of, rows, numbers_of(rows))) for way in MASKED.values()
    )
    np.testing.assert_array_equal(one.logits[:, 0], other.logits[:, 0])
    assert not np.isclose(one.logits[:, 1:], other.logits[:, 1:]).all()


@pytest.mark.parametrize("way", MASKED)
def test_chosen_numbers_are_hidden_from_each_other(way: str) -> None:
    """What stood in their place does not matter, nor its value."""
    of = model("xval", "mlm")
    rows = [batch("xval", [text]) for text in ("a 1 b 2 c 3", "a 1 b 7 c -9")]
    chosen = np.array([False, True, True])
    both = [reader(of, "xval").read(MASKED[way](of, one, chosen)) for one in rows]
    assert_same(*both)


def test_the_value_of_a_masked_number_is_that_of_the_head_at_its_first_token() -> None:
    of, rows = model("xval", "mlm"), batch("xval", ["a 1 b 2"])
    reading = reader(of, "xval").read(Parallel(of, rows, np.array([False, True])))
    tokens, values = rows.tokens.copy(), rows.values()
    tokens[0, 6], values[0, 6] = MASK, 1
    assert of.value_head is not None
    with torch.no_grad():
        state = of.hidden(torch.from_numpy(tokens), torch.from_numpy(values), None)[0, 6]
        expected = of.value_head(state)
    assert reading.parameters is not None
    np.testing.assert_allclose(reading.parameters, expected[None].numpy(), atol=1e-6)


def test_left_to_right_fills_values_in_beside_tokens() -> None:
    of, rows = model("xval", "mlm"), batch("xval", ["a 1 b 2"])
    filled = LeftToRight(of, rows, np.array([True, False]))
    number = codec("xval").number_first
    found = filled.next(np.array([number]), np.array([-7.5], np.float32))
    expected = batch("xval", ["a -7.5 b 2"])
    with torch.no_grad():
        tokens, values = torch.from_numpy(expected.tokens), torch.from_numpy(expected.values())
        torch.testing.assert_close(found, of.hidden(tokens, values, None)[:, 2])


# --- autoregressive models ---------------------------------------------------------------------


class Recomputed(Steps):
    """As Autoregressive, without a cache: every row alone, from its beginning, at each token."""

    lengths = None

    def __init__(self, of: Model, rows: Batch, starts: NDArray[np.int64]) -> None:
        self.model = of
        values = rows.values()
        self.rows = [
            ([END, *rows.tokens[k, :start].tolist()], [1.0, *values[k, :start].tolist()])
            for k, start in enumerate(starts.tolist())
        ]

    def first(self) -> Tensor:
        states = [
            self.model.hidden(torch.tensor([tokens]), torch.tensor([values]), None)[0, -1]
            for tokens, values in self.rows
        ]
        return torch.stack(states)

    def next(self, tokens: NDArray[np.int64], values: NDArray[np.float32]) -> Tensor:
        for row, token, value in zip(self.rows, tokens.tolist(), values.tolist(), strict=True):
            row[0].append(token)
            row[1].append(value)
        return self.first()


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("scheme", ["digits", "p10", "p1000"])
def test_a_cache_changes_nothing(scheme: str, constrained: bool, positions: str) -> None:
    size = f"nano,layers=2,heads=2,width=16,positions={positions}"
    of, rows = model_for("autoregressive", scheme, size=size), batch(scheme, TEXTS)
    read = reader(of, scheme, constrained)
    starts = last_starts(rows)
    cached = read.read(Autoregressive(of, rows, starts, room_of(scheme)))
    assert_same(cached, read.read(Recomputed(of, rows, starts)))
    assert len(np.unique(starts)) > 3  # rows of different lengths


def test_a_cache_changes_nothing_where_values_go_in() -> None:
    of, rows = model_for("autoregressive", "xval"), batch("xval", TEXTS)
    starts = last_starts(rows)
    cached, plain = Autoregressive(of, rows, starts, 4), Recomputed(of, rows, starts)
    with torch.no_grad():
        torch.testing.assert_close(cached.first(), plain.first(), rtol=0, atol=1e-5)
        for value in (-3.5, 0.25, 4.0):
            tokens = np.full(len(starts), codec("xval").number_first)
            values = np.linspace(value, 2 * value, len(starts), dtype=np.float32)
            found, expected = cached.next(tokens, values), plain.next(tokens, values)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_what_comes_after_a_number_is_not_seen() -> None:
    of = model_for("autoregressive", "p1000")
    rows = [batch("p1000", [text]) for text in ("ab 125 and 7", "ab 9 or so, and more: 8")]
    both = [reader(of, "p1000").read(Autoregressive(of, one, np.array([3]), 3)) for one in rows]
    assert_same(*both)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_a_number_that_leaves_the_context_is_read_rightly_up_to_there(positions: str) -> None:
    size = f"nano,layers=2,heads=2,width=16,positions={positions},context=40"
    of, rows = model("digits", "ar", size=size), batch("digits", TEXTS)
    tokens = np.tile(np.arange(10), (len(TEXTS), 6))
    starts = last_starts(rows)
    reading = reader(of, "digits").read(Autoregressive(of, rows, starts, LONGEST), given=tokens)
    assert reading.tokens.tolist() == tokens.tolist()
    for row, start in enumerate(starts.tolist()):
        whole = 40 - start  # states of the context from the number's first token on
        alone = batch("digits", [TEXTS[row]])
        recomputed = Recomputed(of, alone, starts[row : row + 1])
        expected = reader(of, "digits").read(recomputed, given=tokens[row : row + 1, :whole])
        np.testing.assert_allclose(reading.logits[row, :whole], expected.logits[0], atol=1e-4)


# --- whichever way -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", FIXED)
@given(st.integers(0, 1 << 30))
@settings(max_examples=8)
def test_what_is_read_by_the_grammar_is_always_a_number(scheme: str, way: str, seed: int) -> None:
    of, rows = model_for(way, scheme, seed=seed, spread=0.5), batch(scheme, TEXTS)
    for random in (None, np.random.default_rng(seed)):
        reading = reader(of, scheme).read(steps(way, of, scheme, rows), random=random)
        assert (reading.tokens >= 0).all()
        decoded = codec(scheme).decode_numbers(
            reading.tokens.reshape(-1).astype(np.uint32), reading.lengths
        )
        assert Failure.MALFORMED not in decoded.failures


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", ["p1000", "fp15,exponents=0..0"])
def test_without_the_grammar_some_of_what_is_read_is_no_number(scheme: str, way: str) -> None:
    """What is on the grammar is the same with it and without, and the rest is not."""
    found: list[bool] = []
    for seed in range(12):
        of, rows = model_for(way, scheme, seed=seed, spread=0.5), batch(scheme, TEXTS)
        free, bound = (
            reader(of, scheme, constrained).read(steps(way, of, scheme, rows))
            for constrained in (False, True)
        )
        for row, on_grammar in enumerate(bound.on_grammar.tolist()):
            same = free.tokens[row].tolist() == bound.tokens[row, : free.tokens.shape[1]].tolist()
            assert same == on_grammar
            found.append(on_grammar)
    assert False in found
    assert (True in found) == scheme.startswith("fp15")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", ["digits", "p10", "xval"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_size_of_a_batch_changes_nothing(scheme: str, way: str, size: int) -> None:
    of = model_for(way, scheme)
    read = reader(of, scheme)
    whole = read.read(steps(way, of, scheme, batch(scheme, TEXTS)))
    for first in range(0, len(TEXTS), size):
        rows = batch(scheme, TEXTS[first : first + size])
        part = read.read(steps(way, of, scheme, rows))
        width = part.tokens.shape[1]
        of_whole = slice(first, first + size)
        assert (whole.tokens[of_whole, width:] == -1).all()
        assert_same(
            Reading(
                whole.tokens[of_whole, :width],
                whole.on_grammar[of_whole],
                whole.logits[of_whole, :width],
                None if whole.parameters is None else whole.parameters[of_whole],
            ),
            part,
        )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", ["digits", "p10", "p1000", "xval"])
def test_given_tokens_have_the_logits_that_they_were_read_by(scheme: str, way: str) -> None:
    of, rows = model_for(way, scheme), batch(scheme, TEXTS)
    read = reader(of, scheme).read(steps(way, of, scheme, rows))
    again = reader(of, scheme).read(steps(way, of, scheme, rows), given=read.tokens)
    np.testing.assert_array_equal(again.tokens, read.tokens)
    np.testing.assert_array_equal(again.logits, read.logits)
    other = np.where(read.tokens >= 0, 0, -1)
    if way != "parallel" and read.tokens.shape[1] > 1:
        scored = reader(of, scheme).read(steps(way, of, scheme, rows), given=other)
        assert not np.isclose(scored.logits[:, 1:], read.logits[:, 1:]).all()


@pytest.mark.parametrize("constrained", [False, True])
def test_numbers_of_any_length_end_by_a_token_of_the_text(constrained: bool) -> None:
    one, random = codec("digits"), np.random.default_rng(0)
    logits = random.normal(size=(200, LONGEST, one.vocabulary_size))
    logits[:, :, one.number_first : one.text_first] += 3
    reading = obedient("digits", constrained).read(Told(logits), random=random)
    assert reading.lengths.max() <= LONGEST
    assert len(np.unique(reading.lengths)) > 5
    for path, length in zip(reading.tokens.tolist(), reading.lengths.tolist(), strict=True):
        assert path == path[:length] + [-1] * (len(path) - length)
        for place, token in enumerate(path[:length] if constrained else []):
            assert one.scheme.next(tuple(path[:place])).allowed[token]
        if constrained and length < LONGEST:
            assert one.scheme.next(tuple(path[:length])).may_end
