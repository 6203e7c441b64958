"""Rows of JSON Lines and Parquet, as columns: from the inputs of a command to units of work."""
