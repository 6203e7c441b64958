"""Many small cases in one test: each test or subtest would add milliseconds of overhead.

``@each("name", cases)`` works like ``pytest.mark.parametrize``, but runs all cases in one test and
names all that fail. Below ``@given``, each example is drawn once for all cases. ``with case(...)``
names the failing case in a loop.

Fixtures are made once per test. So a test that leaves something in a fixture (a file, a patch) uses
``parametrize``, as does one with slow cases.
"""

import doctest
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

Test = Callable[..., None]


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run the test with every case: a value for a single name, or a tuple for several."""
    names = (names,) if isinstance(names, str) else names
    rows: list[tuple[Any, ...]] = [(case,) if len(names) == 1 else tuple(case) for case in cases]

    def of_one(test: Test) -> Test:
        whole = inspect.signature(test)
        others = [one for name, one in whole.parameters.items() if name not in names]
        assert len(others) == len(whole.parameters) - len(names)
        signature = whole.replace(parameters=others)

        @functools.wraps(test)
        def of_all(*given: Any, **fixtures: Any) -> None:
            fixtures = signature.bind(*given, **fixtures).arguments
            failed: list[BaseException] = []
            for row in rows:
                case = dict(zip(names, row, strict=True))
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    told = ", ".join(f"{name}={value!r}" for name, value in case.items())
                    error.add_note(f"with {told}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} cases", failed)

        of_all.__signature__ = signature  # type: ignore[attr-defined]
        return of_all

    return of_one


def check_examples(*modules: str, **names: object) -> None:
    """Run the doctests of modules of numtok, which must have some, with these ``names``."""
    for name in modules:
        with case(name):
            found = doctest.testmod(importlib.import_module(f"numtok.{name}"), extraglobs=names)
            assert found.attempted > 0
            assert not found.failed


@contextmanager
def case(*name: object, **facts: object) -> Iterator[None]:
    """Add the name of the case to an error in the block."""
    try:
        yield
    except BaseException as error:
        told = [*map(repr, name), *(f"{fact}={value!r}" for fact, value in facts.items())]
        error.add_note(f"case: {', '.join(told)}")
        raise
