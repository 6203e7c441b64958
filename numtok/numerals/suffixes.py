"""Suffixes that stand for a power of ten, as in ``2.5k`` and ``3 million``."""

#: Power of ten of each suffix. A suffix ends its word.
SUFFIXES = {
    **{"k": 3, "K": 3, "M": 6, "B": 9, "T": 12, "mn": 6, "bn": 9, "tn": 12},
    **{" mn": 6, " bn": 9, " tn": 12, " thousand": 3, " million": 6, " billion": 9},
    **{" trillion": 12, " lakh": 5, " crore": 7},
}
