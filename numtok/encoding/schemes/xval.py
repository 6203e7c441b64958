"""xVal: one token ``[NUM]`` per number; its value is in the value channel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats
from numtok.encoding.schemes._channel import ValuedScheme
from numtok.encoding.schemes.base import Bounds, LargestError, SchemeDefaults

_LEAST = float(np.finfo(np.float32).tiny)  # below it float32 loses digits, and devices flush to 0
_MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class XVal(ValuedScheme):
    """xVal (Golkar et al., Section 2.1): the embedding of ``[NUM]`` is multiplied by the number.

    The number is passed to the model as float32, normalized to [-5, 5] by default, as in the
    paper's experiments.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.1"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="scaled", head="scalar", normalizer="scale:5"
    )
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "[NUM]", "-60.20000076293945"),
        ("0", "[NUM]", "0.0"),
        ("1e40", "+OVERFLOW", "overflow"),
        ("-1e-400", "-UNDERFLOW", "underflow"),
    )
    digest: ClassVar[str] = "b0330c83ff75fa9e"

    @property
    def bounds(self) -> Bounds:
        return Bounds(_LEAST, _MOST)

    @property
    def error(self) -> LargestError:
        return LargestError(2.0**-24)

    def held(self, values: Floats) -> NDArray[np.float32]:
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(np.float32)
