"""sample_literals: number literals for checking schemes. They cover all forms, carries and ties,
edge cases, and random numbers."""

import random
import struct
from collections.abc import Iterator

FORMS = (
    *("0", "-0", "0.0", "-0.0", "0e5", "000", "0%", "nan", "inf", "-inf"),
    *("1e400", "-1e400", "1e-400", "-1e-400", "1e309", f"1{'0' * 400}", f"-0.{'0' * 400}1"),
    *("5e-324", "-5e-324", "2.4e-324", "2.225073858507201e-308", "2.2250738585072014e-308"),
    *("1.7976931348623157e308", "-1.7976931348623157e308", "1.797693134862315808e308"),
    *("1", "-1", "7.0", "10", "+7", "007", ".5", "5.e3", "1E5", "1e+05", "-12345.6789e-7"),
    *("1,234", "-1,234,567.5", "23%", "\u221260.2", "\u22121,234.5e-3%", "2024", "-60.2"),
    *("0.1435", "-0.1435", "0.1445", "2.5e-7", "3.5e-7", "1.2345", "0.5", "1.5", "2.5"),
    # Halfway between two float32 and two float64.
    *("16777217", "1.00000005960464477539062500", "9007199254740993", "-9007199254740993.0"),
)


def carries_and_ties() -> Iterator[str]:
    """Yield literals with 1 to 18 digits that carry when they are rounded (9.996), or that lie
    halfway between two rounded numbers."""
    for digits in range(1, 19):
        nines = "9" * digits
        yield f"{nines[0]}.{nines[1:]}6"  # 9.996 -> 1.00e1
        yield f"-{nines}4"
        yield f"{nines}5e-20"
        yield f"0.{'1234567890123456789'[:digits]}5"
        yield f"0.{'2345678901234567890'[:digits]}50"


def decades() -> Iterator[str]:
    """Yield a literal in each decade from 1e-30 to 1e30, with alternating signs. Beyond that range,
    yield a literal in every 13th decade until float64 underflows or overflows."""
    exponents = [*range(-330, -30, 13), *range(-30, 31), *range(31, 330, 13)]
    for count, exponent in enumerate(exponents):
        yield f"{'-' * (count % 2)}{1 + 37 * count % 899 / 100}e{exponent}"


def bit_patterns(rng: random.Random, count: int) -> Iterator[str]:
    """Yield the ``repr`` of ``count`` float64 numbers with random bits. Their exponents are spread
    over the whole range; NaN is possible."""
    for _ in range(count):
        yield repr(struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0])


def decimals(rng: random.Random, count: int, low: int, high: int) -> Iterator[str]:
    """Yield ``count`` random literals with 1 to 40 digits and decimal exponents from ``low`` to
    ``high``."""
    for _ in range(count):
        digits = rng.choice((1, 2, 3, 4, 5, 9, 17, 18, 19, 20, 25, 40))
        mantissa = str(rng.randrange(10 ** (digits - 1), 10**digits))
        sign = rng.choice(("", "-"))
        exponent = rng.randint(low, high)
        if digits > 1 and -5 < exponent < 15 and rng.random() < 0.5:
            point = rng.randrange(1, digits)
            yield f"{sign}{mantissa[:point]}.{mantissa[point:]}"
        else:
            yield f"{sign}{mantissa}e{exponent - digits + 1}"
