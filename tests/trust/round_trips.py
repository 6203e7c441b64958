"""Encoding and decoding of numbers and texts with every scheme."""

from contextlib import nullcontext
from functools import cache
from random import Random

from numtok.encoding.sample_literals import bit_patterns, decimals
from numtok.encoding.schemes._contract import check_decoded
from numtok.encoding.schemes._contract_of_tokens import decade_of
from numtok.encoding.schemes.base import SCHEMES, Scheme, fitted_to_golden
from tests.encoding import test_codec as codecs
from tests.numerals.test_numerals import ALL_POLICIES, FRAGMENTS
from tests.trust.promise import Promise

_TEXTS = 0.1  # fraction of the cases that use texts
_NUMBERS = 5_000
_KEYWORDS = ("[NUM]", "[\\NUM]", "[MASK]", "[END]", "[NUM", "]", "[NUM:-]", "\\", "nan", "\x00")


@cache
def _scheme(name: str) -> Scheme:
    return fitted_to_golden(SCHEMES.build(SCHEMES.checked_at(name)))


def round_trip(_: None, random: Random) -> int:
    """Encode and decode numbers of one scheme, or texts with numbers."""
    name = random.choice(SCHEMES.names())
    if random.random() < _TEXTS:
        return _texts(name, random)
    scheme = _scheme(name)
    low, high = scheme.bounds
    numbers = [
        *bit_patterns(random, _NUMBERS),
        *decimals(random, _NUMBERS, decade_of(low, -300), decade_of(high, 300)),
        *decimals(random, _NUMBERS, *((-4, -1) if scheme.unit_interval else (-4, 6))),
    ]
    check_decoded(scheme, numbers)
    return len(numbers)


def _texts(name: str, random: Random) -> int:
    """Check that text is decoded byte for byte and numbers as their scheme decodes them."""
    policy = random.choice(ALL_POLICIES).spec()
    codec = codecs.codec(name, random.choice(codecs.TEXT_TOKENIZER_SPECS), numerals=policy)
    texts = [
        "".join(random.choices((*FRAGMENTS, *_KEYWORDS), k=random.randrange(30)))
        for _ in range(100)
    ]
    encoded = codecs.encode(codec, texts)
    for text, decoded in zip(texts, codecs.decoded(codec, encoded), strict=True):
        is_kept = name == "digits" and policy in ("default", "xval", "thousands,percent")
        expected = text if is_kept else codecs.expected(codec, text)
        assert decoded == expected, f"{name}, {policy}: {text!r}: {decoded!r}"
    return int(encoded.number_rows[-1])


ROUND_TRIPS = Promise(
    name="round-trips",
    says="Every scheme decodes a number within its declared error. Text between numbers comes "
    "back byte for byte; `digits` gives every text back as it was.",
    how="Random numbers of all magnitudes per scheme, against the exact decimal value; one case "
    "in ten encodes and decodes texts with keywords and numbers of any notation.",
    aim=10_000_000,
    unit="numbers",
    world=lambda folder: nullcontext(),
    case=round_trip,
)
