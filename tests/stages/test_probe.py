"""``numtok probe``: results, compared with eval, plain loops and hand-made embeddings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from numtok.analysis.probing.probe_records import (
    Along,
    Embedding,
    LoadedProbe,
    Probe,
    TokenComponents,
    read,
)
from numtok.analysis.probing.probes.base import PROBES
from numtok.analysis.probing.probes.embedding import EmbeddingProbe
from numtok.analysis.probing.probes.pca import tokens
from numtok.analysis.probing.swept_row import swept_row, written_alike
from numtok.analysis.probing.top_numbers import top_numbers
from numtok.cli.output.printing import Format
from numtok.cli.output.probe import print_probe
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError, NumtokError, UsageError
from numtok.evaluation.devices import ONE
from numtok.evaluation.predict import Options, Predictor
from numtok.models.decoding import Reader
from numtok.models.projections import projections
from numtok.numerals.column import Numerals
from numtok.stages import probe
from numtok.store.artifact import Artifact
from numtok.store.verification import verify
from numtok.training.model_files import LoadedModel, read_model
from tests import fakemodels
from tests.cases import case
from tests.chain import predictions_of as predictions
from tests.chain import quiet, there
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_eval import World, equation

one_thread = fakemodels.one_thread
SEEN = ("0.2", "0.3", "0.5")
ROWS = 12


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a world with sums whose results have three values in the train split and others in
    ``ood``."""
    made = World(tmp_path_factory.mktemp("probe"))
    rows = []
    for split, results in (("train", SEEN), ("ood", [f"0.2{k}1" for k in range(ROWS)])):
        for index in range(ROWS):
            numbers = f"{index + 1}", f"{index}.5", results[index % len(results)]
            targets = {"result": 2}
            rows.append(equation(f"{split}-{index}", *numbers, targets=targets, split=split))
    made.write("sums", rows)
    two = equation("a", "1", "2", "3", targets={"x": 1, "y": 2})
    made.write("two", [two | {"split": split} for split in ("train", "ood")])
    return made


def encoded(world: World, scheme: str = "p1000", of: str = "sums") -> Artifact:
    return world.encoded(scheme, str(world.root / f"{of}.jsonl"), name=f"{of}-{scheme}")


def by_chance(world: World, data: Artifact, objective: str = "mlm:targets") -> Artifact:
    """Return a model with random weights and well-spread predictions."""
    if isinstance(read_codec(data).scheme, ChannelScheme):
        return world.model(data, objective, steps=2)  # its head needs a calibration
    return world.by_chance(data, objective)


def probed(
    world: World, kind: str, model: Artifact, data: Artifact | None = None, **options: Any
) -> LoadedProbe:
    ref = None if data is None else data.ref
    config = probe.Config(kind, model.ref, ref, options=options)
    artifact = probe.run(config, world.store, quiet).artifact
    assert verify(artifact).problems == []
    return read(artifact)


def along(found: LoadedProbe) -> Along:
    assert isinstance(found.probe.found, Along)
    return found.probe.found


def column(found: LoadedProbe, name: str) -> list[Any]:
    values: list[Any] = found.points.column(name).to_pylist()
    return values


# --- over samples --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "objective"),
    [("p1000", "mlm:targets"), ("xval", "mlm:targets"), ("digits", "ar"), ("p10", "ar")],
)
def test_samples_are_predicted_as_by_eval(world: World, scheme: str, objective: str) -> None:
    data = encoded(world, scheme)
    model = by_chance(world, data, objective)
    found = probed(world, "examples", model, data, split="ood")
    evaluated = {row["id"]: row for row in predictions(world.report(model, data, split="ood"))}
    assert column(found, "x") == column(found, "truth") == sorted(column(found, "x"))
    assert len(found.points) == along(found).rows == ROWS
    for row in found.points.to_pylist():
        expected = evaluated[row["id"]]
        for name in ("truth", "prediction", "prediction_literal", "q05", "q95"):
            assert row[name] == expected[name]
    assert along(found).seen == 3
    assert there(found.seen).column("value").to_pylist() == [0.2, 0.3, 0.5]


def test_the_summary_follows_from_the_points(world: World) -> None:
    data = encoded(world)
    found = probed(world, "examples", by_chance(world, data), data, split="ood")
    y = np.array([one for one in column(found, "prediction") if one is not None])
    summary = along(found)
    assert (summary.target, summary.split) == ("result", "ood")
    assert (summary.number, summary.row) == (None, None)
    assert summary.distinct == len(np.unique(y))
    repeated = there(summary.repeated)
    assert repeated.exact.value == np.isin(y, [0.2, 0.3, 0.5]).mean()
    assert repeated.floor_rounded.value == 0.0  # 0.201 ... are not in the train split
    assert list(summary.errors) == ["model", "nearest seen value", "best constant"]
    truth = np.array(column(found, "truth"))
    nearest = np.array([min(map(float, SEEN), key=lambda one: abs(one - t)) for t in truth])
    error = summary.errors["nearest seen value"]["mae"].value
    assert error == pytest.approx(np.abs(nearest - truth).mean())
    assert (summary.low, summary.high) == (truth.min(), truth.max())


def test_data_encoded_elsewhere_are_compared_with_what_the_model_learnt_from(world: World) -> None:
    data = encoded(world)
    model = by_chance(world, data)
    numbers = ("1", "2", "0.7"), ("2", "3", "0.71"), ("3", "4", "0.72")
    rows = [equation(k, *one, targets={"result": 2}, split="ood") for k, one in enumerate(numbers)]
    other = world.like(data, world.write("elsewhere", rows))
    assert along(probed(world, "examples", model, other, split="ood")).seen == 3


# --- over one number -----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_a_swept_row_is_the_row_with_another_number_in_its_text(scheme: str) -> None:
    small = SCHEMES.build(scheme).unit_interval
    values = [0.5, 0.125, 1.0] if small else [0.0, 12.5, -3.0, 1234.0]
    texts = [f"from {one} to 7.5 it is 3.25, so" for one in ("100", *map(repr, values))]
    answers = [one.index(" it is") for one in texts]
    first: dict[str, Any] = {"answers": [-1, answers[0]], "targets": [1, 3]}
    samples = fakemodels.samples(scheme, ["no 1", texts[0]], **first)
    targets = [k for row in range(len(values)) for k in (3 * row, 3 * row + 2)]
    expected = fakemodels.samples(scheme, texts[1:], answers=answers[1:], targets=targets)
    found = swept_row(samples, 1, 0, fakemodels.codec(scheme), Numerals(np.array(values)))
    for name in (
        *("tokens", "token_rows", "number_rows", "numbers", "number_start", "number_length"),
        *("channel", "targets", "target_row", "answer_start"),
    ):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (mine is None) == (theirs is None)
        if theirs is not None:
            assert (mine.tolist(), mine.dtype) == (theirs.tolist(), theirs.dtype), name
    assert len(found.ids) == len(found) == len(expected)


@pytest.mark.parametrize(("stands", "whole"), [("7", "80"), ("7.5", "80.0"), ("1e3", "80")])
def test_whole_values_are_written_as_the_number_they_replace(stands: str, whole: str) -> None:
    samples = fakemodels.samples("digits", ["no 1", f"from {stands} to 2"], targets=[1])
    values = np.array([80.0, 0.25, 1e22])
    found = written_alike(values, samples, 1, 0, fakemodels.codec("digits"))
    assert [found.literals.at(k) for k in range(3)] == [whole, "0.25", "1e+22"]
    assert found.values.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("scheme", "objective"), [("p1000", "mlm:targets"), ("p10", "ar"), ("digits", "ar")]
)
def test_a_sweep_predicts_as_rows_with_a_number(world: World, scheme: str, objective: str) -> None:
    data = encoded(world, scheme)
    model = by_chance(world, data, objective)
    found = probed(
        world, "vary", model, data, split="ood", row="ood-3", number=0, from_=1, to=9, points=5
    )
    assert column(found, "x") == [1.0, 3.0, 5.0, 7.0, 9.0]
    rows = [
        equation(k, f"{2 * k + 1}", "3.5", "0.231", targets={"result": 2}, split="swept")
        for k in range(5)
    ]
    other = world.like(data, world.write(f"swept-{scheme}", rows))
    expected = predictions(world.report(model, other, split="swept"))
    assert column(found, "prediction") == [row["prediction"] for row in expected]
    assert column(found, "q50") == [row["q50"] for row in expected]
    assert column(found, "truth") == [None] * 5
    summary = along(found)
    assert (summary.row, summary.number, summary.rows, summary.errors) == ("ood-3", 0, 5, {})
    assert summary.jump is not None and summary.jump.of_truth is None


def test_the_range_is_that_of_the_place_in_the_train_split(world: World) -> None:
    data = encoded(world)
    found = probed(world, "vary", by_chance(world, data), data, split="ood", number=0, points=12)
    assert column(found, "x") == [float(k) for k in range(1, 13)]
    assert found.probe.notes == [
        "The range is that of number 0 in the 12 rows of the train split that have 3 numbers."
    ]
    assert along(found).row == "ood-0"
    how: dict[str, Any] = {"split": "ood", "number": 0, "to": 3.0, "points": 3}
    half = probed(world, "vary", by_chance(world, data), data, **how)
    assert column(half, "x") == [1.0, 2.0, 3.0]


def test_a_number_that_is_a_target_twice_is_one_prediction(world: World) -> None:
    rows = []
    for index in range(4):
        row = equation(index, f"{index}", "2", f"0.{index + 1}", targets={"a": 2}, split="train")
        [span] = row["targets"]["a"]
        rows.append(row | {"targets": {"a": [span, span], "b": [span]}})
    data = world.encoded("p1000", world.write("twice", rows), name="twice")
    model = by_chance(world, data)
    found = probed(world, "examples", model, data, split="train", target="a")
    assert column(found, "x") == [0.1, 0.2, 0.3, 0.4]
    logs = np.array([column(found, f"log_p_{k}") for k in range(5)])
    assert (logs < 0).all() and (np.exp(logs).sum(axis=0) <= 1).all()
    swept = probed(world, "vary", model, data, split="train", target="b", number=0, points=4)
    assert column(swept, "x") == [0.0, 1.0, 2.0, 3.0]
    assert column(swept, "prediction")[0] == column(found, "prediction")[0]


# --- numbers that are probable -------------------------------------------------------------------

SUMS = [f"({k} + 2) = {value}" for k, value in enumerate((0.2, 0.35, 1.5, 0.2))]


def predictor(scheme: str, objective: str, samples: EncodedSplit | None = None) -> Predictor:
    samples = samples or fakemodels.samples(scheme, SUMS, targets=[2, 5, 8, 11])
    fill = "autoregressive" if objective == "ar" else "parallel"
    options = Options(fill=fill, constrained=True, point="mode", draws=0, batch=4)
    return Predictor(loaded(scheme, objective), samples, options)


@pytest.mark.parametrize("scheme", ["p1000", "fp15", "b1999"])
def test_top_numbers_are_the_most_probable_of_all(scheme: str) -> None:
    of = predictor(scheme, "mlm:targets")
    found = top_numbers(of, of.asked.numbers, 4, ONE, print)
    assert found.among == "all numbers of the scheme"
    support = there(of.support)
    every = np.full((4, len(support.values)), np.nan)
    for asked, steps in of.passes(np.arange(len(of.asked.rows))):
        logits = there(of.reader.read(steps, keep_logits=True).logits)
        every[np.searchsorted(of.asked.numbers, asked)] = support.log_probabilities(logits)
    best = np.sort(np.argsort(-every.max(axis=0), kind="stable")[:4])
    np.testing.assert_allclose(found.log_p, every[:, best], rtol=1e-9)
    values = support.values[best]
    np.testing.assert_array_equal(found.values, np.where(np.isfinite(values), values, np.nan))
    assert found.log_p.max() < 0


@pytest.mark.parametrize(("scheme", "objective"), [("digits", "ar"), ("p10", "ar"), ("ud", "mlm")])
def test_elsewhere_they_are_predicted_most_often(scheme: str, objective: str) -> None:
    of = predictor(scheme, objective)
    found = top_numbers(of, of.asked.numbers, 3, ONE, print)
    assert found.among.startswith("the numbers predicted most often")
    predicted = of.run(lambda done, total: None, lambda note: None)
    literals = [one for one in predicted.literals.tolist() if one]
    if np.isfinite(found.values[0]):
        assert literals.count(found.literals[0]) == max(map(literals.count, literals))
    codec = of.loaded.codec
    for asked, steps in of.passes(np.arange(len(of.asked.rows))):  # again, with a new reader
        reader = Reader(
            model=of.loaded.model,
            codec=codec,
            grammar=of.grammar,
            constrained=True,
            longest=of.longest,
        )
        read_tokens = reader.read(steps).tokens
        own = reader.score(steps, read_tokens)
        for number, path, log_p in zip(asked.tolist(), read_tokens, own, strict=True):
            local = path[path >= 0].astype(np.uint32)
            decoded = codec.decode_numbers(local, np.array([len(local)], np.int32))
            if len(local) and not decoded.failures[0] and decoded.literal(0) in found.literals:
                place = int(np.searchsorted(of.asked.numbers, number))
                mine = found.log_p[place, found.literals.index(decoded.literal(0))]
                assert mine == pytest.approx(log_p, rel=1e-4)


def test_a_number_of_another_length_has_no_probability_where_masks_say_how_long() -> None:
    samples = fakemodels.samples("digits", ["it is 7", "it is 42", "it is 38"], targets=[0, 1, 2])
    of = predictor("digits", "mlm:targets", samples)
    found = top_numbers(of, of.asked.numbers, 3, ONE, print)
    for log_p, literal in zip(found.log_p.T, found.literals, strict=True):
        of_length = np.array([1, 2, 2]) == len(literal)
        assert np.isneginf(log_p[~of_length]).all() and np.isfinite(log_p[of_length]).all()


# --- embeddings ----------------------------------------------------------------------------------


def loaded(scheme: str, objective: str = "mlm:targets", **options: Any) -> LoadedModel:
    return LoadedModel(
        artifact=Artifact(Path(), "model", "fake", "0" * 16),
        model=fakemodels.model(scheme, objective, **options),
        codec=fakemodels.codec(scheme),
        trained=fakemodels.trained(),
    )


def embedded(of: LoadedModel, low: float, high: float, points: int) -> tuple[Embedding, "pa.Table"]:
    found, table, *_ = EmbeddingProbe(low, high, points).run(fakemodels.probe_inputs(of))
    assert isinstance(found, Embedding)
    return found, table


def token_components(
    of: LoadedModel, train: EncodedSplit | None
) -> tuple[TokenComponents, "pa.Table", list[str]]:
    found, table, notes, _ = tokens(of, train)
    assert isinstance(found, TokenComponents)
    return found, table, notes


def set_(parameter: Tensor, values: Any) -> None:
    with torch.no_grad():
        parameter.copy_(torch.as_tensor(values, dtype=torch.float32))


class Curved(torch.nn.Module):
    """An embedder that adds a curve of the value to the vector of the token."""

    def __init__(self, of: LoadedModel, curve: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(of.codec.vocabulary_size, 16)
        self.curve = curve

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        made: Tensor = self.table(tokens_BL) + self.curve(values_BL)
        return made


def test_an_embedding_orthogonal_to_its_positions_saturates_as_the_paper_says() -> None:
    of = loaded("xval", context=8)
    codec, width = of.codec, 16
    u, p = np.zeros(width), np.zeros((8, width))
    u[:2] = 3.0, -3.0
    p[:, 2], p[:, 3] = 3.0, -3.0
    p[4:] *= 2.0  # half of the positions are twice as long
    set_(of.model.get_parameter("embedder.table.weight")[codec.number_first], u)
    set_(of.model.get_parameter("trunk.positions"), p)
    found, points = embedded(of, -6.0, 6.0, 25)
    assert (found.direction, found.positions) == ("the vector of [NUM]", 8)
    assert found.scale == pytest.approx(1.5, rel=1e-4)
    assert found.scale_deviation == pytest.approx(0.5, rel=1e-3)
    assert found.cosine == pytest.approx(0.0, abs=1e-6)
    assert found.offset == pytest.approx(0.0, abs=1e-4)
    assert found.height == pytest.approx(4.0, rel=1e-4)  # the square root of the width
    assert found.residual is not None and found.residual < 1e-5
    x = np.array(points.column("x").to_pylist())
    low, high = (4 * x / np.sqrt(r**2 + x**2) for r in (2.0, 1.0))
    mean = np.array(points.column("mean").to_pylist())
    np.testing.assert_allclose(mean, (low + high) / 2, atol=1e-4)
    for name, wanted in (("high", np.maximum(low, high)), ("deviation", np.abs(high - low) / 2)):
        np.testing.assert_allclose(points.column(name).to_pylist(), wanted, atol=1e-4)
    assert np.interp(there(found.half), x, mean) == pytest.approx(mean[-1] / 2, abs=1e-3)


def test_an_embedding_that_is_no_multiple_is_seen_along_its_own_first_component() -> None:
    of = loaded("xval", context=4)
    of.model.embedder = Curved(of, lambda x: torch.tanh(x)[:, :, None] * torch.linspace(1, 2, 16))
    found, points = embedded(of, -3.0, 3.0, 9)
    assert found.direction == "the first principal component of the mean over positions"
    assert (found.formula, found.scale, found.offset, found.residual) == (None, None, None, None)
    assert points.column("formula").null_count == 9
    mean = points.column("mean").to_pylist()
    assert mean[-1] > mean[0]


@pytest.mark.parametrize(
    ("curve", "levels_off"),
    [
        (lambda x: torch.tanh(x), True),
        (lambda x: -torch.tanh(x), True),
        (lambda x: x, False),
        (lambda x: x + x**2 / 6, False),
        (lambda x: torch.sin(x), False),  # rises and falls
        (lambda x: 1 - torch.cos(x), False),  # as flat at the start as at the end
    ],
)
def test_only_an_embedding_that_levels_off_has_a_half_way_up(
    curve: Callable[[Tensor], Tensor], levels_off: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    of = loaded("xval", context=4)
    # Small compared with position vectors, so that layer norm preserves the curve.
    small = 1e-3 * torch.linspace(-1, 1, 16)
    of.model.embedder = Curved(of, lambda x: curve(x)[:, :, None] * small)
    found, _ = embedded(of, -3.0, 3.0, 25)
    assert (found.half is not None) == levels_off
    made = Probe(
        model="m@1",
        name="m",
        scheme="xval",
        configuration={},
        seed=0,
        form="embedding",
        found=found,
        notes=[],
    )
    print_probe(LoadedProbe("p@1", made, pa.table({}), None), Format.TABLE)
    assert ("half height" in capsys.readouterr().err) == levels_off


def test_an_embedding_that_looks_at_no_value_has_no_direction(says: Says) -> None:
    of = loaded("p1000")
    assert projections(of.model, of.codec.number_first, np.linspace(-1, 1, 5)) is None
    told = "probe embedding ", "'lookup' of fake@0000000000000000", "Use probe pca"
    with says.raises(UsageError, *told):
        embedded(of, -1.0, 1.0, 5)


def test_components_are_of_mantissas_and_of_those_in_the_train_split() -> None:
    of = loaded("p1000")
    found, points, notes = token_components(of, None)
    assert (found.tokens, notes) == (900, [])
    assert points.column("token").to_pylist() == [str(value) for value in range(100, 1000)]
    train = fakemodels.samples("p1000", ["1.5 and 0.25", "37.5", "-1.5"])
    found, points, notes = token_components(of, train)
    assert points.column("value").to_pylist() == [150.0, 250.0, 375.0]
    assert notes == ["897 number tokens are not in the train split and left out."]
    table = of.model.get_parameter("embedder.table.weight").detach().double().numpy()
    names = of.codec.scheme.vocabulary()
    vectors = table[[of.codec.number_first + names.index(one) for one in ("150", "250", "375")]]
    places = np.stack([points.column(f"pc{k}").to_pylist() for k in (1, 2, 3)], axis=1)
    between = vectors[:, None] - vectors
    np.testing.assert_allclose(  # three points span only two components
        np.linalg.norm(places[:, None] - places, axis=2), np.linalg.norm(between, axis=2), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("scheme", "first", "last", "count"),
    [("fp15", "-999E+7", "+999E+7", 28800), ("b1999", "-999", "+999", 1800), ("p10", "0", "9", 10)],
)
def test_numbers_and_digits_are_tokens(scheme: str, first: str, last: str, count: int) -> None:
    found, points, _ = token_components(loaded(scheme), None)
    names = points.column("token").to_pylist()
    assert (found.tokens, names[0], names[-1]) == (count, first, last)
    assert (np.diff(points.column("value").to_pylist()) > 0).all()


# --- errors --------------------------------------------------------------------------------------


def test_settings_that_cannot_be_are_refused(says: Says) -> None:
    cases: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
        ("vary", {"number": -1}, ("--number", "at least 0 (got -1)")),
        ("vary", {"number": 0, "points": 2}, ("--points", "at least 3 (got 2)")),
        ("examples", {"top": -1}, ("--top", "at least 0 (got -1)")),
        ("examples", {"digits": 0}, ("--digits", "at least 1 (got 0)")),
        (
            "vary",
            {"number": 0, "from_": 2.0, "to": 2.0},
            ("--from must be less than --to", "2 and 2"),
        ),
        ("embedding", {"from_": 20.0}, ("--from must be less than --to", "20 and 10")),
        ("vary", {"number": 0, "to": "inf"}, ("--to", "finite (got inf)")),
        ("vary", {"number": 0, "from_": "low"}, ("--from", "a number (got 'low')")),
    ]
    for kind, options, told in cases:
        with case(told[0]), says.raises(UsageError, *told):
            PROBES.build(kind, options)


def test_what_is_not_in_the_data_is_refused_with_what_is(world: World, says: Says) -> None:
    data = encoded(world)
    model = by_chance(world, data)
    split = f"split 'ood' of {data.ref}"
    row = f"row 'ood-0' of {split}"
    cases: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        ("examples", {"split": "test"}, (f"{data.ref} 'test'. Known: ood, train",)),
        ("examples", {"target": "resul"}, (f"{split} 'resul'. Did you mean 'result'?",)),
        ("vary", {"number": 0, "row": "ood-x"},
         (f"{split} 'ood-x'. Did you mean 'ood-4'?", "12 in all")),
        ("vary", {"number": 3}, ("--number must be 0 to 2 (got 3)", f"{row} has 3 numbers")),
        ("vary", {"number": 2}, ("--number 2 ", f"{row} is a target", "another number of 0 to 2")),
        ("vary", {"number": 0, "to": 1e12, "from_": 1.0},
         ("'p1000' cannot represent 1e+10", "-9.99e+09 to 9.99e+09", "--from and --to")),
    ]  # fmt: skip
    for kind, options, told in cases:
        with case(told[0]), says.raises(UsageError, *told):
            probed(world, kind, model, data, **{"split": "ood"} | options)


def test_a_probe_is_of_data_that_fit_the_model_and_it(world: World, says: Says) -> None:
    data, other, xval = encoded(world), encoded(world, "p10"), encoded(world, "xval")
    model, value = by_chance(world, data), by_chance(world, xval)
    rows = [{"id": str(k), "text": f"{k} and {k}", "split": "train"} for k in range(4)]
    bare = world.encoded("p1000", world.write("bare", rows), name="bare")
    masked = by_chance(world, bare, "mlm")
    cases: list[tuple[str, tuple[Artifact, ...], dict[str, Any], tuple[str, ...]]] = [
        ("examples", (model,), {}, ("probe examples needs encoded data",)),
        ("vary", (model,), {"number": 0}, ("probe vary needs encoded data",)),
        ("embedding", (model, data), {}, ("only a model", f"Leave out {data.ref}")),
        ("examples", (model, other), {"split": "ood"},
         (f"{other.ref} is not encoded like the training data of {model.ref}",
          f"numtok encode --reuse-encoding {model.ref} INPUT")),
        ("pca", (value,), {}, (f"scheme 'xval' of {value.ref} has 0", "Use probe embedding")),
        ("examples", (masked, bare), {"split": "train"},
         (f"split 'train' of {bare.ref} has no targets", "Encode rows with targets")),
    ]  # fmt: skip
    for kind, refs, options, told in cases:
        with case(kind, told[0]), says.raises(UsageError, *told):
            probed(world, kind, *refs, **options)


def test_several_targets_must_be_named_and_one_truth_is_too_few(world: World, says: Says) -> None:
    data = encoded(world, of="two")
    model = by_chance(world, data)
    told = f"split 'ood' of {data.ref}"
    y = {"target": "y"}
    cases: list[tuple[type[NumtokError], str, dict[str, Any], tuple[str, ...]]] = [
        (UsageError, "examples", {}, (f"{told} has the targets x, y", "--target")),
        (DataError, "examples", y, (f"{told} has 1 distinct values of target 'y'", "at least 3")),
        (UsageError, "vary", y | {"number": 1},
         ("--number 1 ", f"row 'a' of {told} is a target", "another number of 0 to 2")),
        (UsageError, "vary", y | {"number": 0}, ("--number 0 needs --from and --to",)),
    ]  # fmt: skip
    for error, kind, options, parts in cases:
        with case(parts[0]), says.raises(error, *parts):
            probed(world, kind, model, data, split="ood", **options)


def test_an_autoregressive_model_is_swept_before_the_target_alone(world: World, says: Says) -> None:
    data = encoded(world, of="two")
    model = by_chance(world, data, "ar")
    options: dict[str, Any] = {"split": "ood", "from_": 1.0, "to": 2.0, "points": 3}
    row = f"row 'a' of split 'ood' of {data.ref}"
    told = "--number 2 ", "autoregressive", row, "the target, number 1", "before the target"
    with says.raises(UsageError, *told):
        probed(world, "vary", model, data, target="x", number=2, **options)
    # Number 1 is also a target, but the model reads its true value.
    found = probed(world, "vary", model, data, target="y", number=1, **options)
    assert along(found).number == 1


# --- the command ---------------------------------------------------------------------------------


def test_the_command_prints_one_ref_and_finds_it_again(numtok: Shell, world: World) -> None:
    data = encoded(world)
    model = by_chance(world, data)
    store = "--store", str(world.store.root)
    commands = [
        ("examples", model.ref, data.ref, "--split", "ood"),
        ("vary", model.ref, data.ref, "--split", "ood", "--number", "1", "--from", "-2"),
        ("pca", model.ref, data.ref),
        ("pca", model.ref),
    ]
    for words in commands:
        ran = numtok(*store, "probe", *words, "--device", "cpu")
        assert ran.code == 0, ran.err
        assert ran.out.count("\n") == 1
        assert ran.err.startswith(f"probe {ran.out.strip()}: p1000, seed 0\n")
        assert max(map(len, ran.err.splitlines())) <= 80
        artifact = world.store.resolve(ran.out.strip())
        assert artifact.kind == "probe"
        again = numtok("-q", *store, "probe", *words, "--device", "cpu")
        assert (again.code, again.out, again.err) == (0, ran.out, "")
        assert numtok(*store, *artifact.manifest.command[1:]).out == ran.out
        forced = numtok(*store, "probe", *words, "--device", "cpu", "--force")
        assert (forced.code, forced.out) == (0, ran.out)


def test_json_csv_and_markdown_hold_the_summary(numtok: Shell, world: World) -> None:
    data = encoded(world, "xval")
    model = by_chance(world, data)
    words = "--store", str(world.store.root), "probe", "embedding", model.ref, "--points", "9"
    ran = numtok(*words, "--json")
    found = json.loads(ran.out)
    assert (found["schema"], found["probe"]["form"]) == (1, "embedding")
    context = read_model(model, torch.device("cpu")).model.settings.context
    assert found["probe"]["found"]["positions"] == context
    table = numtok(*words, "--format", "csv").out.splitlines()
    assert table[0] == "figure,value,low,high"
    assert f"positions,{context},," in table
    assert numtok(*words, "--format", "md").out.startswith("probe ")
    read_back = read(world.store.resolve(found["ref"])).probe.found
    assert isinstance(read_back, Embedding) and not isinstance(read_back, TokenComponents)


def test_a_model_of_tables_is_refused(numtok: Shell, tmp_path: Path, says: Says) -> None:
    lines = [f"{x},{x * x}" for x in range(40)]
    (tmp_path / "squares.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    options = "--preset", "mlp,layers=1,width=8", "--epochs", "1", "--head", "pointwise"
    ran = numtok("train", "squares.csv", "--target", "y", *options)
    assert ran.code == 0, ran.err
    ref = ran.out.strip()
    told = f"{ref} is a table model", "`numtok eval`", "figure curve`"
    says.refused(numtok("probe", "pca", ref), 2, *told)


def test_a_command_line_of_before_is_told_the_form_of_now(numtok: Shell, says: Says) -> None:
    for words, form in (
        (("data",), "examples MODEL ENCODED"),
        (("data", "--sweep", "0"), "vary MODEL ENCODED --number N"),
        (("data", "--confidence"), "confidence MODEL ENCODED"),
        (("--text=From 3 to 7",), "confidence MODEL --text TEXT"),
        (("--embedding",), "embedding MODEL"),
        (("data", "--pca"), "pca MODEL [ENCODED]"),
    ):
        with case(form):
            told = f"numtok: unknown probe 'of-p10'. Known: {', '.join(PROBES)}"
            says.refused(numtok("probe", "of-p10", *words), 2, told, f"`numtok probe {form}`")


def test_a_probe_of_a_plugin_is_kept_printed_and_found(
    numtok: Shell, world: World, tmp_path: Path, plugins: Path, says: Says
) -> None:
    (tmp_path / "numtok.toml").write_text('[plugins]\nfolders = ["plugins"]\n')
    (plugins / "probes").mkdir()
    (plugins / "probes" / "lengths.py").write_text(PLUGIN)
    model = by_chance(world, encoded(world))
    words = "--store", str(world.store.root), "probe", "lengths", model.ref, "--power", "2"
    ran = numtok(*words)
    assert ran.code == 0, ran.err
    assert "2 points of x, length" in ran.err and "longest" in ran.err
    artifact = world.store.resolve(ran.out.strip())
    assert (artifact.name, read(artifact).probe.form) == (f"{model.name}-lengths", "lengths")
    assert numtok(*artifact.manifest.command[1:], *words[:2]).out == ran.out
    figure = numtok(*words[:2], "figure", "vary", artifact.ref, "--out", "a.svg")
    says(figure.err, f"numtok: figure vary cannot draw {artifact.ref}", "lengths probe")
    wrong = PLUGIN.replace('["x", "length"]', '["x"]')
    (plugins / "probes" / "wrong.py").write_text(wrong)
    ran = numtok("--store", str(world.store.root), "probe", "wrong", model.ref)
    says.refused(ran, 2, "probe wrong must return points of x double (got x double, length double)")


PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from numtok.analysis.probing.probe_records import ProbeCurves
from numtok.analysis.probing.probes.base import ProbeKind, ProbeResult
from tests.cases import case


@dataclass(frozen=True)
class Lengths(ProbeKind):
    """Lengths.

    power
        Of what.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    power: int = 1

    def check(self, model, data):
        pass

    def run(self, inputs):
        points = pa.table({"x": [1.0, 2.0], "length": [1.0, 2.0**self.power]})
        return ProbeResult(ProbeCurves(["x", "length"], {"longest": 2.0**self.power}), points, [])
'''
