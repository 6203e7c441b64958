"""``numtok eval``: reports, checked against their predictions and data."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.splits import read_split
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError, NumtokError, UsageError
from numtok.evaluation.seen_values import outside
from numtok.library.arguments import settings_of
from numtok.metrics.base import METRICS, Predictions
from numtok.metrics.base import figures as measured
from numtok.models.decoding import LONGEST
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.models.model import Model, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.presets import preset
from numtok.models.settings import ModelSettings
from numtok.models.vocabulary import Vocabulary
from numtok.reports import (
    BASELINE,
    LIMITS,
    PREDICTIONS_FILE,
    QUANTILES,
    REPORT_FILE,
    Figure,
    Figures,
    predictions_schema,
    quantile_column,
)
from numtok.stages import eval
from numtok.store.artifact import TIMING, Artifact
from numtok.store.store import Store
from numtok.training.model_files import write_model
from numtok.training.weights import weights_of
from tests import chain, fakemodels
from tests.cases import case
from tests.chain import other_notes, there
from tests.chain import predictions_of as table
from tests.chain import quiet as quiet
from tests.chain import report_of as read
from tests.messages import Says
from tests.shell import Ran, Shell

TINY = "nano,layers=1,width=32,heads=2"
Cli = Callable[..., Ran]
SPECS = ("mlm:targets", "mlm", "mlm:tokens", "ar", "ar:answer")
#: Each scheme with one objective. The other combinations are slow tests.
PAIRS = [
    pytest.param(scheme, objective, marks=[pytest.mark.slow] * (at != turn % len(SPECS)))
    for turn, scheme in enumerate(SCHEMES)
    for at, objective in enumerate(SPECS)
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    """Use one thread: more threads slow down such small models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        yield


@dataclass(frozen=True)
class World:
    """A store of arithmetic data in several encodings, and of models trained for a few steps."""

    root: Path

    @property
    def store(self) -> Store:
        return Store(self.root / "artifacts")

    def data(self, samples: int = 120) -> Artifact:
        task, split = "arithmetic,operands=2", "train=0.7,test=0.3"
        return chain.generated(self.store, task, samples, split=split)

    def encoded(self, scheme: str, *inputs: str, **options: Any) -> Artifact:
        return chain.encoded(self.store, *inputs or (self.data().ref,), scheme=scheme, **options)

    def like(self, artifact: Artifact, *inputs: str) -> Artifact:
        return chain.encoded(self.store, *inputs, like=artifact.ref)

    def model(self, encoded: Artifact, objective: str | None = None, **options: Any) -> Artifact:
        defaults: dict[str, Any] = {"preset": TINY, "objective": objective, "steps": 4}
        return chain.trained(self.store, encoded.ref, **defaults | options)

    def by_chance(self, encoded: Artifact, objective: str, *, text: float = 0.0) -> Artifact:
        """Return an untrained model whose predictions are confident and differ between rows. Logits
        of text tokens are ``text`` higher."""
        codec = read_codec(encoded)
        settings = ModelSettings.of(
            preset(TINY),
            vocabulary=codec.vocabulary_size,
            context=32,
            embedder=EMBEDDERS.build(codec.scheme.defaults.embedder),
            head=HEADS.build(codec.scheme.defaults.head),
            objective=OBJECTIVES.build(objective),
        )
        torch.manual_seed(0)
        model = build_model(settings, Vocabulary.of(codec))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(std=0.3)
            norm = fakemodels.transformer(model).norm
            norm.weight[0], norm.bias[0] = 0.0, 1.0
            logits = model.get_parameter("token_head.weight")[:, 0]
            logits.zero_()
            specials = codec.number_first + codec.scheme.paper_vocabulary_size
            logits[specials : codec.text_first] = -20.0
            logits[codec.text_first :] = text
        trained = fakemodels.trained(configuration={"by": "chance"}, train_mean=12.5)
        command = ["numtok", "train", encoded.ref]
        given = {"objective": objective, "text": text}
        parents = [encoded.as_parent()]
        with self.store.draft("model", "chance", given, parents, command) as draft:
            if isinstance(draft, Artifact):
                return draft
            write_model(draft.path, model.settings, weights_of(model), codec, trained)
            return draft.publish({}, {"seconds": 0.0})

    def report(self, model: Artifact, encoded: Artifact, **options: Any) -> Artifact:
        return chain.evaluated(self.store, model.ref, encoded.ref, **options)

    def both(self, scheme: str, objective: str | None = None) -> tuple[Artifact, Artifact]:
        """Return a model and its training data."""
        encoded = self.encoded(scheme)
        # An embedder that supports such a narrow model.
        embedder = EMBEDDERS.checked_at(SCHEMES[scheme].defaults.embedder)
        return self.model(encoded, objective, embedder=embedder), encoded

    def copy(self, root: Path, *artifacts: Artifact) -> "World":
        """Copy some of the artifacts to a new store."""
        copy = World(root)
        for artifact in artifacts:
            place = copy.store.root / artifact.path.relative_to(self.store.root)
            shutil.copytree(artifact.path, place)
        return copy

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> str:
        return str(chain.jsonl(self.root / f"{name}.jsonl", rows))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("eval"))


@pytest.fixture
def cli(numtok: Shell, world: World, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Return numtok with the store of these tests and one thread."""
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    return partial(numtok, "--store", str(world.store.root))


def written(data: Artifact, split: str = "test") -> list[dict[str, Any]]:
    """Return the rows of a data artifact."""
    lines: list[dict[str, Any]] = []
    for path in sorted(data.path.glob(f"{split}-*.jsonl")):
        lines += map(json.loads, path.read_text().splitlines())
    return lines


def answer(row: dict[str, Any]) -> str:
    [[start, end]] = row["targets"]["answer"]
    text: str = row["text"][start:end]
    return text


def equation(
    name: object, *numbers: str, targets: dict[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a row such as "(1 + 2.5) = 3". ``targets`` maps names to indices of numbers."""
    text, spans = "(", []
    for index, number in enumerate(numbers):
        text += ["", " + "][index > 0] if index + 1 < len(numbers) else ") = "
        spans.append([len(text), len(text) + len(number)])
        text += number
    wanted = {key: [spans[index]] for key, index in (targets or {}).items()}
    start = {"answer_start": min(spans[i][0] for i in targets.values())} if targets else {}
    return {"id": str(name), "text": text, "targets": wanted} | start | more


# --- the command -------------------------------------------------------------------------------


def test_the_commands_chain_and_each_prints_one_ref(numtok: Shell) -> None:
    def ref(*arguments: str) -> str:
        ran = numtok(*arguments)
        assert ran.code == 0, ran.err
        assert ran.out.count("\n") == 1 and ran.out.count("@") == 1
        return ran.out.strip()

    data = ref("gen", "arithmetic", "--operands", "2", "--rows", "100")
    reports = []
    for scheme in ("xval", "p1000"):
        encoded = ref("encode", "--scheme", scheme, data)
        model = ref("train", encoded, "--preset", TINY, "--steps", "3")
        ran = numtok("eval", model, encoded)
        assert ran.code == 0
        name, _, version = ran.out.partition("@")
        assert (name, len(version)) == (f"arithmetic-{scheme}-nano-test", 17)
        assert ran.err.startswith(f"report {ran.out.strip()}: {scheme}, seed 0\n")
        assert "metrics with 95% bootstrap intervals" in ran.err
        reports.append(ran.out.strip())
        again = numtok("eval", model, encoded)
        assert (again.code, again.out) == (0, ran.out)
        assert numtok("-q", "eval", model, encoded).err == ""

    compared = numtok("compare", *reports)
    assert compared.code == 0 and compared.err == ""
    assert "xval" in compared.out and "p1000" in compared.out
    assert numtok("report", reports[0]).out.startswith(f"report {reports[0]}: xval, seed 0\n")


@pytest.mark.slow
def test_the_chain_of_the_readme_runs_in_a_shell(tmp_path: Path) -> None:
    script = f"""
    set -euo pipefail
    data=$(numtok gen arithmetic --operands 2 --rows 200)
    for scheme in xval p1000; do
        enc=$(numtok encode --scheme $scheme $data)
        model=$(numtok train $enc --preset {TINY} --steps 3)
        numtok eval $model $enc >> reports
    done
    numtok compare $(cat reports)
    numtok report $(head -n 1 reports) --json
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "NUMTOK_THREADS": "1"}
    environment.pop("NUMTOK_STORE", None)
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    *_, last = ran.stdout.splitlines()
    assert json.loads(last)["report"]["scheme"] == "xval"


def test_json_is_the_whole_report_with_its_schema(cli: Cli, world: World) -> None:
    model, encoded = world.both("xval")
    ran = cli("eval", model.ref, encoded.ref, "--json")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    artifact = world.store.resolve(found["ref"])
    assert found["report"] == json.loads((artifact.path / REPORT_FILE).read_bytes())
    assert found["schema"] == found["report"]["schema"] == 1
    assert set(found["timing"]) == {"train_seconds", "eval_seconds"}
    for format, beginning in (("csv", "part,value,metric,n,figure,low,high\n"), ("md", "report ")):
        ran = cli("eval", model.ref, encoded.ref, "--format", format)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(beginning)


def test_published_numbers_stand_beside(cli: Cli, world: World) -> None:
    model, encoded = world.both("xval")
    words = "eval", model.ref, encoded.ref, "--against", "xval/table3", "--column", "2 operands"
    ran = cli(*words)
    assert ran.code == 0 and ran.out.count("\n") == 1
    assert "next to xval/table3" in ran.err
    [cell] = json.loads(cli(*words, "--json").out)["published"]["cells"]
    assert (cell["label"], cell["column"], cell["metric"]) == ("xval", "2 operands", "r2")


def test_a_report_is_found_and_made_again_by_its_command(cli: Cli, world: World) -> None:
    model, encoded = world.both("digits", "ar")
    options = (
        "--decode free --num-samples 3 --limit 7 --device cpu --metric adjusted-r2,p=2 --name mine"
    )
    arguments = ("eval", model.ref, encoded.ref, *options.split())
    ran = cli(*arguments)
    assert ran.code == 0 and ran.out.startswith("mine@")
    artifact = world.store.resolve(ran.out.strip())
    before = (artifact.path / TIMING).stat().st_mtime_ns
    command = artifact.manifest.command
    assert command[0] == "numtok"
    assert command[command.index("--device") + 1] == "cpu"  # the version depends on it
    assert cli(*arguments).out == cli(*command[1:]).out == ran.out
    assert (artifact.path / TIMING).stat().st_mtime_ns == before
    again = cli(*arguments, "--force")
    assert (again.code, again.out) == (0, ran.out)


def test_the_version_does_not_depend_on_the_batch(world: World) -> None:
    model, encoded = world.both("p1000", "ar")
    for draws in (0, 2):
        first, again = (world.report(model, encoded, draws=draws, batch=size) for size in (5, 256))
        assert first.ref == again.ref
        assert "--batch" not in first.manifest.command


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="no C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from PyTorch's compiler
@pytest.mark.parametrize("objective", ["mlm:targets", "ar"])
def test_a_compiled_evaluation_is_the_same(cli: Cli, world: World, objective: str) -> None:
    encoded = world.encoded("p1000")
    arguments = ("eval", world.by_chance(encoded, objective).ref, encoded.ref, "--device", "cpu")
    found = []
    for more in ((), ("--compile",)):
        ran = cli(*arguments, *more)
        assert ran.code == 0, ran.err
        found.append(world.store.resolve(ran.out.strip()))
    plain, compiled = found
    assert compiled.version != plain.version
    assert [one.manifest.command.count("--compile") for one in found] == [0, 1]
    for one, other in zip(*map(table, found), strict=True):
        assert other["prediction_literal"] == one["prediction_literal"]
        assert other["on_grammar"] == one["on_grammar"]
        assert other["log_density"] == pytest.approx(one["log_density"], rel=0, abs=1e-5)


# --- every scheme and objective ----------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "objective"), PAIRS)
def test_every_scheme_and_objective_is_evaluated(world: World, scheme: str, objective: str) -> None:
    causal = objective.startswith("ar")
    if scheme == "numvalue":  # `ar` does not train it to generate numbers
        objective = re.sub("^ar", "numvalue", objective)
    model, encoded = world.both(scheme, objective)
    constrained = read(world.report(model, encoded, rows=8))
    assert constrained.numbers == constrained.rows == 8
    assert constrained.configuration["objective"] == objective
    assert constrained.decoding["fill"] == ("autoregressive" if causal else "parallel")
    assert constrained.off_grammar is not None
    fill = None if causal else "left-to-right"
    free = read(world.report(model, encoded, rows=8, decode="free", fill=fill))
    assert free.decoding["fill"] == ("autoregressive" if causal else "left-to-right")
    assert free.off_grammar is None
    for report in (constrained, free):
        value = report.metrics["mse"].value
        # The square of an untrained head's prediction may overflow.
        assert scheme in ("base10", "bits") or (value is not None and math.isfinite(value))
    if SCHEMES.build(scheme).tokens_per_number:  # otherwise numbers have no density
        assert constrained.metrics["nll"].value is not None


@pytest.mark.parametrize(
    ("scheme", "objective", "options"),
    [
        ("xval", "mlm:targets", {"point": "median"}),
        ("p1000", "mlm:targets", {"point": "mean"}),
        ("p1000", "ar", {"point": "median", "draws": 8}),
        ("digits", "mlm:targets", {"point": "mean", "draws": 8, "fill": "left-to-right"}),
    ],
)
def test_points_and_draws_are_said_in_the_report(
    world: World, scheme: str, objective: str, options: dict[str, Any]
) -> None:
    encoded = world.encoded(scheme)
    model = world.model(encoded, objective, steps=25, learning_rate=1e-2)
    artifact = world.report(model, encoded, rows=8, **options)
    report = read(artifact)
    assert report.decoding["point"] == options["point"]
    assert report.metrics["crps"].value is not None
    for row in table(artifact):
        quantiles = [row[quantile_column(level)] for level in QUANTILES]
        assert quantiles == sorted(quantiles)
        if options["point"] == "median":
            assert row["prediction"] == row["q50"]
    if "draws" in options:
        assert "quantiles from 8 draws" in str(report.decoding["distribution"])


def test_the_distribution_says_what_it_is_of(world: World, says: Says) -> None:
    def told(scheme: str, objective: str, **options: Any) -> str:
        model, encoded = world.both(scheme, objective)
        report = read(world.report(model, encoded, rows=8, **options))
        return str(report.decoding["distribution"])

    exact = told("p1000", "mlm:targets")
    says(exact, "token probabilities", "intervals")
    assert told("fp15", "ar") == exact  # one token, one pass
    says(told("p1000", "ar"), f"{exact}; density from the true value's tokens", "no quantiles")
    says(told("digits", "ar"), "token probabilities of literals", "not a density", "no quantiles")
    says(told("xval", "mlm:targets"), "Gaussian around", "measured on the train split")


# --- predictions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "objective"), [("p1000", "mlm:targets"), ("digits", "ar"), ("xval", "ar:answer")]
)
def test_predictions_follow_the_data(world: World, scheme: str, objective: str) -> None:
    model, encoded = world.both(scheme, objective)
    artifact = world.report(model, encoded)
    path = artifact.path / PREDICTIONS_FILE
    schema, baselines = pq.read_schema(path), []
    for name in [name for name in schema.names if name.startswith(BASELINE)]:
        schema = schema.remove(schema.get_field_index(name))
        baselines.append(name.removeprefix(BASELINE))
    assert schema.equals(predictions_schema(["operands", "operator"]))
    assert {"mean", "linear", "boosted"} <= set(baselines) and not set(baselines) & LIMITS.keys()
    data, found = written(world.data()), table(artifact)
    assert [row["id"] for row in found] == [row["id"] for row in data]
    assert [row["truth_literal"] for row in found] == list(map(answer, data))
    assert [row["truth"] for row in found] == [float(answer(row)) for row in data]
    assert {row["target"] for row in found} == {"answer"}
    assert {row["position"] for row in found} == {2}
    assert [row["group_operator"] for row in found] == [row["group"]["operator"] for row in data]
    assert {row["group_operands"] for row in found} == {"2"}


@pytest.mark.parametrize("scheme", ["p1000", "xval", "digits"])
def test_what_later_columns_hold_follows_from_the_others(world: World, scheme: str) -> None:
    model, encoded = world.both(scheme)
    artifact = world.report(model, encoded)
    found, report = table(artifact), read(artifact)
    train = [float(answer(row)) for row in written(world.data(), "train")]
    for row in found:
        assert row["outside"] == (not min(train) <= row["truth"] <= max(train))
        assert row["log_density_tailed"] == row["log_density"]  # none of these has separate tails
        assert (row["token_nll"] is None) == (scheme == "xval")
        if scheme == "digits":
            assert row["pit"] is None and row["log_interval"] is None
            continue
        for level in QUANTILES:  # the true value is above a quantile if its PIT is above the level
            if abs(row["pit"] - level) > 1e-6:
                assert (row["pit"] > level) == (row["truth"] > row[quantile_column(level)])
        assert row["log_interval"] < 0
    outside = [row["outside"] for row in found]
    assert value(report.metrics, "outside") == pytest.approx(sum(outside) / len(outside))
    lacking = {"digits": {"pit-distance", "interval-nll", "in-support-nll", "nll", "tailed-nll"}}
    lacking |= {"xval": {"token-nll"}}
    assert not lacking.get(scheme, set()) & set(report.metrics)
    asked = read(world.report(model, encoded, metrics=("range-nll",), name="asked"))
    assert asked.metrics["range-nll"] == Figure(None, None, None, len(found))


def test_the_range_of_the_train_split_is_that_of_each_target() -> None:
    train = replace(
        fakemodels.samples("p1000", ["1 and 50 are 7", "3 and 90 are 9"], targets=[0, 1, 3, 4]),
        target_name=pa.array(["a", "b", "a", "b"]),
    )
    values, names = np.array([1.0, 3.5, 3.5, 95.0, 95.0]), np.array(["a", "a", "b", "b", "number"])
    found = outside(train, names.astype(object), values)
    # For a number that is not a target, the range is that of all numbers, 1 to 90.
    assert found.tolist() == [False, True, True, True, True]
    assert not outside(train, np.array(["number"] * 2, object), np.array([1.0, 60.0])).any()


FEW = "fp15,exponents=-4..1"  # one token per number, and a small vocabulary


def test_invalid_predictions_are_null_and_count_as_the_train_mean(world: World) -> None:
    encoded = world.encoded(FEW)
    model = world.by_chance(encoded, "mlm:targets", text=1.2)
    artifact = world.report(model, encoded, decode="free")
    report, found = read(artifact), table(artifact)
    valid = np.array([row["valid"] for row in found])
    assert 0 < valid.sum() < len(valid)
    assert report.invalid == pytest.approx(1 - valid.mean())
    for row in found:
        for column in ("prediction", "prediction_literal"):
            assert (row[column] is None) == (not row["valid"])
        assert row["on_grammar"] is None

    assert report.train_mean == 12.5
    truth = np.array([row["truth"] for row in found])
    errors = np.array([row["prediction"] if row["valid"] else 12.5 for row in found]) - truth
    assert value(report.metrics, "mse") == pytest.approx(np.mean(errors**2))
    assert value(report.metrics, "r2") == pytest.approx(1 - np.mean(errors**2) / truth.var())
    assert value(report.metrics, "number-generation-ratio") == pytest.approx(valid.mean())
    assert set(report.valid_metrics) == set(report.metrics)
    assert value(report.valid_metrics, "mse") == pytest.approx(np.mean(errors[valid] ** 2))
    within = valid & ~np.array([row["outside"] for row in found])
    for name, figure in report.valid_metrics.items():
        assert figure.n == (within if name == "in-support-nll" else valid).sum(), name


def value(figures: Figures, metric: str) -> float:
    return there(figures[metric].value)


def test_off_grammar_is_the_share_that_free_decoding_would_lose(world: World) -> None:
    encoded = world.encoded(FEW)
    model = world.by_chance(encoded, "mlm:targets", text=1.2)
    constrained, free = (
        world.report(model, encoded, decode=decode) for decode in ("constrained", "free")
    )
    on_grammar = [row["on_grammar"] for row in table(constrained)]
    assert on_grammar == [row["valid"] for row in table(free)]
    report = read(constrained)
    assert report.off_grammar == pytest.approx(1 - np.mean(on_grammar))
    assert report.invalid == 0 and report.valid_metrics == {}


def test_several_targets_have_figures_each(world: World) -> None:
    rows = [
        equation(f"r{n}", str(n), str(n + 1), str(2 * n), targets={"sum": 1, "double": 2})
        for n in range(20)
    ]
    encoded = world.encoded("p1000", world.write("several", rows), split="test=0.5")
    artifact = world.report(world.model(encoded), encoded)
    report, found = read(artifact), table(artifact)
    assert report.numbers == 2 * report.rows == len(found)
    assert [(row["target"], row["position"]) for row in found[:2]] == [("sum", 1), ("double", 2)]
    assert set(report.by_target) == {"double", "sum"}
    for name, figures in report.by_target.items():
        errors = [row["prediction"] - row["truth"] for row in found if row["target"] == name]
        assert value(figures, "mse") == pytest.approx(np.mean(np.square(errors)))
        assert figures["mse"].n == report.rows
    assert report.groups == {}


def test_intervals_are_of_whole_rows(world: World) -> None:
    """Numbers of a row are not independent, so the bootstrap draws rows instead of numbers."""
    targets = {"a": 0, "b": 1, "c": 2}
    rows = [equation(n, str(n), str(n), str(n), targets=targets) for n in range(20)]
    encoded = world.encoded("p1000", world.write("thrice", rows), split="test=0.5")
    artifact = world.report(world.by_chance(encoded, "mlm"), encoded)
    found = table(artifact)
    answers = Predictions.of(
        [row["truth"] for row in found],
        [row["prediction"] for row in found],
        sample=[int(row["id"]) for row in found],
    )
    mse = [METRICS.build("mse")]
    assert read(artifact).metrics["mse"] == measured(mse, answers)["mse"]
    assert measured(mse, answers) != measured(mse, answers._replace(sample=None))


@pytest.mark.parametrize(
    ("scheme", "written"), [("xval", "{n}.5 -3"), ("p1000", "{n}.5 -3"), ("digits", "{n}.50 -3")]
)
def test_without_targets_every_number_is_asked(world: World, scheme: str, written: str) -> None:
    rows = [equation(n, str(n), f"{n}.50", "-3") for n in range(12)]
    encoded = world.encoded(scheme, world.write("plain", rows), split="test=0.5")
    for objective in (None, "ar"):
        artifact = world.report(world.model(encoded, objective), encoded)
        report, found = read(artifact), table(artifact)
        assert report.numbers == len(found) == 3 * report.rows
        assert {row["target"] for row in found} == {"number"}
        assert [row["position"] for row in found] == [0, 1, 2] * report.rows
        truths = [(row["id"], *written.format(n=row["id"]).split()) for row in found[::3]]
        assert [row["truth_literal"] for row in found] == [one for three in truths for one in three]
        assert report.by_target == {}


# --- figures -----------------------------------------------------------------------------------


def test_a_report_has_every_metric_and_intervals_hold_the_value(world: World) -> None:
    model, encoded = world.both("xval")
    report = read(world.report(model, encoded, metrics=("adjusted-r2,p=4",)))
    assert set(report.metrics) == {
        *("r2", "signed-log-r2", "mse", "mae", "median-relative-error", "relative-error-over"),
        *("lmae", "kendall-tau", "relative-mse", "exact-match", "exact-match,digits=3"),
        *("digit-match", "d-length", "exponent-accuracy", "number-generation-ratio", "nll"),
        *("crps", "coverage", "adjusted-r2", "adjusted-r2,p=4", "rounded-match"),
        *("tailed-nll", "in-support-nll", "interval-nll", "pit-distance", "outside"),
    }
    defined = {name: one for name, one in report.metrics.items() if one.value is not None}
    assert len(defined) >= len(report.metrics) - 1
    outside = value(report.metrics, "outside") * 36
    for name, figure in defined.items():
        assert figure.n == (36 - outside if name == "in-support-nll" else 36)
        assert holds(figure)
    by_operator = report.groups["operator"]
    assert set(by_operator) == {"+", "-", "*"}
    assert set(report.groups) == {"operator", "operands"}
    assert set(report.groups["operands"]) == {"2"}
    assert sum(figures["mse"].n for figures in by_operator.values()) == report.numbers
    mean = sum(figures["mse"].n * value(figures, "mse") for figures in by_operator.values())
    assert mean / report.numbers == pytest.approx(value(report.metrics, "mse"))


def holds(figure: Figure) -> bool:
    """Return whether an interval contains its value."""
    assert figure.value is not None and figure.low is not None and figure.high is not None
    slack = 1e-9 * abs(figure.value)
    return figure.low - slack <= figure.value <= figure.high + slack


def test_a_group_of_very_many_values_has_no_figures_and_others_are_in_order(world: World) -> None:
    rows = [
        equation(n, str(n), str(n + 1), targets={"next": 1}, group={"row": n, "ten": n // 10 - 2})
        for n in range(140)
    ]
    path = [f"{split}={world.write(split, rows)}" for split in ("train", "test")]
    encoded = world.encoded("xval", *path)
    report = read(world.report(world.model(encoded), encoded))
    assert set(report.groups) == {"ten"}
    assert list(report.groups["ten"]) == [str(ten) for ten in range(-2, 12)]


def test_seeds_share_a_configuration_and_budgets_do_not(world: World) -> None:
    encoded = world.encoded("p1000")
    models = [world.model(encoded, seed=seed) for seed in (0, 1)]
    models.append(world.model(encoded, steps=5))
    first, seed, budget = (read(world.report(model, encoded, rows=8)) for model in models)
    assert first.configuration == seed.configuration != budget.configuration
    assert (first.seed, seed.seed) == (0, 1)
    assert first.configuration["scheme"] == first.scheme == "p1000"
    assert first.model != seed.model and first.data == seed.data


def test_costs_are_those_of_training(world: World) -> None:
    """A batch of up to 128 holds all 84 rows, so 4 steps are 336 rows."""
    model, encoded = world.both("p1000", "mlm:targets")
    costs = read(world.report(model, encoded)).costs
    assert (costs.steps, costs.samples) == (4, 4 * 84)
    per_row = 3 * 3 + 3  # three numbers of three tokens, and the tokens between and around them
    assert costs.tokens_per_number == 3 and costs.tokens == 4 * 84 * per_row
    width = 32
    vocabulary = json.loads((model.path / "model.json").read_bytes())["settings"]["vocabulary"]
    tables = vocabulary * width + 16 * width  # embeddings of tokens and of 16 positions
    block = 4 * width * width + 4 * width + 8 * width * width + 5 * width + 2 * 2 * width
    assert costs.embedding_parameters == tables
    assert costs.parameters == tables + block + 2 * width + vocabulary * width
    # Forward pass of 84 rows: keys and values of all tokens. Only the target's three tokens need
    # queries, attention, the rest of the block, and the token head.
    forward = 84 * per_row * 4 * width**2
    forward += 84 * 3 * (20 * width**2 + 4 * per_row * width)
    forward += 84 * 3 * 2 * vocabulary * width
    assert costs.flops == 4 * 3 * forward
    model, encoded = world.both("digits")
    digits = read(world.report(model, encoded, rows=8))
    drawn = read_split(encoded, "test").drawn(8)
    lengths = np.array([len(answer(row)) for row in written(world.data())])[drawn]
    assert digits.costs.tokens_per_number == pytest.approx(np.mean(lengths))


def test_clocks_lie_beside_the_report(world: World) -> None:
    model, encoded = world.both("xval")
    artifact = world.report(model, encoded)
    timing = chain.timing_of(artifact)
    assert timing["train_seconds"] == chain.timing_of(model)["seconds"]
    assert timing["eval_seconds"] > 0
    assert artifact.manifest.counts == {"rows": 36, "numbers": 36}
    assert [parent.where for parent in artifact.manifest.parents] == [model.ref, encoded.ref]


# --- baselines ------------------------------------------------------------------------------------


def test_baselines_can_be_left_out(world: World) -> None:
    both = world.both("p1000")
    whole, bare = read(world.report(*both)), read(world.report(*both, baselines="no"))
    assert bare.metrics == whole.metrics and whole.baselines and not bare.baselines
    assert not any("aseline" in note for note in bare.notes)


def test_baselines_stand_beside_the_model(world: World) -> None:
    model, encoded = world.both("p1000")
    report = read(world.report(model, encoded))
    of_texts = ["tfidf", "boosted-text"]
    names = ["quantization", "mean", "median", "nearest", "linear", "boosted", *of_texts]
    assert list(report.baselines) == names
    data = [float(answer(row)) for row in written(world.data())]
    rounded = [float(f"{number:.2e}") for number in data]  # none of them is a tie
    errors = np.subtract(rounded, data)
    assert value(report.baselines["quantization"], "mse") == pytest.approx(np.mean(errors**2))
    assert value(report.baselines["quantization"], "exact-match,digits=3") == 1
    seen = np.array([float(answer(row)) for row in written(world.data(), "train")])
    assert report.train_mean == pytest.approx(np.mean(seen))
    errors = report.train_mean - np.array(data)
    assert value(report.baselines["mean"], "mse") == pytest.approx(np.mean(errors**2))
    errors = np.abs(np.subtract.outer(seen, data)).min(axis=0)
    assert value(report.baselines["nearest"], "mse") == pytest.approx(np.mean(errors**2))
    assert set(report.baselines["linear"]) == {
        *("r2", "adjusted-r2", "signed-log-r2", "mse", "median-relative-error"),
        *("relative-error-over", "exact-match,digits=3", "mae", "lmae", "relative-mse"),
    }
    error = np.mean(np.abs(report.train_mean - np.array(data)))
    assert value(report.baselines["mean"], "mae") == pytest.approx(error)
    assert other_notes(report.notes) == []


@pytest.mark.parametrize("other_train", [False, True])
def test_baselines_come_from_the_training_data(world: World, other_train: bool) -> None:
    """A train split of the evaluated data is not used, because it could contain the scored rows."""
    model, encoded = world.both("p1000")
    own = read(world.report(model, encoded))
    rows = [row | {"split": "test"} for row in written(world.data())]
    if other_train:
        rows += [row | {"split": "train", "id": f"again {row['id']}"} for row in rows]
    other = world.like(model, world.write(f"only-test-{other_train}".lower(), rows))
    found = read(world.report(model, other))
    assert found.data == other.ref
    assert found.baselines == own.baselines and other_notes(found.notes) == []


def test_a_missing_train_split_is_noted(world: World, tmp_path: Path, says: Says) -> None:
    model, _ = world.both("p1000")
    rows = [row | {"split": "test"} for row in written(world.data())[:9]]
    other = world.like(model, world.write("alone", rows))
    report = read(world.copy(tmp_path, model, other).report(model, other))
    assert list(report.baselines) == ["quantization", "mean"]
    note, missing = report.notes
    says(missing, "No prediction intervals", "training data", "not in the store")
    says(note, "training data", "nearest", "linear", "boosted", "tfidf")


# --- notes -------------------------------------------------------------------------------------


def test_ids_that_are_repeated_are_noted(world: World, says: Says) -> None:
    model, _ = world.both("p1000")
    nine = enumerate(written(world.data())[:9])
    rows = [row | {"split": "test", "id": str(min(at, 6))} for at, row in nine]
    other = world.like(model, world.write("repeated", rows))
    says(
        other_notes(read(world.report(model, other)).notes)[-1],
        "IDs are repeated (2 ",
        "a unique id",
    )


def test_a_report_notes_what_a_reader_must_know(world: World, says: Says) -> None:
    told = read(world.report(*world.both("digits")))
    note, missing = told.notes
    says(missing, "No prediction intervals", "neither a split calibration")
    says(note, "number of masks", "length")
    assert "length" in told.baselines
    assert told.baselines["length"]["mse"].value != told.baselines["mean"]["mse"].value
    alone = read(world.report(*world.both("digits", "ar")))
    assert other_notes(alone.notes) == [] and "length" not in alone.baselines
    encoded = world.encoded("xval", normalize="signed-log")
    [note] = other_notes(read(world.report(world.model(encoded), encoded)).notes)
    says(note, "normalized by signed-log", "the paper")


def test_endless_numbers_and_draws_that_are_not_needed_are_noted(world: World, says: Says) -> None:
    encoded = world.encoded("digits")
    report = read(world.report(world.by_chance(encoded, "ar", text=-9.0), encoded))
    assert report.invalid > 0
    says(other_notes(report.notes)[-1], f"within {LONGEST} tokens", "invalid")
    report = read(world.report(*world.both("p1000", "mlm:targets"), rows=4, draws=2))
    [note] = other_notes(report.notes)
    says(note, "exact", "--num-samples")
    assert note not in read(world.report(*world.both("p1000", "ar"), rows=4, draws=2)).notes


@pytest.mark.parametrize("scheme", ["p1000", "xval", "digits"])
def test_infinite_numbers_are_predicted_and_not_scored(world: World, scheme: str) -> None:
    rows = [equation(n, str(n), str(n + 2), targets={"y": 1}) for n in range(30)]
    rows += [equation(*row, targets={"y": 1}) for row in (("b", "7", "1e400"), ("s", "1e400", "7"))]
    path = [f"{split}={world.write(split, rows)}" for split in ("train", "test")]
    encoded = world.encoded(scheme, *path)
    artifact = world.report(world.model(encoded), encoded)
    report, found = read(artifact), table(artifact)
    assert report.notes[0] == "Not scored: 1 number (not finite)."
    assert (report.rows, report.numbers, report.metrics["mse"].n) == (32, 32, 31)
    assert found[30]["truth"] == math.inf and found[30]["truth_literal"] == "1e400"
    if scheme != "digits":
        assert report.metrics["nll"].value is not None
        assert report.metrics["crps"].value is not None
    assert {figures["mse"].n for figures in report.baselines.values()} == {31}


# --- errors ------------------------------------------------------------------------------------


def test_what_a_model_or_its_data_do_not_have_is_one_line(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    (ar, p1000), (model, encoded) = world.both("p1000", "ar"), world.both("xval")
    affine = world.encoded("xval", normalize="affine")
    where = (encoded.ref, "'tset'. Did you mean 'test'? Known: test, train")
    like = (
        f"is not encoded like the training data of {model.ref}",
        f"encode --reuse-encoding {model.ref}",
    )
    cases: list[tuple[Artifact, Artifact | str, str, tuple[str, ...]]] = [
        (
            ar,
            p1000,
            "--fill parallel",
            ("--fill parallel", f"{ar.ref} is autoregressive", "answers"),
        ),
        (
            ar,
            p1000,
            "--point mean",
            ("--point mean", "distribution", "--num-samples 64", "--point mode"),
        ),
        (model, encoded, "--split tset", ("numtok: unknown split of ", *where)),
        (model, encoded, "--metric mses", ("metric 'mses'. Did you mean 'mse'?",)),
        (model, encoded, "--device tpu", ("--device ", "'tpu'", "auto, cpu, cuda, cuda:N and mps")),
        (model, encoded, "--compile", ("numtok: --compile", "'no-such-compiler'", "CXX")),
        (model, p1000, "", (f"{p1000.ref} {like[0]}", like[1])),
        (model, affine, "", (f"{affine.ref} {like[0]}", like[1])),
        (encoded, encoded, "", ()),
        (model, model, "", ()),
        (model, "nothing", "", ()),
    ]
    for of, data, options, told in cases:
        with case(options, data):
            ref = data if isinstance(data, str) else data.ref
            says.refused(cli("eval", of.ref, ref, *options.split()), 2, *told)


def test_a_lack_of_memory_halves_the_batch_and_is_told(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    most, hidden = 4, Model.hidden

    def little(self: Model, tokens: torch.Tensor, *more: Any) -> torch.Tensor:
        if len(tokens) > most:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: no")
        return hidden(self, tokens, *more)

    model, encoded = world.both("p1000")
    arguments = ("eval", model.ref, encoded.ref, "--limit", "9")
    monkeypatch.setattr(Model, "hidden", little)
    ran = cli(*arguments, "--batch", "8", "--name", "halved")
    assert ran.code == 0 and ran.out.startswith("halved@")
    told, _, shown = ran.err.partition("\n")
    says(told, "out of memory with --batch 8", "continuing with 4")
    assert shown.startswith("report ")

    most = 0
    ran = cli(*arguments, "--batch", "2", "--name", "none")
    assert (ran.code, ran.out) == (5, "")
    says(ran.err, "--batch 2; continuing with 1\n", "out of memory with --batch 1", "more memory\n")


def test_options_that_are_not_possible(numtok: Shell, says: Says) -> None:
    cases: tuple[tuple[str, Any, str], ...] = (
        ("fill", "both", "parallel, left-to-right or answers"),
        ("decode", "x", "constrained or free"),
        ("point", "best", "mode, median, mean or raft"),
        ("num-samples", -1, "at least 0"),
        ("batch", 0, "at least 1"),
        ("limit", 0, "at least 1"),
        ("name", "No", "lower-case letters, digits and ._-"),
    )
    for option, given, remedy in cases:
        with case(option=option):
            with pytest.raises(UsageError) as caught:
                settings_of(eval.Config, ("model", "data"), {option.replace("-", "_"): given})
            says(caught, f"--{option} must be ", remedy, f"(got {given!r})")
            ran = numtok("eval", "model", "data", f"--{option}", str(given))
            assert (ran.code, ran.out, ran.err) == (2, "", f"numtok: {caught.value}\n")


@pytest.mark.parametrize("objective", ["mlm:targets", "ar"])
def test_rows_longer_than_the_model_reads_are_refused_or_skipped_if_asked(
    cli: Cli, world: World, objective: str, says: Says
) -> None:
    """An autoregressive model reads an additional begin token."""
    model, _ = world.both("xval", objective)
    long = equation("long", *map(str, range(30)), targets={"y": 29}, split="test")
    other = world.like(model, world.write("long", [long]))
    [shard] = other.path.glob("test-*.parquet")
    tokens = len(pq.read_table(shard)["tokens"][0].as_py())
    reads = json.loads((model.path / "model.json").read_bytes())["settings"]["trunk"]["context"]
    reads -= objective == "ar"
    asked = f"split 'test' of {other.ref} has a row of {tokens} tokens"
    told = asked, f"{model.ref} reads at most {reads}.", "larger context in --preset"
    says.refused(cli("eval", model.ref, other.ref), 3, *told)
    # No rows would be left.
    says.refused(cli("eval", model.ref, other.ref, "--on-error", "skip"), 3, *told)

    short = [equation(name, "1", "2", targets={"y": 1}, split="test") for name in "ab"]
    mixed = world.like(model, world.write("mixed", [short[0], long, short[1]]))
    found = world.report(model, mixed, on_error="skip")
    report = read(found)
    assert report.rows == 2
    assert any(note.startswith("Skipped 1 row longer than") for note in report.notes)
    alone = world.report(model, world.like(model, world.write("short", short)))
    values, same = ({row["id"]: row["prediction"] for row in table(of)} for of in (alone, found))
    assert values == same and set(values) == {"a", "b"}
    assert not [note for note in read(alone).notes if "longer" in note]


def test_a_split_without_numbers_is_refused(world: World, tmp_path: Path, says: Says) -> None:
    model, encoded = world.both("xval")
    wordy = world.like(model, world.write("wordy", [{"text": "no", "split": "test"}]))
    told = [f"no row in split 'test' of {wordy.ref} has a number", "rows with numbers"]
    with says.raises(DataError, *told):
        world.report(model, wordy)
    row = equation("huge", "1", "1e999", targets={"y": 1}, split="test")
    huge = world.like(model, world.write("huge", [row]))
    with says.raises(DataError, "none of the true values is finite", "nothing to score"):
        world.report(model, huge)
    # ``encode`` never writes a split without rows, so the shards are emptied here.
    copy = world.copy(tmp_path, model, encoded)
    for shard in (copy.store.root / "encoded").rglob("test-*.parquet"):
        pq.write_table(pq.read_table(shard).slice(0, 0), shard, write_page_checksum=True)
    with says.raises(DataError, f"no rows ({shard})", "numtok show"):
        copy.report(model, encoded)


def test_a_value_head_that_was_never_measured_is_refused(world: World, says: Says) -> None:
    """The validation split has no number on which to measure the head's spread."""
    rows = [equation(n, str(n), str(n), targets={"y": 1}) for n in range(9)]
    rows += [equation("t", "1", "2", targets={"y": 1}, split="test")]
    rows += [{"id": "v", "text": "none", "split": "validation"}]
    encoded = world.encoded("xval", world.write("unmeasured", rows))
    model = world.model(encoded)
    told = [f"{model.ref} has no calibration", "value head", "Train on data with more numbers"]
    with says.raises(DataError, *told):
        world.report(model, encoded)


def test_a_failed_evaluation_leaves_no_report(world: World, tmp_path: Path) -> None:
    model, encoded = world.both("xval")
    copy = world.copy(tmp_path, model, encoded)
    weights = copy.store.resolve(model.ref).path / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(NumtokError) as caught:
        copy.report(model, encoded)
    assert caught.value.exit_code == 4
    assert not list((copy.store.root / "report").glob("*/*/manifest.json"))
