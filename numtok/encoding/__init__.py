"""Texts to tokens and values, and back: schemes, what lies around numbers, shards. No torch.

normalizers/        normalisations: values to a range that suits a scheme, and back. One file
                    each, no torch
schemes/            number schemes: how a number is written as tokens. One file a scheme, no
                    torch
slots/              where in the repeated structure of the rows a number stands
text_tokenizers/    text between numbers: lossless tokenizers of bytes. One file a tokenizer, no
                    torch
automaton.py        the same for very many at once: a table of states
channel.py          what a scheme is given of numbers, what is learnt of them, what its channel
                    does not hold
codec.py            a column of texts to tokens and back, numbers and text together
dataset.py          one split of encoded data, in memory or mapped from disk
dataset_folder.py   encoded data as a folder that the library datasets opens
fit_codec.py        fits text tokenizer, normaliser and scheme on the train split
grammar.py          which token sequences are numbers, and all of them with their values
grid.py             schemes with one token at each of a fixed number of places
holes.py            numbers that nobody knows, written ``[?]``
huggingface.py      Hugging Face's tokenizers: each distinct text once, panics as exceptions
in_memory.py        texts as rows of encoded data, in memory
interleave.py       texts cut at numbers, and tokens put together, compiled
model_folder.py     where a pretrained model lies: a folder, or a hub id
number_sample.py    samples of numbers and rows, the same in any division
number_sizes.py     sizes of the numbers of data, to which schemes are fitted
row_keys.py         keys of numbers, by which samples are the same in any division
row_twins.py        rows with a twin in the train split
sample_literals.py  literals of many forms, for the digest of a scheme and its contract
schema.py           special tokens, columns of a shard, names of counts and files
scheme_spec.py      the scheme of a spec, also that of a file
segments.py         texts cut at the numbers in them
shards.py           writes Parquet shards
splits.py           the splits of an encoded artifact
targets.py          targets and answer starts, from characters to numbers and tokens
texts.py            columns of texts as bytes, and the numbers found in them
tokenizer_json.py   a codec as the file that Hugging Face's tokenizers read
train_numbers.py    what of its numbers that needs: moments, a sample as written
unit.py             one unit of encode: rows in, shards and a receipt out
whole_text.py       texts cut into tokens with their numbers in them, and where these are
"""
