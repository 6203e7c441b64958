"""Predicted values in the notation of the true answer, for schemes that write values alone."""

import re
from decimal import Decimal, InvalidOperation

from numtok.nupa.keys import FLOAT, INTEGER, SCIENTIFIC
from numtok.nupa.wording import FORMS


def in_notation(truth: str, said: str | None) -> str | None:
    """A predicted number in the notation of the true one, where it has another: schemes that write
    values know of none. A truth that is no number of NUPA leaves it as it is.

    >>> in_notation("1.23e4", "12500.0"), in_notation("12", "12.0"), in_notation("12", "12.5")
    ('1.25e4', '12', '12.5')
    """
    forms = (one for one in (INTEGER, FLOAT, SCIENTIFIC) if re.fullmatch(FORMS[one], truth))
    form = next(forms, None)
    if said is None or form is None or re.fullmatch(FORMS[form], said):
        return said
    try:
        value = Decimal(said)
    except InvalidOperation:
        return said
    if not value.is_finite() or abs(value.adjusted()) > 1000:
        return said
    if form == INTEGER:
        return f"{value:.0f}" if value == value.to_integral_value() else said
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if form == SCIENTIFIC:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}e{value.adjusted() if value else 0}"
    whole, _, decimals = f"{value:f}".partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"
