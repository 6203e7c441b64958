"""Scores of the numbers in generated answers, of any model.

answer_files.py  answers and true values of JSONL files, joined by id
json_fields.py   fields of JSON lines, also nested ones, with numbers as written
predictions.py   answers read by a rule, as predictions that metrics take
scores.py        metrics per model and rule, and paired comparisons of models
significance.py  paired permutation test, Holm's correction, minimal detectable difference
"""
