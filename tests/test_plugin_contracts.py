"""Parts of models and metrics from outside: what breaks a contract is told as the plugin's fault.

Each fault is one change to a plugin that keeps its contract. The command that meets it first ends
with exit code 2 and one line with the plugin's file and the member; a plugin's own exception is
told with its traceback and the line in its file.
"""

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from numtok import plugins as plugins_module
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.models.heads.base import HEADS, TokenHead
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config as GenConfig
from numtok.stages.gen import run as gen
from numtok.store.artifact import MANIFEST
from numtok.store.store import Store
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Ran, Shell
from tests.forks import Forks, forking
from tests.stages import test_train

pytestmark = pytest.mark.integration

numtok = test_cli_store.numtok
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

from numtok.models.objectives.base import Objective, masked_batch


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


@dataclass(frozen=True)
class Fault:
    """A line of a plugin that becomes another, and what is told of it.

    told
        The member, as the line names it, and what it gives.
    trace
        Whether it is an exception of the plugin's own, shown with its traceback.
    """

    of: str
    line: str
    becomes: str
    told: tuple[str, ...]
    trace: bool = False


FAULTS = {
    # --- heads: what training meets
    "a missing method of the reader": Fault(
        "head", "def predictive(", "def predicted(",
        ("line", "in Mine.build", "TypeError", "predictive"), trace=True,
    ),
    "a typo in the reader": Fault(
        "head", "self.linear(hidden_ND)", "self.liner(hidden_ND)",
        ("in _Reader.forward", "AttributeError", "liner"), trace=True,
    ),
    "no reader": Fault(
        "head", "return _Reader(width)", "return nn.Linear(width, 1)",
        ("Mine.build gives a Linear", "ValueReader"),
    ),
    "transposed learnt": Fault(
        "head", "(np.float32)[:, None]", "(np.float32)[None, :]",
        ("Mine.targets gives ndarray float32[1, ", "float32|int64[N, W], N = "),
    ),
    "learnt in float64": Fault(
        "head", "values.astype(np.float32)[:, None]", "values[:, None]",
        ("Mine.targets gives ndarray float64[",),
    ),
    "learnt that is a list": Fault(
        "head", "values.astype(np.float32)[:, None]", "list(values)",
        ("Mine.targets gives a list",),
    ),
    "learnt that is not finite": Fault(
        "head", "return values.astype(np.float32)[:, None]",
        "return np.full((len(values), 1), np.nan, np.float32)",
        ("Mine.targets gives ndarray float32[", "not finite"),
    ),
    "parameters of one dimension": Fault(
        "head", "self.linear(hidden_ND)", "self.linear(hidden_ND)[:, 0]",
        ("_Reader.forward gives Tensor float32[", "float32[N, P], N = "),
    ),
    "a mean for losses": Fault(
        "head", ".square()", ".square().mean()",
        ("_Reader.losses gives Tensor float32[]", "[N], N = "),
    ),
    "losses that were broadcast": Fault(
        "head", "parameters_NP[:, 0] - targets_NW[:, 0]", "parameters_NP[:, 0] - targets_NW",
        ("_Reader.losses gives Tensor float32[", "[N], N = "),
    ),
    "losses without a gradient": Fault(
        "head", ".square()", ".square().detach()", ("_Reader.losses", "without a gradient"),
    ),
    "a normaliser that does not exist": Fault(
        "head", '"unit,start=-0.5"', '"units"', ("Mine.normalizer gives 'units'", "unknown"),
    ),
    "a number for yes or no": Fault(
        "head", "layers: int = 1", "bounded: ClassVar[int] = 0",
        ("Mine.bounded gives 0", "bool"),
    ),
    "a setting of a type that no spec writes": Fault(
        "head", "layers: int = 1", "layers: tuple = ()", ("Mine.layers", "tuple", "int, float"),
    ),
    "a revision that is a text": Fault(
        "head", "revision: ClassVar[int] = 1", 'revision: ClassVar[int] = "1"',
        ("Mine.revision is '1'", "int"),
    ),
    "a calibration that is an array": Fault(
        "head", "float(np.std(values - self.point(parameters_NP))) + 1e-6", "np.ones(2)",
        ("_Reader.calibrate gives 'deviation': ndarray",),
    ),
    # --- heads: what evaluation meets
    "a point that is a tensor": Fault(
        "head", "return parameters_NP[:, 0].double().cpu().numpy()", "return parameters_NP[:, 0]",
        ("_Reader.point gives Tensor float32[", "ndarray float64[N], N = "),
    ),
    "a point of two dimensions": Fault(
        "head", "parameters_NP[:, 0].double()", "parameters_NP.double()",
        ("_Reader.point gives ndarray float64[",),
    ),
    "no distribution": Fault(
        "head", "return Mixture.single(point, deviation, scaling)",
        "return None", ("_Reader.predictive gives None", "Predictive"),
    ),
    "a distribution of another shape": Fault(
        "head", "Mixture.single(point,", "Mixture.single(point[:1],",
        ("Mixture.", " gives ndarray float64["),
    ),
    "a distribution with no spread": Fault(
        "head", "deviation, scaling)", "0.0, scaling)",
        ("in _Reader.predictive", "ValueError: a deviation must be positive"), trace=True,
    ),
    # --- embedders
    "an embedder without a table": Fault(
        "embedder", "self.table", "self.vectors",
        ("Mine.build gives a _Module without table.weight",),
    ),
    "a table of another size": Fault(
        "embedder", "vocabulary.size, width", "vocabulary.size, width + 1",
        ("Mine.build gives a _Module whose table.weight is Parameter float32[",),
    ),
    "no module": Fault(
        "embedder", "return _Module(vocabulary, width)", "return None", ("Mine.build gives None",),
    ),
    "vectors of another shape": Fault(
        "embedder", "values_BL[:, :, None]", "values_BL[:, None, :, None]",
        ("_Module.forward gives Tensor float32[", "[B, L, D]"),
    ),
    "an embedder that lacks a method": Fault(
        "embedder", "def build(", "def built(",
        ("Mine lacks build", "numtok.models.embedders.base"),
    ),
    # --- objectives
    "no example": Fault(
        "objective", "return masked_batch(", "masked_batch(",
        ("Mine.example gives None", "TrainingBatch"),
    ),
    "labels of another type": Fault(
        "objective", "return masked_batch(batch, batch.number_tokens(batch.is_target))",
        "made = masked_batch(batch, batch.number_tokens(batch.is_target)); "
        "return replace(made, labels=made.labels.astype(np.int32))",
        ("Mine.example, labels gives ndarray int32[", "int64[K], K = "),
    ),
    "truths in a column of their own": Fault(
        "objective", "return masked_batch(batch, batch.number_tokens(batch.is_target))",
        "made = masked_batch(batch, batch.number_tokens(batch.is_target)); "
        "return replace(made, number_values=made.number_values[:, None])",
        ("Mine.example, number_values gives ndarray float32[", ", 1]", "float32|float64[N], N = "),
    ),
    "places that do not rise": Fault(
        "objective", "return masked_batch(batch, batch.number_tokens(batch.is_target))",
        "made = masked_batch(batch, batch.number_tokens(batch.is_target)); "
        "return replace(made, where=made.where[::-1].copy())",
        ("Mine.example, where gives places that do not rise",),
    ),
    "a column that does not exist": Fault(
        "objective", 'return "targets"', 'return "target"', ("Mine.requires gives 'target'",),
    ),
    # --- metrics
    "no function": Fault(
        "metric", "return mean(np.abs(answers.prediction - answers.truth))",
        "return float(np.abs(answers.prediction - answers.truth).mean())",
        ("Mine.statistic gives ", "a function"),
    ),
    "one figure for all weights": Fault(
        "metric", "return mean(np.abs(answers.prediction - answers.truth))",
        "return lambda weights: np.abs(answers.prediction - answers.truth).mean()",
        ("Mine.statistic gives float64", "float64[R], R = "),
    ),
    "a typo in a metric": Fault(
        "metric", "answers.truth)", "answers.truths)", ("in Mine.statistic", "truths"), trace=True,
    ),
    "better in a word of its own": Fault(
        "metric", 'better: ClassVar[Literal["lower"]] = "lower"',
        'better: ClassVar[Literal["lower"]] = "less"', ("Mine.better is 'less'",),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sums, encoded with a value beside each token, and a model of them."""
    root = tmp_path_factory.mktemp("data") / "artifacts"
    store = Store(root)
    config = GenConfig("arithmetic,operands=2", samples=200)
    gen(config, store, lambda *_: None)
    encode(EncodeConfig(("arithmetic",), scheme="xval"), store, lambda *_: None)
    return root


@pytest.fixture
def folder(tmp_path: Path, plugins: Path, encoded: Path) -> Path:
    """A working folder with that store, and a folder of plugins in its numtok.toml."""
    shutil.copytree(encoded, tmp_path / "artifacts")
    (tmp_path / "numtok.toml").write_text('[plugins]\nfolders = ["plugins"]\n')
    return tmp_path


def write(folder: Path, of: str, source: str, name: str = "mine") -> Path:
    file = folder.resolve() / "plugins" / FOLDERS[of][0] / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file


def used(numtok: Shell, of: str) -> Ran:
    """The first command that fails of those that use a plugin, or the last one."""
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


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_a_plugin_that_breaks_its_contract_is_named_with_the_member(
    folder: Path, numtok: Shell, fault: Fault
) -> None:
    source = FOLDERS[fault.of][1]
    assert fault.line in source
    file = write(folder, fault.of, source.replace(fault.line, fault.becomes))
    ran = used(numtok, fault.of)
    *before, line = ran.err.splitlines()
    assert ran.code == 2, ran.err
    assert line.startswith(f"numtok: {file}")
    for part in fault.told:
        assert part in line
    assert bool(before) == fault.trace
    if fault.trace:
        assert before[0] == "Traceback (most recent call last):"


def test_a_head_for_tables_is_held_to_the_same(folder: Path, numtok: Shell) -> None:
    rows = "".join(f"{index},{index * index}\n" for index in range(40))
    (folder / "table.csv").write_text("x,y\n" + rows)
    command = ("-q", "train", "table.csv", "--target", "y", "--head", "mine", "--epochs", "2")
    write(folder, "head", HEAD)
    trained = numtok(*command)
    assert trained.code == 0, trained.err
    assert numtok("-q", "eval", trained.out.strip()).code == 0
    broken = HEAD.replace(".square()", ".square().mean()").replace(
        "revision: ClassVar[int] = 1", "revision: ClassVar[int] = 2"
    )
    file = write(folder, "head", broken)
    forget()
    ran = numtok(*command)
    assert ran.code == 2
    assert ran.err.startswith(f"numtok: {file}: _Reader.losses gives Tensor float32[]")


def forget() -> None:
    """The plugin as it was read: its file has changed."""
    del sys.modules["numtok.models.heads.mine"]
    importlib.invalidate_caches()


def test_an_exception_of_a_plugin_in_a_worker_is_told_with_its_line(
    folder: Path, numtok: Shell
) -> None:
    task = """
from dataclasses import dataclass
from typing import ClassVar

from numtok.data.tasks.arithmetic import Arithmetic as _Arithmetic


@dataclass(frozen=True)
class Mine(_Arithmetic):
    def unit(self, *given):
        return 1 / 0
"""
    (folder / "plugins" / "tasks").mkdir()
    file = folder.resolve() / "plugins" / "tasks" / "mine.py"
    file.write_text(task)
    ran = numtok("-q", "gen", "mine", "--samples", "300000", "--workers", "2")
    assert ran.code == 2
    line = ran.err.splitlines()[-1]
    assert line.startswith(f"numtok: {file}, line 11, in Mine.unit: ZeroDivisionError")


def test_a_folder_of_plugins_may_have_numtok_and_other_things_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(plugins_module.__file__).parents[1]
    monkeypatch.setattr(plugins_module, "_folders", [root, tmp_path])
    others = (root / "numtok" / "registry.py", root / ".venv" / "lib" / "torch" / "nn.py")
    assert not any(map(plugins_module.is_plugin_file, others))
    assert plugins_module.is_plugin_file(tmp_path / "heads" / "mine.py")
    assert not plugins_module.is_plugin(NORMALIZERS.build("unit"))


# --- numtok's own ------------------------------------------------------------------------------


def test_the_parts_of_numtok_keep_the_contracts_that_plugins_are_held_to(
    folder: Path, numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: set[str] = set()

    def file_of(thing: object) -> Path:
        looked_at.add(f"{type(thing).__module__}")
        return Path("own")

    monkeypatch.setattr(plugins_module, "file_of", file_of)
    rows = "".join(f"{index},{index * index}\n" for index in range(40))
    (folder / "table.csv").write_text("x,y\n" + rows)
    assert numtok("-q", "table", "table.csv", "--target", "y", "--name", "t").code == 0
    given = {"decoder": ":ud", "mdn": ":2", "riemann": ":8"}
    kinds = {name: HEADS[name] for name in HEADS}
    tables = [name for name, kind in kinds.items() if not issubclass(kind, TokenHead)]
    for head in [name + given.get(name, "") for name in tables]:
        ran = numtok("-q", "train", "t", "--head", head, "--epochs", "2")
        assert ran.code == 0, ran.err
        ran = numtok("-q", "eval", ran.out.strip())
        assert ran.code == 0, ran.err
    for scheme in ("p1000", "numgpt", "numvalue", "dice"):
        assert numtok("-q", "encode", "arithmetic", "--scheme", scheme).code == 0
        objective = ("--objective", "numvalue") if scheme == "numvalue" else ()
        ran = numtok("-q", "train", f"arithmetic-{scheme}", *TRAIN[2:], *objective)
        assert ran.code == 0, ran.err
        ran = numtok("-q", "eval", ran.out.strip(), f"arithmetic-{scheme}")
        assert ran.code == 0, ran.err
    assert {one.rpartition(".")[0] for one in looked_at} >= {
        "numtok.metrics", "numtok.models.embedders", "numtok.models.heads",
        "numtok.models.objectives", "numtok.encoding.normalizers",
    }  # fmt: skip


# --- artifacts of plugins that are not here ------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(encoded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Commands in processes of their own, which know of no plugins."""
    store = ("--store", str(encoded))
    with forking(tmp_path_factory.mktemp("elsewhere"), [("eval", "no", "such", *store)]) as forks:
        yield forks


def test_a_model_of_plugins_that_are_not_here_says_where_they_were(
    folder: Path, numtok: Shell, plugins: Path, elsewhere: Forks
) -> None:
    write(folder, "embedder", EMBEDDER, "tuning")
    trained = numtok("-q", *TRAIN, "--embedder", "tuning")
    model = trained.out.strip()
    manifest = json.loads((Store(folder / "artifacts").resolve(model).path / MANIFEST).read_bytes())
    assert manifest["facts"]["plugins"] == {"embedders/tuning.py": str(plugins.resolve())}

    away = folder / "away"
    away.mkdir()
    ran = elsewhere(away, "eval", model, "arithmetic-xval", "--store", "../artifacts")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "did you mean" not in ran.err
    for part in ("embedder 'tuning'", model, str(plugins.resolve()), "numtok.toml"):
        assert part in ran.err


def test_a_model_of_an_earlier_numtok_says_that_a_plugin_is_missing(
    folder: Path, numtok: Shell, elsewhere: Forks
) -> None:
    """Its manifest names no plugins."""
    write(folder, "head", HEAD)
    model = numtok("-q", *TRAIN, "--head", "mine").out.strip()
    path = Store(folder / "artifacts").resolve(model).path / MANIFEST
    manifest = json.loads(path.read_bytes())
    del manifest["facts"]
    path.write_text(json.dumps(manifest))
    away = folder / "away"
    away.mkdir()
    ran = elsewhere(away, "eval", model, "arithmetic-xval", "--store", "../artifacts")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    for part in ("head 'mine'", model, "numtok.toml", "scalar"):
        assert part in ran.err


def test_an_artifact_without_plugins_names_none(encoded: Path) -> None:
    for artifact in Store(encoded).artifacts():
        assert "plugins" not in artifact.manifest.facts
