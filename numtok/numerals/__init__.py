"""Numbers in text: from bytes to spans, values and exactly rounded decimals.

column.py    a column of numbers: values, and literals as written
decimals.py  literals to the nearest float64, and exact rounding to few digits
literals.py  value and digits of one literal, in plain Python; sizes in units of the last digit
policy.py    settings of the scanner: what counts as a number
scan.py      finds the numbers in a column of bytes
unread.py    counts the digits that are not part of any number
_eight.py    reads eight digits at a time, for the two kernels that read digits
_identifiers.py  detects digits in hashes, UUIDs, times and other scripts, for the scanner
"""
