"""Fields: the positions of numbers in the structure that rows have in common.

places.py   compiled tree of places, and the assignment of numbers in JSON-like texts to them
fields.py   fields of numbers, merged over all parts of the data
tables.py   compiled assignment of numbers to columns, in lines of a table
wording.py  compiled assignment of numbers in other texts to places, by the words before them
"""
