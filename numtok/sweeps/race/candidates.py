"""What may take part in a race, and why what may not.

Everything comes from the registries, including plugins: schemes (for tables, heads), each with its
defaults. Schemes whose numbers are values also race with other heads and with the normalizations
that the numbers need. Schemes of all digits take unscaled data, so they race with their defaults.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from numtok.analysis.profiling.recommendation import AROUND_THE_MEAN, scales_values
from numtok.analysis.profiling.warnings import CHANNEL_SHARE, counted, part, percent
from numtok.encoding.grid import is_contiguous
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme, Scheme, is_exact
from numtok.encoding.whole_text import TextScheme
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import (
    HEADS,
    TokenHead,
    ValueHead,
    learns_unit_interval,
)
from numtok.models.objectives.base import OBJECTIVES
from numtok.registry import name_in, spec_of
from numtok.stages.profile import Profile, SchemeProfile
from numtok.sweeps.race.words import Slot
from numtok.training.trained_table import table_head

CLIPPED = 0.01  # of a slot's numbers: a scheme that loses more is out
LOST = 0.05  # of a slot's spread: likewise
#: What writes numbers of any size, where a few are far from the others.
_FOR_TAILS = "signed-log"
_LEFTWARD = "ar"
#: A value for the setting that a head needs; others are as their class is checked.
_SIZES = {"riemann": "256", "mdn": "5"}
_CODEC = "codec"  # the setting of a head that writes numbers in a scheme


class Verdict(msgspec.Struct, frozen=True):
    """Whether a scheme, of tables a head, takes part, and why, or how."""

    scheme: str
    takes_part: bool
    reason: str


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate before it is measured: a scheme, or of tables a head, and what is not as usual
    with it; None is as usual."""

    scheme: str
    head: str | None = None
    normalize: str | None = None
    objective: str | None = None
    embedder: str | None = None

    @property
    def label(self) -> str:
        """``xval, normalize=signed-log, head=mdn:5``, as comparisons call it."""
        others = {
            "normalize": self.normalize,
            "head": self.head,
            "objective": self.objective,
            "embedder": self.embedder,
        }
        return ", ".join(
            [self.scheme, *(f"{name}={value}" for name, value in others.items() if value)]
        )


# --- texts -------------------------------------------------------------------------------------


def judged(profile: Profile, named: Sequence[str]) -> list[Verdict]:
    """Judge each scheme. Those that were ``named`` take part whatever they lose, and so does the
    one that the profile recommends."""
    found = [_judged(one, profile, named) for one in profile.schemes]
    if not named:
        looked_at = {name_in(one.scheme): one for one in found}
        found += [_unseen(name, looked_at) for name in SCHEMES if name not in looked_at]
    return [
        Verdict(one.scheme, True, f"{one.reason}; in the race because the profile recommends it")
        if one.scheme == profile.recommended and not one.takes_part
        else one
        for one in found
    ]


def _judged(scheme: SchemeProfile, profile: Profile, named: Sequence[str]) -> Verdict:
    lost = next(_lost(scheme, profile), None)
    if scheme.problem:
        return Verdict(scheme.scheme, False, scheme.problem)
    if lost is None:
        return Verdict(scheme.scheme, True, _good(scheme))
    if named:
        return Verdict(scheme.scheme, True, f"{lost}; in the race because it was named")
    return Verdict(scheme.scheme, False, lost)


def _good(scheme: SchemeProfile) -> str:
    clipped = scheme.clipped or 0
    worst = max((loss.error_of_spread or 0.0 for loss in scheme.slots), default=0.0)
    if not clipped and not worst:
        return "loses nothing"
    lost = [f"cannot write {counted(clipped)}"] if clipped else []
    return "; ".join([*lost, f"loses {part(worst)} of a spread at most"] if worst else lost)


def _lost(scheme: SchemeProfile, profile: Profile) -> Iterator[str]:
    """Why a scheme is out, the worst first."""
    slots = {slot.name: slot for slot in profile.slots}
    for loss in sorted(scheme.slots, key=lambda one: -one.clipped):
        if (share := loss.clipped / slots[loss.slot].numbers) > CLIPPED:
            yield f"cannot write {percent(share)} of {loss.slot}"
    for loss in sorted(scheme.slots, key=lambda one: -(one.error_of_spread or 0.0)):
        if (error := loss.error_of_spread or 0.0) > LOST:
            yield f"rounds {loss.slot} so that {part(error)} of its spread is lost"
    if profile.numbers < scheme.vocabulary:
        yield (
            f"has {scheme.vocabulary:,} tokens for {counted(profile.numbers)}, so that most are "
            "never seen"
        )


def _unseen(name: str, looked_at: Mapping[str, Verdict]) -> Verdict:
    """Of a scheme that a profile leaves out."""
    if needs := SCHEMES.required(name):
        return Verdict(name, False, f"needs a value for {needs[0]!r}; name it with --schemes")
    if issubclass(SCHEMES[name], TextScheme):
        why = "is how pretrained models read numbers, and none takes part; name it with --schemes"
        return Verdict(name, False, why)
    twin = looked_at[SCHEMES[name].defaults.same_tokens_as]
    return Verdict(name, twin.takes_part, twin.reason)


def text_entries(profile: Profile, verdicts: Sequence[Verdict]) -> list[Entrant]:
    """The candidates, the one to try first at the beginning: all schemes as they are usually used,
    those that learn most in the same time first, with the fewest tokens in a row and, of as many,
    in the vocabulary, of all digits last; then what else goes with those whose numbers are
    values. What the profile recommends comes before all of these, followed by values with every
    head and ``affine`` where it advises that."""
    costs = {
        one.scheme: (one.tokens_per_row or math.inf, one.vocabulary) for one in profile.schemes
    }
    entered = [(one.scheme, scheme_of(one.scheme)) for one in verdicts if one.takes_part]

    def cost(one: tuple[str, Scheme]) -> tuple[float, int, bool]:
        spec, scheme = one
        tokens, words = (
            costs.get(spec) or costs.get(scheme.defaults.same_tokens_as) or (math.inf, 0)
        )
        return tokens, words, is_exact(scheme)

    schemes = dict(sorted(entered, key=cost))
    usual = [_usual(spec, scheme) for spec, scheme in schemes.items()]
    values = [spec for spec, one in schemes.items() if scales_values(one)]
    tails = [_FOR_TAILS] if _has_tails(profile) else []
    advised = profile.value_normalize
    others = [
        Entrant(scheme=spec, head=head, normalize=normalize)
        for spec in values
        for normalize in dict.fromkeys((advised, None, *tails))
        for head in (None, *_other_heads(schemes[spec].defaults.head))
        if head or normalize
    ]
    best = profile.recommended, None, profile.recommended_normalize

    def later(one: Entrant) -> tuple[bool, bool]:
        return (one.scheme, one.head, one.normalize) != best, one.normalize != AROUND_THE_MEAN

    return sorted([*usual, *others], key=later)


def _usual(spec: str, scheme: Scheme) -> Entrant:
    """Numbers of several lengths are read from left to right: a masked model would have to be told
    how long the answer is, which nobody knows of a number that is not there. A scheme may have an
    objective of its own for that, of its name."""
    if scheme.tokens_per_number is not None:
        embedder = scheme.defaults.embedder
        narrow = EMBEDDERS.checked_at(embedder)  # one for models of any width
        return Entrant(scheme=spec, embedder=None if narrow == embedder else narrow)
    own = name_in(spec)
    return Entrant(scheme=spec, objective=own if own in OBJECTIVES else _LEFTWARD)


def _other_heads(usual: str) -> Iterator[str]:
    for name in HEADS:
        head = HEADS.build(_spec(name))
        other = isinstance(head, ValueHead) and not isinstance(head, TokenHead)
        if other and not head.exact and name != name_in(usual):
            yield spec_of(head)


def _spec(name: str) -> str:
    """Of a head, with the settings that it cannot be without."""
    if name in _SIZES:
        return f"{name}:{_SIZES[name]}"
    return HEADS.checked_at(name) if HEADS.required(name) else name


def _has_tails(profile: Profile) -> bool:
    """Whether values on one scale would be hard to tell from each other: some are very large, or
    those of a slot very small beside others."""
    narrow = any(
        loss.channel_share is not None and loss.channel_share < CHANNEL_SHARE
        for scheme in profile.schemes
        for loss in scheme.slots
    )
    return narrow or any(Slot.of_profile(slot).heavy_tail for slot in profile.slots)


# --- tables ------------------------------------------------------------------------------------


def judged_heads(named: Sequence[str]) -> list[Verdict]:
    """A verdict on each head of tables, with the codecs that it may write in."""
    if named:
        return [Verdict(spec_of(head), True, head.describe()) for head in map(table_head, named)]
    return list(map(_judged_head, _heads()))


def _judged_head(spec: str) -> Verdict:
    name, _, codec = spec.partition(":")
    if getattr(HEADS[name], "positional", None) == _CODEC:
        scheme = SCHEMES.build(codec)
        if isinstance(scheme, ChannelScheme) or scheme.tokens_per_number is None:
            told = "its numbers have several lengths, or a value beside their tokens"
            return Verdict(spec, False, told)
        if not is_contiguous(scheme):
            told = "numbers that begin with the same tokens are no interval: no exact quantiles"
            return Verdict(spec, False, told)
    try:
        return Verdict(spec, True, table_head(spec).describe())
    except UsageError:
        return Verdict(spec, False, "reads tokens of a text, which a table has not")


def _heads() -> Iterator[str]:
    for name in HEADS:
        if getattr(HEADS[name], "positional", None) == _CODEC:
            yield from (f"{name}:{one}" for one in SCHEMES if not SCHEMES.required(one))
        else:
            yield _spec(name)


def table_entries(slot: Slot, verdicts: Sequence[Verdict]) -> list[Entrant]:
    """The candidates for the target of a table: each head as usual, and where the target has a
    heavy tail those that learn numbers of any size on a logarithmic scale, too."""
    heads = [one.scheme for one in verdicts if one.takes_part]
    usual = [Entrant(scheme=spec) for spec in heads]
    if not slot.heavy_tail:
        return usual
    return [
        *usual,
        *(Entrant(scheme=spec, normalize=_FOR_TAILS) for spec in heads if _takes_tails(spec)),
    ]


def _takes_tails(spec: str) -> bool:
    head = table_head(spec)
    return not learns_unit_interval(head) and not head.exact
