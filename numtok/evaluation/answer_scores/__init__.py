"""Scores of the numbers in any model's generated answers.

answer_files.py  answers and true values, read from JSONL files and joined by id
json_fields.py   fields of JSON lines, including nested fields, with numbers as written
predictions.py   conversion of answers to predictions that metrics can score
scores.py        metrics per model and rule, and paired comparisons of models
significance.py  paired permutation test, Holm's correction, minimal detectable difference
"""
