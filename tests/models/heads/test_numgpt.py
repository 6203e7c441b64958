"""NumGPT's heads: Equations 7 to 12 by hand, training, and predictions from text to report."""

import json
import math
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from numtok.encoding.grammar import Grammar
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme, splits_numbers
from numtok.errors import UsageError
from numtok.evaluation.raw_numbers import multiples
from numtok.models.decoding import Reader
from numtok.models.distributions.mixture import Mixture
from numtok.models.heads.base import HEADS, CalibratedReader
from numtok.models.likelihood import log_likelihoods
from numtok.models.model import Model
from numtok.models.number_heads import calibration_of
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.steps import ParallelFill
from numtok.models.training_batch import TrainingBatch
from numtok.registry import name_in
from numtok.seeds import generator
from numtok.sklearn import NumericRegressor
from numtok.stages import train as training
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.trainer import Execution, Recipe, Trainer
from numtok.training.weights import WEIGHTS
from tests import fakemodels
from tests.cases import each
from tests.fakeheads import value_head
from tests.fakemodels import CPU, batch, codec, model, numbers_of, transformer
from tests.messages import Says
from tests.models.heads import test_text_heads

one_thread = fakemodels.one_thread

TEXTS = ["(2 * 3.5) = -7", "", "no number", "8e3", "x 0 y 12.25 z 3e20"]
SMALLER = [text.replace("3e20", "3e2") for text in TEXTS]  # float32 holds their squares
TINY = "nano,layers=1,heads=2,width=16"


def example(objective: str, scheme: str = "numgpt", texts: list[str] = TEXTS) -> TrainingBatch:
    return OBJECTIVES.build(objective).example(batch(scheme, texts, targets=[2, 5]), generator(0))


def head_weight(of: Model, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return of.get_parameter(name).detach().double().numpy()


def row_likelihoods(of: Model, one: TrainingBatch) -> list[float]:
    """Return the log-likelihood of each row (Equation 12) in float64, position by position."""
    scheme, first = codec("numgpt").scheme, codec("numgpt").number_first
    w_z, w = head_weight(of, "token_head.select.weight"), head_weight(of, "token_head.words.weight")
    w_e = head_weight(of, "token_head.exponents.weight")
    w_f = head_weight(of, "value_head.point_reader.module.weight")[0]
    given = of.given(one)
    states = of.hidden(given.tokens, given.values, given.real).flatten(0, 1).detach().double()
    mantissas = dict(zip(one.number_where.tolist(), one.number_values.tolist(), strict=True))
    texts = [
        token
        for token in range(len(w))
        if not first <= token < first + scheme.paper_vocabulary_size
    ]
    total = [0.0] * len(one.tokens)
    for place, label in zip(one.where.tolist(), one.labels.tolist(), strict=True):
        h = states[place].numpy()
        z = np.exp(h @ w_z.T)
        if label in texts:  # z = 0
            scores = np.exp(h @ w[texts].T)
            log_p = math.log(z[0] / z.sum() * scores[texts.index(label)] / scores.sum())
        else:
            scores = np.exp(h @ w_e.T)
            density = math.exp(-((mantissas[place] - h @ w_f) ** 2)) / math.sqrt(math.pi)
            log_p = math.log(z[1] / z.sum() * scores[label - first] / scores.sum() * density)
        total[place // one.tokens.shape[1]] += log_p
    return total


# --- the loss -----------------------------------------------------------------------------------


@each("objective", ["ar", "mlm", "mlm:targets"])
def test_the_loss_is_equation_12_over_all_that_is_learnt(objective: str) -> None:
    of = model("numgpt", objective, size=TINY, spread=0.2)
    one = example(objective, texts=TEXTS * 3)
    assert len(one.where) > len(one.number_where) > 0 or objective == "mlm:targets"
    found = of.losses(of.given(one))
    expected = -sum(row_likelihoods(of, one)) / len(one.where)
    assert (found.token + found.value).item() == pytest.approx(expected, rel=1e-5)


def test_the_likelihood_of_rows_is_equation_12_of_each() -> None:
    for size in (f"{TINY},head_layers=1", TINY):
        of = model("numgpt", "ar", size=size, spread=0.2)
        one = example("ar")
        found = log_likelihoods(of, one)
        assert found == pytest.approx(row_likelihoods(of, one), rel=1e-5)
    some = example("mlm:targets")
    assert some.asked[0] is not None  # only some states are computed
    of = model("numgpt", "mlm:targets", size=TINY, spread=0.2)
    assert log_likelihoods(of, some) == pytest.approx(row_likelihoods(of, some), rel=1e-5)


def test_a_text_scheme_and_a_mixture_have_likelihoods_of_rows_too() -> None:
    for scheme, head in (("p1000", None), ("numgpt", "mdn:3"), ("xval", "mdn:3")):
        of, one = model(scheme, "ar", head=head, size=TINY), example("ar", scheme, SMALLER)
        losses = of.losses(of.given(one))
        total = losses.token * len(one.where) + losses.value * len(one.number_where)
        assert log_likelihoods(of, one).sum() == pytest.approx(-total.item(), rel=1e-5)


@each(
    ("of", "told"),
    [
        ({"head": "scalar"}, "numbers with scalar"),
        ({"head": "pointwise"}, "numbers with pointwise"),
        ({"head": "decoder:ud"}, "numbers with decoder:ud"),
        ({"classes": ["a", "b"]}, "labels only"),
    ],
)
def test_what_has_no_density_has_no_likelihood(of: dict[str, Any], told: str, says: Says) -> None:
    with says.raises(UsageError, told, "such as mdn:5"):
        log_likelihoods(model("numgpt", "ar", size=TINY, **of), example("ar"))


def test_mantissas_can_be_counted_by_the_numbers_instead() -> None:
    by_token, by_number = (
        model("numgpt", "ar", size=TINY, head=head) for head in ("numgpt", "numgpt,per=number")
    )
    one = example("ar")
    first, second = (of.losses(of.given(one)) for of in (by_token, by_number))
    assert first.token.item() == second.token.item()
    share = len(one.number_where) / len(one.where)
    assert 0 < share < 1
    assert first.value.item() == pytest.approx(share * second.value.item(), rel=1e-5)


def test_every_part_learns() -> None:
    of = model("numgpt", "ar", size=TINY).train()
    found = of.losses(of.given(example("ar")))
    (found.token + found.value).backward()  # type: ignore[no-untyped-call]
    for name in (
        *("token_head.select.weight", "token_head.words.weight", "token_head.exponents.weight"),
        *("value_head.point_reader.module.weight", "embedder.numerals.exponents.weight"),
        *("embedder.from_token.weight", "embedder.from_numeral.weight"),
        *("embedder.numeral", "embedder.text", "embedder.table.weight"),
    ):
        gradient = of.get_parameter(name).grad
        assert gradient is not None and gradient.any(), name
        assert gradient.isfinite().all(), name
    first = codec("numgpt").number_first
    for unused in ("token_head.words.weight", "embedder.table.weight"):
        gradient = of.get_parameter(unused).grad
        assert gradient is not None and not gradient[first : first + 23].any()


@each(
    ("head", "objective"),
    [
        ("numgpt", "ar"),
        ("numgpt", "mlm"),
        ("numgpt,per=number", "mlm:targets"),
        ("numgpt,per=number", "ar"),
        ("mdn:3", "mlm"),
    ],
)
def test_a_batch_that_is_learnt_in_parts_is_the_same_step(head: str, objective: str) -> None:
    one = example(objective, texts=TEXTS * 3)
    trainers = [
        Trainer(
            model("numgpt", objective, size=TINY, head=head),
            Recipe(learning_rate=0.01, warmup=0),
            Execution(device=CPU, accumulate=count),
            steps=2,
        )
        for count in (1, 2, 4)
    ]
    for trainer in trainers:
        trainer.advance(one)
    whole = trainers[0]
    for parts in trainers[1:]:
        for found, expected in zip(parts.model.parameters(), whole.model.parameters(), strict=True):
            assert found.grad is not None and expected.grad is not None
            torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-6)
        parts.model.load_state_dict(whole.model.state_dict())
        expected_means = pytest.approx(whole.validate([one]), rel=1e-4, nan_ok=True)
        assert parts.validate([one]) == expected_means


# --- what comes next ----------------------------------------------------------------------------


def test_the_probabilities_of_all_tokens_are_those_of_the_mixture() -> None:
    """Equation 7: probabilities sum to 1, and those of numerals to p(z = 1)."""
    of = model("numgpt", "ar", size=TINY)
    states, first = torch.randn(7, 16), codec("numgpt").number_first
    p = of.token_head(states).exp()
    torch.testing.assert_close(p.sum(dim=1), torch.ones(7))
    z = F.softmax(states @ of.get_parameter("token_head.select.weight").T, dim=1)
    torch.testing.assert_close(p[:, first : first + 23].sum(dim=1), z[:, 1])
    exponents = F.softmax(states @ of.get_parameter("token_head.exponents.weight").T, dim=1)
    torch.testing.assert_close(p[:, first : first + 23], exponents * z[:, 1:])


def test_a_tied_head_says_texts_by_the_table_and_exponents_by_its_own_weights() -> None:
    of = model("numgpt", "ar", size=f"{TINY},tied=yes")
    table = of.get_parameter("embedder.table.weight")
    assert of.token_head.get_parameter("words.weight") is table
    names = [name for name, _ in of.named_parameters()]
    assert "token_head.exponents.weight" in names
    assert "token_head.words.weight" not in names


@each("constrained", [True, False])
def test_a_number_is_the_most_probable_exponent_and_the_mantissa_beside_it(
    constrained: bool,
) -> None:
    of = model("numgpt", "mlm", size=TINY)
    one, first = batch("numgpt", TEXTS), codec("numgpt").number_first
    with torch.no_grad():  # the model always predicts a numeral
        transformer(of).norm.bias[0] = 30.0
        of.get_parameter("token_head.select.weight")[:, 0] = torch.tensor([-1.0, 1.0])
    reader = Reader(
        model=of,
        codec=codec("numgpt"),
        grammar=Grammar(codec("numgpt").scheme),
        constrained=constrained,
    )
    steps = ParallelFill.masked(of, one, numbers_of(one))
    reading = reader.read(steps, keep_logits=True)
    states = steps.first()
    expected = of.token_head(states)[:, first : first + 23].argmax(dim=1)
    assert reading.tokens[:, 0].tolist() == expected.tolist()
    assert reading.on_grammar.all()
    assert reading.parameters is not None and reading.logits is not None
    mantissas = of.value_point(reading.parameters)
    w_f = of.get_parameter("value_head.point_reader.module.weight")
    np.testing.assert_allclose(mantissas, (states @ w_f.T)[:, 0].detach().numpy(), rtol=1e-5)


@each("head", ["numgpt", "mdn:3"])
def test_a_number_has_the_density_of_exponent_and_mantissa(head: str) -> None:
    """p(x) = sum of p(e) p(x / 10^e) / 10^e, with p(e) conditional on a number."""
    of = model("numgpt", "mlm", size=TINY, head=head)
    states = torch.randn(4, 16)
    first, scheme = codec("numgpt").number_first, codec("numgpt").scheme
    assert of.value_head is not None
    none = FittedNormalizer(NORMALIZERS.build("none"), {})
    logits = of.token_head(states)[:, first : first + 26].detach()
    mantissa = of.value_head.predictive(of.value_head(states).detach(), {}, none)
    assert isinstance(scheme, ChannelScheme)
    found = multiples(mantissa, scheme, logits.numpy(), none)
    values = np.array([-4.0, 0.03, 77.0, 5e8])
    p = F.softmax(logits.double(), dim=1).numpy()
    expected = sum(
        p[:, e + 8] * np.exp(mantissa.log_density(values / 10.0**e)) / 10.0**e
        for e in range(-8, 13)
    )
    np.testing.assert_allclose(np.exp(found.log_density(values)), expected, rtol=1e-6)


# --- the value head -----------------------------------------------------------------------------


def test_the_gaussian_of_a_mantissa_has_variance_one_half_unless_it_is_measured() -> None:
    none = FittedNormalizer(NORMALIZERS.build("none"), {})
    for spec, calibrated, deviation in (
        ("numgpt", {}, math.sqrt(0.5)),
        ("numgpt,measured=yes", {"deviation": math.sqrt((4 + 0) / 2)}, math.sqrt(2)),
    ):
        reader, parameters = value_head(spec).build(4), torch.tensor([[1.0], [2.0]])
        assert isinstance(reader, CalibratedReader) == bool(calibrated)
        found = calibration_of(reader, parameters, np.array([3.0, 2.0]))
        assert found == pytest.approx(calibrated)
        one = reader.predictive(parameters, found, none)
        assert isinstance(one, Mixture)
        assert one.deviations.tolist() == [[pytest.approx(deviation)]] * 2
        assert one.centers.tolist() == [[1], [2]]


def test_settings_that_cannot_be_are_refused(says: Says) -> None:
    with says.raises(UsageError, "per must be ", "token or number"):
        HEADS.build("numgpt,per=row")


def test_a_table_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"head numgpt only applies to text models.*For a table, use a head of values",
    ):
        NumericRegressor("numgpt").fit(np.zeros((20, 1)), np.arange(20.0))


# --- from text to report ------------------------------------------------------------------------


data, store = test_text_heads.data, test_text_heads.store


def train(store: Store, scheme: str, head: str | None = None, **options: Any) -> Artifact:
    return test_text_heads.train(store, head, scheme, **({"preset": TINY, "steps": 4} | options))


def evaluated(store: Store, model: Artifact, scheme: str, **options: Any) -> dict[str, Any]:
    report = test_text_heads.evaluate(store, model, scheme, **options)
    found: dict[str, Any] = json.loads((report.path / "report.json").read_bytes())
    rows = pq.read_table(report.path / "predictions.parquet")
    found["rows"] = rows.to_pylist()
    return found


MASKED, CAUSAL = "mlm:targets", "ar:answer"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("objective", "scheme", "options"),
    [
        (MASKED, "numgpt", {}),
        (CAUSAL, "numgpt", {}),
        (CAUSAL, "dice", {}),
        (MASKED, "numgpt", {"head": "numgpt,per=number,measured=yes"}),
        (MASKED, "numgpt", {"head": "mdn:3"}),
        (CAUSAL, "numgpt", {"head": "riemann:32"}),
        (CAUSAL, "numgpt", {"head": "scalar"}),
        (MASKED, "numgpt", {"embedder": "scaled"}),
        (CAUSAL, "numgpt", {"embedder": "fourier"}),
        (MASKED, "numgpt", {"embedder": "lookup", "preset": f"{TINY},tied=yes"}),
        (CAUSAL, "xval", {"embedder": "numgpt"}),
        (MASKED, "xval", {"embedder": "dice", "head": "mdn:3"}),
    ],
)
def test_embedders_and_heads_combine_across_systems(
    store: Store, objective: str, scheme: str, options: dict[str, str]
) -> None:
    found = evaluated(store, train(store, scheme, objective=objective, **options), scheme)
    assert name_in(found["scheme"]) == scheme  # some schemes are sized to the data
    for metric in ("mse", "nll", "crps", "coverage", "pit-distance", "interval-nll"):
        assert found["metrics"][metric]["n"] == 40, metric
        bounded = options.get("head") == "riemann:32"
        assert found["metrics"][metric]["value"] is not None or (bounded and metric == "nll")
    for row in found["rows"]:
        assert row["valid"] is True
        assert np.isfinite([row["prediction"], row["log_density_tailed"], row["crps"]]).all()
    if scheme == "numgpt":
        assert "times powers of ten" in found["decoding"]["distribution"]


@pytest.mark.integration
def test_the_median_as_a_prediction_is_that_of_the_distribution(store: Store) -> None:
    """Both are a mantissa from the head, times the power of ten that a token names."""
    of = train(store, "numgpt", steps=40, learning_rate=1e-2)
    mode = evaluated(store, of, "numgpt", point="mode")["rows"]
    median = evaluated(store, of, "numgpt", point="median")["rows"]
    for one, other in zip(mode, median, strict=True):
        assert other["prediction"] == pytest.approx(other["q50"], rel=1e-9)
        assert one["q05"] < one["q50"] < one["q95"]
        exponent = math.floor(math.log10(abs(one["prediction"])))
        assert -9 < exponent < 13


@pytest.mark.integration
def test_one_token_is_read_alike_in_parallel_and_from_left_to_right(store: Store) -> None:
    model = train(store, "numgpt", objective="mlm", steps=2)
    both = [
        evaluated(store, model, "numgpt", fill=fill)["rows"]
        for fill in ("parallel", "left-to-right")
    ]
    for one, other in zip(*both, strict=True):
        assert one["prediction"] == pytest.approx(other["prediction"])


@pytest.mark.integration
def test_training_goes_down_and_a_model_is_found_again(store: Store) -> None:
    one = train(store, "numgpt", steps=60, learning_rate=1e-2)
    lines = (one.path / "metrics.jsonl").read_text().splitlines()
    losses = [line for line in map(json.loads, lines) if line["split"] == "train"]
    for part in ("token_loss", "value_loss"):
        assert losses[-1][part] < losses[0][part]
    assert train(store, "numgpt", steps=60, learning_rate=1e-2).ref == one.ref


@pytest.mark.parametrize(
    ("scheme", "options", "parts"),
    [
        ("xval", {"head": "numgpt"}, ("--head numgpt", "--scheme numgpt")),
        ("p1000", {"embedder": "dice"}, ("--embedder dice", "--embedder lookup")),
        (
            "numgpt",
            {"head": "token"},
            ("--head token", "cannot be combined with numgpt", "such as numgpt"),
        ),
    ],
)
def test_parts_that_do_not_go_together_are_refused_before_anything_is_begun(
    store: Store, scheme: str, options: dict[str, str], parts: tuple[str, ...], says: Says
) -> None:
    before = sorted(store.root.rglob("*"))
    with says.raises(UsageError, *parts):
        train(store, scheme, **options)
    assert sorted(store.root.rglob("*")) == before


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["numgpt", "dice"])
def test_labels_begin_with_the_embedder_of_a_model_of_numbers(store: Store, scheme: str) -> None:
    """A text model can be fine-tuned on labels with its embedder and trunk."""
    rows = [{"text": f"is {k} of it", "label": k % 2} for k in range(40)]
    path = store.root.parent / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    config = EncodeConfig((str(path),), like=f"arithmetic-{scheme}", name="labels")
    encode(config, store, lambda *_: None)
    first = train(store, scheme, objective="ar")
    config_of = training.Config(
        "labels",
        preset=f"{TINY},context=16",
        objective="classify",
        init=first.ref,
        steps=4,
        batch=8,
        learning_rate=1e-9,
    )
    made = training.run(config_of, store, lambda update: None).artifact
    before, after = (load_file(model.path / WEIGHTS) for model in (first, made))
    shared = before.keys() & after.keys()
    assert any("embedder" in name for name in shared)
    for name in shared:
        torch.testing.assert_close(after[name], before[name], atol=1e-7, rtol=0)


def test_only_schemes_that_split_numbers_are_asked_for_exponents() -> None:
    assert [name for name in SCHEMES if splits_numbers(SCHEMES.build(name))] == ["dice", "numgpt"]
