"""Encoding: converts texts and their numbers to tokens and values, and back. Does not use torch.

normalizers/        mappings of values to a range that suits a scheme, and back
schemes/            number schemes: how a number is written as tokens
fields/             positions of numbers in the repeated structure of the rows
text_tokenizers/    lossless byte tokenizers for the text between numbers
automaton.py        state table of a fixed-width scheme, for sampling many numbers at once
channel.py          numbers as inputs of schemes and targets of value heads; inexact numbers
codec.py            conversion of texts with numbers to tokens, and back
dataset.py          one split of encoded data, in memory or memory-mapped
dataset_folder.py   export of encoded data as a folder for ``datasets.load_dataset``
fit_codec.py        fitting of text tokenizer, normalizer and scheme on the train split
grammar.py          well-formed token sequences of a scheme, and all numbers with their values
grid.py             schemes with one token at each of a fixed number of positions
holes.py            unknown numbers, written ``[?]``
huggingface.py      calls of Hugging Face's tokenizers, with panics as exceptions
in_memory.py        texts in memory as rows of an encoded split
interleave.py       compiled splitting of texts at numbers, and merging of the tokens
model_folder.py     location of a pretrained model: a folder, or a hub id
number_sample.py    samples of numbers and rows, regardless of how the data is divided
number_sizes.py     largest magnitude and decimals in data, for sizing schemes
row_keys.py         hash keys of numbers, for sampling
row_twins.py        rows with a duplicate in the train split
sample_literals.py  number literals of all forms, for checking schemes
schema.py           layout of encoded data: special tokens, columns, names of files
scheme_spec.py      schemes from specs, including specs that name a file
segments.py         texts split at their numbers
shards.py           writers of Parquet shards
splits.py           reading of the splits of an encoded artifact
targets.py          numbers that targets refer to, and starts of answers
texts.py            columns of texts as bytes, and the numbers found in them
tokenizer_json.py   export of a codec as Hugging Face's ``tokenizer.json``
train_numbers.py    moments and samples of the numbers in the train split, for fitting
unit.py             encoding of one unit of work, from rows to shards and a receipt
whole_text.py       tokenization of whole texts, and the tokens of their numbers
"""
