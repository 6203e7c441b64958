"""NUPA, the number benchmark of the Number Cookbook (Yang et al. 2025).

answers.py   extraction and scoring of answers
keys.py      tasks by their keys, and selections of them
wording.py   wording of questions, and parsing of published strings
"""
