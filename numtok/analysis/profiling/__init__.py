"""Profiles of the numbers in data, field by field, and of the losses of each scheme on them.

notations.py        notations that no policy reads, such as <0.1: counts and notes
recommendation.py   the encoding to try first
scheme_error.py     tokens and errors of a scheme on the sample of each field
short_values.py     values with as few digits as distinguish them
field_profile.py     the profile of one field
field_statistics.py  statistics of the numbers of each field, in one pass
unit.py             one unit of profile: rows in, statistics out; units merged
warnings.py         warnings about losses, the worst first
"""
