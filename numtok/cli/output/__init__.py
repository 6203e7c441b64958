"""How what commands find and make is printed.

checks.py      what check prints, and schemes --check
comparison.py  how a comparison is printed
encode.py      what encode prints
errors.py      how errors of predictions are printed
explain.py     what explain prints
fetch.py       what fetch prints, of a field too
figures.py     how figures are written, and tables of them that fit
gen.py         what gen prints
nupa.py        how the tables of NUPA are printed
pages/         pages of HTML that need nothing else
printing.py    how tables, JSON and references are printed
probe.py       how a probe is printed
profile.py     what profile prints
progress.py    the progress bar
race.py        what race shows
reference.py   the reference page of the guide, made of the declarations
report.py      how one report is printed
sweep.py       what sweep prints
table.py       what table and fetch print of a table
train.py       what train shows
"""
