"""Mistakes of plugin authors: ``numtok check`` names each one in a clear line.

Each is a plugin that is correct except for one or two changed texts.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import test_plugin_kinds
from tests.fakemodels import one_thread
from tests.imports import ROOT
from tests.shell import Ran, Shell
from tests.test_plugin_kinds import SOURCES, drop

__all__ = ["one_thread"]
pytestmark = pytest.mark.integration
folder = test_plugin_kinds.folder


class Mistake(NamedTuple):
    """The changes to a plugin of a kind, and what the first line about it contains."""

    kind: str
    changes: tuple[tuple[str, str], ...]
    told: tuple[str, ...]


def mistake(kind: str, line: str, becomes: str, *told: str) -> Mistake:
    """Return a mistake of one changed line."""
    return Mistake(kind, ((line, becomes),), told)


ENCODED = "return Encoded(tokens, np.ones(len(numerals), np.int32), outcomes, channel)"
DIFFERENCE = "(parameters_NP[:, 0] - targets_NW[:, 0]).square()"
POINT = "return parameters_NP[:, 0].double().cpu().numpy()"
TARGETS = "return values.astype(np.float32)[:, None]"
LOOKED_UP = "self.table(tokens_BL) * values_BL[:, :, None]"
TABLE = "self.table = token_table(vocabulary.size, width)"
SETTING = "exponents: Interval = Interval(-30, 30)"
MEAN = "return mean(np.abs(answers.prediction - answers.truth))"
MASKED = "return masked_batch(batch, batch.number_tokens(batch.is_target))"

MISTAKES = {
    # --- the file and its class
    "method missing": mistake(
        "scheme", "def interval(", "def between(", "mine.py", "lacks interval"
    ),
    "method missing in a metric": mistake(
        "metric", "def statistic(", "def statistics(", "mine.py: Mine lacks statistic"
    ),
    "method of the reader missing": mistake(
        "head", "def predictive(", "def predicted(", "mine.py, line", "abstract method predictive"
    ),
    "two public classes": mistake(
        "scheme", "@dataclass(frozen=True)\n",
        "class Other(ChannelScheme): ...\n\n\n@dataclass(frozen=True)\n",
        "mine.py", "exactly one public class", "Other, Decade",
    ),
    "no public class": mistake(
        "scheme", "class Decade(ChannelScheme)", "class _Decade(ChannelScheme)",
        "mine.py", "exactly one public class", "defines 0",
    ),
    "exception": mistake(
        "scheme", "_LARGEST = float(", "_LIMIT = int('many')\n_LARGEST = float(",
        "mine.py, line", "ValueError", "'many'", "[plugins] in numtok.toml",
    ),
    "import error": mistake(
        "scheme", "import numpy as np\n", "import nowhere\nimport numpy as np\n",
        "mine.py, line", "ModuleNotFoundError", "nowhere",
    ),
    "syntax error": mistake(
        "scheme", "def bounds(self)", "def bounds(self", "mine.py, line", "SyntaxError"
    ),
    "no dataclass": mistake(
        "scheme", "@dataclass(frozen=True)\n", "", "mine.py", "lacks @dataclass(frozen=True)"
    ),
    "dataclass not frozen": mistake(
        "scheme", "@dataclass(frozen=True)", "@dataclass",
        "mine.py: Decade lacks @dataclass(frozen=True)",
    ),
    "base class forgotten": mistake(
        "scheme", "class Decade(ChannelScheme)", "class Decade",
        "mine.py: Decade must derive from Scheme",
    ),
    "sys.exit": mistake(
        "scheme", "import numpy as np\n", "import sys; sys.exit(3)\n",
        "mine.py, line", "SystemExit: 3",
    ),
    "revision is a text": mistake(
        "scheme", "revision: ClassVar[int] = 1", 'revision: ClassVar[int] = "1"',
        "mine.py: Decade.revision is '1'", "int",
    ),
    # --- settings
    "mutable default": mistake(
        "scheme", SETTING, f"{SETTING}\n    powers: list = []", "mine.py, line", "powers", "an int"
    ),
    "a setting that is a tuple": mistake(
        "scheme", SETTING, f"{SETTING}\n    powers: tuple = ()",
        "mine.py: Decade.powers: ", "cannot have type tuple",
    ),
    "a setting without a type": mistake(
        "scheme", SETTING, f"{SETTING}\n    steps = 3",
        "mine.py: Decade.steps = 3 has no type", "steps: int",
    ),
    "setting() without a type": mistake(
        "task", "most: int = setting(", "most = setting(", "mine.py", "most"
    ),
    "a setting without a default": mistake(
        "scheme", SETTING, f"steps: int\n    {SETTING}",
        "mine.py: Decade.steps has no default", "checked_at", "mine,steps=VALUE",
    ),
    # --- schemes
    "decode gives float32": mistake(
        "scheme", "return DecodedNumbers(values, failures)",
        "return DecodedNumbers(values.astype(np.float32), failures)",
        "decoded values: got float32[0], expected float64[0]",
    ),
    "tokens of int64": mistake(
        "scheme", ENCODED, ENCODED.replace("(tokens,", "(tokens.astype(np.int64),"),
        "tokens: got int64[0], expected uint32[0]",
    ),
    "token with a space": mistake(
        "scheme", 'f"{sign}E{power}"', 'f"{sign}E {power}"', "token 0: got '+E -30'", "whitespace"
    ),
    "tokens_per_number wrong": mistake(
        "scheme", "int:\n        return 1\n", "int:\n        return 2\n",
        "got ZERO, expected 2 tokens",
    ),
    "error too small": mistake(
        "scheme", "LargestError(2.0**-24)", "LargestError(2.0**-40)", "at most 9.09e-13"
    ),
    "random tokens": mistake(
        "scheme", ENCODED,
        f"tokens[:] = np.random.default_rng().integers(0, 61, len(tokens))\n        {ENCODED}",
        "got", "expected",
    ),
    "NaN forgotten": mistake(
        "scheme", "if np.isnan(value):", "if False:", "mine.py, line", "in Decade.encode"
    ),
    "digest wrong": mistake(
        "scheme", "    golden: ", '    digest: ClassVar[str] = "0000000000000000"\n    golden: ',
        "digest", "0000000000000000",
    ),
    "golden wrong": mistake("scheme", '"-65.0"', '"-66.0"', "golden", "-6.5e1", "-65.0", "-66.0"),
    # --- heads
    "loss is a mean": mistake(
        "head", ".square()", ".square().mean()",
        "heads/mine.py: _Reader.losses returned Tensor float32[], expected Tensor float[8]",
    ),
    "loss of two dimensions": mistake(
        "head", DIFFERENCE, "(parameters_NP - targets_NW).square()",
        "_Reader.losses returned Tensor float32[8, 1], expected Tensor float[8]",
    ),
    "targets of float64": mistake(
        "head", TARGETS, "return values[:, None]", "Mine.targets returned ndarray float64[11, 1]"
    ),
    "targets of one dimension": mistake(
        "head", TARGETS, "return values.astype(np.float32)",
        "Mine.targets returned ndarray float32[11], expected ndarray float32|int64[11, any]",
    ),
    "point is a tensor": mistake(
        "head", POINT, "return parameters_NP[:, 0]", "_Reader.point returned Tensor float32[8]"
    ),
    "forward of one dimension": mistake(
        "head", "return self.linear(hidden_ND)", "return self.linear(hidden_ND)[:, 0]",
        "_Reader.forward returned Tensor float32[8], expected Tensor float32[8, any]",
    ),
    "forward of float64": mistake(
        "head", "return self.linear(hidden_ND)", "return self.linear(hidden_ND).double()",
        "_Reader.forward returned Tensor float64[8, 1], expected Tensor float32[8, any]",
    ),
    "no ValueReader": mistake(
        "head", "return _Reader(width)", "return nn.Linear(width, 1)",
        "Mine.build returned a Linear, expected ValueReader",
    ),
    "loss is NaN": mistake("head", ".square()", ".square() / 0 * 0", "losses", "nan", "finite"),
    "loss detached": mistake(
        "head", ".square()", ".square().detach()",
        "_Reader.losses returned a Tensor without a gradient",
    ),
    "predictive None": mistake(
        "head", "return Mixture.single(", "Mixture.single(",
        "_Reader.predictive returned None, expected Predictive",
    ),
    "calibrate missing": mistake(
        "head", "def calibrate(", "def calibrated(", "mine.py, line", "abstract method calibrate"
    ),
    "calibrate not asked for": mistake(
        "head", "CalibratedReader", "ValueReader",
        "got _Reader.calibrate, which is never called", "derive _Reader from CalibratedReader",
    ),
    "calibrate gives nothing": mistake(
        "head", 'return {"deviation": float(', 'return {} and {"deviation": float(',
        "_Reader.calibrate returned nothing, expected floats by name",
    ),
    "width fixed": mistake(
        "head", "nn.Linear(width, 1)\n\n", "nn.Linear(16, 1)\n\n",
        "mine.py, line", "_Reader.forward",
    ),
    "random forward": mistake(
        "head", "return self.linear(hidden_ND)",
        "return self.linear(hidden_ND) * (1 + np.random.random())", "alone", "expected",
    ),
    "old signature": mistake(
        "head", "def losses(self, parameters_NP, targets_NW):",
        "def losses(self, parameters_NP, targets_NW, values_N):", "losses() missing 1 required",
    ),
    "tensor made on the CPU": mistake(
        "head", "return self.linear(hidden_ND)",
        "import torch; return self.linear(hidden_ND) + torch.zeros(1)",
        "mine.py, line", "in _Reader.forward", "GPU", "device=",
    ),
    # --- embedders
    "no table": mistake(
        "embedder", "self.table", "self.vectors", "returned a _Module without table.weight"
    ),
    "vectors without coordinates": mistake(
        "embedder", f"return {LOOKED_UP}", f"return ({LOOKED_UP}).sum(2)",
        "_Module.forward returned Tensor float32[5, ", "expected Tensor float[5, ",
    ),
    "log of 0": mistake(
        "embedder", "values_BL[:, :, None]", "values_BL.abs().log()[:, :, None]",
        "with the value 0.0", "expected finite",
    ),
    "weight never used": mistake(
        "embedder", TABLE, f"{TABLE}\n        self.other = nn.Linear(2, 2)",
        "gradient", "other.weight",
    ),
    # --- metrics
    "metric gives one number": mistake(
        "metric", MEAN, "return float(np.abs(answers.prediction - answers.truth).mean())",
        "Mine.statistic returned ", "expected a function of weights",
    ),
    "better missing": mistake(
        "metric", 'better: ClassVar[Literal["lower"]] = "lower"', "", "mine.py: Mine lacks better"
    ),
    "better is bigger": mistake(
        "metric", 'ClassVar[Literal["lower"]] = "lower"', 'ClassVar[str] = "bigger"',
        "better: got 'bigger'", "'higher' or 'lower' or 'neither'",
    ),
    "wrong example": mistake(
        "metric", "    1.5\n", "    2.5\n", "Mine().plain(", "got 1.5, expected 2.5"
    ),
    # --- tasks
    "unit is no JSON": mistake("task", "json.dumps(row)", "str(row)", "JSON"),
    "span beside the number": mistake(
        "task", "len(text)]", "len(text) - 1]", "got the target", "expected one number"
    ),
    "unseeded": mistake(
        "task", 'random.Random(f"{seed} {split.name} {row}")', "random.Random()",
        "got False, expected True",
    ),
    # --- objectives
    "global random": mistake(
        "objective", MASKED,
        f"made = {MASKED[7:]}; "
        "return replace(made, moved_places=np.random.random((len(batch.tokens), 2)))",
        "got different moved_places for the same seed",
    ),
    "example of another class": mistake(
        "objective", "return masked_batch(", "masked_batch(",
        "Mine.example returned None, expected TrainingBatch",
    ),
    # --- predictions match what was trained, and vectors match their tokens
    "point in another unit than targets": Mistake(
        "head",
        ((POINT, POINT.replace(".double()", ".double().mul(10)")),
         ("Mixture.single(point,", "Mixture.single(point / 10,")),
        ("read back",),
    ),
    "point and distribution wrong": mistake(
        "head", POINT, POINT.replace(".double()", ".double().mul(10)"), "read back"
    ),
    "embedder sees its neighbor": mistake(
        "embedder", f"return {LOOKED_UP}",
        f"vectors = {LOOKED_UP}; return vectors + 0.1 * vectors.roll(1, 1)", "places",
        "changed vectors at other positions",
    ),
}  # fmt: skip


def first_line(ran: Ran) -> str:
    """Return the first line about a mistake: the error, or the first check that failed."""
    if ran.code == 2:
        assert ran.err.count("\n") == 1, ran.err
        return ran.err
    assert ran.code == 1, (ran.code, ran.err)
    broken = [row["message"] for row in json.loads(ran.out)["rows"] if row["result"] != "ok"]
    return str(broken[0])


@pytest.mark.parametrize("name", MISTAKES)
def test_check_catches_a_mistake_and_names_it(folder: Path, numtok: Shell, name: str) -> None:
    kind, changes, told = MISTAKES[name]
    source = SOURCES[kind]
    for line, becomes in changes:
        assert line in source
        source = source.replace(line, becomes)
    drop(folder, kind, source)
    line = first_line(numtok("check", kind, "mine", "--json"))
    assert [part for part in told if part not in line] == [], line
    assert "a bug" not in line


# --- mistakes outside the file -------------------------------------------------------------------


def test_the_name_of_a_built_in(folder: Path, numtok: Shell) -> None:
    drop(folder, "scheme", SOURCES["scheme"]).rename(folder / "schemes" / "xval.py")
    line = first_line(numtok("check", "scheme", "xval"))
    assert "two files define the scheme 'xval'" in line
    assert f"{ROOT / 'numtok/encoding/schemes'}" in line and f"{folder.resolve()}" in line


def test_a_file_name_that_is_no_name(folder: Path, numtok: Shell) -> None:
    drop(folder, "scheme", SOURCES["scheme"]).rename(folder / "schemes" / "Decade-2.py")
    assert "Decade-2.py: not a valid name for a scheme" in first_line(
        numtok("check", "scheme", "xval")
    )


def test_a_folder_that_is_almost_a_registry(folder: Path, numtok: Shell) -> None:
    drop(folder, "scheme", SOURCES["scheme"])
    (folder / "schemes").rename(folder / "scheme")
    line = first_line(numtok("check", "scheme", "mine"))
    assert f"{folder.resolve() / 'scheme'} is not searched. Rename it to schemes/" in line


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('folder = ["plugins"]', "folder"),
        ('folders = ["elsewhere"]', "'elsewhere' is not a folder"),
    ],
)
def test_numtok_toml(folder: Path, numtok: Shell, toml: str, told: str) -> None:
    folder.with_name("numtok.toml").write_text(f"[plugins]\n{toml}\n")
    assert told in first_line(numtok("check", "scheme", "xval"))


@pytest.mark.parametrize("line", ["from shared import HALF", "import shared; HALF = shared.HALF"])
def test_a_helper_is_imported_wherever_the_plugin_is(
    folder: Path, numtok: Shell, line: str
) -> None:
    (folder / "shared.py").write_text("HALF = 2\n")
    source = SOURCES["normalizer"].replace("values / 2", "values / HALF")
    drop(folder, "normalizer", f"{line}\n{source}")
    ran = numtok("check", "normalizer", "mine")
    assert (ran.code, ran.err) == (0, "")
