"""Fields: the positions of numbers in the repeated structure of the rows.

places.py   compiled passes: the tree of places, JSON-like texts
fields.py   assigns numbers to fields in the repeated structure of the rows
tables.py   compiled passes: lines of a table, by column
wording.py  compiled passes: other texts, by the words around numbers
"""
