"""Printers: results as tables, CSV, JSON and pages of HTML.

printing.py    Sheet, and how sheets, JSON and REFs are printed
figures.py     formats numbers for people
checks.py      results of contract suites
comparison.py  comparisons
encode.py      encoded data
errors.py      error analyses
explain.py     a number in each scheme, for programs and people
fetch.py       downloaded data
gen.py         generated data
layout.py      lays tables out for a terminal: alignment, folding, stacking
nupa.py        tables of NUPA
pages/         pages of HTML that load nothing
probe.py       probes
profile.py     profiles of data
progress.py    progress bars
race.py        races
reference.py   the reference page of the guide, made from the declarations
report.py      one report
schemes.py     descriptions of schemes, and a number in each
sweep.py       sweeps
table.py       tables
train.py       trained models
"""
