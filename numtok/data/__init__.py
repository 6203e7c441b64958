"""Data before it is encoded: rows of files, tables, and what makes or brings them. No torch.

fetching/  what a source has, brought here: files, texts and fields
nupa/      what is known of NUPA, the benchmark of numbers of the Number Cookbook (Yang et al.
           2025)
reading/   rows of JSON Lines and Parquet, as columns: from the inputs of a command to units of
           work
sources/   sources: public data sets, one file a source, no torch
tables/    tables: columns of numbers and categories, and the splits of their rows
tasks/     tasks: makers of data, one file each, no torch
weather/   weather on grids: fields, and what public stores of them look like
"""
