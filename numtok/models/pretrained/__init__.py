"""Models of transformers as trunks: their architecture, their cache, their folders.

transformers takes seconds to import, so each file imports it where it is first used.

architecture.py  what a model is but its weights: facts of its config, and its module
cache.py         keys and values of rows of different lengths, as transformers asks for them
folder.py        what lies in a model's folder: config, weights in safetensors, tokenizer
rows.py          the rows of a table of tokens that begins with the one of such a model
"""
