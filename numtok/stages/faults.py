"""Faults: where predictions go wrong in the parts of numbers, sign, mantissa and exponent.

Truth and prediction are written with as many significant digits: ``-0.0602`` is ``-``, ``602`` and
``E-4``, whatever the scheme of the model. Three questions (xVal, Section 3.2 and Figure 4):

1. Which parts are wrong, and how much of the squared error is due to that? Taking 1 for 0.1 is a
   wrong exponent alone.
2. Are the parts, and their combinations, predicted as often as they come?
3. Do parts that are common each come together too often? A model that fills in a mantissa and an
   exponent without regard to each other predicts the most common of both.

``eval --fill parallel`` and ``--fill left-to-right`` of one model, side by side, tell faults of
decoding from those of encoding: what goes away when each token sees the ones before was never in
the model's distribution of whole numbers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok.errors import UsageError, unknown
from numtok.metrics.base import METRICS, Answers, figures
from numtok.numerals.column import round_literal
from numtok.reports import REPORT, Figure
from numtok.stages._experiments import labels, told
from numtok.stages._reports import TARGET, Predictions, read
from numtok.store import Store

_MOST_DIGITS = 17
_DRAWS = 20  # for what chance does; the distance hardly differs between them
KINDS = ("right", "mantissa", "exponent", "sign", "several", "no number")


@dataclass(frozen=True)
class Config:
    """What ``numtok faults`` was asked for."""

    reports: tuple[str, ...]
    target: str | None = None
    digits: int = 3
    top: int = 5

    def __post_init__(self) -> None:
        for name, most in (("digits", _MOST_DIGITS), ("top", 1000)):
            if not 1 <= (value := getattr(self, name)) <= most:
                raise UsageError(f"--{name} {value} is not possible; allowed are 1 to {most}")


class Written(NamedTuple):
    """A number in parts, without zeros that only fill; zero itself has no parts."""

    sign: str
    mantissa: str
    exponent: str

    @classmethod
    def of(cls, literal: str, digits: int) -> "Written":
        """Rounded half to even to ``digits`` significant digits.

        >>> tuple(Written.of("-0.06025", 3))
        ('-', '602', 'E-4')
        """
        negative, mantissa, exponent = round_literal(literal, digits)
        if not mantissa:
            return cls("", "0", "")
        return cls("-" if negative else "", str(mantissa), f"E{exponent}")

    @property
    def size(self) -> str:
        """``"602E-4"``"""
        return self.mantissa + self.exponent


class Fault(msgspec.Struct, frozen=True):
    """The numbers that are wrong in one way: their share, with a 95% bootstrap interval over
    samples, and their share of the sum of squared errors (None where that is 0)."""

    kind: str
    share: Figure
    of_squares: float | None


class Distance(msgspec.Struct, frozen=True):
    """How far the predicted frequencies of a part are from the true ones: the total variation, from
    0 to 1. ``by_chance`` is what that is between two samples, as large as both are, that are drawn
    from the true frequencies. None where no prediction is a number."""

    part: str
    value: float | None
    by_chance: float | None


class Size(msgspec.Struct, frozen=True):
    """How often one number comes, whatever its sign: among truths, among predictions, and among
    predictions if their mantissa told nothing of their exponent; ``of_squares`` is the share that
    predicting it has of the sum of squared errors."""

    number: str
    truth: float
    predicted: float
    independent: float
    of_squares: float | None


class Faults(msgspec.Struct, frozen=True):
    """Of one report.

    commonest
        The most common mantissa of the truths, with their most common exponent; None where all
        are 0.
    surplus
        The numbers predicted most beyond their share, the worst first.
    """

    label: str
    report: str
    numbers: int
    faults: list[Fault]
    distances: list[Distance]
    commonest: Size | None
    surplus: list[Size]


def run(config: Config, store: Store) -> list[Faults]:
    """One for each report, in order.

    Raises UsageError for an unknown target.
    """
    evaluations = [read(store.resolve(ref, {REPORT})) for ref in config.reports]
    settings = [told(one) | {"seed": str(one.report.seed)} for one in evaluations]
    names = labels([one.report.scheme for one in evaluations], settings)
    found = []
    for name, evaluation in zip(names, evaluations, strict=True):
        predictions = Predictions.of_numbers(evaluation)
        answers = answers_of(predictions, config.target)
        found.append(faults(config, name, predictions.ref, answers))
    return found


def answers_of(predictions: Predictions, target: str | None) -> Answers:
    """Those of one target, or all; UsageError if it is unknown."""
    if target is None:
        return predictions.answers
    names = np.array(predictions.table.column(TARGET).to_pylist(), object)
    if target not in (known := sorted(set(names.tolist()))):
        raise unknown(f"target of {predictions.ref}", target, known)
    return predictions.answers.take(names == target)


def written(answers: Answers, digits: int) -> tuple[list[Written], list[Written | None]]:
    """Truths and predictions in parts; None for what is no number."""
    assert answers.truth_literal is not None and answers.prediction_literal is not None
    found = [
        None if literal is None or not valid else Written.of(literal, digits)
        for literal, valid in zip(answers.prediction_literal, answers.valid.tolist(), strict=True)
    ]
    return [Written.of(one, digits) for one in answers.truth_literal], found


def faults(config: Config, label: str, ref: str, answers: Answers) -> Faults:
    """What is wrong with some answers."""
    truths, found = written(answers, config.digits)
    kinds = np.array([_kind(*pair) for pair in zip(truths, found, strict=True)])
    sizes = np.array(["" if one is None else one.size for one in found])
    errors = np.abs(answers.prediction - answers.truth)
    squares = (errors / max(errors.max(), np.finfo(np.float64).tiny)) ** 2  # the largest overflow
    whole = float(squares.sum())

    def share_of_squares(rows: NDArray[np.bool_]) -> float | None:
        return float(squares[rows].sum()) / whole if whole else None

    valid = [one for one in found if one is not None]
    true, predicted = Shares.of(truths), Shares.of(valid)
    parts = Shares.of([one for one in truths if one.exponent])  # zero has none to be combined
    commonest = (_commonest(parts.mantissa), _commonest(parts.exponent)) if parts.number else None

    def size(mantissa: str, exponent: str) -> Size:
        name = mantissa + exponent
        return Size(
            name,
            true.number.get(name, 0.0),
            predicted.number.get(name, 0.0),
            predicted.mantissa.get(mantissa, 0.0) * predicted.exponent.get(exponent, 0.0),
            share_of_squares(sizes == name),
        )

    surplus = {one: share - true.number.get(one, 0.0) for one, share in predicted.number.items()}
    worst = sorted(surplus, key=lambda one: (-surplus[one], one))[: config.top]
    return Faults(
        label,
        ref,
        len(truths),
        [
            Fault(kind, _share(kinds == kind, answers), share_of_squares(kinds == kind))
            for kind in KINDS
        ],
        [
            _distance(part, *pair, len(truths), len(valid))
            for part, pair in zip(Shares._fields, zip(true, predicted, strict=True), strict=True)
        ],
        size(*commonest) if commonest else None,
        [size(*_split(one)) for one in worst if surplus[one] > 0],
    )


def _kind(truth: Written, found: Written | None) -> str:
    if found is None:
        return "no number"
    wrong = [
        part for part, one, other in zip(Written._fields, truth, found, strict=True) if one != other
    ]
    return wrong[0] if len(wrong) == 1 else "several" if wrong else "right"


class Shares(NamedTuple):
    """The shares of all mantissas, exponents and numbers without sign that there are."""

    mantissa: Mapping[str, float]
    exponent: Mapping[str, float]
    number: Mapping[str, float]

    @classmethod
    def of(cls, numbers: Sequence[Written]) -> "Shares":
        """Those among some numbers.

        >>> Shares.of([Written.of("0.1", 1), Written.of("-0.2", 1)]).exponent
        {'E-1': 1.0}
        """

        def shares(values: Iterable[str]) -> dict[str, float]:
            return {one: count / len(numbers) for one, count in Counter(values).items()}

        return cls(
            shares(one.mantissa for one in numbers),
            shares(one.exponent for one in numbers),
            shares(one.size for one in numbers),
        )


def _commonest(shares: Mapping[str, float]) -> str:
    return min(shares, key=lambda one: (-shares[one], one))


def _split(number: str) -> tuple[str, str]:
    mantissa, mark, exponent = number.partition("E")
    return mantissa, mark + exponent


def _distance(
    part: str,
    true: Mapping[str, float],
    predicted: Mapping[str, float],
    truths: int,
    predictions: int,
) -> Distance:
    if not predictions:
        return Distance(part, None, None)
    apart = sum(abs(true.get(one, 0.0) - predicted.get(one, 0.0)) for one in {*true, *predicted})
    shares = np.array([true[one] for one in sorted(true)])
    shares /= shares.sum()
    random = np.random.default_rng(0)
    first, second = (random.multinomial(n, shares, _DRAWS) / n for n in (truths, predictions))
    return Distance(part, apart / 2, float(np.abs(first - second).sum(axis=1).mean()) / 2)


def _share(hits: NDArray[np.bool_], answers: Answers) -> Figure:
    """Of all numbers; those of a sample are drawn together."""
    none = np.zeros(len(hits))
    kept = Answers(
        truth=none, prediction=hits.astype(np.float64), valid=hits, sample=answers.sample
    )
    return figures([METRICS.build("mae")], kept)["mae"]
