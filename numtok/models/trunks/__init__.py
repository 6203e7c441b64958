"""What lies between embeddings and heads.

bigru.py        the trunk that reads a row from both ends, for its label
mlp.py          the trunk for tables
transformer.py  the trunk, and its cache of keys and values
"""
