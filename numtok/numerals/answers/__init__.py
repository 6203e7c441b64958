"""Finds the number that a generated text gives as its answer.

markup.py  removal of LaTeX, Markdown, currency signs and powers of units from texts
rules.py   rules that choose one number in a text: strict, first-number, last-number, boxed, after
read.py    reader of the chosen number in each text of a column, as a literal
"""
