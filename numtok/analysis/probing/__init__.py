"""A model as a function of its numbers.

probes/           ways to look at a model: each file is one, and its name is the name of the probe
continuity.py     jumps, plateaus, slope, repeated values of a line of predictions
probe_files.py    probe artifacts, written and read
probe_records.py  what probe writes: continuity, embeddings, confidence, in figures
swept_row.py      one row again and again, with other values in one place
top_numbers.py    which numbers are probable along a line, and how probable
"""
