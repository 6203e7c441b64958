"""Evaluation: predictions of trained models, and reports that compare them with baselines.

answer_scores/      scores of the numbers in generated answers, of any model
comparison/         comparison of reports: experiments, seeds, requirements, published tables
fidelity/           verdicts on the results that papers print, from measurements in files
published/          numbers printed in papers, with caveats; one TOML file per table
answers.py          evaluation of models that write whole answers
baselines.py        baselines for numbers: mean, nearest, linear, ...
conformal.py        split-conformal calibration of prediction intervals
devices.py          batches that fit in memory, on one or more devices
evaluation.py       steps shared by all evaluations, from predictions to a report
feature_rows.py     predictions of table models for texts, by a pretrained model's features
fields.py           fields that numbers belong to, with the mean and median of each field
label_baselines.py  baselines for labels: majority, TF-IDF
intervals.py        prediction intervals of models and baselines, calibrated on a report
labels.py           evaluation of models that predict labels
model_card.py       model card for an exported model
numbers.py          evaluation of models that predict numbers
number_parts.py     sign, mantissa and exponent of numbers: errors and frequencies
predict.py          predictions of numbers and their distributions, computed in batches
predicted_rows.py   rows of text to predict, and the output for the rows of a file
prediction_table.py  tables of predictions: their keys and groups, and the arrays for metrics
prediction_mode.py  mode of a text model (numbers, labels or answers), with its options
queries.py          the numbers to predict, grouped by which are predicted together
raw_numbers.py      conversion of head outputs to values and distributions in raw units
readings.py         outputs of a model for numbers, decoded but not scored
record_rows.py      predictions for the records of a file, with text models
record_splits.py    typed fields and targets of rendered records
report_files.py     reading and writing report artifacts and their predictions
reporting.py        reports, found in the store or made, with calibrated intervals
resolved.py         validated options of an evaluation, with defaults filled in
ridge.py            ridge regression, tuned on rows that are held back
rivals.py           baseline predictions, for pairing with model predictions
rows.py             selected rows of encoded data, with their texts
scoring.py          computation of a report's metrics from predictions
seen_values.py      comparison of numbers with the training values of their target
table_options.py    decoding options for table models
table_rows.py       predictions for the rows in a table file
tables.py           evaluation of table models
tabicl_rival.py     the baseline tabicl, a pretrained transformer for tables, if available
tabular_rival.py    the baseline tabular, which reads all fields of records
target_features.py  features for fitted baselines: the other numbers in a row
text_baselines.py   baselines for numbers that read words: TF-IDF, boosted trees
text_states.py      hidden states of a frozen pretrained model for texts
text_rows.py        predictions for rows of text with unknown numbers
word_features.py    features of texts: TF-IDF weights and their main components
"""
