"""Readers under coverage-guided fuzzing: ``python -m tests.trust.fuzz_targets FOLDER SEED``.

Inputs that fail are written to ``FOLDER/TARGET``. Compiled kernels report no coverage, so the
coverage of their slow reference implementations guides the fuzzer.
"""

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import atheris

from numtok import documents
from numtok.data.reading.json_lines import BadLine, read_line, row_decoder
from numtok.data.reading.lines import find_lines
from numtok.data.reading.rows import problem_in
from numtok.data.reading.split_rule import SplitRule
from numtok.errors import StoreError, UsageError
from numtok.models.pretrained.folder import PretrainedFolder
from numtok.numerals.literals import round_literal, value_of
from numtok.numerals.policy import NumeralPolicy
from numtok.plugins import registries
from numtok.registry import registry_in
from numtok.row import Row
from numtok.sweeps.file import read_sweep
from numtok.training.curriculum import Curriculum
from tests.data.reading import test_rows as rows
from tests.fakepretrained import KINDS as MODELS
from tests.numerals import test_numerals as numerals
from tests.numerals.test_golden import scanned
from tests.test_stored_json import KINDS
from tests.trust.fuzzing import INPUTS

#: Modules that report coverage. None of them has compiled kernels.
_GUIDES = (
    *("tests.numerals.reading", "numtok.declaration", "numtok.documents", "numtok.registry"),
    *("numtok.setting_names", "numtok.setting_values", "numtok.stored_json"),
    *("numtok.data.reading.json_lines", "numtok.data.reading.rows"),
    *("numtok.data.reading.split_rule", "numtok.numerals.policy"),
    *("numtok.models.pretrained.architecture", "numtok.models.pretrained.folder"),
    *("numtok.numerals.literals", "numtok.sweeps.file", "numtok.training.curriculum"),
)
_FLAGS = [
    "-print_final_stats=1",
    "-verbosity=0",
    "-timeout=120",
    "-rss_limit_mb=4096",
    "-max_len=2000",
]
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))


def scanner(data: bytes) -> None:
    """Compare the numbers found in a text with those of the slow reference scanner."""
    policy = numerals.ALL_POLICIES[(data or b"\0")[0] % len(numerals.ALL_POLICIES)]
    text = data[1:].decode("utf-8", "replace")
    found, expected = scanned([text], policy), numerals.expected([text], policy)
    assert found == expected, f"{policy.spec()}: {text!r}: {found}, expected {expected}"


def literals(data: bytes) -> None:
    """Compare the value of a literal with ``float()``."""
    written = "".join("0123456789.eE+-"[byte % 15] for byte in data)
    if numerals.LITERAL.fullmatch(written):
        numerals.assert_same_bits([written])
        assert value_of(written) == float(written)
        for digits in (1, 5, 18):
            expected = numerals.rounded_by_decimal(written, digits)
            assert round_literal(written, digits) == expected, written


def json_rows(data: bytes) -> None:
    """Compare the rows that the compiled reader and msgspec read from a JSON line."""
    line = data.replace(b"\n", b" ")
    block = line + b"\n"
    suspicious = find_lines(block).suspicious.any()
    try:
        row = read_line(line, row_decoder(Row, "text"))
    except BadLine:
        return
    if problem_in(row) or suspicious:
        return
    quickly = rows.quickly(block)
    if quickly is not None:
        assert rows.plain(quickly) == rows.plain(rows.by_records(block)), block


def specs(data: bytes) -> None:
    """Parse a spec of a registry, a ``--numbers`` policy or a split rule."""
    text = data[1:].decode("utf-8", "replace")
    parts = [*_BUILDERS.values()]
    with suppress(UsageError):
        parts[(data or b"\0")[0] % len(parts)](text)


def stored(data: bytes) -> None:
    """Parse a manifest or another JSON file of the store."""
    kinds = [*KINDS.values()]
    kind = kinds[(data or b"\0")[0] % len(kinds)]
    with suppress(StoreError):
        kind.of(data[1:], Path(kind.name))


def toml(data: bytes) -> None:
    """Parse a sweep, a curriculum or another TOML file that users write."""
    path = _FOLDER / "x.toml"
    path.write_bytes(data[1:])
    read: list[Callable[[Path], Any]] = [
        read_sweep,
        Curriculum.read,
        lambda path: documents.toml(data[1:], "x.toml"),
    ]
    with suppress(UsageError):
        read[(data or b"\0")[0] % len(read)](path)


def pretrained(data: bytes) -> None:
    """Parse ``config.json`` of a pretrained model's folder."""
    (_FOLDER / "config.json").write_bytes(data)
    with suppress(UsageError):
        PretrainedFolder(_FOLDER, "--preset hf:folder").architecture()


_BUILDERS: dict[str, Callable[[str], Any]] = {
    **{folder: registry_in(package).build for folder, package in registries().items()},
    "numbers": NumeralPolicy.parse,
    "split": SplitRule.parse,
}
TARGETS = {
    target.__name__: target
    for target in (scanner, literals, json_rows, specs, stored, toml, pretrained)
}
#: Seed inputs per target.
SEEDS: dict[str, list[bytes]] = {
    "scanner": [b"\0-1.5e3, .25 and 1,234", "\x20½ 1.234,5 (7) 3k 10⁵".encode()],
    "literals": [b"123456789", bytes(range(15))],
    "json_rows": [
        b'{"id": 1, "text": "a 1.5", "targets": {"y": [[2, 5]]}, "label": "x", "group": {"a": 1}}',
        b'{"text": "\\u00e9", "split": "test", "answer_start": 0, "cluster": null}',
    ],
    "specs": [bytes([n]) + spec for n in range(40) for spec in (b"mdn:5", b"x,rate=0.5,no-y")],
    "stored": [bytes([n]) + b'{"format": 1, "schema": 1, "kind": "data"}' for n in range(14)],
    "toml": [
        b'\0data = "a"\n[encode]\nscheme = ["p10"]\n[train]\nsteps = 1\n',
        b"\1restart = true\n[[phase]]\nlength = 2\nrows = [{ weight = 0.5 }]\n",
    ],
    "pretrained": [
        json.dumps({"model_type": kind, "vocab_size": 300, **settings}).encode()
        for kind, (_, _, settings) in MODELS.items()
    ],
}


def _instrument(module: Any) -> None:
    """Make the functions and methods that a module defines report coverage."""
    kinds = [one for one in vars(module).values() if inspect.isclass(one)]
    for members in (vars(module), *map(vars, kinds)):
        for member in list(members.values()):
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                atheris.instrument_func(function)


def _fuzz(target: str, folder: Path, seed: str) -> None:
    """Fuzz a target; libFuzzer ends the process."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for index, content in enumerate(SEEDS[target]):
        (corpus / f"seed-{index}").write_bytes(content)
    flags = [f"-runs={INPUTS[target]}", f"-seed={seed}", f"-artifact_prefix={folder}/", str(corpus)]
    atheris.Setup([target, *_FLAGS, *flags], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    for name in _GUIDES:
        _instrument(import_module(name))
    for name in TARGETS:
        child = os.fork()
        if not child:
            _fuzz(name, Path(sys.argv[1], name), sys.argv[2])
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{name} failed")
