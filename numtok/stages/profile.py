"""Profile: what the numbers of a data set are like, and what each scheme would cost and lose.

1. ``units.plan`` and ``Screening`` give the rows that ``encode`` would take.
2. ``profiling.unit`` counts each unit in one pass: every number in its slot
   (``slots``), with statistics (``slot_statistics``) and samples (``number_sample``) that
   can be merged.
3. ``scheme_error`` writes the sample of each slot in each scheme and reads it back;
   ``warnings`` says in words what is lost.

Every row is read, as by ``encode``: the range that normalisers are fitted on, numbers beyond a
scheme, and rows that cannot be read are rare, and a sample lacks them.

Nothing is written, and the result depends on the rows and the units alone, not
on the number of workers.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path

import numpy as np

from numtok import files
from numtok.analysis.profiling.notations import notation_notes
from numtok.analysis.profiling.recommendation import (
    AROUND_THE_MEAN,
    advised_normalizer,
    recommended,
    scales_values,
)
from numtok.analysis.profiling.scheme_error import SchemeLosses, SlotLoss, Trial, losses
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.slot_profile import HIGH_LEVEL, SlotProfile, slot_profile
from numtok.analysis.profiling.slot_statistics import MOST_DIGITS
from numtok.analysis.profiling.unit import Counted, ProfileUnit, merged
from numtok.analysis.profiling.warnings import (
    COMMON,
    ProfileWarning,
    counted,
    listed,
    percent,
    profile_warnings,
)
from numtok.data.reading.batches import ReadingOptions
from numtok.data.reading.sources import check_rule, find_sources
from numtok.data.reading.split_rule import TRAIN, SplitRule
from numtok.data.reading.streams import Spool
from numtok.data.reading.units import UNIT, Unit, least_units, plan
from numtok.encoding.fit_codec import Unfitted, no_rows
from numtok.encoding.normalizers.base import NORMALIZERS, Moments
from numtok.encoding.number_sizes import NumberSizes, is_sized
from numtok.encoding.schema import SPECIALS
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES, Scheme, fitted, needs_sample
from numtok.encoding.segments import cut
from numtok.encoding.slots.places import OTHER
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts
from numtok.encoding.unit import Screening
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import spec_of
from numtok.settings.profile import Config as Config
from numtok.store.engines.engine import Engine, engine_for
from numtok.store.engines.local import Workers
from numtok.store.quota import Quota
from numtok.store.store import Store

MOST_SLOTS = 64  # those with the fewest numbers are folded into one
TEXT_SAMPLE = 4 << 20  # bytes of rows whose text is tokenised, about
_NEARLY_ALL = 0.95
_FLOAT64_DIGITS = 17  # at most: so many tell any two float64 apart
_TEXT_TOKENIZER = "words"  # the default of encode

#: Told what is being done, the bytes of input done, their sum, and the rows done.
Progress = Callable[[str, int, int, int], None]


@dataclass(frozen=True, kw_only=True)
class SchemeProfile:
    """What one scheme costs and loses; per row is per row of the data, also those without
    numbers. ``problem`` says why it cannot write these numbers at all."""

    scheme: str
    normalize: str
    constants: Mapping[str, float]
    tokens_per_number: float | None
    tokens_exact: bool
    number_tokens_per_row: float | None
    tokens_per_row: float | None  # with those of the text
    vocabulary: int  # number tokens
    clipped: int | None
    clipped_exact: bool
    slots: tuple[SlotLoss, ...]
    problem: str


@dataclass(frozen=True)
class TextCost:
    """The text between numbers in the default text tokenizer; from the first rows, unless
    ``exact``."""

    tokenizer: str
    tokens_per_row: float
    vocabulary: int  # with the special tokens
    exact: bool


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Everything that ``numtok profile`` says.

    targets
        The lowest and highest target of the train split, by name; None if float64 holds none.
    """

    inputs: tuple[str, ...]
    rows: int
    splits: Mapping[str, int]
    rejected: int
    numbers: int
    text_bytes: int
    number_bytes: int
    slots: tuple[SlotProfile, ...]  # in the order of the text
    folded: int  # slots that are in the last one together
    targets: Mapping[str, tuple[float | None, float | None]]
    templates: Mapping[str, str]  # letter to the beginning of a row
    text: TextCost | None
    schemes: tuple[SchemeProfile, ...]
    warnings: tuple[ProfileWarning, ...]
    lossless: tuple[str, ...]  # schemes that are certain to give back every number
    notes: tuple[str, ...]
    recommended: str | None
    recommended_normalize: str | None  # None: the scheme's own
    value_normalize: str  # advised where models see each number as one value


#: Shown, once all is counted, what was: the slots' names by node in the order of the text, and the
#: schemes as they were tried.
Look = Callable[[Mapping[int, str], Counted, Sequence[SchemeLosses]], None]


def run(config: Config, store: Store, progress: Progress, look: Look | None = None) -> Profile:
    """Profile the inputs.

    Raises UsageError, DataError (naming file, line and what was wrong) and StoreError.
    """
    specs = _specs(config.schemes)
    schemes = [scheme_of(spec) for spec in specs]
    policy = NumeralPolicy.parse(config.numerals or "default")
    rule = SplitRule.parse(config.split) if config.split else None
    reading = ReadingOptions(config.text_field, config.max_line)
    screening = Screening(reading, rule, config.on_error == "skip")
    with ExitStack() as stack:
        opened = partial(_spool, store)
        quota = Quota.parse(config.disk_limit)
        longest = None if screening.skip else config.max_line
        spool = Spool(lambda: stack.enter_context(opened()), quota, longest)
        sources, _ = find_sources(config.inputs, store.resolve, store.note, spool)
        check_rule(rule, sources)
        total = sum(source.size for source in sources)
        workers = stack.enter_context(
            engine_for(config.engine, total, config.workers, 2 * UNIT, opened)
        )
        workers.start(ProfileUnit, least_units(sources))
        units, _ = plan(sources, lambda done, total: progress("reading", done, total, 0), workers)
        learning = any(needs_sample(scheme) for scheme in schemes)
        found = _count(units, ProfileUnit(screening, policy, learning), workers, progress)
        if not found.rows:
            raise no_rows(found.rejected)
        schemes = [fitted(scheme, found.learnt.literals()) for scheme in schemes]
        text = _text_cost(units, screening, policy, schemes[0], found)
    return _profile(config, found, dict(zip(specs, schemes, strict=True)), text, look)


def _specs(named: Sequence[str]) -> list[str]:
    every = [
        name
        for name in SCHEMES
        if not (SCHEMES.required(name) or SCHEMES[name].defaults.same_tokens_as)
    ]
    return list(dict.fromkeys(named or every))


@contextmanager
def _spool(store: Store) -> Iterator[Path]:
    """A folder in the store for as long as the block lasts; where there was no store, there is
    none after it."""
    new = not files.is_folder(store.root)
    try:
        with store.spool() as folder:
            yield folder
    finally:
        if new:
            with suppress(OSError):  # an artifact was made there meanwhile
                files.system.rmdir(store.root)


def _count(
    units: Sequence[Unit], work: ProfileUnit, workers: Engine, progress: Progress
) -> Counted:
    """All units, merged in their order, whatever the order they are done in."""
    total = sum(unit.size for unit in units)

    def in_order() -> Iterator[Counted]:
        done = rows = 0
        waiting: dict[int, Counted] = {}
        following = 0
        for index, part in workers.run(work, units):
            waiting[index] = part
            done, rows = done + units[index].size, rows + part.rows
            progress("counting", done, total, rows)
            while following in waiting:
                yield waiting.pop(following)
                following += 1

    return merged(in_order())


def _text_cost(
    units: Sequence[Unit],
    screening: Screening,
    policy: NumeralPolicy,
    scheme: Scheme,
    found: Counted,
) -> TextCost | None:
    """Fit the default text tokenizer as ``encode`` does, and tokenise the first rows; None where
    there are no rows to fit it on, or no numbers to put in."""
    if not found.splits[TRAIN] or not found.rows_with_numbers:
        return None
    unchecked = replace(screening, reading=replace(screening.reading, checked=False))
    tokenizer = TEXT_TOKENIZERS.build(_TEXT_TOKENIZER)
    unfitted = Unfitted(
        scheme=scheme,
        policy=policy,
        normalizer=NORMALIZERS.build("none"),
        text_tokenizer=tokenizer,
        text=None,
    )
    codec, _, _ = unfitted.fit(units, unchecked, Workers(1), lambda what: lambda size, rows: None)
    tokens = rows = size = 0
    for batch, _ in (one for unit in units for one in unchecked.batches(unit)):
        texts = Texts.of(batch.rows.texts)
        pieces = cut(texts, texts.find(policy))
        tokens += len(codec.text.encode(pieces).ids)
        rows += len(batch)
        size += len(texts.data)
        if size >= TEXT_SAMPLE:
            break
    vocabulary = len(codec.text.vocabulary()) + len(SPECIALS)
    return TextCost(spec_of(tokenizer), tokens / rows, vocabulary, rows == found.rows)


def _profile(
    config: Config,
    found: Counted,
    schemes: Mapping[str, Scheme],
    text: TextCost | None,
    look: Look | None,
) -> Profile:
    """The result, from what was counted; schemes by the specs that name them."""
    moments = _moments(found)
    folded = _fold(found)
    slots = _slots(found, folded)
    names = {node: slot.name for node, slot in slots.items()}
    numbers = sum(slot.numbers for slot in slots.values())
    trial = Trial.of(found.tallies, found.sample)

    def tried_with(scheme: Scheme, normalize: str | None = None) -> SchemeLosses:
        return losses(scheme, found.tallies, names, trial, moments, normalize=normalize)

    tried = [tried_with(one) for one in _sized(schemes, slots.values()) if numbers]
    if look is not None:
        look(names, found, tried)
    advised = advised_normalizer(moments)
    scaled = [
        tried_with(one.scheme, advised) if scales_values(one.scheme) else one for one in tried
    ]
    first = recommended(scaled, slots, [found.slots.target(name) for name in found.targets])
    return Profile(
        inputs=config.inputs,
        rows=found.rows,
        splits=dict(sorted(found.splits.items())),
        rejected=found.rejected,
        numbers=numbers,
        text_bytes=found.text_bytes,
        number_bytes=found.number_bytes,
        slots=tuple(slots.values()),
        folded=folded,
        targets={
            name: (one.low, one.high) if one.count else (None, None)
            for name, one in sorted(found.targets.items())
        },
        templates=found.slots.examples(list(slots)),
        text=text,
        schemes=tuple(_scheme(one, slots, found.rows, text) for one in tried),
        warnings=tuple(profile_warnings(tried, slots, numbers)),
        lossless=tuple(one.spec for one in tried if _lossless(one)),
        notes=tuple(_notes(found, slots.values(), advised)),
        recommended=first.spec if first else None,
        recommended_normalize=advised if first and scales_values(first.scheme) else None,
        value_normalize=advised,
    )


def _moments(found: Counted) -> Moments:
    """Moments of the numbers that constants are fitted on: the train split, or all if it is
    empty."""
    if found.moments.count:
        return found.moments
    return reduce(Moments.merged, (one.moments for one in found.tallies.values()), found.moments)


def _slots(found: Counted, folded: int) -> dict[int, SlotProfile]:
    """The slots by node, in the order of the text; the one of the ``folded`` others comes last."""
    places = found.places()
    beyond = [OTHER] if places.pop(OTHER, None) is not None else []
    nodes = found.slots.ordered(places) + beyond
    labels = found.slots.labels(nodes)
    if folded:
        labels[OTHER] = f"({folded} others)"
    return {node: slot_profile(node, labels[node], found) for node in nodes}


def _sized(schemes: Mapping[str, Scheme], slots: Collection[SlotProfile]) -> Iterator[Scheme]:
    """The schemes; one whose spec leaves its size open is sized for these numbers."""
    sizes = NumberSizes(
        max((slot.largest or 0.0 for slot in slots), default=0.0),
        max((slot.decimals_most or 0 for slot in slots), default=0),
    )
    for spec, one in schemes.items():
        yield one.suited(*sizes) if is_sized(spec) else one


def _fold(found: Counted) -> int:
    """Put the slots with the fewest numbers together, if there are too many; how many."""
    if len(found.tallies) <= MOST_SLOTS:
        return 0
    counts = {node: tally.numbers for node, tally in found.tallies.items()}
    kept = sorted(counts, key=lambda node: (-counts[node], found.slots.key(node)))
    became = np.full(len(found.slots), OTHER, np.int32)
    among = [node for node in kept if node != OTHER][: MOST_SLOTS - 1]
    became[among] = among
    found.move(became)
    return len(counts) - len(among)


def _scheme(
    tried: SchemeLosses,
    slots: Mapping[int, SlotProfile],
    rows: int,
    text: TextCost | None,
) -> SchemeProfile:
    """The figures of one scheme over all slots."""
    own = {node: tried.by_node[node] for node in slots if node in tried.by_node}
    numbers = sum(slots[node].numbers for node in own)
    total = sum(loss.tokens_per_number * slots[node].numbers for node, loss in own.items())
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
        slots=tuple(own.values()),
        problem=tried.problem,
    )


def _lossless(tried: SchemeLosses) -> bool:
    """Whether every number comes back as it was; false where that is not certain."""
    return not tried.problem and all(
        loss.clipped_exact
        and loss.error_exact
        and not (loss.clipped or loss.largest_relative_error or loss.error_of_spread)
        for loss in tried.by_node.values()
    )


def _notes(found: Counted, slots: Collection[SlotProfile], advised: str) -> Iterator[str]:
    """Yield what a reader must know about the data, for any scheme."""
    if unread := found.unread.note():
        yield unread
    if not found.splits[TRAIN]:
        yield (
            f"no row is in the split {TRAIN!r}, so constants are fitted on all rows, no merges are "
            "learnt, and text tokens are not known"
        )
    yield from _high_level(slots, advised)
    for slot in slots:
        yield from _slot_notes(slot)
    yield from notation_notes(found.notations)
    yield from found.twins.notes(found.splits)


def _slot_notes(slot: SlotProfile) -> Iterator[str]:
    if slot.after_comma >= _NEARLY_ALL:
        yield (
            f"{slot.name} always follows a comma: if these are decimals, write them with a "
            "point; for 1,234 give --numerals default,thousands=yes"
        )
    if slot.digits_most is not None and slot.digits_most > _FLOAT64_DIGITS:
        more = "+" if slot.digits_most == MOST_DIGITS else ""
        yield (
            f"{slot.name} has numbers of {slot.digits_most}{more} digits, and values are "
            "learnt and compared as float64, which holds 15 to 17"
        )
    if slot.outside:
        yield f"{slot.name} has {counted(slot.outside)} beyond float64, as 1e400 is"
    elif slot.numbers > 1 and slot.low is not None and slot.low == slot.high:
        yield f"{slot.name} is always {short_value(slot.low)}"
    elif slot.numbers > 1 and slot.common is not None and slot.common_share > COMMON:
        yield (
            f"{100 * slot.common_share:.0f}% of {slot.name} is one value, "
            f"{short_value(slot.common)}"
        )


def _high_level(slots: Collection[SlotProfile], advised: str) -> Iterator[str]:
    """A note on fields whose numbers vary by far less than their magnitude, and the remedy."""
    fields = [
        f"{slot.name} ({short_value(slot.mean, slot.deviation)} ± {short_value(slot.deviation)})"
        for slot in slots
        if slot.high_level and slot.mean is not None and slot.deviation is not None
    ]
    if not fields:
        return
    remedy = (
        f"Encode with --scheme xval --normalize {advised}"
        if advised == AROUND_THE_MEAN
        else "Subtract a constant from them, or use a scheme that keeps all digits, such as fone"
    )
    yield (
        f"the standard deviation is below {percent(HIGH_LEVEL)} of the mean in {listed(fields)}; "
        f"models barely see such changes. {remedy}"
    )
