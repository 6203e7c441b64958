"""Schemes from outside the package: as in docs/extend, in workers, and with mistakes."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.site.console import blocks
from numtok.encoding.codec import Codec
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.schemes.base import SCHEMES, Failure
from numtok.numerals.column import Numerals
from numtok.store.artifact import FILES, TIMING
from tests.messages import Says
from tests.shell import Shell

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = Path(__file__).parent / "plugins"
TOML = '[plugins]\nfolders = ["{}"]\n'


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str
    workers: int = 0  # spawned processes seen at once


def environment() -> dict[str, str]:
    """Return a user's environment in which the ``numtok`` of this checkout comes first."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMTOK_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return kept | {"PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


def run(folder: Path, *command: str) -> Ran:
    """Run one command line in its own process, and count its workers while it runs."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        most = 0
        while running.poll() is None:  # each count lists all processes of the computer
            most = max(most, spawned_by(running.pid))
            time.sleep(0.1)
        out, err = running.communicate()
    return Ran(running.returncode, out, err, most)


def spawned_by(pid: int) -> int:
    """Return how many workers a process has, without multiprocessing's resource tracker."""
    try:
        commands = [" ".join(child.cmdline()) for child in psutil.Process(pid).children()]
    except psutil.Error:
        return 0
    return sum("multiprocessing.spawn" in command for command in commands)


def folder_with(tmp_path: Path, **schemes: str) -> Path:
    """Create a working folder with a plugin folder."""
    (tmp_path / "numtok.toml").write_text(TOML.format("plugins"))
    (tmp_path / "plugins" / "schemes").mkdir(parents=True, exist_ok=True)
    for name, source in schemes.items():
        (tmp_path / "plugins" / "schemes" / f"{name}.py").write_text(source)
    return tmp_path


def results_of(checks: str) -> list[str]:
    """Return the result of each check in the output of ``check scheme --json``."""
    return [row["result"] for row in json.loads(checks)["rows"]]


# --- docs/extend/scheme.md ---------------------------------------------------------------------


def test_the_page_on_schemes_shows_the_plugin_of_these_tests() -> None:
    """tests/docs/test_console.py follows the steps of the page."""
    page = (ROOT / "docs/extend/scheme.md").read_text("utf-8")
    [scheme] = [one.text for one in blocks(page) if one.value == "plugins/schemes/rns.py"]
    assert scheme == (PLUGINS / "schemes" / "rns.py").read_text("utf-8")


# --- new schemes -------------------------------------------------------------------------------

TEXTS = (
    ["", "none", "-60.2", "[NUM] is not 7", "x = [1.5, -2, 0, 1e400, 5e-324, 007]; é 3.25%"],
    ["0.1 + 0.2 = 0.30000000000000004", "\u22121.25e-7 and 1e999", "1e-400", "[\\NUM] 1", "1 2 3"],
)


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of the package."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def texts_of(folder: Path) -> list[str]:
    """Return every text of an artifact, decoded from its tokens."""
    codec = Codec.from_json((folder / SCHEME_FILE).read_bytes())
    rows = pa.concat_tables(
        pq.read_table(shard, page_checksum_verification=True)
        for shard in sorted(folder.glob("train-*.parquet"))
    )
    return [
        codec.decode(
            np.array(row["tokens"], np.uint32),
            np.array(row["number_start"], np.int32),
            np.array(row["number_length"], np.int32),
            np.array(row["channel"], np.float32) if "channel" in row else None,
        )
        for row in rows.to_pylist()
    ]


def expected_texts(spec: str) -> list[str]:
    """Return the texts, with each number as the scheme encodes and decodes it."""
    scheme = SCHEMES.build(spec)

    def again(match: re.Match[str]) -> str:
        encoded = scheme.encode(Numerals.of_literals([match[0]]))
        decoded = scheme.decode(*encoded[:2], encoded.channel)
        names = "".join(f"[NUM:{scheme.vocabulary()[token]}]" for token in encoded.tokens)
        return names if decoded.failures[0] != Failure.NONE else decoded.literal(0)

    literal = re.compile("(?:(?<= )|(?<=\\[)|^)[-\u2212]?[0-9]+(?:\\.[0-9]+)?(?:e-?[0-9]+)?")
    return [literal.sub(again, text) for texts in TEXTS for text in texts]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("scheme", "processes"),
    [
        ("shortest", (1,)),
        ("decade", (1, 2)),
        pytest.param("shortest", (1, 2), marks=pytest.mark.slow),
    ],
)
def test_a_scheme_that_nobody_has_seen_is_encoded_by_workers(
    tmp_path: Path, plugins: Path, numtok: Shell, scheme: str, processes: tuple[int, ...]
) -> None:
    before = digests(ROOT / "numtok")
    (tmp_path / "numtok.toml").write_text(TOML.format(PLUGINS))
    for name, texts in zip("ab", TEXTS, strict=True):
        lines = [json.dumps({"text": text}) + "\n" for text in texts]
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))

    checked = numtok("check", "scheme", scheme, "--json")
    assert (checked.code, set(results_of(checked.out))) == (0, {"ok"}), checked.out
    made = {}
    for workers in processes:
        arguments = ["--store", f"by-{workers}", "encode", "--scheme", scheme]
        arguments += ["a.jsonl.gz", "b.jsonl.gz", "--workers", str(workers)]
        if workers == 1:
            alone = numtok(*arguments)
            code, out, err = alone.code, alone.out, alone.err
        else:
            ran = run(tmp_path, "numtok", *arguments)
            assert ran.workers == workers
            code, out, err = ran.code, ran.out, ran.err
        assert code == 0, err
        name, _, version = out.strip().partition("@")
        made[workers] = tmp_path / f"by-{workers}" / "encoded" / name / version
        assert json.loads((made[workers] / TIMING).read_text())["workers"] == workers
        assert len(list(made[workers].glob("train-*.parquet"))) == 2
    assert len({(one.name, (one / FILES).read_bytes()) for one in made.values()}) == 1
    assert digests(ROOT / "numtok") == before
    assert texts_of(made[max(processes)]) == expected_texts(scheme)


# --- mistakes ----------------------------------------------------------------------------------

WHOLE = (PLUGINS / "schemes" / "rns.py").read_text("utf-8")


def test_a_plugin_that_breaks_the_contract_is_a_negative_verdict(
    tmp_path: Path, plugins: Path, numtok: Shell, says: Says
) -> None:
    folder_with(tmp_path, mine=WHOLE.replace("0%7 8%11", "1%7 8%11"))
    ran = numtok("check", "scheme", "mine", "--json")
    assert ran.code == 1
    says(ran.err, "numtok: scheme contract not met: mine (1 check)")
    rows = {row["check"]: row for row in json.loads(ran.out)["rows"]}
    golden = rows.pop("golden")
    assert {row["result"] for row in rows.values()} == {"ok"}
    assert golden["result"] == "BROKEN"
    assert "-60.2: got - 0%7 8%11 4%13, expected - 1%7 8%11 4%13" in golden["message"]


def test_a_plugin_with_a_mistake_does_not_keep_other_schemes_from_working(
    tmp_path: Path, plugins: Path, numtok: Shell
) -> None:
    folder_with(tmp_path, mine="def (")
    (tmp_path / "data.jsonl").write_text('{"text": "1 2"}\n')
    ran = numtok("encode", "--scheme", "p10", "data.jsonl")
    assert ran.code == 0, ran.err


# --- the help ------------------------------------------------------------------------------------

HELP_PROGRAM = """
import sys
from numtok.cli.main import main

for command in sys.argv[1:]:
    sys.argv = ["numtok", command, "--help"]
    try:
        main()
    except SystemExit as stopped:
        assert stopped.code == 0
    print("===")
heavy = {"numba", "numpy", "polars", "pyarrow", "tokenizers", "torch"}
print("loaded", sorted(heavy & set(sys.modules)))
"""


@pytest.mark.integration
def test_the_help_of_a_command_names_plugins_without_importing_them(tmp_path: Path) -> None:
    (tmp_path / "numtok.toml").write_text(TOML.format("plugins"))
    folders = {
        "train": ("embedders", "heads", "objectives", "normalizers"),
        "encode": ("schemes", "text_tokenizers", "normalizers"),
        "eval": ("metrics",),
        "compare": ("metrics",),
        "explain": ("schemes",),
        "fetch": ("sources",),
        "figure": ("figures",),
    }
    for folder in chain.from_iterable(folders.values()):
        file = tmp_path / "plugins" / folder / f"my_{folder}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("raise RuntimeError('imported')\n")
    words = [sys.executable, "-c", HELP_PROGRAM, *folders]
    ran = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    *pages, last = ran.stdout.split("===\n")
    assert last == "loaded []\n"
    for (command, those), page in zip(folders.items(), pages, strict=True):
        shown = re.sub(r"[\s│]+", "", page)
        for folder in those:
            assert f"Plugins:my-{folder.replace('_', '-')}" in shown, command
