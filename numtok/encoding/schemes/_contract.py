"""What every scheme must do, as checks that run anywhere: ``numtok check scheme NAME``.

Each check takes a scheme and a seed and raises ``ContractBreak``, one line
that names the scheme, the check, the number, what was got and what was
expected. They hold for a scheme that nobody here has seen, whether its numbers
have one length or many, with a value channel or without. The sample of numbers
is a pure function of the scheme's bounds and the seed::

    for result in check(SCHEMES.build("p1000")):
        print(result.name, result.passed, result.message)
"""

import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numtok.contracts import CheckResult, check_declared, check_settings, expect, fail, results
from numtok.encoding.sample_literals import decade_of, sample
from numtok.encoding.scheme_digest import at_defaults, digest_of, learnt
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import (
    LOSSES,
    SCHEMES,
    Bounds,
    DecodedNumbers,
    Encoded,
    Failure,
    Next,
    Outcome,
    Scheme,
)
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.literals import plain_literal

_LONGEST_WALK = 24  # tokens, after which a walk ends as soon as it may
_HOPELESS_WALK = 200  # tokens, after which a walk that may never end is given up
_SLACK = 2.0**-52  # of a value: one rounding to float64 on the way in, one on the way out


# --- telling what is wrong ---------------------------------------------------------------------


def _short(literal: str) -> str:
    return literal if len(literal) <= 48 else f"{literal[:22]}...{literal[-22:]}"


def _named(scheme: Scheme, tokens: Sequence[int]) -> str:
    """Tokens as a person reads them; ids outside the vocabulary as numbers."""
    names = scheme.vocabulary()
    shown = [names[token] if token < len(names) else f"<{token}>" for token in tokens[:24]]
    return " ".join(shown + ["..."] * (len(tokens) > 24)) or "nothing"


def _split(encoded: Encoded) -> list[tuple[int, ...]]:
    """The tokens of each number."""
    tokens, ends = encoded.tokens.tolist(), np.cumsum(encoded.lengths).tolist()
    return [tuple(tokens[end - n : end]) for n, end in zip(encoded.lengths, ends, strict=True)]


def _decode(scheme: Scheme, encoded: Encoded) -> DecodedNumbers:
    return scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)


def _ids(sequences: Sequence[Sequence[int]]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    flat = [token for tokens in sequences for token in tokens]
    return np.array(flat, np.uint32), np.array([len(tokens) for tokens in sequences], np.int32)


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.tobytes() == other.tobytes()


# --- what a scheme says about itself -----------------------------------------------------------


def check_vocabulary(scheme: Scheme, seed: int) -> None:
    """Distinct, non-empty tokens without whitespace; the paper's come first."""
    name, tokens = "vocabulary", scheme.vocabulary()
    expect(scheme, name, "a second call", scheme.vocabulary() == tokens, True)
    for index, token in enumerate(tokens):
        if not isinstance(token, str) or not token or any(map(str.isspace, token)):
            fail(scheme, name, f"token {index}: got {token!r}, expected a word without whitespace")
        if not scheme.channel and ("[" in token or "]" in token):
            fail(scheme, name, f"token {index}: got {token!r}, expected no bracket in it")
    if len(set(tokens)) != len(tokens):
        twice = next(token for index, token in enumerate(tokens) if token in tokens[:index])
        fail(scheme, name, f"got the token {twice!r} twice, expected distinct ones")
    if not 1 <= scheme.paper_vocabulary_size <= len(tokens):
        allowed = f"1 to {len(tokens)}, the size of the vocabulary"
        fail(
            scheme,
            name,
            f"paper_vocabulary_size: got {scheme.paper_vocabulary_size}, expected {allowed}",
        )


def check_declarations(scheme: Scheme, seed: int) -> None:
    """Everything that is declared is there and makes sense."""
    name = "declarations"
    texts = dict.fromkeys(("source", "embedder", "head", "normalizer"), str)
    check_declared(scheme, name, revision=int, golden=tuple, **texts)
    if not isinstance(getattr(type(scheme), "digest", None), str):
        fail(scheme, name, "digest: got none, expected that of scheme_digest.digest_of")
    width = scheme.tokens_per_number
    if width is not None and width < 1:
        fail(scheme, name, f"tokens_per_number: got {width}, expected at least 1, or None")
    low, high = scheme.bounds
    if not 0 <= low < high:
        fail(scheme, name, f"bounds: got {low} to {high}, expected 0 <= low < high")
    if not 0 <= scheme.relative_error < 1:
        fail(scheme, name, f"relative_error: got {scheme.relative_error}, expected 0 to 1")
    check_settings(SCHEMES, scheme, name)


# --- encoding ----------------------------------------------------------------------------------


def check_shapes(scheme: Scheme, seed: int) -> None:
    """Types, sizes and ids of what encode gives, also for no number at all."""
    name = "shapes"
    for literals in ([], sample(scheme, seed)):
        numerals = Numerals.of_literals(literals)
        before = numerals.values.copy()
        encoded = scheme.encode(numerals)
        what = f"{len(literals)} numbers"
        expect(
            scheme, name, f"{what}: values left as they were", _same(numerals.values, before), True
        )
        types: list[tuple[str, Any, type]] = [
            ("tokens", encoded.tokens, np.uint32),
            ("lengths", encoded.lengths, np.int32),
            ("outcomes", encoded.outcomes, np.uint8),
        ]
        expect(scheme, name, f"{what}: has a channel", encoded.channel is not None, scheme.channel)
        if encoded.channel is not None:
            types.append(("channel", encoded.channel, np.float32))
        for field, column, dtype in types:
            size = int(encoded.lengths.sum()) if field == "tokens" else len(literals)
            got = f"{column.dtype}{list(column.shape)}"
            expect(scheme, name, f"{what}: {field}", got, f"{np.dtype(dtype)}[{size}]")
        size = len(scheme.vocabulary())
        width = scheme.tokens_per_number
        for literal, tokens in zip(literals, _split(encoded), strict=True):
            if not tokens or max(tokens) >= size:
                told = f"got ids {tokens}, expected some below {size}"
                fail(scheme, name, f"{_short(literal)}: {told}")
            if width is not None and len(tokens) != width:
                told = f"got {_named(scheme, tokens)}, expected {width} tokens"
                fail(scheme, name, f"{_short(literal)}: {told}")
        if encoded.channel is not None and not np.isfinite(encoded.channel).all():
            at = int(np.flatnonzero(~np.isfinite(encoded.channel))[0])
            told = f"got {encoded.channel[at]} in the channel, expected a finite value"
            fail(scheme, name, f"{_short(literals[at])}: {told}")
        decoded = _decode(scheme, encoded)
        got = f"{decoded.values.dtype}{list(decoded.values.shape)}"
        expect(scheme, name, f"{what}: decoded values", got, f"float64[{len(literals)}]")
        got = f"{decoded.failures.dtype}{list(decoded.failures.shape)}"
        expect(scheme, name, f"{what}: failures", got, f"uint8[{len(literals)}]")
        if decoded.written is not None:
            expect(scheme, name, f"{what}: written", len(decoded.written), len(literals))


def _allowed_outcomes(scheme: Scheme, literal: str, value: float) -> tuple[Outcome, ...]:
    """The outcomes that are right; more than one where rounding decides, beside the bounds."""
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
    size, rounding = abs(value), scheme.relative_error + _SLACK
    if low <= size <= high and (low == 0 or size > 0) and (math.isinf(high) or size < math.inf):
        return (Outcome.NUMBER,)
    lost = Outcome(
        (Outcome.POSITIVE_OVERFLOW if size > high else Outcome.POSITIVE_UNDERFLOW) + twin
    )
    if low * (1 - rounding) <= size <= high * (1 + rounding) and 0 < size < math.inf:
        return Outcome.NUMBER, lost
    return (lost,)


def check_outcomes(scheme: Scheme, seed: int) -> None:
    """A number within the bounds is an ordinary one, and every other is called what it is."""
    literals = sample(scheme, seed)
    numerals = Numerals.of_literals(literals)
    outcomes = scheme.encode(numerals).outcomes.tolist()
    for literal, value, outcome in zip(literals, numerals.values.tolist(), outcomes, strict=True):
        allowed = _allowed_outcomes(scheme, literal, value)
        if outcome not in allowed:
            known = outcome in list(Outcome)
            got = Outcome(outcome).name.lower() if known else f"outcome {outcome}"
            expected = " or ".join(one.name.lower() for one in allowed)
            fail(scheme, "outcomes", f"{_short(literal)}: got {got}, expected {expected}")


def _decoding_error(
    scheme: Scheme, literal: str, value: float, outcome: int, decoded: DecodedNumbers, index: int
) -> str:
    """What is wrong with one number read back, or an empty string."""
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
    if scheme.unit_interval and math.isfinite(value):
        if abs(got - value) <= scheme.relative_error + _SLACK:
            return ""
        return f"got {shown}, expected at most {scheme.relative_error:.3g} from it"
    if exact != 0 and (value == 0 or (math.isinf(value) and exact.is_finite())):
        # Beyond float64, yet written: then the literal must say it.
        right = Decimal(plain_literal(decoded.literal(index))) == exact
        return "" if right else f"got {_short(decoded.literal(index))}, expected the same number"
    if exact == 0 or math.isinf(value):
        kept = got == value and (outcome or math.copysign(1, got) == math.copysign(1, value))
        return "" if kept else f"got {shown}, expected {value!r}"
    low, high = scheme.bounds
    limit = scheme.relative_error + (_SLACK if scheme.relative_error else 0.0)
    if low <= abs(value) <= high and not abs(got - value) <= limit * abs(value):
        return f"got {shown}, expected at most {scheme.relative_error:.3g} from it, relatively"
    return ""


def check_round_trip(scheme: Scheme, seed: int) -> None:
    """decode(encode(x)) is x to the declared error; zero, NaN and infinities stay what they are."""
    literals = sample(scheme, seed)
    numerals = Numerals.of_literals(literals)
    encoded = scheme.encode(numerals)
    decoded = _decode(scheme, encoded)
    columns = zip(literals, numerals.values.tolist(), encoded.outcomes.tolist(), strict=True)
    for index, (literal, value, outcome) in enumerate(columns):
        if wrong := _decoding_error(scheme, literal, value, outcome, decoded, index):
            fail(scheme, "round trip", f"{_short(literal)}: {wrong}")


def check_factors(scheme: Scheme, seed: int) -> None:
    """A number is its channel times the factor of its token, where that has one."""
    name, factors = "factors", scheme.factors
    size = len(scheme.vocabulary())
    got = f"{factors.dtype}{list(factors.shape)}"
    expect(scheme, name, "factors", got, f"float64[{size}]")
    if np.isnan(factors).all():
        return
    width = 1 if scheme.channel else None
    expect(scheme, name, "has a channel, and one token a number", width, scheme.tokens_per_number)
    literals = sample(scheme, seed)
    encoded = scheme.encode(Numerals.of_literals(literals))
    decoded = _decode(scheme, encoded)
    assert encoded.channel is not None
    with np.errstate(invalid="ignore", over="ignore"):
        products = encoded.channel * factors[encoded.tokens]
    limit = scheme.relative_error + _SLACK
    for index in np.flatnonzero(encoded.outcomes == Outcome.NUMBER).tolist():
        value, product = float(decoded.values[index]), float(products[index])
        if not abs(product - value) <= limit * abs(value):
            told = f"got {product!r} of channel and factor, expected {value!r} as read back"
            fail(scheme, name, f"{_short(literals[index])}: {told}")


def check_idempotence(scheme: Scheme, seed: int) -> None:
    """What was read back is written as the same tokens again."""
    name, literals = "idempotence", sample(scheme, seed)
    encoded = scheme.encode(Numerals.of_literals(literals))
    decoded = _decode(scheme, encoded)
    kept = np.flatnonzero(decoded.failures == Failure.NONE).tolist()
    read = [decoded.literal(index) for index in kept]
    again = scheme.encode(Numerals.of_literals(read))
    before, after = _split(encoded), _split(again)
    for place, index in enumerate(kept):
        what = f"{literals[index]}, read back as {read[place]}"
        if after[place] != before[index]:
            got, expected = _named(scheme, after[place]), _named(scheme, before[index])
            fail(scheme, name, f"{what}: got {got}, expected {expected}")
        if encoded.channel is not None and again.channel is not None:
            expected_value = encoded.channel[index].item()
            expect(scheme, name, f"{what}: channel", again.channel[place].item(), expected_value)


def check_batches(scheme: Scheme, seed: int) -> None:
    """A number's tokens depend on nothing beside it, nor on where its literal lies."""
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
    for field, one, other in zip(Encoded._fields, whole, joined, strict=True):
        expect(scheme, name, f"{field} of parts equal to the whole's", _same(one, other), True)

    found = [literal for literal in literals if literal[-1] not in "nf"]  # not nan, inf
    data, starts, ends = Literals.of([f"x {literal}, " for literal in found])
    alone = scheme.encode(Numerals.of_literals(found))
    inside = scheme.encode(Numerals.read(Literals(data, starts + 2, ends - 2)))
    for field, one, other in zip(Encoded._fields, alone, inside, strict=True):
        expect(scheme, name, f"{field} of literals within a text", _same(one, other), True)

    values = Numerals.of_literals(literals).values
    bare = scheme.encode(Numerals(values))
    written = scheme.encode(Numerals.of_literals([repr(value) for value in values.tolist()]))
    for field, one, other in zip(Encoded._fields, bare, written, strict=True):
        expect(scheme, name, f"{field} of values, as of their repr", _same(one, other), True)


# --- decoding ----------------------------------------------------------------------------------


def _walked(scheme: Scheme, tokens: Sequence[int]) -> bool:
    """True if ``next`` allows these tokens of the vocabulary, in turn, and the end after them."""
    for index, token in enumerate(tokens):
        if not scheme.next(tuple(tokens[:index])).allowed[token]:
            return False
    return scheme.next(tuple(tokens)).may_end


def _garbage(scheme: Scheme, seed: int) -> list[list[int]]:
    """Token sequences: none, random ones, spoilt numbers, some with ids beyond the vocabulary."""
    rng = random.Random(seed)
    size, width = len(scheme.vocabulary()), scheme.tokens_per_number
    beyond = [token for token in (size, size + 1, 65_535, 2**31, 2**32 - 1) if token >= size]
    garbage: list[list[int]] = [[], [], *([token] for token in beyond)]
    for _ in range(150):
        length = width if width and rng.random() < 0.5 else rng.randrange(8)
        garbage.append([rng.randrange(size) for _ in range(length)])
    numbers = _split(scheme.encode(Numerals.of_literals(sample(scheme, seed)[-150:])))
    for number in numbers:
        tokens = list(number)
        tokens[rng.randrange(len(tokens))] = rng.randrange(size)
        garbage.append(tokens + [rng.randrange(size)] * rng.choice((0, 0, 0, 1)))
    for tokens in rng.sample(garbage[7:], 40):
        garbage.append([*tokens[:-1], rng.choice(beyond)])
    return [*garbage, [], [0] * 3000, [size - 1] * 3000]


def check_garbage(scheme: Scheme, seed: int) -> None:
    """Any tokens at all are read without an error, and those that are no number are malformed.

    Where every number has one length, that is all that ``next`` forbids; else no tokens, and
    tokens outside the vocabulary.
    """
    name, garbage = "garbage", _garbage(scheme, seed)
    size, width = len(scheme.vocabulary()), scheme.tokens_per_number
    channel = None
    if scheme.channel:
        odd = (0.0, -1.5, math.nan, math.inf, -math.inf, 1e-40, 3e38)
        channel = np.array([odd[index % len(odd)] for index in range(len(garbage))], np.float32)
    decoded = scheme.decode(*_ids(garbage), channel)
    columns = zip(garbage, decoded.failures.tolist(), decoded.values.tolist(), strict=True)
    for index, (tokens, failure, value) in enumerate(columns):
        if failure not in list(Failure):
            told = f"got failure {failure}, expected one of Failure"
            fail(scheme, name, f"{_named(scheme, tokens)}: {told}")
        if failure and not math.isnan(value):
            told = f"got {value} beside a failure, expected nan"
            fail(scheme, name, f"{_named(scheme, tokens)}: {told}")
        outside = not tokens or max(tokens) >= size
        bad = outside or (width and (len(tokens) != width or not _walked(scheme, tokens)))
        if bad and failure != Failure.MALFORMED:
            got = Failure(failure).name.lower() if failure else decoded.literal(index)
            fail(scheme, name, f"{_named(scheme, tokens)}: got {got}, expected malformed")
    nothing = scheme.decode(*_ids([]), None if channel is None else channel[:0])
    expect(scheme, name, "no numbers: values", len(nothing.values), 0)


def _forbidden(scheme: Scheme, tokens: tuple[int, ...], step: Next, length: int) -> str:
    """What is wrong with ``next`` after the first ``length`` of ``tokens``, or an empty string."""
    allowed, may_end, _ = step
    size, end = len(allowed), length == len(tokens)
    fixed = scheme.tokens_per_number is not None
    if not end and not (tokens[length] < size and allowed[tokens[length]]):
        return f"got {_named(scheme, tokens[length : length + 1])} forbidden, expected it allowed"
    if end and not may_end:
        return "got no end, expected that it may end"
    if not end and may_end and (fixed or not length):
        return "got that it may end, expected more tokens"
    if end and fixed and allowed.any():
        return f"got {allowed.sum()} tokens allowed, expected none"
    return ""


def check_next(scheme: Scheme, seed: int) -> None:
    """``next`` allows whatever encode writes, token by token, and the end exactly at its end."""
    name, literals = "next", sample(scheme, seed)
    shape = f"bool[{len(scheme.vocabulary())}]"
    known: dict[tuple[int, ...], Next] = {}
    written = _split(scheme.encode(Numerals.of_literals(literals)))
    for literal, tokens in zip(literals, written, strict=True):
        if len(tokens) > _HOPELESS_WALK:
            continue
        for length in range(len(tokens) + 1):
            prefix = tokens[:length]
            if prefix not in known:
                allowed, may_end, _ = scheme.next(prefix)
                got = f"{allowed.dtype}{list(allowed.shape)}"
                expect(scheme, name, f"{_short(literal)}: allowed", got, shape)
                known[prefix] = Next(allowed, may_end)
            if wrong := _forbidden(scheme, tokens, known[prefix], length):
                after = _named(scheme, prefix)
                fail(scheme, name, f"{_short(literal)}, after {after}: {wrong}")


def _walk(scheme: Scheme, rng: random.Random) -> list[int] | None:
    """A random number that ``next`` allows; None if it would not end."""
    tokens: list[int] = []
    while len(tokens) < _HOPELESS_WALK:
        allowed, may_end, _ = scheme.next(tuple(tokens))
        choices = np.flatnonzero(allowed)
        if may_end and (not len(choices) or len(tokens) > _LONGEST_WALK or rng.random() < 0.2):
            return tokens
        if not len(choices):
            what = f"after {_named(scheme, tokens)}"
            fail(scheme, "walks", f"{what}: got neither a token nor an end, expected one of them")
        tokens.append(int(rng.choice(choices.tolist() if len(choices) < 64 else choices)))
    return None


def check_walks(scheme: Scheme, seed: int) -> None:
    """Whatever ``next`` allows is read as a value, or as a named under- or overflow."""
    rng = random.Random(seed)
    walks: list[list[int]] = []
    for tried in range(150):
        walk = _walk(scheme, rng)
        if walk is not None:
            walks.append(walk)
        elif tried >= 2 and not walks:
            fail(scheme, "walks", f"got no end within {_HOPELESS_WALK} tokens, expected one")
    channel = None
    if scheme.channel:
        channel = np.array([rng.uniform(-5, 5) for _ in walks], np.float32)
    failures = scheme.decode(*_ids(walks), channel).failures.tolist()
    for walk, failure in zip(walks, failures, strict=True):
        if failure == Failure.MALFORMED:
            told = "got malformed, expected a value, underflow or overflow"
            fail(scheme, "walks", f"{_named(scheme, walk)}: {told}")


def _inside(scheme: Scheme, bounds: Bounds, rng: random.Random) -> list[float]:
    """Values well within an interval; none where it is a point."""
    low, high = bounds
    if not low < high:
        return []
    if math.isinf(low) and math.isinf(high):
        least, most = scheme.bounds
        first, last = decade_of(least, -300) + 1, decade_of(most, 300)
        return [rng.choice((-1, 1)) * 10 ** rng.uniform(first, last) for _ in range(5)]
    if math.isinf(low) or math.isinf(high):
        edge = low if math.isinf(high) else high
        away = 1.0 if math.isinf(high) else -1.0
        steps = [edge + away * abs(edge) * 10 ** rng.uniform(-1, 6) for _ in range(4)]
        return [value for value in steps if math.isfinite(value) and value != edge]
    steps = [low + (high - low) * rng.uniform(0.25, 0.75) for _ in range(4)]
    return [value for value in steps if low < value < high]


def check_intervals(scheme: Scheme, seed: int) -> None:
    """An interval holds what is written as its tokens, and nothing that is written otherwise."""
    name, rng, literals = "intervals", random.Random(seed), sample(scheme, seed)
    numerals = Numerals.of_literals(literals)
    encoded = scheme.encode(numerals)
    inside: list[tuple[float, tuple[int, ...], Bounds]] = []
    intervals: dict[tuple[int, ...], Bounds] = {}
    columns = zip(literals, numerals.values.tolist(), _split(encoded), strict=True)
    for index, (literal, value, tokens) in enumerate(columns):
        if tokens not in intervals:
            bounds = intervals[tokens] = Bounds(*scheme.interval(tokens))
            values = _inside(scheme, bounds, rng)
            if scheme.splits and not np.isnan(scheme.factors[tokens[0]]):
                values = []  # the interval of one exponent lies within that of the next
            if scheme.channel and encoded.outcomes[index] == Outcome.NUMBER:
                least, most = scheme.bounds
                values = [one for one in values if least <= abs(one) <= most]
            inside += [(one, tokens, bounds) for one in values]
        low, high = intervals[tokens]
        held = math.isnan(low) and math.isnan(high) if math.isnan(value) else low <= value <= high
        if not held:
            what = f"{_short(literal)}, written {_named(scheme, tokens)}"
            fail(scheme, name, f"{what}: got {low!r} to {high!r}, expected {value!r} within")
    again = scheme.encode(Numerals(np.array([value for value, _, _ in inside], np.float64)))
    for (value, tokens, bounds), written in zip(inside, _split(again), strict=True):
        if written != tokens:
            what = f"{value!r}, between {bounds.low!r} and {bounds.high!r}"
            got, expected = _named(scheme, written), _named(scheme, tokens)
            fail(scheme, name, f"{what}: got {got}, expected {expected}")


def _badly_divided(scheme: Scheme, prefix: tuple[int, ...]) -> str:
    """What is wrong with the order of what may follow a prefix, or an empty string."""
    order, (low, high) = scheme.ascending(prefix), scheme.interval(prefix)
    allowed = np.flatnonzero(scheme.next(prefix).allowed)
    if order is None or sorted(order.tolist()) != allowed.tolist():
        told = "nothing" if order is None else _named(scheme, order.tolist())
        return f"got {told} in order, expected {_named(scheme, allowed.tolist())}"
    parts = [Bounds(*scheme.interval((*prefix, token))) for token in order.tolist()]
    reached = low
    for token, part in zip(order.tolist(), parts, strict=True):
        name = _named(scheme, [token])
        if math.isnan(part.low):  # NaN is nowhere on the line
            continue
        if part.low != reached or part.high < part.low:
            return f"{name} got {part.low!r} to {part.high!r}, expected it to begin at {reached!r}"
        reached = part.high
    if not math.isnan(low) and reached != high:
        return f"got an end at {reached!r}, expected {high!r}"
    return ""


def check_prefixes(scheme: Scheme, seed: int) -> None:
    """What may follow any tokens of a contiguous scheme divides their interval into intervals that
    ascend without a gap. No other scheme has an order, and none where several copies decide."""
    name, ordered = "prefixes", scheme.ascending(()) is not None
    if not scheme.contiguous:
        expect(scheme, name, "has an order", ordered, False)
    elif scheme == at_defaults(scheme):
        expect(scheme, name, "has an order", ordered, True)
    if not ordered:
        return
    written = _split(scheme.encode(Numerals.of_literals(sample(scheme, seed)[-200:])))
    for prefix in sorted({tokens[:length] for tokens in written for length in range(len(tokens))}):
        if wrong := _badly_divided(scheme, prefix):
            fail(scheme, name, f"after {_named(scheme, prefix)}: {wrong}")


# --- what is written down in the scheme's own file ---------------------------------------------


def check_golden(scheme: Scheme, seed: int) -> None:
    """The rows (literal, tokens, literal read back) hold at the default settings."""
    name, plain = "golden", at_defaults(scheme)
    literals = [literal for literal, _, _ in plain.golden]
    encoded = plain.encode(Numerals.of_literals(literals))
    decoded = _decode(plain, encoded)
    for index, (literal, tokens, read) in enumerate(plain.golden):
        written = " ".join(plain.vocabulary()[token] for token in _split(encoded)[index])
        expect(plain, name, literal, written, tokens)
        failure = Failure(decoded.failures[index])
        got = failure.name.lower() if failure else decoded.literal(index)
        expect(plain, name, f"{literal}, read back", got, read)


def check_digest(scheme: Scheme, seed: int) -> None:
    """The output at the default settings is that of the declared revision."""
    plain = at_defaults(scheme)
    got, expected = digest_of(plain), plain.digest
    if got != expected:
        told = f"got {got!r}, expected {expected!r} as the file says; "
        if expected:
            told += f"the output is not that of revision {plain.revision}: raise `revision` and "
        told += f"set `digest` to {got!r}"
        fail(plain, "digest", told)


#: A given tokenizer is a scheme as well: ``bpe,file=PATH``.
build = scheme_of


def check(scheme: Scheme, seed: int = 0) -> list[CheckResult]:
    """Run every check on the scheme :func:`learnt`."""
    return results(CHECKS, learnt(scheme), seed)


#: The checks by name, in the order in which they are run and shown.
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
    "intervals": check_intervals,
    "prefixes": check_prefixes,
    "golden": check_golden,
    "digest": check_digest,
}
