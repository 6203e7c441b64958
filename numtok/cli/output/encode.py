"""Prints the result of ``numtok encode``: the REF on stdout, a table on stderr."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from numtok.cli.output.figures import duration, number, share
from numtok.cli.output.printing import Format, Rows, Size, print_dry_run, print_made, rows_by_split
from numtok.data.reading.split_rule import TRAIN
from numtok.declaration import settings_in
from numtok.encoding.codec import Codec
from numtok.encoding.row_twins import TWINS, twins_note
from numtok.encoding.schema import INEXACT, TRUNCATED
from numtok.encoding.schemes.base import Scheme, is_exact, title_of
from numtok.encoding.stored_codec import read_codec
from numtok.numerals.literals import MOST_DIGITS
from numtok.numerals.unread import UNREAD, UnreadDigits
from numtok.registry import spec_of
from numtok.stages.encode import Result
from numtok.store.artifact import Artifact
from numtok.stored_json import Natural

_PLAIN = ("rows", "numbers", "tokens", "vocabulary", "rejected")
_LOSSES = ("_overflow", "_underflow")


class _EncodeCounts(msgspec.Struct, kw_only=True):
    """Counts of an encoded artifact that are read by name."""

    rows: Natural
    numbers: Natural
    tokens: Natural
    vocabulary: Natural
    rejected: Natural
    truncated: Natural = msgspec.field(name=TRUNCATED, default=0)
    inexact: Natural = msgspec.field(name=INEXACT, default=0)


class _EncodeFacts(msgspec.Struct):
    unread: UnreadDigits = msgspec.field(name=UNREAD, default_factory=UnreadDigits)


class _EncodeTiming(msgspec.Struct):
    seconds: Annotated[float, msgspec.Meta(gt=0)]
    input_bytes: Natural


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print the result of ``numtok encode``. In formats other than ``table``, everything is printed
    on stdout."""
    if result.estimate is not None:
        estimate = result.estimate
        about: Rows = [
            ("input size", Size(estimate.input_bytes)),
            ("rows (estimate)", estimate.rows),
            ("tokens (estimate)", estimate.tokens),
            ("size (estimate)", Size(estimate.bytes)),
        ]
        print_dry_run(result.ref, about, format, result.texts)
        return
    assert result.artifact is not None
    codec = read_codec(result.artifact)
    scheme, normalizer = title_of(codec.scheme), _normalizer(codec)
    unread = result.artifact.facts(_EncodeFacts).unread
    print_made(
        result.artifact,
        f"encoded with {scheme}" if result.made else f"already encoded with {scheme}",
        _rows(result.artifact, result.made) + [("normalization", normalizer)] * bool(normalizer),
        made=result.made,
        format=format,
        quiet=quiet,
        notes=list(_notes(result.artifact, codec, unread)),
        more={UNREAD: msgspec.to_builtins(unread)},
    )


def _notes(artifact: Artifact, codec: Codec, unread: UnreadDigits) -> Iterator[str]:
    every, counts = artifact.manifest.counts, artifact.counts(_EncodeCounts)
    if every.get(f"rows_{TRAIN}") == counts.rows:
        yield f"all rows are {TRAIN} rows. To evaluate models: --split validation=0.1,test=0.1"
    for key, twins in sorted(every.items()):
        if key.startswith(TWINS):
            split = key.removeprefix(TWINS)
            yield twins_note(split, twins, every[f"rows_{split}"])
    if any(key.endswith(_LOSSES) for key in every):
        yield "lost numbers are listed in clipped/clipped-*.parquet"
    if counts.truncated:
        limit = codec.scheme.defaults.embedder_digits
        yield f"some numbers have more than {limit} digits; some embedders ignore the rest"
    if counts.inexact:
        lost = (
            f"{counts.inexact:,} of {counts.numbers:,} numbers "
            f"({share(counts.inexact / max(1, counts.numbers))}) are rounded"
        )
        if codec.keeps_literals:
            yield f"{lost} to about 16 digits in the column `numbers`; the tokens keep all digits"
        else:
            yield f"{lost}: {_held_digits(codec.scheme)}"
    if note := unread.note():
        yield note
    if counts.rejected:
        yield f"rejected rows are in {artifact.path}/rejected/rejected-*.jsonl"


def _held_digits(scheme: Scheme) -> str:
    """Return a phrase on the digits that the value channel keeps."""
    if "decimals" in settings_in(type(scheme)):
        decimals = scheme.decimals  # type: ignore[attr-defined]
        return f"{decimals} decimals are kept. Set decimals=N (at most {MOST_DIGITS} digits in all)"
    if is_exact(scheme):
        return "float64 keeps about 16 digits. To keep all digits: --scheme digits"
    return "float32 keeps about 7 digits. For about 16 digits: --scheme bits"


def _normalizer(codec: Codec) -> str:
    """Return the normalizer with its constants, or "" for the identity."""
    normalizer = codec.normalizer
    constants = ", ".join(f"{name} {number(value)}" for name, value in normalizer.constants.items())
    spec = "" if normalizer.normalizer.identity else spec_of(normalizer.normalizer)
    return f"{spec} ({constants})" if constants else spec


def _rows(artifact: Artifact, made: bool) -> Rows:
    manifest, counts = artifact.manifest, artifact.counts(_EncodeCounts)
    rows: Rows = [
        ("rows", counts.rows),
        *rows_by_split(manifest.counts),
        ("numbers", counts.numbers),
        ("tokens", counts.tokens),
        ("tokens per row", f"{counts.tokens / max(1, counts.rows):,.1f}"),
        ("vocabulary", counts.vocabulary),
    ]
    for key, count in sorted(manifest.counts.items()):
        if key not in _PLAIN and not key.startswith(("rows_", TWINS)):
            lost = "lost: " if key.endswith(_LOSSES) else ""
            words = "rounded numbers" if key == INEXACT else key.replace("_", " ")
            rows.append((lost + words, count))
    if counts.rejected:
        rows.append(("rejected rows", counts.rejected))
    rows.append(("size", Size(manifest.bytes)))
    if made:
        timing = artifact.timing(_EncodeTiming)
        rows.append(("time", duration(timing.seconds)))
        rows.append(("speed", f"{Size(timing.input_bytes / timing.seconds)}/s"))
    return rows
