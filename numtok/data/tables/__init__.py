"""Tables: columns of numbers and categories, and the splits of their rows.

columns.py  columns of any table to those of a table artifact
file.py     that file as it is, CSV or Parquet
table.py    one table of a regression task: features, target, folds
"""
