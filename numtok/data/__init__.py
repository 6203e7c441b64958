"""Data before encoding: rows of texts, tables, and where they come from. Torch is not imported.

fetching/  retrieval of the data of public sources: files, texts and weather fields
nupa/      task keys, wording and scoring of the NUPA benchmark (Yang et al. 2025)
reading/   reading of JSON Lines and Parquet inputs as columns, in units of work
sources/   public data sets for ``numtok fetch``, one source per file
tables/    tables: columns of numbers and categories, and the splits of their rows
tasks/     tasks that generate data for ``numtok gen``, one per file
weather/   weather data on grids: stored fields, and the stores and files they are read from
"""
