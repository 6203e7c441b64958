"""Pages: what a command found, as one file of HTML that needs nothing else.

comparison.py  the page of a comparison, and its sections
page.py        what a page is made of: sections of charts, tables and rows
profile.py     the page of a profile
report.py      the page of a report
sweep.py       the page of a sweep
vega.py        charts: a panel as a specification of Vega-Lite, and drawn without JavaScript
write.py       a page as the bytes of its file
templates/     the page's HTML, its style and its script
"""
