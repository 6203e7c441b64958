"""Labels of texts: training from scratch or from another model's trunk, prediction, scoring."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.splits import read_split, read_words
from numtok.errors import DataError, NumtokError, TrainingFailed, UsageError
from numtok.evaluation import label_baselines
from numtok.evaluation import labels as label_evaluation_module
from numtok.evaluation.rows import sampled
from numtok.models.model import Model, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import row_end_batch
from numtok.models.vocabulary import Vocabulary
from numtok.reports import PREDICTIONS_FILE
from numtok.row import in_order
from numtok.seeds import generator
from numtok.stages import compare, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from numtok.training.model_files import read_model
from numtok.training.warm_start import copy_weights
from tests import chain, fakemodels
from tests.cases import case
from tests.chain import contents as contents
from tests.chain import csv_rows, jsonl, quiet, there
from tests.chain import report_of as report_of
from tests.messages import Says
from tests.shell import Shell

TINY = "nano,layers=1,width=32,heads=2"
CPU = torch.device("cpu")
Row = dict[str, Any]
CAUSAL = {"classify": False, "classify,causal=yes": True}

one_thread = fakemodels.one_thread


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")


def weights(rows: int) -> list[Row]:
    """Return rows such as ``is 3.5 kg more than 1.2 kg``, with the label yes or no."""
    random = np.random.default_rng(0)
    pairs = random.integers(1, 100, (2 * rows, 2)) / 10
    pairs = pairs[pairs[:, 0] != pairs[:, 1]][:rows]
    return [
        {
            "id": index,
            "text": f"is {a} kg more than {b} kg",
            "label": "yes" if a > b else "no",
            "split": "test" if index >= 0.8 * rows else "train",
            "group": {"close": bool(abs(a - b) < 1)},
        }
        for index, (a, b) in enumerate(pairs.tolist())
    ]


def encoded(
    store: Store, folder: Path, rows: list[Row], scheme: str = "xval", name: str = "texts"
) -> Artifact:
    """Encode rows."""
    path = jsonl(folder / f"{name}.jsonl", rows)
    return chain.encoded(store, path, scheme=scheme, name=f"{name}-{scheme}")


def like(store: Store, rows: list[Row], name: str, model: str = "kilos") -> Artifact:
    """Encode rows like the training data of a model."""
    return chain.encoded(
        store, jsonl(store.root.parent / f"{name}.jsonl", rows), like=model, name=name
    )


def trained(store: Store, data: Artifact, objective: str = "classify", **options: Any) -> Artifact:
    chosen: dict[str, Any] = {"preset": TINY, "steps": 4, "batch": 64} | options
    return chain.trained(store, data.ref, objective=objective, **chosen)


def evaluated(store: Store, model: Artifact, data: Artifact, **options: Any) -> Artifact:
    found = chain.evaluated(store, model.ref, data.ref, **options)
    assert verify(found).problems == []
    return found


def kilos(store: Store, **options: Any) -> Artifact:
    """Evaluate the model that compares weights on its own data."""
    return evaluated(store, store.resolve("kilos"), store.resolve("texts-xval"), **options)


def predictions_of(artifact: Artifact) -> "pa.Table":
    return pq.read_table(artifact.path / PREDICTIONS_FILE)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


@pytest.fixture
def sixty(store: Store, tmp_path: Path) -> Artifact:
    """Return sixty encoded rows of weights."""
    return encoded(store, tmp_path, weights(60))


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with rows of weights, a model that has learned to compare them, and its
    report."""
    root = tmp_path_factory.mktemp("classify")
    store = Store(root / "artifacts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        data = encoded(store, root, weights(1500))
        trained(store, data, steps=150, batch=128, learning_rate=5e-3, name="kilos")
        kilos(store, name="report")
    return root / "artifacts"


@pytest.fixture
def known(learnt: Path, tmp_path: Path) -> Store:
    """Return a copy of that store, in the working folder of ``numtok``."""
    shutil.copytree(learnt, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts")


# --- training ----------------------------------------------------------------------------------


def test_a_tiny_model_learns_to_compare_numbers_that_it_never_saw(known: Store) -> None:
    report = report_of(known.resolve("report"))
    accuracy = report.metrics["accuracy"]
    assert (report.rows, report.numbers, accuracy.n) == (300, 300, 300)
    assert there(accuracy.value) > 0.95
    for baseline in report.baselines.values():
        assert there(baseline["accuracy"].value) < 0.7
    assert (report.invalid, report.valid_metrics, report.by_target) == (0.0, {}, {})
    assert report.decoding == {"label": "read at the last token"}
    assert "head" not in report.configuration


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_padded_rows_are_read_as_rows_alone(scheme: str) -> None:
    one = SCHEMES.build(scheme)
    numbers = ("0.25", "0.5") if one.unit_interval else ("3.5", "-12.25")
    texts = [f"is {numbers[0]} kg", "", f"is {numbers[0]} kg more than {numbers[1]} kg", "no"]
    for objective, causal in CAUSAL.items():
        model = fakemodels.model(scheme, objective, classes=("a", "b", "c"), spread=0.1)
        together = row_end_batch(fakemodels.batch(scheme, texts), causal)
        with torch.no_grad():
            found = model.class_log_probabilities(together)
            for row, text in enumerate(texts):
                batch = row_end_batch(fakemodels.batch(scheme, [text]), causal)
                alone = model.class_log_probabilities(batch)[0]
                torch.testing.assert_close(alone, found[row], rtol=0, atol=1e-5)
        assert torch.unique(found, dim=0).shape[0] == len(texts)


@pytest.mark.parametrize("objective", CAUSAL)
def test_the_loss_is_the_cross_entropy_of_the_label(objective: str) -> None:
    model = fakemodels.model("p1000", objective, classes=("a", "b"))
    labels = ["b", None, "a", "b"]
    of = fakemodels.samples("p1000", ["1 of 2", "3", "", "4 5 6"], labels=labels)
    batch = fakemodels.batches(of, 4, classes=("a", "b")).of(np.arange(4))
    losses = model.losses(model.given(OBJECTIVES.build(objective).example(batch, generator(0))))
    log_BC = model.class_log_probabilities(row_end_batch(batch, CAUSAL[objective]))
    expected = -(log_BC[0, 1] + log_BC[2, 0] + log_BC[3, 1]) / 3
    torch.testing.assert_close(losses.token, expected)
    assert float(losses.value) == 0


def test_a_model_of_labels_has_one_head(store: Store, tmp_path: Path) -> None:
    model = trained(store, encoded(store, tmp_path, weights(40)))
    found = read_model(model, CPU)
    assert found.model.settings.classes == ("no", "yes") and found.model.head is None
    names = [name for name, _ in found.model.named_parameters() if "head" in name]
    assert names == ["class_head.weight", "class_head.bias"]
    assert (found.trained.train_mean, found.trained.calibration) == (None, {})
    assert model.manifest.counts["classes"] == 2
    assert "--head" not in model.manifest.command


def test_labels_are_ordered_as_numbers_then_texts(store: Store, tmp_path: Path) -> None:
    labels: list[int | str] = [10, 9, "no", -1, "10a", 9]
    rows = [{"text": f"{index} m", "label": label} for index, label in enumerate(labels)]
    settings = read_model(trained(store, encoded(store, tmp_path, rows)), CPU).model.settings
    assert settings.classes == in_order(["no", "10a", "9", "10", "-1"])
    assert settings.classes == ("-1", "9", "10", "10a", "no")


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_what_failed_or_was_killed_goes_on_to_the_same_bytes(tmp_path: Path, scheme: str) -> None:
    whole, broken = (Store(tmp_path / name) for name in ("whole", "broken"))
    rows = weights(60)
    options: dict[str, Any] = {"checkpoint_steps": 1, "name": "model", "steps": 5, "batch": 16}
    first = trained(whole, encoded(whole, tmp_path, rows, scheme), **options)
    data = encoded(broken, tmp_path, rows, scheme)
    seen: list[int] = []

    def stops(update: Any) -> None:
        seen.append(update.step)
        if len(seen) == 3:
            raise KeyboardInterrupt

    config = train.Config(data.ref, objective="classify", preset=TINY, **options)
    with pytest.raises(KeyboardInterrupt):
        train.run(config, broken, stops)
    second = train.run(config, broken, stops)
    assert seen == [1, 2, 3, 3, 4, 5]
    assert contents(second.artifact) == contents(first)


def test_batches_in_parts_learn_the_same(store: Store, sixty: Artifact) -> None:
    found = [
        read_model(trained(store, sixty, accumulate=parts, name=f"in-{parts}"), CPU).model
        for parts in (1, 3)
    ]
    for one, other in zip(*(model.parameters() for model in found), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)


def test_rows_to_look_at_need_no_label_and_are_left_out_without(tmp_path: Path) -> None:
    told: list[str] = []
    store = Store(tmp_path / "artifacts", told.append)
    rows = weights(60)
    for row in rows[48:]:
        row["split"] = "validation"
    rows[50]["label"] = None
    rows[51]["label"] = "perhaps"
    model = trained(store, encoded(store, tmp_path, rows))
    assert told == [
        "validation skips 2 of the 12 rows of split 'validation': they have no label, or one that "
        "split 'train' lacks"
    ]
    looked_at = looks(model)[-1]
    found = read_model(model, CPU)
    samples = read_split(store.resolve("texts-xval"), "validation")
    log_NC = found.model.class_log_probabilities(
        row_end_batch(fakemodels.batches(samples, 12).of(np.arange(12)), False)
    ).detach()
    place = samples.class_of(("no", "yes"))
    known = np.flatnonzero(place >= 0)
    expected = -float(log_NC[known, place[known]].mean())
    assert len(known) == 10 and looked_at == pytest.approx(expected, rel=1e-5)

    for row in rows[48:]:
        row["label"] = None
    model = trained(store, encoded(store, tmp_path, rows, name="none"))
    assert "12 of the 12 rows" in told[1]
    assert b"validation" not in (model.path / "metrics.jsonl").read_bytes()


# --- another model's trunk ---------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
@pytest.mark.parametrize("before", ["mlm", "ar", "classify,causal=yes"])
def test_init_brings_only_the_trunk(store: Store, tmp_path: Path, scheme: str, before: str) -> None:
    data = encoded(store, tmp_path, weights(60), scheme)
    first = trained(store, data, before, name="first")
    again = trained(store, data, init=first.ref, steps=1, name="again")
    there, settings = read_model(first, CPU), read_model(again, CPU).model.settings
    causal = before != "mlm"
    assert OBJECTIVES.from_settings(settings.objective).causal == causal
    told = "classify,causal=yes" if causal else "classify"
    assert read_model(again, CPU).trained.configuration["objective"] == told

    torch.manual_seed(7)
    model = build_model(settings, Vocabulary.of(there.codec))
    heads = [parameter.clone() for parameter in model.class_head.parameters()]
    copy_weights(model, there)
    samples = read_split(data, "test")
    batch = fakemodels.batches(samples, 12).of(np.arange(12))
    given = model.given(row_end_batch(batch, causal))
    with torch.no_grad():
        states = [
            one.eval().hidden(given.tokens, given.values, given.real)
            for one in (model, there.model)
        ]
    assert torch.equal(*states)
    for now, then in zip(model.class_head.parameters(), heads, strict=True):
        assert torch.equal(now, then)


def test_seeds_of_both_trainings_are_one_experiment(store: Store, sixty: Artifact) -> None:
    data = sixty

    def report(seed: int, **before: Any) -> str:
        named = "-".join(map(str, before.values()))
        first = trained(store, data, "mlm", seed=seed, name=f"first-{seed}-{named}", **before)
        second = trained(store, data, init=first.ref, seed=seed, name=f"second-{seed}-{named}")
        assert second.manifest.parents[1].where == first.ref
        return evaluated(store, second, data, name=f"report-{seed}-{named}").ref

    refs = [report(0), report(1)]
    found = compare.run(compare.Config((*refs,)), store)
    assert [one.seeds for one in found.experiments] == [[0, 1]]
    longer = report(0, steps=5)
    start = evaluated(store, trained(store, data, name="start"), data, name="start").ref
    found = compare.run(compare.Config((*refs, longer, start)), store)
    mlm = [f"xval, init.objective=mlm, init.budget_steps={steps}" for steps in (4, 5)]
    assert [one.label for one in found.experiments] == [*mlm, "xval, init.objective=-"]
    # `start` lacks all settings of a first training, but only those that vary are listed.
    told = [list(one.settings.values()) for one in found.experiments]
    assert list(found.experiments[0].settings) == ["init.objective", "init.budget_steps"]
    assert told == [["mlm", "4"], ["mlm", "5"], ["-", "-"]]


@pytest.mark.parametrize("scheme", ["numgpt", "digits"])
def test_a_model_reads_a_page_before_sorting(scheme: str, store: Store, tmp_path: Path) -> None:
    """The first training is on plain text without targets or labels, like a dump of Wikipedia."""
    page = (Path(__file__).parents[2] / "docs/reference/numbers.md").read_text("utf-8")
    paragraphs = [{"text": one} for one in page.split("\n") if 60 < len(one) < 400][:40]
    assert len(paragraphs) == 40
    read = encoded(store, tmp_path, paragraphs, scheme, "page")
    begun = trained(store, read, "ar", steps=2, batch=8, preset=f"{TINY},context=512")
    data = like(store, weights(40), "rows", begun.ref)
    sorts = trained(store, data, init=begun.ref, steps=2, preset=f"{TINY},context=512")
    report = report_of(evaluated(store, sorts, data))
    assert report.configuration["init.objective"] == "ar"
    assert there(report.labels).classes == ["no", "yes"]


def looks(model: Artifact) -> list[float]:
    """Return the losses on the validation split."""
    lines = map(json.loads, (model.path / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if line["split"] == "validation"]


def test_rows_without_a_label_do_not_take_the_place_of_others_to_look_at(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = weights(60)
    for row in rows[30:]:
        row |= {"split": "validation", "label": None}
    rows[40]["label"] = "yes"
    monkeypatch.setattr("numtok.training.examples._VALIDATION_ROWS", 4)
    losses = looks(trained(Store(store.root, quiet), encoded(store, tmp_path, rows)))
    assert losses and all(loss > 0 for loss in losses)


def test_the_version_does_not_depend_on_spelling(store: Store, sixty: Artifact) -> None:
    first = trained(store, sixty, "ar", name="first")
    one = trained(store, sixty, init=first.ref, name="one")
    same: dict[str, Any] = {"preset": TINY, "steps": 4, "batch": 64, "init": first.ref}
    config = train.Config(sixty.ref, objective="classify,causal=yes", name="one", **same)
    again = train.run(config, store, quiet)
    assert (again.made, again.artifact.ref) == (False, one.ref)
    command = one.manifest.command
    assert command[command.index("--objective") + 1] == "classify,causal=yes"


REFUSED_INIT = {
    ("--objective", "classify,causal=no"): "--objective classify,causal=no cannot be combined with "
    "--init-from {init}|Remove causal",
    ("--preset", "nano,layers=1,width=48,heads=2"): "--init-from {init} |embedder.table.weight is "
    "({tokens}, 32), |({tokens}, 48). |Remove --preset and --embedder",
    ("--preset", "nano,layers=1,width=32,heads=4"): "--init-from {init} |number of heads is 2, "
    "|is 4. |Remove --preset and --embedder",
    ("--preset", "nano,layers=1,width=32,heads=2,positions=sinusoidal"): "--init-from {init} |"
    "trunk.positions is (16, 32), |is missing. |Remove --preset and --embedder",
    ("--head", "mdn:5"): "--head mdn:5 |--objective classify,causal=yes |Remove --head",
}  # fmt: skip


def test_what_does_not_agree_with_init_is_told_in_one_line(
    numtok: Shell, store: Store, sixty: Artifact, says: Says
) -> None:
    data, first = sixty, trained(store, sixty, "ar", name="first")
    tokens = read_model(first, CPU).model.settings.vocabulary
    for options, told in REFUSED_INIT.items():
        given = {"--preset": TINY, "--objective": "classify"} | dict([options])
        words = [word for pair in given.items() for word in pair]
        ran = numtok("train", data.ref, "--init-from", first.ref, "--steps", "1", *words)
        says.refused(ran, 2, *told.format(init=first.ref, tokens=tokens).split("|"))


def test_trunks_agree_and_heads_are_of_labels(store: Store, tmp_path: Path, says: Says) -> None:
    data = encoded(store, tmp_path, weights(60), "p1000")
    rotary = trained(store, data, "mlm", preset=TINY + ",positions=rotary", name="first").ref
    labels = trained(store, data, name="labels").ref
    sinusoidal: dict[str, Any] = {"preset": TINY + ",positions=sinusoidal", "init": rotary}
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        (
            sinusoidal,
            (f"--init-from {rotary} ", "is rotary", "is sinusoidal", "Remove --preset"),
        ),
        (
            {"objective": "mlm", "init": labels},
            (f"--init-from {labels} ", "--objective mlm", "use --objective classify"),
        ),
        ({"head": "scalar"}, ("--head scalar ", "--objective classify ", "Remove --head")),
    ]
    for options, told in cases:
        with case(options=options), says.raises(UsageError, *told):
            trained(store, data, **options)


def test_labels_that_cannot_be_learnt_are_refused(store: Store, tmp_path: Path, says: Says) -> None:
    missing = weights(60)
    missing[3]["label"] = missing[7]["label"] = None
    ids = [{"text": f"{index} m", "label": f"id-{index:03}"} for index in range(300)]
    for rows, before, after, remedy in (
        (missing, "2 of the 48 rows of ", " have none", ("--objective classify ", "another --obj")),
        ([row | {"label": 3} for row in weights(20)], "all rows of ", " have '3'", ("two labels",)),
        (ids, "", " has 300 in 300 rows", ("'id-000'", "is a class")),
    ):
        data = encoded(store, tmp_path, rows)
        told = f"{before}split 'train' of {data.ref}{after}"
        with case(after), says.raises(DataError, told, *remedy):
            trained(store, data)
    twice = [row | {"id": str(index), "label": index // 2} for index, row in enumerate(ids)]
    made = trained(store, encoded(store, tmp_path, twice, name="twice"))
    assert made.manifest.counts["classes"] == 150


# --- errors ------------------------------------------------------------------------------------


def test_options_for_numbers_are_refused(numtok: Shell, known: Store, says: Says) -> None:
    model = known.resolve("kilos").ref
    for option, told, remedy in (
        ("--fill parallel", "--fill", "Remove it"),
        ("--decode free", "--decode", "Remove it"),
        ("--point median", "--point", "Remove it"),
        ("--num-samples 8", "--num-samples", "Remove it"),
        ("--metric r2", "metric r2", "accuracy, label-nll, macro-f1, micro-f1"),
    ):
        ran = numtok("eval", "kilos", "texts-xval", *option.split())
        says.refused(ran, 2, f"numtok: {told}", model, remedy)
    ran = numtok("probe", "examples", "kilos", "texts-xval")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    says(ran.err, "numtok: probe examples ", f"{model} predicts labels", "numtok eval")
    ref = known.resolve("report").ref
    figures = [("figure", kind, "--out", "x.png") for kind in ("truth", "error", "frequencies")]
    for command in (*figures, ("diagnose",)):
        ran = numtok(*command[:2], "report", *command[2:])
        says.refused(ran, 2, "a report on numbers", f"{ref} is on labels")


def test_label_metrics_are_refused_for_numbers(store: Store, tmp_path: Path, says: Says) -> None:
    data = encoded(store, tmp_path, weights(40))
    model = trained(store, data, "mlm")
    with says.raises(UsageError, "metric accuracy ", "labels", f"{model.ref} is on numbers"):
        evaluated(store, model, data, metrics=("accuracy",))
    numbers = evaluated(store, model, data, name="numbers")
    labels = evaluated(store, trained(store, data), data, name="labels")
    told = f"{numbers.ref} is a report of numbers and {labels.ref} one of labels", "of one kind"
    with says.raises(NumtokError, *told):
        compare.run(compare.Config((numbers.ref, labels.ref), metrics=("accuracy",)), store)


def test_a_split_without_labels_is_refused(known: Store, says: Says) -> None:
    data = like(known, [{"text": "is 2.5 kg more than 1 kg", "split": "test"}], "bare")
    told = "no row ", f"split 'test' of {data.ref} has a label", "rows with labels"
    with says.raises(DataError, *told):
        evaluated(known, known.resolve("kilos"), data)


# --- a report ----------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model_row_by_row(known: Store) -> None:
    loaded = read_model(known.resolve("kilos"), CPU)
    samples = read_split(known.resolve("texts-xval"), "test")
    table = predictions_of(known.resolve("report"))
    assert table["id"].to_pylist() == samples.ids.to_pylist()
    assert table["label"].to_pylist() == samples.labels.to_pylist()
    assert table["group_close"].to_pylist() == samples.groups["close"].to_pylist()
    batch = fakemodels.batches(samples, 300).of(np.arange(300))
    with torch.no_grad():
        log_NC = loaded.model.class_log_probabilities(row_end_batch(batch, False)).numpy()
    classes = loaded.model.settings.classes
    assert table["prediction"].to_pylist() == [classes[best] for best in log_NC.argmax(axis=1)]
    assert table.column_names == ["id", "label", "prediction", "log_probability", "group_close"]
    place = samples.class_of(classes)
    expected = log_NC[np.arange(300), place]
    np.testing.assert_allclose(table["log_probability"].to_pylist(), expected, atol=1e-5)


def test_figures_are_those_of_the_predictions(known: Store) -> None:
    report = report_of(known.resolve("report"))
    table = predictions_of(known.resolve("report"))
    right = np.array(table["label"].to_pylist()) == np.array(table["prediction"].to_pylist())
    assert report.metrics["accuracy"].value == pytest.approx(right.mean())
    expected = -np.mean(table["log_probability"].to_pylist())
    assert report.metrics["label-nll"].value == pytest.approx(expected)
    assert list(report.metrics) == ["accuracy", "macro-f1", "label-nll"]
    for figure in report.metrics.values():
        assert there(figure.low) <= there(figure.value) <= there(figure.high)
    close = np.array(table["group_close"].to_pylist())
    for value, figures in report.groups["close"].items():
        assert figures["accuracy"].value == pytest.approx(right[close == value].mean())
        assert figures["accuracy"].n == (close == value).sum()
    confusion = there(report.labels)
    assert confusion.classes == ["no", "yes"]
    pairs = {(one.truth, one.predicted): one.rows for one in confusion.confusion}
    labels, guesses = table["label"].to_pylist(), table["prediction"].to_pylist()
    found = list(zip(labels, guesses, strict=True))
    assert pairs == {pair: found.count(pair) for pair in set(found)}


def test_the_majority_baseline_is_the_most_frequent_label_of_the_train_split(known: Store) -> None:
    splits = (read_split(known.resolve("texts-xval"), split) for split in (TRAIN, "test"))
    train, test = (np.array(split.labels.to_pylist()) for split in splits)
    share = (train == "yes").mean()
    most = "yes" if share > 0.5 else "no"
    baseline = report_of(known.resolve("report")).baselines["majority"]
    assert baseline["accuracy"].value == pytest.approx((test == most).mean())
    expected = -np.mean(np.log(np.where(test == "yes", share, 1 - share)))
    assert baseline["label-nll"].value == pytest.approx(expected)


def test_the_tfidf_baseline_is_logistic_regression_on_words_and_numbers(known: Store) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    texts, labels = ([row[field] for row in weights(1500)] for field in ("text", "label"))
    vectors = text.TfidfVectorizer(token_pattern=r"[0-9.]+|\w+", sublinear_tf=True)
    x = vectors.fit_transform(texts[:1200])
    model = linear.LogisticRegression(max_iter=200).fit(x, labels[:1200])
    expected = model.score(vectors.transform(texts[1200:]), labels[1200:])
    report = report_of(known.resolve("report"))
    assert report.baselines["tfidf"]["accuracy"].value == pytest.approx(expected, abs=0.01)
    [note] = report.notes
    assert "tfidf" in note and "1,200 of 1,200 rows of the train split" in note


def test_words_are_as_written_whatever_the_scheme(store: Store, tmp_path: Path) -> None:
    rows = [{"text": r"Is -3.50 KG [NUM]? [\NUM] 1e3"}, {"text": ""}, {"text": "no number"}]
    for scheme in ("p1000", "xval"):
        data = encoded(store, tmp_path, rows, scheme)
        words = [("is", "-3.5", "kg", "num", "num", "1000.0"), (), ("no", "number")]
        assert list(read_words(data, TRAIN, np.arange(3))) == words
        assert list(read_words(data, TRAIN, np.array([2]))) == words[2:]


def test_baselines_see_some_of_many_rows(known: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    for module in (label_baselines, label_evaluation_module):
        monkeypatch.setattr(module, "FITTED_ON", 100)
    some = sampled(np.arange(1200), 100, "floor")
    assert len(some) == 100 and len(set(some.tolist())) == 100
    assert some.tolist() == sorted(some.tolist()) and some[-1] > 1000
    assert "fitted to 100 of 1,200 rows" in report_of(kilos(known, name="few")).notes[0]
    # Without scikit-learn, the majority is the only baseline.
    monkeypatch.setattr(label_baselines, "find_spec", lambda name: None)
    found = report_of(kilos(known, name="bare"))
    assert (list(found.baselines), found.notes) == (["majority"], [])


def test_texts_without_a_word_have_no_baseline_by_words(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    rows = [{"text": "+-"[row % 2] * 3, "label": row % 2, "split": "train"} for row in range(8)]
    data = encoded(store, tmp_path, rows, "p1000")
    report = report_of(evaluated(store, trained(store, data), data, split="train"))
    assert list(report.baselines) == ["majority"] and report.notes == []


def strange(known: Store) -> Artifact:
    """Evaluate rows of which one has no label, and two have labels that are not in the train
    split."""
    rows = weights(30)
    labels = {0: None, 1: "perhaps", 2: 7}
    chosen = [row | {"split": "test"} for row in rows]
    for row, label in labels.items():
        chosen[row]["label"] = label
    data = like(known, chosen, "strange")
    return evaluated(known, known.resolve("kilos"), data, name="of-strange")


def test_labels_unseen_in_training_count_as_wrong(numtok: Shell, known: Store) -> None:
    artifact = strange(known)
    report, table = report_of(artifact), predictions_of(artifact)
    labels = there(report.labels)
    assert (report.rows, report.numbers, labels.unseen, labels.unlabelled) == (30, 29, 2, 1)
    assert table["log_probability"].to_pylist()[:3] == [None, None, None]
    assert None not in table["prediction"].to_pylist()
    right = np.array(table["label"].to_pylist()) == np.array(table["prediction"].to_pylist())
    assert right.sum() <= 27
    assert report.metrics["accuracy"].value == pytest.approx(right.sum() / 29)
    nll = report.metrics["label-nll"]
    assert nll.n == 27 and report.metrics["accuracy"].n == 29
    assert nll.value == pytest.approx(-np.mean(table["log_probability"].to_pylist()[3:]))
    assert report.baselines["majority"]["label-nll"].n == 27
    assert report.baselines["majority"]["label-nll"].value is not None
    assert report.notes[:2] == [
        "Not scored: 1 row without a label.",
        "2 rows with a label that is not in the train split ('perhaps', '7'): counted as wrong, "
        "and excluded from label-nll.",
    ]
    printed = numtok("report", "of-strange").out
    assert "30 rows, 29 with a label; 2 classes;" in printed
    assert "perhaps" in printed.partition("rows of each label")[2]


def test_a_report_prints_what_was_confused(numtok: Shell, known: Store) -> None:
    printed = numtok("report", "report").out
    for told in (
        "300 rows, 300 with a label; 2 classes; label: read at the last token", "all labels",
        "model's skill (accuracy)", "model's skill (label-nll)", "majority",
        "rows of each label (down) by prediction (across)",
    ):  # fmt: skip
        assert told in printed
    assert "valid prediction" not in printed and "numbers" not in printed.partition("Note")[0]
    report = report_of(known.resolve("report"))
    rows = csv_rows(numtok("report", "report", "--format", "csv").out)
    confused = {row["value"]: row["figure"] for row in rows if row["part"] == "confusion"}
    pairs = there(report.labels).confusion
    assert confused == {f"{one.truth} predicted {one.predicted}": str(one.rows) for one in pairs}
    both = report.metrics, report.baselines["majority"]
    own, baseline = (there(of["accuracy"].value) for of in both)
    line = next(line for line in printed.splitlines() if "model's skill (accuracy)" in line)
    assert float(line.split()[3]) == pytest.approx(1 - (1 - own) / (1 - baseline), abs=1e-3)


def test_frequent_errors_of_many_classes(numtok: Shell, store: Store, tmp_path: Path) -> None:
    rows = [
        {"text": f"{index % 20} m", "label": index % 20, "split": "train" if index < 60 else "test"}
        for index in range(120)
    ]
    data = encoded(store, tmp_path, rows)
    labels = there(report_of(evaluated(store, trained(store, data), data, name="many")).labels)
    assert len(labels.classes) == 20
    found = labels.confusion
    assert len(found) == 12 and all(one.truth != one.predicted for one in found)
    assert [one.rows for one in found] == sorted((one.rows for one in found), reverse=True)
    printed = numtok("report", "many").out
    assert "the most frequent errors" in printed


def test_a_table_of_pairs_has_all_or_none(numtok: Shell, store: Store, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": f"{index % 12} m", "label": index % 12, "split": "test" if index >= 240 else TRAIN}
        for index in range(480)
    ]
    model = trained(store, encoded(store, tmp_path, rows), name="twelve")
    for name, label in (("all", 0), ("rare", "unseen")):
        rows[240]["label"] = label
        asked = like(store, rows, name, "twelve")
        labels = there(report_of(evaluated(store, model, asked, name=f"of-{name}")).labels)
        assert labels.unseen == int(name == "rare")
        right = any(one.truth == one.predicted for one in labels.confusion)
        printed = numtok("report", f"of-{name}").out
        if name == "all":
            assert labels.complete and sum(one.rows for one in labels.confusion) == 240
            assert "rows of each label (down)" in printed
        else:
            assert not labels.complete and not right
            assert "the most frequent errors" in printed and "(down)" not in printed


def test_a_label_that_the_regression_saw_nothing_of_keeps_its_share() -> None:
    pytest.importorskip("sklearn")
    shares = np.log([0.5, 0.3, 0.2])
    true = np.array([0, 2, -1])

    class Fixed(NamedTuple):
        rows: NDArray[np.int64]
        words: list[tuple[str, ...]]

        def read(self) -> Iterator[tuple[str, ...]]:
            return iter(self.words)

    learnt = Fixed(np.arange(4), [("a",), ("a",), ("b",), ("b",)])
    asked = Fixed(np.arange(3), [("a",), ("b",), ("b",)])
    told: list[tuple[str, int, int]] = []
    found = there(
        label_baselines._tfidf(
            learnt,  # type: ignore[arg-type]
            np.array([0, 0, 1, 1]),
            asked,  # type: ignore[arg-type]
            true,
            shares,
            lambda *update: told.append(update),
        )
    )
    assert found.best.tolist() == [0, 1, 1]
    assert found.log_true[1] == pytest.approx(np.log(0.2)) and np.isnan(found.log_true[2])
    assert found.log_true[0] < np.log(0.8)  # label 2 keeps a probability of 0.2
    assert told == [("baseline tfidf", 7, 7)]


def test_predictions_by_parts_are_the_same(known: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(label_baselines, "_CELLS", 14)  # seven rows
    found = report_of(kilos(known, name="parts"))
    assert found.baselines == report_of(known.resolve("report")).baselines


def test_where_what_was_learnt_is_gone_there_are_no_baselines(known: Store, says: Says) -> None:
    more = {"text": "is 2.5 kg more than 1 kg", "label": "yes", "split": "test"}
    data = like(known, [more], "more")
    shutil.rmtree(known.resolve("texts-xval").path)
    report = report_of(evaluated(known, known.resolve("kilos"), data))
    assert report.baselines == {}
    [note] = report.notes
    says(note, "training data", "baselines")


@pytest.mark.parametrize("batch", [1, 7])
def test_the_size_of_a_batch_changes_no_prediction(known: Store, batch: int) -> None:
    found = predictions_of(kilos(known, batch=batch, rows=40, name=f"by-{batch}"))
    drawn = read_split(known.resolve("texts-xval"), "test").drawn(40)
    whole = predictions_of(known.resolve("report")).take(drawn)
    assert found["prediction"].to_pylist() == whole["prediction"].to_pylist()
    one, other = (of["log_probability"].to_pylist() for of in (found, whole))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_where_memory_is_out_fewer_rows_are_read_at_a_time(
    known: Store, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    whole, sizes, most = Model.class_log_probabilities, [], 50

    def small(model: Model, example: Any) -> torch.Tensor:
        sizes.append(len(example.tokens))
        if len(example.tokens) > most:
            raise MemoryError
        return whole(model, example)

    monkeypatch.setattr(Model, "class_log_probabilities", small)
    told: list[str] = []
    store = Store(known.root, told.append)
    found = kilos(store, name="halved")
    assert sizes[:3] == [256, 128, 64] and set(sizes[3:]) <= {32, 300 % 32}
    assert told == [
        f"out of memory with --batch {size}; continuing with {size // 2}" for size in (256, 128, 64)
    ]
    whole_table = predictions_of(known.resolve("report"))
    assert predictions_of(found)["prediction"] == whole_table["prediction"]
    most = 0
    with says.raises(TrainingFailed, "out of memory with --batch 1", "more memory"):
        kilos(store, name="never")


def test_a_report_is_found_again_and_its_command_makes_it(numtok: Shell, known: Store) -> None:
    first = known.resolve("report")
    assert kilos(known, name="report").ref == first.ref
    words = list(first.manifest.command)
    assert not {"--fill", "--decode", "--point"} & set(words)
    ran = numtok(*words[1:], "--force")
    assert (ran.code, ran.out) == (0, f"{first.ref}\n")
    assert first.manifest.counts == {"rows": 300, "labels": 300}


# --- several reports ---------------------------------------------------------------------------


def test_reports_of_labels_are_compared_over_seeds(numtok: Shell, known: Store) -> None:
    data = known.resolve("texts-xval")
    models = [trained(known, data, seed=seed, name=f"m{seed}") for seed in (0, 1, 2)]
    refs = [evaluated(known, one, data, name=f"r{seed}").ref for seed, one in enumerate(models)]
    found = compare.run(compare.Config(("report", *refs)), known)
    assert found.measures == "labels" and found.numbers == 300
    assert list(found.metrics) == ["accuracy", "macro-f1", "label-nll"]
    best, weak = found.experiments
    assert (len(best.seeds), len(weak.seeds)) == (1, 3)
    [part] = found.parts
    assert part.reference == best.label
    standing = part.standings[weak.label]["accuracy"]
    values = [report_of(known.resolve(ref)).metrics["accuracy"].value or 0.0 for ref in refs]
    assert standing.figure.value == pytest.approx(np.mean(values))
    assert standing.figure.deviation == pytest.approx(np.std(values, ddof=1))
    assert standing.figure.interval == "bootstrap"
    assert there(standing.figure.low) < np.mean(values) < there(standing.figure.high)
    own = report_of(known.resolve("report")).metrics["accuracy"].value or 0.0
    difference = there(standing.difference)
    assert difference.value == pytest.approx(np.mean(values) - own)
    assert difference.significant
    assert {baseline.name for baseline in part.baselines} == {"majority", "tfidf"}

    ran = numtok("compare", "report", *refs, "--require", "accuracy>=0.9")
    assert ran.code == 1 and "skill by accuracy" in ran.out and "300 labels" in ran.out
    ran = numtok("compare", "report", *refs, "--by", "close", "--metric", "macro-f1")
    assert ran.code == 0 and "close true" in ran.out
    ran = numtok("compare", "report", "--require", "r2>=0.9")
    assert ran.code == 2 and "metric r2 only applies to numbers" in ran.err


def test_reports_of_other_labels_are_not_compared(known: Store, says: Says) -> None:
    other, report = strange(known), known.resolve("report")
    told = f"different test sets: id '1' is in {other.ref} but not in {report.ref}"
    with says.raises(DataError, told):
        compare.run(compare.Config((report.ref, other.ref), metrics=("accuracy",)), known)
    rows = weights(1500)
    then = rows[1200]["label"]
    now = rows[1200]["label"] = {"yes": "no", "no": "yes"}[then]
    again = evaluated(known, known.resolve("kilos"), like(known, rows, "changed"), name="changed")
    told = f"id '1200' is {then!r} in {report.ref} and {now!r} in {again.ref}"
    with says.raises(DataError, told):
        compare.run(compare.Config((report.ref, again.ref)), known)
