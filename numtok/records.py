"""The records that cross stages: a row of data, a row of encoded data.

*data* is JSONL or Parquet with the fields of :class:`Row`; *encoded* is Parquet
with the columns of :func:`encoded_schema`. Other fields of a row are left alone.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    import pyarrow as pa

Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # what is counted
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]  # what there is at least one of
Scalar = str | int | float | bool | None

# Kinds of artifacts; a download is the files of a public data set as they came.
DATA, TABLE, ENCODED, MODEL, DOWNLOAD = "data", "table", "encoded", "model", "download"
FIELD = "field"  # values on a grid of latitude and longitude at many times
INEXACT = "inexact"  # a count of encoded data (codec.inexact)
UNREAD = "unread_digits"  # a fact of encoded data (numerals.unread.UnreadDigits)
TRUNCATED = "beyond_sight"  # a count of encoded data and models (Scheme.beyond_sight)
SCHEME_FILE = "scheme.json"  # of an encoded or model artifact: the codec
LOG_FILE = "metrics.jsonl"  # of a model, of tables or of texts: what was logged as it learnt
EXACT = "exact"  # in that log: the share of answers that are right; some schemes have none
SPECIALS = ("[PAD]", "[MASK]", "[END]")  # the first ids of every vocabulary
TRAIN = "train"  # the split that vocabularies and normalisations are fitted on
SPLIT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
RESERVED = ("clipped", "rejected")  # what lies beside the splits' shards, once under such names
SPLIT_RULE = "lower-case letters, digits, - and _, and neither clipped nor rejected"
SHIFTED = "ood-"  # how names of splits begin that are out of distribution
GROUP = "group_"  # prefix of the columns that a row's groups become
FLOOR = "floor_"  # the same of what it says of its targets beside them (``Row.floors``)
CLUSTER = "cluster"  # the column of what rows belong together
#: The baselines of reports.
USUAL_BASELINES = (
    "quantisation", "mean", "length", "place", "slot", "nearest", "linear", "boosted",
)  # fmt: skip
LIMITS = ("quantisation", "nearest")  # of these, what is made of the truth: no rival of a model
FOLD = "fold"  # the group of predictions that the folds of a table are
#: What a finite number is written as, by any numeral policy; as Arrow's expressions have it.
NUMERAL = r"^[-+\x{2212}]?(?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?$"
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class Row(msgspec.Struct, kw_only=True):
    """One sample.

    text
        What the model reads; any text, numbers anywhere in it.
    id
        Kept as a string. Absent: file index and byte offset (``0:4096``; in Parquet the row).
    targets
        Name to spans [start, end] in code points of ``text``, each exactly one number.
    floors
        What else predicts the targets, say the value of the day before: target to names, each
        with one number for each of its spans, null where there is none. They become baselines
        of reports, and baselines that are fitted are given them; no model sees them.
    label
        A class.
    answer_start
        Code point where the answer begins, for autoregressive training.
    group
        What per-group tables group by: digits, operands, task. Null is the same as not there.
    cluster
        Of whom, or of which day: rows of one cluster are not independent, so the bootstrap draws
        them together. A row without one stands for itself.
    split
        Where the row belongs; ``train`` if neither the row nor the command says.
    """

    text: str
    id: str | int | UnsetType | None = UNSET
    targets: dict[str, list[tuple[int, int]]] | None = None
    floors: dict[str, dict[str, list[float | None]]] | None = None
    label: str | int | None = None
    answer_start: int | None = None
    group: dict[str, str | int | float | bool | None] | None = None
    cluster: str | int | None = None
    split: str | None = None


#: The fields of a row besides its text.
OPTIONAL = Row.__struct_fields__[1:]


def is_split(name: str) -> bool:
    """Whether a split can have that name, by :data:`SPLIT_RULE`."""
    return SPLIT_NAME.fullmatch(name) is not None and name not in RESERVED


class TokenIds(NamedTuple):
    """The ids of a vocabulary: special tokens, those of numbers, those of text; and whether a value
    stands beside each number (``channel``)."""

    number_first: int
    text_first: int
    size: int
    channel: bool
    exact: bool = False  # the channel is float64


def as_text(value: str | int | float | bool | None) -> str | None:
    """A label or group value as the string that its column holds.

    >>> as_text(True), as_text(3), as_text(None)
    ('true', '3', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def encoded_schema(
    vocabulary_size: int, channel: bool, more: Sequence[str], *, exact: bool = False
) -> "pa.Schema":
    """The columns of an encoded shard; ``more`` are those that depend on the rows, by name.

    ========================  ===============================================================
    id                        string
    text                      string, numbers replaced by ``[NUM]`` (``codec`` has the escape)
    numbers                   list<float64>, every number in order, raw, correctly rounded
    tokens                    list<uint16>, or uint32 for a vocabulary over 65,536
    number_start              list<int32>, index in ``tokens`` of each number's first token
    number_length             list<int32>, how many tokens each number has
    channel                   list<float32>, the value beside the tokens; only with a channel, and
                              list<float64> of a scheme that is ``exact``
    target_index              list<int32>, index in ``numbers`` of each target
    target_name               list<string>
    target_literal            list<string>, the digits as written
    answer_start              int32, index in ``tokens``; null if there is none
    label                     string or null
    floor_*                   list<float64>, a prediction of each target, NaN if there is none
    group_*                   string or null, one column a group
    cluster                   string or null; only where a row has one
    ========================  ===============================================================
    """
    import pyarrow as pa

    token = pa.uint16() if vocabulary_size <= 1 << 16 else pa.uint32()
    columns: dict[str, Any] = {
        "id": pa.string(),
        "text": pa.string(),
        "numbers": pa.list_(pa.float64()),
        "tokens": pa.list_(token),
        "number_start": pa.list_(pa.int32()),
        "number_length": pa.list_(pa.int32()),
    }
    if channel:
        columns["channel"] = pa.list_(pa.float64() if exact else pa.float32())
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


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Labels, or values of a group: integers as numbers, then the others as texts.

    >>> in_order(["no", "10", "9", "-1"])
    ('-1', '9', '10', 'no')
    """

    def key(name: str) -> tuple[bool, int, str]:
        is_number = _INTEGER.fullmatch(name) is not None
        return not is_number, int(name) if is_number else 0, name

    return tuple(sorted(names, key=key))
