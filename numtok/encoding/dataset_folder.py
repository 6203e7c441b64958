"""Encoded data as a folder that ``datasets.load_dataset`` opens: shards, codec and a card."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from numtok import files
from numtok.encoding.codec import Codec
from numtok.encoding.model_folder import TOKENIZER
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import read_codec, splits
from numtok.errors import DataError
from numtok.registry import spec_of
from numtok.store.artifact import Artifact, Output
from numtok.store.columns import damaged
from numtok.version import __version__

_PIECE = 1 << 20
_NO_WORD = re.compile(r"\W")

_CARD = """\
---
configs:
- config_name: default
  data_files:
{data_files}
tags:
- numtok
- numbers
---

# {name}

{rows:,} rows with {numbers:,} numbers, encoded by numtok {version}: `{scheme}`, numbers normalised
by `{normalizer}`, the text between them by `{text_tokenizer}`; {tokens:,} tokens of
{vocabulary:,}.

| split | rows |
|---|---|
{table}
{renamed}
Its version is `{ref}`.

A row has its `text`, each number replaced by `[NUM]`; `numbers`, every number in float64; `tokens`,
and `number_start` and `number_length`, where each number is among them; `channel`, the value beside
each number's tokens, where the scheme has one; and what is asked: `target_index`, `target_name`,
`target_literal`, `answer_start`, `label`.

```python
import numtok
from datasets import load_dataset

rows = load_dataset("FOLDER")
codec = numtok.Codec.load("FOLDER")  # scheme.json: texts to tokens, and back
```
"""


def write_dataset(artifact: Artifact, folder: Path) -> None:
    """Fill a folder: ``data/SPLIT-00000-of-00001.parquet`` and so on, as they are in the store,
    ``scheme.json``, ``tokenizer.json`` where there is one, and the card, ``README.md``.

    Splits of that library have no ``-`` in their names: ``ood-a1`` becomes ``ood_a1``.

    Raises StoreError for a file that is not as it was written, DataError for two splits that would
    have one name.
    """
    outputs = {output.path: output for output in artifact.files()}
    names = _names(artifact)
    files.system.mkdir(folder / "data")
    for split, shards in splits(artifact).items():
        for index, shard in enumerate(shards):
            to = f"{names[split]}-{index:05}-of-{len(shards):05}.parquet"
            _copy(artifact, outputs[shard.name], folder / "data" / to)
    for name in (SCHEME_FILE, TOKENIZER):
        if name in outputs:
            _copy(artifact, outputs[name], folder / name)
    files.write_atomic(folder / "README.md", _card(artifact, read_codec(artifact), names).encode())
    files.fsync_path(folder / "data")


def _names(artifact: Artifact) -> Mapping[str, str]:
    """Of each split, as ``datasets`` can have it."""
    names = {split: _NO_WORD.sub("_", split) for split in splits(artifact)}
    if len(set(names.values())) < len(names):
        raise DataError(
            f"two of the splits of {artifact.ref} ({', '.join(names)}) differ in - and _ alone, "
            "which datasets does not tell apart; encode with other names"
        )
    return names


def _copy(artifact: Artifact, output: Output, to: Path) -> None:
    """A file of an artifact, which must be what was written there."""
    path = artifact.path / output.path
    with files.open_regular(path) as source, files.Sink(to) as sink:
        while piece := source.read(_PIECE):
            sink.write(piece)
        if sink.sha256 != output.sha256:
            raise damaged(path, "its digest is another one")


def _card(artifact: Artifact, codec: Codec, names: Mapping[str, str]) -> str:
    counts = artifact.manifest.counts

    def lines(form: str) -> Iterator[str]:
        for split, name in names.items():
            yield form.format(name=name, rows=counts.get(f"rows_{split}", 0))

    renamed = [f"`{split}` is `{name}` here.\n" for split, name in names.items() if split != name]
    return _CARD.format(
        data_files="\n".join(lines("  - split: {name}\n    path: data/{name}-*.parquet")),
        name=artifact.name,
        rows=counts.get("rows", 0),
        numbers=counts.get("numbers", 0),
        tokens=counts.get("tokens", 0),
        version=__version__,
        scheme=title_of(codec.scheme),
        normalizer=spec_of(codec.normalizer.normalizer),
        text_tokenizer=spec_of(codec.text_tokenizer),
        vocabulary=codec.vocabulary_size,
        table="\n".join(lines("| {name} | {rows:,} |")),
        renamed="\n" + "\n".join(renamed) if renamed else "",
        ref=artifact.ref,
    )
