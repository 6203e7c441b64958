"""Analysis of data, models and reports.

figures/        figure kinds, one per file
panels/         content of figures and pages, as panels and rows in plain columns
probing/        probes: how a model's outputs depend on the numbers in its input
profiling/      profiles of the numbers in data, with the losses of each scheme
drawing.py      drawing of pictures as PNG, SVG or PDF
nupa_tables.py  mean scores of answers by digits, by task and by ranges of digits
picture.py      content of a figure as plain columns: panels, axes and marks
vega.py         Vega-Lite specifications of panels
"""
