"""Predicted values in the notation of the true answer, for schemes that write values alone."""

import re
from decimal import Context, Decimal, InvalidOperation

from numtok.data.nupa.keys import FLOAT, INTEGER, SCIENTIFIC
from numtok.data.nupa.wording import FORMS

#: Of a number that is said by a value in float32, which is off in the eighth.
DIGITS_OF_FLOAT32 = 7


def in_notation(truth: str, said: str | None, digits: int = 0) -> str | None:
    """A predicted number in the notation of the true one, where it has another: schemes that write
    values know of none. An integer stands for the values nearest to it. A truth that is no number
    of NUPA leaves it as it is.

    digits
        How many significant ones the prediction has at most; 0: all that are there.

    >>> in_notation("1.23e4", "12500.0"), in_notation("12", "12.0"), in_notation("12", "12.7")
    ('1.25e4', '12', '13')
    >>> in_notation("52.3", "52.29999923706055", DIGITS_OF_FLOAT32)
    '52.3'
    """
    forms = (one for one in (INTEGER, FLOAT, SCIENTIFIC) if re.fullmatch(FORMS[one], truth))
    form = next(forms, None)
    if said is None or form is None or (not digits and re.fullmatch(FORMS[form], said)):
        return said
    try:
        value = Decimal(said)
    except InvalidOperation:
        return said
    if not value.is_finite() or abs(value.adjusted()) > 1000:
        return said
    if digits:
        value = Context(prec=digits).plus(value)
    if form == INTEGER:
        return f"{value.to_integral_value() or Decimal(0):.0f}"
    written = "".join(map(str, value.as_tuple().digits)).rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if form == SCIENTIFIC:
        return f"{sign}{written[0]}.{written[1:] or '0'}e{value.adjusted() if value else 0}"
    whole, _, decimals = f"{value:f}".partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}"
