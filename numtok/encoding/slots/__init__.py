"""Where in the repeated structure of the rows a number stands.

places.py   its compiled passes: the tree of places, JSON-like texts
slots.py    where in the repeated structure of the rows a number stands
tables.py   its compiled passes: lines of a table, by columns
wording.py  its compiled passes: other texts, by the words around numbers
"""
