"""Decoding numbers, compared with plain loops that recompute everything at each token."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.encoding.codec import Codec
from numtok.encoding.grammar import Grammar, Support
from numtok.encoding.schemes.base import Channel, Failure, Next, Scheme
from numtok.encoding.schemes.p1000 import P1000
from numtok.models.batches import Batch
from numtok.models.decoding import LONGEST, Draw, NumberReadings, Reader
from numtok.models.inputs import single
from numtok.models.model import Model
from numtok.models.places.base import PLACES
from numtok.models.steps import DecodingStates, ParallelFill, Prefill, SequentialFill
from numtok.models.training_batch import END, MASK
from numtok.seeds import uniforms
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import batch, codec, model, numbers_of

one_thread = fakemodels.one_thread

TEXTS = ["(2 * 3.5) = -7", "8", "x 0 y 12.25 z", "ab 125", "a long text before 0.5 and 31"]
FIXED = ["p10", "p1000", "b1999", "fp15"]
MASKED: dict[str, Callable[[Model, Batch, NDArray[np.bool_]], DecodingStates]] = {
    "parallel": ParallelFill.masked,
    "left to right": SequentialFill,
}
WAYS = (*MASKED, "autoregressive")


def reader(of: Model, scheme: str, constrained: bool = True) -> Reader:
    return Reader(
        model=of,
        codec=codec(scheme),
        grammar=Grammar(codec(scheme).scheme),
        constrained=constrained,
    )


def first_numbers(of: Batch) -> NDArray[np.bool_]:
    """Select the first number of each row."""
    return np.append(True, np.diff(of.number_row) > 0)


def last_numbers(of: Batch) -> NDArray[np.bool_]:
    """Select the last number of each row; every row has one."""
    return np.append(np.diff(of.number_row) > 0, True)


def room_of(scheme: str) -> int:
    return codec(scheme).scheme.tokens_per_number or LONGEST


def steps(way: str, of: Model, scheme: str, rows: Batch) -> DecodingStates:
    """Return decoding states for one number per row; ``way`` selects the method."""
    if way in MASKED:
        return MASKED[way](of, rows, first_numbers(rows))
    return said(of, scheme, rows, last_numbers(rows))


def said(of: Model, scheme: str, rows: Batch, chosen: NDArray[np.bool_]) -> DecodingStates:
    """Return decoding states for the chosen numbers, each after the text before it."""
    return Prefill(of, rows, chosen, room_of(scheme)).steps(slice(0, None))


def shares(n: int, *key: int) -> Draw:
    """Return uniform values with which ``n`` numbers are sampled."""
    return lambda place: uniforms(np.arange(n), *key, place)


def model_for(way: str, scheme: str, **of: Any) -> Model:
    return model(scheme, "ar" if way == "autoregressive" else "mlm", context=96, **of)


def assert_same(one: NumberReadings, other: NumberReadings) -> None:
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_array_equal(one.on_grammar, other.on_grammar)
    if other.logits is not None:
        assert one.logits is not None
        read = other.tokens >= 0
        np.testing.assert_allclose(one.logits[read], other.logits[read], atol=1e-4)
    if other.parameters is not None:
        assert one.parameters is not None
        np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-4)


# --- a model with given logits -----------------------------------------------------------------


class Told(DecodingStates):
    """Given logits [n, W, vocabulary], one position after the other; the last one repeats."""

    def __init__(self, logits: NDArray[np.floating[Any]], lengths: list[int] | None = None) -> None:
        self.logits = torch.from_numpy(logits)
        self.lengths = None if lengths is None else np.array(lengths)
        self.taken: list[list[int]] = []
        self.values: list[list[float]] = []
        self.open = np.arange(len(logits))

    def first(self) -> Tensor:
        return self.logits[:, 0]

    def next(self, tokens: NDArray[np.int64], values: Channel) -> Tensor:
        self.taken.append(tokens.tolist())
        self.values.append(values.tolist())
        return self.logits[self.open, min(len(self.taken), self.logits.shape[1] - 1)]

    def keep(self, numbers: NDArray[np.int64]) -> None:
        self.open = self.open[numbers]

    def true(self) -> DecodingStates:
        return self


def obedient(scheme: str, constrained: bool) -> Reader:
    """Return a reader whose logits are the states themselves."""
    silent = SimpleNamespace(token_head=torch.nn.Identity(), value_head=None)
    return reader(cast(Model, silent), scheme, constrained)


def told(scheme: str, *rows: list[str], lengths: list[int] | None = None) -> Told:
    """Return states in which each row favors the given tokens; ``'a`` is a text token."""
    one = codec(scheme)
    vocabulary = one.scheme.vocabulary()
    logits = np.random.default_rng(0).random((len(rows), max(map(len, rows)), one.vocabulary_size))
    for row, tokens in enumerate(rows):
        for place, token in enumerate(tokens):
            is_text, first = token.startswith("'"), (one.number_first, one.text_first)
            local = ord(token[1]) if is_text else vocabulary.index(token)
            logits[row, place, first[is_text] + local] = 9
    return Told(logits, lengths)


def names(scheme: str, reading: NumberReadings) -> list[str]:
    vocabulary = codec(scheme).scheme.vocabulary()
    return [
        " ".join(vocabulary[token] for token in row if token >= 0)
        for row in reading.tokens.tolist()
    ]


def test_the_most_probable_tokens_are_read() -> None:
    spoken = told("p1000", ["-", "602", "E-1"], ["+", "125", "E+2"])
    reading = obedient("p1000", constrained=True).read(spoken, keep_logits=True)
    assert names("p1000", reading) == ["- 602 E-1", "+ 125 E+2"]
    assert reading.on_grammar.tolist() == [True, True]
    assert reading.lengths.tolist() == [3, 3]
    first, end = codec("p1000").number_first, codec("p1000").text_first
    assert reading.logits is not None
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
        channel=lambda parameters: parameters[:, 0].numpy(),
    )
    reader(cast(Model, silent), "xval").score(spoken, np.zeros((2, 3), np.int64))
    assert spoken.values == [spoken.logits[:, 0, 0].float().tolist(), [1, 1]]


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
    spoken = told("digits", ["1", "'a"], ["1", "2", "'b"], ["3", "4", "'b"])
    assert obedient("digits", constrained=True).read(spoken).tokens.shape == (3, 3)
    assert len(spoken.taken) == 2
    assert spoken.taken[1][0] == MASK  # ignored: this number has ended


def test_numbers_that_have_ended_are_left_behind_when_they_are_half_of_all() -> None:
    rows = [["1", *["2"] * more, "'a"] for more in (0, 3, 1, 7, 0)]
    spoken = told("digits", *rows)
    reading = obedient("digits", constrained=True).read(spoken)
    assert names("digits", reading) == [" ".join(row[:-1]) for row in rows]
    assert [len(tokens) for tokens in spoken.taken] == [5, 5, 2, 2, 1, 1, 1, 1]
    assert spoken.open.tolist() == [3]
    kept = obedient("digits", constrained=True).read(told("digits", *rows), keep_logits=True)
    np.testing.assert_array_equal(kept.tokens[:, :9], reading.tokens)
    assert kept.logits is not None and kept.logits.shape[:2] == (5, LONGEST)


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
    reading = obedient(spec, constrained=True).read(spoken, shares(draws))
    of_numbers = logits[:, :, one.number_first : one.text_first]
    expected = np.exp(support.log_probabilities(of_numbers))[0]
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
    reading = obedient("xval", constrained=False).read(spoken, shares(draws))
    numbers = slice(one.number_first, one.text_first)
    expected = (np.exp(logits[0, 0]) / np.exp(logits[0, 0]).sum())[numbers]
    counts = np.bincount(reading.tokens[:, 0] + 1, minlength=1 + len(expected))
    assert (np.abs(counts[1:] - draws * expected) <= 5 * np.sqrt(draws * expected) + 5).all()
    assert 0 < counts[0] < draws


def test_the_end_is_drawn_as_often_as_all_tokens_that_end_a_number() -> None:
    """Each text token has a small probability; together they have a third."""
    one, draws = codec("digits"), 20_000
    logits = np.full((draws, 2, one.vocabulary_size), -np.inf)
    logits[:, 0, one.number_first + 1] = 0.0
    logits[:, 1, one.number_first + 2] = math.log(2)
    logits[:, 1, one.text_first :] = -math.log(one.vocabulary_size - one.text_first)
    reading = obedient("digits", constrained=True).read(Told(logits), shares(draws))
    ended = np.count_nonzero(reading.tokens[:, 1] < 0)
    assert abs(ended - draws / 3) <= 5 * math.sqrt(draws * 2 / 9)


def test_a_draw_is_a_pure_function_of_what_it_is_drawn_by() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 5, codec("p10").vocabulary_size))

    def drawn(seed: int) -> NumberReadings:
        return obedient("p10", True).read(Told(logits), shares(50, seed))

    np.testing.assert_array_equal(drawn(0).tokens, drawn(0).tokens)
    assert not np.array_equal(drawn(0).tokens, drawn(1).tokens)


# --- the probability of given numbers ----------------------------------------------------------


def plain_score(scheme: Scheme, logits: NDArray[np.float64], path: list[int]) -> float:
    """Sum log-softmaxes over the allowed tokens, subtracting the largest score in each."""
    total = 0.0
    for place, token in enumerate(path):
        allowed = scheme.next(tuple(path[:place])).allowed
        scores = [s for s, ok in zip(logits[place].tolist(), allowed, strict=True) if ok]
        most = max(scores)
        norm = math.fsum(math.exp(score - most) for score in scores)
        total += float(logits[place, token]) - most - math.log(norm)
    return total


@each("scheme", [*FIXED, "xval", "digits"])
def test_given_numbers_have_the_plain_sums(scheme: str) -> None:
    one, rows = codec(scheme), batch(scheme, TEXTS)
    paths = [
        (rows.tokens[row, start : start + length] - one.number_first).tolist()
        for row, start, length in zip(
            rows.number_row, rows.number_start, rows.number_length, strict=True
        )
    ]
    width = max(map(len, paths))
    tokens = np.array([path + [-1] * (width - len(path)) for path in paths])
    shape = len(paths), width, one.vocabulary_size
    logits = 5 * np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    found = obedient(scheme, constrained=True).score(Told(logits.copy()), tokens)
    of_numbers = logits[:, :, one.number_first : one.text_first].astype(np.float64)
    expected = [
        plain_score(one.scheme, scores, path)
        for scores, path in zip(of_numbers, paths, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_what_is_no_number_is_impossible_and_the_scheme_not_asked_about_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, ...]] = []
    answer = P1000.next

    def noted(scheme: P1000, prefix: tuple[int, ...]) -> Next:
        asked.append(prefix)
        return answer(scheme, prefix)

    monkeypatch.setattr(P1000, "next", noted)
    good = (1, 504, 909)  # - 602 E-1
    paths = np.array([good, (1, 909, 504), (504, 1, 909)])
    logits = np.zeros((3, 3, codec("p1000").vocabulary_size))
    found = obedient("p1000", constrained=True).score(Told(logits), paths)
    np.testing.assert_allclose(found, [-math.log(10 * 900 * 16), -math.inf, -math.inf])
    assert sorted(asked) == [(), good[:1], good[:2]]


@each("way", WAYS)
@each("scheme", ["p10", "p1000", "fp15"])
def test_what_was_read_has_the_probability_of_the_logits_it_was_read_by(
    scheme: str, way: str
) -> None:
    of, rows = model_for(way, scheme), batch(scheme, TEXTS)
    read, one = reader(of, scheme), codec(scheme)
    taken = steps(way, of, scheme, rows)
    reading = read.read(taken, keep_logits=True)
    assert reading.logits is not None
    expected = [
        plain_score(one.scheme, logits, path)
        for logits, path in zip(
            reading.logits.astype(np.float64), reading.tokens.tolist(), strict=True
        )
    ]
    np.testing.assert_allclose(read.score(taken, reading.tokens), expected, atol=1e-5)
    # The same steps can be reused in any order.
    assert_same(read.read(taken, keep_logits=True), reading)


@each("scheme", ["p10", "p1000"])
def test_true_tokens_are_scored_alike_from_one_pass_and_one_after_the_other(scheme: str) -> None:
    of, rows, one = model_for("autoregressive", scheme), batch(scheme, TEXTS), codec(scheme)
    chosen = numbers_of(rows)
    width = room_of(scheme)
    columns = rows.number_start[:, None] + np.arange(width)
    truth = rows.tokens[rows.number_row[:, None], columns] - one.number_first
    taken, read = said(of, scheme, rows, chosen), reader(of, scheme)
    assert taken.true() is not taken
    scores = read.score(taken.true(), truth), read.score(taken, truth)
    np.testing.assert_allclose(*scores, atol=1e-5)
    assert np.ptp(scores[0]) > 1


# --- masked models -----------------------------------------------------------------------------


def plain_masked(of: Model, one: Codec, rows: Batch, fill: bool) -> list[list[int]]:
    """Decode the first number of each row with constraints; ``fill`` inserts decoded tokens."""
    found = []
    for number in np.flatnonzero(first_numbers(rows)).tolist():
        row, start = int(rows.number_row[number]), int(rows.number_start[number])
        tokens = rows.tokens[row, : rows.lengths[row]].copy()
        values = single(rows.values()[row, : rows.lengths[row]]).copy()
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


@each("scheme", [*FIXED, "xval"])
@each("way", MASKED)
def test_masked_numbers_are_read_as_by_a_plain_loop(way: str, scheme: str) -> None:
    of, rows = model(scheme, "mlm"), batch(scheme, TEXTS)
    reading = reader(of, scheme).read(MASKED[way](of, rows, first_numbers(rows)))
    expected = plain_masked(of, codec(scheme), rows, fill=way == "left to right")
    assert reading.tokens.tolist() == expected


@each("way", MASKED)
def test_chosen_numbers_are_hidden_from_each_other(way: str) -> None:
    """Hidden tokens and their values do not affect the result."""
    of = model("xval", "mlm")
    rows = [batch("xval", [text]) for text in ("a 1 b 2 c 3", "a 1 b 7 c -9")]
    chosen = np.array([False, True, True])
    both = [reader(of, "xval").read(MASKED[way](of, one, chosen)) for one in rows]
    assert_same(*both)


def test_the_value_of_a_masked_number_is_that_of_the_head_at_its_first_token() -> None:
    of, rows = model("xval", "mlm"), batch("xval", ["a 1 b 2"])
    reading = reader(of, "xval").read(ParallelFill.masked(of, rows, np.array([False, True])))
    tokens, values = rows.tokens.copy(), single(rows.values())
    tokens[0, 6], values[0, 6] = MASK, 1
    assert of.value_head is not None
    with torch.no_grad():
        state = of.hidden(torch.from_numpy(tokens), torch.from_numpy(values), None)[0, 6]
        expected = of.value_head(state)
    assert reading.parameters is not None
    np.testing.assert_allclose(reading.parameters, expected[None].numpy(), atol=1e-6)


def test_left_to_right_fills_values_in_beside_tokens() -> None:
    of, rows = model("xval", "mlm"), batch("xval", ["a 1 b 2"])
    filled = SequentialFill(of, rows, np.array([True, False]))
    filled.first()
    number = codec("xval").number_first
    found = filled.next(np.array([number]), np.array([-7.5], np.float32))
    expected = batch("xval", ["a -7.5 b 2"])
    with torch.no_grad():
        tokens, values = (
            torch.from_numpy(expected.tokens),
            torch.from_numpy(single(expected.values())),
        )
        torch.testing.assert_close(found, of.hidden(tokens, values, None)[:, 2])


# --- autoregressive models ---------------------------------------------------------------------


class Recomputed(DecodingStates):
    """Autoregressive decoding without a cache: each row is recomputed in full at each token."""

    lengths = None

    def __init__(self, of: Model, rows: Batch, chosen: NDArray[np.bool_]) -> None:
        self.model = of
        values = rows.values()
        self.rows = [
            ([END, *rows.tokens[k, :start].tolist()], [1.0, *values[k, :start].tolist()])
            for k, start in zip(rows.number_row[chosen], rows.number_start[chosen], strict=True)
        ]

    def first(self) -> Tensor:
        states = [
            self.model.hidden(torch.tensor([tokens]), torch.tensor([values]), None)[0, -1]
            for tokens, values in self.rows
        ]
        return torch.stack(states)

    def keep(self, numbers: NDArray[np.int64]) -> None:
        self.rows = [self.rows[number] for number in numbers.tolist()]

    def true(self) -> DecodingStates:
        raise NotImplementedError

    def next(self, tokens: NDArray[np.int64], values: Channel) -> Tensor:
        for row, token, value in zip(self.rows, tokens.tolist(), values.tolist(), strict=True):
            row[0].append(token)
            row[1].append(value)
        return self.first()


@pytest.mark.parametrize(
    ("scheme", "constrained", "positions"),
    [  # every pair of two settings
        ("digits", True, "rotary"),
        ("digits", False, "learned"),
        ("p10", True, "learned"),
        ("p10", False, "sinusoidal"),
        ("p1000", True, "sinusoidal"),
        ("p1000", False, "rotary"),
        ("digits", False, "none"),
    ],
)
def test_a_cache_changes_nothing(scheme: str, constrained: bool, positions: str) -> None:
    size = f"nano,layers=2,heads=2,width=16,positions={positions}"
    of, rows = model_for("autoregressive", scheme, size=size), batch(scheme, TEXTS)
    read = replace(reader(of, scheme, constrained), longest=20)
    for chosen in (last_numbers(rows), numbers_of(rows)):  # one number per row, then several
        taken = said(of, scheme, rows, chosen)
        expected = read.read(Recomputed(of, rows, chosen))
        assert_same(read.read(taken), expected)
        with_logits = read.read(Recomputed(of, rows, chosen), keep_logits=True)
        assert_same(read.read(taken, keep_logits=True), with_logits)
        assert_same(read.read(taken), expected)
        assert len(np.unique(rows.number_start[chosen])) > 3  # rows of different lengths


@pytest.mark.parametrize("places", PLACES.names())
def test_a_cache_keeps_the_places_of_digits(places: str) -> None:
    """12.34 follows the text of each row; its digit positions must reach the cached model."""
    of, rows = model_for("autoregressive", "digits", places=places), batch("digits", TEXTS)
    assert of.places is not None
    with torch.no_grad():
        of.places.table.weight.mul_(50)  # so that digit positions change the answer
    chosen = last_numbers(rows)
    cached, plain = Prefill(of, rows, chosen, 6).steps(slice(0, 9)), Recomputed(of, rows, chosen)
    names, answers = codec("digits").number_tokens, []
    with torch.no_grad():
        torch.testing.assert_close(cached.first(), plain.first(), rtol=0, atol=1e-4)
        for character in "12.34":
            token = codec("digits").number_first + names.index(character)
            tokens = np.full(len(rows.tokens), token)
            values = np.zeros(len(tokens), np.float32)
            answers.append(cached.next(tokens, values))
            torch.testing.assert_close(answers[-1], plain.next(tokens, values), rtol=0, atol=1e-4)
    assert len({answer.flatten()[0].item() for answer in answers}) == len(answers)


def test_a_cache_changes_nothing_where_values_go_in() -> None:
    of, rows = model_for("autoregressive", "xval"), batch("xval", TEXTS)
    chosen = last_numbers(rows)
    cached, plain = Prefill(of, rows, chosen, 4).steps(slice(0, 9)), Recomputed(of, rows, chosen)
    with torch.no_grad():
        torch.testing.assert_close(cached.first(), plain.first(), rtol=0, atol=1e-5)
        for value in (-3.5, 0.25, 4.0):
            tokens = np.full(len(rows.tokens), codec("xval").number_first)
            values = np.linspace(value, 2 * value, len(tokens), dtype=np.float32)
            found, expected = cached.next(tokens, values), plain.next(tokens, values)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@each("scheme", ["digits", "p1000"])
@each("size", [1, 2, 5, 6])
def test_numbers_of_one_row_can_be_said_a_part_at_a_time(scheme: str, size: int) -> None:
    """Rows are prefilled once; decoding one part does not affect later parts."""
    texts = ["1 and 2.5", "7", "a 1 b 22 c 3 d 4.5"]
    of, rows = model_for("autoregressive", scheme), batch(scheme, texts)
    whole = reader(of, scheme).read(said(of, scheme, rows, numbers_of(rows)))
    prompts = Prefill(of, rows, numbers_of(rows), room_of(scheme))
    for first in [*range(0, 7, size), 0]:
        part = slice(first, first + size)
        tokens = reader(of, scheme).read(prompts.steps(part)).tokens
        width = tokens.shape[1]
        np.testing.assert_array_equal(tokens, whole.tokens[part, :width])
        assert (whole.tokens[part, width:] == -1).all()


def test_prompts_use_the_memory_of_earlier_ones() -> None:
    of = model_for("autoregressive", "p1000")
    rows = batch("p1000", TEXTS)
    prompts = Prefill(of, rows, last_numbers(rows), 3)
    expected = reader(of, "p1000").read(prompts.steps(slice(0, None)))
    again = Prefill(of, rows, last_numbers(rows), 3, prompts.cache)
    assert_same(reader(of, "p1000").read(again.steps(slice(0, None))), expected)


def test_numbers_of_one_token_need_no_cache() -> None:
    of, rows = model_for("autoregressive", "fp15"), batch("fp15", TEXTS)
    prompts = Prefill(of, rows, numbers_of(rows), 1)
    assert prompts.cache is None
    found = reader(of, "fp15").read(prompts.steps(slice(0, None)))
    assert_same(found, reader(of, "fp15").read(Recomputed(of, rows, numbers_of(rows))))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_a_number_that_leaves_the_context_is_read_rightly_up_to_there(positions: str) -> None:
    size = f"nano,layers=2,heads=2,width=16,positions={positions},context=40"
    of, rows = model("digits", "ar", size=size), batch("digits", TEXTS)
    cached = said(of, "digits", rows, last_numbers(rows))
    tokens = np.tile(np.arange(10) + codec("digits").number_first, (len(TEXTS), 6))
    ones = np.ones(len(TEXTS), np.float32)
    with torch.no_grad():
        found = [cached.first(), *(cached.next(column, ones) for column in tokens.T)]
        for row, start in enumerate(rows.number_start[last_numbers(rows)].tolist()):
            alone = batch("digits", [TEXTS[row]])
            plain = Recomputed(of, alone, last_numbers(alone))
            expected = plain.first()
            for place in range(40 - start):  # until the context is full
                torch.testing.assert_close(found[place][row], expected[0], rtol=0, atol=1e-4)
                if start + place + 1 < 40:
                    expected = plain.next(tokens[row : row + 1, place], ones[:1])


# --- all ways of decoding ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", FIXED)
@each("way", WAYS)
@each("seed", [0, 1, 2])
def test_what_is_read_by_the_grammar_is_always_a_number(scheme: str, way: str, seed: int) -> None:
    of, rows = model_for(way, scheme, seed=seed, spread=0.5), batch(scheme, TEXTS)
    for draw in (None, shares(len(TEXTS), seed)):
        reading = reader(of, scheme).read(steps(way, of, scheme, rows), draw)
        assert (reading.tokens >= 0).all()
        decoded = codec(scheme).decode_numbers(
            reading.tokens.reshape(-1).astype(np.uint32), reading.lengths
        )
        assert Failure.MALFORMED not in decoded.failures


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", ["p1000", "fp15,exponents=0..0"])
def test_without_the_grammar_some_of_what_is_read_is_no_number(scheme: str, way: str) -> None:
    """Results that follow the grammar are the same with and without it; all others differ."""
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


@each("way", WAYS)
@each("scheme", ["digits", "p10", "xval"])
@each("drawn", [False, True])
def test_the_size_of_a_batch_changes_nothing(scheme: str, way: str, drawn: bool) -> None:
    of = model_for(way, scheme)
    read = reader(of, scheme)

    def by(numbers: range) -> Draw | None:
        return (lambda place: uniforms(np.array(numbers), place)) if drawn else None

    whole = read.read(steps(way, of, scheme, batch(scheme, TEXTS)), by(range(len(TEXTS))))
    for first, size in ((0, 1), (1, 1), (0, 2), (2, 2), (4, 2), (0, 3), (3, 3)):
        rows = batch(scheme, TEXTS[first : first + size])
        numbers = range(first, first + len(rows.tokens))
        part = read.read(steps(way, of, scheme, rows), by(numbers))
        width = part.tokens.shape[1]
        of_whole = slice(first, first + size)
        assert (whole.tokens[of_whole, width:] == -1).all()
        assert_same(
            NumberReadings(
                whole.tokens[of_whole, :width],
                whole.on_grammar[of_whole],
                None,
                None if whole.parameters is None else whole.parameters[of_whole],
            ),
            part,
        )


@pytest.mark.parametrize("constrained", [False, True])
def test_numbers_of_any_length_end_by_a_token_of_the_text(constrained: bool) -> None:
    one, random = codec("digits"), np.random.default_rng(0)
    logits = random.normal(size=(200, LONGEST, one.vocabulary_size))
    logits[:, :, one.number_first : one.text_first] += 3
    reading = obedient("digits", constrained).read(Told(logits), shares(200))
    assert reading.lengths.max() <= LONGEST
    assert len(np.unique(reading.lengths)) > 5
    for path, length in zip(reading.tokens.tolist(), reading.lengths.tolist(), strict=True):
        assert path == path[:length] + [-1] * (len(path) - length)
        for place, token in enumerate(path[:length] if constrained else []):
            assert one.scheme.next(tuple(path[:place])).allowed[token]
        if constrained and length < LONGEST:
            assert one.scheme.next(tuple(path[:length])).may_end
