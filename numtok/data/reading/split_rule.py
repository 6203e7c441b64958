"""Which split a row belongs to."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from numtok.errors import UsageError
from numtok.records import SPLIT_RULE, TRAIN, is_split


@dataclass(frozen=True)
class SplitRule:
    """``test=0.1,seed=3``: shares of the rows by a seeded hash of a key; the rest is train.

    The choice depends on the key and the seed alone, so rows keep their split when others are
    added or removed, and rows of one key are together: their id, or the cluster they belong to.
    """

    shares: Mapping[str, float]
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> "SplitRule":
        """Read ``name=share[,name=share...][,seed=S]``; UsageError says what is wrong."""
        shares: dict[str, float] = {}
        seed: int | None = None
        for pair in text.split(","):
            name, _, value = pair.partition("=")
            if name == "seed":
                if seed is not None or not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
                    raise UsageError(
                        f"--split {text!r}: {pair!r} is not the one seed, an integer of at most "
                        "18 digits; write for example test=0.1,seed=3"
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
                    f"and 1; write for example test=0.1,seed=3 (names: {SPLIT_RULE})"
                )
            shares[name] = share
        if not shares or sum(shares.values()) >= 1 or TRAIN in shares:
            raise UsageError(
                f"--split {text!r}: give shares of the other splits that leave something to "
                "train, for example test=0.1"
            )
        return cls(dict(sorted(shares.items())), seed or 0)  # the order as typed means nothing

    def settings(self) -> dict[str, object]:
        """What versions are taken over."""
        return {"shares": dict(self.shares), "seed": self.seed}

    def split_of(self, key: str) -> str:
        """The split of the rows with that key."""
        digest = hashlib.blake2b(key.encode(), digest_size=8, key=str(self.seed).encode())
        place = int.from_bytes(digest.digest(), "big") / 2**64
        for name, share in self.shares.items():
            place -= share
            if place < 0:
                return name
        return TRAIN
