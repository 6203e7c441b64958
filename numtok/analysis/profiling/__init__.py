"""What the numbers of data are like, slot by slot, and what each scheme loses on them.

notations.py        notations that no policy reads, such as <0.1: counts and notes
recommendation.py   the encoding to try first
scheme_error.py     a scheme tried out on the sample of each slot
short_values.py     values as short as they can be told apart
slot_profile.py     the figures of one slot
slot_statistics.py  statistics of the numbers of each slot, in one pass
unit.py             one unit of profile: rows in, statistics out; units merged
warnings.py         what is lost, in words, the worst first
"""
