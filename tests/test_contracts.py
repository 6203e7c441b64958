"""Every part in every registry passes the contract suite of its registry."""

import json
from pathlib import Path

import pytest

from numtok.contracts import SUITE
from numtok.data.tasks.base import TASKS
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.plugin_checks import check_spec, kinds, registry_of
from numtok.plugins import registries
from numtok.registry import Registry, registry_in
from tests.fakemodels import one_thread
from tests.messages import Says
from tests.shell import Shell

__all__ = ["one_thread"]


#: Each of these takes more than a tenth of a second.
LONG = [
    *(("task", name) for name in TASKS),
    *(("scheme", name) for name in ("fp15", "bpe", "numerologic", "b1999")),
    *(("embedder", name) for name in EMBEDDERS),
    ("metric", "rounded-match"),
    ("trunk", "transformer"),
    ("trunk", "hf"),
]


EVERYTHING = [
    pytest.param(kind, name, marks=[pytest.mark.integration] if (kind, name) in LONG else [])
    for kind in kinds()
    for name in registry_of(kind)
]


@pytest.mark.parametrize(("kind", "name"), EVERYTHING)
def test_everything_keeps_its_contract(kind: str, name: str) -> None:
    if name == "hf":
        pytest.importorskip("transformers")
    results = check_spec(kind, name)
    assert [result.message for result in results if not result.passed] == []
    assert [result.name for result in results] == list(registry_of(kind).contract().CHECKS)


def test_every_registry_has_a_suite() -> None:
    """Registries are the folders whose ``base`` defines one."""
    found = set()
    for package in registries().values():
        try:
            found.add(registry_in(package).package)
        except StopIteration:
            continue
    assert found == set(kinds().values())


def test_a_suite_has_checks_that_say_what_they_are() -> None:
    for kind in kinds():
        suite = registry_of(kind).contract()
        assert Path(str(suite.__file__)).name == SUITE
        assert all(check.__doc__ for check in suite.CHECKS.values()), kind


def test_what_needs_a_setting_says_at_which_it_is_checked() -> None:
    for kind in kinds():
        registry: Registry[object] = registry_of(kind)
        for name in registry:
            assert registry.checked_at(name).startswith(name), kind
            assert not registry.required(name) or registry.checked_at(name) != name, (kind, name)


# --- the command -------------------------------------------------------------------------------


def test_the_command_tells_of_each_check(numtok: Shell) -> None:
    ran = numtok("check", "normalizer", "unit", "scale:5", "--json")
    rows = json.loads(ran.out)["rows"]
    assert (ran.code, ran.err) == (0, "")
    assert {(row["normalizer"], row["result"]) for row in rows} == {
        ("unit", "ok"),
        ("scale:5", "ok"),
    }
    assert rows[0] | {"check": ""} == {
        "normalizer": "unit", "check": "", "result": "ok", "message": "",
    }  # fmt: skip


def test_what_does_not_exist_is_an_error_of_one_line(numtok: Shell, says: Says) -> None:
    for command, parts in {
        ("haed", "mdn"): ["unknown kind 'haed'", "'head'?"],
        ("head", "mdm"): ["unknown head 'mdm'", "'mdn'?"],
        ("head", "riemann:1"): ["riemann: bins must be from 2 to 1,048,576 (got 1)"],
    }.items():
        ran = numtok("check", *command)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), command
        says(ran.err.replace(", ".join(HEADS), "every head"), "numtok: ", *parts)


def test_a_kind_is_the_singular_of_its_folder() -> None:
    assert kinds()["text-tokenizer"] == "numtok.encoding.text_tokenizers"
    with pytest.raises(UsageError, match=r"unknown kind 'heads'\. Did you mean 'head'"):
        registry_of("heads")
