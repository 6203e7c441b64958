"""Tables: columns of numbers and categories, and the splits of their rows.

columns.py  conversion of any columns to features, targets and splits
file.py     a user's table, CSV or Parquet
table.py    the table of a table artifact: features, target, folds
"""
