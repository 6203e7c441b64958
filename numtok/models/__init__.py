"""Models: a trunk, an embedder, heads and an objective; and how to get numbers out of them.

distributions/  predictive distributions of all heads, in raw units; numpy only
embedders/      from tokens and their values to vectors
heads/          from hidden states to numbers
number_terms/   losses on the values of tokens, added to cross-entropy
objectives/     the input of a model for a row, and its targets
places/         positions of tokens within their number
pretrained/     models of transformers: architecture, cache, folders
trunks/         the layers between embeddings and heads
attention.py    transformer and its cache, for trunks and for heads that decode
batches.py      padded batches of rows, in an order that is a pure function
common_heads.py  base classes of heads that classify, and of heads that predict one value
decoding.py     reading numbers from a model, with or without grammar constraints
flops.py        operations of a forward pass, counted by PyTorch
generation.py   generating whole answers, token by token
inputs.py       a batch as tensors, on the host or on a device
likelihood.py   log-likelihoods of whole rows, tokens and numbers together
made_up.py      small synthetic batches for checks of model parts
meta.py         models that have shapes but no memory
model.py        embedder, trunk and heads together, and their inputs for a batch
number_heads.py  modules that predict numbers from hidden states
precision.py    float64, on devices with and without it
presets.py      specs of models: a size or a trunk, with changed settings
projections.py  a number's embedding after the first layer norm, projected on a direction
regressor.py    trunk and head together: a table model
settings.py     the content of model.json: the parts of a model and their sizes
sizes.py        sizes of transformers by name
steps.py        the hidden states that predict numbers, token by token
training_batch.py  the input of a model with its labels, and ways to make it
vocabulary.py   which token ids are numbers, and the factors of their values
"""
