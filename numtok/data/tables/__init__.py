"""Tables: columns of numbers and categories, and the splits of their rows.

columns.py        conversion of arbitrary columns to features, a target and splits
file.py           reading of a user's CSV or Parquet file
frames.py         data frames of other libraries, as tables and as files
table.py          tables stored as artifacts: features, target and folds
text_features.py  how the features of a table are computed from texts
"""
