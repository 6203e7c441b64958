"""What ``numtok encode`` prints: the REF on stdout, the table for people on stderr."""

from typing import Annotated

import msgspec

from numtok import files
from numtok.cli.output.figures import share
from numtok.cli.output.printing import (
    Format,
    Size,
    print_dry_run,
    print_made,
    print_made_json,
    rows_by_split,
)
from numtok.encoding.codec import Codec
from numtok.encoding.row_twins import TWINS, twins_note
from numtok.numerals.unread import UnreadDigits
from numtok.records import INEXACT, SCHEME_FILE, TRUNCATED, UNREAD, Natural
from numtok.registry import spec_of
from numtok.stages.encode import EncodeEstimate, Result
from numtok.store.artifact import Artifact

_PLAIN = ("rows", "numbers", "tokens", "vocabulary", "rejected")
_LOSSES = ("_overflow", "_underflow")


class _EncodeCounts(msgspec.Struct, kw_only=True):
    """Those that are always there, and those that are looked for by name."""

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
    """Print one run; with a format other than the table, that on stdout instead of the REF."""
    if result.estimate is not None:
        _print_estimate(result.ref, result.estimate, format)
        return
    assert result.artifact is not None
    every = result.artifact.manifest.counts
    unread = result.artifact.facts(_EncodeFacts).unread
    if format is Format.JSON:
        print_made_json(result.artifact, result.made, **{UNREAD: msgspec.to_builtins(unread)})
        return
    counts = result.artifact.counts(_EncodeCounts)
    codec = Codec.read(result.artifact.path / SCHEME_FILE)
    scheme, normalizer = codec.scheme.title, _normalizer(codec)
    title = f"encoded with {scheme}" if result.made else f"found, not made again: {scheme}"
    rows = _rows(result.artifact, result.made)
    if normalizer:
        rows.append(("normalised", normalizer))
    notes = [
        twins_note(split := key.removeprefix(TWINS), twins, every[f"rows_{split}"])
        for key, twins in sorted(every.items())
        if key.startswith(TWINS)
    ]
    if any(key.endswith(_LOSSES) for key in every):
        notes.append(
            f"every lost number is listed in {_beside(result.artifact, 'clipped')}.parquet"
        )
    if counts.truncated:
        notes.append(
            f"numbers beyond sight have more than {codec.scheme.max_digits}: not all embedders see "
            "further"
        )
    if counts.inexact:
        lost = share(counts.inexact / max(1, counts.numbers))
        remedy = f"{codec.scheme.held_digits}; --scheme digits keeps all"
        if codec.keeps_literals:
            remedy = "the column `numbers` is float64 (about 16 digits). The tokens keep all digits"
        notes.append(f"{lost} of the numbers are inexact: {remedy}")
    if note := unread.note():
        notes.append(note)
    if counts.rejected:
        place = f"{result.artifact.path}/{_beside(result.artifact, 'rejected')}"
        notes.append(f"every rejected row is in {place}.jsonl")
    print_made(title, result.ref, rows, format=format, quiet=quiet, notes=notes)


def _beside(artifact: Artifact, what: str) -> str:
    """What files beside the shards are called; they had no folder of their own before."""
    return f"{what}/{what}-*" if files.is_folder(artifact.path / what) else f"{what}-*"


def _normalizer(codec: Codec) -> str:
    """How numbers were normalised ("" if they were not)."""
    normalizer = codec.normalizer
    constants = ", ".join(f"{name} {value:.4g}" for name, value in normalizer.constants.items())
    told = "" if normalizer.normalizer.identity else spec_of(normalizer.normalizer)
    return f"{told} ({constants})" if constants else told


def _rows(artifact: Artifact, made: bool) -> list[tuple[str, object]]:
    manifest, counts = artifact.manifest, artifact.counts(_EncodeCounts)
    rows: list[tuple[str, object]] = [("rows", counts.rows), *rows_by_split(manifest.counts)]
    rows += [("numbers", counts.numbers), ("tokens", counts.tokens)]
    rows += [("tokens per row", f"{counts.tokens / max(1, counts.rows):,.1f}")]
    rows += [("vocabulary", counts.vocabulary)]
    for key, count in sorted(manifest.counts.items()):
        if key not in _PLAIN and not key.startswith(("rows_", TWINS)):
            lost = "lost: " if key.endswith(_LOSSES) else ""
            rows.append((lost + key.replace("_", " "), count))
    if counts.rejected:
        rows.append(("rejected rows", counts.rejected))
    rows.append(("size", Size(manifest.bytes)))
    if made:
        timing = artifact.timing(_EncodeTiming)
        rows.append(("seconds", round(timing.seconds, 2)))
        rows.append(("input a second", Size(timing.input_bytes / timing.seconds)))
    return rows


def _print_estimate(ref: str, estimate: EncodeEstimate, format: Format) -> None:
    rows: list[tuple[str, object]] = [
        ("input", Size(estimate.input_bytes)),
        ("rows, about", estimate.rows),
        ("tokens, about", estimate.tokens),
        ("size, about", Size(estimate.bytes)),
    ]
    print_dry_run(ref, rows, format)
