"""Predictions of models, compared with results computed by hand from their logits; no training."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.grammar import Grammar, Support
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme, Failure, Scheme
from numtok.encoding.splits import read_split
from numtok.encoding.stored_codec import read_codec
from numtok.errors import TrainingFailed, UsageError
from numtok.evaluation.predict import Options, Predicted, Predictor
from numtok.evaluation.queries import queries_of
from numtok.models.decoding import NumberReadings, Reader
from numtok.models.heads.base import HEADS, default_point
from numtok.models.model import Model
from numtok.models.training_batch import END, MASK
from numtok.registry import spec_of
from numtok.reports import QUANTILES
from numtok.stages import encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import LoadedModel
from tests import fakemodels
from tests.fakemodels import transformer
from tests.messages import Says

one_thread = fakemodels.one_thread

PARALLEL, LEFT_TO_RIGHT, AUTOREGRESSIVE = "parallel", "left-to-right", "autoregressive"
FIXED = [name for name in SCHEMES if SCHEMES.build(name).tokens_per_number is not None]
TOKENS = [name for name in FIXED if not issubclass(SCHEMES[name], ChannelScheme)]
ROUNDING = ["b1999", "fp15", "p10", "p1000"]
MANY = ["p10,digits=5", "ud"]  # numbers, too many to list
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TEXTS = (
    "2.5 apples and 13 pears make 15.5",
    "7 times -8 is -56",
    "0.125 + 0.25 = 0.375",
    "12 and 30 and 4 and 1 give 47.04",
    "1.732 squared is 2.999824",
    "from 100 to 1 it is -99",
    "6 of 9",
    "41.5 - 0.4321 = 41.0679",
    "the sum of 1200 and 37 is 1237, no more",
    "3 3 3",
)
DEVIATION = 0.7  # standard deviation of the value heads' Gaussian, normalized


def by_size(scheme: str, *arguments: str) -> Any:
    """Return a test case of a scheme; the scheme with the most tokens takes longer."""
    marks = [pytest.mark.integration] if scheme == "fp15" else []
    return pytest.param(scheme, *arguments, marks=marks)


Row = dict[str, Any]


def row(name: object, text: str, *targets: int) -> Row:
    """Make a row whose targets are these numbers; the answer starts at the first of them."""
    spans = [match.span() for match in NUMBER.finditer(text)]
    wanted = {f"y{index}": [spans[index]] for index in targets}
    start = {"answer_start": spans[targets[0]][0]} if targets else {}
    return {"id": str(name), "text": text, "targets": wanted} | start


def last(text: str) -> int:
    """Return the index of a text's last number."""
    return len(NUMBER.findall(text)) - 1


ANSWERS = [row(index, text, last(text)) for index, text in enumerate(TEXTS)]
MIXED = [  # targets, several of them, none
    row("one", TEXTS[0], 2),
    row("two", TEXTS[3], 1, 4),
    row("none", TEXTS[2]),
    row("all", TEXTS[7], 0, 1, 2),
]


class Encoded(NamedTuple):
    """Encoded rows."""

    artifact: Artifact
    codec: Codec
    split: EncodedSplit


@dataclass(frozen=True)
class Bench:
    """Encodes rows, with text as bytes, and makes predictors with random models."""

    root: Path
    cache: dict[tuple[str, str, str | None], "Encoded"] = field(default_factory=dict)

    def encoded(self, rows: Sequence[Row], scheme: str, normalize: str | None) -> "Encoded":
        """Encode rows; the result is cached, and no test changes it."""
        lines = "".join(json.dumps(token) + "\n" for token in rows)
        if predicted := self.cache.get((lines, scheme, normalize)):
            return predicted
        path = self.root / "data.jsonl"
        path.write_text(lines)
        config = encode.Config(
            (str(path),), scheme=scheme, normalize=normalize, text_tokenizer="bytes", name="data"
        )
        artifact = encode.run(config, Store(self.root / "artifacts"), lambda *_: None).artifact
        assert artifact is not None
        predicted = Encoded(artifact, read_codec(artifact), read_split(artifact, "train"))
        self.cache[lines, scheme, normalize] = predicted
        return predicted

    def predictor(
        self,
        scheme: str,
        objective: str,
        rows: Sequence[Row] = ANSWERS,
        *,
        normalize: str | None = None,
        head: str | None = None,
        text: float = 0.0,
        **options: Any,
    ) -> Predictor:
        """Make a predictor whose logits are ``text`` higher for text tokens.

        Tokens for NaN, overflow and the like are never predicted.
        """
        artifact, codec, split = self.encoded(rows, scheme, normalize)
        model = fakemodels.model(scheme, objective, head=head, context=80)
        with torch.no_grad():
            transformer(model).norm.bias[0] = 1.0
            words = "weight" if isinstance(model.token_head, torch.nn.Linear) else "words.weight"
            logits = model.token_head.get_parameter(words)[:, 0]
            logits.zero_()
            logits[
                codec.number_first + codec.scheme.paper_vocabulary_size : codec.text_first
            ] = -20.0
            logits[codec.text_first :] = text
            transformer(model).norm.weight[0] = 0.0
        calibration = {"deviation": DEVIATION}
        trained = fakemodels.trained(calibration=calibration, calibrated_on="train", train_mean=0.0)
        loaded = LoadedModel(artifact=artifact, model=model, codec=codec, trained=trained)
        fill = AUTOREGRESSIVE if model.objective.causal else PARALLEL
        defaults = Options(fill=fill, constrained=True, point="mode", draws=0, batch=256)
        return Predictor(loaded, split, replace(defaults, **options))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module", autouse=True)
def listed_once() -> Iterator[None]:
    """List all numbers of a scheme once for all tests, which takes most of the time."""
    artifact = cache(lambda spec: list_numbers(Grammar(SCHEMES.build(spec))))
    list_numbers = Support.of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Support, "of", lambda grammar: artifact(spec_of(grammar.scheme)))
        yield


def run(predictor: Predictor) -> Predicted:
    return predictor.run(lambda done, total: None, unexpected)


def unexpected(note: str) -> None:
    raise AssertionError(note)


# --- reference implementation ------------------------------------------------------------------


def row_of(
    predictor: Predictor, row_index: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], range]:
    """Return a row's tokens, the value of each token, and its numbers."""
    samples = predictor.samples
    tokens = samples.tokens[
        samples.token_rows[row_index] : samples.token_rows[row_index + 1]
    ].astype(int)
    values = np.ones(len(tokens), np.float32)
    numbers = range(*samples.number_rows[row_index : row_index + 2].tolist())
    if samples.channel is not None:
        values[samples.number_start[numbers]] = samples.channel[numbers]
    return tokens, values, numbers


def masked_states(
    predictor: Predictor, row_index: int, hidden: Sequence[int]
) -> NDArray[np.float32]:
    """Return states float32[L, D] of a row whose numbers ``hidden`` are masked."""
    tokens, values, numbers = row_of(predictor, row_index)
    for index in hidden:
        start = predictor.samples.number_start[numbers[index]]
        tokens[start : start + predictor.samples.number_length[numbers[index]]] = MASK
        values[start] = 1.0
    return states(predictor.loaded.model, tokens, values)


def causal_states(predictor: Predictor, row_index: int) -> NDArray[np.float32]:
    """Return states float32[L, D]; state j has seen the true tokens before token j."""
    tokens, values, _ = row_of(predictor, row_index)
    shifted = np.concatenate([[END], tokens[:-1]])
    return states(predictor.loaded.model, shifted, np.concatenate([[1], values[:-1]]))


@torch.no_grad()
def states(model: Model, tokens: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float32]:
    hidden = model.hidden(
        torch.from_numpy(tokens)[None], torch.from_numpy(values.astype(np.float32))[None], None
    )
    return hidden[0].numpy()


@torch.no_grad()
def scores(predictor: Predictor, hidden: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return logits of the scheme's number tokens, float64[L, number tokens]."""
    logits = predictor.loaded.model.token_head(torch.from_numpy(hidden)).numpy()
    codec = predictor.loaded.codec
    return np.asarray(logits[:, codec.number_first : codec.text_first], np.float64)


@torch.no_grad()
def centre(predictor: Predictor, hidden: NDArray[np.float32]) -> float:
    """Return the output of the scalar head for one state."""
    head = predictor.loaded.model.value_head
    assert head is not None
    return float(head(torch.from_numpy(hidden)[None])[0, 0])


def greedy(scheme: Scheme, logits: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the most probable allowed token at each position."""
    path: tuple[int, ...] = ()
    for position in logits:
        allowed = scheme.next(path).allowed
        path += (int(np.where(allowed, position, -np.inf).argmax()),)
    return path


def log_mass(scheme: Scheme, logits: NDArray[np.float64], path: tuple[int, ...]) -> float:
    """Return the log probability of a number: a softmax over the allowed tokens per position."""
    total = 0.0
    for position, token in enumerate(path):
        weights = np.exp(logits[position][scheme.next(path[:position]).allowed])
        total += float(logits[position][token] - np.log(weights.sum()))
    return total


def value_of(scheme: Scheme, path: tuple[int, ...]) -> float:
    decoded = scheme.decode(np.array(path, np.uint32), np.array([len(path)], np.int32))
    return float(decoded.values[0])


def number_of(samples: EncodedSplit, row_index: int, index: int) -> tuple[int, int, int]:
    """Return a number's index in the split, its first token and its length."""
    number = int(samples.number_rows[row_index]) + index
    return number, int(samples.number_start[number]), int(samples.number_length[number])


def path_of(predictor: Predictor, row_index: int, index: int) -> tuple[int, ...]:
    """Return the local ids of a number's tokens."""
    samples, codec = predictor.samples, predictor.loaded.codec
    _, start, length = number_of(samples, row_index, index)
    first = int(samples.token_rows[row_index]) + start
    tokens = samples.tokens[first : first + length].astype(int) - codec.number_first
    return tuple(tokens.tolist())


# --- queries -----------------------------------------------------------------------------------


def test_targets_are_asked_for_together_and_numbers_of_other_rows_in_turn(bench: Bench) -> None:
    """With an autoregressive model, all numbers of a row are one query."""
    samples = bench.predictor("p1000", "mlm", MIXED).samples
    queries, causal = (queries_of(samples, causal=causal) for causal in (False, True))
    # Numbers of the four rows: 0-2, 3-7, 8-10, 11-13.
    assert queries.numbers.tolist() == [2, 4, 7, 8, 9, 10, 11, 12, 13]
    assert queries.queries.tolist() == [0, 1, 1, 2, 3, 4, 5, 5, 5]
    assert queries.rows.tolist() == [0, 1, 2, 2, 2, 3]
    assert queries.targets.tolist() == [0, 1, 2, -1, -1, -1, 3, 4, 5]

    assert causal.numbers.tolist() == queries.numbers.tolist()
    assert causal.targets.tolist() == queries.targets.tolist()
    assert causal.queries.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3]
    assert causal.rows.tolist() == [0, 1, 2, 3]


@given(st.data(), st.booleans())
def test_every_target_or_else_every_number_is_asked_for_once(
    data: st.DataObject, causal: bool
) -> None:
    counts = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=8))
    number_rows = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    row_of = np.repeat(np.arange(len(counts)), counts)
    # A row's targets come in any order, as its names do.
    chosen = data.draw(st.permutations(range(int(number_rows[-1]))))
    picked = np.array(chosen[: data.draw(st.integers(0, len(chosen)))], np.int64)
    targets = picked[np.argsort(row_of[picked], kind="stable")] if len(picked) else picked
    samples = fakemodels.samples("xval", [" 1" * count for count in counts])
    samples = replace(samples, targets=targets, target_row=row_of[targets])
    queried = queries_of(samples, causal)

    with_targets = set(row_of[targets].tolist())
    wanted = set(targets.tolist()) | {
        number for number, token in enumerate(row_of.tolist()) if token not in with_targets
    }
    assert sorted(queried.numbers.tolist()) == sorted(wanted)
    assert (np.diff(queried.rows[queried.queries]) >= 0).all()
    assert (row_of[queried.numbers] == queried.rows[queried.queries]).all()
    are = queried.targets >= 0
    assert (targets[queried.targets[are]] == queried.numbers[are]).all()
    assert set(row_of[queried.numbers[are]].tolist()) == with_targets
    rows = len({row_of[number] for number in wanted})
    queries = rows if causal else len(with_targets) + int((~are).sum())
    assert queried.queries.tolist() == sorted(queried.queries.tolist())
    assert set(queried.queries.tolist()) == set(range(queries))


def test_a_number_that_is_two_targets_is_predicted_for_both(bench: Bench) -> None:
    single = row("once", TEXTS[0], 1, 2)
    double = single | {"targets": single["targets"] | {"again": single["targets"]["y1"]}}
    for objective in ("mlm", "ar"):
        once = run(bench.predictor("p1000", objective, [single]))
        predicted = run(bench.predictor("p1000", objective, [double]))
        assert predicted.values.tolist() == once.values[[0, 0, 1]].tolist()
        assert predicted.log_density == pytest.approx(once.log_density[[0, 0, 1]], abs=1e-5)


# --- which text a model sees -------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_numbers_without_targets_are_predicted_with_all_others_in_sight(
    bench: Bench, scheme: str
) -> None:
    predictor = bench.predictor(scheme, "mlm", [row("none", TEXTS[2]), row("one", TEXTS[0], 2)])
    predicted = run(predictor)
    for index in range(3):
        assert predicted.values[index] == pytest.approx(
            expected(predictor, 0, [index], index), 1e-4
        )
    assert predicted.values[3] == pytest.approx(expected(predictor, 1, [2], 2), 1e-4)


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_targets_of_one_row_do_not_see_each_other(bench: Bench, scheme: str) -> None:
    predictor = bench.predictor(scheme, "mlm", [row("two", TEXTS[3], 1, 4), row("one", TEXTS[6])])
    predicted = run(predictor)
    separate = [expected(predictor, 0, [index], index) for index in (1, 4)]
    for row_index, index in enumerate((1, 4)):
        assert predicted.values[row_index] == pytest.approx(
            expected(predictor, 0, [1, 4], index), 1e-4
        )
    assert predicted.values[:2] != pytest.approx(separate, 1e-2)


def expected(predictor: Predictor, row_index: int, hidden: Sequence[int], index: int) -> float:
    """Compute the prediction for a number of a row in which some numbers are masked."""
    scheme, normalizer = predictor.loaded.codec.scheme, predictor.loaded.codec.normalizer
    _, start, length = number_of(predictor.samples, row_index, index)
    predicted = masked_states(predictor, row_index, hidden)[start : start + length]
    if isinstance(scheme, ChannelScheme):
        value = centre(predictor, predicted[0]) / normalizer.constants["factor"]
        return value if greedy(scheme, scores(predictor, predicted)) == (0,) else math.nan
    return value_of(scheme, greedy(scheme, scores(predictor, predicted)))


def test_left_to_right_puts_each_token_in_before_it_reads_the_next(bench: Bench) -> None:
    predictor = bench.predictor("p1000", "mlm", [row("two", TEXTS[3], 1, 4)], fill=LEFT_TO_RIGHT)
    samples, codec = predictor.samples, predictor.loaded.codec
    tokens = samples.tokens.astype(int)
    starts = [number_of(samples, 0, index)[1] for index in (1, 4)]
    for start in starts:
        tokens[start : start + 3] = MASK
    paths: list[tuple[int, ...]] = [(), ()]
    for step in range(3):
        logits = scores(predictor, states(predictor.loaded.model, tokens, np.ones(len(tokens))))
        for which, start in enumerate(starts):
            allowed = codec.scheme.next(paths[which]).allowed
            chosen = int(np.where(allowed, logits[start + step], -np.inf).argmax())
            paths[which] += (chosen,)
        for which, start in enumerate(starts):  # both numbers at once
            tokens[start + step] = paths[which][-1] + codec.number_first
    assert run(predictor).values.tolist() == [value_of(codec.scheme, path) for path in paths]


@pytest.mark.parametrize("scheme", ["p1000", "digits", "xval"])
def test_an_autoregressive_model_says_each_target_after_the_true_text(
    bench: Bench, scheme: str
) -> None:
    """The reference reads the whole row again for each token."""
    predictor = bench.predictor(scheme, "ar", [row("two", TEXTS[3], 1, 4), row("one", TEXTS[6], 1)])
    samples, loaded = predictor.samples, predictor.loaded
    codec, predicted = loaded.codec, run(predictor)
    for result, (row_index, index) in enumerate([(0, 1), (0, 4), (1, 1)]):
        _, start, _ = number_of(samples, row_index, index)
        truth = causal_states(predictor, row_index)
        if scheme == "xval":
            value = centre(predictor, truth[start]) / codec.normalizer.constants["factor"]
            assert predicted.values[result] == pytest.approx(value, 1e-4)
            continue
        first = int(samples.token_rows[row_index])
        row_tokens = [END, *samples.tokens[first : first + start].tolist()]
        path: tuple[int, ...] = ()
        while len(path) < 64:
            tokens = np.array([*row_tokens, *(codec.number_first + item for item in path)])
            state = torch.from_numpy(states(loaded.model, tokens, np.ones(len(tokens)))[-1:])
            with torch.no_grad():
                logits = loaded.model.token_head(state)[0].numpy()
            allowed, may_end, _ = codec.scheme.next(path)
            every = np.full(len(logits), may_end)
            every[codec.number_first : codec.text_first] = allowed
            chosen = int(np.where(every, logits, -np.inf).argmax()) - codec.number_first
            if not 0 <= chosen < len(allowed):
                break
            path += (chosen,)
            if len(path) == codec.scheme.tokens_per_number:
                break
        if scheme == "digits":
            literal = "".join(codec.scheme.vocabulary()[token] for token in path)
            assert predicted.literals[result] == literal
        else:
            assert predicted.values[result] == value_of(codec.scheme, path)


@pytest.mark.parametrize("objective", ["ar", "mlm"])
def test_predictions_of_answers_are_scaled_back_by_their_own_factor(
    bench: Bench, objective: str
) -> None:
    """The first target is before the answer, the second in it: the standard deviation of the head's
    Gaussian is divided by each factor."""
    rows = [row("two", TEXTS[3], 1, 4) | {"answer_start": row("", TEXTS[3], 4)["answer_start"]}]
    predictor = bench.predictor("xval", objective, rows, normalize="scale:5,by=answer")
    predicted, constants = run(predictor), predictor.loaded.codec.normalizer.constants
    factors = [constants["factor"], constants["answer_factor"]]
    assert factors[0] != factors[1]
    assert np.isfinite(predicted.log_density_tailed).all()
    for index, factor in enumerate(factors):
        low, middle, high = predicted.quantiles[index][1:4]
        assert high - low == pytest.approx(1.3489795 * DEVIATION / factor, rel=1e-4)
        assert middle == pytest.approx(predicted.values[index], rel=1e-4)


# --- batches and order -------------------------------------------------------------------------

CASES = [
    ("p1000", "mlm", PARALLEL),
    ("p10", "mlm", LEFT_TO_RIGHT),
    ("digits", "mlm", PARALLEL),
    ("xval", "mlm", PARALLEL),
    ("b1999", "ar", AUTOREGRESSIVE),
    ("digits", "ar", AUTOREGRESSIVE),
    ("xval", "ar", AUTOREGRESSIVE),
]


@pytest.mark.parametrize("draws", [0, 3])
@pytest.mark.parametrize(("scheme", "objective", "fill"), CASES)
def test_results_do_not_depend_on_the_batch(
    bench: Bench, scheme: str, objective: str, fill: str, draws: int
) -> None:
    """Tokens are the same; sums of floats may be taken in another order and differ in last bits."""
    rows = [*ANSWERS, *MIXED]
    predictors = [
        bench.predictor(scheme, objective, rows, fill=fill, draws=draws, batch=size)
        for size in (7, 64)
    ]
    small, large = map(run, predictors)
    same(small, large, np.arange(len(large.values)))
    if not isinstance(SCHEMES.build(scheme), ChannelScheme):
        assert small.literals.tolist() == large.literals.tolist()
        # Sampled quantiles are equal because the same random numbers are drawn.
        if predictors[0].draws:
            assert small.quantiles.tolist() == large.quantiles.tolist()
    np.testing.assert_allclose(small.log_density, large.log_density, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("scheme", "objective", "fill"), CASES)
def test_results_do_not_depend_on_the_order_of_rows(
    bench: Bench, scheme: str, objective: str, fill: str
) -> None:
    rows = [*ANSWERS, *MIXED]
    order = np.random.default_rng(0).permutation(len(rows))
    straight = bench.predictor(scheme, objective, rows, fill=fill)
    shuffled = bench.predictor(scheme, objective, [rows[i] for i in order], fill=fill)
    order_ = keys(straight)
    back = np.array([order_.index(key) for key in keys(shuffled)])
    same(run(shuffled), run(straight), back)


def keys(predictor: Predictor) -> list[tuple[Any, int]]:
    """Return the row ID of each queried number and its index in the row."""
    queries, samples = predictor.asked, predictor.samples
    rows = queries.rows[queries.queries]
    numbers = queries.numbers - samples.number_rows[rows]
    return list(zip(samples.ids.take(rows).to_pylist(), numbers.tolist(), strict=True))


def same(token: Predicted, other: Predicted, places: NDArray[np.int64]) -> None:
    """Check that predictions are equal; metrics may differ by the rounding of reordered sums."""
    assert token.valid.tolist() == other.valid[places].tolist()
    assert token.on_grammar.tolist() == other.on_grammar[places].tolist()
    ours, theirs = token.values[token.valid], other.values[places][token.valid]
    assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    for ours, theirs in (
        (token.log_density, other.log_density[places]),
        (token.crps, other.crps[places]),
        (token.quantiles, other.quantiles[places]),
        (token.pit, other.pit[places]),
        (token.log_interval, other.log_interval[places]),
        (token.token_nll, other.token_nll[places]),
    ):
        # How far sums of float32 differ depends on the processor: 1.1e-4 on one without AVX-512.
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-4)


# --- the grammar -------------------------------------------------------------------------------


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[NumberReadings]:
    """Record all predictions, in the order in which they are computed."""
    kept: list[NumberReadings] = []
    read: Callable[..., NumberReadings] = Reader.read

    def reading(*arguments: Any, **options: Any) -> NumberReadings:
        kept.append(read(*arguments, **options))
        return kept[-1]

    monkeypatch.setattr(Reader, "read", reading)
    return kept


def failures(predictor: Predictor, reading: NumberReadings) -> NDArray[np.uint8]:
    tokens = reading.tokens[reading.tokens >= 0].astype(np.uint32)
    channel = None
    if isinstance(predictor.loaded.codec.scheme, ChannelScheme):
        channel = np.zeros(len(reading.tokens), np.float32)
    return predictor.loaded.codec.scheme.decode(tokens, reading.lengths, channel).failures


@pytest.mark.parametrize("scheme", [*map(by_size, FIXED)])
def test_constrained_decoding_gives_only_well_formed_numbers(
    bench: Bench, readings: list[NumberReadings], scheme: str
) -> None:
    rows = [row(index, text) for index, text in enumerate(TEXTS[::2])]
    for objective, fill in (("mlm", PARALLEL), ("mlm", LEFT_TO_RIGHT), ("ar", AUTOREGRESSIVE)):
        readings.clear()
        predictor = bench.predictor(scheme, objective, rows, fill=fill, draws=2)
        run(predictor)
        assert readings
        for reading in readings:
            assert Failure.MALFORMED not in failures(predictor, reading), fill


@pytest.mark.parametrize("scheme", [*map(by_size, [*TOKENS, "digits"])])
def test_free_decoding_gives_numbers_that_are_none(bench: Bench, scheme: str) -> None:
    for objective in ("mlm", "ar"):
        predicted = run(bench.predictor(scheme, objective, text=2.0, constrained=False))
        assert not predicted.valid.all(), objective
        assert [literal is None for literal in predicted.literals] == (~predicted.valid).tolist()
        assert np.isnan(predicted.values).tolist() == (~predicted.valid).tolist()


@pytest.mark.integration
def test_on_grammar_says_whether_free_decoding_would_have_given_a_number(
    bench: Bench, readings: list[NumberReadings]
) -> None:
    """Tested for parallel fill, where choices do not depend on each other."""
    rows = [row(index, text, last(text)) for index, text in enumerate(TEXTS * 3)]
    free = bench.predictor("fp15", "mlm", rows, text=1.5, constrained=False)
    run(free)
    well_formed = failures(free, readings[0]) != Failure.MALFORMED
    predicted = run(bench.predictor("fp15", "mlm", rows, text=1.5))
    order = np.argsort(
        -free.samples.lengths[free.asked.rows], kind="stable"
    )  # in order of processing
    assert predicted.on_grammar[order].tolist() == well_formed.tolist()
    assert 0 < well_formed.sum() < len(well_formed)


def constant(predictor: Predictor, logits: dict[str, float]) -> None:
    """Make a model predict the same logits everywhere; other tokens have logit 0."""
    model, codec = predictor.loaded.model, predictor.loaded.codec
    names = codec.scheme.vocabulary()
    with torch.no_grad():
        transformer(model).norm.weight.zero_()
        transformer(model).norm.bias.zero_()
        transformer(model).norm.bias[0] = 1.0
        weight = model.get_parameter("token_head.weight")
        weight.zero_()
        for name, logit in logits.items():
            weight[codec.number_first + names.index(name), 0] = logit


@pytest.mark.parametrize("objective", ["mlm", "ar"])
def test_a_model_that_always_says_the_same_is_read_by_hand(bench: Bench, objective: str) -> None:
    predictor = bench.predictor("p1000", objective)
    constant(predictor, {"-": 1, "602": 3, "E-1": 2})
    predicted = run(predictor)
    # Without constraints it would write 602 602 602.
    assert set(predicted.values.tolist()) == {-60.2}
    assert set(predicted.literals.tolist()) == {"-60.2"}
    assert predicted.valid.all() and not predicted.on_grammar.any()

    # 7 times -8 is -56: the tokens - 560 E-1 cover -56.05 to -55.95, with -56 in the middle.
    signs = math.log(math.e / (math.e + 9))  # the other sign and 8 extras have logit 0
    mantissa = math.log(1 / (math.exp(3) + 899))
    exponent = math.log(math.exp(2) / (math.exp(2) + 15))
    density = signs + mantissa + exponent - math.log(0.1)
    assert predicted.log_density[1] == pytest.approx(density, abs=1e-5)

    free = bench.predictor("p1000", objective, constrained=False)
    constant(free, {"-": 1, "602": 3, "E-1": 2})
    assert not run(free).valid.any()


def test_a_well_formed_number_that_is_not_finite_is_invalid_and_on_grammar(bench: Bench) -> None:
    for name in ("NAN", "+OVERFLOW", "-INF"):
        predictor = bench.predictor("b1999", "mlm")
        constant(predictor, {name: 9})
        predicted = run(predictor)
        assert predicted.on_grammar.all() and not predicted.valid.any()


# --- densities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "normalize"),
    [
        *(by_size(*token) for token in product(ROUNDING, ["none", "scale:5", "affine"])),
        *product(MANY, ["none", "scale:5"]),
        *product(["nd", "hamming"], ["unit"]),
    ],
)
def test_the_density_of_token_schemes_is_that_of_their_logits(
    bench: Bench, scheme: str, normalize: str
) -> None:
    """Masked softmax at each position, spread evenly over the interval, in raw units."""
    predictor = bench.predictor(scheme, "mlm", normalize=normalize)
    assert (predictor.support is None) == (scheme in MANY)
    samples, codec = predictor.samples, predictor.loaded.codec
    predicted = run(predictor)
    for row_index, text in enumerate(TEXTS):
        index = last(text)
        number, start, length = number_of(samples, row_index, index)
        path = path_of(predictor, row_index, index)
        logits = scores(predictor, masked_states(predictor, row_index, [index]))
        slope, offset = line(normalize, codec.normalizer.constants)
        low, high = ((end - offset) / slope for end in codec.scheme.interval(path))
        assert low <= samples.numbers[number] <= high
        mass = log_mass(codec.scheme, logits[start : start + length], path)
        assert predicted.log_density[row_index] == pytest.approx(
            mass - math.log(high - low), abs=1e-4
        )
        assert predicted.token_nll[row_index] == pytest.approx(-mass / len(path), abs=1e-5)


def line(normalize: str, constants: dict[str, float]) -> tuple[float, float]:
    """Return slope and offset of a linear normalization."""
    if normalize == "scale:5":
        return constants["factor"], 0.0
    if normalize == "affine":
        return 1 / constants["deviation"], -constants["mean"] / constants["deviation"]
    if normalize == "unit":
        return 1 / constants["width"], -constants["low"] / constants["width"]
    return 1.0, 0.0


@pytest.mark.parametrize("scheme", [*ROUNDING, "ud"])
def test_the_density_of_an_autoregressive_model_is_that_of_the_true_tokens(
    bench: Bench, scheme: str
) -> None:
    """Each token follows the true ones, in one pass over the row without a cache."""
    predictor = bench.predictor(scheme, "ar")
    scheme_ = predictor.loaded.codec.scheme
    predicted = run(predictor)
    for row_index, text in enumerate(TEXTS):
        _, start, length = number_of(predictor.samples, row_index, last(text))
        path = path_of(predictor, row_index, last(text))
        logits = scores(predictor, causal_states(predictor, row_index))[start : start + length]
        low, high = scheme_.interval(path)
        mass = log_mass(scheme_, logits, path)
        assert predicted.log_density[row_index] == pytest.approx(
            mass - math.log(high - low), abs=1e-4
        )
        assert predicted.token_nll[row_index] == pytest.approx(-mass / len(path), abs=1e-5)
    # With several tokens, only the probability of the true ones is known.
    assert (
        np.isnan(predicted.log_interval).all()
        == np.isnan(predicted.pit).all()
        == (scheme != "fp15")
    )


@pytest.mark.parametrize("objective", ["mlm", "ar"])
def test_zero_has_its_own_mass_and_not_a_density(bench: Bench, objective: str) -> None:
    predictor = bench.predictor("p1000", objective, [row("zero", "6 less 6 is 0", 2)])
    constant(predictor, {"ZERO": 2})
    # The first of three ZERO tokens is one of ten allowed tokens; after it, only ZERO is allowed.
    mass = math.log(math.exp(2) / (math.exp(2) + 9))
    assert run(predictor).log_density.tolist() == pytest.approx([mass], abs=1e-6)


def test_numbers_of_any_length_have_no_density(bench: Bench) -> None:
    for objective in ("mlm", "ar"):
        predicted = run(bench.predictor("digits", objective))
        assert np.isnan(predicted.log_density).all()
        assert np.isnan(predicted.crps).all() and np.isnan(predicted.quantiles).all()


@pytest.mark.parametrize("normalize", ["none", "scale:5", "affine", "signed-log"])
@pytest.mark.parametrize("objective", ["mlm", "ar"])
def test_the_density_of_a_scalar_head_is_a_gaussian_of_its_calibration(
    bench: Bench, objective: str, normalize: str
) -> None:
    predictor = bench.predictor("xval", objective, normalize=normalize)
    samples, constants = predictor.samples, predictor.loaded.codec.normalizer.constants
    predicted = run(predictor)
    for row_index, text in enumerate(TEXTS):
        number, start, _ = number_of(samples, row_index, last(text))
        hidden = (
            masked_states(predictor, row_index, [last(text)])
            if objective == "mlm"
            else causal_states(predictor, row_index)
        )
        x = float(samples.numbers[number])
        slope, offset = line(normalize, constants)
        normalised = slope * x + offset
        if normalize == "signed-log":
            normalised = math.copysign(math.log10(1 + abs(x)), x)
            slope = 1 / (1 + abs(x)) / math.log(10)
        t = (normalised - centre(predictor, hidden[start])) / DEVIATION
        density = -t * t / 2 - math.log(DEVIATION * math.sqrt(2 * math.pi)) + math.log(slope)
        assert predicted.log_density[row_index] == pytest.approx(density, rel=1e-4, abs=1e-4)
        below = NormalDist().cdf(t)
        assert predicted.pit[row_index] == pytest.approx(below, rel=1e-3, abs=1e-5)
    assert np.isnan(predicted.token_nll).all()


def test_the_interval_of_a_truth_is_half_a_unit_of_its_last_digit_to_each_side(
    bench: Bench,
) -> None:
    texts = {"6 and 7 is 42": 1.0, "6 and 7 is 42.50": 0.01, "6 and 7 is -0.125": 0.001}
    rows = [row(row_index, text, 2) for row_index, text in enumerate(texts)]
    predictor = bench.predictor("xval", "mlm", rows, normalize="scale:5")
    deviation = DEVIATION / predictor.loaded.codec.normalizer.constants["factor"]
    predicted = run(predictor)
    for row_index, (text, unit) in enumerate(texts.items()):
        truth, normal = float(text.split()[-1]), NormalDist(predicted.values[row_index], deviation)
        mass = normal.cdf(truth + unit / 2) - normal.cdf(truth - unit / 2)
        assert math.exp(predicted.log_interval[row_index]) == pytest.approx(mass, rel=1e-5)


# --- distributions and points ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "objective", "options"),
    [
        ("p1000", "mlm", {}),
        ("fp15", "ar", {}),  # one token per number: one pass is enough
        ("xval", "mlm", {}),
        ("xval", "ar", {}),
        ("p1000", "ar", {"draws": 16}),
        ("digits", "mlm", {"draws": 16}),
        ("p10", "mlm", {"draws": 16, "fill": LEFT_TO_RIGHT}),
    ],
)
def test_quantiles_ascend_and_crps_is_finite(
    bench: Bench, scheme: str, objective: str, options: dict[str, Any]
) -> None:
    predictor = bench.predictor(scheme, objective, **options)
    predicted = run(predictor)
    assert not np.isnan(predicted.quantiles).any()
    assert (predicted.quantiles[:, 1:] >= predicted.quantiles[:, :-1]).all()
    assert np.isfinite(predicted.crps).all()
    if not options:  # the CRPS of samples is an estimate
        assert (predicted.crps >= 0).all()


@pytest.mark.integration
def test_point_estimates_are_those_of_the_distribution(bench: Bench) -> None:
    """fp15 has one token per number, so the distribution is one softmax over all of them."""
    mode, median, mean = (
        bench.predictor("fp15", "mlm", point=point) for point in ("mode", "median", "mean")
    )
    scheme = mode.loaded.codec.scheme
    bounds = np.array([scheme.interval((token,)) for token in range(len(scheme.vocabulary()))])
    finite = np.isfinite(bounds).all(axis=1)
    predicted, medians, means = run(mode), run(median), run(mean)
    for row_index, text in enumerate(TEXTS):
        _, start, _ = number_of(mode.samples, row_index, last(text))
        logits = scores(mode, masked_states(mode, row_index, [last(text)]))[start]
        weights = np.exp(logits[finite])
        centres = bounds[finite].mean(axis=1)
        by_hand = float((weights * centres).sum() / weights.sum())
        scale = float((weights * np.abs(centres)).sum() / weights.sum())
        assert means.values[row_index] == pytest.approx(by_hand, abs=1e-4 * scale)
    assert medians.values.tolist() == predicted.quantiles[:, QUANTILES.index(0.5)].tolist()
    assert medians.literals.tolist() == [f"{value:.7g}" for value in medians.values.tolist()]
    assert predicted.values.tolist() != medians.values.tolist() != means.values.tolist()
    np.testing.assert_array_equal(predicted.log_density, means.log_density)


def test_a_gaussian_has_one_point(bench: Bench) -> None:
    mode, median, mean = (
        run(bench.predictor("xval", "mlm", point=point)) for point in ("mode", "median", "mean")
    )
    assert median.values == pytest.approx(mode.values, rel=1e-6)
    assert mean.values == pytest.approx(mode.values, rel=1e-6)


def test_the_mode_of_two_peaks_is_the_higher_one(bench: Bench) -> None:
    """With 70% near 10 and 30% near -10, only the mean is between them."""
    predicted = {}
    for point in ("mode", "median", "mean"):
        predictor = bench.predictor("xval", "mlm", head="mdn:2", normalize="none", point=point)
        reader = predictor.loaded.model.value_head
        assert reader is not None
        with torch.no_grad():
            reader.get_parameter("linear.weight").zero_()
            parameters = [*np.log([0.7, 0.3]), 10.0, -10.0, *np.log([0.5, 0.5])]
            reader.get_parameter("linear.bias").copy_(torch.tensor(parameters))
        predicted[point] = run(predictor)
    assert predicted["mode"].values == pytest.approx(10, abs=1e-4)
    assert predicted["median"].values == pytest.approx(10, abs=0.5)
    assert predicted["mean"].values == pytest.approx(4, abs=1e-4)
    assert predicted["mode"].literals[0] == "10"


@pytest.mark.parametrize(
    ("head", "expected"),
    [("mdn:2", "median"), ("scalar", "median"), ("decoder:ud", "median"), ("fone", "mode")],
)
def test_the_default_point_of_a_distribution_is_its_median(head: str, expected: str) -> None:
    assert default_point(HEADS.build(head)) == expected
    assert default_point(HEADS.build("token")) == default_point(None) == "mode"


@pytest.mark.parametrize(
    ("scheme", "objective", "options"),
    [
        ("p1000", "ar", {}),
        ("p1000", "mlm", {"fill": LEFT_TO_RIGHT}),
        ("digits", "mlm", {}),
        ("p10,digits=5", "mlm", {}),
    ],
)
def test_a_point_of_a_distribution_needs_one(
    bench: Bench, scheme: str, objective: str, options: dict[str, Any], says: Says
) -> None:
    with pytest.raises(UsageError) as caught:
        bench.predictor(scheme, objective, point="mean", **options)
    read = AUTOREGRESSIVE if objective == "ar" else options.get("fill", PARALLEL)
    says(caught, "--point mean", read, "--num-samples 64", "--point mode")
    assert caught.value.exit_code == 2
    assert bench.predictor(scheme, objective, point="mean", draws=2, **options).has_distribution


@pytest.mark.integration
def test_draws_follow_the_probabilities_of_the_model(bench: Bench) -> None:
    predictor = bench.predictor("b1999", "ar", ANSWERS * 20, point="median", draws=21)
    constant(predictor, {"-602": 20, "E-1": 20})
    predicted = run(predictor)
    assert set(predicted.values.tolist()) == {-60.2}
    assert set(predicted.quantiles.ravel().tolist()) == {-60.2}
    truth = predictor.samples.numbers[predictor.asked.numbers]
    assert predicted.crps.tolist() == pytest.approx(np.abs(truth + 60.2).tolist())

    # Two exponents have odds of three to one, so the median of 21 samples is almost always the
    # likelier one: 11 or more of 21 at probability 1/4 have a chance of 0.006.
    constant(predictor, {"-602": 40, "E-1": 40 + math.log(3), "E+1": 40})
    values = run(predictor).values
    assert 0 < (values == -6020).mean() < 0.03
    assert ((values == -60.2) | (values == -6020)).all()


def test_draws_are_the_same_each_time(bench: Bench) -> None:
    first, again = (run(bench.predictor("digits", "ar", draws=4)) for _ in range(2))
    np.testing.assert_array_equal(first.quantiles, again.quantiles)
    assert len(set(first.quantiles[:, 0].tolist())) > 1


def test_draws_of_a_number_differ_from_each_other_and_from_those_of_other_numbers(
    bench: Bench,
) -> None:
    """The model predicts the same distribution for every number."""
    predictor = bench.predictor("p1000", "ar", draws=8)
    constant(predictor, {"+": 40})
    predicted = run(predictor)
    assert (predicted.quantiles[:, 0] < predicted.quantiles[:, -1]).all()
    assert len(set(predicted.quantiles[:, 0].tolist())) == len(TEXTS)


# --- memory ------------------------------------------------------------------------------------


def on_each_pass(predictor: Predictor, look: Callable[[tuple[int, ...]], None]) -> None:
    """Call ``look`` with the shape of the model's input before each pass."""
    embedder = predictor.loaded.model.embedder
    embedder.register_forward_pre_hook(lambda _, inputs: look(tuple(inputs[0].shape)))


def failing(most: int, error: Exception) -> Callable[[tuple[int, ...]], None]:
    """Return a function that raises an error if there are more than ``most`` tokens."""

    def look(shape: tuple[int, ...]) -> None:
        if shape[0] * shape[1] > most:
            raise error

    return look


@pytest.mark.parametrize(
    ("objective", "fill", "error"),
    [
        ("mlm", PARALLEL, MemoryError()),
        ("mlm", LEFT_TO_RIGHT, torch.OutOfMemoryError("no")),
        ("ar", AUTOREGRESSIVE, RuntimeError("at alloc_cpu.cpp:1] . DefaultCPUAllocator: no")),
    ],
)
def test_batches_become_smaller_where_memory_is_out(
    bench: Bench, objective: str, fill: str, error: Exception
) -> None:
    rows = [*ANSWERS, *MIXED]
    predictor = bench.predictor("p1000", objective, rows, fill=fill, batch=9)
    expected = run(predictor)
    on_each_pass(predictor, failing(100, error))
    notes: list[str] = []
    done: list[tuple[int, int]] = []
    predicted = predictor.run(lambda *progress: done.append(progress), notes.append)
    assert notes == [
        "out of memory with --batch 9; continuing with 4",
        "out of memory with --batch 4; continuing with 2",
    ]
    assert predicted.literals.tolist() == expected.literals.tolist()
    np.testing.assert_allclose(predicted.log_density, expected.log_density, rtol=0, atol=1e-5)
    assert done == sorted(done) and done[-1] == 2 * (len(expected.values),)


def test_where_one_row_is_too_much_that_is_said(bench: Bench, says: Says) -> None:
    predictor = bench.predictor("p1000", "mlm", batch=2)
    on_each_pass(predictor, failing(0, MemoryError()))
    with says.raises(TrainingFailed, "out of memory with --batch 1"):
        predictor.run(lambda done, total: None, lambda note: None)


def test_an_error_that_is_none_of_memory_is_not_hidden(bench: Bench) -> None:
    predictor = bench.predictor("p1000", "mlm")
    on_each_pass(predictor, failing(0, RuntimeError("sizes do not match")))
    with pytest.raises(RuntimeError, match="sizes do not match"):
        run(predictor)


@pytest.mark.parametrize("objective", ["mlm", "ar"])
def test_no_pass_is_made_twice(bench: Bench, objective: str) -> None:
    """A row is read once for all its numbers, their densities and all samples."""
    read: list[tuple[int, ...]] = []
    predictor = bench.predictor("p1000", objective, [MIXED[1]], batch=2, draws=5)
    on_each_pass(predictor, read.append)
    run(predictor)
    longest = len(predictor.samples.tokens)
    if objective == "mlm":
        assert read == [(1, longest)]
    else:  # then two more tokens of both numbers, for greedy decoding and for each sample
        ends = predictor.samples.number_start + predictor.samples.number_length
        assert read == [(1, int(ends[-1])), *[(2, 1)] * 2 * 6]


# --- a value head next to tokens ---------------------------------------------------------------


def test_a_value_head_says_the_number_where_the_tokens_say_that_it_is_one(bench: Bench) -> None:
    predictor = bench.predictor("p1000", "mlm", normalize="scale:5", head="scalar")
    constant(predictor, {"-": 1, "602": 3, "E-1": 2})
    with torch.no_grad():
        predictor.loaded.model.get_parameter("value_head.module.2.weight").zero_()
        predictor.loaded.model.get_parameter("value_head.module.2.bias").fill_(2.0)
    factor = predictor.loaded.codec.normalizer.constants["factor"]
    predicted = run(predictor)
    assert predicted.values.tolist() == [2.0 / factor] * len(TEXTS)
    assert predicted.literals.tolist() == ["494.8"] * len(TEXTS)  # seven digits, as in float32

    constant(predictor, {"NAN": 9})
    assert not run(predictor).valid.any()


def test_a_value_that_leaves_float64_is_invalid(bench: Bench) -> None:
    predictor = bench.predictor("p1000", "mlm", normalize="signed-log", head="scalar")
    constant(predictor, {"-": 1, "602": 3, "E-1": 2})
    with torch.no_grad():
        predictor.loaded.model.get_parameter("value_head.module.2.weight").zero_()
        predictor.loaded.model.get_parameter("value_head.module.2.bias").fill_(800.0)  # e^800 - 1
    predicted = run(predictor)
    assert not predicted.valid.any() and np.isnan(predicted.values).all()
