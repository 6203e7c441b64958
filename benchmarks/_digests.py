"""Check that numtok's output does not change: one artifact of every kind by every route.

    python benchmarks/_digests.py > before.tsv             # before a change
    python benchmarks/_digests.py --against before.tsv     # after a change that must change nothing

``_digests.tsv`` is the list from one processor, made when the code of texts and tables was merged.

The script uses only the command line, one thread and a fresh store. A line has a command, its exit
code and its output: the REF and the digest of an artifact, or a digest of the printed text. A
rejected command has only the exit code.

Floats in models, and therefore reports, differ between kinds of processors and versions of PyTorch.
The first line names both. To compare floats, run both versions of the code on one machine
(``PYTHONPATH=former python benchmarks/_digests.py``).
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

SCHEMES = [
    "b1999", "bpe", "dice", "digits", "fp15", "hamming", "nd", "numerologic", "numgpt",
    "numvalue", "p10", "p1000", "ud", "xval",
]  # fmt: skip
TOKENIZERS = ["words", "structure", "bpe:300", "bytes"]
NORMALIZERS = ["none", "scale:5", "affine", "unit", "signed-log"]
TASKS = {
    "arithmetic": "",
    "arithmetic,kind=product": "",
    "comparison": "",
    "measurement": "",
    "wordproblems": "",
    "wordproblems,form=generate": "",
    "nupa": "--train 2 --validation 1 --test 1 --tasks add_Integer+max_Float --digits 1..2",
    "orbits": "--planets 2 --points 14 --span 3..10",
    "temperature": "--from field --stations 4 --days 1",
    "bbob": "--dimension 2",
    "curves": "--curve sine",
    "densities": "--density crossing",
    "truncated-gaussian": "",
}
PROBES = [
    "probe samples of-xval arithmetic-xval --points 9 --name line",
    "probe samples of-p1000 arithmetic-p1000 --points 9 --name tokens",
    "probe sweep of-xval arithmetic-xval --number 0 --points 5 --from 1 --to 9 --name swept",
    "probe confidence judge-numgpt-nano comparison-numgpt --points 9 --name sure",
    "probe embedding of-xval arithmetic-xval --points 9 --name vectors",
    "probe pca of-p1000 arithmetic-p1000 --name components",
]
OBJECTIVES = [
    "mlm", "mlm:targets", "mlm:numbers", "mlm:tokens", "ar", "ar:answer", "numvalue", "classify",
]  # fmt: skip
EMBEDDERS = ["lookup", "scaled", "fourier", "numgpt", "dice", "numvalue:rnn", "numvalue:mlp"]
HEADS = [
    "token", "scalar", "numgpt", "pointwise", "riemann:8", "mdn:2", "decoder:ud", "decoder:nd",
    "decoder:hamming",
]  # fmt: skip
TRAIN = "--steps 2 --batch 16 --preset nano,layers=1,width=16,heads=2"
TRAININGS = [
    "--accumulate 2", "--recompute", "--precision bfloat16", "--curriculum curriculum.toml",
    "--lr 1e-3 --lr-end 1e-4 --warmup 0.5", "--weight-decay 0 --grad-clip 0", "--seed 3",
    "--init-from of-p1000", "--batch-workers 1", "--preset small,layers=1",
]  # fmt: skip
EVALUATIONS = [
    "--fill left-to-right", "--decode free", "--point mean", "--point median", "--num-samples 4",
    "--metric adjusted-r2,p=4", "--split validation --limit 7",
]  # fmt: skip
FIT = "--preset mlp,layers=1,width=16 --epochs 2"


def inputs(folder: Path) -> None:
    """Write small input files of every format."""
    generator = np.random.default_rng(0)
    rows = [
        {
            "id": index,
            "text": f"From {index} to {index * 7 / 8:g}, {index},{index:03} in all or {index}%",
            "label": "even" if index % 2 == 0 else "odd",
            "group": {"half": index // 60},
            "cluster": index // 3,
        }
        for index in range(120)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines)
    with gzip.GzipFile(folder / "rows.jsonl.gz", "wb", mtime=0) as packed:
        packed.write(lines.encode())
    (folder / "odd.jsonl").write_text(lines + '{"text": 5}\n{"text": "1e300", "label": []}\n')
    (folder / "asked.jsonl").write_text(
        '{"text": "From 3 to [?] in all"}\n{"text": "12 - 5 = [?]"}\n'
    )
    (folder / "curriculum.toml").write_text(
        '[[phase]]\nname = "all"\nsteps = 1\n\n[[phase]]\nname = "sums"\nsteps = 1\n'
        'rows = {operator = ["+"]}\n'
    )
    x = generator.normal(size=(160, 3))
    y = x[:, 0] * 2 + np.abs(x[:, 1]) + generator.normal(size=160) / 10
    names = ["low", "middle", "high"]
    table = [
        f"{a:.4f},{b:.4f},{names[int(abs(c))] if abs(c) < 3 else ''},{d:.5f}"
        for (a, b, c), d in zip(x, y, strict=True)
    ]
    (folder / "rows.csv").write_text("a,b,c,y\n" + "\n".join(table) + "\n")
    (folder / "new.csv").write_text("a,b,c\n0.5,1,low\n-1,0.25,high\n,3,middle\n")
    weather(folder / "weather.zarr")


def weather(path: Path) -> None:
    """Write a month of weather on a grid, in a store like that of ERA5."""
    import xarray as xr

    times = np.datetime64("2019-03-01", "h") + np.arange(744)
    latitudes, longitudes = np.arange(58, 50, -1.0), np.arange(0, 8, 1.0)
    hour = np.arange(744)[:, None, None]
    values = 280 + hour // 24 % 7 / 2 + np.abs(hour % 24 - 12) / 4
    values = values + latitudes[None, :, None] / 8 + longitudes / 16
    xr.Dataset(
        {
            "2m_temperature": (
                ("time", "latitude", "longitude"),
                values.astype("f4"),
                {"units": "K"},
            )
        },
        {"time": times.astype("M8[ns]"), "latitude": latitudes, "longitude": longitudes},
    ).to_zarr(path, zarr_format=2, consolidated=True)


def routes() -> Generator[str, int | None, None]:
    """Yield every command line, after the commands whose output it needs.

    The caller sends the exit code of each command.
    """
    yield from printed()
    yield from data()
    yield from encodings()
    yield from models()
    yield from labels()
    yield from looks()
    yield from tables()
    yield "sweep sweep.toml --jobs 1 --json"
    yield "lineage of-p1000-test --json"


def printed() -> Iterator[str]:
    """Yield commands that need no data."""
    yield "schemes --json"
    for number in ("-60.2", "6.02e23", "0.001", "1302", "0"):
        yield f"explain {number} --json"


def data() -> Iterator[str]:
    """Yield commands for every task, and profiles of data."""
    yield "fetch era5 --from weather.zarr --name field"
    for task, options in TASKS.items():
        rows = "" if task == "nupa" else " --rows 240"
        yield f"gen {task}{rows} {options} --name {_name(task)}"
    yield "gen arithmetic --rows 60 --seed 1 --split test=0.5,validation=0.2 --name other"
    yield "profile rows.jsonl --json"
    yield "profile arithmetic --json"


def encodings() -> Iterator[str]:
    """Yield commands for every scheme, text tokenizer and normalizer, and every format of input."""
    split = "--split test=0.2,validation=0.1"
    for scheme in SCHEMES:
        yield f"encode --scheme {scheme} arithmetic"
        yield f"encode --scheme {scheme} rows.jsonl {split}"
    for task, scheme in product(
        ("comparison", "orbits", "temperature", "nupa", "wordproblems-form-generate"),
        ("digits", "p1000", "xval", "numgpt", "numvalue"),
    ):
        yield f"encode --scheme {scheme} {task}"
    for tokenizer, scheme in product(TOKENIZERS, ("bpe", "digits", "p1000", "xval")):
        yield (
            f"encode --scheme {scheme} --text-tokenizer {tokenizer} rows.jsonl "
            f"--name rows-{scheme}-{_name(tokenizer)}"
        )
    for normalizer, scheme in product(NORMALIZERS, ("xval", "nd", "numgpt")):
        yield (
            f"encode --scheme {scheme} --normalize {normalizer} arithmetic "
            f"--name {scheme}-{_name(normalizer)}"
        )
    for numerals in ("xval", "thousands,percent"):
        yield f"encode --scheme p1000 --numbers {numerals} rows.jsonl --name {_name(numerals)}"
    yield "encode --scheme p1000 rows.jsonl.gz --workers 2 --name packed"
    yield "encode --scheme p1000 odd.jsonl --on-error skip --name odd"
    yield "encode --scheme p1000 odd.jsonl --name refused"
    yield "encode --scheme fp15 odd.jsonl --on-error skip --on-overflow error --name clipped"
    yield "encode --scheme p1000,exponents=-3..3 train=rows.jsonl test=odd.jsonl --on-error skip"
    yield "encode --reuse-encoding arithmetic-p1000 other --name like"


def models() -> Generator[str, int | None, None]:
    """Yield commands for every combination of objective, embedder and head.

    Each uses the first of several schemes that accepts it. Commands for every scheme with its
    defaults follow.
    """
    for objective, embedder, head in product(OBJECTIVES, EMBEDDERS, HEADS):
        for scheme in ("xval", "p1000", "numgpt", "numvalue"):
            task = "comparison" if objective == "classify" else "arithmetic"
            code = yield (
                f"train {task}-{scheme} {TRAIN} --objective {objective} --embedder {embedder} "
                f"--head {head} --name {_name(f'{scheme}-{objective}-{embedder}-{head}')}"
            )
            if code == 0:
                break
    for scheme in SCHEMES:
        yield f"train arithmetic-{scheme} {TRAIN} --name of-{scheme}"
        yield f"eval of-{scheme}"
        yield f"predict of-{scheme} asked.jsonl"
        yield f"train arithmetic-{scheme} {TRAIN} --objective ar --name ar-{scheme}"
        yield f"eval ar-{scheme}"
        yield f"eval ar-{scheme} --fill answers --name answers-{scheme}"
        yield f"predict ar-{scheme} --text '1 + 2 =' --fill answers"
    for head in HEADS:
        yield f"train arithmetic-xval {TRAIN} --head {head} --name head-{_name(head)}"
        yield f"eval head-{_name(head)}"
    for model, options in product(("of-xval", "of-p1000", "ar-p1000", "head-mdn-2"), EVALUATIONS):
        yield f"eval {model} {options} --name {model}{_name(options)}"
    for options in TRAININGS:
        yield f"train arithmetic-p1000 {TRAIN} {options} --name with{_name(options)}"
    yield "train arithmetic-p1000 --tokens 900 --batch 16 --preset nano,layers=1 --name by-tokens"


def labels() -> Iterator[str]:
    """Yield commands for models that predict a label of a whole text."""
    presets = {"nano": "nano,layers=1,width=16,heads=2", "bigru": "bigru"}
    for scheme, preset in product(("digits", "numgpt", "p1000"), presets):
        name = f"judge-{scheme}-{preset}"
        yield (
            f"train comparison-{scheme} --steps 2 --batch 16 --preset {presets[preset]} "
            f"--objective classify --name {name}"
        )
        yield f"eval {name}"
        yield f"predict {name} --text 'Is 3 more than 2?'"


def looks() -> Iterator[str]:
    """Yield commands that read models and reports."""
    yield from (probe for probe in PROBES)  # a generator accepts sent values
    reports = "of-xval-test of-p1000-test"
    yield f"compare {reports} --json"
    yield f"compare {reports} --by operator --metric mae --json"
    yield f"compare {reports} --against xval/table3 --json"
    yield "report of-xval-test --json"
    yield f"errors {reports} --json"
    yield f"train nupa-digits {TRAIN} --objective ar:answer --name writer"
    yield "eval writer --fill answers --name written"
    yield "nupa written --json"
    for kind in ("truth", "error", "frequencies", "bars"):
        yield f"figure {kind} {reports} --out {kind}.png"
    for kind, probe in (
        ("sweep", "swept"), ("confidence", "sure"), ("embedding", "vectors"), ("pca", "components")
    ):  # fmt: skip
        yield f"figure {kind} {probe} --out {kind}.png"


def tables() -> Iterator[str]:
    """Yield commands for every head of a table model and its distributions."""
    yield "table rows.csv --target y --split test=0.25,validation=0.15"
    yield "table rows.csv --target y --features a,b --name two"
    for head, normalizer in product(HEADS, ("", "--normalize unit", "--normalize affine")):
        name = f"fit-{_name(head + normalizer)}"
        yield f"train rows {FIT} --head {head} {normalizer} --name {name}"
        yield f"eval {name}"
        yield f"predict {name} new.csv"
    draws = "--num-samples 8"
    for options in (f"--point raft {draws}", "--point mean", f"{draws} --temperature 0.5"):
        yield f"eval fit-decoder-ud {options} --name drawn{_name(options)}"
    for task in ("bbob", "curves", "densities", "truncated-gaussian"):
        yield f"train {task} {FIT} --head mdn:2 --name fit-{task}"
        yield f"eval fit-{task}"
    yield "compare fit-riemann-8-test fit-mdn-2-test --json"
    yield "figure curve fit-curves-test --out curve.png"
    yield "figure density fit-densities densities --out density.png"


def _name(spec: str) -> str:
    """Return a spec or options as the name of an artifact."""
    return re.sub(r"[^a-z0-9]+", "-", spec.lower()).rstrip("-")


SWEEP = """
[gen]
task = "arithmetic"
samples = 200

[encode]
scheme = ["p1000", "xval"]

[train]
preset = "nano,layers=1,width=16,heads=2"
batch = 16
steps = 2
seed = [0, 1]

[compare]
metric = ["mse"]
"""


def run(command: str, folder: Path) -> tuple[int, bytes]:
    """Run a command in a fork of this warm process; return its exit code and what it printed."""
    printed = folder / "printed"
    child = os.fork()
    if child == 0:
        _be(command, folder, printed)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, printed.read_bytes()


def _be(command: str, folder: Path, printed: Path) -> NoReturn:
    code = 70
    try:
        os.chdir(folder)
        os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(os.open(folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv = ["numtok", "-q", *shlex.split(command)]
        (numtok,) = entry_points(group="console_scripts", name="numtok")
        numtok.load()()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def outcome(command: str, folder: Path) -> str:
    """Run a command and return its line."""
    code, printed = run(command, folder)
    if code:
        return f"{command}\t{code}"
    made = re.findall(rb"^[^\s@]+@[0-9a-f]{16}$", printed, re.MULTILINE)
    found = [f"{ref.decode()} {content(folder, ref.decode())}" for ref in made]
    if not made:
        if command.startswith("figure"):
            printed = (folder / command.split()[-1]).read_bytes()
        elif command.endswith("--json"):
            printed = json.dumps(_without_seconds(json.loads(printed))).encode()
        found = [hashlib.sha256(printed).hexdigest()[:16]]
    return "\t".join([command, "0", *found])


def _without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_seconds(one) for k, one in value.items() if "seconds" not in k}
    return [_without_seconds(one) for one in value] if isinstance(value, list) else value


def content(folder: Path, ref: str) -> str:
    """Return the digest of an artifact's content, from its manifest."""
    name, version = ref.split("@")
    (manifest,) = folder.glob(f"artifacts/*/{name}/{version}/manifest.json")
    digest: str = json.loads(manifest.read_bytes())["content"]
    return digest[:16]


def machine() -> str:
    """Return a line with everything that floats depend on."""
    import torch

    return f"# torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


def warm() -> None:
    """Import the libraries of the commands, so that forks do not have to."""
    for name in ("torch", "pyarrow.parquet", "numba", "polars", "xarray", "zarr", "rich", "typer"):
        with suppress(ImportError):
            __import__(name)


def differing(lines: list[str], former: list[str]) -> list[str]:
    """Return the differences, one per line. For another kind of processor, compare only REFs."""
    floats = lines[0] == former[0]
    before = {line.split("\t")[0]: line.split("\t")[1:] for line in former[1:]}
    found = []
    for line in lines[1:]:
        command, *now = line.split("\t")
        then = before.pop(command, None)
        if not floats and command.split()[0] not in ("gen", "table", "fetch", "encode", "explain"):
            now, then = ([one.split()[0] for one in ends or ()] for ends in (now, then))
        if now != then:
            found.append(f"{command}\n  before {then}\n  now    {now}")
    return found + [f"{command}\n  is missing" for command in before]


def main() -> None:
    """Print the list, or the differences from a former list; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="a former list")
    parser.add_argument("--only", default="", help="a regular expression that commands match")
    given = parser.parse_args()
    os.environ |= {"NUMTOK_THREADS": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    os.environ.pop("NUMTOK_STORE", None)
    begun = time.monotonic()
    shown = None if given.against is None else sys.stderr
    folder = Path(tempfile.mkdtemp())
    try:
        inputs(folder)
        (folder / "sweep.toml").write_text(SWEEP)
        warm()
        lines = [machine()]
        print(lines[0], file=shown, flush=True)
        commands, code = routes(), None
        with suppress(StopIteration):
            while command := commands.send(code):
                code = 0
                if re.search(given.only, command):
                    lines.append(outcome(command, folder))
                    code = int(lines[-1].split("\t")[1])
                    print(lines[-1], file=shown, flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"{len(lines) - 1} commands, {time.monotonic() - begun:.0f} s", file=sys.stderr)
    if given.against is not None:
        found = differing(lines, given.against.read_text().splitlines())
        print("\n".join(found) or "nothing differs")
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
