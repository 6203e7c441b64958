"""Names of splits, and the rule that assigns rows to splits."""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from numtok.errors import UsageError

TRAIN = "train"  # the split that vocabularies and normalizations are fitted on
CALIBRATION = "calibration"  # the split that prediction intervals are calibrated on, and no more
SHIFTED = "ood-"  # prefix of out-of-distribution splits
SPLIT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
RESERVED = ("clipped", "rejected")  # folders that are not splits
SPLIT_RULE = "lower-case letters, digits, - and _, and neither clipped nor rejected"
_EXAMPLE = "test=0.1,seed=3"
_BY_TIME = "by=year,validation=2019,test=2021"


def is_split(name: str) -> bool:
    """Return whether a string is a valid name for a split (see :data:`SPLIT_RULE`)."""
    return SPLIT_NAME.fullmatch(name) is not None and name not in RESERVED


def split_twice(path: str, column: str) -> UsageError:
    """Return the error for ``--split`` and a file with a column of splits."""
    return UsageError(
        f"--split cannot be combined with the column {column!r} of {path}. Remove --split, or drop "
        f"the column (--drop {column})"
    )


@dataclass(frozen=True)
class SplitRule:
    """Rule that assigns rows to splits, by a seeded hash or by the value of a group.

    ``test=0.1,seed=3`` puts 10% of the rows into test and the rest into train. The split depends
    only on the seed and on the row's key (its cluster, or its id if it has no cluster). Rows
    therefore keep their split when other rows are added or removed, and rows of one cluster stay
    together.

    ``by=year,validation=2019,test=2021`` splits by a group of the rows or by a table column. Rows
    from 2021 or later are test; rows before 2019 and rows without a year are train. As in
    deployment, all test data is later than the training data.

    shares
        Fraction of the rows in each split other than train; empty if ``by`` names a group.
    starts
        First value of each split, in order; empty unless ``by`` names a group.
    """

    shares: Mapping[str, float]
    seed: int = 0
    by: str | None = None
    starts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "SplitRule":
        """Parse ``NAME=FRACTION[,...][,seed=S]`` or ``by=GROUP,NAME=START[,...]``.

        Raises UsageError if the rule is invalid.
        """
        pairs = [pair.partition("=") for pair in text.split(",")]
        if any(name == "by" for name, _, _ in pairs):
            return cls._parse_starts(text, pairs)
        shares: dict[str, float] = {}
        seed: int | None = None
        for name, equals, value in pairs:
            pair = name + equals + value
            if name == "seed":
                if seed is not None or not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
                    raise UsageError(
                        f"--split {text!r}: {pair!r} must be the only seed, an integer of at most "
                        f"18 digits. Example: {_EXAMPLE}"
                    )
                seed = int(value)
                continue
            try:
                share = float(value)
            except ValueError:
                share = -1.0
            if name in shares or not is_split(name) or not 0 < share < 1:
                raise UsageError(
                    f"--split {text!r}: {pair!r} must be a new name and a fraction between 0 and 1 "
                    f"(names: {SPLIT_RULE}). Example: {_EXAMPLE}"
                )
            shares[name] = share
        if not shares or sum(shares.values()) >= 1 or TRAIN in shares:
            raise UsageError(
                f"--split {text!r}: the fractions must leave something to train, and train cannot "
                "have one. Example: test=0.1"
            )
        return cls(dict(sorted(shares.items())), seed or 0)  # the order as typed has no meaning

    @classmethod
    def _parse_starts(cls, text: str, pairs: list[tuple[str, str, str]]) -> "SplitRule":
        starts: dict[str, str] = {}
        group = ""
        for name, equals, value in pairs:
            if name == "by" and not group and value:
                group = value
            elif name in (*starts, "by", TRAIN) or not is_split(name) or not value:
                raise UsageError(
                    f"--split {text!r}: {name + equals + value!r} must be a new name other than "
                    f"{TRAIN} and its first value (names: {SPLIT_RULE}). Example: {_BY_TIME}"
                )
            else:
                starts[name] = value
        if not group or not starts:
            raise UsageError(
                f"--split {text!r} must name a group and the first value of each split. Example: "
                f"{_BY_TIME}"
            )
        in_order = sorted(starts.items(), key=lambda start: sort_key(start[1]))
        return cls({}, by=group, starts=dict(in_order))

    def settings(self) -> dict[str, object]:
        """Return the settings that define the rule. The version of an artifact includes them."""
        if self.by is not None:
            return {"by": self.by, "starts": dict(self.starts)}
        return {"shares": dict(self.shares), "seed": self.seed}

    def empty_note(self, filled: Collection[str]) -> str | None:
        """Return a note on the splits of the rule that are not among ``filled``, those with rows;
        None if all are.

        >>> SplitRule.parse("by=yaer,test=2021").empty_note(["train"])
        "--split puts no rows in 'test'. Check the name and the values of 'yaer'"
        """
        empty = [name for name in (*self.shares, *self.starts) if name not in filled]
        if not empty:
            return None
        remedy = (
            "Use a larger fraction or more rows"
            if self.by is None
            else f"Check the name and the values of {self.by!r}"
        )
        return f"--split puts no rows in {', '.join(map(repr, empty))}. {remedy}"

    def split_of(self, key: str) -> str:
        """Return the split of rows with this key. Raises UsageError if the rule uses a group."""
        if self.by is not None:
            raise UsageError(
                f"--split by={self.by} needs rows with groups, and these have none. Use fractions, "
                f"for example {_EXAMPLE}"
            )
        digest = hashlib.blake2b(key.encode(), digest_size=8, key=str(self.seed).encode())
        position = int.from_bytes(digest.digest(), "big") / 2**64
        for name, share in self.shares.items():
            position -= share
            if position < 0:
                return name
        return TRAIN

    def split_at(self, value: str | None) -> str:
        """Return the split of rows whose group has this value; None stands for a missing value.

        >>> rule = SplitRule.parse("by=day,validation=2020-03,test=2020-05-01")
        >>> [rule.split_at(day) for day in ("2020-02-29", "2020-03-01", "2020-05-01", None)]
        ['train', 'validation', 'test', 'train']
        >>> rule = SplitRule.parse("by=day,test=2020")
        >>> [rule.split_at(day) for day in ("2019-12-31", "2020-01-01", "2019", "2020")]
        ['train', 'test', 'train', 'test']
        """
        split = TRAIN
        if value is None:
            return split
        for name, start in self.starts.items():
            ours, theirs = sort_key(value), sort_key(start)
            is_day = ours[0] and not theirs[0]  # a year is before all of its days
            if value >= start if is_day else ours >= theirs:
                split = name
        return split


def sort_key(value: str) -> tuple[bool, float, str]:
    """Return a sort key for a group value: numbers are sorted by value and precede strings.

    >>> sorted(["10", "9", "2020-03", "2019-12-31"], key=sort_key)
    ['9', '10', '2019-12-31', '2020-03']
    """
    try:
        return False, float(value), ""
    except ValueError:
        return True, 0.0, value
