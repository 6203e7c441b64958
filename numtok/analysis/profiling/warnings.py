"""Warnings: what schemes lose on the numbers of slots, in words, the worst first."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from numtok.analysis.profiling.scheme_error import SchemeLosses, SlotLoss, digits_kept
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.slot_profile import SlotProfile, shown_range
from numtok.encoding.schemes.base import Scheme
from numtok.registry import spec_of

#: Errors of this share of the spread leave R2 at most 0.9999 (1 - 0.01^2), and models that read
#: numbers well reach three nines: what is below is not the limit of anything.
LOST_SPREAD = 0.01
#: A slot with less of the channel's range than this: values across the whole slot change the
#: number's embedding by less than 1% of what it changes over the data.
CHANNEL_SHARE = 0.01
#: Where more than this share of the distinct whole numbers cannot be told apart after writing,
#: labels and keys (years, ids) are mixed up even if little of the spread is lost.
MERGED = 0.5
#: Fewer numbers than this for each number token of a vocabulary that has hundreds: most are seen
#: hardly ever, so their embeddings stay random.
SEEN, MANY_TOKENS = 10, 256
#: A value that so large a share of a slot has: always saying it is right that often.
COMMON = 0.5


@dataclass(frozen=True, kw_only=True)
class ProfileWarning:
    """A warning: what kind of loss, of which schemes, where (None: everywhere), and how much."""

    kind: str  # one of ORDER
    schemes: tuple[str, ...]
    slot: str | None = None
    figure: float
    text: str


_FINE = 1e-4  # errors below it are told in digits, larger ones that are no half step in percent
ORDER = ("unwritable", "clipped", "rounded", "narrow", "merged", "rare")


def profile_warnings(
    schemes: Sequence[SchemeLosses], slots: Mapping[int, SlotProfile], numbers: int
) -> list[ProfileWarning]:
    """All warnings; schemes of which the same is to be said share one."""
    found = [
        *_unwritable(schemes),
        *(verdict for node in slots for verdict in _of_slot(schemes, node, slots[node])),
        *_rare(schemes, numbers),
    ]
    # Losses of all numbers first, then the worst.
    return sorted(found, key=lambda one: (ORDER.index(one.kind), -badness(one)))


def badness(verdict: ProfileWarning) -> float:
    """How bad a warning is beside others of its kind, above 0."""
    return 1 / verdict.figure if verdict.kind in ("narrow", "rare") else verdict.figure


def keeps(scheme: Scheme) -> str:
    """How exact a scheme is: ``keeps 3 digits``, ``is exact to 1.2%`` (or ``of its range``)."""
    error, absolute = scheme.error
    if scheme.unit_interval:
        return f"is exact to {percent(error)} of its range"
    if absolute:
        return f"is exact to {error:g}"
    if error == 0:
        return "keeps all digits"
    kept, exactly = digits_kept(error)
    if error < _FINE or exactly:
        return f"keeps {kept} digit{'s' if kept > 1 else ''}"
    return f"is exact to {percent(error)}"


def percent(share: float) -> str:
    """``percent(0.0672) -> "6.7%"``, ``percent(0.41) -> "41%"``"""
    value = 100 * share
    if value >= 9.95:
        return f"{value:.0f}%" if value < 99.5 or share >= 1 else "99%"
    if value < 0.005:
        return "under 0.01%"
    return f"{value:.1f}%" if value >= 0.095 else f"{value:.1g}%"


def part(error: float) -> str:
    """An error as a part of the spread: ``5.9%``; ``all`` where the error is as large."""
    return percent(error) if error < 1 else "all"


def counted(number: int, about: str = "") -> str:
    """``1 number``, ``about 2,967 numbers``"""
    return f"{about}{number:,} number{'s' if number > 1 else ''}"


def _unwritable(schemes: Sequence[SchemeLosses]) -> Iterator[ProfileWarning]:
    for one in schemes:
        if one.problem:
            yield ProfileWarning(
                kind="unwritable",
                schemes=(one.spec,),
                figure=1.0,
                text=f"{one.spec}: {one.problem}",
            )


def _of_slot(
    schemes: Sequence[SchemeLosses], node: int, slot: SlotProfile
) -> Iterator[ProfileWarning]:
    """What there is to say of one slot."""
    where = f"{slot.name} ({shown_range(slot)})"
    alike: dict[tuple[str, str], list[tuple[SchemeLosses, float]]] = defaultdict(list)
    for one in schemes:
        if (loss := one.by_node.get(node)) is not None:
            for kind, figure, text in _losses_of(one, loss, slot, where):
                alike[kind, text].append((one, figure))
    for (kind, text), those in alike.items():
        specs = tuple(one.spec for one, _ in those)
        plain = _plural(text) if len(specs) > 1 else text
        yield ProfileWarning(
            kind=kind,
            schemes=specs,
            slot=slot.name,
            figure=those[0][1],
            text=f"{listed(specs)}{plain}",
        )


def _losses_of(
    losses: SchemeLosses, loss: SlotLoss, slot: SlotProfile, where: str
) -> Iterator[tuple[str, float, str]]:
    """Kind, figure and words of each loss that is worth a warning, without the scheme's name."""
    scheme = losses.scheme
    if loss.clipped:
        share = loss.clipped / slot.numbers
        low, high = (short_value(bound) for bound in scheme.bounds)
        by = "none" if losses.normalizer is None else spec_of(losses.normalizer.normalizer)
        after = "" if by == "none" else f" after {by}"
        yield (
            "clipped",
            share,
            f" cannot write {counted(loss.clipped, '' if loss.clipped_exact else 'about ')} "
            f"({percent(share)}) of {where}: its magnitudes are {low} to {high}{after}",
        )
    rounded = loss.error_of_spread is not None and loss.error_of_spread >= LOST_SPREAD
    # Clipped numbers are mixed up as well, which is said already.
    left = slot.distinct if loss.distinct_left is None or loss.clipped else loss.distinct_left
    told = f"{slot.distinct:,} values become {left:,}" if left < slot.distinct else ""
    if rounded and loss.error_of_spread is not None:
        tail = f"; {told}" if told else ""
        yield (
            "rounded",
            loss.error_of_spread,
            f" {keeps(scheme)}: {where} loses {part(loss.error_of_spread)} of its spread{tail}",
        )
    elif slot.integer == 1.0 and left < (1 - MERGED) * slot.distinct:
        yield "merged", 1 - left / slot.distinct, f" {keeps(scheme)}: of {where} {told}"
    if losses.channel and loss.channel_share is not None and 0 < loss.channel_share < CHANNEL_SHARE:
        low, high = (short_value(end) if abs(end) > 0.01 else "0" for end in losses.channel)
        yield (
            "narrow",
            loss.channel_share,
            f" has one channel for all slots, {low} to {high}: {where} spans "
            f"{percent(loss.channel_share)} of it",
        )


def _rare(schemes: Sequence[SchemeLosses], numbers: int) -> Iterator[ProfileWarning]:
    many = [
        one
        for one in schemes
        if one.scheme.paper_vocabulary_size >= max(MANY_TOKENS, numbers / SEEN) and not one.problem
    ]
    many.sort(key=lambda one: -one.scheme.paper_vocabulary_size)
    if many:
        sizes = [f"{one.spec} ({one.scheme.paper_vocabulary_size:,})" for one in many]
        verb = "has" if len(many) == 1 else "have"
        yield ProfileWarning(
            kind="rare",
            schemes=tuple(one.spec for one in many),
            figure=numbers / many[0].scheme.paper_vocabulary_size,
            text=f"{listed(sizes)} {verb} so many number tokens that in {counted(numbers)} most "
            "are seen hardly ever",
        )


def listed(specs: Sequence[str]) -> str:
    """``p10, p1000 and fp15``"""
    return specs[0] if len(specs) == 1 else f"{', '.join(specs[:-1])} and {specs[-1]}"


def _plural(text: str) -> str:
    """`` keeps 3 digits`` of several schemes."""
    for one, many in ((" keeps ", " keep "), (" is ", " are "), (" has ", " have ")):
        if text.startswith(one):
            return many + text[len(one) :]
    return text.replace(": its magnitudes", ": their magnitudes")
