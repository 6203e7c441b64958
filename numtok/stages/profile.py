"""profile: describes the numbers in a data set, and measures the token cost and information loss of
each scheme on them.

1. ``units.plan`` and ``Screening`` select the rows that ``encode`` would encode.
2. ``profiling.unit`` reads each unit in one pass, assigns every number to its field (``fields``),
   and collects mergeable statistics (``field_statistics``) and samples (``number_sample``).
3. ``scheme_error`` encodes and decodes the sample of each field with each scheme; ``warnings``
   describes the losses.

Every row is read, as in ``encode``, because a sample would miss rare cases: extreme values that
determine scaling, numbers out of range, and unreadable rows.

No artifact is written. The result depends only on the rows and the units, not on the number of
workers.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from numtok.analysis.profiling.field_profile import HIGH_LEVEL, FieldProfile, field_profile
from numtok.analysis.profiling.field_statistics import MOST_DIGITS
from numtok.analysis.profiling.first_rows import TextCost, first_texts, text_cost
from numtok.analysis.profiling.notations import notation_notes
from numtok.analysis.profiling.recommendation import (
    AROUND_THE_MEAN,
    advised_normalizer,
    recommended,
    target_normalizers,
)
from numtok.analysis.profiling.scheme_error import FieldLoss, SchemeLosses, Trial, losses
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.unit import Counted, ProfileUnit, merged
from numtok.analysis.profiling.warnings import (
    COMMON,
    ProfileWarning,
    listed,
    percent,
    profile_warnings,
)
from numtok.data.reading.sources import check_rule, find_sources
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.streams import Spool
from numtok.data.reading.units import UNIT, Unit, least_units, plan
from numtok.data.records import rendering
from numtok.encoding.fields.places import OTHER
from numtok.encoding.fit_codec import no_rows
from numtok.encoding.normalizers.base import NORMALIZERS, Moments, splits_answers
from numtok.encoding.number_sizes import NumberSizes, is_sized
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES, Scheme, fitted, needs_sample, scales_values
from numtok.encoding.unit import Screening
from numtok.names import counted
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.proposals import PolicyProposal, propose
from numtok.settings.profile import Config as Config
from numtok.store.engines.engine import Engine, engine_for
from numtok.store.quota import Quota
from numtok.store.store import Store

MOST_FIELDS = 64  # further fields, with the fewest numbers, are merged into one
_NEARLY_ALL = 0.95
_LARGE = 1_000_000  # numbers of a table whose memory is worth a note
_PROGRAM = 0.33  # GB of memory of `train` on columns before it reads them (docs/log, 2026-11)
_PER_NUMBER = 85  # bytes of memory of `train` on columns
_FLOAT64_DIGITS = 17  # enough to distinguish any two float64 values

#: Called with the activity, the bytes of input done, their total, and the rows done.
Progress = Callable[[str, int, int, int], None]


@dataclass(frozen=True, kw_only=True)
class SchemeProfile:
    """Token costs of one scheme, and the information that its encoding loses.

    Averages per row include rows without numbers. ``problem`` is the reason why the scheme cannot
    encode the numbers in the input; empty if it can.
    """

    scheme: str
    normalize: str
    constants: Mapping[str, float]
    tokens_per_number: float | None
    tokens_exact: bool
    number_tokens_per_row: float | None
    tokens_per_row: float | None  # including text tokens
    vocabulary: int  # number tokens
    clipped: int | None
    clipped_exact: bool
    fields: tuple[FieldLoss, ...]
    problem: str


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Result of ``numtok profile``.

    targets
        Lowest and highest value of each target in the train split, keyed by the target's name; both
        are None if float64 can represent none of the values.
    """

    inputs: tuple[str, ...]
    rows: int
    splits: Mapping[str, int]
    rejected: int
    numbers: int
    text_bytes: int
    number_bytes: int
    fields: tuple[FieldProfile, ...]  # in the order of the text
    folded: int  # fields that are merged into the last one
    targets: Mapping[str, tuple[float | None, float | None]]
    templates: Mapping[str, str]  # letter to the start of a row
    text: TextCost | None
    schemes: tuple[SchemeProfile, ...]
    warnings: tuple[ProfileWarning, ...]
    lossless: tuple[str, ...]  # schemes that certainly decode every number exactly
    notes: tuple[str, ...]
    policies: PolicyProposal  # what other flags of --numbers would change in the first texts
    recommended: str | None
    recommended_normalize: str | None  # None for the scheme's default
    value_normalize: str  # advice for schemes that encode each number as one value
    value_alternative: str | None  # to be tried too; None unless the rows are records of one target


#: Called after counting, with the fields' names by node in text order, the counts, and each
#: scheme's losses.
Observe = Callable[[Mapping[int, str], Counted, Sequence[SchemeLosses]], None]


def run(
    config: Config,
    store: Store,
    progress: Progress,
    observe: Observe | None = None,
    *,
    target: str | None = None,
    only_target: bool = False,
) -> Profile:
    """Return the profile of the inputs.

    observe
        Function that is called with the raw counts and losses.
    target
        The only target, if the rows are rendered records, whose answers are the targets.
    only_target
        True to limit notes to whole rows and the target.

    Raises UsageError, DataError (naming file, line and problem) and StoreError.
    """
    # auto asks for a proposal, which every profile has.
    spec = "default" if config.numerals in (None, "auto") else config.numerals
    policy = NumeralPolicy.parse(spec, config.not_numbers)
    if config.target:
        rendering.check_decimals(policy)
        with store.scratch() as scratch:
            texts, _ = rendering.as_texts(config, scratch)
            target = config.target[0] if len(config.target) == 1 else None
            profile = run(texts, store, progress, observe, target=target)
            notes = (*profile.notes, *_memory_notes(profile.numbers))
            return replace(profile, inputs=config.inputs, notes=notes)
    specs = _specs(config.schemes)
    schemes = [scheme_of(spec) for spec in specs]
    screening = Screening.of(config)
    with ExitStack() as stack:
        quota = Quota.parse(config.disk_limit)
        longest = None if screening.skip else config.max_line
        spool = Spool(lambda: stack.enter_context(store.spool()), quota, longest)
        sources, _ = find_sources(config.inputs, store.resolve, store.note, spool)
        check_rule(screening.rule, sources)
        total = sum(source.size for source in sources)
        workers = stack.enter_context(
            engine_for(config.engine, total, config.workers, 2 * UNIT, store.spool)
        )
        workers.start(ProfileUnit, least_units(sources))
        units, _ = plan(sources, lambda done, total: progress("reading", done, total, 0), workers)
        sampling = any(needs_sample(scheme) for scheme in schemes)
        counts = _count(units, ProfileUnit(screening, policy, sampling), workers, progress)
        if not counts.rows:
            raise no_rows(counts.rejected)
        schemes = [fitted(scheme, counts.learnt.literals()) for scheme in schemes]
        text = text_cost(units, screening, policy, schemes[0], counts)
        policies = propose(*first_texts(units, screening), policy)
    named = dict(zip(specs, schemes, strict=True))
    answer = counts.fields.target(target) if target in counts.targets else None
    return _profile(
        config,
        counts,
        named,
        observe,
        text=text,
        policies=policies,
        answer=answer,
        only_answer=only_target,
    )


def _memory_notes(numbers: int) -> Iterator[str]:
    """Yield a note on the memory that training on columns needs, if the data is large."""
    if numbers >= _LARGE:
        memory = _PROGRAM + _PER_NUMBER * numbers / 1e9
        yield (
            f"`numtok train` on the columns needs about {memory:.1f} GB of memory: {_PROGRAM} GB "
            f"and {_PER_NUMBER} bytes per number"
        )


def _specs(named: Sequence[str]) -> list[str]:
    every = [
        name
        for name in SCHEMES
        if not (SCHEMES.required(name) or SCHEMES[name].defaults.same_tokens_as)
    ]
    return list(dict.fromkeys(named or every))


def _count(
    units: Sequence[Unit], work: ProfileUnit, workers: Engine, progress: Progress
) -> Counted:
    """Count all units, and merge them in order."""
    total = sum(unit.size for unit in units)

    def parts() -> Iterator[Counted]:
        done = rows = 0
        for unit, (_, part) in zip(units, workers.in_order(work, units), strict=True):
            done, rows = done + unit.size, rows + part.rows
            progress("counting", done, total, rows)
            yield part

    return merged(parts())


def _profile(
    config: Config,
    counts: Counted,
    schemes: Mapping[str, Scheme],
    observe: Observe | None,
    *,
    text: TextCost | None,
    policies: PolicyProposal,
    answer: int | None,
    only_answer: bool,
) -> Profile:
    """Build the result from the counts; ``schemes`` are by their specs as typed, and ``answer`` is
    the node of the only target."""
    moments = _moments(counts)
    targets = [counts.fields.target(name) for name in counts.targets]
    folded = _fold(counts, targets)
    fields = _fields(counts, folded)
    names = {node: field.name for node, field in fields.items()}
    numbers = sum(field.numbers for field in fields.values())
    trial = Trial.of(counts.tallies, counts.sample, answer)

    def tried_with(scheme: Scheme, normalize: str | None = None) -> SchemeLosses:
        parts = [moments]
        if normalize is not None and splits_answers(NORMALIZERS.build(normalize)):
            parts = [counts.others, *counts.targets.values()]  # rows of a single target
        return losses(scheme, counts.tallies, names, trial, parts, normalize=normalize)

    tried = [tried_with(scheme) for scheme in _sized(schemes, fields.values()) if numbers]
    if observe is not None:
        observe(names, counts, tried)
    advised, alternative = advised_normalizer(moments), None
    if answer is not None:
        advised, alternative = target_normalizers(fields[answer], counts.others)
    scaled = [
        tried_with(result.scheme, advised) if scales_values(result.scheme) else result
        for result in tried
    ]
    first = recommended(scaled, fields, targets, answer)
    return Profile(
        inputs=config.inputs,
        rows=counts.rows,
        splits=dict(sorted(counts.splits.items())),
        rejected=counts.rejected,
        numbers=numbers,
        text_bytes=counts.text_bytes,
        number_bytes=counts.number_bytes,
        fields=tuple(fields.values()),
        folded=folded,
        targets={
            name: (target.low, target.high) if target.count else (None, None)
            for name, target in sorted(counts.targets.items())
        },
        templates=counts.fields.examples(list(fields)),
        text=text,
        schemes=tuple(_scheme(result, fields, counts.rows, text) for result in tried),
        warnings=tuple(profile_warnings(tried, fields, numbers)),
        lossless=tuple(result.spec for result in tried if _lossless(result)),
        notes=tuple(_notes(counts, fields, advised, answer, only_answer)),
        policies=policies,
        recommended=first.spec if first else None,
        recommended_normalize=advised if first and scales_values(first.scheme) else None,
        value_normalize=advised,
        value_alternative=alternative,
    )


def _moments(counts: Counted) -> Moments:
    """Return the moments of the train split's numbers, or of all numbers if it is empty."""
    if counts.moments.count:
        return counts.moments
    tallies = counts.tallies.values()
    return reduce(Moments.merged, (tally.moments for tally in tallies), counts.moments)


def _fields(counts: Counted, folded: int) -> dict[int, FieldProfile]:
    """Return the fields by node in text order, then the one that merges ``folded`` others."""
    positions = counts.places()
    beyond = [OTHER] if positions.pop(OTHER, None) is not None else []
    nodes = counts.fields.ordered(positions) + beyond
    labels = counts.fields.labels(nodes)
    if folded:
        labels[OTHER] = f"({folded} others)"
    return {node: field_profile(node, labels[node], counts) for node in nodes}


def _sized(schemes: Mapping[str, Scheme], fields: Collection[FieldProfile]) -> Iterator[Scheme]:
    """Yield the schemes, and fit the size of those whose spec leaves it open to these numbers."""
    sizes = NumberSizes(
        max((field.largest or 0.0 for field in fields), default=0.0),
        max((field.decimals_most or 0 for field in fields), default=0),
    )
    for spec, scheme in schemes.items():
        yield scheme.suited(*sizes) if is_sized(spec) else scheme


def _fold(counts: Counted, targets: Collection[int]) -> int:
    """Merge the fields with the fewest numbers if there are too many, but no target; return how
    many."""
    if len(counts.tallies) <= MOST_FIELDS:
        return 0
    numbers = {node: tally.numbers for node, tally in counts.tallies.items()}
    by_size = sorted(
        numbers, key=lambda node: (node not in targets, -numbers[node], counts.fields.key(node))
    )
    moved_to = np.full(len(counts.fields), OTHER, np.int32)
    kept = [node for node in by_size if node != OTHER][: MOST_FIELDS - 1]
    moved_to[kept] = kept
    counts.move(moved_to)
    return len(numbers) - len(kept)


def _scheme(
    tried: SchemeLosses,
    fields: Mapping[int, FieldProfile],
    rows: int,
    text: TextCost | None,
) -> SchemeProfile:
    """Combine the losses of one scheme over all fields."""
    own = {node: tried.by_node[node] for node in fields if node in tried.by_node}
    numbers = sum(fields[node].numbers for node in own)
    total = sum(loss.tokens_per_number * fields[node].numbers for node, loss in own.items())
    return SchemeProfile(
        scheme=tried.spec,
        normalize=tried.scheme.defaults.normalizer,
        constants=tried.normalizer.constants if tried.normalizer else {},
        tokens_per_number=total / numbers if own else None,
        tokens_exact=all(loss.tokens_exact for loss in own.values()),
        number_tokens_per_row=total / rows if own else None,
        tokens_per_row=total / rows + text.tokens_per_row if own and text else None,
        vocabulary=tried.vocabulary,
        clipped=sum(loss.clipped for loss in own.values()) if own else None,
        clipped_exact=all(loss.clipped_exact for loss in own.values()),
        fields=tuple(own.values()),
        problem=tried.problem,
    )


def _lossless(tried: SchemeLosses) -> bool:
    """True if every number is decoded exactly; False if that is not certain."""
    return not tried.problem and all(
        loss.clipped_exact
        and loss.error_exact
        and not (loss.clipped or loss.largest_relative_error or loss.error_of_spread)
        for loss in tried.by_node.values()
    )


def _notes(
    counts: Counted,
    fields: Mapping[int, FieldProfile],
    advised: str,
    answer: int | None,
    only_answer: bool,
) -> Iterator[str]:
    """Yield notes about the data that apply to any scheme."""
    if only_answer:
        fields = {node: field for node, field in fields.items() if node == answer}
    elif unread := counts.unread.note():
        yield unread
    if not counts.splits[TRAIN]:
        yield (
            f"split {TRAIN!r} is empty, so constants are fitted on all rows, no merges are "
            "trained, and text tokens are unknown"
        )
    yield from _high_level(fields, advised, answer)
    for field in fields.values():
        yield from _field_notes(field)
    if not only_answer:
        yield from notation_notes(counts.notations)
    yield from counts.twins.notes(counts.splits)


def _field_notes(field: FieldProfile) -> Iterator[str]:
    if field.after_comma >= _NEARLY_ALL:
        yield (
            f"the {numbers_of(field.name)} always follow a comma. For 7,5 use --numbers "
            "decimal=comma; for 1,234 use --numbers thousands"
        )
    if field.digits_most is not None and field.digits_most > _FLOAT64_DIGITS:
        more = "+" if field.digits_most == MOST_DIGITS else ""
        yield (
            f"the {numbers_of(field.name)} have up to {field.digits_most}{more} digits, but values "
            "are float64, which holds 15 to 17"
        )
    if field.outside:
        numbers = counted(field.outside, "number")
        yield f"{field.name}: {numbers} out of range of float64, such as 1e400"
    elif field.numbers > 1 and field.low is not None and field.low == field.high:
        yield f"the {numbers_of(field.name)} are always {short_value(field.low)}"
    elif field.numbers > 1 and field.common is not None and field.common_share > COMMON:
        yield (
            f"{100 * field.common_share:.0f}% of the {numbers_of(field.name)} are "
            f"{short_value(field.common)}"
        )


def numbers_of(field: str) -> str:
    """Return a phrase such as ``numbers in price`` or ``numbers after "Hwy"``."""
    return f"numbers {'' if field.startswith('after ') else 'in '}{field}"


def _high_level(
    fields: Mapping[int, FieldProfile], advised: str, answer: int | None
) -> Iterator[str]:
    """Yield notes, with advice, on fields whose numbers vary by far less than their magnitude."""
    own_scale = {answer} if splits_answers(NORMALIZERS.build(advised)) else set()
    visible = fields.keys() if advised == AROUND_THE_MEAN else own_scale
    for is_visible, remedy in (
        (True, f"Encode with --scheme xval --normalize {advised}"),
        (False, "Subtract a constant from them, or use a scheme that loses nothing"),
    ):
        at_high_level = [
            f"{numbers_of(field.name)} ({short_value(field.mean, field.deviation)} ± "
            f"{short_value(field.deviation)})"
            for node, field in fields.items()
            if field.high_level and field.mean is not None and field.deviation is not None
            if (node in visible) == is_visible
        ]
        if at_high_level:
            yield (
                f"the standard deviation is below {percent(HIGH_LEVEL)} of the mean: "
                f"{listed(at_high_level)}. Models barely see such changes. {remedy}"
            )
