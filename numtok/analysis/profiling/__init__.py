"""Profiles of the numbers in data, field by field, with the losses of each scheme.

field_profile.py     description of the numbers in one field
field_statistics.py  statistics of the numbers in each field, computed in one pass
first_rows.py        the first texts, and the token cost of the text between their numbers
notations.py         notations that no policy interprets, such as <0.1: counts and notes
recommendation.py    choice of the scheme to try first
scheme_error.py      token counts and errors of a scheme on the numbers in each field
short_values.py      formatting of values with just enough digits to distinguish them
unit.py              statistics for one unit of rows, and merging of units
warnings.py          warnings about losses, worst first
"""
