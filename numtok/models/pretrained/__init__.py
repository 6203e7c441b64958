"""Models from the transformers library as trunks: architecture, cache, folders.

transformers takes seconds to import, so each file imports it where it is first used.

architecture.py  a model without weights: its properties and its module, from its config
cache.py         a key-value cache for transformers models, for rows of different lengths
folder.py        the content of a model folder: config, safetensors weights, tokenizer
frozen.py        frozen models that turn texts into hidden states
rows.py          initial rows of a token table that extends a pretrained model's table
"""
