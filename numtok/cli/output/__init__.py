"""Printing of results: as tables, CSV, JSON and HTML pages.

printing.py    Sheet, and functions that print sheets, JSON and REFs
figures.py     formatting of numbers
comparison.py  comparisons
demo.py        the leaderboard of the demo
drawing.py     tables on a terminal, drawn as laid out
encode.py      encoded data
errors.py      error analyses
fetch.py       downloaded data
fidelity.py    how published results compare with our measurements
gen.py         generated data
layout.py      layout of tables on a terminal: alignment, wrapping, stacking
nupa.py        NUPA tables
pages/         self-contained HTML pages
probe.py       probes
profile.py     profiles of data
progress.py    progress bars
race.py        races
reading.py     the numbers in texts, and digits that are not part of any number
report.py      one report
schemes.py     descriptions of schemes, and how they write a number
score.py       scores of answers of any model
sweep.py       sweeps
table.py       table artifacts
train.py       trained models
"""
