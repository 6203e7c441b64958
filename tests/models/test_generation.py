"""Whole answers of autoregressive models, compared with a loop that rereads all text per token."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from numtok.encoding.grammar import Grammar
from numtok.models.batches import PAD, Batch
from numtok.models.generation import Writer, WrittenAnswers, last_tokens
from numtok.models.model import Model
from numtok.models.training_batch import END, MASK
from numtok.models.vocabulary import Vocabulary
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import batch, codec, model

one_thread = fakemodels.one_thread

TEXTS = ["2*3.5=-7", "x 0 y 12.25 z is 1.5e3, or so", "ab", "a long text before 0.5 and 31 = 9/4"]
ANSWERS = [6, 14, 0, 29]
SCHEMES = ["digits", "p1000", "xval", "numgpt", "bpe", "numerologic", "numvalue"]
OBJECTIVES = {"numvalue": "numvalue"}
LONGEST = 14


def writer(of: Model, scheme: str, constrained: bool = True, longest: int = LONGEST) -> Writer:
    return Writer(
        model=of,
        codec=codec(scheme),
        grammar=Grammar(codec(scheme).scheme),
        constrained=constrained,
        longest=longest,
    )


def rows(scheme: str) -> Batch:
    return batch(scheme, TEXTS, answers=ANSWERS)


def opinionated(scheme: str, *, text: float = 0.0, end: float = 0.0, **of: Any) -> Model:
    """Return a random model with higher logits of text tokens and of the end."""
    made, one = model(scheme, OBJECTIVES.get(scheme, "ar"), **of), codec(scheme)
    plain = made.token_head.forward

    def higher(states: torch.Tensor) -> torch.Tensor:
        logits = plain(states)
        more = torch.zeros(one.vocabulary_size)
        more[one.text_first :], more[END] = text, end
        return cast(torch.Tensor, logits + more)

    made.token_head.forward = higher
    return made


class Slowly:
    """Generates one answer; each token rereads everything and asks the scheme what is allowed."""

    def __init__(self, of: Model, scheme: str, prompt: Batch, row: int, constrained: bool) -> None:
        self.model, self.codec, self.constrained = of, codec(scheme), constrained
        start = int(prompt.answer_start[row])
        self.tokens = [END, *prompt.tokens[row, :start].tolist()]
        self.values = [1.0, *prompt.values()[row, :start].tolist()]
        self.number: list[int] | None = None  # tokens of the current number so far
        self.broken = False
        self.valued = {*Vocabulary.of(self.codec).numbers.tolist()}
        self.projected: dict[int, torch.Tensor] = {}  # by token index

    def state(self) -> torch.Tensor:
        tokens, values = torch.tensor([self.tokens]), torch.tensor([self.values])
        embedded = self.model._embedded(tokens, values, ())
        for place, vector in self.projected.items():
            embedded[0, place] = vector
        return cast(torch.Tensor, self.model.trunk(embedded, None)[0, -1:])

    def allowed(self) -> NDArray[np.bool_]:
        every, scheme = np.ones(self.codec.vocabulary_size, np.bool_), self.codec.scheme
        every[[PAD, MASK]] = False
        if not self.constrained:
            return every
        numbers = slice(self.codec.number_first, self.codec.text_first)
        first = scheme.next(()).allowed
        if self.number is None:
            every[numbers] = first
            return every
        following = scheme.next(tuple(self.number))
        every[numbers] = following.allowed | (first & following.may_end)
        if not following.may_end:
            every[: self.codec.number_first] = every[self.codec.text_first :] = False
        return every

    def begins(self, token: int) -> bool:
        """Return whether a number begins with this token; otherwise continue the current number."""
        local, scheme = token - self.codec.number_first, self.codec.scheme
        if not self.codec.number_first <= token < self.codec.text_first:
            self.number, self.broken = None, False
            return False
        if self.number is not None and self.broken:
            return False
        if self.number is not None:
            following = scheme.next(tuple(self.number))
            if following.allowed[local]:
                self.number.append(local)
                return False
            if not (following.may_end and scheme.next(()).allowed[local]):
                self.broken = True
                return False
        self.number, self.broken = [local], not scheme.next(()).allowed[local]
        return True

    @torch.no_grad()
    def run(self, longest: int) -> tuple[list[int], list[bool], list[float], bool]:
        said: list[int] = []
        begins: list[bool] = []
        beside: list[float] = []
        while len(said) < longest and len(self.tokens) <= self.model.settings.context:
            state = self.state()
            logits = self.model.token_head(state)[0].numpy().copy()
            logits[~self.allowed()] = -np.inf
            token = int(logits.argmax())
            if token == END:
                return said, begins, beside, True
            begun, value = self.begins(token), 1.0
            if begun and token in self.valued and self.model.value_head is not None:
                value = float(self.model.value_point(self.model.value_head(state))[0])
            said, begins, beside = [*said, token], [*begins, begun], [*beside, value]
            if self.model.own is not None and token == self.model.ahead:
                self.projected[len(self.tokens)] = self.model.own(state)[0]
            self.tokens.append(token)
            self.values.append(np.float32(value).item())
        return said, begins, beside, False


def assert_as_slowly(
    written: WrittenAnswers, of: Model, scheme: str, prompt: Batch, constrained: bool, longest: int
) -> None:
    for row in range(len(prompt.tokens)):
        one = Slowly(of, scheme, prompt, row, constrained)
        tokens, begins, values, ended = one.run(longest)
        told = written.tokens[row]
        assert told[told >= 0].tolist() == tokens
        assert (told[len(tokens) :] == -1).all()
        assert written.starts[row, : len(tokens)].tolist() == begins
        np.testing.assert_allclose(written.values[row, : len(tokens)], values, rtol=1e-2, atol=1e-3)
        assert written.ended[row] == ended


@pytest.mark.parametrize("constrained", [True, False], ids=["constrained", "free"])
@each("scheme", SCHEMES)
def test_answers_are_those_of_a_loop_that_reads_token_by_token(
    scheme: str, constrained: bool
) -> None:
    for seed, text, end in ((0, 0.0, 0.0), (1, 2.0, 3.0))[not constrained :]:
        one = opinionated(scheme, text=text, end=end, seed=seed)
        prompt = rows(scheme)
        written, _ = writer(one, scheme, constrained).write(prompt)
        assert_as_slowly(written, one, scheme, prompt, constrained, LONGEST)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "none"])
def test_an_answer_stops_where_the_context_ends(positions: str) -> None:
    size = f"nano,layers=2,heads=2,width=16,positions={positions}"
    one = opinionated("digits", end=-99.0, context=40, size=size)
    prompt = rows("digits")
    written, _ = writer(one, "digits", longest=64).write(prompt)
    assert not written.ended.any()
    lengths = (written.tokens >= 0).sum(axis=1)
    assert lengths.tolist() == (40 - prompt.answer_start).tolist()
    assert_as_slowly(written, one, "digits", prompt, True, 64)


@each("extra", ["+OVERFLOW", "NAN", "[NUM]"])
def test_a_token_that_is_no_number_has_no_value_beside_it(extra: str) -> None:
    one, prompt = model("xval", "ar"), rows("xval")
    token = codec("xval").number_first + codec("xval").scheme.vocabulary().index(extra)
    plain = one.token_head.forward

    def of_one(states: torch.Tensor) -> torch.Tensor:
        logits = cast(torch.Tensor, plain(states))
        return logits + 1e4 * (torch.arange(logits.shape[1]) == token)

    one.token_head.forward = of_one
    written, _ = writer(one, "xval").write(prompt)
    assert (written.tokens == token).all() and written.starts.all()
    assert (written.values == 1).all() == (extra != "[NUM]")
    assert_as_slowly(written, one, "xval", prompt, True, LONGEST)


def test_an_answer_does_not_depend_on_the_rows_beside_it_nor_on_earlier_batches() -> None:
    one = opinionated("p1000", end=2.0)
    prompt = rows("p1000")
    together, memory = writer(one, "p1000").write(prompt)
    for row in (3, 0, 1):
        alone = batch("p1000", [TEXTS[row]], answers=[ANSWERS[row]])
        written, memory = writer(one, "p1000").write(alone, memory)
        np.testing.assert_array_equal(written.tokens[0], together.tokens[row])


def test_what_stands_behind_the_prompt_is_not_read() -> None:
    one = opinionated("digits", end=2.0)
    prompt = rows("digits")
    changed = np.where(np.arange(prompt.tokens.shape[1]) < prompt.answer_start[:, None], 1, 0)
    other = replace(prompt, tokens=np.where(changed, prompt.tokens, prompt.tokens[::-1]))
    first, second = (writer(one, "digits").write(each)[0] for each in (prompt, other))
    np.testing.assert_array_equal(first.tokens, second.tokens)


def test_numbers_of_an_answer_are_told_apart() -> None:
    one = codec("p1000")
    vocabulary = one.scheme.vocabulary()
    number = [one.number_first + vocabulary.index(name) for name in ("-", "602", "E-1")]
    comma = one.text_first + ord(",")
    tokens = np.array([[*number, *number, comma, *number, -1]])
    starts = np.zeros(tokens.shape, np.bool_)
    starts[0, [0, 3, 7]] = True
    written = WrittenAnswers(
        tokens=tokens,
        starts=starts,
        ends=last_tokens((tokens >= one.number_first) & (tokens < one.text_first), starts),
        values=starts.astype(np.float64),
        ended=np.array([True]),
    )
    own, begins, lengths, channel = written.answer(0)
    assert own.tolist() == tokens[0, :-1].tolist()
    assert (begins.tolist(), lengths.tolist()) == ([0, 3, 7], [3, 3, 3])
    assert channel.tolist() == [1.0, 1.0, 1.0]
