"""Profiles of the numbers in data, slot by slot, and of the losses of each scheme on them.

notations.py        notations that no policy reads, such as <0.1: counts and notes
recommendation.py   the encoding to try first
scheme_error.py     tokens and errors of a scheme on the sample of each slot
short_values.py     values with as few digits as distinguish them
slot_profile.py     the profile of one slot
slot_statistics.py  statistics of the numbers of each slot, in one pass
unit.py             one unit of profile: rows in, statistics out; units merged
warnings.py         warnings about losses, the worst first
"""
