"""dataset_folder: exports encoded data as a folder for ``datasets.load_dataset``, with shards,
codec and dataset card."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from numtok import files
from numtok.encoding.codec import Codec
from numtok.encoding.model_folder import TOKENIZER
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import splits
from numtok.encoding.stored_codec import read_codec
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

{rows:,} rows with {numbers:,} numbers, encoded by numtok {version}. Scheme: `{scheme}`. Normalizer:
`{normalizer}`. Text tokenizer: `{text_tokenizer}`. {tokens:,} tokens; vocabulary of {vocabulary:,}.

| split | rows |
|---|---|
{table}
{renamed}
Version: `{ref}`.

Columns:

- `text`: the text, with each number replaced by `[NUM]`
- `numbers`: all numbers as float64
- `tokens`: token ids
- `number_start`, `number_length`: position and length of each number in `tokens`
- `channel`: value next to the tokens of each number, if the scheme has a value channel
- `target_index`, `target_name`, `target_literal`, `answer_start`, `label`: what to predict

```python
import numtok
from datasets import load_dataset

rows = load_dataset("FOLDER")
codec = numtok.Codec.load("FOLDER")  # scheme.json: texts to tokens, and back
```
"""


def write_dataset(artifact: Artifact, folder: Path) -> None:
    """Export an encoded artifact to a folder that ``datasets.load_dataset`` can read.

    The folder will contain the unchanged shards as ``data/SPLIT-00000-of-00001.parquet``,
    ``scheme.json``, ``tokenizer.json`` if the artifact has one, and the dataset card ``README.md``.
    The ``datasets`` library does not allow ``-`` in split names, so ``ood-a1`` becomes ``ood_a1``.

    Raises StoreError if a file is damaged, and DataError if two splits would get the same name.
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
    """Return the name of each split that is valid in ``datasets``."""
    names = {split: _NO_WORD.sub("_", split) for split in splits(artifact)}
    if len(set(names.values())) < len(names):
        raise DataError(
            f"splits of {artifact.ref} differ only in - and _ ({', '.join(names)}), which datasets "
            "does not distinguish. Encode with other names"
        )
    return names


def _copy(artifact: Artifact, output: Output, to: Path) -> None:
    """Copy a file of an artifact, checking its digest."""
    path = artifact.path / output.path
    with files.open_regular(path) as source, files.Sink(to) as sink:
        while piece := source.read(_PIECE):
            sink.write(piece)
        if sink.sha256 != output.sha256:
            raise damaged(path, "its digest does not match")


def _card(artifact: Artifact, codec: Codec, names: Mapping[str, str]) -> str:
    counts = artifact.manifest.counts

    def lines(form: str) -> Iterator[str]:
        for split, name in names.items():
            yield form.format(name=name, rows=counts.get(f"rows_{split}", 0))

    renamed = [f"`{split}` is named `{name}`.\n" for split, name in names.items() if split != name]
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
