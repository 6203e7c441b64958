"""encode: turns texts with numbers into Parquet shards of tokens and numbers.

1. ``units.plan`` reads every byte once to compute digests and to divide the input into units of 64
   MiB. A scheme such as ``fone`` without settings is sized to the numbers (``number_sizes``).
2. ``fit_codec`` fits the codec on the train split. The codec is stored as ``scheme.json``.
3. ``encoding.unit`` writes one shard per split and a receipt for each unit. Units are independent,
   so they can be encoded in parallel, and an interrupted run continues with the remaining ones.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from numtok import files
from numtok.data.reading.batches import ReadingOptions
from numtok.data.reading.sources import check_rule, find_sources, shown_input
from numtok.data.reading.split_rule import SplitRule
from numtok.data.reading.streams import Spool
from numtok.data.reading.units import UNIT, Unit, least_units, plan
from numtok.data.records.row_template import of_texts, template_in
from numtok.encoding.codec import Codec
from numtok.encoding.fit_codec import FittedCodec, Reused, Unfitted, no_rows
from numtok.encoding.model_folder import TOKENIZER
from numtok.encoding.number_sizes import SizeUnit, is_sized, measure_sizes
from numtok.encoding.row_twins import TWINS, RowTwins
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.stored_codec import read_codec
from numtok.encoding.tokenizer_json import tokenizer_json
from numtok.encoding.unit import EncodeUnit, Screening, UnitFacts
from numtok.numerals.unread import SHOWN_SHAPES, UNREAD, UnreadDigits
from numtok.registry import name_of
from numtok.setting_versions import of_version
from numtok.setting_words import command_line
from numtok.settings.encode import Config as Config
from numtok.store.artifact import (
    ENCODED,
    MODEL,
    RECEIPTS,
    Artifact,
    Output,
    Parent,
    version_of,
    walk,
)
from numtok.store.draft import Draft
from numtok.store.engines.engine import Engine, engine_for
from numtok.store.engines.local import Workers
from numtok.store.quota import Quota
from numtok.store.receipts import write_receipt
from numtok.store.store import Store
from numtok.stored_json import Natural

REVISION = 1
_FIT = "fit"  # the unit of work that writes scheme.json


class _FitFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    columns: list[str]
    learnt_from: dict[str, Natural]


#: Called with the current work, the bytes of input done, their total, and the rows done.
Progress = Callable[[str, int, int, int], None]


@dataclass(frozen=True)
class EncodeEstimate:
    """Estimated size of the result, computed in a dry run from the first unit of the input."""

    input_bytes: int
    rows: int
    tokens: int
    bytes: int


@dataclass(frozen=True)
class Result:
    """Result of ``numtok encode``: the artifact, and whether it was newly made.

    After a dry run, either ``artifact`` (if it already exists) or ``estimate`` is set. ``texts``
    are the first rows that were rendered from records, also after a dry run.
    """

    ref: str
    artifact: Artifact | None
    made: bool
    estimate: EncodeEstimate | None = None
    texts: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class ResolvedEncoding:
    """The settings for one run of ``encode``, and the objects built from them.

    config
        The settings as passed, except that ``like`` is pinned to an exact version.
    sized
        True if the size of the scheme is determined by the numbers in the input.
    parents
        The artifact whose encoding is reused; empty if a new encoding is fitted.
    """

    config: Config
    encoding: Unfitted | Reused
    sized: bool
    parents: Sequence[Parent]
    screening: Screening
    quota: Quota

    def settings(self, units: Sequence[Unit]) -> dict[str, Any]:
        """Return the settings that determine the artifact's version, together with the content of
        the input."""
        inputs = {part.file: part for unit in units for part in unit.parts}.values()
        return {
            "stage": "encode",
            "revision": REVISION,
            "encoding": self.encoding.settings(),
            "file_formats": [part.format for part in inputs],
            "file_splits": [part.split for part in inputs],
            **self.screening.split_settings,
            **of_version(self.config),
        }


def resolve(config: Config, store: Store) -> ResolvedEncoding:
    """Build every part that the settings name. Raises UsageError if one cannot be built."""
    parents, sized = [], False
    if config.like is not None:
        artifact = store.resolve(config.like, kinds={ENCODED, MODEL})
        encoding: Unfitted | Reused = Reused(read_codec(artifact))
        parents = [artifact.as_parent()]
        if store.find(artifact.kind, artifact.name, artifact.version):
            # A name without a version may refer to a newer artifact later.
            config = replace(config, like=f"{artifact.kind}/{artifact.ref}")
    else:
        assert config.scheme is not None
        encoding = Unfitted.of(
            scheme_of(config.scheme),
            numerals=config.numerals,
            not_numbers=config.not_numbers,
            normalize=config.normalize,
            text_tokenizer=config.text_tokenizer,
        )
        sized = is_sized(config.scheme)
    return ResolvedEncoding(
        config=config,
        encoding=encoding,
        sized=sized,
        parents=parents,
        screening=Screening.of(config),
        quota=Quota.parse(config.disk_limit),
    )


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Encode the inputs into an artifact, or return the existing one.

    If the run is interrupted, finished units stay in the draft, and the same call resumes with the
    remaining ones. Raises UsageError, DataError (with file, line and cause) and StoreError.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        resolved, texts = _as_texts(resolve(config, store), store, stack)
        config = resolved.config
        longest = None if resolved.screening.skip else config.max_line
        spool = Spool(lambda: stack.enter_context(store.spool()), resolved.quota, longest)
        sources, stem = find_sources(config.inputs, store.resolve, store.note, spool)
        check_rule(resolved.screening.rule, sources)
        total = sum(source.size for source in sources)
        workers = stack.enter_context(
            engine_for(config.engine, total, config.workers, 2 * UNIT, store.spool)
        )
        if not config.dry_run:
            workers.start(EncodeUnit, least_units(sources))
        units, parents = plan(
            sources, lambda done, total: progress("reading", done, total, 0), workers
        )
        parents += resolved.parents
        resolved = _suited(resolved, units, workers, progress)
        settings = resolved.settings(units)
        name = config.name or f"{stem}-{name_of(resolved.encoding.scheme)}"
        if config.dry_run:
            version = version_of(ENCODED, settings, parents)
            existing = store.find(ENCODED, name, version)
            folder = stack.enter_context(store.spool())
            estimate = None if existing else _estimate(folder, units, resolved)
            return Result(f"{name}@{version}", existing, False, estimate, texts)
        shown = tuple(map(shown_input, config.inputs))
        repeated = replace(resolved.config, inputs=shown, name=name)
        command = ["numtok", "encode", *command_line(repeated)]
        opening = store.draft(ENCODED, name, settings, parents=parents, command=command, how=config)
        with opening as draft, workers:  # workers end before the draft is released
            if isinstance(draft, Artifact):
                _note_empty_splits(draft, resolved.screening.rule, store)
                return Result(draft.ref, draft, made=False)
            job = _Job(
                draft=draft, units=units, resolved=resolved, workers=workers, progress=progress
            )
            counts, unread = job.encode(job.fit())
            timing = {
                "seconds": time.monotonic() - started,
                "input_bytes": total,
                "workers": workers.count,
            }
            facts = {UNREAD: msgspec.to_builtins(unread)} if unread.unread else None
            artifact = draft.publish(counts, timing, facts)
            _note_empty_splits(artifact, resolved.screening.rule, store)
            return Result(artifact.ref, artifact, made=True)


def _note_empty_splits(artifact: Artifact, rule: SplitRule | None, store: Store) -> None:
    filled = [key.removeprefix("rows_") for key in artifact.manifest.counts]
    if rule is not None and (note := rule.empty_note(filled)):
        store.note(note)


def _as_texts(
    resolved: ResolvedEncoding, store: Store, stack: ExitStack
) -> tuple[ResolvedEncoding, list[str]]:
    """Render the input if it is a file of records, and return settings whose input is texts, with
    the texts of the first rows.

    Rows are rendered if a target is chosen, or if the reused encoding is that of rendered rows.
    """
    config, encoding = resolved.config, resolved.encoding
    template = encoding.codec.template if isinstance(encoding, Reused) else None
    if config.target or template is not None:
        from numtok.data.records import rendering  # imports libraries that texts do not need

        if config.target or rendering.is_records(config.inputs):
            if config.dry_run:  # nothing is kept in the user's store
                store = stack.enter_context(store.scratch())
            if isinstance(encoding, Unfitted):
                rendering.check_decimals(encoding.policy)
            config, result = rendering.as_texts(config, store, template)
            if isinstance(encoding, Unfitted):
                encoding = replace(encoding, template=result.template)
            reading = ReadingOptions(max_line=config.max_line)
            screening = replace(resolved.screening, rule=None, reading=reading)
            texts = replace(resolved, config=config, encoding=encoding, screening=screening)
            return texts, result.first_texts()
    stored = template_in(config.inputs, store)
    if isinstance(encoding, Unfitted) and stored is not None:
        return replace(resolved, encoding=replace(encoding, template=stored)), []
    return replace(resolved, config=of_texts(config)), []


def _suited(
    resolved: ResolvedEncoding, units: Sequence[Unit], workers: Engine, progress: Progress
) -> ResolvedEncoding:
    """Size the scheme to the numbers of the input, unless its settings are given."""
    if not (resolved.sized and isinstance(resolved.encoding, Unfitted)):
        return resolved
    total = sum(unit.size for unit in units)
    sizes = measure_sizes(
        SizeUnit(resolved.screening, resolved.encoding.policy),
        units,
        workers,
        lambda done: progress("measuring", done, total, 0),
    )
    return replace(resolved, encoding=resolved.encoding.suited(sizes))


@dataclass(frozen=True, kw_only=True)
class _Job:
    """The work of one run in its draft."""

    draft: Draft
    units: Sequence[Unit]
    resolved: ResolvedEncoding
    workers: Engine
    progress: Progress

    def fit(self) -> FittedCodec:
        """Return the codec and the columns seen so far, from an earlier run of this draft or fitted
        now.
        """
        receipt = self.draft.receipt(
            _FIT, input=self._whole, settings=self.draft.version, facts=_FitFacts
        )
        if receipt is not None:
            codec = Codec.read(self.draft.path / SCHEME_FILE)
            return FittedCodec(codec, receipt.facts.columns, receipt.facts.learnt_from)
        self.progress("fitting", 0, 0, 0)
        fit = self.resolved.encoding.fit(
            self.units, self.resolved.screening, self.workers, self._advance
        )
        self._keep(fit)
        return fit

    @property
    def _whole(self) -> str:
        """Digest of the whole input."""
        return _digest([unit.input for unit in self.units])

    def _keep(self, fit: FittedCodec) -> None:
        """Store the codec and columns of the units, for a run that resumes this one."""
        write_receipt(
            self.draft.path,
            _FIT,
            input=self._whole,
            settings=self.draft.version,
            outputs=_write_codec(self.draft.path, fit.codec),
            facts=_FitFacts(fit.columns, fit.learnt_from),
        )

    def encode(self, fit: FittedCodec) -> tuple[dict[str, int], UnreadDigits]:
        """Encode every unit without a receipt; return the counts of all, and the digits not read.

        All shards have a column for every group and baseline. If a column first appears late, units
        are encoded again with it, so the result does not depend on where it appeared.
        """
        codec, more, learnt_from = fit
        while True:
            facts = self._encode_with(codec, more)
            unseen = {name for fact in facts for name in fact.unseen_columns}
            if not unseen:
                break
            more = sorted({*more, *unseen})
            self._keep(FittedCodec(codec, more, learnt_from))
        unread = UnreadDigits()
        counts = Counter({"rows": 0, "numbers": 0, "tokens": 0, "rejected": 0})
        for fact in facts:
            counts.update(numbers=fact.numbers, tokens=fact.tokens, rejected=fact.rejected)
            counts.update({f"rows_{split}": rows for split, rows in fact.rows.items()})
            counts.update(fact.outcomes, rows=sum(fact.rows.values()))
            unread.merge(fact.unread)
        if not counts["rows"]:
            raise no_rows(counts["rejected"])
        twins = RowTwins()
        twins.merge(fact.twins for fact in facts)
        for split, (repeated, compared) in twins.counts().items():
            counts[f"{TWINS}{split}"] = round(repeated / compared * counts[f"rows_{split}"])
        every = dict(counts) | {"vocabulary": codec.vocabulary_size} | learnt_from
        return every, unread.commonest(SHOWN_SHAPES)

    def _encode_with(self, codec: Codec, more: list[str]) -> list[UnitFacts]:
        settings = _digest([self.draft.version, codec.digest, more])
        work = EncodeUnit(
            draft=self.draft.path,
            screening=self.resolved.screening,
            more=tuple(more),
            stop_at_clip=self.resolved.config.on_clip == "error",
            settings=settings,
        )
        advance = self._advance("encoding")
        facts: list[UnitFacts] = []
        left: list[Unit] = []
        for unit in self.units:
            receipt = self.draft.receipt(
                work.receipt_of(unit), input=unit.input, settings=settings, facts=UnitFacts
            )
            if receipt is None:
                left.append(unit)
            else:
                facts.append(receipt.facts)
                advance(unit.size, sum(receipt.facts.rows.values()))
        for unit_index, fact in self.workers.run(work, left):
            facts.append(fact)
            advance(self.units[unit_index].size, sum(fact.rows.values()))
        return facts

    def _advance(self, what: str) -> Callable[[int, int], None]:
        """Return a function that reports progress, called with the bytes and rows of each finished
        unit.
        """
        done = rows_done = 0
        total = sum(unit.size for unit in self.units)

        def advance(size: int, rows: int) -> None:
            nonlocal done, rows_done
            done += size
            rows_done += rows
            self.progress(what, done, total, rows_done)

        return advance


def _digest(content: list[Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def _estimate(folder: Path, units: Sequence[Unit], resolved: ResolvedEncoding) -> EncodeEstimate:
    """Estimate the result by encoding the first unit into a temporary folder."""
    screening = resolved.screening
    codec, more, _ = resolved.encoding.fit(
        units[:1], screening, Workers(1), lambda what: lambda size, rows: None
    )
    files.system.mkdir(folder / RECEIPTS)
    fixed = sum(output.bytes for output in _write_codec(folder, codec))
    work = EncodeUnit(
        draft=folder, screening=screening, more=tuple(more), stop_at_clip=False, settings=""
    )
    _, facts = work(units[0])
    shards = sum((folder / path).stat().st_size for path, _ in walk(folder)) - fixed
    total = sum(unit.size for unit in units)
    share = total / units[0].size
    rows = sum(facts.rows.values())
    return EncodeEstimate(
        total, round(rows * share), round(facts.tokens * share), round(fixed + shards * share)
    )


def _write_codec(folder: Path, codec: Codec) -> list[Output]:
    """Write ``scheme.json``, and ``tokenizer.json`` if there is one."""
    contents = {SCHEME_FILE: codec.to_json(), TOKENIZER: tokenizer_json(codec)}
    outputs = []
    for name, content in contents.items():
        if content is not None:
            with files.Sink(folder / name) as sink:
                sink.write(content)
            outputs.append(Output(name, sink.bytes, sink.sha256))
    return outputs
