"""The command line: one thin file per command.

output/          printing of results
check.py         numtok check
compare.py       numtok compare
demo.py          numtok demo
diagnose.py      numtok diagnose
doctor.py        numtok doctor
encode.py        numtok encode
eval.py          numtok eval
explain.py       numtok explain
export.py        numtok export
features.py      numtok features
fetch.py         numtok fetch
fidelity.py      numtok fidelity
figure.py        numtok figure
gc.py            numtok gc
gen.py           numtok gen
lineage.py       numtok lineage
ls.py            numtok ls
main.py          the program: commands, global options, and exit codes for errors
predict.py       numtok predict
probe.py         numtok probe
profile.py       numtok profile
race.py          numtok race
report.py        numtok report
rm.py            numtok rm
schemes.py       numtok schemes
score.py         numtok score
show.py          numtok show
sweep.py         numtok sweep
table.py         numtok table
train.py         numtok train
verify.py        numtok verify
_commands.py     the commands, and their earlier names
_config_file.py  numtok.toml as defaults of options
_help.py         layout of --help
_options.py      command options, built from settings classes
_shared.py       global options, and the argument REF
_signals.py      exceptions raised on SIGINT and SIGTERM
_usage.py        messages about invalid command lines
"""
