"""Numbers in text: how they are found, read to float64 and rounded exactly.

column.py    a column of numbers: values, and literals as written
decimals.py  conversion of literals to the nearest float64, and exact rounding
literals.py  exact value and digits of one literal, in plain Python
policy.py    settings of the scanner: what counts as a number
scan.py      finds the numbers in a column of texts
unread.py    counts the digits that are not part of any number
_eight.py    reads eight digits at a time, for the two kernels that read digits
_identifiers.py  detects digits in hashes, UUIDs, times and other scripts, for the scanner
"""
