"""The digest of a scheme's output, by which a change without a new revision is noticed."""

import hashlib
import random

from numtok.encoding.sample_literals import FORMS, bit_patterns, carries_and_ties, decades, decimals
from numtok.encoding.schemes.base import Scheme
from numtok.numerals.column import Numerals


def learnt(scheme: Scheme) -> Scheme:
    """The scheme as learnt from the literals of its golden rows, each once; itself where it has
    nothing to learn."""
    return scheme.fit({literal: 1 for literal, _, _ in scheme.golden})


def at_defaults(scheme: Scheme) -> Scheme:
    """The scheme without settings, :func:`learnt`: what its golden rows and its digest are of."""
    try:
        plain = type(scheme)()
    except TypeError:  # a setting has no default
        plain = scheme
    return learnt(plain)


def digest_of(scheme: Scheme) -> str:
    """16 hexadecimal digits of the tokens, lengths and channel of a fixed sample of numbers, by the
    scheme :func:`learnt`."""
    scheme, rng = learnt(scheme), random.Random(0)
    literals = [*FORMS, *carries_and_ties(), *decades()]
    literals += [*bit_patterns(rng, 500), *decimals(rng, 500, -10, 12)]
    tokens, lengths, _, channel = scheme.encode(Numerals.of_literals(literals))
    digest = hashlib.sha256(tokens.astype("<u4").tobytes() + lengths.astype("<i4").tobytes())
    digest.update(
        b"" if channel is None else channel.astype(channel.dtype.newbyteorder("<")).tobytes()
    )
    return digest.hexdigest()[:16]
