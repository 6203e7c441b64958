"""schema: layout of encoded data.

The module defines special tokens, the columns of a shard, and the names of counts and files.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from numtok.row import FLOOR

if TYPE_CHECKING:
    import pyarrow as pa

SPECIALS = ("[PAD]", "[MASK]", "[END]")  # the first ids of every vocabulary
SCHEME_FILE = "scheme.json"  # the codec, in an artifact of encoded data or a model
INEXACT = "inexact"  # count: ``EncodedTexts.inexact``
TRUNCATED = "beyond_sight"  # count, also of models: ``EncodedTexts.truncated``


class TokenIds(NamedTuple):
    """Ranges of token ids in a vocabulary. Special tokens come first, then number tokens, then text
    tokens.

    ``channel`` is True if the scheme has a value channel, ``exact`` if the channel is float64, and
    ``written`` if the numeral policy has notations that the tokens do not keep.
    """

    number_first: int
    text_first: int
    size: int
    channel: bool
    exact: bool = False  # the channel is float64
    written: bool = False  # numbers are also stored as in the texts


def encoded_schema(ids: TokenIds, more: Sequence[str] = ()) -> "pa.Schema":
    """Return the Arrow schema of an encoded shard. ``more`` contains the names of the optional
    columns that occur in the rows: ``floor_*``, ``group_*`` and ``cluster``.

    ========================  ===============================================================
    id                        string
    text                      string, numbers replaced by ``[NUM]`` (for escapes, see ``codec``)
    numbers                   list<float64>, every number in order, raw, correctly rounded
    tokens                    list<uint16>, or uint32 for a vocabulary over 65,536
    number_start              list<int32>, index in ``tokens`` of each number's first token
    number_length             list<int32>, number of tokens of each number
    number_text               list<string>, the numbers as in the text; only if ``written``
    channel                   list<float32>, value of each number; only with a channel, and
                              list<float64> if the scheme is ``exact``
    target_index              list<int32>, index in ``numbers`` of each target
    target_name               list<string>
    target_literal            list<string>, the literal that schemes see
    answer_start              int32, index in ``tokens``; null if missing
    label                     string or null
    floor_*                   list<float64>, baseline prediction of each target, NaN if missing
    group_*                   string or null, one column per group
    cluster                   string or null; only if any row has one
    ========================  ===============================================================
    """
    import pyarrow as pa

    token = pa.uint16() if ids.size <= 1 << 16 else pa.uint32()
    columns: dict[str, Any] = {
        "id": pa.string(),
        "text": pa.string(),
        "numbers": pa.list_(pa.float64()),
        "tokens": pa.list_(token),
        "number_start": pa.list_(pa.int32()),
        "number_length": pa.list_(pa.int32()),
    }
    if ids.written:
        columns["number_text"] = pa.list_(pa.string())
    if ids.channel:
        columns["channel"] = pa.list_(pa.float64() if ids.exact else pa.float32())
    columns |= {
        "target_index": pa.list_(pa.int32()),
        "target_name": pa.list_(pa.string()),
        "target_literal": pa.list_(pa.string()),
        "answer_start": pa.int32(),
        "label": pa.string(),
    }
    columns |= {
        name: pa.list_(pa.float64()) if name.startswith(FLOOR) else pa.string() for name in more
    }
    return pa.schema(columns)
