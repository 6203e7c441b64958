"""Fields: the positions of numbers in the repeated structure of the rows.

places.py   compiled tree of places, and the pass over JSON-like texts
fields.py   fields of numbers, and their merging over all parts of the data
tables.py   compiled pass over lines of a table, by column
wording.py  compiled pass over other texts, by the words around numbers
"""
