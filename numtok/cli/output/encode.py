"""What ``numtok encode`` prints: the REF on stdout, the table for people on stderr."""

import msgspec

from numtok import files
from numtok.cli.output.figures import share
from numtok.cli.output.printing import Format, Size, print_json, print_made, print_table
from numtok.encoding.codec import Codec
from numtok.records import INEXACT, SCHEME_FILE, TRUNCATED
from numtok.registry import spec_of
from numtok.stages.encode import EncodeEstimate, Result
from numtok.store.artifact import TIMING, Artifact

_PLAIN = ("rows", "numbers", "tokens", "vocabulary", "rejected")
_LOSSES = ("_overflow", "_underflow")


class _EncodeTiming(msgspec.Struct):
    seconds: float
    input_bytes: int


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print one run; with a format other than the table, that on stdout instead of the REF."""
    if result.estimate is not None:
        _print_estimate(result.ref, result.estimate, format)
        return
    assert result.artifact is not None
    counts = result.artifact.manifest.counts
    if format is Format.JSON:
        print_json({"ref": result.ref, "made": result.made, "counts": counts})
        return
    codec = Codec.read(result.artifact.path / SCHEME_FILE)
    scheme, normalizer = codec.scheme.title, _normalizer(codec)
    title = f"encoded with {scheme}" if result.made else f"found, not made again: {scheme}"
    rows = _rows(result.artifact, result.made)
    if normalizer:
        rows.append(("normalised", normalizer))
    notes = []
    if any(key.endswith(_LOSSES) for key in counts):
        notes.append(
            f"every lost number is listed in {_beside(result.artifact, 'clipped')}.parquet"
        )
    if counts.get(TRUNCATED):
        notes.append(
            f"numbers beyond sight have more than {codec.scheme.max_digits}: not all embedders see "
            "further"
        )
    if counts.get(INEXACT):
        lost = share(counts[INEXACT] / counts["numbers"])
        notes.append(
            f"{lost} of the numbers are inexact: the one value beside a token, float32, holds "
            "about seven of their digits; --scheme digits keeps all"
        )
    if counts["rejected"]:
        place = f"{result.artifact.path}/{_beside(result.artifact, 'rejected')}"
        notes.append(f"every rejected row is in {place}.jsonl")
    print_made(title, result.ref, rows, format, quiet, notes)


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
    manifest = artifact.manifest
    counts = manifest.counts
    splits = sorted(key for key in counts if key.startswith("rows_"))
    rows: list[tuple[str, object]] = [("rows", counts["rows"])]
    rows += [(f"  {key.removeprefix('rows_')}", counts[key]) for key in splits]
    rows += [("numbers", counts["numbers"]), ("tokens", counts["tokens"])]
    rows += [("tokens per row", f"{counts['tokens'] / max(1, counts['rows']):,.1f}")]
    rows += [("vocabulary", counts["vocabulary"])]
    for key in sorted(set(counts) - {*_PLAIN, *splits}):
        lost = "lost: " if key.endswith(_LOSSES) else ""
        rows.append((lost + key.replace("_", " "), counts[key]))
    if counts["rejected"]:
        rows.append(("rejected rows", counts["rejected"]))
    rows.append(("size", Size(manifest.bytes)))
    if made:
        timing = artifact.decoded(TIMING, _EncodeTiming)
        rows.append(("seconds", round(timing.seconds, 2)))
        rows.append(("input a second", Size(timing.input_bytes / timing.seconds)))
    return rows


def _print_estimate(ref: str, estimate: EncodeEstimate, format: Format) -> None:
    rows: list[tuple[str, object]] = [
        ("would make", ref),
        ("input", Size(estimate.input_bytes)),
        ("rows, about", estimate.rows),
        ("tokens, about", estimate.tokens),
        ("size, about", Size(estimate.bytes)),
    ]
    print_table("dry run", ("what", "value"), rows, format)
