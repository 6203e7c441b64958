"""Contract suites: checks that every class in a registry must pass.

The suite of a registry is ``_contract.py`` in its folder. Each ``check_*`` function takes an object
and a seed. If the check fails, it raises :class:`ContractBreak` with a one-line message that names
the method or property, its result and the expected result. ``CHECKS`` maps names to these
functions. If the object must be prepared first, the suite defines a function ``check`` that runs
all checks. :mod:`numtok.plugin_checks` runs a suite on plugins; the tests run every suite on
numtok's own classes.
"""

import doctest
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from numtok import plugins
from numtok.declaration import settings_in
from numtok.errors import PluginError
from numtok.names import counted
from numtok.registry import Registry, name_of, settings_of, spec_of

T = TypeVar("T")
Shape = tuple[int | None, ...]
SUITE = "_contract.py"
FLOATING = "float16|bfloat16|float32|float64"
_MADE: list[Any] = []  # the functions of once_a_run, whose caches can be cleared


class ContractBreak(AssertionError):
    """Raised by a check if an object violates the contract of its registry."""


class CheckResult(NamedTuple):
    """Result of one check of a contract suite.

    ``message`` is empty if the check passed. If several checks fail for the same reason, the first
    result contains the message and the others refer to it.
    """

    name: str
    passed: bool
    message: str


def checks_of(suite: str) -> dict[str, Callable[[Any, int], None]]:
    """Return the checks in a suite, keyed by name, in order of definition.

    ``suite`` is the name of the suite's module. For example, its function ``check_equal_truths``
    becomes the check "equal truths".
    """
    return {
        key.removeprefix("check_").replace("_", " "): value
        for key, value in vars(sys.modules[suite]).items()
        if key.startswith("check_") and value.__module__ == suite
    }


def once_a_run(make: Callable[..., T]) -> Callable[..., T]:
    """Decorator for a function that several checks call. The last result of the function is cached
    until the next run of a suite."""
    cached = lru_cache(maxsize=1)(make)
    _MADE.append(cached)
    return cached


def only(kind: type) -> Callable[[Callable[[Any, int], None]], Callable[[Any, int], None]]:
    """Return a decorator that restricts a check to instances of ``kind``. Other objects pass
    without being checked."""

    def restricted(check: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        @wraps(check)
        def checked(thing: Any, seed: int) -> None:
            if isinstance(thing, kind):
                check(thing, seed)

        return checked

    return restricted


def results(
    checks: Mapping[str, Callable[[T, int], None]], thing: T, seed: int
) -> list[CheckResult]:
    """Run all checks on ``thing`` and return their results. A check ends at its first failure; the
    other checks still run."""
    for cached in _MADE:
        cached.cache_clear()
    messages = {name: _run(check, thing, seed) for name, check in checks.items()}
    met: dict[str, list[str]] = {}
    for name, message in messages.items():
        met.setdefault(message, []).append(name)
    outcomes = []
    for name, message in messages.items():
        first, *more = met[message]
        if message and name != first:
            message = f"same as {first!r}"
        elif message and more:
            message += f" ({counted(len(more), 'more check')} failed for this reason)"
        outcomes.append(CheckResult(name, not message, message))
    return outcomes


def _run(check: Callable[[T, int], None], thing: T, seed: int) -> str:
    """Return the message of a failed check, with the line of the plugin's code that raised it;
    empty if the check passes."""
    try:
        check(thing, seed)
    except ContractBreak as error:
        return str(error)
    except (Exception, SystemExit) as error:
        at_fault = error if isinstance(error, PluginError) else plugins.fault_of(error)
        return str(at_fault or f"{spec_of(thing)}: raised {type(error).__name__}: {error}")
    return ""


# --- helpers for suites ------------------------------------------------------------------------


def fail(thing: object, name: str, what: str) -> NoReturn:
    """Raise a ContractBreak for the check ``name``; ``what`` describes the failure."""
    raise ContractBreak(f"{spec_of(thing)}: {name}: {what}")


def expect(thing: object, name: str, what: str, got: object, expected: object) -> None:
    """Raise a ContractBreak unless ``got`` equals ``expected``; ``what`` names the compared
    value."""
    if got != expected:
        fail(thing, name, f"{what}: got {got}, expected {expected}")


def require(thing: object, name: str, holds: object, what: str) -> None:
    """Raise a ContractBreak unless ``holds`` is true; ``what`` describes the actual and expected
    values."""
    if not holds:
        fail(thing, name, what)


def check_declared(thing: object, name: str, **wanted: type) -> None:
    """Raise a ContractBreak unless an object's class is a frozen dataclass with the ``wanted``
    attributes.

    ``wanted`` maps the names of class attributes to their types. The values must not be empty or 0.
    """
    kind: Any = type(thing)
    for key, kind_of in wanted.items():
        value = getattr(kind, key, None)
        good = isinstance(value, kind_of) and bool(value)
        filled = "non-zero" if kind_of is int else "non-empty"
        expected = f"expected a {filled} {kind_of.__name__}"
        require(thing, name, good, f"{key}: got {value!r}, {expected}")
    frozen = is_dataclass(thing) and kind.__dataclass_params__.frozen
    require(thing, name, frozen, f"got {kind.__qualname__}, expected a frozen dataclass")


def check_settings(registry: Registry[Any], thing: object, name: str) -> None:
    """Raise a ContractBreak unless an object can be rebuilt from its spec, and from its settings as
    JSON.

    Objects whose class is not in the registry, as in some tests, are not checked.
    """
    stored = hasattr(type(thing), "revision")  # figures are not stored
    settings = json.loads(json.dumps(settings_of(thing))) if stored else {}
    if name_of(thing) not in registry or registry[name_of(thing)] is not type(thing):
        return
    if stored:
        again = registry.from_settings(settings)
        expect(thing, name, "rebuilt from its settings", again, thing)
    built = registry.build(spec_of(thing))
    if not getattr(built, "needs_sample", False) or built == thing:
        expect(thing, name, "rebuilt from its spec", built, thing)


def check_described(thing: object, name: str) -> None:
    """Raise a ContractBreak unless an object's class and each of its settings have a description,
    which becomes the help text."""
    text = inspect.getdoc(type(thing)) or ""
    generated = text.startswith(f"{type(thing).__name__}(")  # a dataclass without a docstring
    require(thing, name, text and not generated, "got no docstring, expected one")
    for key, setting in settings_in(type(thing), learned=True).items():
        what = f"got no description of {key}, expected one in the docstring"
        require(thing, name, setting.help, what)


class _Examples(doctest.DocTestRunner):
    """Collects the results of wrong examples instead of printing them."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.wrong: list[str] = []

    def report_failure(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        self._add(example, got)

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self._add(example, f"{exc_info[0].__name__}: {exc_info[1]}")

    def _add(self, example: doctest.Example, got: str) -> None:
        gives, wanted = (" ".join(text.split()) for text in (got, example.want))
        self.wrong.append(f"{example.source.strip()}: got {gives or 'nothing'}, expected {wanted}")


def check_examples(thing: object, name: str) -> None:
    """Raise a ContractBreak unless the file that defines an object's class has doctest examples and
    all of them pass."""
    runner = _Examples()
    for test in doctest.DocTestFinder().find(sys.modules[type(thing).__module__]):
        runner.run(test, out=lambda _: None)
    require(thing, name, runner.tries, "got no example in its file, expected one (>>>)")
    require(thing, name, not runner.wrong, "; ".join(runner.wrong))


# --- results of members ------------------------------------------------------------------------


def wrong(thing: object, member: str, got: str, expected: str) -> NoReturn:
    """Raise a ContractBreak for a method or property of ``thing`` whose result is ``got`` instead
    of ``expected``."""
    file = Path(sys.modules[type(thing).__module__].__file__ or "")
    what = f"{type(thing).__name__}.{member} returned {got}, expected {expected}"
    raise ContractBreak(f"{file.parent.name}/{file.name}: {what}")


def expect_kind(thing: object, member: str, got: Any, *kinds: type) -> Any:
    """Return ``got``, the result of a method or property. Raises ContractBreak unless its type is
    one of ``kinds``; a bool does not count as an int."""
    if not isinstance(got, kinds) or (isinstance(got, bool) and bool not in kinds):
        names = ["None" if kind is type(None) else kind.__name__ for kind in kinds]
        wrong(thing, member, described(got), " or ".join(names))
    return got


def expect_array(
    thing: object,
    member: str,
    got: Any,
    shape: Shape,
    *,
    dtype: str,
    finite: bool = False,
    kind: str = "ndarray",
) -> Any:
    """Return ``got``, the result of a method or property. Raises ContractBreak unless it is an
    array with the given properties.

    shape
        Size of each axis; None allows any size.
    dtype
        Name of the data type, or several names separated by ``|``: ``float32|int64``.
    finite
        True if all values must be finite.
    kind
        Name of the array's class. It is a string because PyTorch is not imported here.
    """
    fits = (
        any(base.__name__ == kind for base in type(got).__mro__)
        and _dtype(got) in dtype.split("|")
        and len(got.shape) == len(shape)
        and all(size in (None, actual) for size, actual in zip(shape, got.shape, strict=True))
    )
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    expected = f"{kind} {'float' if dtype == FLOATING else dtype}[{sizes}]"
    if not fits:
        wrong(thing, member, described(got), expected)
    if finite and not bool((abs(got) < float("inf")).all()):
        values = f"{described(got)} with values that are not finite"
        wrong(thing, member, values, f"finite {expected}")
    return got


#: Works like :func:`expect_array` for a PyTorch tensor, by default of any floating-point type.
expect_tensor = partial(expect_array, kind="Tensor", dtype=FLOATING)


def described(got: Any) -> str:
    """Return a short description of a value for messages.

    >>> described([1.5]), described(None)
    ('a list', 'None')
    """
    if (dtype := _dtype(got)) is not None:
        return f"{type(got).__name__} {dtype}[{', '.join(map(str, got.shape))}]"
    if got is None or isinstance(got, bool | int | float | str):
        return repr(got)
    return f"a {type(got).__name__}"


def _dtype(got: Any) -> str | None:
    """Return the data type of a NumPy or PyTorch array, without importing either library."""
    if not (hasattr(got, "dtype") and hasattr(got, "shape")):
        return None
    return str(got.dtype).removeprefix("torch.")
