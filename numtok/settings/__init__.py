"""Command settings: a class ``Config`` for each command.

The fields of the class declare the arguments and options of the command (see
:mod:`numtok.declaration`).

These modules do not import the code that they configure, so that ``--help`` stays fast.

compare.py   reports to compare, metrics, and published tables
diagnose.py  reports in which to analyze errors
encode.py    texts, scheme and splits
eval.py      model, split, and decoding of numbers
explain.py   a number and schemes
export.py    an artifact and the format of its folder
features.py  texts and a pretrained model
fetch.py     a public data set
fidelity.py  a folder of measurements of published tables
figure.py    a kind of figure and its artifacts
gen.py       a task and its number of rows
predict.py   model, rows, and decoding of numbers
probe.py     a model and a kind of probe
profile.py   texts and schemes to profile
race.py      data, time, and competing encodings
report.py    a report to print
score.py     answers of any model to score, and their true values
sweep.py     a sweep file
table.py     a table file and its target
train.py     data, model, budget and optimizer
_fields.py   settings that several commands share
_rendering.py  settings that choose the target and the text of a row from fields of a file
"""
