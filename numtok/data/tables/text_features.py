"""Tables whose features are hidden states of a frozen pretrained model: how they are made.

``features.json`` is next to ``table.json``, and next to ``model.json`` of a model that is trained
on the table, so that its predictions can start from texts.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from numtok.data.records.row_template import RowTemplate
from numtok.store.artifact import Artifact
from numtok.stored_json import Positive, StoredJson

FORMAT = 1  # of features.json
FEATURES_FILE = "features.json"

Pooling = Literal["mean", "last"]


class TextFeatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Content of ``features.json``: how the features of a text are computed.

    model, sha256
        Folder, hub id or GGUF file of the pretrained model, as passed, and the digest of its
        weights, config and tokenizer.
    quantized
        Type of the weights before they were dequantized, such as ``Q4_1``; None for float weights.
    pooling
        ``mean`` of the hidden states of all tokens, or state of the ``last`` token.
    causal
        True if only the text before the target is read.
    width
        Number of features, ``h0``, ``h1``, ...
    target
        Name of the target, which is removed from each text.
    text_field
        Field of the rows that contains the text.
    template
        Template by which records become texts; None if the rows were texts.
    """

    format: int = FORMAT
    model: str
    sha256: str
    quantized: str | None
    pooling: Pooling
    causal: bool
    width: Positive
    target: str
    text_field: str
    template: RowTemplate | None = None


class NamedSpan(NamedTuple):
    """Characters of a text that are a target, from ``start`` to ``end`` (exclusive)."""

    start: int
    end: int
    name: str


_FEATURES = StoredJson(name=FEATURES_FILE, kind=TextFeatures, newest=FORMAT)


def write_text_features(folder: Path, features: TextFeatures) -> None:
    """Write ``features.json`` to a folder. Raises StoreError if writing fails."""
    _FEATURES.write(folder, features)


def read_text_features(artifact: Artifact) -> TextFeatures | None:
    """Read the ``features.json`` of a table or of a model; return None if it has none.

    Raises StoreError if the file was changed or its format is newer than this version of numtok.
    """
    there = (artifact.path / FEATURES_FILE).exists()
    return artifact.read(_FEATURES) if there else None


def without_targets(text: str, spans: Iterable[NamedSpan], *, causal: bool) -> str:
    r"""Return a text without its targets, the input of a pretrained model.

    If ``causal``, the text ends before the first target. Otherwise only the targets are removed. A
    line that is left with only the name of its target is removed as well.

    >>> without_targets("x: 3\ny: 7", [NamedSpan(8, 9, "y")], causal=True)
    'x: 3'
    >>> without_targets("of 3 and 4 kg it has 7 kg", [NamedSpan(21, 22, "y")], causal=False)
    'of 3 and 4 kg it has  kg'
    """
    pieces, begin = [], 0
    for span in sorted(spans):
        before, after = text[begin : span.start], text[span.end :]
        is_line = causal or not after or after.startswith("\n")
        pieces.append(without_name(before, span.name) if is_line else before)
        begin = span.end
        if causal:
            return pieces[0]
    return "".join([*pieces, text[begin:]])


def without_name(text: str, name: str) -> str:
    r"""Return a text without its last line, if that line is only ``name:``.

    >>> without_name("x: 3\ny: ", "y"), without_name("y in kg: ", "y")
    ('x: 3', 'y in kg: ')
    """
    rest, _, line = text.rpartition("\n")
    return rest if line.rstrip(" ") == f"{name}:" else text
