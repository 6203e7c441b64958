"""A plugin is checked by the command that first uses it, once per version of its code.

A command that uses a broken plugin ends with exit code 2 and prints its first violations.
"""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from numtok import contracts, plugin_checks
from numtok import plugins as plugins_module
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import UsageError
from numtok.models.heads.base import HEADS
from numtok.plugins import add_plugin_folders
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config as GenConfig
from numtok.stages.gen import run as gen
from numtok.store.artifact import MANIFEST
from numtok.store.draft import claim
from numtok.store.store import Store
from tests.forged import forge_manifest
from tests.forks import Forks, forking
from tests.shell import Ran, Shell
from tests.stages import test_train

pytestmark = pytest.mark.integration

one_thread = test_train.one_thread

HEAD = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import nn

from numtok.models.distributions.mixture import Mixture
from numtok.models.heads.base import CalibratedReader, ValueHead


class _Reader(CalibratedReader):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, hidden_ND):
        return self.linear(hidden_ND)

    def losses(self, parameters_NP, targets_NW):
        return (parameters_NP[:, 0] - targets_NW[:, 0]).square()

    def point(self, parameters_NP):
        return parameters_NP[:, 0].double().cpu().numpy()

    def calibrate(self, parameters_NP, values):
        return {"deviation": float(np.std(values - self.point(parameters_NP))) + 1e-6}

    def predictive(self, parameters_NP, calibration, scaling):
        point, deviation = self.point(parameters_NP), calibration["deviation"]
        return Mixture.single(point, deviation, scaling)


@dataclass(frozen=True)
class Mine(ValueHead):
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    normalizer: ClassVar[str] = "unit,start=-0.5"
    layers: int = 1

    def describe(self):
        return "a Gaussian"

    def targets(self, values):
        return values.astype(np.float32)[:, None]

    def build(self, width):
        return _Reader(width)
"""

EMBEDDER = """
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.embedders.base import Embedder, token_table


class _Module(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = token_table(vocabulary.size, width)

    def forward(self, tokens_BL, values_BL):
        return self.table(tokens_BL) * values_BL[:, :, None]


@dataclass(frozen=True)
class Mine(Embedder):
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"

    def build(self, vocabulary, width):
        return _Module(vocabulary, width)
"""

OBJECTIVE = """
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from numtok.models.objectives.base import Objective
from numtok.models.training_batch import masked_batch


@dataclass(frozen=True)
class Mine(Objective):
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    causal: ClassVar[bool] = False

    def requires(self):
        return "targets"

    def example(self, batch, random):
        return masked_batch(batch, batch.number_tokens(batch.is_target))
"""

METRIC = '''
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class Mine(Metric):
    """
    >>> Mine().plain(Predictions.of([1, 2], [1, 5]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    better: ClassVar[Literal["lower"]] = "lower"
    undefined: ClassVar[str] = "never"

    def statistic(self, answers):
        return mean(np.abs(answers.prediction - answers.truth))
'''

FOLDERS = {
    "head": ("heads", HEAD),
    "embedder": ("embedders", EMBEDDER),
    "objective": ("objectives", OBJECTIVE),
    "metric": ("metrics", METRIC),
}
TRAIN = ("train", "arithmetic-xval", "--preset", test_train.TINY, "--batch", "32", "--steps", "2")


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with sums, encoded with a value for each number."""
    root = tmp_path_factory.mktemp("data") / "artifacts"
    store = Store(root)
    config = GenConfig("arithmetic,operands=2", samples=200)
    gen(config, store, lambda *_: None)
    encode(EncodeConfig(("arithmetic",), scheme="xval"), store, lambda *_: None)
    return root


@pytest.fixture
def folder(tmp_path: Path, plugins: Path, encoded: Path) -> Path:
    """Provide a working folder with that store and a numtok.toml that names a plugin folder."""
    shutil.copytree(encoded, tmp_path / "artifacts")
    (tmp_path / "numtok.toml").write_text('[plugins]\nfolders = ["plugins"]\n')
    return tmp_path


def write(folder: Path, of: str, source: str, name: str = "mine") -> Path:
    file = folder.resolve() / "plugins" / FOLDERS[of][0] / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file


def used(numtok: Shell, of: str) -> Ran:
    """Return the first command that fails among those that use a plugin, or the last one."""
    option = () if of == "metric" else (f"--{of}", "mine")
    trained = numtok("-q", *TRAIN, *option)
    if trained.code:
        return trained
    metric = ("--metric", "mine") if of == "metric" else ()
    return numtok("-q", "eval", trained.out.strip(), "arithmetic-xval", *metric)


@pytest.mark.parametrize("of", FOLDERS)
def test_a_plugin_that_keeps_its_contract_is_used(folder: Path, numtok: Shell, of: str) -> None:
    write(folder, of, FOLDERS[of][1])
    ran = used(numtok, of)
    assert (ran.code, ran.err) == (0, "")


def test_a_plugin_that_cannot_be_checked_is_used_with_a_note(
    folder: Path, numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: str, spec: str) -> NoReturn:
        raise UsageError("a package is missing")

    monkeypatch.setattr(plugin_checks, "check_spec", refuse)
    file = write(folder, "head", HEAD + "# never checked before\n")
    ran = numtok(*TRAIN, "--head", "mine")
    assert ran.code == 0
    assert f"{file} is used without checks: a package is missing" in ran.err


BROKEN = HEAD.replace(".square()", ".square().mean()").replace(".double().cpu().numpy()", "")


def test_a_command_that_uses_a_broken_plugin_names_its_breaks(folder: Path, numtok: Shell) -> None:
    file = write(folder, "head", BROKEN)
    ran = numtok("-q", *TRAIN, "--head", "mine")
    assert (ran.code, ran.out) == (2, "")
    first, *more = ran.err.splitlines()
    assert first == (
        f"numtok: {file}: _Reader.losses returned Tensor float32[], expected Tensor float[8] "
        "(1 more check failed for this reason)"
    )
    assert all(line.startswith(f"  {file}") for line in more[:2])
    assert more[2:] == ["  and 1 more. List them: numtok check head mine"]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Record the specs whose suites run, with an empty cache."""
    specs: list[str] = []

    def check_spec(kind: str, spec: str) -> list[contracts.CheckResult]:
        specs.append(spec)
        return contracts_check(kind, spec)

    contracts_check = plugin_checks.check_spec
    monkeypatch.setattr(plugin_checks, "check_spec", check_spec)
    monkeypatch.setattr(plugins_module, "on_use", partial(plugin_checks.check_plugin, print))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return specs


def test_a_plugin_is_checked_again_only_after_a_change(plugins: Path, checked: list[str]) -> None:
    (plugins / "heads").mkdir()
    (plugins / "shared.py").write_text("LAYERS = 1\n")
    file = plugins / "heads" / "mine.py"
    file.write_text(f"from shared import LAYERS\n{HEAD}")
    add_plugin_folders([plugins])
    for _ in range(2):
        HEADS.build("mine")
    assert checked == ["mine"]
    plugin_checks._known.clear()  # as in another process
    HEADS.build("mine")
    assert checked == ["mine"]
    for changed in (plugins / "shared.py", file):
        changed.write_text(changed.read_text() + "# another line\n")
        plugin_checks._known.clear()
        HEADS.build("mine")
    assert checked == ["mine"] * 3


def test_the_check_leaves_random_numbers_as_they_were(plugins: Path, checked: list[str]) -> None:
    (plugins / "heads").mkdir()
    (plugins / "heads" / "mine.py").write_text(HEAD)
    add_plugin_folders([plugins])
    before = torch.get_rng_state()
    HEADS.build("mine")
    assert checked and torch.equal(torch.get_rng_state(), before)


def test_a_draft_begun_by_other_code_of_a_plugin_is_not_continued(
    plugins: Path, tmp_path: Path, checked: list[str]
) -> None:
    (plugins / "heads").mkdir()
    file = plugins / "heads" / "mine.py"
    file.write_text(HEAD)
    add_plugin_folders([plugins])
    HEADS.build("mine")

    def continued() -> bool:
        return claim(tmp_path / "place", "v", False, lambda _: None)[1]

    (tmp_path / "place").mkdir()
    assert [continued(), continued()] == [False, True]
    file.write_text(HEAD.replace("1e-6", "2e-6"))
    assert [continued(), continued()] == [False, True]


def test_an_exception_of_a_plugin_in_a_worker_is_told_with_its_line(
    folder: Path, numtok: Shell
) -> None:
    task = """
import multiprocessing
from dataclasses import dataclass

from numtok.data.tasks.arithmetic import Arithmetic as _Arithmetic
from shared import ZERO


@dataclass(frozen=True)
class Mine(_Arithmetic):
    def unit(self, *given):
        if multiprocessing.parent_process():
            return 1 / ZERO
        return super().unit(*given)
"""
    (folder / "plugins" / "shared.py").write_text("ZERO = 0\n")
    (folder / "plugins" / "tasks").mkdir()
    file = folder.resolve() / "plugins" / "tasks" / "mine.py"
    file.write_text(task)
    ran = numtok("-q", "gen", "mine", "--rows", "300000", "--workers", "2")
    assert ran.code == 2
    line = ran.err.splitlines()[-1]
    assert line.startswith(f"numtok: {file}, line 13, in Mine.unit: ZeroDivisionError")


def test_a_folder_of_plugins_may_have_numtok_and_other_things_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(plugins_module.__file__).parents[1]
    monkeypatch.setattr(plugins_module, "_folders", [root, tmp_path])
    others = (root / "numtok" / "registry.py", root / ".venv" / "lib" / "torch" / "nn.py")
    assert not any(map(plugins_module.is_plugin_file, others))
    assert plugins_module.is_plugin_file(tmp_path / "heads" / "mine.py")
    assert not plugins_module.is_plugin(NORMALIZERS.build("unit"))


# --- artifacts of missing plugins ----------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(encoded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Provide commands in other processes, which know no plugins."""
    store = ("--store", str(encoded))
    with forking(tmp_path_factory.mktemp("elsewhere"), [("eval", "no", "such", *store)]) as forks:
        yield forks


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_a_model_of_plugins_that_are_not_here_says_where_they_were(
    folder: Path, numtok: Shell, plugins: Path, elsewhere: Forks, named: bool
) -> None:
    """The manifest names the plugins, unless an earlier numtok wrote it."""
    write(folder, "embedder", EMBEDDER, "tuning")
    model = numtok("-q", *TRAIN, "--embedder", "tuning").out.strip()
    path = Store(folder / "artifacts").resolve(model).path / MANIFEST
    manifest = json.loads(path.read_bytes())
    assert manifest["facts"]["plugins"] == {"embedders/tuning.py": str(plugins.resolve())}
    if not named:
        forge_manifest(path.parent, facts={})
    away = folder / "away"
    away.mkdir()
    ran = elsewhere(away, "eval", model, "arithmetic-xval", "--store", "../artifacts")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "Did you mean" not in ran.err
    hint = str(plugins.resolve()) if named else "lookup"
    for part in ("embedder 'tuning'", model, hint, "numtok.toml"):
        assert part in ran.err


def test_an_artifact_without_plugins_names_none(encoded: Path) -> None:
    for artifact in Store(encoded).artifacts():
        assert "plugins" not in artifact.manifest.facts
