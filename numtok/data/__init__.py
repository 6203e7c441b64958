"""Data before encoding: rows of text, tables, and their sources. Nothing here imports torch.

fetching/  downloads of public data: files, texts and weather fields
nupa/      task keys, wording and scoring of the NUPA benchmark (Yang et al. 2025)
reading/   JSON Lines and Parquet inputs, read as columns in units of work
records/   records of CSV, JSON Lines and Parquet files, and their rendering as text
sources/   public data sets for ``numtok fetch``, one source per file
tables/    tables: columns of numbers and categories, and the splits of their rows
tasks/     tasks that generate data for ``numtok gen``, one per file
weather/   weather data on grids: stored fields, and the stores and files that contain the data
"""
