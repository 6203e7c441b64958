"""Which questions of a stratum of NUPA each split has: none of them twice, none in two splits.

Candidates are drawn a block at a time, from one sequence for test and validation and from another
one for train. Test has the first different ones, validation the next, train what is in neither.

Variants of a task, such as ``mod`` and ``mod_easy``, ask in the same words. What one of them has in
test is in the validation split and in the train split of none, and what one has in validation is in
no train split. Within a split they may share questions, as published.

Of two questions that are in one of two splits each, none is the other with its operands exchanged,
where that leaves the answer as it is: who has learnt 12 + 7 knows 7 + 12. (The published train
split leaves out the very strings of the test alone.)
"""

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from numtok.data.nupa.keys import FLOAT, FRACTION, INTEGER, KEYS, SCIENTIFIC, Key, published
from numtok.data.nupa.wording import wording
from numtok.data.tasks._nupa_operands import Draws, candidates

#: A first operand and a second one, which is empty where there is none.
Question = tuple[str, str]

_FIRST_BLOCK, _LARGEST_BLOCK = 32, 4096  # candidates
_LAST_BLOCK, _NEW = 1024, 64  # no more are to be had where of so many fewer than one in 64 is new
_SHARE = 10  # of a small stratum, a tenth for test
_COMMUTATIVE = ("add", "multiply", "max", "min", "digit_max", "digit_min", "digit_add")


class Stratum(NamedTuple):
    """A task and a digit key, and how many questions are wanted for test and for validation."""

    key: Key
    digits: int
    test: int
    validation: int


def variants(key: Key) -> list[Key]:
    """The keys that ask as this one does, itself among them.

    >>> [one.task for one in variants(KEYS["mod_Integer_Integer_Integer"])]
    ['mod', 'mod_easy']
    """
    asked = wording(key, "published")
    same = (one for one in KEYS.values() if one.first == key.first)
    return [one for one in same if wording(one, "published") == asked]


def tested(seed: int, stratum: Stratum) -> list[Question]:
    """The questions of the test split."""
    return _dealt(seed, stratum._replace(validation=0), frozenset())[0]


def validated(seed: int, stratum: Stratum, others: tuple[Stratum, ...]) -> list[Question]:
    """Those of the validation split; ``others`` are the strata of the other variants."""
    return _held(seed, stratum, others)[1]


@lru_cache(maxsize=2)  # a stratum may be of several units
def trained(seed: int, stratum: Stratum, others: tuple[Stratum, ...], rows: int) -> list[Question]:
    """The first of the train split, or all where there are not so many."""
    every = (stratum, *others)
    held: set[Question] = set()
    for one in every:
        for questions in _held(seed, one, [other for other in every if other != one]):
            held.update(_unordered(stratum.key, questions))
    found: list[Question] = []
    for new in _different(seed, stratum, is_held=False):
        found += _outside(stratum.key, new, held)
        if len(found) >= rows:
            break
    return found[:rows]


def _held(
    seed: int, stratum: Stratum, others: Sequence[Stratum]
) -> tuple[list[Question], list[Question]]:
    tests = [question for other in others for question in tested(seed, other)]
    return _dealt(seed, stratum, frozenset(_unordered(stratum.key, tests)))


@lru_cache(maxsize=16)
def _dealt(
    seed: int, stratum: Stratum, elsewhere: frozenset[Question]
) -> tuple[list[Question], list[Question]]:
    """The questions of test, and those of validation, of which none are ``elsewhere``."""
    tests, validations = _counts(seed, stratum)
    test: list[Question] = []
    validation: list[Question] = []
    taken = set(elsewhere)
    for new in _different(seed, stratum, is_held=True):
        lacking = tests - len(test)
        test += new[:lacking]
        taken.update(_unordered(stratum.key, new[:lacking]))
        validation += _outside(stratum.key, new[lacking:], taken)
        if len(test) == tests and len(validation) >= validations:
            break
    return test, validation[:validations]


def _unordered(key: Key, questions: Sequence[Question]) -> Sequence[Question]:
    """What each asks, whichever operand comes first, where that makes no difference."""
    if key.operation not in _COMMUTATIVE:
        return questions
    return [(b, a) if b < a else (a, b) for a, b in questions]


def _outside(key: Key, questions: Sequence[Question], taken: Set[Question]) -> Iterator[Question]:
    """Those that are not taken in either order."""
    pairs = zip(questions, _unordered(key, questions), strict=True)
    return (question for question, unordered in pairs if unordered not in taken)


def _counts(seed: int, stratum: Stratum) -> tuple[int, int]:
    """How many questions test and validation have. Of a small stratum not all that are wanted:
    most are left for train, but for a count that is published."""
    key, digits, test, validation = stratum
    is_published = test <= (published(key, digits) or 0)
    enough = _SHARE * max(test, validation)
    if (is_published and not validation) or _about(key, digits) > 2 * enough:
        return test, validation
    there = 0
    for new in _different(seed, stratum, is_held=True):
        there += len(new)
        if there >= enough:
            return test, validation
    if is_published:
        return test, min(validation, (there - test) // 2)
    share = max(1, there // _SHARE)
    return min(test, share), min(validation, share)


def _about(key: Key, digits: int) -> int:
    """How many different questions a stratum has: of that order, and rather less."""
    if key.task == "to_float":
        return int(10 ** (digits - 1))
    each = {INTEGER: 10 ** (digits - 1), FLOAT: 10 ** (2 * digits - 1)}
    each |= {FRACTION: 10 ** (2 * digits - 1), SCIENTIFIC: 10 ** (digits + 2)}
    return int(each[key.first] ** (1 if key.second in ("none", "int") else 2))


def _different(seed: int, stratum: Stratum, *, is_held: bool) -> Iterator[list[Question]]:
    """The different questions of a sequence, a block at a time, until hardly any are new."""
    key, digits = stratum.key, stratum.digits
    seen: set[Question] = set()
    size, drawn = _FIRST_BLOCK, 0
    while True:
        purpose = f"nupa {key.name} {digits} {'held' if is_held else 'train'} {drawn} {seed}"
        first, second = candidates(Draws(purpose), key, digits, is_held, size)
        new = []
        for question in zip(first, second or [""] * len(first), strict=True):
            if question not in seen:
                seen.add(question)
                new.append(question)
        yield new
        if len(new) * _NEW < size >= _LAST_BLOCK:
            return
        drawn += size
        size = min(drawn, _LARGEST_BLOCK)
