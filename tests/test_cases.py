"""A test with many cases runs them all and names those that fail."""

import pytest

from tests.cases import case, each

pytest_plugins = ["pytester"]


@each("factor", [1, 2])
@each(("number", "wanted"), [(1, 2), (2, 4), (3, 6)])
def doubles(factor: int, number: int, wanted: int, seen: list[int]) -> None:
    seen.append(number)
    assert factor * number == wanted


def test_all_cases_are_run_and_those_that_fail_are_named() -> None:
    seen: list[int] = []
    with pytest.raises(BaseExceptionGroup) as caught:
        doubles(seen=seen)
    assert seen == [1, 2, 3, 1, 2, 3]
    (of_one_factor,) = caught.value.exceptions
    assert of_one_factor.__notes__ == ["with factor=1"]
    assert isinstance(of_one_factor, BaseExceptionGroup)
    notes = [one.__notes__ for one in of_one_factor.exceptions]
    assert notes == [[f"with number={n}, wanted={2 * n}"] for n in (1, 2, 3)]


def test_what_is_no_case_is_a_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from tests.cases import case, each\n"
        "from hypothesis import given, strategies as st\n"
        "@each('name', 'ab')\n"
        "def test_plain(name, tmp_path):\n    assert tmp_path.is_dir() and name in 'ab'\n"
        "@each('name', 'ab')\n"
        "@given(st.integers())\n"
        "def test_drawn(name, drawn):\n    assert name == 'a' or drawn < 3\n"
        "@given(st.integers())\n"
        "@each('name', 'ab')\n"
        "def test_drawn_once(name, drawn):\n    assert name in 'ab' and drawn == int(drawn)\n"
    )
    passed, _, failed = pytester.inline_run(
        "-p", "no:cacheprovider", "-p", "no:zarr"
    ).listoutcomes()
    assert (len(passed), len(failed)) == (2, 1)
    assert "with name='b'" in str(failed[0].longrepr)


def test_a_block_that_fails_is_named() -> None:
    with pytest.raises(ValueError) as caught, case("a", row=3):
        raise ValueError
    assert caught.value.__notes__ == ["case: 'a', row=3"]
