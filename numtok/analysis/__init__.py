"""A closer look at data, models and reports.

figures/        kinds of figures: each file is one, and its name is the name of the kind
panels/         what figures and pages show, as panels and rows in plain columns
probing/        a model as a function of its numbers
profiling/      what the numbers of data are like, slot by slot, and what each scheme loses on
                them
drawing.py      pictures as PNG, SVG or PDF
nupa_tables.py  means of answers by digits, by task and by ranges of digits
picture.py      what a figure shows, as plain columns: panels, axes and marks
vega.py         a panel as a specification of Vega-Lite
"""
