"""Predictive distributions of all heads, in raw units.

predictive.py     the interface of all predictive distributions
bits.py           float64 numbers with independent bits
decoded.py        numbers that a decoder generates, with results computed by the decoder
decoder_cells.py  conversion of numbers to a decoder's tokens, and of tokens to intervals
digits.py         numbers with a sign and independent decimal digits
floating.py       numbers whose sign, exponent and significand consist of independent symbols
intervals.py      token probabilities, uniform within the scheme's intervals
mixture.py        mixtures of Gaussians
multiples.py      a mantissa times an uncertain power of ten
normal.py         the normal distribution on arrays, accurate in the tails
piecewise.py      mean and CRPS of piecewise linear distribution functions
prefix_tree.py    exact sums over all numbers, computed with the tree of their prefixes
samples.py        distributions given by samples or by independent classes, such as residues
sampling.py       temperature, top-k and top-p for a decoder
scientific.py     numbers with independent digits in scientific notation
tailed.py         distributions with a fixed probability outside the training range
"""
