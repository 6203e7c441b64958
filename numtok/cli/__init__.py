"""The command line: one thin file per command.

output/       printers of results
check.py      numtok check
compare.py    numtok compare
demo.py       numtok demo
diagnose.py   numtok diagnose
encode.py     numtok encode
eval.py       numtok eval
explain.py    numtok explain
export.py     numtok export
fetch.py      numtok fetch
figure.py     numtok figure
gc.py         numtok gc
gen.py        numtok gen
lineage.py    numtok lineage
ls.py         numtok ls
main.py       the app, its global options, and exit codes of errors
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
_help.py      layout of --help
_options.py   options of a command, built from its settings
_shared.py    the store, and the argument REF
_signals.py   signals as exceptions
_usage.py     messages about command lines that are not valid
"""
