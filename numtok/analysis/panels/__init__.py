"""Panels for figures and HTML pages, and the rows that pages show.

calibration.py  calibration of predicted probabilities: the PIT, and coverage by level
costs.py        skill plotted against cost, and the Pareto front of experiments
fields.py       the numbers in a field, and the values that each scheme represents
learning.py     training curves
numbers.py      predictions plotted against true values, and errors by magnitude and by field
rows.py         the rows on a page: the rows with the largest errors and a random sample
"""
