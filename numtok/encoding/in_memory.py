"""in_memory: converts texts in memory to rows of an encoded split."""

import numpy as np
import pyarrow as pa

from numtok.arrays import Ints
from numtok.encoding.codec import Codec, EncodedTexts
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.texts import Texts


def rows_of(encoded: EncodedTexts, targets: Ints | None = None) -> EncodedSplit:
    """Convert encoded texts to a split with one row per text.

    targets
        int64[t], ascending indices of the numbers that are targets. All targets get the same name.
    """
    chosen = np.zeros(0, np.int64) if targets is None else targets
    data, starts, ends = encoded.literals
    bounds = zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)
    n = len(encoded.text)
    return EncodedSplit(
        ids=pa.array(map(str, range(n)), pa.string()),
        tokens=encoded.tokens,
        token_rows=encoded.token_rows.astype(np.int64),
        number_rows=encoded.number_rows.astype(np.int64),
        numbers=encoded.numbers,
        number_start=encoded.number_start,
        number_length=encoded.number_length,
        channel=encoded.channel,
        targets=chosen,
        target_row=np.searchsorted(encoded.number_rows, chosen, side="right") - 1,
        target_name=pa.array(["number"] * len(chosen), pa.string()),
        target_literal=pa.array([bytes(data[i:j]).decode() for i, j in bounds], pa.string()),
        answer_start=encoded.marks,
        labels=pa.nulls(n, pa.string()),
        groups={},
    )


def row_of(text: str, codec: Codec) -> EncodedSplit:
    """Encode one text, and return it as a split with a single row."""
    texts = Texts.of(pa.array([text], pa.string()))
    return rows_of(codec.encode(texts, codec.find(texts)))
