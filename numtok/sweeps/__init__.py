"""Sweeps: grids of experiments, run through the stages.

file.py         the sweep file: tables of options, in which a list is an axis
plan.py         the points of all axes
race/           races: find the best encoding for data within a time budget
runs.py         runs, each a training and its evaluation, and their parallel execution
selection.py    selection on the validation split; successive halving
stage_table.py  one table of the file, and the configurations along its axes
sweep.py        a complete sweep: run, select, compare, average over data sets
"""
