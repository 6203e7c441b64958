"""Sweeps: grids of experiments, which are trained, evaluated and compared.

file.py         the sweep file: tables of options, in which a list is an axis
plan.py         the points on a sweep's axes
race/           races, which find the best encoding for data within a time budget
runs.py         runs, which train and evaluate models, and their parallel execution
selection.py    selection on the validation split; successive halving
stage_table.py  one table in the sweep file, and the configurations along its axes
sweep.py        a complete sweep: run, select, compare, average over data sets
"""
