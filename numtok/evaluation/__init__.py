"""What a model says of rows, beside what needs no model, as a report.

comparison/         several reports side by side: experiments, seeds, limits, published tables
published/          the numbers printed in the papers: one TOML file a table, with what is
                    doubtful about it
answers.py          whole answers that a model writes to a report
baselines.py        what needs no model: mean, nearest, linear, ...
devices.py          rows on several devices, in batches that memory has room for
evaluation.py       what every evaluation goes through: predictions to a report
label_baselines.py  what needs no model for labels: majority, TF-IDF
labels.py           a model of labels and a split to predictions and a report
model_card.py       the card of a model that leaves the store
numbers.py          a model of numbers and a split to predictions and a report
number_parts.py     numbers in sign, mantissa and exponent: which are wrong, how often
predict.py          predictions and their distributions, batch by batch
prediction_mode.py  how a model is asked: for numbers, labels or answers
queries.py          which numbers a model is asked for, and which of them together
raw_numbers.py      from what heads say of numbers to values and distributions in raw units
report_files.py     report artifacts and their predictions, written and read
resolved.py         the options of an evaluation, with every part built
rivals.py           what needs no model as predictions of numbers, to be paired with those of models
scoring.py          from predictions to the figures of a report
seen_values.py      values of a target in the train split
slots.py            slot and field of each number, and what the train split has there
table_options.py    how numbers are read off a model of tables
table_rows.py       rows of a table without the target, and what a model says of them
tables.py           a model of tables and a split to predictions and a report
target_features.py  the other numbers of a target's row, by field, for fits without a model
text_rows.py        rows of text with unknown numbers, and what a model says of them
"""
