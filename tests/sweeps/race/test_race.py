"""``numtok race`` on small texts and a small table: results, resuming, output and errors."""

import csv
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from numtok.cli.output.pages.page import RowList
from numtok.cli.output.pages.race import race_page
from numtok.cli.output.printing import Format
from numtok.cli.output.race import Watching, introduction, print_race, standings_table, summary
from numtok.errors import DataError, StoreError, UsageError
from numtok.evaluation.report_files import read
from numtok.reports import REPORT
from numtok.settings.predict import Config as PredictConfig
from numtok.stages import table as tables
from numtok.stages import train
from numtok.store.artifact import ENCODED, TABLE
from numtok.store.store import Store
from numtok.sweeps.baseline_rows import run as run_baseline
from numtok.sweeps.race import measuring
from numtok.sweeps.race.plan import PLAN, RACE, CandidateState, RaceProgress
from numtok.sweeps.race.race import Config, RaceResult, run
from numtok.sweeps.race.rounds import Rounds
from tests import chain
from tests.fakepages import charts
from tests.fakepretrained import pretrained
from tests.messages import Says
from tests.ray_nodes import ray_cluster
from tests.shell import Shell

TINY = "nano,layers=1,width=16,heads=2"
SCHEMES = ("xval", "p10", "digits", "nd")
HOW: dict[str, Any] = {"minutes": 1.0, "seeds": 2, "rates": 1}


@pytest.fixture(autouse=True, scope="module")
def paced() -> Iterator[None]:
    """Use one thread, and report 0.1 seconds per step and per epoch instead of measuring."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        patch.setattr(train, "pace", lambda config, store, limit: 0.1)
        patch.setattr(measuring.Measuring, "_overhead", lambda *_: 0.0)
        yield


def rooms(folder: Path, rows: int = 240) -> str:
    random = np.random.default_rng(0)
    path = folder / "rooms.jsonl"
    with path.open("w") as file:
        for _ in range(rows):
            a, b = random.uniform(1, 9.9, 2).round(1).tolist()
            text, area = f"A room of {a} m by {b} m has ", f"{a * b:.2f}"
            span = [len(text), len(text) + len(area)]
            row = {"text": f"{text}{area} square metres.", "targets": {"area": [span]}}
            file.write(json.dumps(row) + "\n")
    return str(path)


def numbers(folder: Path, rows: int = 300) -> str:
    random = np.random.default_rng(0)
    path = folder / "numbers.csv"
    with path.open("w") as file:
        file.write("a,b,kind,y\n")
        for _ in range(rows):
            a, b = random.normal(size=2).round(3).tolist()
            kind = "xyz"[random.integers(3)]
            file.write(f"{a},{b},{kind},{a * b + 2 * (kind == 'x'):.3f}\n")
    return str(path)


def raced(folder: Path, *inputs: str, **more: Any) -> RaceResult:
    settings = {**HOW, **more}
    store = Store(folder / "artifacts")
    return run(Config(inputs, **settings), store, lambda _: None, lambda _: None)


def of_texts(folder: Path) -> RaceResult:
    return raced(folder, rooms(folder), schemes=SCHEMES, preset=TINY)


def of_table(folder: Path) -> RaceResult:
    heads = ("pointwise", "mdn:2", "riemann:16")
    return raced(folder, numbers(folder), target="y", schemes=heads, preset="mlp,layers=1,width=8")


def raced_again(folder: Path, tmp_path: Path, kind: str = "", **more: Any) -> RaceResult:
    """Repeat the race on texts in a store with a copy of its artifacts, or only of one kind."""
    shutil.copytree(folder / "artifacts" / kind, tmp_path / "artifacts" / kind)
    return raced(tmp_path, str(folder / "rooms.jsonl"), schemes=SCHEMES, preset=TINY, **more)


def without_clocks(result: RaceResult) -> Any:
    plain = msgspec.to_builtins(result)
    for place in [*plain["validation"]["places"], *plain["leaderboard"]["places"]]:
        for clock in ("train_seconds", "eval_seconds"):
            (place["costs"] or {}).pop(clock, None)
    return plain


def count(folder: Path, kind: str) -> int:
    return sum(one.kind == kind for one in Store(folder / "artifacts").artifacts())


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RaceResult]:
    """Return a folder with a finished race on texts, not to be modified, and the result."""
    folder = tmp_path_factory.mktemp("texts")
    return folder, of_texts(folder)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RaceResult]:
    """Return a folder with a finished race on a table, not to be modified, and the result."""
    folder = tmp_path_factory.mktemp("table")
    return folder, of_table(folder)


# --- results -----------------------------------------------------------------------------------


def test_texts_race_in_rounds_to_a_choice(texts: tuple[Path, RaceResult]) -> None:
    folder, result = texts
    assert [sorted(one.skills) for one in result.rounds] == [
        ["digits, objective=ar", "nd", "xval", "xval, normalize=signed-log"]
    ]
    board = result.leaderboard
    assert board is not None and board.split == "test" and board.fields == ["area"]
    models = [one for one in board.places if one.is_model]
    assert len(models) == 2 and result.winner in {one.label for one in models}
    assert all(len(one.models) == len(one.reports) == 2 for one in models)
    assert {one.label for one in board.places if not one.is_model} >= {"mean", "median", "linear"}
    assert board.place(board.baseline).over_baseline.value == 0
    assert result.validation is not None
    chosen = result.validation.place(board.winner)
    best = int(np.argmax(chosen.seed_skills))
    assert result.model == chosen.models[best] == board.place(board.winner).models[best]
    assert f"Seed {best} has" in result.reasons[1]
    assert len(result.reasons) == 3
    assert [count(folder, kind) for kind in (RACE, ENCODED, REPORT)] == [2, 5, 14]
    first = result.rounds[0].skills
    gone_on = {one.label for one in models}
    assert min(first[label] or 0 for label in gone_on) >= max(
        skill or 0 for label, skill in first.items() if label not in gone_on
    )


def test_a_table_races_with_boosted_trees_beside(table: tuple[Path, RaceResult]) -> None:
    _, result = table
    assert result.kind == "records" and [field.name for field in result.fields] == ["y"]
    board = result.leaderboard
    assert board is not None
    baselines = {one.label for one in board.places if not one.is_model}
    trees = {"boosted", "tuned boosting", "tabular"}
    assert baselines - {"tabicl"} == {"mean", "median", "linear", *trees}
    assert board.baseline in trees  # y contains a product, which linear regression cannot learn
    again, baseline, predicts = result.commands  # it beats the tiny models
    assert predicts == f"numtok predict {result.model} NEW.csv --interval 0.9"
    assert "--minutes 1 " in again
    assert f"--baseline {shlex.quote(board.baseline)} " in baseline
    assert result.planned is not None and {each.unit for each in result.planned.candidates} == {
        "epochs"
    }


def test_the_accuracy_is_that_of_the_returned_model_and_of_the_best_baselines(
    table: tuple[Path, RaceResult],
) -> None:
    folder, result = table
    board = result.leaderboard
    assert board is not None
    model, best, *further = result.accuracy
    chosen = board.place(board.winner)
    store = Store(folder / "artifacts")
    reports = [read(store.resolve(ref, {REPORT})).report for ref in chosen.reports]
    [own] = [report for report in reports if report.model == result.model]
    assert (model.label, model.seed) == (board.winner, own.seed)
    for name, found in {
        "r2": model.r2, "mae": model.mae,
        "conformal-coverage": model.coverage, "conformal-width": model.width,
    }.items():  # fmt: skip
        assert found.value == pytest.approx(own.metrics[name].value)
    assert best.label == board.baseline and best.seed is None and best.r2.value is not None
    assert not further and all(place.width.value is not None for place in board.places)
    assert not own.baselines  # the race fits baselines once for all models
    assert result.model is not None and own.data is not None
    fitted = chain.report_of(chain.evaluated(store, result.model, own.data))
    for name in ("mean", "median", "linear", "boosted"):
        place, figures = board.place(name), fitted.baselines[name]
        assert place.width.value == pytest.approx(figures["conformal-width"].value)
        assert place.coverage.value == pytest.approx(figures["conformal-coverage"].value)


def test_a_winner_on_columns_is_said_to_read_no_text(tmp_path: Path) -> None:
    lines = Path(numbers(tmp_path, 200)).read_text().splitlines()
    head, *rows = lines
    noted = [f"note,{head}"] + [
        f"seen {place} near road {place * 7},{row}" for place, row in enumerate(rows)
    ]
    (tmp_path / "noted.csv").write_text("\n".join(noted))
    result = raced(
        tmp_path, str(tmp_path / "noted.csv"), target="y", schemes=("pointwise",), seeds=1
    )
    reads = next(each for each in result.reasons if "reads only" in each)
    assert "a, b, kind" in reads and "does not read note" in reads


def test_a_checkpoint_of_a_baseline_is_checked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("NUMTOK_TABICL", str(tmp_path / "none.ckpt"))
    with says.raises(UsageError, "NUMTOK_TABICL"):
        raced(tmp_path, numbers(tmp_path), target="y")


def test_columns_and_texts_race_on_the_same_rows(tmp_path: Path) -> None:
    """Models on columns do not read the notes; text models and baselines read all columns."""
    random = np.random.default_rng(0)
    lines = []
    for _ in range(300):
        a, n = random.normal(), random.integers(3)
        note = ("works as described", "broken on arrival, sadly", "never arrived at all")[n]
        lines.append(f'"{note}, {a:.1f} again",{a:.3f},{a + 5 * n:.3f}')
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(["note,a,y", *lines]) + "\n")
    result = raced(tmp_path, str(path), target="y", schemes=("xval", "pointwise"))
    assert result.kind == "records" and any("note: text" in line for line in result.columns)
    assert result.planned is not None
    units = {each.label: each.unit for each in result.planned.candidates}
    assert units["pointwise on columns"] == "epochs" and units["xval"] == "steps"
    board = result.leaderboard
    assert board is not None and board.numbers == result.rows[2]
    assert len({entry.skill.n for entry in board.places}) == 1
    assert {"boosted", "linear", "mean"} <= {one.label for one in board.places if not one.is_model}
    assert result.commands[2].endswith(" NEW.csv --interval 0.9")
    words = shlex.split(result.commands[1])  # baselines that read the note win
    assert words[:4] == ["numtok", "predict", "--baseline", board.baseline]
    assert words[5:] == ["NEW.csv", "--interval", "0.9"]
    config = PredictConfig(words[4], str(path), baseline=words[3], interval=0.9)
    predicted = list(run_baseline(config, Store(tmp_path / "artifacts")))
    assert predicted[0] == b"note,a,y,predicted,interval_low,interval_high\n"
    assert {"tfidf", "tuned boosting"} <= {one.label for one in board.places}
    assert all(
        one.width.value is not None and (one.coverage.value or 0) > 0.6 for one in board.places
    )
    page = race_page(result, Store(tmp_path / "artifacts").resolve)
    [[rows]] = [part.parts for part in page.sections if part.name == "rows-section"]
    assert isinstance(rows, RowList)
    assert all(re.match("note: .* again; a: -?[0-9.]+; y: ", row.before) for row in rows.rows)
    assert len(predicted) == 301


def test_rows_that_each_seed_holds_back_are_pooled(tmp_path: Path) -> None:
    """If a table has no validation split, each seed holds out its own rows."""
    settings = tables.Config(numbers(tmp_path), target="y", split="test=0.25")
    ref = tables.run(settings, Store(tmp_path / "artifacts")).artifact.ref
    result = raced(tmp_path, ref, schemes=("pointwise", "mdn:2"), preset="mlp,layers=1,width=8")
    assert result.validation is not None and result.leaderboard is not None
    assert result.validation.numbers == 2 * result.rows[1]
    assert result.validation.clusters is not None
    assert result.rows[1] < result.validation.clusters < 2 * result.rows[1]
    assert result.leaderboard.winner == result.validation.winner


def test_each_goes_on_with_the_rate_that_was_best_for_it(tmp_path: Path) -> None:
    more = {"target": "y", "schemes": ("pointwise", "mdn:2"), "rates": 3, "minutes": 0.3}
    result = raced(tmp_path, numbers(tmp_path), preset="mlp,layers=1,width=8", **more)
    assert result.planned is not None
    assert {tuple(one.rates) for one in result.planned.candidates} == {(5e-4, 1.5e-3, 1.67e-4)}
    [first] = result.rounds
    for label, tried in first.tried.items():
        assert len(tried) == 3
        assert tried[f"{first.rates[label]:g}"] == max(tried.values()) == first.skills[label]
    assert result.leaderboard is not None
    for one in result.leaderboard.places:
        if one.is_model:
            assert one.rate == first.rates[one.label]
            store = Store(tmp_path / "artifacts")
            for ref in one.reports:
                found = read(store.resolve(ref, {REPORT})).report
                assert found.configuration["learning_rate"] == one.rate


def test_a_race_is_found_again(texts: tuple[Path, RaceResult], tmp_path: Path) -> None:
    folder, first = texts
    again = raced_again(folder, tmp_path)
    assert msgspec.to_builtins(again) == msgspec.to_builtins(first)
    before, after = (Store(one / "artifacts").artifacts() for one in (folder, tmp_path))
    assert {one.ref for one in after} == {one.ref for one in before}


class Stopped(BaseException):
    """Raised to interrupt a race, as a signal would."""


def test_a_race_that_is_stopped_ten_times_ends_in_the_same(
    texts: tuple[Path, RaceResult], tmp_path: Path
) -> None:
    """The plan already exists: a race interrupted earlier would make a new plan."""
    folder, whole = texts
    shutil.copytree(folder / "artifacts" / RACE, tmp_path / "artifacts" / RACE)
    config = Config((str(folder / "rooms.jsonl"),), schemes=SCHEMES, preset=TINY, **HOW)
    store, stops = Store(tmp_path / "artifacts"), 0
    while True:
        left = 3 + stops

        def stop(update: RaceProgress) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Stopped

        try:
            result = run(config, store, stop if stops < 10 else lambda _: None, lambda _: None)
            break
        except Stopped:
            stops += 1
    assert stops == 10
    assert without_clocks(result) == without_clocks(whole)


@pytest.mark.slow
def test_a_race_on_the_nodes_of_a_cluster_ends_in_the_same(
    texts: tuple[Path, RaceResult], tmp_path: Path
) -> None:
    folder, whole = texts
    with ray_cluster(1, 1) as nodes:
        result = raced_again(folder, tmp_path, RACE, engine=f"ray:{nodes.address}")
    expected = msgspec.structs.replace(whole, expected=result.expected)  # two parallel runs
    assert without_clocks(result) == without_clocks(expected)


def test_a_plan_is_kept_however_fast_the_machine_is_then(
    texts: tuple[Path, RaceResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, first = texts
    monkeypatch.setattr(train, "pace", lambda config, store, limit: 0.001)
    again = raced_again(folder, tmp_path)
    assert again.planned == first.planned and again.plan == first.plan


def test_later_rounds_are_shortened_on_a_slower_machine_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With only the plan and the stored rounds, a rerun at another speed trains the same steps."""
    more: dict[str, Any] = {"schemes": SCHEMES, "preset": TINY, "seeds": 1}
    monkeypatch.setattr(Rounds, "_slowdown", lambda _: 3.0)
    slow = raced(tmp_path, rooms(tmp_path), **more)
    plan, [first] = slow.planned, slow.rounds
    assert plan is not None and slow.leaderboard is not None
    labels = [one.label for one in plan.candidates]
    last = {one.label: one.costs.steps for one in slow.leaderboard.places if one.costs is not None}
    for label, steps in last.items():
        assert first.steps[label] <= steps < plan.last.steps[labels.index(label)]
    shutil.copytree(tmp_path / "artifacts" / RACE, tmp_path / "again" / "artifacts" / RACE)
    monkeypatch.setattr(Rounds, "_slowdown", lambda _: 1.0)
    again = raced(tmp_path / "again", rooms(tmp_path), **more)
    assert without_clocks(again) == without_clocks(slow)


def test_a_dry_run_trains_nothing_and_says_who_would_race(tmp_path: Path) -> None:
    result = raced(tmp_path, rooms(tmp_path), dry_run=True, preset=TINY)
    assert result.leaderboard is None and result.plan is None and result.entered
    assert not (tmp_path / "artifacts").exists()
    told = "\n".join(introduction(result))
    assert "candidates:" in told and "left out:" in told and "last round" in told
    assert "area" in told and "1.2" not in result.entered


def test_only_a_column_that_is_read_is_said_to_be_better_dropped(tmp_path: Path) -> None:
    lines = [f"{k},{k % 7},{k % 7 + k % 3}" for k in range(200)]
    (tmp_path / "numbered.csv").write_text("\n".join(["key,a,y", *lines]))
    path = str(tmp_path / "numbered.csv")
    [read] = [each for each in _columns(tmp_path, path) if each.startswith("key")]
    [dropped] = [each for each in _columns(tmp_path, path, drop=("key",)) if each.startswith("key")]
    assert "may name rows" in read and "--drop key" in read
    assert dropped == "key: number (may name rows); left out"


def _columns(folder: Path, path: str, **options: Any) -> list[str]:
    return list(raced(folder, path, target="y", dry_run=True, **options).columns)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_refuses_what_the_race_refuses_before_anything_is_encoded(
    tmp_path: Path, dry_run: bool
) -> None:
    plain, constant = tmp_path / "plain.jsonl", tmp_path / "constant.jsonl"
    plain.write_text("".join(f'{{"text": "{k} of {k % 7}"}}\n' for k in range(300)))
    constant.write_text(
        "".join(
            f'{{"text": "{k} is 5", "targets": {{"y": [[{len(str(k)) + 4}, '
            f"{len(str(k)) + 5}]]}}}}\n"
            for k in range(300)
        )
    )
    csv, late = numbers(tmp_path), tmp_path / "late.csv"
    late.write_text("year,y\n" + "".join(f"{k},{k % 7 if k < 240 else 3}\n" for k in range(300)))
    refused: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        (rooms(tmp_path), {"preset": "nope"}, UsageError, "unknown preset 'nope'"),
        (rooms(tmp_path), {"preset": "mlp"}, UsageError, "'mlp' is for tables"),
        (rooms(tmp_path), {"target": "aera"}, UsageError, "unknown target 'aera'.*area"),
        (str(plain), {"target": "aera"}, UsageError, "no targets"),
        (str(constant), {}, DataError, "constant .y."),
        (str(late), {"target": "y"}, DataError, "'y' is 3.*split test"),
        (csv, {"target": "y", "devices": "99", "device": "cpu"}, UsageError, "--jobs"),
        (rooms(tmp_path), {"jobs": 999, "device": "cpu"}, UsageError, "--jobs 999 is too many"),
        (csv, {"target": "y", "text_field": "y"}, UsageError, "cannot contain the target 'y'"),
        (csv, {"target": "z"}, UsageError, "unknown field 'z'.*y"),
        (csv, {}, UsageError, "Pass --target, one of a, b, kind, y"),
        (csv, {"target": "y", "text_field": "kind", "schemes": ("mdn:2",)}, UsageError, "schemes"),
    ]
    for path, options, error, parts in refused:
        with pytest.raises(error, match=parts):
            raced(tmp_path, path, dry_run=dry_run, **options)
    if (tmp_path / "artifacts").exists():  # a refused dry run makes no store
        assert count(tmp_path, ENCODED) == count(tmp_path, RACE) == 0


def test_a_table_s_rows_without_a_target_are_skipped_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "".join(f"{k},{k % 7 if k % 10 else ''}\n" for k in range(300)))
    with pytest.raises(DataError, match=r"table.csv:2: .* missing.*--on-error skip"):
        raced(tmp_path, str(path), target="y", dry_run=True)
    result = raced(tmp_path, str(path), target="y", dry_run=True, on_error="skip")
    assert 230 < sum(result.rows) < 270  # the rest are calibration rows
    assert any("30 of 300 rows" in note for note in result.notes)


@pytest.mark.parametrize(
    "options",
    [{"split": "test=0.2"}, {"drop": ("x",)}, {"on_error": "skip"}, {"target": "y"}],
    ids=lambda options: next(iter(options)),
)
def test_options_for_a_table_s_file_are_refused_for_a_ref(
    table: tuple[Path, RaceResult], options: dict[str, Any]
) -> None:
    folder, _ = table
    store = Store(folder / "artifacts")
    ref = next(one.ref for one in store.artifacts() if one.kind == TABLE)
    flag = next(iter(options)).replace("_", "-")
    with pytest.raises(UsageError, match=f"--{flag} .*{ref}, a stored table"):
        raced(folder, ref, dry_run=True, **options)


def test_texts_with_splits_of_their_own_keep_them(tmp_path: Path) -> None:
    lines = Path(rooms(tmp_path)).read_text().splitlines(keepends=True)
    inputs = []
    for name, first, end in (("train", 0, 160), ("validation", 160, 200), ("test", 200, 240)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(lines[first:end]))
        inputs.append(f"{name}={path}")
    result = raced(tmp_path, *inputs, dry_run=True)
    assert result.rows == (160, 40, 40)


def test_texts_without_targets_race_by_the_fields_of_reports(tmp_path: Path) -> None:
    path = tmp_path / "plain.jsonl"
    rows = [{"text": f"from {k} to {2 * k} in {k % 7} days"} for k in range(1, 241)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    schemes = ("xval", "fone,whole=3,decimals=0")
    result = raced(tmp_path, str(path), schemes=schemes, preset=TINY, seeds=1, minutes=1.0)
    board = result.leaderboard
    assert board is not None and result.planned is not None
    rates = {one.label: one.rates for one in result.planned.candidates}
    assert rates["xval"] == [2e-3] and rates["fone,whole=3,decimals=0"] == [2e-4]
    assert {"place", "mean", "median"} <= {one.label for one in board.places}
    winner = board.place(str(result.winner))
    report = read(Store(tmp_path / "artifacts").resolve(winner.reports[0], {REPORT})).report
    assert len(report.fields) == 3 and set(board.fields) == set(report.fields)
    assert winner.skill.value == pytest.approx(report.metrics["field-skill"].value)
    for field, figures in report.fields.items():
        assert winner.errors[field].value == pytest.approx(figures["mae"].value)


def test_a_page_has_how_all_learnt(texts: tuple[Path, RaceResult]) -> None:
    folder, result = texts
    page = race_page(result, Store(folder / "artifacts").resolve)
    found = charts(page)
    learnt = {
        f"{name}-loss-{over}" for name in ("first", "last") for over in ("seconds", "samples")
    }
    assert learnt <= found.keys()
    lines = found["first-loss-seconds"].panel.marks
    assert {mark.label for mark in lines} == set(result.rounds[0].skills)
    assert len(found["last-loss-samples"].panel.marks) == 4  # two models with two seeds each
    assert {"first-cost-tokens_per_number", "first-cost-eval_seconds"} <= found.keys()
    before = race_page(
        msgspec.structs.replace(result, leaderboard=None), Store(folder / "artifacts").resolve
    )
    assert [one.name for one in before.sections] == ["fields", "verdicts"]


# --- output ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 200])
def test_the_leaderboard_fits_the_terminal(
    texts: tuple[Path, RaceResult],
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, result = texts
    monkeypatch.setenv("COLUMNS", str(width))
    print_race(result, Format.TABLE, quiet=False)
    out, err = capsys.readouterr()
    assert out == f"{result.model}\n"
    told = err.partition("rerun:")[0]
    assert max(map(len, told.splitlines())) <= width
    assert "leaderboard: test split" in told and f"{result.winner} *" in told
    assert (told.count("\nleaderboard") + told.startswith("leaderboard")) == 1
    assert all(f"({name})" in told for name in ("mean", "median", "tuned boosting"))
    print_race(result, Format.TABLE, quiet=True)
    assert capsys.readouterr() == (f"{result.model}\n", "")


def test_formats_for_programs_have_everything(
    table: tuple[Path, RaceResult], capsys: pytest.CaptureFixture[str]
) -> None:
    _, result = table
    print_race(result, Format.JSON, quiet=False)
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"schema", *RaceResult.__struct_fields__}
    assert told["leaderboard"]["winner"] == result.winner
    print_race(result, Format.CSV, quiet=False)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["kind"] for row in rows} == {"round 1", "model", "baseline", "cost"}
    print_race(result, Format.MD, quiet=False)
    assert "| pointwise" in capsys.readouterr().out


def test_a_log_has_a_line_for_each_run_and_says_how_far_all_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    standings = [CandidateState("p10", "out", 3, 0.1), CandidateState("xval", "running", 9, 0.2)]
    update = RaceProgress("xval, 9 steps", "round 2 of 3", 1, 2, standings)
    with Watching(quiet=False, seconds=60) as watching:
        watching(update)
    assert capsys.readouterr().err == "xval, 9 steps\n"
    assert summary(update) == "round 2 of 3, 1 of 2; best so far xval, 0.200"
    with Watching(quiet=True, seconds=60) as watching:
        watching(update)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [80, 200])
def test_the_live_table_has_the_best_first_and_fits(width: int) -> None:
    from rich.console import Console

    standings = [
        CandidateState("p10", "out", 3, 0.9),
        CandidateState("a very long name, normalize=signed-log, head=riemann:256", "done", 9, 0.1),
        CandidateState("xval", "running", 1234567, 0.2),
    ]
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(standings_table(RaceProgress("", "round 1", 0, 3, standings), rows=2))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) == 4
    assert "xval" in lines[2] and "1,234,567" in lines[2] and "a very long" in lines[3]


# --- the command -------------------------------------------------------------------------------


def test_the_command_prints_the_model_and_predicts_with_it(
    tmp_path: Path, numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    rooms(tmp_path)
    options = ("--minutes", "0.2", "--seeds", "1", "--preset", TINY, "--schemes", "xval,p10")
    ran = numtok("race", "rooms.jsonl", *options)
    assert ran.code == 0, ran.err
    model = ran.out.strip()
    assert f"numtok predict {model}" in ran.err
    asked = numtok("predict", model, "--text", "A room of 3.0 m by 2.0 m has [?] square metres.")
    assert asked.code == 0 and asked.out
    again = numtok("race", "rooms.jsonl", *options, "--json")
    assert json.loads(again.out)["model"] == model


def test_what_cannot_race_is_said_in_a_line(tmp_path: Path, numtok: Shell, says: Says) -> None:
    rooms(tmp_path)
    numbers(tmp_path)
    (tmp_path / "few.jsonl").write_text('{"text": "3 of 4"}\n' * 20)
    (tmp_path / "plain.jsonl").write_text('{"text": "3 of 4"}\n{"text": "4 of 5"}\n' * 200)
    (tmp_path / "words.jsonl").write_text('{"text": "none here"}\n' * 300)
    for arguments, code, parts in [
        (("few.jsonl",), 3, ("few.jsonl", "too few rows", "40")),
        (("words.jsonl",), 3, ("words.jsonl", "none of", "has a number")),
        (("numbers.csv",), 2, ("--target", "a, b, kind, y")),
        (("numbers.csv", "--target", "z"), 2, ("'z'", "Known: a, b, kind, y")),
        (("numbers.csv", "rooms.jsonl", "--target", "y"), 2, ("numbers.csv", "cannot be combined")),
        (("rooms.jsonl", "--target", "volume", "--schemes", "xval"), 2, ("'volume'", "area")),
        (("plain.jsonl", "--target", "a", "--schemes", "xval"), 2, ("--target", "no targets")),
        (("rooms.jsonl", "--schemes", "p100"), 2, ("p100", "p1000")),
        (("numbers.csv", "--target", "y", "--schemes", "token"), 2, ("token",)),
        (("-",), 2, ("only once", "Pass a file")),
        (("rooms.jsonl", "--minutes", "1", "--hours", "1"), 2, ("--minutes", "--hours")),
        (("rooms.jsonl", "--minutes", "0"), 2, ("--minutes", "above 0")),
        (("rooms.jsonl", "--seeds", "0"), 2, ("--seeds",)),
        (("rooms.jsonl", "--engine", "ray", "--devices", "2"), 2, ("--devices", "--engine ray")),
        (("rooms.jsonl", "--split", "test=0.5"), 3, ("validation", "Leave out --split")),
        (("gone.jsonl",), 2, ("gone.jsonl", "not found")),
    ]:
        ran = numtok("race", *arguments)
        assert ran.code == code, (arguments, ran.err)
        says(ran.err.strip().splitlines()[-1], *parts)


def test_a_plan_is_read_from_the_store_and_not_believed(
    texts: tuple[Path, RaceResult], tmp_path: Path
) -> None:
    folder, result = texts
    made = Store(folder / "artifacts").resolve(str(result.plan), {RACE})
    assert PLAN.read(made.path) == result.planned
    plan = json.loads((made.path / PLAN.name).read_bytes())
    changes: list[dict[str, Any]] = [
        {"candidates": plan["candidates"][1:]},
        {"guesses": {}},
        {"seeds": 0},
        {"candidates": [one | {"rates": []} for one in plan["candidates"]]},
        {"candidates": [plan["candidates"][0] | {"rates": [1e-3] * 9}, *plan["candidates"][1:]]},
    ]
    for change in changes:
        (tmp_path / PLAN.name).write_text(json.dumps(plan | change))
        with pytest.raises(StoreError, match="damaged"):
            PLAN.read(tmp_path)


@pytest.mark.slow
def test_one_target_of_several_can_be_what_is_raced_for(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    lines = []
    for k in range(160):
        text = f"{k % 13} of {k % 7} is {k % 13 + k % 7} or "
        sum_, product = str(k % 13 + k % 7), str((k % 13) * (k % 7))
        first = text.index(" is ") + 4
        targets = {
            "sum": [[first, first + len(sum_)]],
            "product": [[len(text), len(text) + len(product)]],
        }
        lines.append({"text": text + product, "targets": targets})
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    more: dict[str, Any] = {"schemes": ("xval",), "preset": TINY, "seeds": 1, "minutes": 0.2}
    both = raced(tmp_path, str(path), **more)
    alone = raced(tmp_path, str(path), target="product", **more)
    assert both.leaderboard is not None and both.leaderboard.fields == ["product", "sum"]
    assert alone.leaderboard is not None and alone.leaderboard.fields == ["product"]
    assert both.leaderboard.numbers == 2 * alone.leaderboard.numbers


def test_heads_on_a_frozen_pretrained_model_race(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "sales.csv"
    lines = [f"item {n} of a long list,{random.normal():.3f},{n % 7}" for n in range(200)]
    path.write_text("\n".join(["note,a,y", *lines]) + "\n")
    pretrained("gpt2", tmp_path / "model")
    model = f"hf:{tmp_path / 'model'}"
    plan = raced(tmp_path, str(path), target="y", models=(model,), dry_run=True)
    assert any(model in note for note in plan.notes)
    with pytest.raises(UsageError, match="model-absent: folder not found"):
        raced(tmp_path, str(path), target="y", models=(f"{model}-absent",), dry_run=True)
    result = raced(
        tmp_path, str(path), target="y", schemes=("mdn:2",), models=(model,), minutes=0.5
    )
    assert result.planned is not None
    labels = {each.label for each in result.planned.candidates}
    assert labels == {"mdn:2 on columns", "mdn:2 on model"}
    assert {each.unit for each in result.planned.candidates} == {"epochs"}
    board = result.leaderboard
    assert board is not None and len({entry.skill.n for entry in board.places}) == 1
