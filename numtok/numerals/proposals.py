"""Compares numeral policies on texts, and proposes one.

No policy is ever chosen without the user: :class:`PolicyEffect` says what each would change.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Int32s, UInt8s
from numtok.numerals.find import Spans, find
from numtok.numerals.policy import PRESETS, SINGLE, NumeralPolicy
from numtok.numerals.unread import count_unread

#: A flag is proposed if it changes the numbers of this fraction of the texts with digits.
LEAST = 0.05
_SHOWN = 20  # numbers among which an example is chosen

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
    spec of the policy that is proposed."""

    texts: int  # with digits
    effects: tuple[PolicyEffect, ...]
    proposed: str


class _Sample(NamedTuple):
    data: UInt8s
    rows: Int32s

    def find(self, policy: NumeralPolicy) -> Spans:
        return find(self.data, self.rows, policy)

    def unread(self, spans: Spans) -> int:
        return count_unread(self.data, self.rows, spans.starts, spans.ends).unread


def policy_for(text: str) -> NumeralPolicy | None:
    """Return a numeral policy with few flags that reads a text as exactly one number. Return None
    if no policy of one flag and no preset does, or if the default policy does.

    >>> policy_for("1,594.86").spec(), policy_for("12"), policy_for("a")
    ('thousands', None, None)
    """
    data = np.frombuffer(text.encode(errors="replace"), np.uint8)
    whole = _Sample(data, np.array([0, len(data)], np.int32))

    def reads(policy: NumeralPolicy) -> bool:
        spans = whole.find(policy)
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
    with_digits = _texts_with_digits(sample)
    if policy.rule != "default":
        return PolicyProposal(with_digits, (), policy.spec())
    spans = sample.find(policy)
    flags = [flag for flag in SINGLE if flag not in policy.flags()]
    if "decimal=comma" in flags and not _has_decimal_commas(sample, policy):
        flags.remove("decimal=comma")  # it would change every number with a point
    found = (_effect(sample, spans, policy, flag) for flag in flags)
    effects = tuple(effect for effect in found if effect is not None)
    tried = {effect.flag for effect in effects}
    proposed = _proposed(sample, policy, tried, with_digits)
    return PolicyProposal(with_digits, effects, proposed.spec())


def _proposed(
    sample: _Sample, policy: NumeralPolicy, flags: Iterable[str], texts: int
) -> NumeralPolicy:
    # With decimal commas, points may turn out to be group marks.
    tried = [flag for flag in _ORDER if flag in flags or flag == "thousands"]
    proposed = policy
    for flag in tried:
        effect = _effect(sample, sample.find(proposed), proposed, flag)
        if effect is not None and effect.texts >= LEAST * texts:
            proposed = proposed.having(flag)
    for flag in proposed.flags():  # those that another one made superfluous
        rest = proposed.without(flag)
        changed = _differs(sample.find(proposed), sample.find(rest))
        if flag not in policy.flags() and not changed.any():
            proposed = rest
    return proposed


def _has_decimal_commas(sample: _Sample, policy: NumeralPolicy) -> bool:
    """Return whether more numbers have decimal commas than commas between groups."""
    decimal = sample.find(policy.having("decimal=comma"))
    grouped = sample.find(policy.having("thousands"))
    return _count(decimal, b".", not_three=True) > _count(grouped, b",", not_three=False)


def _count(spans: Spans, mark: bytes, not_three: bool) -> int:
    """Return the number of literals with a mark; with ``not_three``, those in which a number of
    digits other than three follows the mark."""
    data, starts, ends = spans.literals
    count = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        literal = data[start:end].tobytes()
        _, found, after = literal.partition(mark)
        digits = len(after) - len(after.lstrip(b"0123456789"))
        count += bool(found) and not (not_three and digits == 3)
    return count


def _effect(
    sample: _Sample, before: Spans, policy: NumeralPolicy, flag: str
) -> PolicyEffect | None:
    """Return the effect of a flag, or None if it changes nothing."""
    after = sample.find(policy.having(flag))
    changed = _differs(after, before)
    if not changed.any():
        return None
    owners = np.repeat(np.arange(len(after.counts)), after.counts)
    some = np.flatnonzero(changed)[:_SHOWN]
    example = int(some[np.argmax((after.ends - after.starts)[some])])
    written = sample.data[after.starts[example] : after.ends[example]].tobytes().decode()
    value = float(after.numerals().values[example])
    return PolicyEffect(
        flag=flag,
        digits=sample.unread(before) - sample.unread(after),
        changed=int(changed.sum()),
        texts=len(np.unique(owners[changed])),
        example=written,
        value=value,
    )


def _differs(after: Spans, before: Spans) -> Bools:
    """Return which numbers of ``after`` are not in ``before`` with the same value, bool[n]."""
    index = np.searchsorted(before.starts, after.starts)
    inside = index < len(before.starts)
    at = np.minimum(index, max(len(before.starts) - 1, 0))
    if not len(before.starts):
        return np.ones(len(after.starts), np.bool_)
    same = inside & (before.starts[at] == after.starts) & (before.ends[at] == after.ends)
    values, former = after.numerals().values, before.numerals().values[at]
    differs: Bools = ~(same & ((values == former) | (np.isnan(values) & np.isnan(former))))
    return differs


def _texts_with_digits(sample: _Sample) -> int:
    """Return the number of texts that contain a digit of any script."""
    runs = count_unread(sample.data, sample.rows, np.empty(0, np.int32), np.empty(0, np.int32))
    if not runs.digits:
        return 0
    is_digit = (sample.data >= ord("0")) & (sample.data <= ord("9")) | (sample.data >= 0x80)
    before = np.concatenate([[0], np.cumsum(is_digit)])
    return int((np.diff(before[sample.rows]) > 0).sum())
