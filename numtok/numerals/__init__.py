"""Finds the numbers in texts, converts them to float64, and rounds them exactly.

answers/     numbers that generated texts give as their answer
column.py    a column of numbers: values, and literals as written
decimals.py  conversion of literals to the nearest float64, and exact rounding
find.py      the numbers in a column of texts under a policy
literals.py  exact value and digits of one literal, in plain Python
notations/   rewriting of other notations to that of the scanner
policy.py    settings of the scanner: what counts as a number
proposals.py  comparison of policies on texts, and a proposal
reading.py   the numbers in one text, and the words whose digits are not part of any number
scan.py      the scanner, which finds the numbers in a column of texts
suffixes.py  suffixes that stand for a power of ten, such as k and million
unread.py    counts of the digits that are not part of any number
zones.py     parts of texts without numbers, such as dates
_eight.py    reading of eight digits at a time, for the two kernels that read digits
_identifiers.py  detection of digits in hashes, UUIDs, times and other scripts
"""
