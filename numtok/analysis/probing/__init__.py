"""Probes: measure a model as a function of its numbers.

probes/           the probes: each file is one, named after the probe
continuity.py     jumps, plateaus, slope, repeated values along a line of predictions
probe_records.py  probe artifacts, written and read
swept_row.py      copies of one row that differ in one number
top_numbers.py    the most probable numbers along a line, and their probabilities
"""
