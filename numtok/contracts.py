"""Contract suites: what everything in a registry must do, as checks that run anywhere.

A registry's folder has its suite in ``_contract.py``: functions that take a thing and a seed and
raise :class:`ContractBreak`, one line that names the thing, the check, what was got and what was
expected. They hold for a thing that nobody here has seen: ``numtok check KIND NAME`` runs them on
plugins, and the tests on all of numtok's own.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from numtok.registry import spec_of

T = TypeVar("T")


class ContractBreak(AssertionError):
    """A thing does not do what the contract of its registry promises."""


class CheckResult(NamedTuple):
    """What one check found; the message is empty where it passed."""

    name: str
    passed: bool
    message: str


def results(
    checks: Mapping[str, Callable[[T, int], None]], thing: T, seed: int
) -> list[CheckResult]:
    """Run every check, each to its end or to its first break."""
    found = []
    for name, run in checks.items():
        try:
            run(thing, seed)
        except ContractBreak as broken:
            found.append(CheckResult(name, False, str(broken)))
        except Exception as error:
            told = f"{spec_of(thing)}: {name}: raised {type(error).__name__}: {error}"
            found.append(CheckResult(name, False, told))
        else:
            found.append(CheckResult(name, True, ""))
    return found
