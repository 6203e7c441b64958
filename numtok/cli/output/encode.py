"""What ``numtok encode`` prints: the REF on stdout, the table for people on stderr."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from numtok.class_settings import spec_fields
from numtok.cli.output.figures import share
from numtok.cli.output.printing import Format, Size, print_dry_run, print_made, rows_by_split
from numtok.encoding.codec import Codec
from numtok.encoding.row_twins import TWINS, twins_note
from numtok.encoding.schema import INEXACT, SCHEME_FILE, TRUNCATED
from numtok.encoding.schemes.base import LimitedScheme, Scheme, is_exact, title_of
from numtok.numerals.literals import MOST_DIGITS
from numtok.numerals.unread import UNREAD, UnreadDigits
from numtok.registry import spec_of
from numtok.stages.encode import Result
from numtok.store.artifact import Artifact
from numtok.stored_json import Natural

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
        estimate = result.estimate
        about: list[tuple[str, object]] = [
            ("input", Size(estimate.input_bytes)),
            ("rows, about", estimate.rows),
            ("tokens, about", estimate.tokens),
            ("size, about", Size(estimate.bytes)),
        ]
        print_dry_run(result.ref, about, format)
        return
    assert result.artifact is not None
    codec = Codec.read(result.artifact.path / SCHEME_FILE)
    scheme, normalizer = title_of(codec.scheme), _normalizer(codec)
    unread = result.artifact.facts(_EncodeFacts).unread
    print_made(
        result.artifact,
        f"encoded with {scheme}" if result.made else f"found, not made again: {scheme}",
        _rows(result.artifact, result.made) + [("normalised", normalizer)] * bool(normalizer),
        made=result.made,
        format=format,
        quiet=quiet,
        notes=list(_notes(result.artifact, codec, unread)),
        more={UNREAD: msgspec.to_builtins(unread)},
    )


def _notes(artifact: Artifact, codec: Codec, unread: UnreadDigits) -> Iterator[str]:
    every, counts = artifact.manifest.counts, artifact.counts(_EncodeCounts)
    for key, twins in sorted(every.items()):
        if key.startswith(TWINS):
            split = key.removeprefix(TWINS)
            yield twins_note(split, twins, every[f"rows_{split}"])
    if any(key.endswith(_LOSSES) for key in every):
        yield "every lost number is listed in clipped/clipped-*.parquet"
    if counts.truncated and isinstance(codec.scheme, LimitedScheme):
        yield (
            f"numbers beyond sight have more than {codec.scheme.max_digits}: not all embedders see "
            "further"
        )
    if counts.inexact:
        lost = share(counts.inexact / max(1, counts.numbers))
        remedy = f"{_held_digits(codec.scheme)}; --scheme digits keeps all"
        if codec.keeps_literals:
            remedy = "the column `numbers` is float64 (about 16 digits). The tokens keep all digits"
        yield f"{lost} of the numbers are inexact: {remedy}"
    if note := unread.note():
        yield note
    if counts.rejected:
        yield f"every rejected row is in {artifact.path}/rejected/rejected-*.jsonl"


def _held_digits(scheme: Scheme) -> str:
    """How many digits of a number the value beside its token holds."""
    if "decimals" in spec_fields(type(scheme)):
        decimals = scheme.decimals  # type: ignore[attr-defined]
        return (
            f"{decimals} digits behind the point are kept, more with decimals=N, of "
            f"{MOST_DIGITS} in all"
        )
    kind, many = ("float64", "fifteen") if is_exact(scheme) else ("float32", "seven")
    return f"the one value beside a token, {kind}, holds about {many} of their digits"


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
