"""Names of splits, and which split a row belongs to."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from numtok.errors import UsageError

TRAIN = "train"  # the split that vocabularies and normalizations are fitted on
SHIFTED = "ood-"  # prefix of splits that are out of distribution
SPLIT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
RESERVED = ("clipped", "rejected")  # folders beside the shards of the splits
SPLIT_RULE = "lower-case letters, digits, - and _, and neither clipped nor rejected"
_EXAMPLE = "test=0.1,seed=3"
_BY_TIME = "by=year,validation=2019,test=2021"


def is_split(name: str) -> bool:
    """Check whether :data:`SPLIT_RULE` allows that name of a split."""
    return SPLIT_NAME.fullmatch(name) is not None and name not in RESERVED


@dataclass(frozen=True)
class SplitRule:
    """``test=0.1,seed=3``: shares of the rows by a seeded hash of a key; the rest is train.

    The choice depends on the key and the seed alone, so rows keep their split when others are
    added or removed, and rows of one key are together: their id, or the cluster they belong to.

    Or ``by=year,validation=2019,test=2021``: by where a row stands in the order of a group, of
    tables a column. Rows from 2021 on are for the test, those before 2019 and those without a year
    train. So what is tested comes after all that was learnt, as it will when a model is used.

    starts
        Where each split begins, in order; empty unless ``by`` names a group.
    """

    shares: Mapping[str, float]
    seed: int = 0
    by: str | None = None
    starts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "SplitRule":
        """Read ``name=share[,name=share...][,seed=S]``, or ``by=GROUP,name=START[,...]``;
        UsageError says what is wrong."""
        pairs = [pair.partition("=") for pair in text.split(",")]
        if any(name == "by" for name, _, _ in pairs):
            return cls._of_starts(text, pairs)
        shares: dict[str, float] = {}
        seed: int | None = None
        for name, equals, value in pairs:
            pair = name + equals + value
            if name == "seed":
                if seed is not None or not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
                    raise UsageError(
                        f"--split {text!r}: {pair!r} is not the one seed, an integer of at most "
                        f"18 digits; write for example {_EXAMPLE}"
                    )
                seed = int(value)
                continue
            try:
                share = float(value)
            except ValueError:
                share = -1.0
            if name in shares or not is_split(name) or not 0 < share < 1:
                raise UsageError(
                    f"--split {text!r}: {pair!r} is not a new split's name and a share between 0 "
                    f"and 1; write for example {_EXAMPLE} (names: {SPLIT_RULE})"
                )
            shares[name] = share
        if not shares or sum(shares.values()) >= 1 or TRAIN in shares:
            raise UsageError(
                f"--split {text!r}: give shares of the other splits that leave something to "
                "train, for example test=0.1"
            )
        return cls(dict(sorted(shares.items())), seed or 0)  # the order as typed means nothing

    @classmethod
    def _of_starts(cls, text: str, pairs: list[tuple[str, str, str]]) -> "SplitRule":
        starts: dict[str, str] = {}
        group = ""
        for name, equals, value in pairs:
            if name == "by" and not group and value:
                group = value
            elif name in (*starts, "by", TRAIN) or not is_split(name) or not value:
                raise UsageError(
                    f"--split {text!r}: {name + equals + value!r} is not the name of another split "
                    f"than {TRAIN} and where it begins; write for example {_BY_TIME} "
                    f"(names: {SPLIT_RULE})"
                )
            else:
                starts[name] = value
        if not group or not starts:
            raise UsageError(
                f"--split {text!r}: say by which group, and where splits begin, for example "
                f"{_BY_TIME}"
            )
        in_order = sorted(starts.items(), key=lambda one: place_of(one[1]))
        return cls({}, by=group, starts=dict(in_order))

    def settings(self) -> dict[str, object]:
        """What versions are taken over."""
        if self.by is not None:
            return {"by": self.by, "starts": dict(self.starts)}
        return {"shares": dict(self.shares), "seed": self.seed}

    def split_of(self, key: str) -> str:
        """The split of the rows with that key; UsageError of a rule that is by a group."""
        if self.by is not None:
            raise UsageError(
                f"--split by={self.by} goes by a group of rows, and these have none; give shares, "
                f"for example {_EXAMPLE}"
            )
        digest = hashlib.blake2b(key.encode(), digest_size=8, key=str(self.seed).encode())
        place = int.from_bytes(digest.digest(), "big") / 2**64
        for name, share in self.shares.items():
            place -= share
            if place < 0:
                return name
        return TRAIN

    def split_at(self, value: str | None) -> str:
        """The split of the rows with that value of the group; None is none.

        >>> rule = SplitRule.parse("by=day,validation=2020-03,test=2020-05-01")
        >>> [rule.split_at(day) for day in ("2020-02-29", "2020-03-01", "2020-05-01", None)]
        ['train', 'validation', 'test', 'train']
        """
        found = TRAIN
        if value is None:
            return found
        for name, start in self.starts.items():
            if place_of(value) >= place_of(start):
                found = name
        return found


def place_of(value: str) -> tuple[bool, float, str]:
    """What puts values in order: numbers by their size, then texts, as dates of ISO 8601 are.

    >>> sorted(["10", "9", "2020-03", "2019-12-31"], key=place_of)
    ['9', '10', '2019-12-31', '2020-03']
    """
    try:
        return False, float(value), ""
    except ValueError:
        return True, 0.0, value
