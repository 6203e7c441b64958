"""Sweeps: grids of experiments. A sweep drives the stages, so it stands above them.

file.py       that file: tables of options, in which a list is an axis
plan.py       what it stands for: the points of all axes
runs.py       a training and its evaluation each, and how many run in parallel
race/        which encoding predicts the numbers of some data best, in the time there is
selection.py  the best on the validation split; successive halving
stage_table.py  one table of that file, and the configurations that its axes stand for
sweep.py      every combination of a file: made, chosen, compared, averaged over data sets
"""
