"""A chain of small commands from generated data to reports, and commands that read each file."""

import json
from pathlib import Path

from tests import fakefields

NANO = ("--preset", "nano,layers=1,width=16,heads=2", "--batch", "32", "--steps", "4")
MLP = ("--preset", "mlp,layers=1,width=16", "--epochs", "2")
# Two rows are invalid, and one has a number that p1000 cannot represent.
ROWS = [
    {
        "id": index,
        "text": f"a {index}.5 b {index}e3 c {'1e300' if index == 7 else index}",
        "targets": {"a": [[2, 2 + len(f"{index}.5")]]},
        "floors": {"a": {"before": [index - 1.0]}},
        "label": "yes" if index % 3 else "no",
        "group": {"half": index // 20},
        "cluster": index // 4,
        "split": "train" if index % 2 else "test",
    }
    for index in range(40)
] + [{"text": 5}, {"text": "nothing", "label": []}]
BUILD = (
    ("gen", "arithmetic", "--operands", "2", "--rows", "200"),
    ("encode", "--scheme", "xval", "arithmetic"),
    ("encode", "--scheme", "p1000", "arithmetic"),
    ("encode", "--scheme", "digits", "arithmetic"),
    ("encode", "--scheme", "p1000", "--on-error", "skip", "odd.jsonl"),
    ("train", "arithmetic-xval", *NANO, "--name", "value"),
    ("train", "arithmetic-p1000", *NANO, "--name", "token", "--objective", "ar"),
    ("train", "arithmetic-digits", *NANO, "--name", "writer", "--objective", "ar:answer"),
    ("train", "odd-p1000", *NANO, "--name", "judge", "--objective", "classify"),
    ("eval", "value", "arithmetic-xval", "--name", "values"),
    ("eval", "writer", "arithmetic-digits", "--fill", "answers", "--name", "answers"),
    ("eval", "judge", "odd-p1000", "--name", "labels"),
    ("probe", "examples", "value", "arithmetic-xval", "--name", "line"),
    ("table", "rows.csv", "--target", "y", "--split", "test=0.3"),
    ("train", "rows", *MLP, "--head", "riemann:16", "--name", "fitted"),
    ("eval", "fitted", "rows", "--name", "fits"),
)
EVAL = {
    "value": ("eval", "value", "arithmetic-xval"),
    "token": ("eval", "token", "arithmetic-p1000"),
    "writer": ("eval", "writer", "arithmetic-digits", "--fill", "answers"),
    "judge": ("eval", "judge", "odd-p1000"),
    "fitted": ("eval", "fitted", "rows"),
}
COMPARE = (("compare", "{name}"), ("report", "{name}"))
WEATHER = (
    *("gen", "temperature", "--from", "field", "--rows", "20"),
    *("--stations", "4", "--days", "1"),
)
# This run is killed, and then resumes from a checkpoint.
BEGUN = (
    *("train", "arithmetic-xval", "--preset", "nano,layers=1,width=16,heads=2", "--batch", "8"),
    *("--steps", "60", "--checkpoint-every", "1", "--name", "begun"),
)
# The commands that read each file.
READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    **{
        f"data/arithmetic/*/{file}": (("encode", "--scheme", "p10", "arithmetic"),)
        for file in ("train-00000.jsonl", "manifest.json", "files.jsonl")
    },
    "encoded/arithmetic-xval/*/train-00000.parquet": (("train", "arithmetic-xval", *NANO),),
    "encoded/arithmetic-xval/*/test-00000.parquet": (EVAL["value"],),
    "encoded/arithmetic-xval/*/scheme.json": (("train", "arithmetic-xval", *NANO), EVAL["value"]),
    "encoded/arithmetic-xval/*/manifest.json": (EVAL["value"], ("show", "arithmetic-xval")),
    "encoded/arithmetic-xval/*/files.jsonl": (EVAL["value"], ("verify", "arithmetic-xval")),
    "encoded/odd-p1000/*/train-00000.parquet": (
        ("train", "odd-p1000", *NANO),
        ("train", "odd-p1000", *NANO, "--objective", "classify"),
    ),
    "encoded/odd-p1000/*/test-00000.parquet": (EVAL["judge"],),
    "encoded/odd-p1000/*/scheme.json": (("encode", "--reuse-encoding", "odd-p1000", "rows.jsonl"),),
    "encoded/arithmetic-digits/*/test-00000.parquet": (EVAL["writer"],),
    "model/value/*/model.json": (EVAL["value"],),
    "model/value/*/scheme.json": (EVAL["value"],),
    "model/value/*/weights.safetensors": (EVAL["value"],),
    "model/value/*/timing.json": (EVAL["value"],),
    "model/value/*/metrics.jsonl": (("compare", "values", "--tokens-to", "loss<=1"),),
    "model/value/*/manifest.json": (EVAL["value"], ("lineage", "value")),
    **{
        f"model/{name}/*/model.json": (EVAL[name],)
        for name in ("judge", "token", "writer", "fitted")
    },
    "model/fitted/*/weights.safetensors": (EVAL["fitted"],),
    "model/fitted/*/timing.json": (EVAL["fitted"],),
    "report/values/*/report.json": COMPARE,
    "report/values/*/predictions.parquet": (*COMPARE, ("diagnose", "values")),
    "report/values/*/timing.json": COMPARE,
    "report/values/*/manifest.json": (*COMPARE, ("ls",), ("show", "values")),
    **{
        f"report/{name}/*/{file}": COMPARE
        for name in ("answers", "labels", "fits")
        for file in ("report.json", "predictions.parquet")
    },
    **{
        f"probe/line/*/{file}": (("figure", "vary", "line", "--out", "line.png"),)
        for file in ("probe.json", "points.parquet", "seen.parquet")
    },
    "table/rows/*/table.json": (("train", "rows", *MLP),),
    "table/rows/*/rows-00000.parquet": (("train", "rows", *MLP), EVAL["fitted"]),
    "table/rows/*/manifest.json": (("train", "rows", *MLP),),
    **{
        f"field/field/*/field.zarr/{file}": (WEATHER,)
        for file in ("zarr.json", "2m_temperature/zarr.json", "2m_temperature/c.0.0.0")
    },
}
# Damaged files of a draft need not be rejected: the run may restart.
DRAFTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "model/begun/.draft-*/receipts/checkpoint.json": (BEGUN,),
    "model/begun/.draft-*/receipts/budget.json": (BEGUN,),
    "model/begun/.draft-*/checkpoint-*.safetensors": (BEGUN,),
}


def readers() -> list[tuple[str, ...]]:
    """Return one of the reading commands per command name, except names used by the chain."""
    every = [
        tuple(word.format(name=pattern.split("/")[1]) for word in command)
        for pattern, commands in READERS.items()
        for command in commands
    ]
    first = {command[0]: command for command in reversed(every)}
    for command in (*BUILD, ["figure"]):  # the plotting library's threads do not survive a fork
        first.pop(command[0], None)
    return list(first.values())


def prepare(folder: Path) -> None:
    """Write the files that ``BUILD`` reads, and a field in ``folder / artifacts``."""
    folder.mkdir()
    (folder / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "rows.jsonl").write_text('{"text": "one 1.5 and 2"}\n')
    lines = [f"{x},{x * x % 7},{'uvw'[x % 3]},{1.5 * x + x % 3}" for x in range(60)]
    (folder / "rows.csv").write_text("\n".join(["a,b,c,y", *lines]))
    times = fakefields.hours(20 * 24)
    fakefields.make(folder / "artifacts", times, fakefields.waves(times, 256))
