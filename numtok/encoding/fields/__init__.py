"""Fields: the positions of numbers in the structure that rows have in common.

places.py   compiled tree of places, and functions that assign numbers in JSON-like texts to places
fields.py   fields of numbers, merged over all parts of the data
tables.py   compiled function that assigns numbers in lines of a table to columns
wording.py  compiled function that assigns numbers in other texts to places, by preceding words
"""
