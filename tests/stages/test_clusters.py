"""Clusters of rows: every bootstrap draws whole clusters, and outputs report their number.

In the data ``copied``, each test row occurs four times, and its copies form a cluster. In ``once``,
it occurs once and has no cluster. Both have 12 independent rows, so all intervals must be equal.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.analysis.probing.probe_records import Along
from numtok.analysis.probing.probe_records import read as read_probe
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_split
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError
from numtok.evaluation.labels import LabelEvaluation
from numtok.evaluation.numbers import NumberEvaluation
from numtok.evaluation.prediction_table import clusters_note
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.metrics.base import METRICS, Predictions, figures, paired
from numtok.reports import PREDICTIONS_FILE, Figures
from numtok.stages import compare, probe
from numtok.stages import errors as errors_stage
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests import chain
from tests.chain import quiet, report_of, there
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_train import one_thread as one_thread

TINY = "nano,layers=1,width=16,heads=2"
ROWS, COPIES = 12, 4
NOTE = clusters_note(12)


def row(id: str, number: int, split: str, **more: Any) -> dict[str, Any]:
    text = f"twice {number} is {2 * number + number % 5}"
    start = len(text) - len(text.split()[-1])
    label = "odd" if number % 2 else "even"
    made = {"id": id, "text": text, "targets": {"y": [[start, len(text)]]}, "label": label}
    return made | {"split": split, "group": {"tens": number // 10}, **more}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("clusters"))


# Each artifact is made once and then reused from the store.


def encoded(store: Store, name: str, rows: list[dict[str, Any]], scheme: str = "xval") -> Artifact:
    path = chain.jsonl(store.root / f"{name}.jsonl", rows)
    return chain.encoded(store, path, scheme=scheme, name=name)


def data(store: Store, name: str) -> Artifact:
    learnt = [row(f"train-{k}", 7 * k % 50, "train") for k in range(40)]
    numbers = [11 * k % 47 for k in range(ROWS)]
    copied = [
        row(f"{k:02d}-{copy}", number, "test", cluster=f"day {k}" if k % 3 else k)
        for k, number in enumerate(numbers)
        for copy in range(COPIES)
    ]
    once = [row(f"{k:02d}-0", number, "test") for k, number in enumerate(numbers)]
    return encoded(store, name, learnt + {"copied": copied, "once": once}[name])


def model(store: Store, objective: str = "mlm:targets", seed: int = 0) -> Artifact:
    how: dict[str, Any] = {"preset": TINY, "steps": 3, "objective": objective, "seed": seed}
    return chain.trained(store, data(store, "once").ref, **how)


def report(store: Store, name: str, objective: str = "mlm:targets", seed: int = 0) -> Artifact:
    named = f"{name}-{objective.partition(':')[0]}-{seed}"
    learnt = model(store, objective, seed).ref
    return chain.evaluated(store, learnt, data(store, name).ref, name=named)


def same(found: Figures, expected: Figures) -> None:
    assert list(found) == list(expected)
    for name, figure in expected.items():
        for end in ("value", "low", "high"):
            one, other = getattr(found[name], end), getattr(figure, end)
            assert one is other or one == pytest.approx(other, rel=1e-5), (name, end)
        assert found[name].n == COPIES * figure.n


# --- clusters in rows and predictions -------------------------------------------------------------


def test_clusters_come_through_from_rows_of_every_form(store: Store) -> None:
    clusters = ["a", None, None, 7, "a"]
    rows: list[Any] = [{"text": f"is {k}", "cluster": one} for k, one in enumerate(clusters)]
    del rows[2]["cluster"]
    plain = encoded(store, "plain", rows)
    floors = [one | {"targets": {"y": [[3, 4]]}, "floors": {"y": {"f": [1]}}} for one in rows]
    by_records = encoded(store, "records", floors)
    path = store.root / "rows.parquet"
    written = [None if one is None else str(one) for one in clusters]
    pq.write_table(pa.table({"text": [one["text"] for one in rows], "cluster": written}), path)
    of_parquet = chain.encoded(store, path, scheme="xval", name="pq")
    for artifact in (plain, by_records, of_parquet):
        samples = read_split(artifact, "train")
        assert there(samples.clusters).to_pylist() == ["a", None, None, "7", "a"]
        first = there(samples.take(np.arange(2)).clusters)
        assert first.to_pylist() == ["a", None]


def test_without_clusters_there_is_no_column_of_them(store: Store) -> None:
    once = data(store, "once")
    shards = sorted(once.path.glob("*.parquet"))
    assert all("cluster" not in pq.read_schema(shard).names for shard in shards)
    assert EncodedSplit.read(shards, read_codec(once).ids).clusters is None
    for objective in ("mlm:targets", "classify"):
        path = report(store, "once", objective).path / PREDICTIONS_FILE
        assert "cluster" not in pq.read_schema(path).names
        assert not any("cluster" in note for note in report_of(report(store, "once")).notes)


def test_a_cluster_that_is_a_list_is_refused_with_the_line(store: Store, says: Says) -> None:
    path = store.root / "bad.jsonl"
    path.write_text('{"text": "1", "cluster": ["a"]}\n')
    with says.raises(DataError, f"{path}:1: ", "'cluster'", "an array", "--on-error skip"):
        chain.encoded(store, path, scheme="xval")


# --- intervals ------------------------------------------------------------------------------------


def answers(truth: Any, prediction: Any, **columns: Any) -> Predictions:
    written = [[repr(float(one)) for one in side] for side in (truth, prediction)]
    literals = {"truth_literal": written[0], "prediction_literal": written[1]}
    return Predictions.of(truth, prediction, **literals, **columns)


def copies(once: Predictions) -> Predictions:
    """Return ``COPIES`` copies of each sample; the copies of a sample form a cluster."""
    place = np.repeat(np.arange(len(once.truth)), COPIES)
    return once.take(place)._replace(sample=place)


def test_every_metric_of_copies_is_that_of_the_rows_themselves() -> None:
    """A metric that ignored row weights or resampled single rows would have another interval."""
    random = np.random.default_rng(0)
    names = "log_density crps pit log_density_tailed log_interval token_nll log_range"
    columns: dict[str, Any] = {name: random.random(9) for name in names.split()}
    columns["log_probability"] = random.random(9)
    columns["outside"] = random.random(9) < 0.5
    columns |= {"field": np.arange(9) % 3, "field_median": random.normal(0, 9, 9)}
    columns["quantiles"] = np.sort(random.normal(0, 9, (9, 5)), axis=1)
    columns |= {"interval_low": -9 * random.random(9), "interval_high": 9 * random.random(9)}
    words = random.choice(["a", "b", "c"], (2, 9)).tolist()
    truth = np.round(random.normal(0, 9, 9), 2)
    numbers = answers(truth, np.round(truth + random.normal(0, 1, 9), 2), **columns)
    labels = Predictions.of_labels(*words, log_probability=columns["log_probability"])
    for once, kind in ((numbers, NumberEvaluation), (labels, LabelEvaluation)):
        metrics = kind.metrics.defaults
        assert not any(metric.missing(once) for metric in metrics)
        # Adjusted R2 depends on the number of rows, which differs.
        metrics = [metric for metric in metrics if not isinstance(metric, METRICS["adjusted-r2"])]
        found = figures(metrics, copies(once), resamples=200)
        same(found, figures(metrics, once, resamples=200))


@pytest.mark.parametrize("objective", ["mlm:targets", "classify"])
def test_a_report_of_copies_has_the_intervals_of_the_rows(store: Store, objective: str) -> None:
    once, copied = (report_of(report(store, name, objective)) for name in ("once", "copied"))
    for found in (once, copied):
        found.metrics.pop("adjusted-r2", None)
    same(copied.metrics, once.metrics)
    for name, baseline in once.baselines.items():
        baseline.pop("adjusted-r2", None)
        same({metric: copied.baselines[name][metric] for metric in baseline}, baseline)
    assert copied.notes == [NOTE, *once.notes]


def test_comparisons_draw_clusters_and_say_how_many(store: Store, numtok: Shell) -> None:
    def compared(name: str) -> compare.Comparison:
        refs = tuple(report(store, name, seed=seed).ref for seed in (0, 1))
        return compare.run(compare.Config(refs, metrics=("mse", "r2")), store)

    once, copied = compared("once"), compared("copied")
    assert (once.parts[0].clusters, NOTE in once.notes) == (None, False)
    assert (copied.parts[0].clusters, NOTE in copied.notes) == (ROWS, True)
    ref = report(store, "copied").path
    by = compare.run(compare.Config((str(ref),), metrics=("mse",), by="tens"), store)
    assert sum(part.clusters or 0 for part in by.parts) == ROWS
    assert all(part.numbers == COPIES * (part.clusters or 0) for part in by.parts)
    ran = numtok("compare", str(ref), "--metric", "mse")
    assert "split test, 48 numbers in 12 clusters" in ran.out and NOTE in " ".join(ran.out.split())
    assert NOTE in " ".join(numtok("report", str(ref)).out.split())


def test_paired_differences_of_copies_are_those_of_the_rows(store: Store) -> None:
    once, copied = (
        paired(
            METRICS.build("mse"),
            *(
                [ReportPredictions.read(read(report(store, name, seed=one))).answers]
                for one in (0, 1)
            ),
        )
        for name in ("once", "copied")
    )
    assert copied.share_better == once.share_better
    same({"mse": copied.figure}, {"mse": once.figure})


def test_reports_of_other_clusters_are_not_paired(store: Store, says: Says) -> None:
    """The rows and true values are equal, but only one report has clusters."""
    rows = [row(f"train-{k}", 7 * k % 50, "train") for k in range(40)]
    rows += [row(f"{k:02d}-0", 11 * k % 47, "test", cluster=k // 2) for k in range(ROWS)]
    halves = encoded(store, "halves", rows)
    other = chain.evaluated(store, model(store).ref, halves.ref, name="halves")
    refs = report(store, "once").ref, other.ref
    told = f"{refs[0]} and {refs[1]} ", "different clusters", "the same split of the same data"
    with says.raises(DataError, *told):
        compare.run(compare.Config(refs, metrics=("mse",)), store)


def test_errors_of_copies_have_the_intervals_of_the_rows() -> None:
    once = answers(np.array([1.5, 2.0, 30.0, 4.0, -5.0]), np.array([1.5, 0.2, 30.0, 7.0, 5.0]))
    found = [
        errors_stage.report_errors(errors_stage.Config(("one",)), "", "", one).errors
        for one in (once, copies(once))
    ]
    for other, one in zip(*found, strict=True):
        same({one.kind: one.share}, {other.kind: other.share})
    assert all(one.share.low != one.share.high for one in found[0][:4])


def test_a_probe_draws_clusters_and_says_so(store: Store) -> None:
    found = []
    for name in ("once", "copied"):
        learnt = model(store).ref
        config = probe.Config("examples", learnt, data(store, name).ref, name=f"probe-{name}")
        found.append(read_probe(probe.run(config, store, quiet).artifact).probe)
    once, copied = found
    assert copied.notes == [NOTE, *once.notes]
    assert isinstance(once.found, Along) and isinstance(copied.found, Along)
    same({"slope": copied.found.slope}, {"slope": once.found.slope})
    for name, errors in once.found.errors.items():
        same(copied.found.errors[name], errors)
    assert once.found.slope.low != once.found.slope.high


def test_of_few_clusters_it_is_said_that_intervals_are_rough(says: Says) -> None:
    says(clusters_note(19), "19 clusters", "approximate")
    says(clusters_note(1200), "1,200 clusters")
    assert "approximate" not in clusters_note(1200)
