"""numtok in a program of your own: what ``import numtok`` offers, each name imported when used.

batch.py       numtok.batch: texts as tensors, with the places at which numbers are predicted
codec.py       numtok.Codec: texts to tokens and values and back
embedder.py    numtok.embedder: tokens and values to vectors
head.py        numtok.head: hidden states to numbers in raw units
opened.py      the store that functions read and write
prediction.py  what a head predicts: points, and distributions where they are asked for
wording.py     errors in the words of Python
"""
