"""The stages: each reads artifacts or files and writes one artifact; they meet on disk.

compare.py  several reports on one test set: seeds, paired differences, gates
encode.py   text to shards of tokens: the run as a whole
errors.py   what is wrong in the parts of numbers, and combined too often
eval.py     a model and a split to a report
explain.py  how each scheme writes one number
export.py   encoded data to a folder of another library
fetch.py    public data sets to tables, to texts, or to a field
figure.py   reports, probes or models to a picture
gen.py      a task and a seed to texts or a table, every split
nupa.py     a report, or answers in a file, to the tables of NUPA
predict.py  a model and rows without the truth to what it says of them
probe.py    a model as a function of its numbers: the run as a whole
profile.py  what the numbers are like, and what each scheme costs and loses
table.py    a user's own file to a table
train.py    encoded data or a table to a model
"""
