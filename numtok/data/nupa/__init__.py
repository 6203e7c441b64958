"""What is known of NUPA, the benchmark of numbers of the Number Cookbook (Yang et al. 2025).

answers.py   what is taken for an answer, and the score of one
keys.py      NUPA's tasks by their keys, and what is chosen of them
wording.py   how its questions are asked, and what a string is made of
"""
