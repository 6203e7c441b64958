"""Limits on external data that is written to disk.

Standard input and pipes may never end, a server may send more than it announced, and an archive of
a few kilobytes may expand to terabytes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numtok import files
from numtok.errors import UsageError

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_KEPT = 1 << 30  # bytes of a disk to keep free, or
_SHARE = 0.05  # fraction of the disk, whichever is more
_LARGE = 1 << 30  # bytes to which any file may expand
_RATIO = 100  # maximum expansion of larger files: about 5 for NetCDF and GRIB, 1000 for zeros
_ALWAYS = 256 << 20  # bytes that are always written, even if the disk is nearly full


@dataclass(frozen=True)
class Quota:
    """Limit on the data that a command writes to disk, set by ``--disk-limit``.

    most
        Maximum number of bytes. If None, part of the disk must stay free, except for data of up to
        256 MiB, which is always written.
    endless
        True for no limit; ``most`` is then None.
    """

    most: int | None = None
    endless: bool = False

    @classmethod
    def parse(cls, text: str | None) -> "Quota":
        """Parse the value of ``--disk-limit``: ``20GB``, ``500MiB``, ``none``, or None for the
        default limit.

        Raises UsageError for any other text.

        >>> Quota.parse("1.5GB").most
        1500000000
        """
        if text is None or text == "none":
            return cls(endless=text is not None)
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", text)
        if match is None or match[2] not in _UNITS:
            raise UsageError(
                "--disk-limit must be a number of bytes, a size such as 20GB or 500MiB "
                f"({', '.join(filter(None, _UNITS))}), or none (got {text!r})"
            )
        return cls(int(float(match[1]) * _UNITS[match[2]]))

    def check(self, what: str, folder: Path, size: int, more: int) -> None:
        """Raise UsageError if data of ``size`` bytes, of which ``more`` bytes are not yet written,
        exceeds the limit.

        ``what`` names the data in the message, and ``folder`` is any folder on the target disk.
        Raises StoreError if the free space of the disk cannot be determined.
        """
        if self.most is not None and size > self.most:
            raise UsageError(
                f"{what} exceeds --disk-limit ({self.most:,} bytes). Increase it, or pass none for "
                "no limit"
            )
        if self.most is not None or self.endless or size <= _ALWAYS:
            return
        with files.reporting("write to", folder):
            free, whole = files.system.room(folder)
        kept = max(_KEPT, int(whole * _SHARE))
        if free < kept + more:
            raise UsageError(
                f"{what} has at least {size:,} bytes, but the disk of {folder} has {free:,} bytes "
                f"left, of which {kept:,} must stay free. Free some space, or set --disk-limit "
                "SIZE (none for no limit)"
            )

    def check_unpacked(self, what: str, packed: int, size: int) -> None:
        """Raise UsageError if a file that expands from ``packed`` to ``size`` bytes may be a zip
        bomb."""
        if self.most is None and not self.endless and size > max(_LARGE, _RATIO * packed):
            raise UsageError(
                f"{what} expands more than {_RATIO}-fold (from {packed:,} to {size:,} bytes) and "
                "may be a zip bomb. If you trust it: --disk-limit SIZE"
            )

    def copy(
        self,
        what: str,
        folder: Path,
        read: Callable[[int], bytes],
        write: Callable[[bytes], object],
    ) -> None:
        """Copy all data from ``read`` to ``write`` in pieces, and call :meth:`check` before each
        piece is written."""
        size = 0
        while piece := read(files.PIECE):
            size += len(piece)
            self.check(what, folder, size, len(piece))
            write(piece)
