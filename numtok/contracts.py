"""Contract suites: checks that hold for everything in a registry.

The suite of a registry is ``_contract.py`` in its folder. Each ``check_*`` function takes an object
and a seed and raises :class:`ContractBreak` with one line: the member, what it gave and what was
expected. ``CHECKS`` lists these functions by name. A suite that must prepare the object first
defines ``check``, which runs them all. ``numtok check KIND NAME`` runs a suite on plugins; the
tests run it on everything in numtok.
"""

import doctest
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from numtok import plugins
from numtok.class_settings import settings_fields
from numtok.declaration import help_of
from numtok.errors import PluginError, unknown
from numtok.registry import Registry, name_of, registry_in, settings_of, spec_of

T = TypeVar("T")
Shape = tuple[int | None, ...]
SUITE = "_contract.py"
FLOATING = "float16|bfloat16|float32|float64"
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


# --- what a member gives -----------------------------------------------------------------------


def wrong(thing: object, member: str, got: str, expected: str) -> NoReturn:
    """Raise the break of a member that gives something else than its contract says."""
    file = Path(sys.modules[type(thing).__module__].__file__ or "")
    what = f"{type(thing).__name__}.{member} gives {got}, expected {expected}"
    raise ContractBreak(f"{file.parent.name}/{file.name}: {what}")


def expect_kind(thing: object, member: str, got: Any, *kinds: type) -> Any:
    """Return what a member gave; raise a break unless it has one of these types (a bool is not an
    int)."""
    if not isinstance(got, kinds) or (isinstance(got, bool) and bool not in kinds):
        names = ["None" if kind is type(None) else kind.__name__ for kind in kinds]
        wrong(thing, member, described(got), " or ".join(names))
    return got


def expect_kinds(thing: object, *kinds: type, members: Iterable[str]) -> None:
    """Raise a break unless each of some attributes has one of these types."""
    for member in members:
        expect_kind(thing, member, getattr(thing, member), *kinds)


def expect_array(
    thing: object, member: str, got: Any, shape: Shape, *, dtype: str, finite: bool = False
) -> Any:
    """Return what a member gave; raise a break unless it is such a NumPy array.

    shape
        A size per axis; None allows any size.
    dtype
        A name, or several with ``|`` between: ``float32|int64``.
    """
    return _expect(thing, member, got, ("ndarray", dtype, shape), finite)


def expect_tensor(
    thing: object,
    member: str,
    got: Any,
    shape: Shape,
    *,
    dtype: str = FLOATING,
    finite: bool = False,
) -> Any:
    """As :func:`expect_array`, for a PyTorch tensor; by default of any floating-point type."""
    return _expect(thing, member, got, ("Tensor", dtype, shape), finite)


def _expect(
    thing: object, member: str, got: Any, form: tuple[str, str, Shape], finite: bool
) -> Any:
    kind, dtype, shape = form
    fits = (
        any(one.__name__ == kind for one in type(got).__mro__)
        and _dtype(got) in dtype.split("|")
        and len(got.shape) == len(shape)
        and all(size in (None, given) for size, given in zip(shape, got.shape, strict=True))
    )
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    expected = f"{kind} {'float' if dtype == FLOATING else dtype}[{sizes}]"
    if not fits:
        wrong(thing, member, described(got), expected)
    if finite and not bool((abs(got) < float("inf")).all()):
        wrong(
            thing, member, f"{described(got)} with values that are not finite", f"finite {expected}"
        )
    return got


def described(got: Any) -> str:
    """Describe a value in a few words.

    >>> described([1.5]), described(None)
    ('a list', 'None')
    """
    if (dtype := _dtype(got)) is not None:
        return f"{type(got).__name__} {dtype}[{', '.join(map(str, got.shape))}]"
    if got is None or isinstance(got, bool | int | float | str):
        return repr(got)
    return f"a {type(got).__name__}"


def _dtype(got: Any) -> str | None:
    """The data type of an array of NumPy or PyTorch; neither library is imported here."""
    if not (hasattr(got, "dtype") and hasattr(got, "shape")):
        return None
    return str(got.dtype).removeprefix("torch.")


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
