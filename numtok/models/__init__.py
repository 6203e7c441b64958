"""Models: a trunk, an embedder, heads, an objective; and numbers out of them.

distributions/  predictive distributions: what every head says about a number, in raw units.
                numpy only
embedders/      how a number goes in: tokens and their values to vectors
heads/          how a number comes out: hidden states to numbers
number_terms/   what an objective learns of the values of tokens
objectives/     what a model learns from a row: what it sees, and what it must predict
places/         where each token stands within its number
pretrained/     models of transformers: their architecture, their cache, their folders
trunks/         what lies between embeddings and heads
attention.py    a transformer's body and its cache, of trunks and of heads that decode
batches.py      rows to padded batches, in an order that is a pure function
common_heads.py  base classes of heads that classify, and of heads of one value
decoding.py     numbers out of a model, by the grammar or free of it
flops.py        operations of a forward pass, counted by PyTorch
generation.py   whole answers out of a model, token by token
inputs.py       a batch as tensors, on the host or on a device
likelihood.py   how probable whole rows are, tokens and numbers together
made_up.py      small made-up batches: what parts of models are checked on
meta.py         a model of shapes alone, which takes no memory
model.py        embedder, trunk and heads together, and the inputs that they need of a batch
number_heads.py  what says numbers of hidden states, in a model or behind any module
precision.py    float64, on devices that have it and those that have not
presets.py      specs of models: a size or a trunk, with settings changed
projections.py  a number's embedding after the first layer norm, on one direction
regressor.py    trunk and head together: a model of tables
settings.py     what model.json says of a model: its parts and their sizes
sizes.py        sizes of transformers by name
steps.py        the hidden states that predict numbers, token by token
training_batch.py  the input of a model and its labels, and ways to make them
vocabulary.py   which token ids are numbers, and what multiplies the value beside them
"""
