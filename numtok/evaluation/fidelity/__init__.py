"""How our measurements of published tables compare with what the papers print.

claims.py     statements of the papers in words, and the orderings that decide them
counts.py     all verdicts: per pair, per table and per claim
measured.py   measurements stored as CSV files, pooled over seeds
orderings.py  pairs of values that a published table prints
recording.py  addition of reports to the measurements
ties.toml     per metric, the largest difference that counts as a tie
verdicts.py   verdicts on printed orderings
"""
