"""Speed of `numtok profile`, compared with `numtok encode`, on one core.

    python benchmarks/profiles.py

The inputs are those of `encode.py`. Times are wall times of whole commands, including start-up,
which alternate; the table uses the median of --repeat. `profile` tries all schemes on its sample,
`encode` writes one.
"""

import argparse
import os
import shutil
from statistics import median

import encode as bench  # type: ignore[import-not-found]  # in the same folder
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console


def main() -> None:
    """Measure with the given options and print the table."""
    parser = argparse.ArgumentParser(description="Measure numtok profile on one core.")
    parser.add_argument("--megabytes", type=float, default=200, help="size of each input")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each command")
    options = parser.parse_args()
    bench.DATA.mkdir(exist_ok=True)
    *_, core = sorted(os.sched_getaffinity(0))
    bench.warm_up(["p1000"], list(bench.KINDS), core)
    columns = ("profile", "encode p1000", "ratio", "peak MiB")
    shown = table("one core, MB/s of the source", ("input",), columns)
    store = bench.DATA / "profile-store"
    for kind, texts in bench.KINDS.items():
        source = bench.DATA / f"profile-{kind}.jsonl"
        bench.write_input(source, texts(), options.megabytes * 1e6)
        command = ["-c", bench.NUMTOK, "--quiet", "profile", "--workers", "1", str(source)]
        seconds: dict[str, list[float]] = {"profile": [], "encode": []}
        for _ in range(options.repeat):
            seconds["profile"].append(bench.run(command, core).seconds)
            seconds["encode"].append(bench.encode(source, "p1000", store, core).seconds)
        peak = bench.run(command, core, sampling_seconds=bench.SAMPLING_SECONDS).peak
        profile, encode = (
            source.stat().st_size / 1e6 / median(seconds[name]) for name in ("profile", "encode")
        )
        shown.add_row(
            kind, f"{profile:.1f}", f"{encode:.1f}", f"{profile / encode:.2f}", f"{peak >> 20}"
        )
        source.unlink()
        shutil.rmtree(store)
    Console().print(shown)


if __name__ == "__main__":
    main()
