"""Records: rows with named fields from a CSV, JSON Lines or Parquet file, and their rendering as
text.

Every value is kept as a string, as the file has it, so that a number keeps its digits.

columns.py   kinds of columns: number, date, category, text or id
dates.py     dates and timestamps: formats, time zones
notation.py  numbers in a column: decimal mark, thousands separators, currency signs
reader.py    records of a file in any of the formats
rendering.py  data artifacts of texts, rendered from a file
row_template.py  template of rendered rows, as stored
splits.py    splits of records
template.py  rows of text with targets, rendered from records
typed.py     columns with their types; features of dates
"""
