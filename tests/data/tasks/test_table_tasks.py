"""The tasks that make tables: curves, densities, the truncated Gaussian, BBOB."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.data.tables.table import Table, read_table
from numtok.data.tasks import bbob, curves, densities
from numtok.data.tasks.base import TASKS, TableTask, TaskSplit
from numtok.data.tasks.bbob import Bbob
from numtok.data.tasks.curves import Curves
from numtok.data.tasks.densities import Densities
from numtok.data.tasks.truncated_gaussian import TruncatedGaussian
from numtok.errors import StoreError, UsageError
from numtok.stages import gen
from numtok.stages.gen import Config
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cases import case
from tests.chain import every_file as contents
from tests.faults import Plan, installed
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_gen import make

Floats = NDArray[np.float64]


def table(artifact: Artifact) -> Table:
    files = [file.path for file in artifact.files() if file.path.endswith(".parquet")]
    return read_table(artifact.path, sorted(files))


def drawn(task: TableTask, rows: int) -> tuple[Floats, Floats]:
    return task.unit(0, TaskSplit("train", rows), 0)


# --- gen ---------------------------------------------------------------------------------------


def test_gen_makes_a_table_with_the_rows_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Curves, "unit_rows", 100)
    artifact = make(Config("curves,curve=kink", samples=400, split="test=0.25"), tmp_path)
    assert artifact.kind == "table"
    assert artifact.manifest.counts == {
        "rows": 400, "rows_test": 100, "rows_train": 300, "features": 1,
    }  # fmt: skip
    names = [file.path for file in artifact.files()]
    assert names == [*(f"rows-0000{k}.parquet" for k in range(4)), "table.json"]
    found = table(artifact)
    assert [feature.name for feature in found.file.features] == ["x"]
    assert (found.file.target, found.file.splits) == ("y", ["split"])
    assert found.split("test").tolist() == list(range(100))
    train = TaskSplit("train", 300)
    x, y = Curves("kink").unit(0, train, 2)
    assert np.array_equal(found.numbers[300:], x)
    assert np.array_equal(found.target[300:], y)


@pytest.mark.integration
def test_workers_make_the_table_that_one_process_makes(tmp_path: Path) -> None:
    config = Config("densities", samples=300)
    alone = make(config, tmp_path / "one")
    together = make(
        Config("densities", samples=300, workers=2), tmp_path / "two"
    )  # three units, one per split
    assert contents(alone) == contents(together)


def test_a_table_that_was_cut_off_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    config = Config("truncated-gaussian", samples=300)
    whole = make(config, tmp_path / "whole")
    with installed(Plan("trace")) as faults:
        make(config, tmp_path / "traced")
    writes = [at for at, line in enumerate(faults.trace, 1) if line.split()[0] == "write"]
    for at in (writes[1], writes[-1]):
        root = tmp_path / str(at)
        with pytest.raises(StoreError), installed(Plan("eio", at)):
            make(config, root)
        assert contents(make(config, root)) == contents(whole)


def test_the_command_prints_what_a_user_must_know(numtok: Shell) -> None:
    ran = numtok("gen", "truncated-gaussian", "--rows", "100")
    assert ran.code == 0
    assert ran.out.startswith("truncated-gaussian@")
    lines = [line.split() for line in ran.err.splitlines()]
    assert ["rows", "100"] in lines and ["train", "80"] in lines and ["features", "1"] in lines
    note = "the target does not depend on the feature, which is 0 in every row"
    assert ran.err.endswith(f"\nnumtok: {note}\n")


def test_a_dry_run_tells_the_size_of_a_table(numtok: Shell) -> None:
    arguments = ["gen", "bbob", "--dimension", "3", "--rows", "20000"]
    dry = numtok(*arguments, "--dry-run", "--format", "csv")
    assert not Path("artifacts").exists()
    told = dict(csv.reader(dry.out.splitlines()))
    artifact = Store(Path("artifacts")).resolve(numtok(*arguments).out.strip())
    assert (told["would make"], told["rows"]) == (artifact.ref, "20000")
    assert abs(int(told["size (estimate)"]) / artifact.manifest.bytes - 1) < 0.05


# --- curves ------------------------------------------------------------------------------------


def test_a_curve_is_its_formula_on_its_range() -> None:
    for name in sorted(curves._CURVES):
        with case(name):
            curve = curves._CURVES[name]
            x, y = drawn(Curves(name), 20_000)
            assert np.array_equal(y, curve.function(x[:, 0]))
            assert curve.low <= x.min() < curve.low + 0.01 * (curve.high - curve.low)
            assert curve.high > x.max() > curve.high - 0.01 * (curve.high - curve.low)
            assert np.isfinite(y).all()
            assert f"{name}: {curve.formula}" in " ".join((Curves.__doc__ or "").split())


def test_curves_have_the_values_that_can_be_worked_out_by_hand() -> None:
    known: dict[str, tuple[list[float], list[float]]] = {
        "sawtooth": ([-0.25, 1.5], [0.75, 0.5]),
        "staircase": ([-0.25, 1.5], [-1, 1]),
        "step": ([-0.25, 0.0], [0, 1]),
        "spikes": ([2.0, 1.5], [1.0, np.exp(-250.0)]),
        "power": ([-10, 2], [-1e9, 512]),
        "reciprocal": ([-0.001, 0.5], [-1000, 2]),
    }
    for name, (x, y) in known.items():
        found = curves._CURVES[name].function(np.array(x))
        assert np.allclose(found, y, rtol=1e-12, atol=0), name


def test_noise_is_gaussian_and_leaves_x_as_it_is() -> None:
    x, y = drawn(Curves("line"), 50_000)
    same, noisy = drawn(Curves("line", noise=0.5), 50_000)
    assert np.array_equal(x, same)
    z = (noisy - y) / 0.5
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    assert abs((np.abs(z) < 1.96).mean() - 0.95) < 0.005
    assert abs(np.corrcoef(x[:, 0], z)[0, 1]) < 0.02


# --- densities ---------------------------------------------------------------------------------


def test_a_density_integrates_to_one_at_every_x() -> None:
    for name in sorted(densities._DENSITIES):
        with case(name):
            task = Densities(name)
            far = np.geomspace(3.5, 2000, 4000)
            y = np.concatenate([-far[::-1], np.linspace(-3.5, 3.5, 70_001)[1:-1], far])
            for x in (-0.93, -0.4, 0.001, 0.31, 0.999):
                density = np.exp(task.log_density(np.full((len(y), 1), x), y))
                assert abs(np.trapezoid(density, y) - 1) < 1e-3


@pytest.mark.parametrize("name", sorted(densities._DENSITIES))
def test_what_is_drawn_has_that_density(name: str) -> None:
    task, rows = Densities(name), 100_000
    x, y = drawn(task, rows)
    edges = np.linspace(-1, 1, 11), np.linspace(-4, 4, 41)
    counts, _, _ = np.histogram2d(x[:, 0], y, edges)
    # Mass of each cell: its density at 20 times 100 points.
    fine_x, fine_y = (np.linspace(low, high, n, endpoint=False) + (high - low) / 2 / n
                      for low, high, n in ((-1, 1, 200), (-4, 4, 4000)))  # fmt: skip
    at_x, at_y = np.repeat(fine_x, len(fine_y)), np.tile(fine_y, len(fine_x))
    density = np.exp(task.log_density(at_x[:, None], at_y)).reshape(10, 20, 40, 100)
    mass = density.mean((1, 3)) * 0.2 * 0.2 / 2
    expected = rows * mass
    spread = np.sqrt(expected) + 0.01 * expected + 1
    assert (np.abs(counts - expected) < 5 * spread).all()
    assert abs(mass.sum() - 1) < 0.02


def test_rows_outside_a_density_have_none() -> None:
    x, y = np.zeros((2, 1)), np.array([-0.1, 1.1])
    with np.errstate(all="raise"):
        assert Densities("uniform").log_density(x, y).tolist() == [-np.inf, -np.inf]
        assert Densities("checkerboard").log_density(x, y + 3).tolist() == [-np.inf, -np.inf]


# --- the truncated Gaussian --------------------------------------------------------------------


def test_the_truncated_gaussian_has_the_integrals_it_says() -> None:
    task = TruncatedGaussian()
    y = (np.arange(100_000) + 0.5) / 100_000
    density = np.exp(task.log_density(np.zeros((len(y), 1)), y))
    assert abs(density.mean() - 1) < 1e-9
    assert abs((density**2).mean() - task.squared) < 1e-8
    assert abs((np.gradient(density, 1e-5) ** 2).mean() - task.slope_squared) < 1e-6
    outside = task.log_density(np.zeros((2, 1)), np.array([-0.001, 1.001]))
    assert outside.tolist() == [-np.inf, -np.inf]


def test_the_truncated_gaussian_is_drawn_from_its_density() -> None:
    task = TruncatedGaussian()
    x, y = drawn(task, 100_000)
    assert not x.any()
    assert y.min() > 0 and y.max() < 1
    counts, edges = np.histogram(y, 50, (0, 1))
    middles = (edges[1:] + edges[:-1]) / 2
    expected = 100_000 * np.exp(task.log_density(x[:50], middles)) / 50
    assert (((counts - expected) ** 2 / expected).sum()) < 50 + 5 * np.sqrt(100)


def test_a_histogram_has_the_error_that_the_theorem_says() -> None:
    """Theorem 1, with the term that it leaves out: 32 bins, 2000 rows, 200 repetitions."""
    task, bins, rows = TruncatedGaussian(), 32, 2000
    fine = (np.arange(bins * 50) + 0.5) / (bins * 50)
    density = np.exp(task.log_density(np.zeros((len(fine), 1)), fine))
    errors = []
    for seed in range(200):
        _, y = task.unit(seed, TaskSplit("train", rows), 0)
        fitted = np.repeat(np.histogram(y, bins, (0, 1))[0] * bins / rows, 50)
        errors.append(((fitted - density) ** 2).mean())
    expected = task.slope_squared / 12 / bins**2 + bins / rows - task.squared / rows
    assert abs(np.mean(errors) / expected - 1) < 0.04


# --- bbob --------------------------------------------------------------------------------------


def test_bbob_has_the_values_of_the_suite() -> None:
    for function in [1, 8, 16, 24]:
        with case(function):
            import cocoex

            x, y = drawn(Bbob(function, 5, 2), 20)
            suite = cocoex.Suite("bbob", "instances: 2", "dimensions: 5")
            problem = suite.get_problem_by_function_dimension_instance(function, 5, 2)
            assert y.tolist() == [problem(point) for point in x]
            assert x.min() >= -5 and x.max() <= 5 and len(np.unique(x)) == 100


def test_every_function_of_bbob_is_finite_in_all_dimensions_up_to_the_largest() -> None:
    for function in range(1, 25):
        for dimension in (2, 5, 10, 15, 20, 40):
            x, y = drawn(Bbob(function, dimension), 50)
            assert x.shape == (50, dimension) and np.isfinite(y).all()


def test_bbob_has_one_dimension_where_the_suite_has_values_that_differ() -> None:
    cocoex = pytest.importorskip("cocoex", reason="needs the package coco-experiment")
    x = np.linspace(-5, 5, 101)[:, None]
    for function in range(1, 25):
        y = np.asarray(cocoex.BareProblem("bbob", function, 1, 1)(x))
        if np.isfinite(y).all() and len(np.unique(y)) > 1:
            _, made = Bbob(function=function, dimension=1).unit(0, TaskSplit("train", 100), 0)
            assert made.shape == (100,) and np.isfinite(made).all() and len(np.unique(made)) > 50
        else:
            with pytest.raises(UsageError, match=f"function={function} is not defined"):
                Bbob(function=function, dimension=1)


def test_bbob_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setitem(sys.modules, "cocoex", None)
    with says.raises(UsageError, "bbob", "`pip install coco-experiment`"):
        drawn(Bbob(), 10)


def test_the_help_of_bbob_needs_no_package(numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cocoex", None)
    monkeypatch.delitem(sys.modules, bbob.__name__)
    ran = numtok("gen", "bbob", "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "24 Lunacek" in ran.out


def test_a_setting_that_cannot_be_is_told(says: Says) -> None:
    for spec, parts in [
        ("curves,curve=sinus", ["'sinus'", "curve", "Did you mean 'sine'?"]),
        ("curves,noise=-1", ["noise must be from 0 to 1e+300"]),
        ("curves,noise=nan", ["noise must be from 0 to 1e+300"]),
        ("curves,noise=inf", ["noise must be from 0 to 1e+300"]),
        ("densities,density=rings", ["'rings'", "density", "Did you mean 'ring'?"]),
        ("bbob,function=25", ["bbob: function must be from 1 to 24 (got 25)"]),
        ("bbob,dimension=0", ["bbob: dimension must be from 1 to 40 (got 0)"]),
        ("bbob,dimension=41", ["bbob: dimension must be from 1 to 40 (got 41)"]),
        ("bbob,function=8,dimension=1", ["function=8", "dimension=1", "1, 2, 10, 11,"]),
        ("bbob,instance=0", ["bbob: instance must be from 1 to 1,000 (got 0)"]),
    ]:
        with case(spec, parts), says.raises(UsageError, *parts):
            TASKS.build(spec)


def test_seeds_and_settings_make_other_tables(tmp_path: Path) -> None:
    specs = ["curves", "curves,curve=step", "curves,noise=0.1"]
    versions = {make(Config(spec, samples=20), tmp_path).version for spec in specs}
    versions.add(make(Config("curves", samples=20, seed=1), tmp_path).version)
    assert len(versions) == 4
    assert gen.REVISION == 1
