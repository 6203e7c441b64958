"""Formatting of values with just enough digits to distinguish them."""

from math import ceil, floor, log10

_DIGITS = 3
_PLAIN = (1e-4, 1e6)  # magnitudes from and below which a value is written without an exponent


def short_value(value: float, step: float = 0.0) -> str:
    """Format a value with three significant digits, or with enough to show a hundredth of ``step``.

    >>> short_value(101325.04), short_value(101325.04, step=10.0)
    ('101,325', '101,325')
    >>> short_value(0.00001234), short_value(8.2e11)
    ('1.23e-5', '8.2e11')
    >>> short_value(0.98484, step=0.0152), short_value(5.67e-14, step=1e-9)
    ('0.9848', '5.67e-14')
    """
    size = abs(value)
    if not size:
        return "0"
    digits = _DIGITS
    if 0 < step < size:
        digits = min(17, _DIGITS - 1 + ceil(log10(size / step)))
        digits = max(digits, _DIGITS)
    whole = floor(log10(size)) + 1  # digits before the point
    if size < _PLAIN[0] or (size >= _PLAIN[1] and digits < whole):
        return compact(f"{value:.{digits - 1}e}")
    text = f"{value:,.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def compact(text: str) -> str:
    """Remove redundant zeros from a number with an exponent: ``"1.230e+08" -> "1.23e8"``."""
    mantissa, _, exponent = text.partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}" if float(mantissa) else "0"
