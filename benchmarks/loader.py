"""Speed of reading, shuffling, padding and masking training data, compared with training ``nano``.

    python benchmarks/loader.py

Everything runs in one process and one thread. A split of random text is encoded once and read (into
memory, and mapped from disk). Some steps of it become batches and training examples; padding counts
as waste. Then ``nano`` trains on the same batches for some steps. Loader speeds use CPU seconds.
The script prints a table and asserts nothing.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "1000")
CORES = 2  # of `nano`, for the ratio

import torch  # noqa: E402
from _shared import table  # type: ignore[import-not-found]  # noqa: E402
from rich.console import Console  # noqa: E402

from numtok.encoding.dataset import EncodedSplit  # noqa: E402
from numtok.encoding.splits import splits  # noqa: E402
from numtok.encoding.stored_codec import read_codec  # noqa: E402
from numtok.models.embedders.base import EMBEDDERS  # noqa: E402
from numtok.models.heads.base import HEADS  # noqa: E402
from numtok.models.model import build_model  # noqa: E402
from numtok.models.objectives.base import OBJECTIVES  # noqa: E402
from numtok.models.presets import preset  # noqa: E402
from numtok.models.settings import ModelSettings  # noqa: E402
from numtok.models.vocabulary import Vocabulary  # noqa: E402
from numtok.stages.encode import Config as EncodeConfig  # noqa: E402
from numtok.stages.encode import run as encode  # noqa: E402
from numtok.stages.gen import Config as GenConfig  # noqa: E402
from numtok.stages.gen import run as gen  # noqa: E402
from numtok.store.store import Store  # noqa: E402
from numtok.training.examples import SplitExamples  # noqa: E402
from numtok.training.trainer import Execution, Recipe, Trainer  # noqa: E402


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a function, and its result."""
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


def main() -> None:
    """Measure with the given options and print the table."""
    parser = argparse.ArgumentParser(description="Measure how fast training data is prepared.")
    parser.add_argument("--task", default="arithmetic,operands=4,decimals=2,low=-99.99,high=99.99")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--steps", type=int, default=300, help="of the loader")
    parser.add_argument("--training-steps", type=int, default=10, help="of nano, on --cores")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--schemes", default="p10,p1000,xval")
    parser.add_argument("--objectives", default="mlm:targets,mlm,ar")
    options = parser.parse_args()
    torch.set_num_threads(CORES)
    title = f"{options.rows:,} rows of {options.task}, batches of {options.batch}"
    columns = ("read", "mapped", "batches", "examples", "nano", "ratio", "pads")
    shown = table(title, ("scheme", "objective"), columns)
    folder = Path(tempfile.mkdtemp())
    try:
        store = Store(folder / "store")
        made = gen(GenConfig(options.task, samples=options.rows), store, lambda *_: None).artifact
        assert made is not None
        for scheme in options.schemes.split(","):
            config = EncodeConfig((made.ref,), scheme=scheme, name=scheme)
            encoded = encode(config, store, lambda *_: None).artifact
            assert encoded is not None
            codec, shards = read_codec(encoded), splits(encoded)["train"]
            seconds, samples = timed(partial(EncodedSplit.read, shards, codec.ids))
            spill = folder / f"spill-{scheme}"
            spill.mkdir()
            mapped, _ = timed(partial(EncodedSplit.read, shards, codec.ids, spill))
            for objective in options.objectives.split(","):
                shown.add_row(
                    scheme,
                    objective,
                    rate(len(samples.tokens) / seconds),
                    rate(len(samples.tokens) / mapped),
                    *measure(samples, codec, objective, options),
                )
    finally:
        shutil.rmtree(folder)
    Console().print(shown)
    Console().print("millions of tokens a second of one core; nano: on two cores, by the clock")


def measure(
    samples: EncodedSplit, codec: Any, objective: str, options: argparse.Namespace
) -> list[str]:
    """Return the cells for batches, examples and training with one objective."""
    split = SplitExamples(samples, codec, OBJECTIVES.build(objective), options.batch, 0)
    split.batches.at(0, 0)  # computes the order of the epoch, outside the measurement
    steps = range(options.steps)
    batching, batches = timed(lambda: [split.batches.at(0, step) for step in steps])
    learning, examples = timed(lambda: [split.training_batch(step) for step in steps])
    real = sum(int(batch.lengths.sum()) for batch in batches)
    places = sum(batch.tokens.size for batch in batches)
    settings = ModelSettings.of(
        preset("nano"),
        vocabulary=codec.vocabulary_size,
        context=samples.longest + 1,
        embedder=EMBEDDERS.build(codec.scheme.embedder),
        head=HEADS.build(codec.scheme.head),
        objective=OBJECTIVES.build(objective),
    )
    model = build_model(settings, Vocabulary.of(codec))
    trainer = Trainer(
        model, Recipe(learning_rate=1e-3), Execution(device=torch.device("cpu")), steps=1000
    )
    trainer.advance(examples[0])
    started = time.perf_counter()
    for example in examples[1 : options.training_steps + 1]:
        trainer.advance(example)
    trained = time.perf_counter() - started
    read = sum(int(one.real.sum()) for one in examples[1 : options.training_steps + 1])
    return [
        rate(real / batching),
        rate(sum(int(one.real.sum()) for one in examples) / learning),
        f"{read / trained / 1e6:.3f}",
        f"{(real / learning) / (read / trained):,.0f}",
        f"{1 - real / places:.1%}",
    ]


def rate(tokens: float) -> str:
    """Return millions per second."""
    return f"{tokens / 1e6:.1f}"


if __name__ == "__main__":
    main()
