"""A model as a function of its numbers.

confidence.py   how sure a model is of a text, along one of its numbers
continuity.py   jumps, plateaus, slope, repeated values of a line of predictions
embedding.py    how the embedding of a number saturates
numbers.py      predictions over a split's truths, or over one input number
probe_files.py  probe artifacts, written and read
probes.py       what probe writes: continuity, embeddings, confidence, in figures
swept_row.py    one row again and again, with other values in one place
tokens.py       principal components of the number tokens
top_numbers.py  which numbers are probable along a line, and how probable
"""
