"""explain: shows how each scheme encodes one number, and the value after decoding."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import (
    SCHEMES,
    Failure,
    Outcome,
    Scheme,
    is_exact,
    needs_sample,
    title_of,
)
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.numerals.find import find
from numtok.numerals.literals import plain_literal
from numtok.numerals.policy import NumeralPolicy

_BARE = "not fitted yet"
_WORDS = ("nan", "inf", "-inf")  # values that texts do not contain


@dataclass(frozen=True, kw_only=True)
class ExplainedNumber:
    """One number, encoded by one scheme and decoded again."""

    scheme: str
    value: float  # the number as float64
    tokens: tuple[str, ...]
    channel: float | None
    decoded: str  # the decoded literal, or the name of the failure
    error: float | None  # relative (see relative_error)
    exact: bool  # whether the channel is float64 (else float32)
    note: str  # special outcome, or that the scheme needs fitting; else ""


def run(number: str, specs: tuple[str, ...], policy: NumeralPolicy) -> list[ExplainedNumber]:
    """Encode and decode a number with each scheme, and return the results. If ``specs`` is empty,
    all schemes that need no settings are used.

    Raises UsageError unless ``number`` is exactly one number under the policy, or is nan, inf or
    -inf.

    >>> run("-60.2", ("p1000",), NumeralPolicy())[0].tokens
    ('-', '602', 'E-1')
    """
    numerals = _numerals(number, policy)
    chosen = specs or [name for name in SCHEMES if not SCHEMES.required(name)]
    return [_written(scheme_of(spec), numerals) for spec in chosen]


def _numerals(number: str, policy: NumeralPolicy) -> Numerals:
    if number in _WORDS:
        return Numerals.of_literals([number])
    data = np.frombuffer(number.encode(errors="replace"), np.uint8)
    spans = find(data, np.array([0, len(data)], np.int32), policy)
    starts, ends = spans.starts, spans.ends
    if len(starts) != 1 or (starts[0], ends[0]) != (0, len(data)):
        literals = [data[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True)]
        from numtok.numerals.proposals import policy_for  # needs the kernels of all notations

        other = policy_for(number)
        remedy = "See docs/reference/numbers.md"
        if other is not None:
            remedy = f"To read it as one: --numbers {other.spec()}"
        raise UsageError(
            f"{number!r} is not exactly one number: --numbers {policy.spec()} reads "
            f"{', '.join(literals) or 'no number'} in it. {remedy}"
        )
    return spans.numerals()


def _written(scheme: Scheme, numerals: Numerals) -> ExplainedNumber:
    encoded = scheme.encode(numerals)
    decoded = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)
    names = scheme.vocabulary()
    failure = Failure(decoded.failures[0])
    error = None
    if not failure and np.isfinite([numerals.values[0], decoded.values[0]]).all():
        # Compare literals, not float64, which may round both to the same value.
        value, back = (
            Decimal(plain_literal(each)) for each in (numerals.literals.at(0), decoded.literal(0))
        )
        error = relative_error(value, back)
    outcome = Outcome(encoded.outcomes[0])
    return ExplainedNumber(
        scheme=title_of(scheme),
        value=float(numerals.values[0]),
        tokens=tuple(names[token] for token in encoded.tokens),
        channel=None if encoded.channel is None else float(encoded.channel[0]),
        decoded=failure.name.lower() if failure else decoded.literal(0),
        error=error,
        exact=is_exact(scheme),
        note=outcome.name.lower().replace("_", " ") if outcome else _BARE * needs_sample(scheme),
    )


def relative_error(value: Decimal, back: Decimal) -> float | None:
    """Return the error of a decoded number relative to the encoded one; None if float64 cannot
    represent it, as for 0 decoded as another number."""
    if not value:
        return None if back else 0.0
    relative = float(abs(back - value) / abs(value))
    return relative if np.isfinite(relative) else None
