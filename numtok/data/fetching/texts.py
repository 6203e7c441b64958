"""Write the texts of a public data set to one JSONL file per split."""

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

_NAMED = 20  # maximum number of rejected rows that are reported


class FetchedTexts(NamedTuple):
    """Result of :func:`write_texts`.

    counts
        Number of rows, in total and per split, and other counts.
    rejected
        Locations of the first rejected rows, each with a reason.
    notes
        Notes from the source for users of the data.
    """

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
    """Write rows to one file ``SPLIT-00000.jsonl`` per split, as they arrive.

    ``rule`` determines the splits; without a rule, each row goes to the split that it names, by
    default train. Raises DataError at the first bad row unless ``skips`` is true, and also if no
    row is left.
    Raises UsageError if the quota is exceeded.
    """
    counts = Counter[str]()
    rejected: list[str] = []
    notes: list[str] = []
    encode = msgspec.json.Encoder().encode
    sinks: dict[str, Sink] = {}
    held: dict[str, bytearray] = {}
    with ExitStack() as stack:
        for item in rows:
            if isinstance(item, Note):
                notes.append(item.text)
                continue
            if isinstance(item, RejectedSourceRow):
                if not skips:
                    raise DataError(f"{item.why}. Skip bad rows: --on-error skip")
                counts["rejected"] += 1
                rejected += [item.why] if len(rejected) < _NAMED else []
                continue
            alike = str(item.row.id) if item.alike is None else item.alike
            split = rule.split_of(alike) if rule else item.row.split or TRAIN
            if split not in sinks:
                sinks[split] = stack.enter_context(Sink(folder / f"{split}-00000.jsonl"))
                held[split] = bytearray()
            held[split] += encode(_members(item)) + b"\n"
            counts["rows"] += 1
            counts[f"rows_{split}"] += 1
            counts.update(item.noted)
            if len(held[split]) >= PIECE:
                sinks[split].write(held[split])
                held[split] = bytearray()
                done = sum(sink.bytes for sink in sinks.values())
                quota.check("the unpacked data", folder, done, 0)
                progress(done, 0)
        for split, sink in sinks.items():
            sink.write(held[split])
    if not counts["rows"]:
        raise DataError("the files have no rows. Pass other files, or omit --from to download them")
    return FetchedTexts(dict(counts), rejected, notes)


def _members(text_row: TextRow) -> dict[str, Any]:
    """Return the fields of a row that are set, without its split, which is the file's name."""
    members = msgspec.structs.asdict(text_row.row).items()
    return {
        **{key: value for key, value in members if value not in (None, UNSET) and key != "split"},
        **text_row.more,
    }
