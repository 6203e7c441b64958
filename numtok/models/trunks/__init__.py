"""Trunks: the layers between the embedder (or the columns of a table) and the head, one file
each."""
