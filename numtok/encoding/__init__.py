"""Texts to tokens and values, and back: schemes, text tokenizers, normalizers, shards. No torch.

normalizers/        map values to a range that suits a scheme, and back. One file each, no torch
schemes/            number schemes: how a number is written as tokens. One file per scheme, no
                    torch
fields/              position of a number in the repeated structure of the rows
text_tokenizers/    lossless byte tokenizers for the text between numbers. One file per
                    tokenizer, no torch
automaton.py        well-formed numbers as a table of states, for drawing many at once
byte_alphabet.py    bytes as printable characters, as in GPT-2's tokenizer
channel.py          normalized numbers for schemes and value heads; counts of inexact numbers
codec.py            a column of texts to tokens and back, numbers and text together
dataset.py          one split of encoded data, in memory or memory-mapped
dataset_folder.py   encoded data as a folder that the library ``datasets`` opens
fit_codec.py        fits text tokenizer, normalizer and scheme on the train split
grammar.py          well-formed token sequences of a scheme, and all numbers with their values
grid.py             schemes with one token at each of a fixed number of positions
holes.py            unknown numbers, written ``[?]``
huggingface.py      runs Hugging Face's tokenizers once per distinct text; panics as exceptions
in_memory.py        texts as rows of encoded data, in memory
interleave.py       splits texts at numbers and merges the tokens, compiled
model_folder.py     locates a pretrained model: a folder, or a hub id
number_pattern.py   numbers with bounded digits, as a state machine of a tokenizer's tokens
number_sample.py    samples of numbers and rows that do not depend on how data is split up
number_sizes.py     sizes of the numbers in data, for sizing schemes
numeral_states.py   numerals as a state machine of characters
row_keys.py         hash keys of numbers, for samples that do not depend on how data is split up
row_twins.py        rows with a duplicate in the train split
sample_literals.py  literals of many forms, for the digest of a scheme and its contract
schema.py           special tokens, columns of a shard, names of counts and files
scheme_spec.py      builds a scheme from a spec, or from a file
segments.py         texts split at their numbers
shards.py           writes Parquet shards
splits.py           the splits of an encoded artifact
targets.py          resolves targets and answer starts from characters to numbers and tokens
texts.py            columns of texts as bytes, and the numbers found in them
token_texts.py      the text of each token of a Hugging Face tokenizer
tokenizer_json.py   exports a codec as Hugging Face's ``tokenizer.json``
train_numbers.py    moments and a sample of the numbers of the train split, for fitting
unit.py             one unit of encode: rows in, shards and a receipt out
valued_tokens.py    the tokens that stand for one or more digits, and their values
whole_text.py       whole texts as tokens, and which tokens belong to their numbers
"""
