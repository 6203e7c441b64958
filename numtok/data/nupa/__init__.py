"""NUPA, the number understanding benchmark from the Number Cookbook (Yang et al. 2025).

answers.py   extraction and scoring of answers
keys.py      task keys, and selection of tasks
wording.py   wording of questions, and parsing of published strings
"""
