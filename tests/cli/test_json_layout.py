"""docs/reference/json.md lists the keys that each command prints with ``--json``."""

import inspect
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numtok import cli
from tests.cli.test_store_commands import ROOT
from tests.fakepretrained import pretrained
from tests.shell import Shell
from tests.stages.test_fetch import folder_of_yacht

PAGE = (ROOT / "docs/reference/json.md").read_text("utf-8")
_ROW = re.compile(r"^\| `(\w+)` \| (\d) \| `(.+)` \|$", re.M)
_KEY = re.compile(r"(\w[\w ]*)(\??)(?:\(([^)]*)\))?(?:, |$)")

#: In order: each command makes what later ones read.
COMMANDS = (
    "gen arithmetic --rows 300 --split train=0.6,validation=0.2,test=0.2 --name ex",
    "encode ex --scheme p10 --name e",
    "train e --preset nano,layers=1,width=16,heads=2 --steps 2 --name m",
    "eval m --name r",
    "report r",
    "compare r",
    "diagnose r",
    "probe pca m",
    "profile ex",
    "race ex --dry-run",
    "sweep sweep.toml --jobs 1",
    "table t.csv --target y --name t",
    "train t --epochs 1",
    "gen nupa --tasks add_Integer --digits 1 --name small",
    "score answers.jsonl --truth small --benchmark nupa",
    "score said.jsonl other.jsonl --require exact-match>=0 --rule strict",
    "fetch uci --set yacht --from copy",
    "features t.csv --target y --model gpt2 --split validation=0.2,test=0.2 --name h",
    "ls",
    "show m",
    "lineage m",
    "verify m",
    "doctor",
    "gc --dry-run",
    "schemes",
    "explain 1.5",
    "explain --text 2x1",
    "check metric mae",
    f"fidelity {ROOT / 'docs/results'}",
)


def documented() -> dict[str, tuple[int, str]]:
    """Return the schema number of each command, and its keys as the page lists them."""
    return {name: (int(schema), keys) for name, schema, keys in _ROW.findall(PAGE)}


def differences(keys: str, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys that are only on the page or only in the output.

    ``key?`` is optional. The keys in ``key(a, b)`` are those of the object, or of each object of
    the list.
    """
    assert _KEY.sub("", keys) == "", keys
    listed = {name: (optional, inside) for name, optional, inside in _KEY.findall(keys)}
    yield from (f"not on the page: {key}" for key in found if key not in listed)
    for key, (optional, inside) in listed.items():
        if key not in found:
            if not optional:
                yield f"not printed: {key}"
        elif inside:
            value = found[key]
            for one in value if isinstance(value, list) else [value]:
                yield from (f"{key}: {line}" for line in differences(inside, one))


def test_the_page_lists_the_commands_that_print_json() -> None:
    commands = {
        info.name
        for info in pkgutil.iter_modules(cli.__path__)
        if not info.name.startswith("_") and info.name not in ("main", "output")
    }
    printing = {
        name
        for name in commands
        if {"format", "json"}
        & set(inspect.signature(pkgutil.resolve_name(f"numtok.cli.{name}").command).parameters)
    }
    assert documented().keys() == printing
    assert {command.split()[0] for command in COMMANDS} == printing


def test_each_command_prints_the_keys_of_the_page(numtok: Shell, tmp_path: Path) -> None:
    folder_of_yacht(tmp_path / "copy")
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k},{k % 7}\n" for k in range(60)))
    pretrained("gpt2", tmp_path / "gpt2")
    (tmp_path / "sweep.toml").write_text(
        '[gen]\ntask = "arithmetic"\nsamples = 60\nsplit = "test=0.2,validation=0.2"\n'
        '[encode]\nscheme = "p10"\n[train]\npreset = "nano,layers=1,width=16"\nsteps = 1\n'
    )
    for file in ("said.jsonl", "other.jsonl"):
        (tmp_path / file).write_text('{"id": 1, "answer": "4", "truth": 4}\n')
    wrong = []
    for command in COMMANDS:
        if command.endswith("--benchmark nupa"):
            [rows] = tmp_path.glob("artifacts/data/small/*/test-00000.jsonl")
            first = json.loads(rows.read_text().splitlines()[0])
            answer = json.dumps({"id": first["id"], "answer": "1"})
            (tmp_path / "answers.jsonl").write_text(answer)
        ran = numtok("-q", *command.split(), "--json")
        assert ran.code == 0, (command, ran.err)
        found = json.loads(ran.out)
        schema, keys = documented()[command.split()[0]]
        assert found.pop("schema") == schema, command
        wrong += [f"{command}: {line}" for line in differences(keys, found)]
    assert not wrong, "correct docs/reference/json.md"
