"""Rows that belong together: drawn together by every bootstrap, and counted where it is told.

In the data ``copied`` each test row is there four times, in a cluster of its own; in ``once`` it is
there once, without one. So whatever is resampled must come out the same, as 12 independent rows.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.analysis.probing.probe_records import Along
from numtok.analysis.probing.probe_records import read as read_probe
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_codec, read_split
from numtok.errors import DataError
from numtok.evaluation.labels import LabelEvaluation
from numtok.evaluation.numbers import NumberEvaluation
from numtok.evaluation.report_files import ReportPredictions, clusters_note, read
from numtok.metrics.base import METRICS, Predictions, figures, paired
from numtok.reports import PREDICTIONS_FILE, Figures, Report
from numtok.stages import compare, encode, eval, probe, train
from numtok.stages import errors as errors_stage
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cli.test_store_commands import Shell
from tests.cli.test_store_commands import numtok as numtok
from tests.messages import Says
from tests.stages.test_train import one_thread as one_thread

TINY = "nano,layers=1,width=16,heads=2"
ROWS, COPIES = 12, 4
NOTE = "Intervals are over 12 clusters of rows that belong together; those of so few are rough."


def quiet(*_: object) -> None:
    pass


def row(id: str, number: int, split: str, **more: Any) -> dict[str, Any]:
    text = f"twice {number} is {2 * number + number % 5}"
    start = len(text) - len(text.split()[-1])
    label = "odd" if number % 2 else "even"
    made = {"id": id, "text": text, "targets": {"y": [[start, len(text)]]}, "label": label}
    return made | {"split": split, "group": {"tens": number // 10}, **more}


@dataclass
class World:
    """The data and models of a store, made as they are asked for."""

    store: Store
    made: dict[str, Artifact] = field(default_factory=dict)

    def kept(self, name: str, make: Callable[[], Artifact]) -> Artifact:
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def encoded(self, name: str, rows: list[dict[str, Any]], scheme: str = "xval") -> Artifact:
        def make() -> Artifact:
            path = self.store.root / f"{name}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(json.dumps(one) + "\n" for one in rows))
            config = encode.Config((str(path),), scheme=scheme, name=name)
            found = encode.run(config, self.store, quiet).artifact
            assert found is not None
            return found

        return self.kept(name, make)

    def data(self, name: str) -> Artifact:
        learnt = [row(f"train-{k}", 7 * k % 50, "train") for k in range(40)]
        numbers = [11 * k % 47 for k in range(ROWS)]
        copied = [
            row(f"{k:02d}-{copy}", number, "test", cluster=f"day {k}" if k % 3 else k)
            for k, number in enumerate(numbers)
            for copy in range(COPIES)
        ]
        once = [row(f"{k:02d}-0", number, "test") for k, number in enumerate(numbers)]
        return self.encoded(name, learnt + {"copied": copied, "once": once}[name])

    def report(self, name: str, objective: str = "mlm:targets", seed: int = 0) -> Artifact:
        def model() -> Artifact:
            once = self.data("once").ref
            config = train.Config(once, preset=TINY, steps=3, objective=objective, seed=seed)
            return train.run(config, self.store, quiet).artifact

        def make() -> Artifact:
            learnt = self.kept(f"{objective} {seed}", model)
            named = f"{name}-{objective.partition(':')[0]}-{seed}"
            config = eval.Config(learnt.ref, self.data(name).ref, name=named)
            return eval.run(config, self.store, quiet).artifact

        return self.kept(f"{name} {objective} {seed}", make)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(Store(tmp_path_factory.mktemp("clusters")))


def report_of(artifact: Artifact) -> Report:
    return read(artifact).report


def same(found: Figures, expected: Figures) -> None:
    assert list(found) == list(expected)
    for name, figure in expected.items():
        for end in ("value", "low", "high"):
            one, other = getattr(found[name], end), getattr(figure, end)
            assert one is other or one == pytest.approx(other, rel=1e-5), (name, end)
        assert found[name].n == COPIES * figure.n


# --- from the rows into predictions ---------------------------------------------------------------


def test_clusters_come_through_from_rows_of_every_form(world: World) -> None:
    clusters = ["a", None, None, 7, "a"]
    rows: list[dict[str, Any]] = [
        {"text": f"is {k}", "cluster": one} for k, one in enumerate(clusters)
    ]
    del rows[2]["cluster"]
    plain = world.encoded("plain", rows)
    floors = [one | {"targets": {"y": [[3, 4]]}, "floors": {"y": {"f": [1]}}} for one in rows]
    by_records = world.encoded("records", floors)
    path = world.store.root / "rows.parquet"
    written = [None if one is None else str(one) for one in clusters]
    pq.write_table(pa.table({"text": [one["text"] for one in rows], "cluster": written}), path)
    of_parquet = encode.run(
        encode.Config((str(path),), scheme="xval", name="pq"), world.store, quiet
    )
    assert of_parquet.artifact is not None
    for artifact in (plain, by_records, of_parquet.artifact):
        samples = read_split(artifact, "train")
        assert samples.clusters is not None
        assert samples.clusters.to_pylist() == ["a", None, None, "7", "a"]
        first = samples.take(np.arange(2)).clusters
        assert first is not None and first.to_pylist() == ["a", None]


def test_without_clusters_there_is_no_column_of_them(world: World) -> None:
    data = world.data("once")
    shards = sorted(data.path.glob("*.parquet"))
    assert all("cluster" not in pq.read_schema(shard).names for shard in shards)
    assert EncodedSplit.read(shards, read_codec(data).ids).clusters is None
    for objective in ("mlm:targets", "classify"):
        path = world.report("once", objective).path / PREDICTIONS_FILE
        assert "cluster" not in pq.read_schema(path).names
        assert not any("cluster" in note for note in report_of(world.report("once")).notes)


def test_a_cluster_that_is_a_list_is_refused_with_the_line(world: World, says: Says) -> None:
    path = world.store.root / "bad.jsonl"
    path.write_text('{"text": "1", "cluster": ["a"]}\n')
    with pytest.raises(DataError) as caught:
        encode.run(encode.Config((str(path),), scheme="xval"), world.store, quiet)
    says(caught, f"{path}:1: ", "'cluster'", "--on-error skip")


# --- intervals ------------------------------------------------------------------------------------


def answers(truth: Any, prediction: Any, **columns: Any) -> Predictions:
    written = [[repr(float(one)) for one in side] for side in (truth, prediction)]
    literals = {"truth_literal": written[0], "prediction_literal": written[1]}
    return Predictions.of(truth, prediction, **literals, **columns)


def copies(once: Predictions) -> Predictions:
    """Each of them so many times, in a cluster of its own."""
    place = np.repeat(np.arange(len(once.truth)), COPIES)
    return once.take(place)._replace(sample=place)


def test_every_metric_of_copies_is_that_of_the_rows_themselves() -> None:
    """One that does not weigh rows, or is drawn by rows, has another interval."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = dict.fromkeys(
        ("log_density", "crps", "pit", "log_density_tailed", "log_interval", "token_nll",
         "log_range", "log_probability")
    )  # fmt: skip
    columns = {name: random.random(9) for name in columns}
    columns["outside"] = random.random(9) < 0.5
    columns |= {"slot": np.arange(9) % 3, "slot_median": random.normal(0, 9, 9)}
    columns["quantiles"] = np.sort(random.normal(0, 9, (9, 5)), axis=1)
    words = random.choice(["a", "b", "c"], (2, 9)).tolist()
    truth = np.round(random.normal(0, 9, 9), 2)
    numbers = answers(truth, np.round(truth + random.normal(0, 1, 9), 2), **columns)
    labels = Predictions.of_labels(*words, log_probability=columns["log_probability"])
    for once, kind in ((numbers, NumberEvaluation), (labels, LabelEvaluation)):
        metrics = kind.metrics.usual
        assert not any(metric.missing(once) for metric in metrics)
        # Adjusted R2 counts the rows, which are others.
        metrics = [metric for metric in metrics if not isinstance(metric, METRICS["adjusted-r2"])]
        found = figures(metrics, copies(once), resamples=200)
        same(found, figures(metrics, once, resamples=200))


@pytest.mark.parametrize("objective", ["mlm:targets", "classify"])
def test_a_report_of_copies_has_the_intervals_of_the_rows(world: World, objective: str) -> None:
    once, copied = (report_of(world.report(name, objective)) for name in ("once", "copied"))
    for found in (once, copied):
        found.metrics.pop("adjusted-r2", None)
    same(copied.metrics, once.metrics)
    for name, baseline in once.baselines.items():
        baseline.pop("adjusted-r2", None)
        same({metric: copied.baselines[name][metric] for metric in baseline}, baseline)
    assert copied.notes == [NOTE, *once.notes]


def test_comparisons_draw_clusters_and_say_how_many(world: World, numtok: Shell) -> None:
    def compared(name: str) -> compare.Comparison:
        refs = tuple(world.report(name, seed=seed).ref for seed in (0, 1))
        # Not as seeds of one experiment: each for itself.
        return compare.run(compare.Config(refs, metrics=("mse", "r2")), world.store)

    once, copied = compared("once"), compared("copied")
    assert (once.parts[0].clusters, NOTE in once.notes) == (None, False)
    assert (copied.parts[0].clusters, NOTE in copied.notes) == (ROWS, True)
    ref = world.report("copied").path
    by = compare.run(compare.Config((str(ref),), metrics=("mse",), by="tens"), world.store)
    assert sum(part.clusters or 0 for part in by.parts) == ROWS
    assert all(part.numbers == COPIES * (part.clusters or 0) for part in by.parts)
    ran = numtok("compare", str(ref), "--metric", "mse")
    assert "split test, 48 numbers in 12 clusters" in ran.out and NOTE in " ".join(ran.out.split())
    assert NOTE in " ".join(numtok("report", str(ref)).out.split())


def test_paired_differences_of_copies_are_those_of_the_rows(world: World) -> None:
    found = []
    for name in ("once", "copied"):
        first, second = (
            ReportPredictions.read(read(world.report(name, seed=seed))).answers for seed in (0, 1)
        )
        found.append(paired(METRICS.build("mse"), [first], [second]))
    once, copied = found
    assert copied.share_better == once.share_better
    same({"mse": copied.figure}, {"mse": once.figure})


def test_reports_of_other_clusters_are_not_paired(world: World, says: Says) -> None:
    """The same rows and truths, once with clusters and once without."""
    rows = [row(f"train-{k}", 7 * k % 50, "train") for k in range(40)]
    rows += [row(f"{k:02d}-0", 11 * k % 47, "test", cluster=k // 2) for k in range(ROWS)]
    halves = world.encoded("halves", rows)
    world.report("once")
    model = world.made["mlm:targets 0"].ref
    other = eval.run(eval.Config(model, halves.ref, name="halves"), world.store, quiet).artifact
    refs = world.report("once").ref, other.ref
    with pytest.raises(DataError) as caught:
        compare.run(compare.Config(refs, metrics=("mse",)), world.store)
    says(caught, f"{refs[0]} and {refs[1]} are in other clusters", "one split of the same data")


def test_errors_of_copies_have_the_intervals_of_the_rows() -> None:
    once = answers(np.array([1.5, 2.0, 30.0, 4.0, -5.0]), np.array([1.5, 0.2, 30.0, 7.0, 5.0]))
    found = [
        errors_stage.report_errors(errors_stage.Config(("one",)), "", "", one).errors
        for one in (once, copies(once))
    ]
    for other, one in zip(*found, strict=True):
        same({one.kind: one.share}, {other.kind: other.share})
    assert all(one.share.low != one.share.high for one in found[0][:4])


def test_a_probe_draws_clusters_and_says_so(world: World) -> None:
    found = []
    for name in ("once", "copied"):
        world.report(name)
        model = world.made["mlm:targets 0"].ref
        config = probe.Config("samples", model, world.data(name).ref, name=f"probe-{name}")
        found.append(read_probe(probe.run(config, world.store, quiet).artifact).probe)
    once, copied = found
    assert copied.notes == [NOTE, *once.notes]
    assert isinstance(once.found, Along) and isinstance(copied.found, Along)
    same({"slope": copied.found.slope}, {"slope": once.found.slope})
    for name, errors in once.found.errors.items():
        same(copied.found.errors[name], errors)
    assert once.found.slope.low != once.found.slope.high


def test_of_few_clusters_it_is_said_that_intervals_are_rough(says: Says) -> None:
    says(clusters_note(19), "over 19 clusters", "rough")
    says(clusters_note(1200), "over 1,200 clusters")
    assert "rough" not in clusters_note(1200)
