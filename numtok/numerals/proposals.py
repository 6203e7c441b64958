"""Compares numeral policies on texts, and proposes one.

No policy is ever chosen without the user: :class:`PolicyEffect` says what each would change.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats, Int32s, UInt8s
from numtok.numerals.find import Spans, find
from numtok.numerals.notations.characters import rewrite_characters
from numtok.numerals.policy import PRESETS, SINGLE, NumeralPolicy
from numtok.numerals.unread import count_unread

#: A flag is proposed if it changes the numbers of this fraction of the texts with digits.
LEAST = 0.05
_SHOWN = 20  # numbers among which an example is chosen
_COMMA = re.compile(",")
_NOT_THREE_DECIMALS = re.compile(r"\.(?![0-9]{3}(?![0-9]))")

# The flags in the order in which they are tried: decimal=comma decides what others mean.
_ORDER = ("decimal=comma", *(flag for flag in SINGLE if flag != "decimal=comma"))


@dataclass(frozen=True)
class PolicyEffect:
    """Changes in what is read if a flag is added to a numeral policy.

    flag
        Spec of the flag.
    digits
        Number of digits that become part of a number, minus those that no longer are.
    changed
        Number of numbers with another span or value than before.
    texts
        Number of texts with such numbers.
    example
        The longest of the first such numbers, as in the text.
    value
        Its new value.
    """

    flag: str
    digits: int
    changed: int
    texts: int
    example: str
    value: float


@dataclass(frozen=True)
class PolicyProposal:
    """Effects of all flags on a sample of texts, each added to the current policy, and the
    policy that is proposed. Policies are specs."""

    current: str
    texts: int  # with digits
    effects: tuple[PolicyEffect, ...]
    proposed: str


class _Reading(NamedTuple):
    """Numbers in a sample of texts, and their values float64[numbers]."""

    spans: Spans
    values: Floats


class _Sample(NamedTuple):
    data: UInt8s
    rows: Int32s

    def read(self, policy: NumeralPolicy) -> _Reading:
        spans = find(self.data, self.rows, policy)
        return _Reading(spans, spans.numerals().values)

    def unread(self, spans: Spans) -> int:
        return count_unread(self.data, self.rows, spans.starts, spans.ends, 0).unread


def policy_for(text: str) -> NumeralPolicy | None:
    """Return a numeral policy with few flags that reads a text as exactly one number. Return None
    if no policy of one flag and no preset does, or if the default policy does.

    >>> policy_for("1,594.86").spec(), policy_for("12"), policy_for("a")
    ('thousands', None, None)
    """
    data = np.frombuffer(text.encode(errors="replace"), np.uint8)
    whole = data, np.array([0, len(data)], np.int32)

    def reads(policy: NumeralPolicy) -> bool:
        spans = find(*whole, policy)
        return (spans.starts.tolist(), spans.ends.tolist()) == ([0], [len(data)])

    if reads(NumeralPolicy()):
        return None
    specs = (*SINGLE, *PRESETS)
    policy = next(filter(reads, map(NumeralPolicy.parse, specs)), None)
    for flag in () if policy is None else policy.flags():
        assert policy is not None
        if reads(policy.without(flag)):
            policy = policy.without(flag)
    return policy


def propose(data: UInt8s, rows: Int32s, policy: NumeralPolicy) -> PolicyProposal:
    """Return the effect of each flag on texts, and the policy that is proposed for them.

    data, rows
        The texts, as for :func:`numtok.numerals.find.find`.
    policy
        The policy to start from.

    A flag is proposed if it changes numbers in at least 5% of the texts with digits. Whether commas
    are decimal is decided first: they are if more numbers have a comma before a number of digits
    other than three than have groups of three.

    >>> text = np.frombuffer(b"7,5 mg12,25 mg", np.uint8)
    >>> propose(text, np.array([0, 6, 14], np.int32), NumeralPolicy()).proposed
    'decimal=comma'
    """
    sample = _Sample(data, rows)
    texts = _texts_with_digits(sample)
    if policy.rule != "default":
        return PolicyProposal(policy.spec(), texts, (), policy.spec())
    reading = sample.read(policy)
    flags = [flag for flag in SINGLE if flag not in policy.flags()]
    if "decimal=comma" in flags and not _has_decimal_commas(sample, policy):
        flags.remove("decimal=comma")  # it would change every number with a point
    found = (_effect(sample, reading, policy, flag) for flag in flags)
    effects = tuple(effect for effect in found if effect is not None)
    # With decimal commas, points may turn out to be group marks.
    tried = {effect.flag for effect in effects} | {"thousands"}
    proposed = _proposed(sample, policy, tried, LEAST * texts)
    return PolicyProposal(policy.spec(), texts, effects, proposed.spec())


def _proposed(
    sample: _Sample, policy: NumeralPolicy, flags: Collection[str], least: float
) -> NumeralPolicy:
    """Return the policy with those of the flags that change numbers in at least ``least`` texts."""
    proposed, reading = policy, sample.read(policy)
    for flag in _ORDER:
        effect = _effect(sample, reading, proposed, flag) if flag in flags else None
        if effect is not None and effect.texts >= least:
            proposed = proposed.having(flag)
            reading = sample.read(proposed)
    for flag in proposed.flags():  # those that another one made superfluous
        rest = proposed.without(flag)
        if flag not in policy.flags() and not _differs(reading, sample.read(rest)).any():
            proposed = rest
    return proposed


def _has_decimal_commas(sample: _Sample, policy: NumeralPolicy) -> bool:
    """Return whether more numbers have decimal commas than commas between groups."""
    decimal = sample.read(policy.having("decimal=comma")).spans
    grouped = sample.read(policy.having("thousands")).spans
    return _matching(decimal, _NOT_THREE_DECIMALS) > _matching(grouped, _COMMA)


def _matching(spans: Spans, pattern: re.Pattern[str]) -> int:
    """Return the number of literals in which a pattern occurs."""
    literals = map(spans.literals.at, range(len(spans.starts)))
    return sum(pattern.search(literal) is not None for literal in literals)


def _effect(
    sample: _Sample, before: _Reading, policy: NumeralPolicy, flag: str
) -> PolicyEffect | None:
    """Return the effect of a flag, or None if it changes nothing."""
    after = sample.read(policy.having(flag))
    changed = _differs(after, before)
    if not changed.any():
        return None
    starts, ends, counts, _ = after.spans
    owners = np.repeat(np.arange(len(counts)), counts)
    some = np.flatnonzero(changed)[:_SHOWN]
    example = int(some[np.argmax((ends - starts)[some])])
    return PolicyEffect(
        flag=flag,
        digits=sample.unread(before.spans) - sample.unread(after.spans),
        changed=int(changed.sum()),
        texts=len(np.unique(owners[changed])),
        example=sample.data[starts[example] : ends[example]].tobytes().decode(),
        value=float(after.values[example]),
    )


def _differs(after: _Reading, before: _Reading) -> Bools:
    """Return which numbers of ``after`` are not in ``before`` with the same value, bool[n]."""
    starts, ends = before.spans.starts, before.spans.ends
    if not len(starts):
        return np.ones(len(after.values), np.bool_)
    # The number of ``before`` that begins at or after each number, or the last one.
    at = np.minimum(np.searchsorted(starts, after.spans.starts), len(starts) - 1)
    same = (starts[at] == after.spans.starts) & (ends[at] == after.spans.ends)
    return np.asarray(~(same & (before.values[at] == after.values)))


def _texts_with_digits(sample: _Sample) -> int:
    """Return the number of texts that contain a digit of any script."""
    ascii = rewrite_characters(*sample, NumeralPolicy(unicode=True))
    is_digit = (ascii.data >= ord("0")) & (ascii.data <= ord("9"))
    before = np.concatenate([[0], np.cumsum(is_digit)])
    return int((np.diff(before[ascii.rows]) > 0).sum())
