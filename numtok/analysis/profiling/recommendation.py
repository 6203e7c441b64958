"""Chooses the scheme to try first, by the rule of docs/get-started/which-encoding.md.

1. Values are normalized by ``signed-log``, or by ``affine`` if a logarithm would make them nearly
   equal. The target of records has a scale of its own (``affine,by=answer``), unless some of its
   values are very far from the others.
2. Schemes that lose numbers come last: those that clip, round or merge them, or hide changes in
   targets (in any number, if the data have no targets).
3. The other schemes are ordered by their mean rank in the grand table of docs/results.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from numtok.analysis.profiling.field_profile import HIGH_LEVEL, FieldProfile, is_heavy_tailed
from numtok.analysis.profiling.scheme_error import SchemeLosses
from numtok.analysis.profiling.warnings import badness, profile_warnings
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Moments
from numtok.encoding.schemes.base import scales_values
from numtok.registry import name_of

#: Schemes by mean rank in the grand table at equal samples, ``xval`` with ``signed-log``.
MEASURED = (
    *("xval", "fone", "numgpt", "nd", "base10", "p1000", "tst", "ud", "p10", "chronos", "b1999"),
    *("triads", "numerologic", "digits", "dice", "native", "numvalue", "fp15", "bits", "hamming"),
    "bpe",
)
LOGARITHM = "signed-log"
AROUND_THE_MEAN = "affine"
#: Separate constants for a target, apart from the numbers before it.
_OF_ANSWER = f"{AROUND_THE_MEAN},by=answer"
_LOST = ("unwritable", "clipped", "rounded", "merged")  # kinds of warning, the worst first


def advised_normalizer(moments: Moments) -> str:
    """Return the normalizer to use for numbers with these moments.

    It is ``signed-log``, or ``affine`` if a logarithm would make the numbers nearly equal.
    """
    if not moments.count:
        return LOGARITHM
    logarithm = FittedNormalizer(NORMALIZERS.build(LOGARITHM), {})
    hidden = _hides(logarithm, moments.mean, moments.deviation)
    return AROUND_THE_MEAN if hidden else LOGARITHM


def target_normalizers(target: FieldProfile, others: Moments) -> tuple[str, str]:
    """Return the two normalizers to try for records of one target, the more suitable one first.

    ``others`` are the moments of the numbers in the train split that are not targets. Without such
    numbers, the target needs no separate constants.
    """
    own = _OF_ANSWER if others.count else AROUND_THE_MEAN
    heavy = is_heavy_tailed(target.low, target.high, target.quartiles)
    return (LOGARITHM, own) if heavy else (own, LOGARITHM)


def recommended(
    tried: Sequence[SchemeLosses],
    fields: Mapping[int, FieldProfile],
    targets: Collection[int] = (),
    answer: int | None = None,
) -> SchemeLosses | None:
    """Return the scheme to try first; None if every scheme has a problem.

    All schemes in ``tried`` were profiled with the advised normalizer. Changes that a scheme hides
    count only in the fields ``targets`` (or in all fields if the data have no targets), so a year
    among the inputs does not affect the choice. Clipped numbers are counted in thousandths of all
    numbers, so a single clipped number does not affect the choice either. Schemes without a
    measured rank come last, in ascending order of token count. ``answer`` is the field whose
    numbers are in answers, if it is known.
    """
    numbers = max(1, sum(field.numbers for field in fields.values()))
    warnings = profile_warnings(tried, fields, numbers)
    predicted = fields.keys() & targets or fields.keys()

    def cost(scheme: SchemeLosses) -> tuple[int, list[float], int, int, float, int, str]:
        losses = scheme.by_node.items()
        clipped = 1000 * sum(loss.clipped for _, loss in losses) // numbers
        own = [warning for warning in warnings if scheme.spec in warning.schemes]
        lost = [
            max((badness(warning) for warning in own if warning.kind == kind), default=0)
            for kind in _LOST
        ]
        hidden = sum(
            _hides_field(scheme, fields[node], node == answer)
            for node in scheme.by_node
            if node in predicted
        )
        name = name_of(scheme.scheme)
        rank = MEASURED.index(name) if name in MEASURED else len(MEASURED)
        tokens = sum(loss.tokens_per_number * fields[node].numbers for node, loss in losses)
        return clipped, lost, hidden, rank, tokens, scheme.vocabulary, scheme.spec

    usable = [scheme for scheme in tried if not scheme.problem]
    return min(usable, key=cost, default=None)


def _hides_field(tried: SchemeLosses, field: FieldProfile, in_answer: bool) -> bool:
    if tried.normalizer is None or not scales_values(tried.scheme):
        return False
    return _hides(tried.normalizer.at(in_answer), field.mean, field.deviation)


def _hides(normalizer: FittedNormalizer, mean: float | None, deviation: float | None) -> bool:
    """Return whether normalized numbers vary by far less than their magnitude."""
    if mean is None or deviation is None:
        return False
    low, middle, high = normalizer.forward(np.array([mean - deviation, mean, mean + deviation]))
    return bool(0 < (high - low) / 2 < HIGH_LEVEL * abs(middle))
