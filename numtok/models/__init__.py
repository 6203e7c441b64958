"""Models: their trunks, embedders, heads and objectives, and code that reads numbers from a model.

distributions/  predictive distributions of all heads, in raw units
embedders/      modules that map tokens and their values to vectors
heads/          modules that predict numbers from hidden states
number_terms/   losses that depend on the values of tokens, combined with cross-entropy
objectives/     training objectives, which determine a model's input and prediction targets
places/         digit positions: the position of each token within its number
pretrained/     models from the transformers library: architecture, cache, folders
trunks/         the layers between embeddings and heads
attention.py    the transformer used in trunks and in heads that decode, with its cache
batches.py      padded batches of rows, in an order that depends only on seed and epoch
common_heads.py  base classes for heads that predict classes, bins, a density or one value
decoding.py     prediction of numbers, token by token, with or without grammar constraints
flops.py        number of operations in a forward pass, measured with PyTorch
generation.py   generation of whole answers, token by token
inputs.py       a training batch as tensors, on the host or on a device
likelihood.py   log-likelihoods of rows, including both their tokens and their numbers
made_up.py      small synthetic batches used to check model parts
meta.py         models whose tensors have shapes but no memory
model.py        a text model: embedder, trunk and heads
modes.py        evaluation mode of a module, for the duration of a block
number_heads.py  modules that predict numbers from hidden states
precision.py    floating-point types on devices with and without float64
presets.py      model presets: named sizes or trunks, with optional settings
projections.py  embeddings of numbers after the first layer norm, projected onto a direction
regressor.py    a table model: a trunk and a value head
settings.py     the content of model.json: the parts of a model and their sizes
sizes.py        named sizes of transformers
steps.py        the hidden states from which numbers are predicted, token by token
training_batch.py  a model's input with its labels, and functions that build it
vocabulary.py   which token ids stand for numbers, and the factors that multiply their values
"""
