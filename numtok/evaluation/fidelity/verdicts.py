"""Verdicts: does an ordering that a paper prints hold in our measurements?"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from pathlib import Path

import msgspec
from scipy.special import stdtrit

from numtok.evaluation.fidelity.measured import PAPER, Measured, MeasuredLine, Pooled, pool
from numtok.evaluation.fidelity.orderings import Ordering


class OrderingVerdict(StrEnum):
    """Result of comparing a printed ordering with measurements.

    REPRODUCED, CONTRADICTED
        The 95% interval of the difference excludes 0, with the printed sign or the other one.
    TIE
        The interval contains 0 and lies within the tie limits of the metric.
    UNDECIDED
        None of these.
    ONE_SEED
        One of two trained models has a single seed, so the difference has no interval.
    OTHER_SETTING
        Measured, but not with the objective and recipe of the paper.
    NOT_RUN
        One of the two was not measured.
    """

    REPRODUCED = "reproduced"
    CONTRADICTED = "contradicted"
    TIE = "tie"
    UNDECIDED = "undecided"
    ONE_SEED = "one seed"
    OTHER_SETTING = "other setting"
    NOT_RUN = "not run"


_WITHOUT_SEEDS = ("tokens-per-number", "vocabulary")  # metrics that do not depend on training

#: Verdicts that rest on two means over several seeds, in the setting of the paper.
SEEDED = (
    OrderingVerdict.REPRODUCED,
    OrderingVerdict.CONTRADICTED,
    OrderingVerdict.TIE,
    OrderingVerdict.UNDECIDED,
)


class Judgment(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict on one ordering, with the numbers it rests on.

    higher, lower, where
        Rows and their column, or columns (heads) and their row (a data set).
    difference, low, high
        Measured difference in the printed direction, so that a positive one agrees with the paper,
        and its 95% interval; of log10 of the values if ``logarithmic``. None without measurements;
        one seed has no interval.
    seeds
        Smaller number of seeds of the two.
    setting, examples
        Setting of the measurements, and number of training rows.
    """

    verdict: OrderingVerdict
    higher: str
    lower: str
    table: str
    where: str
    logarithmic: bool
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    seeds: int = 0
    setting: str = ""
    examples: int | None = None


@cache
def tie_limits() -> Mapping[str, float]:
    """Return the largest difference that counts as a tie, per metric; ``decades`` on a logarithmic
    scale."""
    content = tomllib.loads(Path(__file__).with_name("ties.toml").read_text("utf-8"))
    return {**content["difference"], "decades": content["decades"]}


def judge(ordering: Ordering, measured: Measured) -> Judgment:
    """Compare an ordering with measurements.

    The setting of the paper is used if both cells have it, otherwise any setting that both have.
    Among budgets that both have, the one with the most seeds counts, then the one with the most
    training rows. A cell without training, such as that of the most frequent label, fits any
    budget.
    """
    higher, lower = measured.get(ordering.higher, {}), measured.get(ordering.lower, {})
    choices = [
        (
            setting == PAPER,
            min(_seeds(lines), _seeds(others)),
            budget or other or 0,
            setting,
            lines,
            others,
        )
        for setting, budgets in higher.items()
        for budget, lines in budgets.items()
        for other, others in lower.get(setting, {}).items()
        if budget == other or None in (budget, other)
    ]
    by_row = ordering.higher.column != ordering.lower.column
    names = [cell.column if by_row else cell.row for cell in (ordering.higher, ordering.lower)]
    judgment = partial(
        Judgment,
        higher=names[0],
        lower=names[1],
        table=ordering.higher.table,
        where=ordering.higher.row if by_row else ordering.higher.column,
        logarithmic=ordering.logarithmic,
    )
    if not choices:
        return judgment(verdict=OrderingVerdict.NOT_RUN)
    _, seeds, examples, setting, *both = max(choices, key=lambda choice: choice[:3])
    first, second = (pool(lines, logarithmic=ordering.logarithmic) for lines in both)
    difference, half = welch(first, second)
    if ordering.metric in _WITHOUT_SEEDS:
        half = 0.0
    low, high = (None, None) if half is None else (difference - half, difference + half)
    verdict = OrderingVerdict.ONE_SEED
    if setting != PAPER:
        verdict = OrderingVerdict.OTHER_SETTING
    elif low is not None and high is not None:
        limit = tie_limits()["decades" if ordering.logarithmic else ordering.metric]
        verdict = _decide(low, high, limit)
    return judgment(
        verdict=verdict, difference=difference, low=low, high=high, seeds=seeds, setting=setting,
        examples=examples or None,
    )  # fmt: skip


def welch(first: Pooled, second: Pooled) -> tuple[float, float | None]:
    """Return the difference of two means and half of its 95% interval (Welch's t-interval).

    The half is None if either mean is of one seed.

    >>> difference, half = welch(Pooled(3, 2.0, 1.0), Pooled(3, 1.0, 1.0))
    >>> difference, round(half, 2)
    (1.0, 2.27)
    """
    difference = first.mean - second.mean
    if min(first.n, second.n) == 1:
        return difference, None
    errors = [mean.sd**2 / mean.n for mean in (first, second)]
    if not (total := sum(errors)):
        return difference, 0.0
    freedom = total**2 / (errors[0] ** 2 / (first.n - 1) + errors[1] ** 2 / (second.n - 1))
    return difference, float(stdtrit(freedom, 0.975)) * math.sqrt(total)


def _seeds(lines: Sequence[MeasuredLine]) -> int:
    return sum(line.n for line in lines)


def _decide(low: float, high: float, limit: float) -> OrderingVerdict:
    if low > 0:
        return OrderingVerdict.REPRODUCED
    if high < 0:
        return OrderingVerdict.CONTRADICTED
    return OrderingVerdict.TIE if -limit <= low and high <= limit else OrderingVerdict.UNDECIDED
