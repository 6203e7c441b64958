"""Warnings about the information that schemes lose on the numbers in a field, worst first."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from numtok.analysis.profiling.field_profile import FieldProfile, shown_range
from numtok.analysis.profiling.scheme_error import FieldLoss, SchemeLosses, digits_kept
from numtok.analysis.profiling.short_values import short_value
from numtok.encoding.schemes.base import Scheme
from numtok.names import counted
from numtok.registry import spec_of

#: An error of this fraction of the spread limits R2 to 0.9999 (1 - 0.01^2). Models that read
#: numbers well reach three nines, so smaller errors limit nothing.
LOST_SPREAD = 0.01
#: In a field that uses less than this fraction of the channel's range, values across all of it
#: change the embedding by less than 1% of its change over the data.
CHANNEL_SHARE = 0.01
#: If more than this fraction of distinct whole numbers become equal, labels and keys (years, ids)
#: are confused even if little of the spread is lost.
MERGED = 0.5
#: With fewer numbers than this per number token of a vocabulary of hundreds, most tokens occur so
#: rarely that their embeddings stay random.
SEEN, MANY_TOKENS = 10, 256
#: A value with at least this fraction of a field: a constant prediction is right that often.
COMMON = 0.5


@dataclass(frozen=True, kw_only=True)
class ProfileWarning:
    """A warning that schemes lose information about the numbers in a field.

    kind
        Kind of the loss, one of :data:`ORDER`.
    field
        Name of the field; None if the warning concerns all fields.
    figure
        Size of the loss, in a unit that depends on the kind.
    """

    kind: str  # one of ORDER
    schemes: tuple[str, ...]
    field: str | None = None
    figure: float
    text: str


_FINE = 1e-4  # smaller errors are shown in digits; larger ones, unless half a step, in percent
ORDER = ("unwritable", "clipped", "rounded", "narrow", "merged", "rare")


def profile_warnings(
    schemes: Sequence[SchemeLosses], fields: Mapping[int, FieldProfile], numbers: int
) -> list[ProfileWarning]:
    """Return all warnings, worst first. Schemes with the same loss on a field share a warning.

    ``numbers`` is the number of numbers in the data.
    """
    warnings = [
        *_unwritable(schemes),
        *(warning for node in fields for warning in _of_field(schemes, node, fields[node])),
        *_rare(schemes, numbers),
    ]
    # Losses of all numbers first, then the worst.
    return sorted(warnings, key=lambda warning: (ORDER.index(warning.kind), -badness(warning)))


def badness(warning: ProfileWarning) -> float:
    """Return the severity of a warning, a positive number. Only warnings of the same kind can be
    compared."""
    return 1 / warning.figure if warning.kind in ("narrow", "rare") else warning.figure


def keeps(scheme: Scheme) -> str:
    """Return a description of a scheme's precision, such as ``keeps 3 digits`` or ``rounds to
    1.2%``."""
    error, absolute = scheme.error
    if scheme.unit_interval:
        return f"rounds to {percent(error)} of its range"
    if absolute:
        return f"rounds to {error:g}"
    if error == 0:
        return "keeps all digits"
    kept, exactly = digits_kept(error)
    if error < _FINE or exactly:
        return f"keeps {counted(kept, 'digit')}"
    return f"rounds to {percent(error)}"


def percent(share: float) -> str:
    """Format a fraction as a percentage: 0.0672 is ``6.7%``, and 0.41 is ``41%``."""
    value = 100 * share
    if value >= 9.95:
        return f"{value:.0f}%" if value < 99.5 or share >= 1 else "99%"
    if value < 0.005:
        return "under 0.01%"
    return f"{value:.1f}%" if value >= 0.095 else f"{value:.1g}%"


def part(error: float) -> str:
    """Format an error relative to the standard deviation as a percentage, or as ``all`` if it is 1
    or more."""
    return percent(error) if error < 1 else "all"


def _unwritable(schemes: Sequence[SchemeLosses]) -> Iterator[ProfileWarning]:
    for losses in schemes:
        if losses.problem:
            yield ProfileWarning(
                kind="unwritable",
                schemes=(losses.spec,),
                figure=1.0,
                text=f"{losses.spec}: {losses.problem}",
            )


def _of_field(
    schemes: Sequence[SchemeLosses], node: int, field: FieldProfile
) -> Iterator[ProfileWarning]:
    """Yield the warnings about one field."""
    where = f"{field.name} ({shown_range(field)})"
    alike: dict[tuple[str, str], list[tuple[SchemeLosses, float]]] = defaultdict(list)
    for losses in schemes:
        if (loss := losses.by_node.get(node)) is not None:
            for kind, figure, text in _losses_of(losses, loss, field, where):
                alike[kind, text].append((losses, figure))
    for (kind, text), members in alike.items():
        specs = tuple(losses.spec for losses, _ in members)
        plain = _plural(text) if len(specs) > 1 else text
        yield ProfileWarning(
            kind=kind,
            schemes=specs,
            field=field.name,
            figure=members[0][1],
            text=f"{listed(specs)}{plain}",
        )


def _losses_of(
    losses: SchemeLosses, loss: FieldLoss, field: FieldProfile, where: str
) -> Iterator[tuple[str, float, str]]:
    """Yield kind, size and text of each loss that deserves a warning, without the scheme's name."""
    scheme = losses.scheme
    if loss.clipped:
        share = loss.clipped / field.numbers
        low, high = (short_value(bound) for bound in scheme.bounds)
        by = "none" if losses.normalizer is None else spec_of(losses.normalizer.normalizer)
        after = "" if by == "none" else f" after {by} normalization"
        yield (
            "clipped",
            share,
            f" cannot represent {'' if loss.clipped_exact else 'about '}"
            f"{counted(loss.clipped, 'number')} ({percent(share)}) of {where}: its range is "
            f"{low} to {high}{after}",
        )
    rounded = loss.error_of_spread is not None and loss.error_of_spread >= LOST_SPREAD
    # Clipped numbers are merged too, but have a warning of their own.
    left = field.distinct if loss.distinct_left is None or loss.clipped else loss.distinct_left
    merged = f"{field.distinct:,} values become {left:,}" if left < field.distinct else ""
    if rounded and loss.error_of_spread is not None:
        tail = f"; {merged}" if merged else ""
        yield (
            "rounded",
            loss.error_of_spread,
            f" {keeps(scheme)}: {where} loses {part(loss.error_of_spread)} of its variation{tail}",
        )
    elif field.integer == 1.0 and left < (1 - MERGED) * field.distinct:
        yield "merged", 1 - left / field.distinct, f" {keeps(scheme)}: in {where} {merged}"
    if losses.channel and loss.channel_share is not None and 0 < loss.channel_share < CHANNEL_SHARE:
        low, high = (short_value(end) if abs(end) > 0.01 else "0" for end in losses.channel)
        yield (
            "narrow",
            loss.channel_share,
            f" puts all fields on one scale ({low} to {high}): {where} uses only "
            f"{percent(loss.channel_share)} of it",
        )


def _rare(schemes: Sequence[SchemeLosses], numbers: int) -> Iterator[ProfileWarning]:
    many = [
        losses
        for losses in schemes
        if losses.scheme.paper_vocabulary_size >= max(MANY_TOKENS, numbers / SEEN)
        and not losses.problem
    ]
    many.sort(key=lambda losses: -losses.scheme.paper_vocabulary_size)
    if many:
        sizes = [f"{losses.spec} ({losses.scheme.paper_vocabulary_size:,})" for losses in many]
        verb = "has" if len(many) == 1 else "have"
        yield ProfileWarning(
            kind="rare",
            schemes=tuple(losses.spec for losses in many),
            figure=numbers / many[0].scheme.paper_vocabulary_size,
            text=f"{listed(sizes)} {verb} too many number tokens for "
            f"{counted(numbers, 'number')}: most tokens would rarely be trained",
        )


def listed(specs: Sequence[str]) -> str:
    """Join specs with commas and "and": ``p10, p1000 and fp15``."""
    return specs[0] if len(specs) == 1 else f"{', '.join(specs[:-1])} and {specs[-1]}"


def _plural(text: str) -> str:
    """Turn a text such as `` keeps 3 digits`` into the plural."""
    for singular, plural in ((" keeps ", " keep "), (" rounds ", " round "), (" puts ", " put ")):
        if text.startswith(singular):
            return plural + text[len(singular) :]
    return text.replace(": its range", ": their range")
