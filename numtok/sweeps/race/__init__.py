"""Races find the encoding, head and normalization that best predict the numbers in a data set, by
successive halving within a time budget.

candidates.py   candidates, and reasons for excluding others
entrants.py     the data: profiled, split, encoded for each candidate
leaderboard.py  the last round: metrics, ties, the winner
plan.py         the stored plan: candidates, rounds, steps; progress
planning.py     measurement of seconds per step, and division of the time into rounds
race.py         the complete race, in order; close calls; reasons for the winner
rounds.py       the rounds: train, evaluate, select survivors
skill.py        the deciding metric: skill over the median, or over a baseline
splitting.py    the default split: by time, or by a hash
words.py        descriptions of numbers in words
"""
