"""The stages. Each reads artifacts or files and writes one artifact.

compare.py  compare reports on one test set: seeds, paired differences, gates
encode.py   encode text as shards of tokens
errors.py   find errors in sign, mantissa and exponent of predictions
eval.py     evaluate a model on a split: a report
explain.py  show how each scheme writes one number
export.py   export encoded data or a model to a folder of another library
fetch.py    fetch public data sets: tables, texts, or a field
figure.py   draw reports, probes or models
gen.py      generate texts or a table from a task and a seed
nupa.py     score a report, or a file of answers, with the NUPA benchmark
predict.py  predict rows without true values
probe.py    measure a model as a function of its numbers
profile.py  describe the numbers of a data set, and what each scheme costs and loses
table.py    make a table from a user's own file
train.py    train a model on encoded data or a table
"""
