"""How much of what comes from elsewhere may be written to a disk.

Standard input and pipes may never end, a server may send more than it said, and an archive of some
kilobytes may unpack to terabytes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numtok import files
from numtok.errors import UsageError

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_KEPT = 1 << 30  # bytes of a disk that stay free, or
_SHARE = 0.05  # of it, whichever is more
_LARGE = 1 << 30  # bytes that anything may unpack to, and else
_RATIO = 100  # times its size: NetCDF and GRIB come to 5 or so, zeros alone to 1000
_ALWAYS = 256 << 20  # bytes that are written whatever is free: what people pipe on a full disk


@dataclass(frozen=True)
class Quota:
    """What ``--disk-limit`` says: ``most`` bytes, or without it what leaves room on the disk, or
    with ``endless`` anything."""

    most: int | None = None
    endless: bool = False

    @classmethod
    def parse(cls, text: str | None) -> "Quota":
        """``20GB``, ``500MiB``, ``none``; None for the default. UsageError for anything else.

        >>> Quota.parse("1.5GB").most
        1500000000
        """
        if text is None or text == "none":
            return cls(endless=text is not None)
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", text)
        if match is None or match[2] not in _UNITS:
            raise UsageError(
                f"--disk-limit {text!r} is no size; write a number of bytes, a size such as 20GB "
                f"or 500MiB ({', '.join(filter(None, _UNITS))}), or none"
            )
        return cls(int(float(match[1]) * _UNITS[match[2]]))

    def check(self, what: str, folder: Path, size: int, more: int) -> None:
        """Raise UsageError where ``size`` bytes of ``what``, ``more`` of them to come, are too many
        to be written below a folder; StoreError where its disk cannot be looked at."""
        if self.most is not None and size > self.most:
            raise UsageError(
                f"{what} has more than the {self.most:,} bytes that --disk-limit allows; give a "
                "larger one, or none for no limit"
            )
        if self.most is not None or self.endless or size <= _ALWAYS:
            return
        with files.reporting("write to", folder):
            free, whole = files.system.room(folder)
        kept = max(_KEPT, int(whole * _SHARE))
        if free < kept + more:
            raise UsageError(
                f"{what} has {size:,} bytes or more, and the disk of {folder} has {free:,} left, "
                f"of which {kept:,} are to stay free; free some space, or lift the limit by "
                "--disk-limit SIZE, or none for no limit"
            )

    def check_unpacked(self, what: str, packed: int, size: int) -> None:
        """Raise UsageError for what is packed so well that nobody has packed data in it."""
        if self.most is None and not self.endless and size > max(_LARGE, _RATIO * packed):
            raise UsageError(
                f"{what} has {packed:,} bytes and unpacks to {size:,}, {_RATIO:,} times as many or "
                "more, which data does not; if it is meant, --disk-limit SIZE says how much may "
                "be written"
            )

    def copy(
        self,
        what: str,
        folder: Path,
        read: Callable[[int], bytes],
        write: Callable[[bytes], object],
    ) -> None:
        """Write what is read until there is no more, as far as :meth:`check` allows."""
        size = 0
        while piece := read(files.PIECE):
            size += len(piece)
            self.check(what, folder, size, len(piece))
            write(piece)
