"""Contract suites: what everything in a registry must do, as checks that run anywhere.

A registry's folder has its suite in ``_contract.py``: functions that take a thing and a seed and
raise :class:`ContractBreak`, one line that names the thing, the check, what was got and what was
expected; ``CHECKS``, these by name; and ``check``, which runs them all, where a thing must be made
ready for them. They hold for a thing that nobody here has seen: ``numtok check KIND NAME`` runs
them on plugins, and the tests on all of numtok's own. What a registry's ``base`` holds plugins to
whenever they are used is not said again: a suite drives the thing held (``Registry.held``), and its
answers are compared on the way.
"""

import doctest
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from numtok import plugins
from numtok.class_settings import settings_fields
from numtok.declaration import help_of
from numtok.errors import PluginError, unknown
from numtok.plugins import MemberCall
from numtok.registry import Registry, name_of, registry_in, settings_of, spec_of

T = TypeVar("T")
SUITE = "_contract.py"
_MADE: list[Any] = []  # the functions of once_a_run, which can forget


class ContractBreak(AssertionError):
    """A thing does not do what the contract of its registry promises."""


class CheckResult(NamedTuple):
    """What one check found; the message is empty where it passed."""

    name: str
    passed: bool
    message: str


def checks_of(suite: str) -> dict[str, Callable[[Any, int], None]]:
    """The checks of a suite, a module, by name, in the order in which they stand and are run:
    ``check_equal_truths`` is "equal truths"."""
    return {
        key.removeprefix("check_").replace("_", " "): value
        for key, value in vars(sys.modules[suite]).items()
        if key.startswith("check_") and value.__module__ == suite
    }


def once_a_run(make: Callable[..., T]) -> Callable[..., T]:
    """What several checks of a suite look at is made once, and anew when the suite runs again."""
    made = lru_cache(maxsize=1)(make)
    _MADE.append(made)
    return made


def results(
    checks: Mapping[str, Callable[[T, int], None]], thing: T, seed: int
) -> list[CheckResult]:
    """Run every check, each to its end or to its first break."""
    for made in _MADE:
        made.cache_clear()
    return [CheckResult(name, *_run(name, check, thing, seed)) for name, check in checks.items()]


def _run(name: str, check: Callable[[T, int], None], thing: T, seed: int) -> tuple[bool, str]:
    """Whether a check passes, and else what is wrong, with the line of the plugin that failed."""
    try:
        check(thing, seed)
    except ContractBreak as error:
        return False, str(error)
    except Exception as error:
        at_fault = error if isinstance(error, PluginError) else plugins.fault_of(error)
        what = str(at_fault or f"raised {type(error).__name__}: {error}")
        return False, f"{spec_of(thing)}: {name}: {what}"
    return True, ""


# --- what suites share -------------------------------------------------------------------------


def fail(thing: object, name: str, what: str) -> NoReturn:
    """Raise the break that a check has found."""
    raise ContractBreak(f"{spec_of(thing)}: {name}: {what}")


def expect(thing: object, name: str, what: str, got: object, expected: object) -> None:
    """Raise a break unless two things are equal."""
    if got != expected:
        fail(thing, name, f"{what}: got {got}, expected {expected}")


def require(thing: object, name: str, holds: object, what: str) -> None:
    """Raise a break unless something holds; ``what`` says what was got and what was expected."""
    if not holds:
        fail(thing, name, what)


def check_declared(thing: object, name: str, **wanted: type) -> None:
    """What a class declares is there, of its type and not empty; the class is frozen."""
    kind: Any = type(thing)
    for key, kind_of in wanted.items():
        value = getattr(kind, key, None)
        good = isinstance(value, kind_of) and bool(value)
        expected = f"expected a {kind_of.__name__} that is not empty"
        require(thing, name, good, f"{key}: got {value!r}, {expected}")
    frozen = is_dataclass(thing) and kind.__dataclass_params__.frozen
    require(thing, name, frozen, f"got {kind.__qualname__}, expected a frozen dataclass")


def check_settings(registry: Registry[Any], thing: object, name: str) -> None:
    """What is written of a thing makes an equal one: its spec, and its settings as JSON.

    A class of no file of the registry, as a test has them, cannot be built again.
    """
    stored = hasattr(type(thing), "revision")  # a figure is in no artifact
    settings = json.loads(json.dumps(settings_of(thing))) if stored else {}
    if name_of(thing) not in registry or registry[name_of(thing)] is not type(thing):
        return
    if stored:
        again = registry.from_settings(settings)
        expect(thing, name, "built again from its settings", again, thing)
    built = registry.build(spec_of(thing))
    if not getattr(built, "needs_sample", False) or built == thing:
        expect(thing, name, "built again from its spec", built, thing)


def check_described(thing: object, name: str) -> None:
    """A class says what it is, and of each of its settings what that is: the help of its option."""
    text = inspect.getdoc(type(thing)) or ""
    generated = text.startswith(f"{type(thing).__name__}(")  # by dataclass, where there is none
    require(thing, name, text and not generated, "got no docstring, expected one")
    helps = help_of(type(thing))
    for key in settings_fields(type(thing)):
        what = f"got no word on {key}, expected it in the docstring"
        require(thing, name, helps.get(key), what)


def check_examples(thing: object, name: str) -> None:
    """The examples in a thing's own file are there, and true."""
    module = sys.modules[type(thing).__module__]
    runner, found = doctest.DocTestRunner(verbose=False), [0, 0]
    for test in doctest.DocTestFinder().find(module):
        outcome = runner.run(test, out=lambda _: None)
        found = [found[0] + outcome.attempted, found[1] + outcome.failed]
    require(thing, name, found[0], "got no example in its file, expected one (>>>)")
    expect(thing, name, "examples in its file that are wrong", found[1], 0)


def member_call(thing: object, member: str, *given: Any, **sizes: int) -> MemberCall:
    """A member of a thing whose answer is to be compared with its contract in plain words."""
    base = next(
        (kind for kind in type(thing).__mro__ if kind.__module__.endswith(".base")), type(thing)
    )
    file = sys.modules[type(thing).__module__].__file__ or ""
    return MemberCall(
        thing=thing,
        member=member,
        given=given,
        file=Path(file),
        contract=base.__module__,
        sizes=sizes,
    )


# --- kinds -------------------------------------------------------------------------------------


@cache
def kinds() -> Mapping[str, str]:
    """The packages that have a suite, by what a thing of theirs is called on the command line:
    ``text-tokenizer`` is ``numtok.encoding.text_tokenizers``."""
    root = Path(__file__).parents[1]
    return {
        folder.removesuffix("s").replace("_", "-"): package
        for folder, package in sorted(plugins.registries().items())
        if (root / Path(*package.split(".")) / SUITE).is_file()
    }


def registry_of(kind: str) -> Registry[Any]:
    """The registry of a kind; UsageError for one that does not exist."""
    if kind not in kinds():
        raise unknown("kind", kind, kinds())
    return registry_in(kinds()[kind])


def check_spec(kind: str, spec: str, seed: int = 0) -> list[CheckResult]:
    """Run the suite of a kind on what a spec stands for.

    A bare name stands for the class at its defaults, or ``checked_at`` a spec that the class says
    where a setting has no default. Raises UsageError for a spec that cannot be built.
    """
    registry = registry_of(kind)
    suite = registry.contract()
    build: Callable[[str], Any] = getattr(suite, "build", registry.build)
    thing = build(registry.checked_at(spec) if spec in registry else spec)
    check: Any = getattr(suite, "check", partial(results, suite.CHECKS))
    found: list[CheckResult] = check(thing, seed=seed)
    return found
