"""HTML pages: the result of a command in one self-contained file.

charts.py       charts of several experiments: costs, learning curves, errors
compared.py     experiments on one test set, with their reports and predictions
comparison.py   the page of a comparison, and its sections
differences.py  rows on which experiments differ
page.py         the content of a page: sections of charts, tables and rows
parts.py        helpers for several pages: cells with intervals, row filters
profile.py      the page of a profile
race.py         the page of a race
report.py       the page of a report
sweep.py        the page of a sweep
write.py        draws the charts on a page and writes the page to a file
templates/      HTML, style and script of a page
"""
