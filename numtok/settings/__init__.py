"""What each command may be asked for: one class of settings a command, ``Config``, whose fields
are declared once (``numtok.declaration``).

They stand below all that they command, so that the help of a command imports nothing else.

compare.py  which reports are compared, by what, beside what
encode.py   which texts are encoded, in which scheme, how they are split
errors.py   whose errors are taken apart
eval.py     which split a model predicts, and how numbers are read off
explain.py  which number is written, in which schemes
export.py   which artifact becomes a folder of another library
fetch.py    which public data set is brought, from where
figure.py   what is drawn of which artifacts
gen.py      which task makes how many rows
nupa.py     which report, or whose answers, the tables of NUPA are of
predict.py  what a model is asked for rows without the truth
probe.py    how a model is probed
profile.py  which texts are looked at
race.py     which data, how long, and what may take part
report.py   which report is printed again
sweep.py    which file of a sweep is run
table.py    which file becomes a table, and what is predicted
train.py    what learns from which data, how long and how
_fields.py  fields that several commands have
"""
