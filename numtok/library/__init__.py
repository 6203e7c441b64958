"""The Python library: the public names of ``import numtok``, each imported on first use.

answers.py         numtok.read_answer and numtok.score_answers: numbers in generated answers
arguments.py       arguments of library functions: settings, type checks, messages, the store
batch.py           numtok.batch: texts as tensors; numtok.check_visibility: a check of causal models
codec.py           numtok.Codec: texts to tokens and values, and back
commands.py        numtok.encode, numtok.train, numtok.eval ...: commands as functions
embedder.py        numtok.embedder: a module that turns tokens and values into vectors
frames.py          data frames in place of files, written to a file during the call
head.py            numtok.head: a module that turns hidden states into numbers in raw units
number_loss.py     numtok.number_loss: a loss on the values of number tokens
parameters.py      descriptions of settings for help(), in NumPy style
prediction.py      head predictions: points and distributions
stored.py          numtok.load: artifacts in a store, as objects
text_input.py      X of TextRegressor: texts, or the columns of a table
text_regressor.py  numtok.TextRegressor: a scikit-learn regressor for texts and data frames
view.py            results as text, and as HTML in a notebook
"""
