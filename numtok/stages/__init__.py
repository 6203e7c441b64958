"""The stages of the pipeline. Each reads artifacts or files, then writes or returns a result.

compare.py   comparison of reports on one test set: seeds, paired differences, requirements
doctor.py    checks of the installation, the working folder and the store
encode.py    encoding of texts as shards of tokens
errors.py    analysis of errors in the sign, mantissa and exponent of predictions
eval.py      evaluation of a model on a split, as a report
explain.py   encoding of one number by each scheme
export.py    export of encoded data or a model to another library's format
features.py  tables of the hidden states of a frozen model for texts
fetch.py     download of public data sets: tables, texts, or a weather field
figure.py    drawings of reports, probes or models
gen.py       generation of texts or a table from a task and a seed
nupa.py      NUPA benchmark scores for a report or a file of answers
predict.py   predictions for rows without true values
probe.py     measurements of a model's response to the numbers in its input
profile.py   description of the numbers in a data set; token cost and losses of each scheme
score.py     scores of the numbers in any model's answers
table.py     creation of a table artifact from a user's own file
train.py     training of a model on encoded data or a table
"""
