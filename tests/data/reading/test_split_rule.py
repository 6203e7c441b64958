"""Splits by the position of a row in the order of a group."""

import pytest

from numtok.data.reading.split_rule import SplitRule
from numtok.errors import UsageError
from tests.cases import each


@each(
    ("value", "split"),
    [
        ("2018", "train"),
        ("2019", "validation"),
        ("2020.5", "validation"),
        ("2021", "test"),
        ("10000", "test"),  # compared as numbers, not as text
        (None, "train"),
    ],
)
def test_a_row_is_in_the_last_split_that_has_begun(value: str | None, split: str) -> None:
    rule = SplitRule.parse("by=year,test=2021,validation=2019")
    assert rule.split_at(value) == split


def test_the_order_as_typed_means_nothing() -> None:
    first, second = (
        SplitRule.parse(f"by=day,{starts}")
        for starts in ("a=2020-01-10,b=2020-01-09", "b=2020-01-09,a=2020-01-10")
    )
    assert first == second and list(first.starts) == ["b", "a"]
    assert first.settings() == {"by": "day", "starts": {"b": "2020-01-09", "a": "2020-01-10"}}


@each(
    "text",
    ["by=year", "by=,test=3", "by=year,train=3", "by=year,test=", "by=a,by=b,test=1", "by=y,T!=3"],
)
def test_what_is_no_such_rule_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="by=year,validation=2019,test=2021"):
        SplitRule.parse(text)


def test_a_rule_by_a_group_has_no_shares() -> None:
    with pytest.raises(UsageError, match="needs rows with groups"):
        SplitRule.parse("by=year,test=2021").split_of("some id")
