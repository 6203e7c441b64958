"""Probes, which measure how a model responds to the numbers in its input.

probes/           the probes, one per file
continuity.py     jumps, plateaus, slope and repeated values along a curve of predictions
probe_records.py  probe artifacts: their content, and how it is written and read
swept_row.py      copies of one row that differ in one number
top_numbers.py    the most probable numbers along a curve, and their probabilities
"""
