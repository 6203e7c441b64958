"""Encoding: converts texts and their numbers to tokens and values, and back. Does not use torch.

normalizers/        mappings of values to a range that suits a scheme, and back
schemes/            number schemes, which define how numbers are written as tokens
fields/             positions of numbers in the structure that rows have in common
text_tokenizers/    lossless byte tokenizers for the text between numbers
automaton.py        state table of a fixed-width scheme, for sampling many numbers at once
byte_alphabet.py    bytes as printable characters, as in GPT-2's tokenizer
channel.py          numbers as input to schemes and as targets for value heads; inexact numbers
codec.py            conversion of texts with numbers to tokens, and back
dataset.py          one split of encoded data, in memory or memory-mapped
decoded_shards.py   decoding of shards, to find rows that do not match their tokens
dataset_folder.py   export of encoded data as a folder for ``datasets.load_dataset``
fit_codec.py        fitting of the text tokenizer, normalizer and scheme to the train split
grammar.py          well-formed token sequences in a scheme, and lists of all its numbers
grid.py             schemes with one token at each of a fixed number of positions
holes.py            unknown numbers, written ``[?]``
huggingface.py      calls to Hugging Face's tokenizers, with panics raised as exceptions
in_memory.py        texts in memory as rows of an encoded split
interleave.py       compiled functions that split texts at numbers and merge the tokens
model_folder.py     location of a pretrained model: a folder, or a hub id
number_pattern.py   state machine over a tokenizer's tokens, for numbers with bounded digits
number_sample.py    samples of numbers and rows that do not depend on how data is divided
number_sizes.py     largest magnitude and number of decimals in data, for sizing schemes
numeral_states.py   state machine over characters, for numerals
row_keys.py         hash keys of numbers, for sampling
row_numbers.py      numbers in the texts of rows, without those in spans that a row excludes
row_twins.py        rows with a duplicate in the train split
sample_literals.py  number literals of all forms, for checking schemes
schema.py           layout of encoded data: special tokens, columns, file names
scheme_spec.py      schemes from specs, including specs that name a file
segments.py         texts split at their numbers
shards.py           writers of Parquet shards
splits.py           functions that read the splits of an encoded artifact
stored_codec.py     functions that read and compare the codecs of artifacts
target_texts.py     rows as texts without their targets, and the value of one target
targets.py          numbers that targets refer to, and positions where answers start
texts.py            columns of texts as bytes, and the numbers found in them
token_texts.py      text of each token of a Hugging Face tokenizer
tokenizer_json.py   export of a codec as Hugging Face's ``tokenizer.json``
train_numbers.py    moments and samples of the numbers in the train split, for fitting
unit.py             encoding of one unit of work, which writes shards and a receipt
valued_tokens.py    tokens that represent one or more digits, and their values
whole_text.py       tokenization of whole texts, and the tokens of their numbers
"""
