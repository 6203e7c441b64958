"""features: makes a table from texts: the hidden states of a frozen pretrained model.

1. The inputs are read once to compute digests, and once to check targets and splits.
2. The model runs over blocks of rows. Each block is a file with a receipt, so an interrupted run
   resumes with the remaining blocks.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from numtok.data.reading.sources import as_name, check_rule, find_sources, shown_input
from numtok.data.reading.streams import Spool
from numtok.data.reading.units import Unit, plan
from numtok.data.records import rendering
from numtok.data.records.row_template import RowTemplate, of_texts, template_in
from numtok.data.tables.columns import count_splits, target_column
from numtok.data.tables.table import Feature, TableFile, rows_name, write_rows, write_table_file
from numtok.data.tables.text_features import TextFeatures, write_text_features
from numtok.encoding.target_texts import TargetTexts, only_target, target_texts
from numtok.encoding.unit import Screening
from numtok.errors import UsageError
from numtok.evaluation.text_states import text_states
from numtok.files import Sink
from numtok.models.pretrained.frozen import FrozenModel, FrozenSource
from numtok.names import counted
from numtok.numerals.policy import NumeralPolicy
from numtok.row import TEXT
from numtok.setting_scope import refuse
from numtok.setting_versions import of_version
from numtok.setting_words import command_line
from numtok.settings.features import Config as Config
from numtok.store.artifact import TABLE, Artifact, MadeArtifact, Output, Parent
from numtok.store.draft import Draft
from numtok.store.engines.local import Workers
from numtok.store.quota import Quota
from numtok.store.receipts import write_receipt
from numtok.store.store import Store
from numtok.stored_json import Natural
from numtok.training.device import device_of

REVISION = 1
_BLOCK = 1024  # rows per receipt
_SPLIT = "split"  # name of the column

#: Called with the activity, the number of rows done, and the total number of rows.
Progress = Callable[[str, int, int], None]


class _BlockFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cut: Natural


class _Rows(NamedTuple):
    """Targets [n] and splits [n] of all rows, and the number of skipped rows."""

    targets: "pa.Array[Any]"
    splits: "pa.Array[Any]"
    skipped: int


def run(config: Config, store: Store, progress: Progress) -> MadeArtifact:
    """Compute the features of texts as a table artifact, or return the existing one.

    If the run is interrupted, finished blocks stay in the draft, and the same call resumes with the
    remaining ones. Raises UsageError, DataError (with file, line and cause), StoreError, and
    TrainingFailed (out of memory).
    """
    started = time.monotonic()
    if config.target is not None and rendering.has_target(config.inputs, config.target):
        rendering.check_decimals(NumeralPolicy.parse(config.numerals or "default"))
        config, _ = rendering.as_texts(config, store)
    else:
        refuse(config, ("fields", "drop"), "rows that are texts")
        config = of_texts(config)
    source = FrozenSource.of(config.model)
    digest, size = source.digest()
    screening = Screening.of(config)
    with store.spool() as folder:
        spool = Spool(lambda: folder, Quota.parse(config.disk_limit), config.max_line)
        sources, stem = find_sources(config.inputs, store.resolve, store.note, spool)
        check_rule(screening.rule, sources)
        units, parents = plan(sources, lambda done, total: None, Workers(1))
        settings = {
            "stage": "features",
            "revision": REVISION,
            **screening.split_settings,
            "file_splits": [source.split for source in sources],
            **of_version(config),
        }
        parents.append(Parent("file", config.model, digest, size))
        name = config.name or f"{stem}-{as_name(source.stem)}"
        shown = tuple(map(shown_input, config.inputs))
        command = ["numtok", "features", *command_line(replace(config, inputs=shown, name=name))]
        opening = store.draft(TABLE, name, settings, parents=parents, command=command, how=config)
        with opening as draft:
            if isinstance(draft, Artifact):
                return MadeArtifact(draft, made=False)
            table = _FeatureTable(
                config=config,
                units=units,
                screening=screening,
                where=sources[0].shown,
                source=source,
                digest=digest,
                template=template_in(config.inputs, store),
                draft=draft,
                note=store.note,
            )
            counts = table.make(progress)
            timing = {"seconds": time.monotonic() - started}
            return MadeArtifact(draft.publish(counts, timing), made=True)


@dataclass(frozen=True, kw_only=True)
class _FeatureTable:
    """A table to make: its rows, and the pretrained model with its digest."""

    config: Config
    units: Sequence[Unit]
    screening: Screening
    where: str
    source: FrozenSource
    digest: str
    template: RowTemplate | None
    draft: Draft
    note: Callable[[str], None]

    def make(self, progress: Progress) -> dict[str, int]:
        """Write the files of the table, and return the counts for its manifest."""
        config = self.config
        target = config.target or only_target(self.units, self.screening)
        rows = _read(self.where, target, self._texts(target, causal=True))
        splits, notes = count_splits(self.where, _SPLIT, rows.splits)
        model = self.source.load(config.pooling, device_of(config.device))
        file = _table_file(target, model.width)
        cut = done = 0
        for index, block in enumerate(_blocks(self._texts(target, causal=model.causal))):
            cut += self._write(index, block, model, file)
            done += len(block.texts)
            progress("features", done, len(rows.targets))
        recipe = TextFeatures(
            model=config.model,
            sha256=self.digest,
            quantized=self.source.quantized(),
            pooling=model.pooling,
            causal=model.causal,
            width=model.width,
            target=target,
            text_field=config.text_field or TEXT,
            template=self.template,
        )
        notes += _notes(recipe, rows, cut)
        write_table_file(self.draft.path, msgspec.structs.replace(file, notes=notes))
        write_text_features(self.draft.path, recipe)
        counts = {"rows": len(rows.targets), "features": model.width}
        return counts | {f"rows_{split}": splits[split] for split in sorted(splits)}

    def _texts(self, target: str, *, causal: bool) -> Iterator[TargetTexts]:
        policy = NumeralPolicy.parse(self.config.numerals or "default")
        return target_texts(self.units, self.screening, policy, target, causal=causal)

    def _write(self, index: int, block: TargetTexts, model: FrozenModel, file: TableFile) -> int:
        """Write a block unless it has a receipt; return the number of texts that were cut."""
        unit, settings = f"{index:05d}", self.draft.version
        receipt = self.draft.receipt(unit, input=unit, settings=settings, facts=_BlockFacts)
        if receipt is not None:
            return receipt.facts.cut
        states, cut = text_states(model, block.texts, self.config.batch, self.note)
        columns = [*map(pa.array, states.T.astype(np.float64)), pa.array(block.values)]
        columns.append(pa.array(block.splits, pa.string()))
        with Sink(self.draft.path / rows_name(index)) as sink:
            write_rows(sink, pa.Table.from_arrays(columns, schema=file.schema))
        write_receipt(
            self.draft.path,
            unit,
            input=unit,
            settings=settings,
            outputs=[Output(rows_name(index), sink.bytes, sink.sha256)],
            facts=_BlockFacts(cut),
        )
        return cut


def _read(where: str, target: str, batches: Iterator[TargetTexts]) -> _Rows:
    """Read the targets and splits of all rows. Raises DataError if the targets cannot be those of a
    table."""
    values, splits, skipped = [np.empty(0)], [], 0
    for batch in batches:
        values.append(batch.values)
        splits += batch.splits
        skipped += batch.skipped
    column = pa.chunked_array([pa.array(np.concatenate(values))])
    targets = target_column(where, target, column, may_skip=False)
    return _Rows(targets, pa.array(splits, pa.string()), skipped)


def _table_file(target: str, width: int) -> TableFile:
    """Return the description of the table. Raises UsageError if a feature has the target's name."""
    features = [Feature(f"h{index}", "number") for index in range(width)]
    if target in (_SPLIT, *(feature.name for feature in features)):
        raise UsageError(
            f"the target cannot be named {target!r}, which is a column of features. Rename it"
        )
    return TableFile(target=target, features=features, splits=[_SPLIT], notes=[])


def _notes(recipe: TextFeatures, rows: _Rows, cut: int) -> Iterator[str]:
    if rows.skipped:
        yield f"skipped {rows.skipped:,} bad rows"
    if recipe.quantized is not None:
        yield f"the weights of {recipe.model} are dequantized from {recipe.quantized}"
    if cut:
        lost = "beginning" if recipe.pooling == "last" else "end"
        yield f"cut the {lost} of {counted(cut, 'text')}, to fit the model's context"


def _blocks(batches: Iterator[TargetTexts]) -> Iterator[TargetTexts]:
    """Divide rows into blocks of ``_BLOCK`` rows; the last one may be shorter."""
    waiting = TargetTexts([], np.empty(0), [], 0)
    for batch in batches:
        values = np.concatenate([waiting.values, batch.values])
        texts, splits = waiting.texts + batch.texts, waiting.splits + batch.splits
        waiting = TargetTexts(texts, values, splits, 0)
        while len(waiting.texts) >= _BLOCK:
            yield _part(waiting, slice(_BLOCK))
            waiting = _part(waiting, slice(_BLOCK, None))
    if waiting.texts:
        yield waiting


def _part(rows: TargetTexts, part: slice) -> TargetTexts:
    return TargetTexts(rows.texts[part], rows.values[part], rows.splits[part], 0)
