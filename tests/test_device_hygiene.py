"""All tensors of a model stay on its device in training, inspection and prediction.

The tests use a fake device (``fake_device``), on which an operation on host and device tensors
raises. They cover every combination of embedder, trunk, head and objective. `just test-gpu` runs a
sample of them on a GPU.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import cycle
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import torch

from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.grammar import Grammar, Support
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.evaluation import predict
from numtok.evaluation.answers import AnswerOptions, AnswerReader
from numtok.evaluation.devices import ONE
from numtok.evaluation.labels import LabelReader
from numtok.evaluation.predict import Options, Predicted, Predictor
from numtok.models.decoding import Reader
from numtok.models.generation import Writer
from numtok.models.heads.base import HEADS, TokenHead, ValueHead
from numtok.models.likelihood import log_likelihoods
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.projections import projections
from numtok.models.steps import DecodingStates, ParallelFill, Prefill, SequentialFill
from numtok.models.trunks.base import TRUNKS, ColumnTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import spec_of
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.examples import SplitExamples
from numtok.training.features import Features
from numtok.training.model_files import LoadedModel
from numtok.training.ranks import ALONE
from numtok.training.text_learner import _calibration
from numtok.training.trained_table import FittingRecipe, Preparation
from numtok.training.trainer import Execution, Recipe, Trainer
from tests import combinations, fakemodels
from tests.cases import case, each
from tests.combinations import CLASSES, Combination
from tests.fake_device import FakeDevice
from tests.fakemodels import CPU, batch, codec, numbers_of, samples

one_thread = fakemodels.one_thread

TEXTS = ("2*3.5=-7", "a 4 b 1", "x 12.25 z=1e3")
ANSWERS, TARGETS, LABELS = (6, 2, 8), (2, 4, 6), ("no", "yes", "no")
BATCH, STEPS, WRITTEN = 2, 2, 3  # rows, steps, tokens of an answer
#: Device types, and whether they support float64.
KINDS = {"cuda": True, "mps": False}
_MASKED = {"parallel": True, "left-to-right": False}  # fill: constrained by the grammar
TO_HOST, FROM_HOST = "copy to the host", "copy from memory that is not pinned"


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """List all numbers of a scheme once for all tests, and keep them short."""
    list_numbers = Support.of
    made = cache(lambda spec: list_numbers(Grammar(SCHEMES.build(spec))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Support, "of", lambda grammar: made(spec_of(grammar.scheme)))
        patch.setattr(predict, "LONGEST", 4)
        yield


class Done(NamedTuple):
    """Results for a model: losses, what made training steps wait, and predictions."""

    losses: dict[str, float]
    waited: Counter[str]
    predicted: list[Predicted]


def lived(one: Combination, device: torch.device, fake: FakeDevice | None = None) -> Done:
    """Train a model, with a save and load after each step, validate and calibrate it, and run every
    kind of prediction."""
    rows = samples(one.scheme, TEXTS, answers=ANSWERS, targets=TARGETS, labels=LABELS)
    of, classes = codec(one.scheme), () if one.head else CLASSES
    split = SplitExamples(rows, of, OBJECTIVES.build(one.objective), BATCH, 0, classes)
    execution = Execution(device=device, accumulate=2)
    trainer = Trainer(one.model(), Recipe(learning_rate=0.01), execution, steps=STEPS)
    waited: Counter[str] = Counter()
    for step in range(STEPS):
        prepared = trainer.prepare(split.training_batch(step))
        with waiting(device, fake) as counted:
            trainer.learn(prepared)
        waited += counted
        tensors, plain = trainer.state()
        trainer.load({name: tensor.cpu() for name, tensor in tensors.items()}, plain)
    losses = trainer.means() | trainer.validate(split.validation_batches())
    if (answers := split.answers()) is not None:
        losses |= answers.shares(trainer.model)
    calibration = _calibration(trainer.model, split, 1, ALONE)
    trained = fakemodels.trained(
        calibration=calibration, calibrated_on="train" if calibration else None
    )
    loaded = LoadedModel(
        artifact=cast(Artifact, None), model=trainer.model.eval(), codec=of, trained=trained
    )
    return Done(losses, waited, list(asked(loaded, rows, split)))


@contextmanager
def waiting(device: torch.device, fake: FakeDevice | None) -> Iterator[Counter[str]]:
    """Count the waits for the device within the block; a real GPU raises instead."""
    if fake is not None:
        fake.syncs.clear()
        yield fake.syncs
    elif device.type != "cuda":
        yield Counter()
    else:
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield Counter()
        finally:
            torch.cuda.set_sync_debug_mode("default")


def asked(loaded: LoadedModel, rows: EncodedSplit, split: SplitExamples) -> Iterator[Predicted]:
    """Yield the predictions of every way of reading numbers, and check labels, whole answers,
    likelihoods and projections."""
    model = loaded.model
    if model.settings.classes:
        read = ONE.batches(LabelReader(loaded, rows, 2), ignored)
        found = np.concatenate([log_p for _, log_p in read])
        np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, rtol=1e-5)
        return
    fills = {"autoregressive": True} if model.objective.causal else _MASKED
    for fill, constrained in fills.items():
        how = Options(
            fill=fill, constrained=constrained, point="mode", draws=int(constrained), batch=BATCH
        )
        yield Predictor(loaded, rows, how, train_count=10).run(ignored, ignored)
    if model.objective.causal:
        every = np.arange(len(rows))
        for constrained in (True, False):
            reader = AnswerReader(loaded, rows, every, AnswerOptions(constrained, BATCH), WRITTEN)
            written = [*ONE.batches(reader, ignored)]
            assert sum(len(some) for some, _ in written) == len(rows)
    try:
        found = log_likelihoods(model, split.training_batch(0))
        assert not np.isnan(found).any()
    except UsageError:
        assert model.replaces_numbers or (
            isinstance(model.head, ValueHead) and not model.head.has_density
        )
    tokens = Vocabulary.of(loaded.codec).numbers
    if len(tokens):
        projections(model, int(tokens[0]), np.linspace(-2, 2, 3))


def ignored(*_: object) -> None:
    """Ignore progress and notes."""


def hold(one: Combination, *kinds: str) -> None:
    """Check that a model on a device matches the CPU, and that its steps do not wait."""
    expected = lived(one, CPU)
    for kind in kinds:
        with FakeDevice(kind, KINDS[kind]) as fake:
            found = lived(one, fake.device, fake)
        if kind == "mps":
            found.waited.pop(FROM_HOST, None)  # MPS has no pinned memory
        assert not found.waited, kind
        same = pytest.approx(expected.losses, rel=1e-4, abs=1e-5, nan_ok=True)
        assert found.losses == same, kind
        assert len(found.predicted) == len(expected.predicted), kind


@pytest.mark.integration
def test_a_sample_with_every_part_and_setting_stays_on_a_device_and_waits_for_nothing() -> None:
    """The devices alternate; the first case of each objective and kind of head uses both."""
    seen: set[tuple[str, bool]] = set()
    turns = cycle(KINDS)
    for one in combinations.sample():
        way = one.objective.partition(",")[0], one.head == "token"
        with case(str(one)):
            hold(one, *([next(turns)] if way in seen else KINDS))
        seen.add(way)


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU, and `just test-gpu`")
def test_a_sample_lives_on_a_gpu_as_on_the_cpu() -> None:
    gpu = device_of("cuda")
    for one in combinations.sample():
        with case(str(one)):
            expected, found = lived(one, CPU), lived(one, gpu)
            same = pytest.approx(expected.losses, rel=2e-3, abs=1e-4, nan_ok=True)
            assert found.losses == same


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_combination_stays_on_its_device_and_waits_for_nothing(kind: str) -> None:
    every = list(combinations.whole())
    without_scheme = {(one.trunk, one.embedder, one.head, one.objective) for one in every}
    print(f"{len(without_scheme)} combinations, {len(every)} with their schemes, on {kind}")
    assert len(without_scheme) >= 90
    for one in every:
        with case(str(one)):
            hold(one, kind)


# --- tables ------------------------------------------------------------------------------------


def fitted(head: ValueHead, trunk: ColumnTrunk, device: torch.device) -> list[float]:
    """Return the losses of a table model and summaries of its predicted distribution."""
    random = np.random.default_rng(0)
    columns, target = Features(random.standard_normal((20, 2)), []), random.standard_normal(20)
    recipe = FittingRecipe(epochs=2, patience=0, batch=8, learning_rate=0.01)
    how: dict[str, Any] = {"head": head, "trunk": trunk, "recipe": recipe, "device": device}
    prepared = Preparation.of(
        columns, target, None, normalizer=NORMALIZERS.build(head.normalizer), **how
    )
    losses = prepared.fitting.advance()[1:]
    tensors, plain = prepared.fitting.state()
    prepared.fitting.load({name: one.cpu() for name, one in tensors.items()}, plain)
    distribution = prepared.finished().predictive(columns)
    answers = [distribution.log_density(target), distribution.cdf(target), distribution.mean()]
    answers += [distribution.crps(target), distribution.quantiles([0.1, 0.5])[:, 0]]
    answers += [distribution.mode(), distribution.sample(3, np.random.default_rng(0))[:, 0]]
    return [*losses, *(float(one[np.isfinite(one)].mean()) for one in answers)]


@pytest.mark.integration
def test_every_head_of_a_table_stays_on_its_device() -> None:
    """The devices alternate."""
    trunks = [TRUNKS.build(combinations.small(name)) for name in TRUNKS]
    columns = [trunk for trunk in trunks if isinstance(trunk, ColumnTrunk)]
    specs = (*combinations.specs(HEADS), *combinations.variants(HEADS), "decoder:hamming")
    built = map(HEADS.build, specs)
    heads = [one for one in built if isinstance(one, ValueHead) and not isinstance(one, TokenHead)]
    pairs = [(head, trunk) for trunk in columns for head in heads]
    assert len(pairs) >= 8
    for (head, trunk), kind in zip(pairs, [*KINDS] * len(pairs), strict=False):
        with case(spec_of(head), kind):
            expected = fitted(head, trunk, CPU)
            with FakeDevice(kind, KINDS[kind]) as fake:
                found = fitted(head, trunk, fake.device)
            assert found == pytest.approx(expected, rel=2e-3, abs=1e-3)


# --- waits while numbers are read --------------------------------------------------------------


def read(
    scheme: str, objective: str, way: str, head: str | None = None
) -> tuple[int, Counter[str]]:
    """Return how many tokens were read one after the other, and the waits meanwhile."""
    of, rows = codec(scheme), batch(scheme, TEXTS, answers=ANSWERS)
    grammar, chosen = Grammar(of.scheme), numbers_of(rows)
    with FakeDevice("cuda") as fake:
        model = fakemodels.model(scheme, objective, context=96, head=head).to(fake.device)
        if way == "answers":
            fake.syncs.clear()
            written, _ = Writer(
                model=model, codec=of, grammar=grammar, constrained=True, longest=WRITTEN
            ).write(rows)
            return int((written.tokens >= 0).any(axis=0).sum()), fake.syncs
        steps: DecodingStates
        if way == "autoregressive":
            room = of.scheme.tokens_per_number or WRITTEN
            steps = Prefill(model, rows, chosen, room).steps(slice(None))
        else:
            steps = (ParallelFill.masked if way == "parallel" else SequentialFill)(
                model, rows, chosen
            )
        reader = Reader(model=model, codec=of, grammar=grammar, constrained=True, longest=WRITTEN)
        steps.first()
        fake.syncs.clear()
        tokens = reader.read(steps).tokens
        reader.score(steps.true(), tokens)
        return 2 * tokens.shape[1], fake.syncs


@each(
    ("scheme", "objective", "way", "head", "more"),
    [
        ("p1000", "mlm", "parallel", None, {}),
        ("p1000", "mlm", "left-to-right", None, {}),
        ("p1000", "ar", "autoregressive", None, {}),
        ("digits", "ar", "autoregressive", None, {}),
        ("numvalue", "numvalue", "autoregressive", None, {}),
        # The value enters with the token: once to read and once to score.
        ("xval", "ar", "autoregressive", None, {TO_HOST: 2}),
        # The number of distinct prefixes is a shape; each of eight tokens but the first has some.
        ("xval", "ar", "autoregressive", "decoder:ud", {TO_HOST: 2, "_unique2": 14}),
        ("p1000", "ar", "answers", None, {}),
        ("numvalue", "numvalue", "answers", None, {}),
    ],
)
def test_while_numbers_are_read_the_device_is_waited_for_once_a_token(
    scheme: str, objective: str, way: str, head: str | None, more: dict[str, int]
) -> None:
    """The host waits for the chosen token, because the grammar that allows the next one runs there.

    Only a few numbers are sent back: tokens, values and states of the grammar.
    """
    tokens, waited = read(scheme, objective, way, head)
    del waited[FROM_HOST]
    assert tokens and waited == Counter({TO_HOST: tokens}) + Counter(more)
