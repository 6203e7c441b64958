"""One new file of each kind is all that it takes: ``numtok check`` finds it and it keeps its
contract. (``tests/plugins/test_mistakes.py`` has those that do not.)"""

import json
import shutil
from pathlib import Path

import pytest

from numtok.contracts import kinds
from numtok.plugins import registries
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Ran, Shell
from tests.fakemodels import one_thread
from tests.test_plugin_contracts import EMBEDDER, HEAD, METRIC, OBJECTIVE

__all__ = ["one_thread"]
numtok = test_cli_store.numtok

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

TEXT_TOKENIZER = """
from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.text_tokenizers._words import WordTable
from numtok.encoding.text_tokenizers.base import TextTokenizer


@dataclass(frozen=True)
class Mine(TextTokenizer):
    revision: ClassVar[int] = 1
    word: str = " the"

    @property
    def needs_sample(self):
        return False

    def fit(self, sample):
        return WordTable((self.word,))

    def load(self, state):
        return WordTable((self.word,))
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

SOURCE = """
from dataclasses import dataclass
from typing import ClassVar

from numtok.data.sources.base import Origin, TableSource


@dataclass(frozen=True)
class Mine(TableSource):
    revision: ClassVar[int] = 1
    set: str = "small"

    def origins(self):
        yield Origin("mine", {"set": self.set}, {"set": self.set}, {"data": "https://example.org"})

    def read(self, origin, files):
        raise NotImplementedError
"""

FIGURE = '''
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Picture


@dataclass(frozen=True)
class Mine(FigureKind):
    """Nothing at all."""

    source: ClassVar[str] = "a test"

    def picture(self, artifacts, resolve):
        return Picture([])
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

PROBE = '''
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.probing.probes.base import ProbeKind


@dataclass(frozen=True)
class Mine(ProbeKind):
    """Nothing at all."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"

    def check(self, model, data):
        pass

    def run(self, inputs):
        raise NotImplementedError
'''

SCHEME = (Path(__file__).parent / "plugins" / "schemes" / "decade.py").read_text("utf-8")
PLACES = """
from dataclasses import dataclass
from typing import ClassVar

from numtok.models.places.base import DigitPlaces


@dataclass(frozen=True)
class Mine(DigitPlaces):
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "here"
    offsets: ClassVar[int] = 1
    offset_per_row: ClassVar[bool] = False
    most: ClassVar[int] = 1

    def numbered(self, tokens, digits):
        return digits.astype("int64")
"""

NUMBER_TERM = """
from dataclasses import dataclass
from typing import ClassVar

from numtok.models.number_terms.base import NumberTerm


@dataclass(frozen=True)
class Mine(NumberTerm):
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "here"
    weight: float = 1.0

    def losses(self, said):
        return (said.log_p_NT.exp() * said.apart_NT.abs()).sum(dim=1)
"""

SOURCES = {
    "embedder": EMBEDDER, "figure": FIGURE, "head": HEAD, "metric": METRIC,
    "normalizer": NORMALIZER, "number-term": NUMBER_TERM, "objective": OBJECTIVE,
    "place": PLACES, "probe": PROBE, "scheme": SCHEME,
    "source": SOURCE, "task": TASK, "text-tokenizer": TEXT_TOKENIZER, "trunk": TRUNK,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, plugins: Path) -> Path:
    """The folder of plugins that numtok.toml names."""
    (tmp_path / "numtok.toml").write_text('[plugins]\nfolders = ["plugins"]\n')
    return plugins


def drop(folder: Path, kind: str, source: str) -> Path:
    """One file, in the folder of its kind."""
    [of] = [name for name, package in registries().items() if package == kinds()[kind]]
    file = folder.resolve() / of / "mine.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(source)
    return file


def broken(ran: Ran) -> dict[str, str]:
    """What broke, by check."""
    rows = json.loads(ran.out)["rows"]
    return {row["check"]: row["what broke"] for row in rows if row["result"] != "ok"}


def test_there_is_a_plugin_of_every_kind_here() -> None:
    assert set(SOURCES) == set(kinds())


@pytest.mark.parametrize("kind", kinds())
def test_one_file_is_all_that_a_plugin_takes(folder: Path, numtok: Shell, kind: str) -> None:
    drop(folder, kind, SOURCES[kind])
    ran = numtok("check", kind, "mine", "--json")
    assert (broken(ran), ran.code, ran.err) == ({}, 0, "")


def test_a_plugin_needs_no_other_file(folder: Path, numtok: Shell) -> None:
    """Its folder is the only thing that numtok is told of."""
    file = drop(folder, "metric", METRIC)
    shutil.move(file, file.with_name("other_name.py"))
    assert numtok("check", "metric", "other-name").code == 0
