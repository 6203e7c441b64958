"""numtok in a program of your own: what ``import numtok`` offers, each name imported when used.

arguments.py   arguments of functions: settings, types, errors that name them; the store
batch.py       numtok.batch: texts as tensors; whether a causal model sees its targets
codec.py       numtok.Codec: texts to tokens and values and back
commands.py    numtok.encode, numtok.train, numtok.eval ...: commands as functions
embedder.py    numtok.embedder: tokens and values to vectors
head.py        numtok.head: hidden states to numbers in raw units
prediction.py  what a head predicts: points, and distributions where they are asked for
stored.py      numtok.load: what is in a store, as an object of its kind
view.py        what a command prints of a result, as text and in a notebook
"""
