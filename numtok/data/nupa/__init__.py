"""What is known of NUPA, the benchmark of numbers of the Number Cookbook (Yang et al. 2025).

answers.py   what is taken for an answer, and the score of one
keys.py      NUPA's tasks by their keys, and what is chosen of them
notation.py  predicted values in the notation of the true answer
strata.py    how many rows its published test has of each task and digit key
wording.py   how its questions are asked, and what a string is made of
"""
