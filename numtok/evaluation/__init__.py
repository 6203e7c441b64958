"""Evaluation: predictions of trained models, and reports that compare them with baselines.

answer_scores/      scores of the numbers in generated answers, of any model
comparison/         comparison of reports: experiments, seeds, requirements, published tables
published/          numbers printed in papers, with caveats; one TOML file per table
answers.py          evaluation of models that write whole answers
baselines.py        baselines for numbers: mean, nearest, linear, ...
devices.py          batches that fit in memory, on one or more devices
evaluation.py       steps shared by all evaluations, from predictions to a report
feature_rows.py     predictions of table models for texts, by a pretrained model's features
fields.py           fields that numbers belong to, with the mean and median of each field
label_baselines.py  baselines for labels: majority, TF-IDF
labels.py           evaluation of models that predict labels
model_card.py       model card for an exported model
numbers.py          evaluation of models that predict numbers
number_parts.py     sign, mantissa and exponent of numbers: errors and frequencies
predict.py          predictions of numbers and their distributions, computed in batches
prediction_mode.py  mode of a text model (numbers, labels or answers), with its options
queries.py          the numbers to predict, grouped by which are predicted together
raw_numbers.py      conversion of head outputs to values and distributions in raw units
report_files.py     reading and writing report artifacts and their predictions
resolved.py         validated options of an evaluation, with defaults filled in
rivals.py           baseline predictions, for pairing with model predictions
scoring.py          computation of a report's metrics from predictions
seen_values.py      comparison of numbers with the training values of their target
table_options.py    decoding options for table models
table_rows.py       predictions for the rows in a table file
tables.py           evaluation of table models
target_features.py  features for fitted baselines: the other numbers in a row
text_states.py      hidden states of a frozen pretrained model for texts
text_rows.py        predictions for rows of text with unknown numbers
"""
