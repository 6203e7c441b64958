"""``@each("name", cases)``: one test of many small cases, of which all that fail are named.

As ``pytest.mark.parametrize`` reads, but a case costs no test of its own: nothing is collected,
set up or reported for it, and beneath ``@given`` an example is drawn once for all cases. Fixtures
are made once, too, so a test that leaves something behind in one of them (a file, a patch) keeps
``parametrize``, as does one whose cases take long.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Runs the test with every case: a value of the one name, or a tuple of all names'."""
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
