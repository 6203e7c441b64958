"""The encoding to try first."""

from collections.abc import Mapping, Sequence

from numtok.analysis.profiling.scheme_error import SchemeLosses
from numtok.analysis.profiling.slot_profile import SlotProfile, is_high_level
from numtok.analysis.profiling.warnings import ORDER, badness, profile_warnings
from numtok.encoding.normalizers.base import Moments
from numtok.encoding.schemes.base import Scheme


def scales_values(scheme: Scheme) -> bool:
    """Whether models see each number as one value, which a normalization puts on a scale."""
    return scheme.channel and not scheme.splits and not scheme.exact


def advised_normalizer(moments: Moments) -> str | None:
    """``affine`` for numbers at a high level, which other normalizations leave nearly equal."""
    if not moments.count or not is_high_level(moments.mean, moments.deviation):
        return None
    return "affine"


def recommended(
    tried: Sequence[SchemeLosses], slots: Mapping[int, SlotProfile]
) -> SchemeLosses | None:
    """The scheme to try first.

    It clips least (in thousandths of all numbers: a stray one does not decide), then rounds least,
    and so on by the kinds of warning. Among equals it is the shortest one, and a value rather than
    all digits of it, which is learned sooner (docs/RESULTS.md, What a race loses).
    """
    numbers = max(1, sum(slot.numbers for slot in slots.values()))
    warnings = profile_warnings(tried, slots, numbers)

    def cost(one: SchemeLosses) -> tuple[int, list[float], float, int, bool, str]:
        losses = one.by_node.items()
        clipped = 1000 * sum(loss.clipped for _, loss in losses) // numbers
        own = [warning for warning in warnings if one.spec in warning.schemes]
        against = [
            max((badness(warning) for warning in own if warning.kind == kind), default=0)
            for kind in ORDER
        ]
        tokens = sum(loss.tokens_per_number * slots[node].numbers for node, loss in losses)
        return clipped, against, tokens, one.vocabulary, one.scheme.exact, one.spec

    usable = [one for one in tried if not one.problem]
    return min(usable, key=cost, default=None)
