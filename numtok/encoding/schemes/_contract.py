"""Contract checks for schemes, run by ``numtok check scheme NAME``.

Each check takes a scheme and a seed and raises ``ContractBreak`` with one line
that names the scheme, the check, the number, and the actual and expected
results. The checks apply to any scheme, with fixed or variable length, with or
without a value channel. The sample of numbers is a pure function of the
scheme's bounds and the seed::

    for result in check(SCHEMES.build("p1000")):
        print(result.name, result.passed, result.message)
"""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

import numpy as np

from numtok.contracts import CheckResult, check_declared, check_settings, expect, fail, results
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes._contract_of_tokens import (
    by_number,
    check_garbage,
    check_intervals,
    check_next,
    check_prefixes,
    check_states,
    check_walks,
    decoded_numbers,
    form,
    same_bytes,
    sample,
    shortened,
    token_names,
)
from numtok.encoding.schemes.base import (
    LOSSES,
    SCHEMES,
    ChannelScheme,
    DecodedNumbers,
    Encoded,
    Failure,
    FittedScheme,
    Outcome,
    Scheme,
    SchemeDefaults,
    at_defaults,
    digest_of,
    fitted,
    fitted_to_golden,
    is_exact,
    needs_sample,
    plain,
)
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.literals import plain_literal

_SLACK = 2.0**-52  # relative; one rounding to float64 when encoding, one when decoding


# --- declarations ------------------------------------------------------------------------------


def check_vocabulary(scheme: Scheme, seed: int) -> None:
    """Tokens are distinct, non-empty and without whitespace; extras come last."""
    name, tokens = "vocabulary", scheme.vocabulary()
    expect(scheme, name, "a second call", scheme.vocabulary() == tokens, True)
    for index, token in enumerate(tokens):
        if not isinstance(token, str) or not token or any(map(str.isspace, token)):
            fail(scheme, name, f"token {index}: got {token!r}, expected a word without whitespace")
        if not isinstance(scheme, ChannelScheme) and ("[" in token or "]" in token):
            fail(scheme, name, f"token {index}: got {token!r}, expected no brackets")
    if len(set(tokens)) != len(tokens):
        twice = next(token for index, token in enumerate(tokens) if token in tokens[:index])
        fail(scheme, name, f"got the token {twice!r} twice, expected distinct ones")
    if not scheme.paper_vocabulary_size:
        fail(scheme, name, f"got {' '.join(tokens)}, expected tokens of numbers before them")


def check_declarations(scheme: Scheme, seed: int) -> None:
    """All declared attributes exist and are consistent."""
    name = "declarations"
    check_declared(scheme, name, revision=int, source=str, golden=tuple, defaults=SchemeDefaults)
    width = scheme.tokens_per_number
    if width is not None and width < 1:
        fail(scheme, name, f"tokens_per_number: got {width}, expected at least 1, or None")
    low, high = scheme.bounds
    if not 0 <= low < high:
        fail(scheme, name, f"bounds: got {low} to {high}, expected 0 <= low < high")
    if not 0 <= scheme.error.size < 1:
        fail(scheme, name, f"error: got {scheme.error.size}, expected 0 to 1")
    check_settings(SCHEMES, scheme, name)


# --- encoding ----------------------------------------------------------------------------------


def check_shapes(scheme: Scheme, seed: int) -> None:
    """The output of ``encode`` has the right types, sizes and ids, even for an empty column."""
    name = "shapes"
    for literals in ([], sample(scheme, seed)):
        numerals = Numerals.of_literals(literals)
        before = numerals.values.copy()
        encoded = scheme.encode(numerals)
        what = f"{len(literals)} numbers"
        same = same_bytes(numerals.values, before)
        expect(scheme, name, f"{what}: input values unchanged", same, True)
        dtypes = {"tokens": "uint32", "lengths": "int32", "outcomes": "uint8"}
        has_channel = isinstance(scheme, ChannelScheme)
        expect(scheme, name, f"{what}: has a channel", encoded.channel is not None, has_channel)
        if encoded.channel is not None:
            dtypes["channel"] = "float64" if is_exact(scheme) else "float32"
        for field, dtype in dtypes.items():
            size = int(encoded.lengths.sum()) if field == "tokens" else len(literals)
            got = form(getattr(encoded, field))
            expect(scheme, name, f"{what}: {field}", got, f"{dtype}[{size}]")
        size = len(scheme.vocabulary())
        width = scheme.tokens_per_number
        for literal, tokens in zip(literals, by_number(encoded), strict=True):
            if not tokens or max(tokens) >= size:
                problem = f"got ids {tokens}, expected ids below {size}"
                fail(scheme, name, f"{shortened(literal)}: {problem}")
            if width is not None and len(tokens) != width:
                problem = f"got {token_names(scheme, tokens)}, expected {width} tokens"
                fail(scheme, name, f"{shortened(literal)}: {problem}")
        if encoded.channel is not None and not np.isfinite(encoded.channel).all():
            at = int(np.flatnonzero(~np.isfinite(encoded.channel))[0])
            problem = f"got {encoded.channel[at]} in the channel, expected a finite value"
            fail(scheme, name, f"{shortened(literals[at])}: {problem}")
        decoded = decoded_numbers(scheme, encoded)
        n = len(literals)
        expect(scheme, name, f"{what}: decoded values", form(decoded.values), f"float64[{n}]")
        expect(scheme, name, f"{what}: failures", form(decoded.failures), f"uint8[{n}]")
        if decoded.written is not None:
            expect(scheme, name, f"{what}: written", len(decoded.written), len(literals))


def _largest_error(scheme: Scheme, value: float) -> float:
    """Return how far a decoded number may be from the encoded value."""
    size, error = abs(value), scheme.error
    return (error.size if error.absolute else error.size * size) + _SLACK * size


def _allowed_outcomes(scheme: Scheme, literal: str, value: float) -> tuple[Outcome, ...]:
    """Return the correct outcomes: more than one near the bounds, where rounding decides."""
    if math.isnan(value):
        return (Outcome.NAN,)
    exact = Decimal(plain_literal(literal))
    twin = exact.is_signed()  # the negative outcome follows the positive one
    if exact.is_infinite():
        return (Outcome(Outcome.POSITIVE_INFINITY + twin),)
    if exact == 0:
        return Outcome.NUMBER, Outcome(Outcome.ZERO + twin)
    if scheme.unit_interval and value < 0:
        return (Outcome.NEGATIVE_OVERFLOW,)
    low, high = scheme.bounds
    size = abs(value)
    if low <= size <= high and (low == 0 or size > 0) and (math.isinf(high) or size < math.inf):
        return (Outcome.NUMBER,)
    lost = Outcome(
        (Outcome.POSITIVE_OVERFLOW if size > high else Outcome.POSITIVE_UNDERFLOW) + twin
    )
    below, above = low - _largest_error(scheme, low), high + _largest_error(scheme, high)
    if below <= size <= above and 0 < size < math.inf:
        return Outcome.NUMBER, lost
    return (lost,)


def check_outcomes(scheme: Scheme, seed: int) -> None:
    """A number within the bounds is ordinary; all others have the right outcome."""
    literals = sample(scheme, seed)
    numerals = Numerals.of_literals(literals)
    outcomes = scheme.encode(numerals).outcomes.tolist()
    for literal, value, outcome in zip(literals, numerals.values.tolist(), outcomes, strict=True):
        allowed = _allowed_outcomes(scheme, literal, value)
        if outcome not in allowed:
            is_outcome = outcome in list(Outcome)
            got = Outcome(outcome).name.lower() if is_outcome else f"outcome {outcome}"
            expected = " or ".join(correct.name.lower() for correct in allowed)
            fail(scheme, "outcomes", f"{shortened(literal)}: got {got}, expected {expected}")


def _decoding_error(
    scheme: Scheme, literal: str, value: float, outcome: int, decoded: DecodedNumbers, index: int
) -> str:
    """Return what is wrong with a decoded number, or an empty string."""
    got, failure = float(decoded.values[index]), Failure(decoded.failures[index])
    shown = f"{got!r} ({failure.name.lower()})" if failure else repr(got)
    if outcome in LOSSES:
        over = outcome in (Outcome.POSITIVE_OVERFLOW, Outcome.NEGATIVE_OVERFLOW)
        wanted = Failure.OVERFLOW if over else Failure.UNDERFLOW
        right = failure == wanted and math.isnan(got)
        return "" if right else f"got {shown}, expected nan ({wanted.name.lower()})"
    if math.isnan(value):
        return "" if math.isnan(got) and not failure else f"got {shown}, expected nan"
    exact = Decimal(plain_literal(literal))
    if failure:
        return f"got {shown}, expected about {value!r}"
    error, absolute = scheme.error
    limit = _largest_error(scheme, value) if error else 0.0
    if absolute and math.isfinite(value) and (value != 0 or scheme.unit_interval):
        near = abs(got - value) <= limit
        return "" if near else f"got {shown}, expected at most {error:.3g} from it"
    if exact != 0 and (value == 0 or (math.isinf(value) and exact.is_finite())):
        # Beyond float64 but representable: then the literal must keep the exact number.
        right = Decimal(plain_literal(decoded.literal(index))) == exact
        return "" if right else f"got {shortened(decoded.literal(index))}, expected the same number"
    if exact == 0 or math.isinf(value):
        kept = got == value and (outcome or math.copysign(1, got) == math.copysign(1, value))
        return "" if kept else f"got {shown}, expected {value!r}"
    low, high = scheme.bounds
    if low <= abs(value) <= high and not abs(got - value) <= limit:
        return f"got {shown}, expected a relative error of at most {error:.3g}"
    return ""


def check_round_trip(scheme: Scheme, seed: int) -> None:
    """decode(encode(x)) is x up to the declared error; zero, NaN and infinities are preserved."""
    check_decoded(scheme, sample(scheme, seed))


def check_decoded(scheme: Scheme, literals: list[str]) -> None:
    """Check the round trip of the given literals."""
    numerals = Numerals.of_literals(literals)
    encoded = scheme.encode(numerals)
    decoded = decoded_numbers(scheme, encoded)
    columns = zip(literals, numerals.values.tolist(), encoded.outcomes.tolist(), strict=True)
    for index, (literal, value, outcome) in enumerate(columns):
        if wrong := _decoding_error(
            scheme, literal, value, outcome=outcome, decoded=decoded, index=index
        ):
            fail(scheme, "round trip", f"{shortened(literal)}: {wrong}")


def check_factors(scheme: Scheme, seed: int) -> None:
    """A number equals its channel times the factor of its token, if the token has a factor."""
    if not isinstance(scheme, ChannelScheme):
        return
    name, factors = "factors", scheme.factors
    size = len(scheme.vocabulary())
    expect(scheme, name, "factors", form(factors), f"float64[{size}]")
    if np.isnan(factors).all():
        return
    expect(scheme, name, "tokens of a number with a factor", scheme.tokens_per_number, 1)
    literals = sample(scheme, seed)
    encoded = scheme.encode(Numerals.of_literals(literals))
    decoded = decoded_numbers(scheme, encoded)
    assert encoded.channel is not None
    with np.errstate(invalid="ignore", over="ignore"):
        products = encoded.channel * factors[encoded.tokens]
    for index in np.flatnonzero(encoded.outcomes == Outcome.NUMBER).tolist():
        value, product = float(decoded.values[index]), float(products[index])
        if not abs(product - value) <= _largest_error(scheme, value):
            problem = f"got {product!r} from channel and factor, expected {value!r} as decoded"
            fail(scheme, name, f"{shortened(literals[index])}: {problem}")


def check_capabilities(scheme: Scheme, seed: int) -> None:
    """Fitting depends only on the counts of literals, and a scheme that is sized to numbers can
    represent them."""
    name, literals = "capabilities", sample(scheme, seed)
    if isinstance(scheme, FittedScheme):
        counts = {literal: index for index, literal in enumerate(literals, 1)}
        unfitted = plain(type(scheme))
        ready = fitted(unfitted, counts)
        reordered = fitted(unfitted, dict(reversed(list(counts.items()))))
        expect(scheme, name, "fitted to the same numbers in another order", reordered, ready)
        expect(scheme, name, "fitted: needs a sample", needs_sample(ready), False)
        expect(scheme, name, "fitted again", fitted(ready, {"1": 1}) == ready, True)
    for largest, decimals in ((99.5, 1), (1e6, 0), (0.0, 0)):
        suited = scheme.suited(largest, decimals)
        what = f"sized to numbers up to {largest:g}"
        if not scheme.defaults.sized:
            expect(scheme, name, what, suited, scheme)
            continue
        expect(scheme, name, what, type(suited).__name__, type(scheme).__name__)
        written = suited.encode(Numerals(np.array([largest]))).outcomes.tolist()
        expect(scheme, name, f"{what}: outcome of {largest:g}", written[0] in LOSSES, False)


def check_idempotence(scheme: Scheme, seed: int) -> None:
    """Encoding a decoded number gives the same tokens again."""
    name, literals = "idempotence", sample(scheme, seed)
    encoded = scheme.encode(Numerals.of_literals(literals))
    decoded = decoded_numbers(scheme, encoded)
    kept = np.flatnonzero(decoded.failures == Failure.NONE).tolist()
    read = [decoded.literal(index) for index in kept]
    again = scheme.encode(Numerals.of_literals(read))
    before, after = by_number(encoded), by_number(again)
    for position, index in enumerate(kept):
        what = f"{literals[index]}, decoded as {read[position]}"
        if after[position] != before[index]:
            got, expected = token_names(scheme, after[position]), token_names(scheme, before[index])
            fail(scheme, name, f"{what}: got {got}, expected {expected}")
        if encoded.channel is not None and again.channel is not None:
            expected_value = encoded.channel[index].item()
            expect(scheme, name, f"{what}: channel", again.channel[position].item(), expected_value)


def check_batches(scheme: Scheme, seed: int) -> None:
    """A number's tokens do not depend on its neighbors or on the offset of its literal."""
    name, literals = "batches", sample(scheme, seed)
    whole = scheme.encode(Numerals.of_literals(literals))
    rng = random.Random(seed)
    cuts = [0, *sorted(rng.sample(range(len(literals)), 7)), len(literals)]
    parts = [
        scheme.encode(Numerals.of_literals(literals[begin:end])) for begin, end in pairwise(cuts)
    ]
    joined = [
        None if fields[0] is None else np.concatenate(fields) for fields in zip(*parts, strict=True)
    ]
    for field, first, second in zip(Encoded._fields, whole, joined, strict=True):
        same = same_bytes(first, second)
        expect(scheme, name, f"{field} of parts equals that of the whole", same, True)

    finite = [literal for literal in literals if literal[-1] not in "nf"]  # not nan, inf
    data, starts, ends = Literals.of([f"x {literal}, " for literal in finite])
    alone = scheme.encode(Numerals.of_literals(finite))
    inside = scheme.encode(Numerals.read(Literals(data, starts + 2, ends - 2)))
    for field, first, second in zip(Encoded._fields, alone, inside, strict=True):
        expect(scheme, name, f"{field} of literals within a text", same_bytes(first, second), True)

    values = Numerals.of_literals(literals).values
    bare = scheme.encode(Numerals(values))
    written = scheme.encode(Numerals.of_literals([repr(value) for value in values.tolist()]))
    for field, first, second in zip(Encoded._fields, bare, written, strict=True):
        expect(
            scheme, name, f"{field} of values equals that of repr", same_bytes(first, second), True
        )


# --- golden rows and digest in the scheme's own file -------------------------------------------


def check_golden(scheme: Scheme, seed: int) -> None:
    """The golden rows (literal, tokens, decoded literal) are reproduced at the default settings."""
    name, ready = "golden", at_defaults(type(scheme))
    literals = [literal for literal, _, _ in ready.golden]
    encoded = ready.encode(Numerals.of_literals(literals))
    decoded = decoded_numbers(ready, encoded)
    for index, (literal, tokens, read) in enumerate(ready.golden):
        written = " ".join(ready.vocabulary()[token] for token in by_number(encoded)[index])
        expect(ready, name, literal, written, tokens)
        failure = Failure(decoded.failures[index])
        got = failure.name.lower() if failure else decoded.literal(index)
        expect(ready, name, f"{literal}, decoded", got, read)


def check_digest(scheme: Scheme, seed: int) -> None:
    """The output at the default settings matches the declared revision."""
    ready = at_defaults(type(scheme))
    got, expected = digest_of(ready), ready.digest
    if got != expected:
        message = f"got {got!r}, expected {expected!r} as declared in the file. "
        if expected:
            message += f"The output differs from revision {ready.revision}: raise `revision` and "
        message += f"set `digest` to {got!r}"
        fail(ready, "digest", message)


#: Also accepts an existing tokenizer: ``bpe,file=PATH``.
build = scheme_of


def check(scheme: Scheme, seed: int = 0) -> list[CheckResult]:
    """Run every check on the scheme, fitted to its golden rows if it can be fitted."""
    return results(CHECKS, fitted_to_golden(scheme), seed)


#: The checks by name, in the order in which they run.
CHECKS: dict[str, Callable[[Scheme, int], None]] = {
    "vocabulary": check_vocabulary,
    "declarations": check_declarations,
    "shapes": check_shapes,
    "outcomes": check_outcomes,
    "round trip": check_round_trip,
    "factors": check_factors,
    "idempotence": check_idempotence,
    "batches": check_batches,
    "garbage": check_garbage,
    "next": check_next,
    "walks": check_walks,
    "states": check_states,
    "capabilities": check_capabilities,
    "intervals": check_intervals,
    "prefixes": check_prefixes,
    "golden": check_golden,
    "digest": check_digest,
}
