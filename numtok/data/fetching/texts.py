"""Texts of a public data set as they are read -> one JSONL file a split."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from numtok.data.reading.split_rule import TRAIN, SplitRule
from numtok.data.sources.base import Note, RejectedSourceRow, TextRow
from numtok.errors import DataError
from numtok.files import PIECE, Sink
from numtok.store.quota import Quota

_NAMED = 20  # rejected rows


class FetchedTexts(NamedTuple):
    """What was counted, why the first of the rejected rows were rejected, and what the source
    tells besides."""

    counts: dict[str, int]
    rejected: list[str]
    notes: list[str]


def write_texts(
    folder: Path,
    rows: Iterable[TextRow | RejectedSourceRow | Note],
    rule: SplitRule | None,
    skips: bool,
    quota: Quota,
    progress: Callable[[int, int], None],
) -> FetchedTexts:
    """Write rows to ``SPLIT-00000.jsonl``, some of them in memory at a time.

    Their split is that of the rule, or their own. Raises DataError for the first row that cannot be
    used, unless these are skipped, and where no row is left; UsageError for more than the quota
    allows.
    """
    counts = Counter[str]()
    rejected: list[str] = []
    notes: list[str] = []
    encode = msgspec.json.Encoder().encode
    sinks: dict[str, Sink] = {}
    held: dict[str, bytearray] = {}
    with ExitStack() as stack:
        for found in rows:
            if isinstance(found, Note):
                notes.append(found.told)
                continue
            if isinstance(found, RejectedSourceRow):
                if not skips:
                    raise DataError(f"{found.why}; --on-error skip leaves such rows out")
                counts["rejected"] += 1
                rejected += [found.why] if len(rejected) < _NAMED else []
                continue
            alike = str(found.row.id) if found.alike is None else found.alike
            split = rule.split_of(alike) if rule else found.row.split or TRAIN
            if split not in sinks:
                sinks[split] = stack.enter_context(Sink(folder / f"{split}-00000.jsonl"))
                held[split] = bytearray()
            held[split] += encode(_members(found)) + b"\n"
            counts["rows"] += 1
            counts[f"rows_{split}"] += 1
            counts.update(found.noted)
            if len(held[split]) >= PIECE:
                sinks[split].write(held[split])
                held[split] = bytearray()
                done = sum(sink.bytes for sink in sinks.values())
                quota.check("what is unpacked", folder, done, 0)
                progress(done, 0)
        for split, sink in sinks.items():
            sink.write(held[split])
    if not counts["rows"]:
        raise DataError("there is no row in the files; give others, or leave --from out")
    return FetchedTexts(dict(counts), rejected, notes)


def _members(found: TextRow) -> dict[str, Any]:
    """A row without what it does not say; its split is the file's name."""
    members = msgspec.structs.asdict(found.row).items()
    return {
        **{key: one for key, one in members if one not in (None, UNSET) and key != "split"},
        **found.more,
    }
