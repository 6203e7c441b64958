"""Lower limits for the time of `numtok encode`, and other tools, on the same bytes and core.

    python benchmarks/encode_peers.py

The inputs are those of `encode.py`. One run, on one core and one thread, measures:

- *parts*: the necessary work of any encoder for this format, each part separately. The parts are
  reading the file, sha256, JSON with msgspec into typed rows, finding and reading the numbers in
  the texts, and writing numtok's result as Parquet with checksums. Parquet uses zstd, as encode
  does, or lz4. `parts: ...` is the speed of several parts in sequence. `needed` is the CPU time of
  sha256 of input and output, JSON and Parquet, compared with that of the whole command.
- *xVal's method*, reimplemented from its description (Golkar et al. 2023, Section 2; facts of its
  public code). It removes spaces, finds numbers with a regular expression, removes commas
  between adjacent numbers, and applies a Hugging Face tokenizer. For p1000, `{:+.2e}` turns each
  number into three tokens. For xval, a number is `[NUM]` and a float16 next to it. xVal's own run
  on such orbits reached 4.3 MB/s for p1000 and 9.1 for xval.
- *tokenizers*: byte-level BPE of Hugging Face `tokenizers`, with 8,000 tokens, trained on the first
  megabytes. Next to it is numtok with `--text-tokenizer bpe:8000`, which uses the same library for
  the text between numbers.

MB/s refer to the source file. `numtok` uses the time that the command records, from before the
first byte to the published artifact, including fsync. `whole` also includes its start-up.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import encode as bench  # type: ignore[import-not-found]  # in the same folder

for name, value in bench.ONE_THREAD.items():
    os.environ.setdefault(name, value)

import msgspec  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import tokenizers  # noqa: E402
from _shared import best, table  # type: ignore[import-not-found]  # noqa: E402
from rich.console import Console  # noqa: E402

from numtok.data.reading.arrow import strings  # noqa: E402
from numtok.encoding.texts import Texts  # noqa: E402
from numtok.numerals.column import Literals, Numerals  # noqa: E402
from numtok.numerals.policy import NumeralPolicy  # noqa: E402
from numtok.numerals.scan import scan  # noqa: E402
from numtok.row import Row  # noqa: E402

BLOCK = 2 << 20
XVAL_NUMBER = re.compile(r"(?<!\')-?\d+(\.\d+)?([eE][-+]?\d+)?(?!\'|\d)")
TRAINED_ON = 8_000_000  # characters for the BPE


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block + file.readline()


def seconds(work: Callable[[], Any]) -> float:
    """Return CPU seconds, the best of two tries; files are cached for both."""
    return float(best(work, 2, time.process_time))


# --- parts --------------------------------------------------------------------------


def parts(path: Path, store: Path) -> dict[str, float]:
    """Return the seconds of each part."""
    decoder = msgspec.json.Decoder(Row)
    blocks = list(lines_of(path))
    texts = [Texts.of(strings([row.text for row in decoder.decode_lines(b)])) for b in blocks]
    shards = [pq.read_table(shard) for shard in sorted(store.rglob("train-*.parquet"))]

    def read() -> None:
        for _ in lines_of(path):
            pass

    def find() -> None:
        for one in texts:
            starts, ends, _ = scan(one.data, one.rows, NumeralPolicy())
            Numerals.read(Literals(one.data, starts, ends))

    def write(compression: str) -> None:
        level = {"compression_level": 1} if compression == "zstd" else {}
        for shard in shards:
            with pq.ParquetWriter(
                pa.MockOutputStream(),  # discards everything
                shard.schema,
                compression=compression,
                use_dictionary=False,
                column_encoding={
                    name: "BYTE_STREAM_SPLIT"
                    for name in ("tokens.list.element", "numbers.list.element")
                },
                write_page_checksum=True,
                write_statistics=False,
                **level,
            ) as writer:
                writer.write_table(shard, row_group_size=2000)

    def digest(files: Sequence[Path]) -> None:
        for file in files:
            hashlib.file_digest(file.open("rb"), "sha256")

    return {
        "read": seconds(read),
        "sha256": seconds(lambda: digest([path])),
        "output": seconds(lambda: digest([*store.rglob("*.parquet")])),
        "JSON": seconds(lambda: [decoder.decode_lines(block) for block in blocks]),
        "numbers": seconds(find),
        "write zstd": seconds(lambda: write("zstd")),
        "write lz4": seconds(lambda: write("lz4")),
    }


# --- xVal's method ------------------------------------------------------------------


def xval_method(texts: list[str], scheme: str) -> None:
    """Compute the ids of every text, and for xval the values next to them."""
    tokens = [f"+{m / 100:.2f}"[1:] for m in range(100, 1000)]
    numbers = ["+", "-", *tokens, *(f"e{k:+03d}" for k in range(-12, 13))]
    structure = ["]],[[", "]]]", "[[[", "],[", "]]", "[[", "{", "}", "[", "]", ",", ":", "'"]
    keys = sorted({key for text in texts[:100] for key in re.findall(r"'\w+':", text)})
    vocabulary = ["[END]", "[MASK]", "[PAD]", "[NUM]", *structure, *keys, *numbers]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(
            {token: index for index, token in enumerate(vocabulary)}, unk_token="[PAD]"
        )
    )
    tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=False) for token in vocabulary])
    number = vocabulary.index("[NUM]")

    def written(match: re.Match[str]) -> str:
        mantissa, exponent = f"{float(match[0]):+.2e}".split("e")
        return f"{mantissa}e{int(exponent):+03d}"

    for text in texts:
        plain = text.replace(" ", "")
        if scheme == "p1000":
            tokenizer.encode(XVAL_NUMBER.sub(written, plain))
            continue
        values = np.array([float(m[0]) for m in XVAL_NUMBER.finditer(plain)], np.float16)
        plain = XVAL_NUMBER.sub("[NUM]", plain).replace("[NUM],[NUM]", "[NUM][NUM]")
        ids = np.array(tokenizer.encode(plain).ids)
        beside = np.ones(len(ids), np.float16)
        beside[ids == number] = values


def bpe_alone(texts: list[str]) -> Callable[[], Any]:
    """Return a function that applies byte-level BPE to whole texts."""
    sample, size = [], 0
    for text in texts:
        sample.append(text)
        size += len(text)
        if size > TRAINED_ON:
            break
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=8000,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample, trainer)
    return lambda: tokenizer.encode_batch(texts)


# --- the command --------------------------------------------------------------------


def numtok(path: Path, core: int, *options: str) -> tuple[float, bench.Run, Path]:
    """Return the seconds that the command records, its process, and its store."""
    store = bench.DATA / "peers-store"
    shutil.rmtree(store, ignore_errors=True)
    words = ["--store", str(store), "encode", "--workers", "1", *options, str(path)]
    whole = bench.run(["-c", bench.NUMTOK, *words], core)
    (timing,) = store.rglob("timing.json")
    return float(json.loads(timing.read_bytes())["seconds"]), whole, store


def main() -> None:
    """Measure with the given options and print the table."""
    parser = argparse.ArgumentParser(description="Measure encode beside its parts and its peers.")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--kinds", default=",".join(bench.KINDS), help="inputs, with commas")
    options = parser.parse_args()
    console = Console(width=100)
    *_, core = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    bench.DATA.mkdir(exist_ok=True)
    shown = table("MB/s of the source, one core", ("input", "what"), ("MB/s",))

    def add(kind: str, what: str, took: float) -> None:
        shown.add_row(kind, what, f"{megabytes / took:.1f}")

    for kind in options.kinds.split(","):
        path = bench.DATA / f"peers-{kind}.jsonl"
        bench.write_input(path, bench.KINDS[kind](), options.megabytes * 1e6)
        megabytes = path.stat().st_size / 1e6
        reads = bench.run(["-c", bench.POLARS, str(path)], core).output.split()
        add(kind, "polars read_ndjson, first", float(reads[0]))
        add(kind, "polars read_ndjson, best of three", float(reads[1]))
        for scheme in ("xval", "p1000"):
            took, whole, store = numtok(path, core, "--scheme", scheme)
            add(kind, f"numtok {scheme}", took)
            add(kind, f"numtok {scheme}, whole", whole.seconds)
            alone = parts(path, store)
            needed = sum(alone[what] for what in ("sha256", "output", "JSON", "write zstd"))
            share = f"{needed:.2f} of {whole.cpu:.2f} s, {needed / whole.cpu:.0%}"
            shown.add_row(kind, f"numtok {scheme}, needed", share)
        for what, took in alone.items():
            add(kind, f"part: {what}", took)
        summed = ("read", "sha256", "JSON", "numbers", "write zstd")
        add(kind, f"parts: {', '.join(summed)}", sum(alone[what] for what in summed))
        texts = [json.loads(line)["text"] for line in path.open("rb")]
        if kind == "orbit":
            for scheme in ("p1000", "xval"):
                took = seconds(partial(xval_method, texts, scheme))
                add(kind, f"xVal's method, {scheme}", took)
        if kind == "prose":
            add(kind, "byte-level BPE of tokenizers", seconds(bpe_alone(texts)))
            took, _, _ = numtok(path, core, "--scheme", "p1000", "--text-tokenizer", "bpe:8000")
            add(kind, "numtok p1000 with bpe:8000", took)
        path.unlink()
        shown.add_section()
    shutil.rmtree(bench.DATA / "peers-store", ignore_errors=True)
    console.print(shown)


if __name__ == "__main__":
    main()
