"""What figures and pages show of data, reports and comparisons, as panels and rows in plain
columns: one definition for `numtok figure` and for `--html`.

calibration.py  whether predicted probabilities are kept: the PIT, and coverage by level
costs.py        skill over what it cost, and which experiments nobody beats in both
learning.py     what models logged while they learnt
numbers.py      predictions over truths, errors by magnitude and by slot
rows.py         the rows that a page holds: the worst ones, and some of all, with their texts
slots.py        the numbers of a slot, and what the grid of each scheme makes of them
"""
