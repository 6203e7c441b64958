"""NUPA, the benchmark of number understanding of the Number Cookbook (Yang et al. 2025).

answers.py   extraction and scoring of answers
keys.py      keys of tasks, and selection of tasks
wording.py   wording of questions, and parsing of published strings
"""
