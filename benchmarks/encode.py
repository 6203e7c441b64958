"""Speed of `numtok encode` on one core, and its memory.

The script generates three inputs from fixed seeds, as JSONL with `id` and `text`:

- `orbit`: planetary orbits as JSON-like text, as in Section 3.3 of the xVal paper
  (arXiv 2310.02989). Numbers are most of the bytes. Every number is a new random double whose
  `repr` has 17 significant digits, so none repeats.
- `prose`: English-like prose, with words from a Zipf-like distribution. One word in 20 is a
  number. Every text between two numbers is different, so caching tokenized texts gains nothing.
- `era5`: real weather data, `numtok/data/sample/era5-uk.jsonl` or a longer extract if it exists,
  repeated up to the size with new ids. Texts and numbers repeat.

For each input and scheme, the script runs `numtok encode --workers 1` into a fresh store next to
the input. The process is pinned to one core, and every library is limited to one thread. Columns:

- `seconds`: wall time of the process: imports, reading, encoding, checksums and fsync. It excludes
  compilation: a tiny file is encoded first with each scheme. The time for it is printed (only the
  start-up time if compiled kernels are cached).
- `CPU s`: user and system CPU time of the same runs; compare these on a busy machine.
- `MB/s`: megabytes (10**6 bytes) of the source file per second.
- `polars MB/s`: `polars.read_ndjson` of the same file on the same core with one thread. Only the
  read is timed, the best of three in one process. `ratio` is `MB/s` divided by it: at 1.000,
  encoding would be as fast as reading with polars. `first read` is the first of the three. It is
  slower because the system must still provide the memory, as for encode. The best read is
  therefore the stricter reference.
- `peak MiB`: the largest memory of the process and its descendants, sampled every 20 ms, as
  proportional set size (PSS), which counts shared pages once. The caption says if the system
  provides only RSS. It is measured in a separate run, because sampling pauses the process and made
  short runs a fifth slower.

Inputs are in the page cache for both. With --repeat, times are medians. Start-up is part of
`seconds`, so small inputs look slow. Needs Linux. Other cores may be busy: on a busy machine,
repeat, and compare only columns of one run. Nothing is asserted.
"""

import argparse
import json
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
import psutil
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
DATA = ROOT / "benchmarks" / "data"
SAMPLES = (
    ROOT.parent / "shared" / "data" / "text" / "era5-uk-2019-03.jsonl",
    ROOT / "numtok" / "data" / "sample" / "era5-uk.jsonl",
)
SAMPLING_SECONDS = 0.02
ONE_THREAD = {
    "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
NUMTOK = "from numtok.cli.main import main; main()"
POLARS = """
import sys, time
import polars
assert polars.thread_pool_size() == 1
seconds = []
for _ in range(3):
    started = time.perf_counter()
    polars.read_ndjson(sys.argv[1])
    seconds.append(time.perf_counter() - started)
print(seconds[0], min(seconds))
"""
notes = Console(stderr=True, highlight=False)


# --- inputs: endless iterators of texts, escaped as inside a JSON string ---------------


def orbit_texts() -> Iterator[str]:
    """Yield parameters of 2 to 4 planets, followed by their positions at 20 to 40 times."""
    rng = np.random.default_rng(1)
    positive, signed = _literals(rng, 0.1), _literals(rng, -4.0)
    planet = "'planet%d': {'m': %s, 'a': %s, 'e': %s}"
    while True:
        planets, times = int(rng.integers(2, 5)), int(rng.integers(20, 41))
        parameters = ", ".join(planet % (p, *islice(positive, 3)) for p in range(planets))
        place = "[" + ", ".join(["[%s, %s]"] * planets) + "]"
        places = ", ".join([place] * times) % tuple(islice(signed, 2 * planets * times))
        size = next(positive)
        yield f"{{'description': {{{parameters}, 'stepsize': {size}}}, 'data': [{places}]}}"


def _literals(rng: np.random.Generator, low: float) -> Iterator[str]:
    """Yield the ``repr`` of doubles from ``low`` to 4, except close to zero, with 17 significant
    digits."""
    while True:
        values = rng.uniform(low, 4.0, 100_000)
        values = values[np.abs(values) >= 0.1]
        # 17 digits and a point, plus "0." before them below 1, plus a sign.
        lengths = 18 + (np.abs(values) < 1) + (values < 0)
        for literal, length in zip(map(repr, values.tolist()), lengths.tolist(), strict=True):
            if len(literal) == length:
                yield literal


FUNCTION_WORDS = """
the of and to a in is that it was for on with as by at be this from are or an which were not
have has had but their they its his her we can one all there been more when who will would no
if out so up into some than other time only could these two may then do first any my now such
like our over man me even most made after also did many before must through years where much
your way well down should because each just those people how too little state good very make
world still see own work long get here between both life being under never day same another
know while last might us great old year off come since against go came right used take three
however although during without whether toward among upon
"""
ONSETS = "b bl br c ch cl cr d dr f fl fr g gr h j l m n p pl pr qu r s sh st t th tr v w"
NUCLEI = "a e i o u ai ea ee ou"
CODAS = ["", "", "", "n", "r", "l", "t", "s", "m", "nd", "ck", "st", "ll"]
ENDINGS = ["", "", "", "s", "ed", "ing", "er", "ly", "tion", "al", "ment", "ness"]
PUNCTUATION = (" ", ", ", ". ", ".\\n\\n", "; ")
PLAIN, FULL_STOP = 0, 2


def prose_texts() -> Iterator[str]:
    """Yield rows of about 8 to 24 numbers, in sentences, with 11 to 26 words before each number."""
    rng = np.random.default_rng(2)
    words = [*FUNCTION_WORDS.split(), *_pronounceable(rng, 6000)]
    forms = np.array(
        [form + end for w in words for form in (w, w.capitalize()) for end in PUNCTUATION],
        dtype=object,
    )
    likelihood = 1 / (np.arange(len(words)) + 2.7)
    cumulated = np.cumsum(likelihood / likelihood.sum())
    while True:
        yield from _prose(rng, forms, cumulated)


def _prose(
    rng: np.random.Generator, forms: npt.NDArray[np.object_], cumulated: npt.NDArray[np.float64]
) -> Iterator[str]:
    """Yield about 3,000 rows. ``forms`` has the forms of each word, by capitalization and
    punctuation."""
    tail = 14  # words after the last number of a row: long enough to be unique
    firsts = np.cumsum(rng.integers(8, 25, 3_000))  # first unit "words number" of each row
    units = int(firsts[-1]) + 1
    gaps = rng.integers(11, 27, units)
    gaps[firsts] += tail
    at = np.cumsum(gaps + 1) - 1  # positions of the numbers
    bounds = np.concatenate([[0], at[firsts - 1] + 1 + tail])
    count = int(bounds[-1])
    at = at[at < count]

    word = np.minimum(np.searchsorted(cumulated, rng.random(count)), len(cumulated) - 1)
    mark = rng.choice(len(PUNCTUATION), count, p=[0.855, 0.08, 0.05, 0.01, 0.005])
    mark[at] = PLAIN
    mark[bounds[1:] - 1] = FULL_STOP
    ends = (mark == FULL_STOP) | (mark == FULL_STOP + 1)
    capital = rng.random(count) < 0.02
    capital[0] = True
    capital[1:] |= ends[:-1]
    parts = forms[(word * 2 + capital) * len(PUNCTUATION) + mark]
    parts[at] = _prose_numbers(rng, len(at))
    listed = parts.tolist()
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield "".join(listed[start:end]).rstrip()


def _prose_numbers(rng: np.random.Generator, count: int) -> list[str]:
    """Return years, counts, decimals and percentages, each followed by a space."""
    kinds = rng.integers(0, 5, count).tolist()
    sizes = np.exp(rng.uniform(0, 9, count)).tolist()
    years = rng.integers(1800, 2030, count).tolist()
    return [
        (f"{year} ", f"{size:.0f} ", f"{size / 100:.3g}% ", f"{size:.1f} ", f"{size:.3f} ")[kind]
        for kind, size, year in zip(kinds, sizes, years, strict=True)
    ]


def _pronounceable(rng: np.random.Generator, count: int) -> list[str]:
    """Return distinct invented words of one to three syllables, short ones first."""
    onsets, nuclei, known = ONSETS.split(), NUCLEI.split(), set(FUNCTION_WORDS.split())
    words: dict[str, None] = {}
    while len(words) < count:
        # Common words are short: the maximum number of syllables grows with the rank.
        syllables = int(rng.integers(1, 2 + min(2, 3 * len(words) // count)))
        stem = "".join(rng.choice(onsets) + rng.choice(nuclei) for _ in range(syllables))
        word = stem + rng.choice(CODAS) + (rng.choice(ENDINGS) if syllables > 1 else "")
        if word not in known:
            words[word] = None
    return list(words)


def era5_texts() -> Iterator[str]:
    """Yield the texts of the first sample that exists, repeatedly."""
    sample = next(path for path in SAMPLES if path.exists())
    texts = [json.dumps(json.loads(line)["text"])[1:-1] for line in sample.open(encoding="utf-8")]
    notes.print(f"era5: {len(texts)} rows of {sample.name}, repeated")
    while True:
        yield from texts


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "orbit": orbit_texts,
    "prose": prose_texts,
    "era5": era5_texts,
}


def write_input(path: Path, texts: Iterator[str], size: float) -> None:
    """Write rows until the file has at least ``size`` bytes, and force them to disk."""
    with path.open("wb") as file:
        for row, text in enumerate(texts):
            file.write(f'{{"id": {row}, "text": "{text}"}}\n'.encode())
            if file.tell() >= size:
                break
        file.flush()
        os.fsync(file.fileno())  # so that writing back does not disturb a measurement


# --- measuring ----------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Results of a process: wall and CPU seconds, peak bytes of its tree if sampled, and its
    output."""

    seconds: float
    cpu: float
    peak: int
    output: str


@dataclass(frozen=True)
class Result:
    """A row of the table."""

    kind: str
    scheme: str
    megabytes: float
    seconds: float
    cpu_seconds: float
    megabytes_per_second: float
    polars_first_megabytes_per_second: float
    polars_megabytes_per_second: float
    ratio: float
    peak_mebibytes: float


def run(arguments: list[str], *cores: int, sampling_seconds: float | None = None) -> Run:
    """Run Python with ``arguments`` only on ``cores``, and sample its memory at the given interval.

    Raises SystemExit with the printed text if it fails.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMTOK_")}
    environment |= {"PYTHONPATH": str(ROOT), **ONE_THREAD}
    peak = 0
    before = _cpu_of_children()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=DATA,  # no numtok.toml in this folder changes a setting
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        ended = os.pidfd_open(process.pid)
        try:
            # Wait for the end with a file descriptor, because subprocess polls only every 50 ms.
            while not select.select([ended], [], [], sampling_seconds)[0]:
                peak = max(peak, memory(process.pid))
            seconds = time.perf_counter() - started
        finally:
            os.close(ended)
            process.kill()
            process.wait()
        output.seek(0)
        printed = output.read()
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode} from {arguments}:\n{printed}")
    return Run(seconds, _cpu_of_children() - before, peak, printed)


def _cpu_of_children() -> float:
    """Return the CPU seconds of all ended child processes, which other work on the machine hardly
    changes.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory(root: int) -> int:
    """Return the bytes of a process and its running descendants."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        whole = psutil.Process(root)
        for process in (whole, *whole.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += getattr(process.memory_full_info(), MEMORY)
    return total


try:
    MEMORY = "pss" if psutil.Process().memory_full_info().pss else "rss"
except (psutil.AccessDenied, AttributeError):
    MEMORY = "rss"


def encode(
    source: Path, scheme: str, store: Path, *cores: int, sampling_seconds: float | None = None
) -> Run:
    """Encode ``source`` into ``store``, which is emptied first, with one worker per core."""
    shutil.rmtree(store, ignore_errors=True)
    options = ["--store", str(store), "encode", "--scheme", scheme, "--workers", str(len(cores))]
    return run(["-c", NUMTOK, *options, str(source)], *cores, sampling_seconds=sampling_seconds)


def warm_up(schemes: list[str], kinds: list[str], core: int) -> dict[str, float]:
    """Encode a few rows of every kind with every scheme; return the seconds per scheme."""
    tiny = DATA / "encode-tiny.jsonl"
    write_input(tiny, (text for kind in kinds for text in islice(KINDS[kind](), 10)), float("inf"))
    store = DATA / "encode-tiny-store"
    seconds = {scheme: encode(tiny, scheme, store, core).seconds for scheme in schemes}
    shutil.rmtree(store)
    tiny.unlink()
    return seconds


def measure(kind: str, options: argparse.Namespace, core: int) -> Iterator[Result]:
    """Generate the input of ``kind``, read it with polars, and encode it with each scheme."""
    source = DATA / f"encode-{kind}.jsonl"
    started = time.perf_counter()
    write_input(source, KINDS[kind](), options.megabytes * 1e6)
    notes.print(f"{kind}: input made in {time.perf_counter() - started:.1f} s")
    megabytes = source.stat().st_size / 1e6
    reads = run(["-c", POLARS, str(source)], core).output.split()
    first, best = (megabytes / float(seconds) for seconds in reads)
    for scheme in options.schemes:
        store = DATA / f"encode-{kind}-{scheme.replace('/', '-')}-store"
        times = []
        for _ in range(options.repeat):
            times.append(encode(source, scheme, store, core))
            notes.print(f"{kind} {scheme}: {times[-1].seconds:.2f} s")
        seconds = median(each.seconds for each in times)
        cpu = median(each.cpu for each in times)
        speed = megabytes / seconds
        peak = encode(source, scheme, store, core, sampling_seconds=SAMPLING_SECONDS).peak / 2**20
        if not options.keep:
            shutil.rmtree(store)
        yield Result(kind, scheme, megabytes, seconds, cpu, speed, first, best, speed / best, peak)
    if not options.keep:
        source.unlink()


# --- the command --------------------------------------------------------------------


def parse() -> argparse.Namespace:
    """Return the options; invalid ones end the script with a usage message."""
    parser = argparse.ArgumentParser(
        description="Measure numtok encode on one core.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--megabytes", type=float, default=100, help="size of each input")
    parser.add_argument("--schemes", default="p1000,xval", help="names, with commas")
    parser.add_argument("--kinds", default=",".join(KINDS), help="inputs, with commas")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each encode")
    parser.add_argument("--keep", action="store_true", help="leave inputs and stores")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the table there as well")
    options = parser.parse_args()
    options.schemes = options.schemes.split(",")
    options.kinds = options.kinds.split(",")
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"--kinds: {', '.join(unknown)} is not one of {', '.join(KINDS)}")
    if options.megabytes <= 0 or options.repeat < 1:
        parser.error("--megabytes must be above 0 and --repeat at least 1")
    return options


def table_of(results: list[Result], warm: dict[str, float]) -> Table:
    """Return the table of the results."""
    taken = ", ".join(f"{scheme} {seconds:.1f} s" for scheme, seconds in warm.items())
    made: Table = table(
        "numtok encode --workers 1, one core",
        ("kind", "scheme"),
        ("MB", "seconds", "CPU s", "MB/s", "first read", "polars MB/s", "ratio", "peak MiB"),
        caption=f"warm-up on a tiny file: {taken}; memory is {MEMORY.upper()}",
    )
    for r in results:
        figures = f"{r.megabytes:.1f} {r.seconds:.2f} {r.cpu_seconds:.2f}"
        figures += f" {r.megabytes_per_second:.1f}"
        polars = f"{r.polars_first_megabytes_per_second:.1f} {r.polars_megabytes_per_second:.1f}"
        last = f"{r.ratio:.3f} {r.peak_mebibytes:.0f}"
        made.add_row(r.kind, r.scheme, *f"{figures} {polars} {last}".split())
    return made


def main() -> None:
    """Measure with the given options, print the table and write the JSON."""
    options = parse()
    DATA.mkdir(exist_ok=True)
    *others, core = sorted(os.sched_getaffinity(0))
    if others:
        os.sched_setaffinity(0, others)
    else:
        notes.print("only one core: this process now and then takes time from what it measures")
    warm = warm_up(options.schemes, options.kinds, core)
    results = [result for kind in options.kinds for result in measure(kind, options, core)]
    Console().print(table_of(results, warm))
    if options.json:
        document = {
            "versions": {name: version(name) for name in ("numpy", "numba", "polars", "pyarrow")},
            "memory": MEMORY,
            "warm_up_seconds": warm,
            "results": [asdict(result) for result in results],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
