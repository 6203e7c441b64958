"""Numbers in text: from bytes to spans, values and exactly rounded decimals.

column.py    a column of numbers: values, and literals as written
decimals.py  literals to the nearest float64, and exact rounding to few digits
literals.py  one literal's value and digits, in plain Python; sizes in units of a last digit
policy.py    what is a number: the settings of the scanner
scan.py      finds the numbers in a column of bytes
unread.py    counts the digits that are in no number
_eight.py    eight digits at a time, for the two kernels that read digits
_identifiers.py  digits in hashes, UUIDs, times and numbers of other scripts, for the scanner
"""
