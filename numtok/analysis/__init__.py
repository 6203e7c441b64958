"""Analysis of data, models and reports.

figures/        kinds of figures: each file is one, named after the kind
panels/         content of figures and pages, as panels and rows in plain columns
probing/        probes: a model as a function of its numbers
profiling/      profiles of the numbers in data, and of the losses of each scheme on them
drawing.py      pictures as PNG, SVG or PDF
nupa_tables.py  mean scores of answers by digits, by task and by ranges of digits
picture.py      content of a figure as plain columns: panels, axes and marks
vega.py         a panel as a Vega-Lite specification
"""
