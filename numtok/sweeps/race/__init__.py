"""A race: which encoding, head and normalisation predict the numbers of some data best, found by
successive halving in the time there is.

candidates.py   what may take part, and why what may not
entrants.py     data as they are entered: looked at, split, encoded for each that takes part
leaderboard.py  the last round on the test split: figures, ties, the choice and its reasons
plan.py         who races in which rounds for how many steps, stored once; progress
planning.py     the plan is made: what a step takes, and what the time there is makes of it
race.py         all of it, in order; rounds that eliminated within noise; reasons
rounds.py       the rounds: train, evaluate, choose who goes on
skill.py        what a race is about: how much less the error is than that of something else
splitting.py    how rows are split where nobody says it: by time, or by a hash
words.py        what numbers are like, in words
"""
