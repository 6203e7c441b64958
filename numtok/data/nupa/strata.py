"""How many rows the published test split has in each stratum, a task key and a digit key.

A thousand, but where draws came twice. The counts of ``to_float_Fraction_none_Float`` from 4 to 19
digits are known in sum alone, those up to 7 and those above, and each to lie within a range.
"""

from numtok.data.nupa.keys import Key

USUAL = 1000
#: Rows of the published test split in all, and in its strata up to 7 digits of Value-Aware.
TEST_ROWS, VALUE_AWARE_ROWS = 2_387_501, 191_698

_KNOWN = {
    "get_digit_Float_int_int": {3: 998},
    "length_Float_none_int": {3: 991, 4: 998},
    "length_Integer_none_int": {5: 999, 6: 998},
    "max_Fraction_Fraction_Fraction": {1: 631, 2: 999},
    "sig_Float_int_ScientificNotation": {3: 998},
    "sub_Fraction_Fraction_Fraction": {1: 839},
    "to_float_Fraction_none_Float": {1: 25, 2: 390, 3: 927, 20: 824, 21: 1},
    "to_float_ScientificNotation_none_Float": {3: 983, 4: 999},
    "to_scient_Float_none_ScientificNotation": {3: 991, 4: 998},
    "to_scient_Integer_none_ScientificNotation": {5: 928, 6: 956, 7: 995, 8: 996},
    "truediv_Fraction_Fraction_Fraction": {1: 996},
}
_ROUGH = "to_float_Fraction_none_Float"
_ROUGH_RANGE = (967, 1038)
_ROUGH_SUMS = {range(4, 8): 4057, range(8, 20): 11_984}


def published(key: Key, digits: int) -> int | None:
    """The rows of a stratum, or about as many where that is not known; None where there are none.

    >>> from numtok.data.nupa.keys import KEYS
    >>> [published(KEYS["sub_Fraction_Fraction_Fraction"], digits) for digits in (1, 2, 21)]
    [839, 1000, None]
    """
    if not key.is_published or not key.tested[0] <= digits <= key.tested[1]:
        return None
    if key.name == _ROUGH:
        for part, rows in _ROUGH_SUMS.items():
            if digits in part:  # shared out
                return rows // len(part) + (digits - part.start < rows % len(part))
    return _KNOWN.get(key.name, {}).get(digits, USUAL)


def allowed(key: Key, digits: int) -> tuple[int, int] | None:
    """The least and the most rows that the published test split has in a stratum; None where it
    has no such one."""
    rows = published(key, digits)
    if rows is None:
        return None
    is_rough = key.name == _ROUGH and any(digits in part for part in _ROUGH_SUMS)
    return _ROUGH_RANGE if is_rough else (rows, rows)
