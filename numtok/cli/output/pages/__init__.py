"""Pages: what a command found, as one file of HTML that needs nothing else.

charts.py       charts of several experiments: costs, learning curves, errors
compared.py     experiments on one test set with what their reports say
comparison.py   the page of a comparison, and its sections
differences.py  the rows on which experiments are farthest apart
page.py         what a page is made of: sections of charts, tables and rows
parts.py        what several pages have: cells with intervals, filters of rows
profile.py      the page of a profile
race.py         the page of a race
report.py       the page of a report
sweep.py        the page of a sweep
write.py        draws the charts of a page and writes its file
templates/      the page's HTML, its style and its script
"""
