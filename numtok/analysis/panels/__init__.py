"""Panels and rows of figures and pages, in plain columns: one definition for `numtok figure` and
`--html`.

calibration.py  calibration of predicted probabilities: the PIT, and coverage by level
costs.py        skill over cost, and the Pareto front of experiments
learning.py     training curves
numbers.py      predictions over true values, errors by magnitude and by field
rows.py         the rows of a page: the worst ones and a random sample, with their texts
fields.py        the numbers of a field, and the values that each scheme represents
"""
