"""The Python library: the public names of ``import numtok``, each imported on first use.

arguments.py   arguments of functions: settings, type checks, errors that name them; the store
batch.py       numtok.batch: texts as tensors; check that a causal model cannot see its targets
codec.py       numtok.Codec: texts to tokens and values and back
commands.py    numtok.encode, numtok.train, numtok.eval ...: commands as functions
embedder.py    numtok.embedder: tokens and values to vectors
head.py        numtok.head: hidden states to numbers in raw units
parameters.py  descriptions of settings for help(), in NumPy style
prediction.py  predictions of a head: points, and distributions on demand
stored.py      numtok.load: artifacts of a store as objects
view.py        results as text and in a notebook
"""
