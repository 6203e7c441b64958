"""A plugin takes only one new file: ``numtok check`` finds it, and it keeps its contract.

(``tests/plugins/test_mistakes.py`` has plugins that break it.)
"""

import json
import shutil
from pathlib import Path

import pytest

from numtok.plugin_checks import kinds
from numtok.plugins import registries
from tests.fakemodels import one_thread
from tests.shell import Ran, Shell
from tests.test_plugin_contracts import EMBEDDER, HEAD, METRIC, OBJECTIVE

__all__ = ["one_thread"]

NORMALIZER = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.encoding.normalizers.base import Normalizer


@dataclass(frozen=True)
class Mine(Normalizer):
    revision: ClassVar[int] = 1
    fitted: ClassVar[bool] = False
    linear: ClassVar[bool] = True
    keeps_zero: ClassVar[bool] = True

    def fit(self, moments):
        return {}

    def forward(self, values, constants):
        return values / 2

    def inverse(self, values, constants):
        return values * 2

    def log_slope(self, values, constants):
        return np.full(len(values), -np.log(2))
"""

TASK = '''
import json
import random
from dataclasses import dataclass
from typing import ClassVar

from numtok.data.tasks.base import Made, TextTask, setting


@dataclass(frozen=True)
class Mine(TextTask):
    """
    >>> Mine().possible
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    unit_rows: ClassVar[int] = 500
    digest: ClassVar[str] = "61cefed314ceda78"
    most: int = setting(10**12, "The largest number.")

    @property
    def possible(self):
        return None

    def unit(self, seed, split, index):
        lines = []
        first = index * self.unit_rows
        for row in range(first, first + self.rows_of(split, index)):
            drawn = random.Random(f"{seed} {split.name} {row}").randrange(self.most)
            text = f"half of {2 * drawn} is {drawn}"
            span = [text.rindex(" ") + 1, len(text)]
            row = {"text": text, "id": f"{split.name}-{row}", "targets": {"half": [span]}}
            lines.append(json.dumps(row) + "\\n")
        return Made("".join(lines).encode(), {})
'''

TRUNK = """
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.trunks.base import TokenTrunk, TrunkModule, asked_states


class _Module(TrunkModule):
    def __init__(self, width):
        super().__init__()
        self.forth = nn.GRU(width, width, batch_first=True)

    def forward(self, x_BLD, real_BL, asked_BQ=None):
        x_BLD, _ = self.forth(x_BLD)
        return x_BLD if asked_BQ is None else asked_states(x_BLD, asked_BQ)


@dataclass(frozen=True)
class Mine(TokenTrunk):
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    sight: ClassVar[str] = "earlier"
    width: int = 16

    def build(self, causal):
        return _Module(self.width)
"""

SCHEME = (Path(__file__).parent / "plugins" / "schemes" / "decade.py").read_text("utf-8")
#: The other kinds are examples in docs/extend, which tests/test_extend.py checks.
SOURCES = {
    "embedder": EMBEDDER,
    "head": HEAD,
    "metric": METRIC,
    "normalizer": NORMALIZER,
    "objective": OBJECTIVE,
    "scheme": SCHEME,
    "task": TASK,
    "trunk": TRUNK,
}


@pytest.fixture
def folder(tmp_path: Path, plugins: Path) -> Path:
    """Provide the plugin folder that numtok.toml names."""
    (tmp_path / "numtok.toml").write_text('[plugins]\nfolders = ["plugins"]\n')
    return plugins


def drop(folder: Path, kind: str, source: str) -> Path:
    """Write one file to the folder of its kind."""
    [of] = [name for name, package in registries().items() if package == kinds()[kind]]
    file = folder.resolve() / of / "mine.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(source)
    return file


def broken(ran: Ran) -> dict[str, str]:
    """Return the messages of failed checks, by check."""
    rows = json.loads(ran.out)["rows"]
    return {row["check"]: row["message"] for row in rows if row["result"] != "ok"}


@pytest.mark.parametrize("kind", SOURCES)
def test_one_file_is_all_that_a_plugin_takes(folder: Path, numtok: Shell, kind: str) -> None:
    drop(folder, kind, SOURCES[kind])
    ran = numtok("check", kind, "mine", "--json")
    assert (broken(ran), ran.code, ran.err) == ({}, 0, "")


def test_a_plugin_needs_no_other_file(folder: Path, numtok: Shell) -> None:
    """numtok only needs to know the plugin folder."""
    file = drop(folder, "metric", METRIC)
    shutil.move(file, file.with_name("other_name.py"))
    assert numtok("check", "metric", "other-name").code == 0
