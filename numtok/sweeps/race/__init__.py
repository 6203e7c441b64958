"""Races find the encoding, head and normalization that best predict the numbers in a data set, by
successive halving within a time budget.

candidates.py      candidates, and reasons for excluding schemes and heads
entrants.py        the data of a race, and what each candidate trains on
from_records.py    races on the records of a file: columns and rendered texts
from_table.py      races on stored tables
from_texts.py      races on texts: profile, splits and schemes
leaderboard.py     the results of the last round: metrics, ties, the winner and its accuracy
leaks.py           notes on columns that may contain the target
measuring.py       measurement of seconds per step, and of the overhead of a run
plan.py            the stored plan (candidates, rounds, steps), and the progress of a race
planning.py        the plan as a function of measurements and time
plan_artifacts.py  the artifacts of the plan, and of rounds shortened during the race
race.py            the complete race
reasons.py         close calls, reasons for the winner, and notes on fields
rounds.py          the rounds, in which candidates are trained, evaluated and selected
run_settings.py    settings of training runs and evaluations
skill.py           the deciding metric, skill over the median or over a baseline
splitting.py       the default split: by time, or by a hash
words.py           descriptions of numbers in words
"""
