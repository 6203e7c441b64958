"""Position of numbers in the repeated structure of the rows.

places.py   compiled passes: the tree of places, JSON-like texts
slots.py    assigns numbers to slots in the repeated structure of the rows
tables.py   compiled passes: lines of a table, by column
wording.py  compiled passes: other texts, by the words around numbers
"""
