"""Data before it is encoded: rows of files, tables, and what makes or brings them. No torch."""
