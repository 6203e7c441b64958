"""chronos: one token per number, the nearest of many evenly spaced values. ``0.25`` -> ``1023``."""

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
    """One token per number: its bin, as in Chronos (Ansari et al. 2024). There are 4,093 bins with
    centers from -15 to 15, in units of the mean magnitude. Bin edges lie halfway between
    neighboring centers.

    The paper scales each series by its own mean. Here the scale is the mean of the train split
    (``--normalize mean-scale``), so that a number can be decoded without its row. Values beyond the
    last center overflow here; the paper clips them.

    bins
        Number of evenly spaced values.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Chronos (arXiv 2403.07815), Section 3.1; public code"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(normalizer="mean-scale")
    contiguous: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("0", "0", "0.0"),
        ("0.5", "2046", "0.5"),
        ("0.505442", "2068", "0.5053763440860215"),  # 1, for a mean magnitude of 6.125
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
    bins: int = setting(4093, "Number of evenly spaced values.", at_least=2, at_most=_MOST)

    @property
    def digits(self) -> int:
        return self.bins

    def write(self, units: Units) -> Columns:
        return (units.counts,)

    def read(self, indices: Ints) -> Units:
        return self.cells_as_units(indices[:, 0])
