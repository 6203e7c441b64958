"""Units, currencies and quantities that may stand right before a number, as in ``pH6.5`` and
``EUR250``."""

import numpy as np

from numtok.kernels import byte_at, helper
from numtok.numerals._identifiers import other_digit_before
from numtok.numerals.notations._text import codes, ends_word, index_in, is_ascii_letter
from numtok.numerals.scan import is_digit_byte, letter_before

CURRENCIES = (
    *("AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP"),
    *("EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY", "KES", "KRW", "MXN", "MYR", "NGN"),
    *("NOK", "NZD", "PEN", "PKR", "PLN", "RON", "RUB", "Rs", "SAR", "SEK", "SGD", "THB", "TRY"),
    *("TWD", "UAH", "USD", "VND", "ZAR"),
)
QUANTITIES = (
    *("ALT", "AST", "BMI", "BP", "BUN", "CRP", "Ca", "Cl", "Cr", "DBP", "ESR", "GCS", "Glu"),
    *("HDL", "HR", "Hb", "Hct", "K", "LDL", "MAP", "Mg", "Na", "PLT", "PSA", "RBC", "RR", "SBP"),
    *("TSH", "WBC", "pH"),
)
UNITS = (
    *("GHz", "GW", "MHz", "MW", "cm", "dB", "kHz", "kW", "kWh", "kg", "km", "mL", "mg", "ml"),
    "mm",
)

_CODES = codes((*CURRENCIES, *QUANTITIES, *UNITS))
_LONGEST = 7  # letters; longer words are not in the list
_EIGHT = np.uint64(8)
_SMALL_A, _MULTIPLES = ord("a"), tuple(b"KMBT")


@helper
def unit_before(data, begin, i):  # type: ignore[no-untyped-def]
    """Return whether the word that ends before ``i`` is a unit, a currency or a quantity."""
    first = i
    word = shift = np.uint64(0)
    while first > begin and i - first <= _LONGEST and is_ascii_letter(byte_at(data, first - 1)):
        first -= 1
        word |= np.uint64(byte_at(data, first)) << shift
        shift += _EIGHT
    if first == i or i - first > _LONGEST or letter_before(data, begin, first):
        return False
    if first > begin and is_digit_byte(byte_at(data, first - 1)):
        return False
    return index_in(_CODES, word) >= 0 and not other_digit_before(data, begin, first)


@helper
def ends_quantity(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether a number that follows a unit may end at ``i``: at the end of its word, or
    before a word such as ``mmol`` or ``M``. ``Na2SO4`` and ``K2O`` are formulas."""
    k = i
    while k < end and is_ascii_letter(byte_at(data, k)):
        k += 1
    if not ends_word(data, k, end):
        return False
    if k == i or byte_at(data, i) >= _SMALL_A:
        return True
    return k == i + 1 and byte_at(data, i) in _MULTIPLES
