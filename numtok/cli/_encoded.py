"""What ``numtok encode`` prints: the REF on stdout, the table for people on stderr."""

import sys

import msgspec

from numtok import files
from numtok.artifact import TIMING
from numtok.cli._shared import Format, Size, print_json, print_table
from numtok.stages.encode import Result

_LOSSES = ("_overflow", "_underflow")


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print one run; with a format other than the table, that on stdout instead of the REF."""
    if result.artifact is None:
        rows: list[tuple[str, object]] = [
            ("would make", f"{result.name}@{result.version}"),
            ("input", Size(result.input_bytes)),
            ("units", result.units),
        ]
        print_table("dry run", ("what", "value"), rows, format)
        return
    manifest = result.artifact.manifest
    counts = manifest.counts
    timing = msgspec.json.decode(files.read_bytes(result.artifact.path / TIMING, 1 << 20))
    if format is Format.JSON:
        print_json({"ref": result.artifact.ref, "made": result.made, "counts": counts})
        return
    rows = [("rows", counts["rows"])]
    rows += [
        (f"  {key.removeprefix('rows_')}", value)
        for key, value in sorted(counts.items())
        if key.startswith("rows_")
    ]
    rows += [("numbers", counts["numbers"]), ("tokens", counts["tokens"])]
    rows += [("tokens per row", counts["tokens"] / counts["rows"])]
    rows += [("vocabulary", counts["vocabulary"])]
    special = [key for key in counts if key not in _PLAIN and not key.startswith("rows_")]
    for key in special:
        lost = key.endswith(_LOSSES)
        rows.append((f"{'lost: ' if lost else ''}{key.replace('_', ' ')}", counts[key]))
    if counts["rejected"]:
        rows.append(("rejected rows", counts["rejected"]))
    rows += [("size", Size(manifest.bytes))]
    if result.made:
        rows += [("seconds", timing["seconds"])]
        rows += [("input a second", Size(timing["input_bytes"] / timing["seconds"]))]
    title = "encoded" if result.made else "found, not made again"
    if format is not Format.TABLE:
        print_table(title, ("what", "value"), rows, format)
        return
    if not quiet:
        print_table(title, ("what", "value"), rows, to=sys.stderr)
        if any(key.endswith(_LOSSES) for key in special):
            print("numtok: every lost number is listed in clipped-*.parquet", file=sys.stderr)
        if counts["rejected"]:
            print("numtok: every rejected row is in rejected-*.jsonl", file=sys.stderr)
    print(result.artifact.ref)


_PLAIN = {"rows", "numbers", "tokens", "vocabulary", "rejected"}
