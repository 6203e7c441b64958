"""Rewrites other notations of numbers, such as ``1'234``, ``2.5k`` or ``(5.00)``, to the one that
the scanner reads.

The scanner (:mod:`numtok.numerals.scan`) knows one notation. Under a policy with further ones, it
reads most numbers from the original, and the others from rewritten copies of the passages around
them. :class:`~numtok.numerals.notations.rewritten.Rewritten` turns the spans found in a copy into
spans of the original. docs/reference/numbers.md specifies every notation.

passages.py    separation of numbers that need no rewriting from passages that may need it
literals.py    literals of both, in order
characters.py  rewriting of single characters: digits of other scripts, dashes, decimal commas
numbers.py     rewriting of whole numbers
rewritten.py   rewritten texts, and the way back to the original
groups.py      groups of digits, as in 1'234
ratios.py      fractions, as in 1/2 and ½
powers.py      powers of ten, as in 4×10^5, and suffixes, as in 2.5k
units.py       units, currencies and quantities before a number, as in pH6.5
signs.py       negative numbers in brackets and with the minus at the end
_text.py       characters and words in UTF-8 bytes
"""
