"""A model as a function of its numbers.

probes/           ways to look at a model: each file is one, and its name is the name of the probe
continuity.py     jumps, plateaus, slope, repeated values of a line of predictions
probe_records.py  probe artifacts: what probe measures, written and read
swept_row.py      one row again and again, with other values in one place
top_numbers.py    which numbers are probable along a line, and how probable
"""
