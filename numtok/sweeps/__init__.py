"""Sweeps: grids of settings for which models are trained, evaluated and compared.

baseline_rows.py  predictions of a baseline for the records of a file
demo.py         the demo: every scheme on a sample, three schemes on arithmetic
file.py         the sweep file: tables of options, in which a list is an axis
parallel.py     how runs are executed in parallel: their number, threads and GPUs
plan.py         the points on a sweep's axes
race/           races: search for the best encoding of a data set within a time budget
runs.py         training and evaluation runs, and their execution
selection.py    selection on the validation split; successive halving
stage_table.py  one table in the sweep file, and the configurations along its axes
sweep.py        a complete sweep: run, select, compare, average over data sets
"""
