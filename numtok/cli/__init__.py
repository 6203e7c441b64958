"""The command line: one thin file a command.

output/       how what commands find and make is printed
check.py      numtok check
compare.py    numtok compare
demo.py       numtok demo
encode.py     numtok encode
errors.py     numtok errors
eval.py       numtok eval
explain.py    numtok explain
export.py     numtok export
fetch.py      numtok fetch
figure.py     numtok figure
gc.py         numtok gc
gen.py        numtok gen
lineage.py    numtok lineage
ls.py         numtok ls
main.py       the app, its global options, errors to exit codes
nupa.py       numtok nupa
predict.py    numtok predict
probe.py      numtok probe
profile.py    numtok profile
race.py       numtok race
report.py     numtok report
rm.py         numtok rm
schemes.py    numtok schemes
show.py       numtok show
sweep.py      numtok sweep
table.py      numtok table
train.py      numtok train
verify.py     numtok verify
_options.py   the options of a command, made of its settings
_shared.py    the store, and how a REF is given
_signals.py   signals end a command where nothing swallows them
_usage.py     a command line that cannot be, in one line
"""
