"""chronos: one token a number, the nearest of many evenly spaced values. ``0.25`` -> ``1023``."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.arrays import Ints
from numtok.declaration import setting
from numtok.encoding.grid import Columns, Units
from numtok.encoding.schemes._unit import UnitScheme
from numtok.encoding.schemes.base import SchemeDefaults

_MOST = 1 << 16


@dataclass(frozen=True)
class Chronos(UnitScheme):
    """The bins of Chronos (Ansari et al. 2024): 4,093 centres from -15 to 15, in units of the mean
    magnitude. A bin goes from the middle between two centres to the next.

    The paper scales each series by its own mean; here it is that of the train split
    (``--normalize mean-scale``), so that a number is read back without its row. The paper clips
    what lies beyond the last centre; here it overflows.

    bins
        How many.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Chronos (arXiv 2403.07815), Section 3.1; public code"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(normalizer="mean-scale")
    contiguous: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("0", "0", "0.0"),
        ("0.5", "2046", "0.5"),
        ("0.505442", "2068", "0.5053763440860215"),  # 1, of series whose mean magnitude is 6.125
        ("0.595238", "2436", "0.5953079178885631"),  # 17.5
        ("1", "4092", "1.0"),
        ("1.001", "+OVERFLOW", "overflow"),
        ("-1e-9", "-OVERFLOW", "overflow"),
        ("nan", "NAN", "nan"),
    )
    digest: ClassVar[str] = "2714a2ee713856b6"
    positional: ClassVar[str] = "bins"
    most_digits: ClassVar[int] = _MOST
    length: ClassVar[int] = 1
    point: ClassVar[str] = "nearest"
    repeat: ClassVar[int] = 1
    bins: int = setting(4093, "Evenly spaced values.", at_least=2, at_most=_MOST)

    @property
    def digits(self) -> int:
        return self.bins

    def write(self, units: Units) -> Columns:
        return (units.counts,)

    def read(self, indices: Ints) -> Units:
        return self.cells_as_units(indices[:, 0])
