"""Predictive distributions of all heads, in raw units.

predictive.py     the interface of all predictive distributions
bits.py           float64 numbers with independent bits
decoded.py        numbers that a decoder generates, with results computed by the decoder
decoder_cells.py  the tokens of a number in a decoder, and the intervals that they stand for
digits.py         numbers with a sign and independent decimal digits
floating.py       numbers whose sign, exponent and significand have independent symbols
intervals.py      token probabilities, uniform within the scheme's intervals
mixture.py        mixtures of Gaussians
multiples.py      a mantissa times an uncertain power of ten
normal.py         the normal distribution on arrays, accurate in the tails
piecewise.py      mean and CRPS of piecewise linear distribution functions
prefix_tree.py    exact sums over all numbers, computed with the tree of their prefixes
samples.py        empirical distributions; independent classes, such as residues; quantiles
sampling.py       temperature, top-k and top-p for a decoder
scientific.py     numbers with independent digits in scientific notation
tailed.py         a distribution with a fixed probability outside the training range
"""
