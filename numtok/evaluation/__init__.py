"""Predicting with trained models, and scoring predictions and baselines in a report.

comparison/         compares reports: experiments, seeds, requirements, published tables
published/          numbers printed in papers: one TOML file per table, with caveats
answers.py          evaluation of models that write whole answers
baselines.py        baselines for numbers: mean, nearest, linear, ...
devices.py          batches that fit in memory, on one or more devices
evaluation.py       steps shared by all evaluations, from predictions to a report
fields.py           field of each number, and anchored field, with train-split statistics
label_baselines.py  baselines for labels: majority, TF-IDF
labels.py           evaluation of models that predict labels
model_card.py       model card of an exported model
numbers.py          evaluation of models that predict numbers
number_parts.py     errors and frequencies of signs, mantissas and exponents
predict.py          predictions and their distributions, batch by batch
prediction_mode.py  whether a model predicts numbers, labels or answers, and with which options
queries.py          which numbers of a split are predicted, and which of them together
raw_numbers.py      head outputs to values and distributions in raw units
report_files.py     reading and writing report artifacts and their predictions
resolved.py         resolved options of an evaluation
rivals.py           predictions of baselines, paired with those of models
scoring.py          predictions to the metrics of a report
seen_values.py      values of a target in the train split
table_options.py    decoding options of table models
table_rows.py       predictions for the rows of a table file
tables.py           evaluation of table models
target_features.py  features of fitted baselines: the other numbers of a row, by anchored field
text_rows.py        predictions for rows of text with unknown numbers
"""
