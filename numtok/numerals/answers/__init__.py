"""Finds the number that a generated text gives as its answer.

markup.py  texts without LaTeX, Markdown, currency signs and powers of units
rules.py   rules that choose one number of a text: strict, first-number, last-number, boxed, after
read.py    the chosen number of each text in a column, as literals
"""
