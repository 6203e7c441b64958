"""Predictive distributions: what every head says about a number, in raw units. numpy only.

predictive.py           what every predictive distribution answers
bits.py           of the 64 bits of a float64, each on its own
decoded.py        of numbers that a decoder writes, asked of the decoder
decoder_cells.py  numbers as a decoder's tokens, and the cells these stand for
digits.py         of decimal digits and a sign, each on its own
floating.py       of a sign, an exponent and a significand, each place on its own
intervals.py      from token probabilities: uniform within the scheme's intervals
mixture.py        several Gaussians, weighted
multiples.py      of a mantissa, times powers of ten by their probabilities
normal.py         the normal distribution on arrays, with its digits in the tails
piecewise.py      scores of piecewise linear distribution functions
prefix_tree.py    what lies before a number in the tree of its prefixes
samples.py        from numbers drawn; of independent classes, such as residues; quantiles of draws
sampling.py       how a decoder's tokens are drawn
scientific.py     of digits in scientific notation, each on its own
tailed.py         with stated tails outside the range of the train split
"""
