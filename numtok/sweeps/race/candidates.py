"""The candidates of a race, and the reasons for excluding schemes and heads.

All candidates come from the registries, including plugins: each scheme (for tables, each head) with
its defaults. Schemes that represent each number as a value also race with other heads, and with the
normalizations that the numbers need. Schemes that keep all digits need unscaled data, so they race
with their defaults only.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from numtok.analysis.profiling.recommendation import (
    AROUND_THE_MEAN,
    LOGARITHM,
)
from numtok.analysis.profiling.warnings import CHANNEL_SHARE, part, percent
from numtok.encoding.grid import is_contiguous
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme, Scheme, is_exact, scales_values
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
from numtok.names import counted
from numtok.registry import name_in, spec_of
from numtok.stages.profile import Profile, SchemeProfile, numbers_of
from numtok.sweeps.race.plan import Unit
from numtok.sweeps.race.words import FieldSummary
from numtok.training.trained_table import table_head

COLUMNS = "columns"  # label of the table of columns, if candidates also read texts
CLIPPED = 0.01  # largest fraction of a field's numbers that a scheme may clip
LOST = 0.05  # largest fraction of a field's spread that a scheme may lose
#: The heads for columns that were most often in the last round (docs/results/text-to-number.md),
#: in the order in which they are tried; all others follow.
_FIRST_HEADS = ("pointwise", "mdn:5", "scalar", "decoder:nd", "decoder:chronos", "riemann:256")
_LEFTWARD = "ar"
#: Values for required settings of heads; other heads get the values that their class is checked at.
_SIZES = {"bins": "256", "components": "5"}
_CODEC = "codec"  # setting of a head that writes numbers in a scheme


class Verdict(msgspec.Struct, frozen=True):
    """Decision on whether a scheme (for tables, a head) takes part in a race, and the reason."""

    scheme: str
    takes_part: bool
    reason: str


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that has not been measured yet: a scheme (for tables, a head) and the settings
    that differ from their defaults. None stands for the default value.

    table
        Description of the table whose columns a head reads, such as ``columns``; empty if the data
        is a single table; None for texts.
    """

    scheme: str
    table: str | None = None
    head: str | None = None
    normalize: str | None = None
    objective: str | None = None
    embedder: str | None = None

    @property
    def unit(self) -> Unit:
        """Unit of the budget: epochs on tables, steps on texts."""
        return "steps" if self.table is None else "epochs"

    @property
    def options(self) -> dict[str, str]:
        """The options of ``numtok train`` that differ between candidates."""
        options = {"head": self.head, "objective": self.objective, "embedder": self.embedder}
        if self.table is not None:
            options = {"head": self.scheme, "normalize": self.normalize}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def label(self) -> str:
        """Label in comparisons, such as ``xval, normalize=signed-log, head=mdn:5``."""
        settings = {
            "normalize": self.normalize,
            "head": self.head,
            "objective": self.objective,
            "embedder": self.embedder,
        }
        label = ", ".join(
            [self.scheme, *(f"{name}={value}" for name, value in settings.items() if value)]
        )
        return f"{label} on {self.table}" if self.table else label


# --- texts -------------------------------------------------------------------------------------


def judged(profile: Profile, named: Sequence[str]) -> list[Verdict]:
    """Return a verdict on each scheme.

    Schemes in ``named`` take part even if they lose information, and so does the scheme that the
    profile recommends.
    """
    verdicts = [_judged(scheme, profile, named) for scheme in profile.schemes]
    if not named:
        profiled = {name_in(verdict.scheme): verdict for verdict in verdicts}
        verdicts += [_unprofiled(name, profiled) for name in SCHEMES if name not in profiled]
    return [
        Verdict(verdict.scheme, True, f"{verdict.reason}; included because profile recommends it")
        if verdict.scheme == profile.recommended and not verdict.takes_part
        else verdict
        for verdict in verdicts
    ]


def _judged(scheme: SchemeProfile, profile: Profile, named: Sequence[str]) -> Verdict:
    lost = next(_lost(scheme, profile), None)
    if scheme.problem:
        return Verdict(scheme.scheme, False, scheme.problem)
    if lost is None:
        return Verdict(scheme.scheme, True, _good(scheme))
    if named:
        return Verdict(scheme.scheme, True, f"{lost}; included because it was named")
    return Verdict(scheme.scheme, False, lost)


def _good(scheme: SchemeProfile) -> str:
    clipped = scheme.clipped or 0
    worst = max((loss.error_of_spread or 0.0 for loss in scheme.fields), default=0.0)
    if not clipped and not worst:
        return "no loss"
    lost = [f"{counted(clipped, 'number')} out of range"] if clipped else []
    if worst:
        bound = part(worst)
        size = bound if bound.startswith("under") else f"up to {bound}"
        lost.append(f"rounding error {size} of the standard deviation")
    return "; ".join(lost)


def _lost(scheme: SchemeProfile, profile: Profile) -> Iterator[str]:
    """Yield the reasons for excluding a scheme, worst first."""
    fields = {field.name: field for field in profile.fields}
    for loss in sorted(scheme.fields, key=lambda loss: -loss.clipped):
        if (share := loss.clipped / fields[loss.field].numbers) > CLIPPED:
            yield f"{percent(share)} of the {numbers_of(loss.field)} are out of range"
    for loss in sorted(scheme.fields, key=lambda loss: -(loss.error_of_spread or 0.0)):
        if (error := loss.error_of_spread or 0.0) > LOST:
            size = "at least" if error >= 1 else f"{part(error)} of"
            yield (
                f"the rounding error is {size} the standard deviation of the "
                f"{numbers_of(loss.field)}"
            )
    if profile.numbers < scheme.vocabulary:
        yield (
            f"{scheme.vocabulary:,} tokens for {counted(profile.numbers, 'number')}; most would "
            "never be trained"
        )


def _unprofiled(name: str, profiled: Mapping[str, Verdict]) -> Verdict:
    """Return the verdict on a scheme that profiles leave out."""
    if needs := SCHEMES.required(name):
        return Verdict(name, False, f"needs a value for {needs[0]!r}. Include it: --schemes")
    if issubclass(SCHEMES[name], TextScheme):
        why = f"skipped by default; made for pretrained models. Include it: --schemes {name}"
        return Verdict(name, False, why)
    twin = profiled[SCHEMES[name].defaults.same_tokens_as]
    return Verdict(name, twin.takes_part, twin.reason)


def text_entries(profile: Profile, verdicts: Sequence[Verdict]) -> list[Entrant]:
    """Return the candidates for texts, in the order in which they should be tried.

    The candidate that the profile recommends comes first. If the profile advises ``affine``
    normalization, value schemes with ``affine`` follow, each with every head. Then come all schemes
    with their usual settings, ordered by tokens per row, then by vocabulary size; in a tie, schemes
    that keep all digits are last. Further variants of value schemes come at the end.

    If the rows are records of one target, a value scheme comes first, with both normalizations that
    the profile advises: either can be far better.
    """
    costs = {
        scheme.scheme: (scheme.tokens_per_row or math.inf, scheme.vocabulary)
        for scheme in profile.schemes
    }
    specs = [verdict.scheme for verdict in verdicts if verdict.takes_part]
    entered = [(spec, scheme_of(spec)) for spec in specs]

    def cost(entry: tuple[str, Scheme]) -> tuple[float, int, bool]:
        spec, scheme = entry
        tokens, words = (
            costs.get(spec) or costs.get(scheme.defaults.same_tokens_as) or (math.inf, 0)
        )
        return tokens, words, is_exact(scheme)

    schemes = dict(sorted(entered, key=cost))
    plain = [_plain_entrant(spec, scheme) for spec, scheme in schemes.items()]
    values = [spec for spec, scheme in schemes.items() if scales_values(scheme)]
    normalizations = _normalizations(profile)
    variants = [
        Entrant(scheme=spec, head=head, normalize=normalize)
        for spec in values
        for normalize in normalizations
        for head in (None, *_other_heads(schemes[spec].defaults.head))
        if head or normalize
    ]
    firsts = [(profile.recommended, None, profile.recommended_normalize)]
    if profile.value_alternative is not None and values:
        firsts = [(values[0], None, normalize) for normalize in normalizations]
    level = profile.value_normalize == AROUND_THE_MEAN

    def order(entry: Entrant) -> tuple[int, bool]:
        settings = entry.scheme, entry.head, entry.normalize
        place = firsts.index(settings) if settings in firsts else len(firsts)
        return place, not (level and entry.normalize == normalizations[0])

    return sorted([*plain, *variants], key=order)


def _plain_entrant(spec: str, scheme: Scheme) -> Entrant:
    """Return a scheme with its usual settings."""
    if scheme.tokens_per_number is not None:
        embedder = scheme.defaults.embedder
        narrow = EMBEDDERS.checked_at(embedder)  # fits models of any width
        return Entrant(scheme=spec, embedder=None if narrow == embedder else narrow)
    return Entrant(scheme=spec, objective=objective_for(spec, scheme))


def objective_for(spec: str, scheme: Scheme) -> str | None:
    """Return the objective with which a scheme can predict numbers; None for the default.

    Schemes whose numbers vary in length are autoregressive: a masked model would have to know the
    length of the number it predicts. Such a scheme may have an objective of its own name.
    """
    if scheme.tokens_per_number is not None:
        return None
    own = name_in(spec)
    return own if own in OBJECTIVES else _LEFTWARD


def _other_heads(default: str) -> Iterator[str]:
    for name in HEADS:
        head = HEADS.build(_spec(name))
        other = isinstance(head, ValueHead) and not isinstance(head, TokenHead)
        if other and not head.exact and name != name_in(default):
            yield spec_of(head)


def _spec(name: str) -> str:
    """Return the spec of a head, with its required settings."""
    if not HEADS.required(name):
        return name
    size = _SIZES.get(getattr(HEADS[name], "positional", ""))
    return f"{name}:{size}" if size else HEADS.checked_at(name)


def _normalizations(profile: Profile) -> list[str | None]:
    """Return the normalizations to try, the advised one first; None is the default of a scheme."""
    if profile.value_alternative is not None:
        return [profile.value_normalize, profile.value_alternative]
    # Values on one scale are hard to distinguish if some are very large, or if those of a field are
    # very small compared with others.
    summaries = map(FieldSummary.of_profile, profile.fields)
    has_tails = any(summary.heavy_tail for summary in summaries) or any(
        loss.channel_share is not None and loss.channel_share < CHANNEL_SHARE
        for scheme in profile.schemes
        for loss in scheme.fields
    )
    tails = [LOGARITHM] if has_tails else []
    return list(dict.fromkeys((profile.value_normalize, None, *tails)))


# --- tables ------------------------------------------------------------------------------------


def judged_heads(named: Sequence[str]) -> list[Verdict]:
    """Return a verdict on each head for tables. A head that writes numbers with a codec gets a
    verdict for each codec.

    If heads are ``named``, verdicts are returned only for these heads, and all of them take part.
    """
    if named:
        return [Verdict(spec_of(head), True, head.describe()) for head in map(table_head, named)]
    return list(map(_judged_head, _heads()))


def _judged_head(spec: str) -> Verdict:
    name, _, codec = spec.partition(":")
    if getattr(HEADS[name], "positional", None) == _CODEC:
        scheme = SCHEMES.build(codec)
        if isinstance(scheme, ChannelScheme) or scheme.tokens_per_number is None:
            why = "the number of tokens varies, or the value is not in the tokens"
            return Verdict(spec, False, why)
        if not is_contiguous(scheme):
            why = "tokens do not divide the range into intervals, so quantiles are not exact"
            return Verdict(spec, False, why)
    try:
        return Verdict(spec, True, table_head(spec).describe())
    except UsageError:
        return Verdict(spec, False, "needs the tokens of a text, which a table does not have")


def _heads() -> Iterator[str]:
    for name in HEADS:
        if getattr(HEADS[name], "positional", None) == _CODEC:
            yield from (f"{name}:{scheme}" for scheme in SCHEMES if not SCHEMES.required(scheme))
        else:
            yield _spec(name)


def table_entries(
    field: FieldSummary, verdicts: Sequence[Verdict], table: str = ""
) -> list[Entrant]:
    """Return the candidates for the target of a table, in the order in which they should be tried:
    each head with its defaults. If the target has a heavy tail, heads that support a logarithmic
    scale are also tried with it.

    ``table`` describes the table in labels; empty if it is the only data.
    """
    known = {head: place for place, head in enumerate(_FIRST_HEADS)}
    heads = [verdict.scheme for verdict in verdicts if verdict.takes_part]
    heads.sort(key=lambda head: known.get(head, len(known)))
    plain = [Entrant(scheme=spec, table=table) for spec in heads]
    if not field.heavy_tail:
        return plain
    built = [(spec, table_head(spec)) for spec in heads]
    return plain + [
        Entrant(scheme=spec, normalize=LOGARITHM, table=table)
        for spec, head in built
        if not learns_unit_interval(head) and not head.exact
    ]


def merged_entries(texts: Sequence[Entrant], tables: Sequence[Entrant]) -> list[Entrant]:
    """Return all candidates for records: the two best guesses for texts, then heads on columns,
    whose training is fast, then further schemes for texts."""
    return [*texts[:2], *tables, *texts[2:]]
