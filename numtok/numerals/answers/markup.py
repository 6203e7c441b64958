"""Rewrites generated texts so that the scanner finds the numbers that a reader sees.

In answers of language models, numbers are surrounded by LaTeX, Markdown, currency signs and powers
of units. These hide digits from the scanner (``1{,}234``, ``_5_``), separate a sign from its number
(``-$5``), or add numbers that are not the answer (``25 m^2``).
"""

import re
import unicodedata

_SIGN = "[-+\u2212]"
_POWER = rf"(?:\{{\s*({_SIGN}?[0-9]+)\s*\}}|({_SIGN}?[0-9]+))"
_SUP = rf"<sup>\s*({_SIGN}?[0-9]+)\s*</sup>"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_TEN_TO_THE = rf"10\s*(?:(?:\^|\*\*)\s*{_POWER}|{_SUP}|([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"


def _power(match: re.Match[str]) -> str:
    """Return the digits of the power of ten that a match ends with."""
    power: str = next(filter(None, match.groups()))
    return power.translate(_SUPERSCRIPTS).replace("\u2212", "-")


def _exponent(match: re.Match[str]) -> str:
    return f"e{_power(match)}"


def _power_of_ten(match: re.Match[str]) -> str:
    return f"1e{_power(match)}"


#: Patterns and replacements, applied in this order.
_REWRITTEN = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\{,\}", ","),  # 1{,}234
        (r"\\!", ""),  # 1,\!234
        (r"(?<=[0-9])\\[,;:](?=[0-9]{3}(?![0-9]))", ""),  # 1\,234
        (r"\\([$%#&_])", r"\1"),
        (rf"({_SIGN})[$€£¥₹]\s?(?=[.0-9])", r"\1"),  # -$5
        (r"(?<=[0-9])(?=\\[dt]?frac\{)", " "),  # 1\frac{1}{2}
        (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2"),
        # Scientific notation: 6.02 \times 10^{23}, 3 x 10**-4, 10⁵.
        (rf"(?<=[0-9])\s*(?:[×x*·⋅]|\\times|\\cdot)\s*{_TEN_TO_THE}", _exponent),
        (rf"(?<![\w.,^)}}\]]){_TEN_TO_THE}", _power_of_ten),
        # Powers and indices of units and variables: m^2, \text{s}^{-1}, a_{10}.
        (rf"(?<=[A-Za-zµΩ°)}}])\s?(?:\^\s*(?:\{{[^{{}}]*\}}|{_SIGN}?[0-9]+)|{_SUP})", ""),
        (r"_\{[^{}]*\}|<sub>[^<]*</sub>", ""),
        # Emphasis with underscores, which the scanner takes for identifiers: _5_, __5__.
        (rf"(?<!\w)_{{1,3}}(?={_SIGN}?[.0-9])", ""),
        (r"(?<=[0-9%])_{1,3}(?!\w)", ""),
    )
]


class _AsciiForms(dict[int, str]):
    """Mapping of characters to ASCII digits and punctuation, computed on first use. It contains the
    digits of every script and full-width punctuation; other characters are unchanged."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        digit = unicodedata.decimal(character, None)
        if digit is not None:
            self[code] = str(digit)
        elif 0xFF01 <= code <= 0xFF5E:  # the full-width forms of ! to ~
            self[code] = chr(code - 0xFEE0)
        else:
            self[code] = character
        return self[code]


_ASCII_FORMS = _AsciiForms({0x066B: ".", 0x066C: ","})  # the Arabic separators


def without_markup(text: str) -> str:
    r"""Return a generated text without markup around its numbers, in the notation that the scanner
    (:mod:`numtok.numerals.scan`) reads.

    Digits of other scripts become ASCII digits.

    >>> without_markup(r"It is $1{,}234 \times 10^{3}$ m^2, or **-$5**.")
    'It is $1,234e3$ m, or **-5**.'
    """
    if not text.isascii():
        text = text.translate(_ASCII_FORMS)
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    return text
