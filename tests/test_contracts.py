"""Everything in every registry does what the contract suite of its registry says."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from numtok.contracts import SUITE, check_spec, kinds, registry_of
from numtok.errors import UsageError
from numtok.plugins import registries
from numtok.registry import Registry, registry_in
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Shell
from tests.fakemodels import one_thread

__all__ = ["one_thread"]
numtok = test_cli_store.numtok


def everything() -> Iterator[tuple[str, str]]:
    """Each kind with each of its names."""
    for kind in kinds():
        for name in registry_of(kind):
            yield kind, name


@pytest.mark.integration
@pytest.mark.parametrize(("kind", "name"), [*everything()])
def test_everything_keeps_its_contract(kind: str, name: str) -> None:
    assert [result.message for result in check_spec(kind, name) if not result.passed] == []


def test_every_registry_has_a_suite() -> None:
    """A folder whose base defines a registry; that of distributions is of classes by heads."""
    found = set()
    for package in registries().values():
        try:
            found.add(registry_in(package).package)
        except StopIteration:
            continue
    assert found == set(kinds().values())


@pytest.mark.parametrize("kind", kinds())
def test_a_suite_has_checks_that_say_what_they_are(kind: str) -> None:
    suite = registry_of(kind).contract()
    assert Path(str(suite.__file__)).name == SUITE
    assert all(check.__doc__ for check in suite.CHECKS.values())
    results = check_spec(kind, registry_of(kind).names()[0])
    assert [result.name for result in results] == list(suite.CHECKS)


@pytest.mark.parametrize("kind", kinds())
def test_what_needs_a_setting_says_at_which_it_is_checked(kind: str) -> None:
    registry: Registry[object] = registry_of(kind)
    for name in registry:
        assert registry.checked_at(name).startswith(name)
        assert not registry.required(name) or registry.checked_at(name) != name


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
        "normalizer": "unit", "check": "", "result": "ok", "what broke": "",
    }  # fmt: skip


def test_the_check_of_schemes_is_the_same(numtok: Shell) -> None:
    assert numtok("check", "scheme", "xval").out == numtok("schemes", "--check", "xval").out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("haed", "mdn"), "unknown kind 'haed'; did you mean 'head'? known: embedder, figure, "),
        (("head", "mdm"), "unknown head 'mdm'; did you mean 'mdn'? known: decoder, mdn, "),
        (("head", "riemann:1"), "riemann: bins=1 is not possible; it is from 2 to 1,048,576"),
    ],
)
def test_what_does_not_exist_is_an_error_of_one_line(
    numtok: Shell, command: tuple[str, str], message: str
) -> None:
    ran = numtok("check", *command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"numtok: {message}") and ran.err.count("\n") == 1


def test_a_kind_is_the_singular_of_its_folder() -> None:
    assert kinds()["text-tokenizer"] == "numtok.encoding.text_tokenizers"
    with pytest.raises(UsageError, match="unknown kind 'heads'; did you mean 'head'"):
        registry_of("heads")
