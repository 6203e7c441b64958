"""Time of the store's commands for an artifact with very many shards.

    python benchmarks/store.py --shards 100000

One small shard is written repeatedly into one artifact. The artifact is then listed, shown,
verified in part and as a whole, and read as for training. Times are wall times of whole commands,
including start-up.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.splits import read_split, splits
from numtok.files import Sink
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config as GenConfig
from numtok.stages.gen import run as gen
from numtok.store.artifact import ENCODED, Artifact, Output, Parent
from numtok.store.receipts import write_receipt
from numtok.store.store import Store

ROWS = 30  # per shard
A_RECEIPT = 1000  # shards per receipt


def simulated(folder: Path, shards: int) -> Store:
    """Return a store with an artifact ``many`` of this many equal shards."""
    store = Store(folder / "store")
    data = gen(
        GenConfig("arithmetic", samples=ROWS, split="train=1"), store, lambda *_: None
    ).artifact
    assert data is not None
    one = encode(EncodeConfig((data.ref,), scheme="xval"), store, lambda *_: None).artifact
    assert one is not None
    (shard,) = splits(one)["train"]
    content = shard.read_bytes()
    parent = Parent("file", "simulated", "0" * 64, shards)
    with store.draft(ENCODED, "many", {"shards": shards}, [parent], ["numtok"]) as draft:
        assert not isinstance(draft, Artifact)
        with Sink(draft.path / SCHEME_FILE) as sink:
            sink.write((one.path / SCHEME_FILE).read_bytes())
        outputs: list[Output] = []
        for index in range(shards):
            with Sink(draft.path / f"train-{index:05d}.parquet") as sink:
                sink.write(content)
            outputs.append(Output(sink.path.name, sink.bytes, sink.sha256))
            if len(outputs) == A_RECEIPT or index + 1 == shards:
                write_receipt(draft.path, f"{index:05d}", input="", settings="", outputs=outputs)
                outputs = []
        draft.publish({"rows": ROWS * shards}, {"seconds": 0.0})
    return store


def main() -> None:
    """Create the artifact, measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure the store with very many shards.")
    parser.add_argument("--shards", type=int, default=10_000)
    shards = parser.parse_args().shards
    shown = table(f"an artifact of {shards:,} shards", ("command",), ("seconds",))
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent / "data") as folder:
        started = time.perf_counter()
        store = simulated(Path(folder), shards)
        shown.add_row("writing and publishing", f"{time.perf_counter() - started:.1f}")
        for words in ("ls", "show many", "verify many --sample 100", "verify many"):
            command = [sys.executable, "-m", "numtok", "--store", str(store.root), *words.split()]
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            shown.add_row(f"numtok {words}", f"{time.perf_counter() - started:.2f}")
        started = time.perf_counter()
        samples = read_split(store.resolve("many"), "train")
        shown.add_row(f"reading {len(samples):,} rows", f"{time.perf_counter() - started:.1f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
