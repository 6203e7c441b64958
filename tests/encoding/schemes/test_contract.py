"""The contract suite, run on the registry, on plugins, and on schemes that break it.

Schemes below that are correct except for one thing show that every check can fail.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numtok.contracts import ContractBreak
from numtok.encoding.schemes._contract import CHECKS, check
from numtok.encoding.schemes._contract_of_tokens import sample
from numtok.encoding.schemes.base import (
    SCHEMES,
    Bounds,
    DecodedNumbers,
    Encoded,
    Failure,
    LargestError,
    Next,
    Outcome,
    Scheme,
    digest_of,
)
from numtok.encoding.schemes.bpe import BpeScheme
from numtok.encoding.schemes.digits import DigitsScheme
from numtok.encoding.schemes.fone import FoneScheme
from numtok.encoding.schemes.nd import ND
from numtok.encoding.schemes.numgpt import NumGPTScheme
from numtok.encoding.schemes.numvalue import NumValueScheme
from numtok.encoding.schemes.p1000 import P1000
from numtok.encoding.schemes.ud import UD
from numtok.encoding.schemes.xval import XVal
from numtok.numerals.column import Numerals
from numtok.plugins import add_plugin_folders
from tests.cases import each

PLUGINS = Path(__file__).parents[2] / "plugins"
OTHER_SETTINGS = (
    *("p10,digits=1", "p10,digits=15,exponents=-300..290", "p10,digits=8,exponents=-20..3"),
    *("p1000,exponents=0..0", "b1999,exponents=-40..-30", "fp15,exponents=-3..0"),
    *("nd,base=2,length=50,point=edge", "nd,base=36,length=3,point=nearest", "nd,repeat=3"),
    *("hamming,length=3", "hamming,length=50,point=nearest", "hamming,repeat=2"),
    *("ud,exponent=3,mantissa=15", "ud,point=edge", "ud,base=2,exponent=10,mantissa=50"),
    *("ud,base=7,exponent=3,point=edge", "ud,base=36,mantissa=3,point=centre"),
    *("ud,base=2,exponent=1,mantissa=1,point=edge", "ud,base=3,exponent=2,repeat=3"),
    *("digits:3", "digits,reverse=yes", "digits:2,reverse=yes,pad=5", "digits,pad=3"),
    *("numerologic:answer", "numerologic,form=words", "rt,whole=4,decimals=0"),
    *("numgpt,exponents=-3..4", "numgpt,exponents=0..0", "dice,exponents=-290..290"),
)


@pytest.mark.integration
@pytest.mark.parametrize("spec", OTHER_SETTINGS)
def test_the_contract_holds_at_other_settings(spec: str) -> None:
    assert [result for result in check(SCHEMES.build(spec)) if not result.passed] == []


@pytest.mark.parametrize(
    "spec", ["shortest", "decade", "decade,exponents=-3..4", "logarithm", "rns", "rns,moduli=5-9"]
)
def test_the_contract_holds_for_schemes_from_outside_the_package(plugins: Path, spec: str) -> None:
    add_plugin_folders([PLUGINS])
    assert [result for result in check(SCHEMES.build(spec)) if not result.passed] == []


@pytest.mark.slow
@pytest.mark.parametrize("spec", [*SCHEMES, *OTHER_SETTINGS])
def test_the_contract_holds_for_many_seeds(spec: str) -> None:
    scheme = SCHEMES.build(spec)
    for seed in range(1, 30):
        assert [result for result in check(scheme, seed) if not result.passed] == []


def test_the_results_name_every_check_in_order() -> None:
    results = check(P1000())
    assert [result.name for result in results] == list(CHECKS)
    assert all(result.passed and result.message == "" for result in results)


def test_the_sample_depends_on_nothing_but_the_scheme_and_the_seed() -> None:
    assert sample(P1000(), 3) == sample(P1000(), 3)
    assert sample(P1000(), 3) != sample(P1000(), 4)


def test_a_digest_tells_schemes_apart_and_settings() -> None:
    specs = [*SCHEMES, *OTHER_SETTINGS]
    alike = {"dice": "numgpt", "digits:3": "triads", "base10": "bits", "native": "digits"}
    alike["numerologic:answer"] = "numerologic"  # the same encoding in answers
    for spec, other in alike.items():
        specs.remove(spec)
        assert digest_of(SCHEMES.build(spec)) == digest_of(SCHEMES.build(other))
    assert len({digest_of(SCHEMES.build(spec)) for spec in specs}) == len(specs)


# --- schemes that are correct except for one thing ---------------------------------------------

_COUNT = itertools.count()


def _broken(base: type[Scheme], **members: Any) -> Scheme:
    """Return an object of a subclass with these members replaced."""
    kind: type[Scheme] = type("Broken", (base,), {"__module__": __name__} | members)
    return kind()


def _encoding(base: type[Scheme], change: Callable[[Numerals, Encoded], Encoded]) -> Scheme:
    def encode(self: Scheme, numerals: Numerals) -> Encoded:
        return change(numerals, base.encode(self, numerals))

    return _broken(base, encode=encode)


def _decoding(
    base: type[Scheme], change: Callable[[DecodedNumbers], tuple[Any, Any]], written: bool = False
) -> Scheme:
    def decode(self: Scheme, tokens: Any, lengths: Any, channel: Any = None) -> DecodedNumbers:
        decoded = base.decode(self, tokens, lengths, channel)
        return DecodedNumbers(*change(decoded), decoded.written if written else None)

    return _broken(base, decode=decode)


def _next(base: type[Scheme], change: Callable[[tuple[int, ...], Next], Next]) -> Scheme:
    def following(self: Scheme, prefix: tuple[int, ...]) -> Next:
        return change(prefix, base.next(self, prefix))

    return _broken(base, next=following)


def _interval(base: type[Scheme], change: Callable[[Bounds], Bounds]) -> Scheme:
    def interval(self: Scheme, tokens: tuple[int, ...]) -> Bounds:
        return change(base.interval(self, tokens))

    return _broken(base, interval=interval)


def _vocabulary(base: type[Scheme], change: Callable[[tuple[Any, ...]], Any]) -> Scheme:
    return _broken(base, vocabulary=lambda self: change(base.vocabulary(self)))


def _says(value: object) -> Any:
    return property(lambda self: value)


def _saturated(numerals: Numerals, encoded: Encoded) -> Encoded:
    outcomes = encoded.outcomes.copy()
    outcomes[outcomes >= Outcome.POSITIVE_UNDERFLOW] = Outcome.NUMBER
    return encoded._replace(outcomes=outcomes)


def _overflow_as_infinity(numerals: Numerals, encoded: Encoded) -> Encoded:
    outcomes = encoded.outcomes.copy()
    infinite = np.isinf(numerals.values)
    outcomes[infinite] = Outcome.POSITIVE_INFINITY + np.signbit(numerals.values[infinite])
    return encoded._replace(outcomes=outcomes)


def _zeroed_input(numerals: Numerals, encoded: Encoded) -> Encoded:
    numerals.values[:] = 0
    return encoded


def _first_id_out(numerals: Numerals, encoded: Encoded) -> Encoded:
    tokens = encoded.tokens.copy()
    tokens[:1] = 926
    return encoded._replace(tokens=tokens)


def _one_short(numerals: Numerals, encoded: Encoded) -> Encoded:
    lengths = encoded.lengths.copy()
    lengths[:2] += np.array([-1, 1], np.int32)[: len(lengths)]
    return encoded._replace(lengths=lengths)


def _channel_of_nan(numerals: Numerals, encoded: Encoded) -> Encoded:
    assert encoded.channel is not None
    channel = np.where(np.isnan(numerals.values), np.float32(np.nan), encoded.channel)
    return encoded._replace(channel=channel)


def _last_as_first(numerals: Numerals, encoded: Encoded) -> Encoded:
    """Give the last number the tokens of the first one."""
    tokens = encoded.tokens.copy()
    tokens[-3:] = tokens[:3]
    return encoded._replace(tokens=tokens)


def _zero_without_literal(self: P1000, numerals: Numerals) -> Encoded:
    bare = numerals._literals is None
    return P1000.encode(self, Numerals(np.zeros(len(numerals))) if bare else numerals)


def _raises_beyond(decoded: DecodedNumbers) -> tuple[Any, Any]:
    if (decoded.failures == Failure.MALFORMED).any():
        raise IndexError("list index out of range")
    return decoded.values, decoded.failures


def _lenient(decoded: DecodedNumbers) -> tuple[Any, Any]:
    bad = decoded.failures == Failure.MALFORMED
    return np.where(bad, 0.0, decoded.values), np.where(bad, 0, decoded.failures)


def _widened(bounds: Bounds) -> Bounds:
    middle = bounds.low / 2 + bounds.high / 2
    return Bounds(middle - 2 * (middle - bounds.low), middle + 2 * (bounds.high - middle))


def _stuck(prefix: tuple[int, ...], step: Next) -> Next:
    """Allow nothing after a minus."""
    return Next(step.allowed & (prefix != (1,)), step.may_end)


def _without_minus_999(prefix: tuple[int, ...], step: Next) -> Next:
    """Forbid 999 after a minus, although the state does not depend on the minus."""
    allowed = step.allowed.copy()
    allowed[901] &= prefix != (1,)
    return step._replace(allowed=allowed)


BREAKS: dict[str, list[tuple[Scheme, str]]] = {
    "vocabulary": [
        (_vocabulary(P1000, lambda v: (*v[:-1], v[0])), "got the token '+' twice"),
        (_vocabulary(P1000, lambda v: (*v[:-1], "")), "token 925: got ''"),
        (_vocabulary(P1000, lambda v: (*v[:-1], "a b")), "without whitespace"),
        (_vocabulary(P1000, lambda v: (*v[:-1], "[A]")), "expected no bracket"),
        (_vocabulary(XVal, lambda v: (*v, str(next(_COUNT)))), "a second call"),
        (_vocabulary(P1000, lambda v: v[-8:]), "expected tokens of numbers before them"),
    ],
    "declarations": [
        (_broken(P1000, revision=0), "revision: got 0, expected a non-zero int"),
        (_broken(P1000, source=""), "source: got '', expected a non-empty str"),
        (_broken(P1000, golden=()), "golden: got (), expected a non-empty tuple"),
        (_broken(P1000, defaults="token"), "defaults: got 'token'"),
        (_broken(P1000, bounds=_says(Bounds(2, 1))), "bounds: got 2 to 1"),
        (_broken(P1000, error=_says(LargestError(2.0))), "error: got 2.0"),
        (_broken(P1000, tokens_per_number=_says(0)), "tokens_per_number: got 0"),
    ],
    "shapes": [
        (
            _encoding(P1000, lambda n, e: e._replace(tokens=e.tokens.astype(np.int64))),
            "0 numbers: tokens: got int64[0], expected uint32[0]",
        ),
        (_encoding(P1000, lambda n, e: e._replace(lengths=e.lengths[1:])), "tokens: got uint32["),
        (_encoding(P1000, _zeroed_input), "input values unchanged: got False"),
        (_encoding(P1000, _first_id_out), "expected ids below 926"),
        (_encoding(P1000, _one_short), "expected 3 tokens"),
        (_encoding(XVal, _channel_of_nan), "nan: got nan in the channel, expected"),
        (
            _encoding(XVal, lambda n, e: e._replace(channel=None)),
            "has a channel: got False, expected True",
        ),
        (
            _decoding(P1000, lambda d: (d.values.astype(np.float32), d.failures)),
            "decoded values: got float32[",
        ),
    ],
    "outcomes": [
        (_encoding(P1000, _saturated), "1e400: got number, expected positive_overflow"),
        (
            _encoding(P1000, _overflow_as_infinity),
            "1e400: got positive_infinity, expected positive_overflow",
        ),
        (
            _encoding(DigitsScheme, lambda n, e: e._replace(outcomes=e.outcomes * 0)),
            "nan: got number, expected nan",
        ),
        (
            _encoding(P1000, lambda n, e: e._replace(outcomes=e.outcomes * 0 + 77)),
            "0: got outcome 77, expected number or zero",
        ),
        (_broken(P1000, bounds=_says(Bounds(1e-6, 1e12))), "_overflow, expected number"),
        (_broken(P1000, bounds=_says(Bounds(1e-3, 9.99e9))), "got number, expected"),
    ],
    "round trip": [
        (
            _decoding(P1000, lambda d: (d.values * 1.01, d.failures)),
            "expected a relative error of at most 0.005",
        ),
        (
            _broken(P1000, error=_says(LargestError(0.001))),
            "expected a relative error of at most 0.001",
        ),
        (_broken(FoneScheme, error=_says(LargestError(1e-6, True))), "expected at most 1e-06 from"),
        (
            _decoding(P1000, lambda d: (d.values + (d.values == 0) * 1e-9, d.failures)),
            "0: got 1e-09, expected 0.0",
        ),
        (_decoding(XVal, lambda d: (np.abs(d.values), d.failures)), "-0: got 0.0, expected -0.0"),
        (
            _decoding(P1000, lambda d: (np.nan_to_num(d.values), d.failures)),
            "nan: got 0.0, expected nan",
        ),
        (
            _decoding(P1000, lambda d: (np.minimum(d.values, 9.99e9), d.failures)),
            "inf: got 9990000000.0, expected inf",
        ),
        (
            _decoding(P1000, lambda d: (np.where(d.failures == 3, np.inf, d.values), d.failures)),
            "1e400: got inf (overflow), expected nan (overflow)",
        ),
        (
            _decoding(P1000, lambda d: (d.values, np.minimum(d.failures, 1))),
            "1e400: got nan (malformed), expected nan (overflow)",
        ),
        (
            _decoding(DigitsScheme, lambda d: (d.values, d.failures)),
            "1e400: got inf, expected the same number",
        ),
    ],
    "idempotence": [
        (_decoding(P1000, lambda d: (d.values * 1.004, d.failures)), "idempotence: "),
        (_decoding(DigitsScheme, lambda d: (d.values, d.failures)), "got 0 . 0"),
        (_decoding(XVal, lambda d: (d.values * 1.5, d.failures)), "channel: got "),
    ],
    "batches": [
        (_encoding(P1000, _last_as_first), "tokens of parts equals that of the whole"),
        (_broken(P1000, encode=_zero_without_literal), "tokens of values equals that of repr"),
    ],
    "factors": [
        (
            _broken(
                NumGPTScheme, factors=_says(NumGPTScheme().factors * np.repeat([2, 1], [9, 17]))
            ),
            "from channel and factor, expected",
        ),
        (
            _broken(NumGPTScheme, factors=_says(NumGPTScheme().factors[:-1])),
            "factors: got float64[25], expected float64[26]",
        ),
        (
            _broken(NumGPTScheme, tokens_per_number=2),
            "tokens of a number with a factor: got 2, expected 1",
        ),
    ],
    "garbage": [
        (_decoding(P1000, _lenient), "nothing: got 0.0, expected malformed"),
        (
            _decoding(P1000, lambda d: (np.nan_to_num(d.values), d.failures)),
            "nothing: got 0.0 with a failure, expected nan",
        ),
        (
            _decoding(P1000, lambda d: (d.values, d.failures * 9)),
            "got failure 9, expected a member of Failure",
        ),
        (
            _next(P1000, lambda p, n: Next(n.allowed & (len(p) != 1), n.may_end)),
            "expected malformed",
        ),
    ],
    "next": [
        (
            _next(P1000, lambda p, n: Next(n.allowed & (np.arange(926) != 602), n.may_end)),
            "got 700 forbidden, expected it allowed",
        ),
        (
            _next(P1000, lambda p, n: Next(n.allowed, True)),
            "after nothing: got that it may end, expected more tokens",
        ),
        (_next(P1000, lambda p, n: Next(n.allowed, False)), "got no end, expected that it may end"),
        (
            _next(P1000, lambda p, n: Next(n.allowed | (len(p) == 3), n.may_end)),
            "got 926 tokens allowed, expected none",
        ),
        (
            _next(P1000, lambda p, n: Next(n.allowed[:-1], n.may_end)),
            "allowed: got bool[925], expected bool[926]",
        ),
        (
            _next(DigitsScheme, lambda p, n: Next(n.allowed, True)),
            "after nothing: got that it may end, expected more tokens",
        ),
    ],
    "walks": [
        (
            _next(P1000, lambda p, n: Next(n.allowed | (len(p) < 3), n.may_end)),
            "got malformed, expected a value, underflow or overflow",
        ),
        (
            _next(DigitsScheme, lambda p, n: Next(n.allowed, True)),
            "got malformed, expected a value, underflow or overflow",
        ),
        (_next(P1000, _stuck), "after -: got neither a token nor an end, expected either"),
        (
            _next(DigitsScheme, lambda p, n: Next(np.arange(22) < 10, False)),
            "got no end within 200 tokens, expected one",
        ),
    ],
    "intervals": [
        (_interval(P1000, lambda b: Bounds(b.low, b.low)), "within"),
        (_interval(P1000, _widened), "intervals: "),
        (_interval(DigitsScheme, lambda b: Bounds(-b.high, -b.low)), "within"),
    ],
    "prefixes": [
        (_interval(ND, lambda b: Bounds(0.0, 1.0)), "has an order: got False, expected True"),
        (
            _interval(ND, lambda b: Bounds(b.low, b.low + 0.99 * (b.high - b.low))),
            "expected a start at",
        ),
    ],
    "states": [
        (_next(UD, lambda p, n: n._replace(state=len(p))), "have the same state: got "),
        (
            _next(P1000, _without_minus_999),
            "have the same state: got different tokens allowed next",
        ),
    ],
    "capabilities": [
        (
            _broken(BpeScheme, fit=lambda self, counts: BpeScheme(19, next(iter(counts)))),
            "fitted to the same numbers in another order",
        ),
        (
            _broken(FoneScheme, suited=lambda self, largest, decimals: FoneScheme(1, 1)),
            "sized to numbers up to 99.5",
        ),
        (
            _broken(NumValueScheme, suited=lambda self, largest, decimals: FoneScheme(1, 1)),
            "sized to numbers up to 99.5",
        ),
    ],
    "golden": [
        (
            _broken(P1000, golden=(("1", "+ 100 E-1", "1.0"),)),
            "1: got + 100 E-2, expected + 100 E-1",
        ),
        (_broken(P1000, golden=(("1", "+ 100 E-2", "1"),)), "1, decoded: got 1.0, expected 1"),
        (
            _broken(P1000, golden=(("1e10", " ".join(["+OVERFLOW"] * 3), "underflow"),)),
            "1e10, decoded: got overflow, expected underflow",
        ),
    ],
    "digest": [
        (
            _broken(P1000, digest="0123456789abcdef"),
            "raise `revision` and set `digest` to '765eb33f122d0e8b'",
        ),
    ],
}


@each(
    ("name", "scheme", "message"),
    [(name, *case) for name, cases in BREAKS.items() for case in cases],
)
def test_a_check_finds_its_break(name: str, scheme: Scheme, message: str) -> None:
    with pytest.raises(ContractBreak) as caught:
        CHECKS[name](scheme, 0)
    told = str(caught.value)
    assert told.startswith(f"test-contract: {name}: ")
    assert message in told
    assert "\n" not in told


def test_every_check_is_shown_to_fail() -> None:
    assert set(BREAKS) == set(CHECKS)


def test_a_scheme_that_is_no_frozen_dataclass_is_found() -> None:
    class Open(P1000):
        __dataclass_params__ = type("Parameters", (), {"frozen": False})

    with pytest.raises(ContractBreak, match=r"got .*Open, expected a frozen dataclass"):
        CHECKS["declarations"](Open(), 0)


def test_an_error_in_a_scheme_is_a_failed_check_and_the_others_still_run() -> None:
    results = check(_decoding(P1000, _raises_beyond))
    failed = {result.name: result.message for result in results if not result.passed}
    assert failed == {"garbage": "test-contract: raised IndexError: list index out of range"}


def test_golden_rows_and_the_digest_are_about_the_default_settings() -> None:
    scheme = P1000(exponents=SCHEMES.build("p1000,exponents=0..0").exponents)  # type: ignore[attr-defined]
    CHECKS["golden"](scheme, 0)
    CHECKS["digest"](scheme, 0)
    assert digest_of(scheme) != scheme.digest
