"""Models of transformers as trunks: architecture, cache, folders.

transformers takes seconds to import, so each file imports it where it is first used.

architecture.py  a model without its weights: facts from its config, and its module
cache.py         keys and values of rows of different lengths, for transformers
folder.py        the content of a model folder: config, safetensors weights, tokenizer
rows.py          initial rows of a token table that extends the one of such a model
"""
