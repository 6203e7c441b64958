"""A one-second run of each promise, and the page of the long runs."""

import pytest

from tests.cases import case
from tests.trust.page import PAGE, PROMISES, page, recorded
from tests.trust.promise import Broken, Count, Lost, Promise, Worlds

#: Promises whose cases or setup take longer. `just trust` and `just fuzz` run them.
_LONG = {"determinism", "processes", "fuzzing"}


@pytest.mark.integration
def test_each_promise_holds_for_a_second() -> None:
    with Worlds() as worlds:
        for name, promise in PROMISES.items():
            if name not in _LONG:
                with case(name):
                    assert promise.run(0, 1.0, worlds).broken == []


def test_the_page_is_that_of_the_recorded_runs() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(recorded())


def test_cases_that_fail_are_counted_by_kind_and_can_be_repeated() -> None:
    def check(_: object, random: object) -> int:
        raise next(errors)

    errors = iter([Lost("gone"), AssertionError("other"), ZeroDivisionError("x"), Lost("again")])
    promise = PROMISES["literals"]
    broken = Promise(**{**vars(promise), "case": check})
    with Worlds() as worlds:
        count = broken.run(0, 60, worlds, [0, 1, 2])
        assert [(one.case, one.kind) for one in count.broken] == [
            (0, "lost"),
            (1, "wrong"),
            (2, "traceback"),
        ]
        assert broken.run(0, 60, worlds, [7]) == Count(0, [Broken(7, "lost", "again")])
