"""Contract checks on token sequences: allowed continuations, prefixes and intervals of values."""

import math
import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Int32s, UInt32s
from numtok.contracts import expect, fail
from numtok.encoding.grid import ascending, is_contiguous
from numtok.encoding.sample_literals import (
    FORMS,
    bit_patterns,
    carries_and_ties,
    decades,
    decimals,
)
from numtok.encoding.schemes.base import (
    Bounds,
    ChannelScheme,
    DecodedNumbers,
    Encoded,
    Failure,
    Next,
    Outcome,
    Scheme,
    at_defaults,
    splits_numbers,
)
from numtok.numerals.column import Numerals

_LONGEST_WALK = 24  # tokens after which a walk ends as soon as it may
_STATE_WALKS = 100
_STATES_OF_WALK = 4
_HOPELESS_WALK = 200  # tokens after which a walk that has not ended is abandoned


# --- helpers -----------------------------------------------------------------------------------


def _edges(bounds: Bounds) -> Iterator[str]:
    for edge in bounds:
        if edge == 0 or math.isinf(edge):
            continue
        near = [edge, math.nextafter(edge, 0), math.nextafter(edge, math.inf)]
        factors = (0.1, 0.5, 0.9, 0.99, 0.9995, 0.9999, 1.0001, 1.0005, 1.01, 1.1, 2.0, 10.0)
        for value in near + [edge * factor for factor in factors]:
            if math.isfinite(value):
                yield repr(value)
                yield repr(-value)


def decade_of(edge: float, otherwise: int) -> int:
    """Return the decimal exponent of an edge, or ``otherwise`` if the edge is not positive and
    finite."""
    return math.floor(math.log10(edge)) if 0 < edge < math.inf else otherwise


def sample(scheme: Scheme, seed: int) -> list[str]:
    """Return about 800 literals: literals of all forms, the edges of the scheme's bounds, and
    random numbers."""
    rng = random.Random(seed)
    low, high = scheme.bounds
    return [
        *FORMS,
        *(literal for literal, _, _ in scheme.golden),
        *carries_and_ties(),
        *decades(),
        *_edges(scheme.bounds),
        *bit_patterns(rng, 150),
        *decimals(rng, 200, decade_of(low, -300), decade_of(high, 300)),
        *decimals(rng, 100, -4, 6),
        *decimals(rng, 200 if scheme.unit_interval else 0, -4, -1),
    ]


def shortened(literal: str) -> str:
    """Shorten a literal for a message: if it has more than 48 characters, keep the first and last
    22."""
    return literal if len(literal) <= 48 else f"{literal[:22]}...{literal[-22:]}"


def token_names(scheme: Scheme, tokens: Sequence[int]) -> str:
    """Return tokens in readable form; ids outside the vocabulary are shown as numbers."""
    names = scheme.vocabulary()
    shown = [names[token] if token < len(names) else f"<{token}>" for token in tokens[:24]]
    return " ".join(shown + ["..."] * (len(tokens) > 24)) or "nothing"


def by_number(encoded: Encoded) -> list[tuple[int, ...]]:
    """Return the tokens of each number."""
    tokens, ends = encoded.tokens.tolist(), np.cumsum(encoded.lengths).tolist()
    return [tuple(tokens[end - n : end]) for n, end in zip(encoded.lengths, ends, strict=True)]


def decoded_numbers(scheme: Scheme, encoded: Encoded) -> DecodedNumbers:
    """Decode the tokens and the channel of encoded numbers."""
    return scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)


def token_ids(sequences: Sequence[Sequence[int]]) -> tuple[UInt32s, Int32s]:
    """Return the concatenated tokens of numbers, uint32[sum of lengths], and their lengths,
    int32[n]."""
    flat = [token for tokens in sequences for token in tokens]
    return np.array(flat, np.uint32), np.array([len(tokens) for tokens in sequences], np.int32)


def same_bytes(first: NDArray[Any] | None, second: NDArray[Any] | None) -> bool:
    """Return whether two arrays of any shape have the same bytes, so that NaN equals NaN and -0
    differs from 0. None equals only None."""
    if first is None or second is None:
        return first is second
    return first.tobytes() == second.tobytes()


def form(array: NDArray[Any]) -> str:
    """Return the dtype and shape of an array, such as ``uint8[3]``."""
    return f"{array.dtype}{list(array.shape)}"


# --- the checks --------------------------------------------------------------------------------


def _walked(scheme: Scheme, tokens: Sequence[int]) -> bool:
    """Return whether ``next`` allows these tokens in turn, and the end after them."""
    for index, token in enumerate(tokens):
        if not scheme.next(tuple(tokens[:index])).allowed[token]:
            return False
    return scheme.next(tuple(tokens)).may_end


def _garbage(scheme: Scheme, seed: int) -> list[list[int]]:
    """Return token sequences: empty and random ones, corrupted numbers, ids beyond the
    vocabulary."""
    rng = random.Random(seed)
    size, width = len(scheme.vocabulary()), scheme.tokens_per_number
    beyond = [token for token in (size, size + 1, 65_535, 2**31, 2**32 - 1) if token >= size]
    garbage: list[list[int]] = [[], [], *([token] for token in beyond)]
    for _ in range(150):
        length = width if width and rng.random() < 0.5 else rng.randrange(8)
        garbage.append([rng.randrange(size) for _ in range(length)])
    numbers = by_number(scheme.encode(Numerals.of_literals(sample(scheme, seed)[-150:])))
    for number in numbers:
        tokens = list(number)
        tokens[rng.randrange(len(tokens))] = rng.randrange(size)
        garbage.append(tokens + [rng.randrange(size)] * rng.choice((0, 0, 0, 1)))
    for tokens in rng.sample(garbage[7:], 40):
        garbage.append([*tokens[:-1], rng.choice(beyond)])
    return [*garbage, [], [0] * 3000, [size - 1] * 3000]


def check_garbage(scheme: Scheme, seed: int) -> None:
    """Any tokens are decoded without an error, and sequences that are not numbers are malformed.

    For schemes of fixed length, every sequence that ``next`` forbids is malformed. For all other
    schemes, the empty sequence and sequences with tokens outside the vocabulary are malformed.
    """
    name, garbage = "garbage", _garbage(scheme, seed)
    size, width = len(scheme.vocabulary()), scheme.tokens_per_number
    channel = None
    if isinstance(scheme, ChannelScheme):
        odd = (0.0, -1.5, math.nan, math.inf, -math.inf, 1e-40, 3e38)
        channel = np.array([odd[index % len(odd)] for index in range(len(garbage))], np.float32)
    decoded = scheme.decode(*token_ids(garbage), channel)
    columns = zip(garbage, decoded.failures.tolist(), decoded.values.tolist(), strict=True)
    for index, (tokens, failure, value) in enumerate(columns):
        if failure not in list(Failure):
            problem = f"got failure {failure}, expected a member of Failure"
            fail(scheme, name, f"{token_names(scheme, tokens)}: {problem}")
        if failure and not math.isnan(value):
            problem = f"got {value} with a failure, expected nan"
            fail(scheme, name, f"{token_names(scheme, tokens)}: {problem}")
        outside = not tokens or max(tokens) >= size
        bad = outside or (width and (len(tokens) != width or not _walked(scheme, tokens)))
        if bad and failure != Failure.MALFORMED:
            got = Failure(failure).name.lower() if failure else decoded.literal(index)
            fail(scheme, name, f"{token_names(scheme, tokens)}: got {got}, expected malformed")
    nothing = scheme.decode(*token_ids([]), None if channel is None else channel[:0])
    expect(scheme, name, "no numbers: values", len(nothing.values), 0)


def _forbidden(scheme: Scheme, tokens: tuple[int, ...], step: Next, length: int) -> str:
    """Return what is wrong with ``next`` after the first ``length`` tokens, or an empty string."""
    allowed, may_end, _ = step
    size, end = len(allowed), length == len(tokens)
    fixed = scheme.tokens_per_number is not None
    if not end and not (tokens[length] < size and allowed[tokens[length]]):
        return (
            f"got {token_names(scheme, tokens[length : length + 1])} forbidden, expected it allowed"
        )
    if end and not may_end:
        return "got no end, expected that it may end"
    if not end and may_end and (fixed or not length):
        return "got that it may end, expected more tokens"
    if end and fixed and allowed.any():
        return f"got {allowed.sum()} tokens allowed, expected none"
    return ""


def check_next(scheme: Scheme, seed: int) -> None:
    """``next`` allows every token that ``encode`` writes, and it allows each number to end after
    its last token."""
    name, literals = "next", sample(scheme, seed)
    shape = f"bool[{len(scheme.vocabulary())}]"
    steps: dict[tuple[int, ...], Next] = {}
    written = by_number(scheme.encode(Numerals.of_literals(literals)))
    for literal, tokens in zip(literals, written, strict=True):
        if len(tokens) > _HOPELESS_WALK:
            continue
        for length in range(len(tokens) + 1):
            prefix = tokens[:length]
            if prefix not in steps:
                allowed, may_end, _ = scheme.next(prefix)
                expect(scheme, name, f"{shortened(literal)}: allowed", form(allowed), shape)
                steps[prefix] = Next(allowed, may_end)
            if wrong := _forbidden(scheme, tokens, steps[prefix], length):
                after = token_names(scheme, prefix)
                fail(scheme, name, f"{shortened(literal)}, after {after}: {wrong}")


def _walk(scheme: Scheme, rng: random.Random) -> list[int] | None:
    """Generate a random number that ``next`` allows; None if it does not end."""
    tokens: list[int] = []
    while len(tokens) < _HOPELESS_WALK:
        allowed, may_end, _ = scheme.next(tuple(tokens))
        choices = np.flatnonzero(allowed)
        if may_end and (not len(choices) or len(tokens) > _LONGEST_WALK or rng.random() < 0.2):
            return tokens
        if not len(choices):
            what = f"after {token_names(scheme, tokens)}"
            fail(scheme, "walks", f"{what}: got neither a token nor an end, expected either")
        tokens.append(int(rng.choice(choices.tolist() if len(choices) < 64 else choices)))
    return None


def check_walks(scheme: Scheme, seed: int) -> None:
    """Every sequence that ``next`` allows decodes to a value, an underflow or an overflow."""
    rng = random.Random(seed)
    walks: list[list[int]] = []
    for tried in range(150):
        walk = _walk(scheme, rng)
        if walk is not None:
            walks.append(walk)
        elif tried >= 2 and not walks:
            fail(scheme, "walks", f"got no end within {_HOPELESS_WALK} tokens, expected one")
    channel = None
    if isinstance(scheme, ChannelScheme):
        channel = np.array([rng.uniform(-5, 5) for _ in walks], np.float32)
    failures = scheme.decode(*token_ids(walks), channel).failures.tolist()
    for walk, failure in zip(walks, failures, strict=True):
        if failure == Failure.MALFORMED:
            problem = "got malformed, expected a value, underflow or overflow"
            fail(scheme, "walks", f"{token_names(scheme, walk)}: {problem}")


def check_states(scheme: Scheme, seed: int) -> None:
    """Prefixes with the same length and the same ``state`` allow the same next tokens, in the same
    order of values. Any random continuation of one prefix is also allowed after the other."""
    rng = random.Random(seed)
    firsts: dict[tuple[int, Hashable], tuple[int, ...]] = {}
    for _ in range(_STATE_WALKS):
        walk = tuple(_walk(scheme, rng) or ())
        alike = []
        for length in range(1, len(walk) + 1):
            state = scheme.next(walk[:length]).state
            if state is not None:
                first = firsts.setdefault((length, state), walk[:length])
                alike += [(first, length)] if first != walk[:length] else []
        for first, length in rng.sample(alike, min(_STATES_OF_WALK, len(alike))):
            if wrong := _unlike(scheme, first, walk, length, rng):
                pair = f"{token_names(scheme, first)} and {token_names(scheme, walk[:length])}"
                fail(scheme, "states", f"{pair} have the same state: {wrong}")


def _unlike(
    scheme: Scheme, prefix: tuple[int, ...], walk: tuple[int, ...], length: int, rng: random.Random
) -> str:
    """Return how the continuations of ``prefix`` differ from those of the beginning of a walk, or
    an empty string."""
    other = walk[:length]
    if not np.array_equal(scheme.next(prefix).allowed, scheme.next(other).allowed):
        return "got different tokens allowed next, expected the same"
    order, of_other = ascending(scheme, prefix), ascending(scheme, other)
    if order is not None and of_other is not None and not np.array_equal(order, of_other):
        return "got the next tokens in a different order of values, expected the same"
    for tokens in ((*prefix, *walk[length:]), (*other, *_rest(scheme, prefix, rng))):
        for end in range(length, len(tokens) + 1):
            if wrong := _forbidden(scheme, tokens, scheme.next(tokens[:end]), end):
                return f"after {token_names(scheme, tokens[:end])} {wrong}"
    return ""


def _rest(scheme: Scheme, prefix: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    """Generate random tokens that ``next`` allows after a prefix."""
    tokens = list(prefix)
    while len(tokens) < _HOPELESS_WALK:
        allowed, may_end, _ = scheme.next(tuple(tokens))
        choices = np.flatnonzero(allowed)
        if not len(choices) or (may_end and len(tokens) > _LONGEST_WALK):
            break
        tokens.append(int(rng.choice(choices)))
    return tuple(tokens[len(prefix) :])


def _inside(scheme: Scheme, bounds: Bounds, rng: random.Random) -> list[float]:
    """Return values well within an interval; none if it is a point."""
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
    """An interval contains exactly the values that encode to its tokens."""
    name, rng, literals = "intervals", random.Random(seed), sample(scheme, seed)
    numerals = Numerals.of_literals(literals)
    encoded = scheme.encode(numerals)
    inside: list[tuple[float, tuple[int, ...], Bounds]] = []
    intervals: dict[tuple[int, ...], Bounds] = {}
    divided: Bools | None = None
    if splits_numbers(scheme):
        divided = ~np.isnan(scheme.factors)
    columns = zip(literals, numerals.values.tolist(), by_number(encoded), strict=True)
    for index, (literal, value, tokens) in enumerate(columns):
        if tokens not in intervals:
            bounds = intervals[tokens] = Bounds(*scheme.interval(tokens))
            values = _inside(scheme, bounds, rng)
            if divided is not None and divided[tokens[0]]:
                values = []  # the interval of one exponent lies within that of the next
            if isinstance(scheme, ChannelScheme) and encoded.outcomes[index] == Outcome.NUMBER:
                least, most = scheme.bounds
                values = [inner for inner in values if least <= abs(inner) <= most]
            inside += [(inner, tokens, bounds) for inner in values]
        low, high = intervals[tokens]
        held = math.isnan(low) and math.isnan(high) if math.isnan(value) else low <= value <= high
        if not held:
            what = f"{shortened(literal)}, encoded as {token_names(scheme, tokens)}"
            fail(scheme, name, f"{what}: got {low!r} to {high!r}, expected {value!r} within")
    again = scheme.encode(Numerals(np.array([value for value, _, _ in inside], np.float64)))
    for (value, tokens, bounds), written in zip(inside, by_number(again), strict=True):
        if written != tokens:
            what = f"{value!r}, between {bounds.low!r} and {bounds.high!r}"
            got, expected = token_names(scheme, written), token_names(scheme, tokens)
            fail(scheme, name, f"{what}: got {got}, expected {expected}")


def _badly_divided(scheme: Scheme, prefix: tuple[int, ...]) -> str:
    """Return what is wrong with the order of the continuations of a prefix, or an empty string."""
    order, (low, high) = ascending(scheme, prefix), scheme.interval(prefix)
    allowed = np.flatnonzero(scheme.next(prefix).allowed)
    if order is None or sorted(order.tolist()) != allowed.tolist():
        ordered = "nothing" if order is None else token_names(scheme, order.tolist())
        return f"got {ordered} in order, expected {token_names(scheme, allowed.tolist())}"
    parts = [Bounds(*scheme.interval((*prefix, token))) for token in order.tolist()]
    reached = low
    for token, part in zip(order.tolist(), parts, strict=True):
        name = token_names(scheme, [token])
        if math.isnan(part.low):  # NaN is not on the number line
            continue
        if part.low != reached or part.high < part.low:
            return f"{name} got {part.low!r} to {part.high!r}, expected a start at {reached!r}"
        reached = part.high
    if not math.isnan(low) and reached != high:
        return f"got an end at {reached!r}, expected {high!r}"
    return ""


def check_prefixes(scheme: Scheme, seed: int) -> None:
    """In a contiguous scheme, the continuations of any prefix divide its interval into ascending
    intervals without gaps. For all other schemes, no order is defined."""
    name, ordered = "prefixes", ascending(scheme, ()) is not None
    if not is_contiguous(scheme):
        expect(scheme, name, "has an order", ordered, False)
    elif scheme == at_defaults(type(scheme)):
        expect(scheme, name, "has an order", ordered, True)
    if not ordered:
        return
    written = by_number(scheme.encode(Numerals.of_literals(sample(scheme, seed)[-200:])))
    for prefix in sorted({tokens[:length] for tokens in written for length in range(len(tokens))}):
        if wrong := _badly_divided(scheme, prefix):
            fail(scheme, name, f"after {token_names(scheme, prefix)}: {wrong}")
