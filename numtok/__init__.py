"""Compare the ways of putting numbers into a language model and getting them out again.

analysis/          a closer look at data, models and reports
cli/               the command line: one thin file a command
data/              data before it is encoded: rows of files, tables, and what makes or brings
                   them. No torch
encoding/          texts to tokens and values, and back: schemes, what lies around numbers,
                   shards. No torch
evaluation/        what a model says of rows, beside what needs no model, as a report
hf/                numtok with transformers: in a Trainer, and models by from_pretrained
library/           numtok in a program of your own: the names below, each imported when used
metrics/           metrics: pure functions of truth and prediction. One file each, no torch
models/            models: a trunk, an embedder, heads, an objective; and numbers out of them
numerals/          numbers in text: from bytes to spans, values and exactly rounded decimals
settings/          what each command may be asked for, each setting declared once
stages/            the stages: each reads artifacts or files and writes one artifact; they meet
                   on disk
store/             artifacts, complete or absent, and where independent work runs
sweeps/            sweeps: grids of experiments. A sweep drives the stages, so it stands above
                   them
training/          from rows to a model: steps, checkpoints, curricula, and the files of a model
arrays.py          names of array types
config.py          numtok.toml, the environment, and which of them wins
contracts.py       contract suites: checks of a thing of a registry, run to their first break
declaration.py     a setting of a command or a part: declared, read, checked, written
documents.py       small files that a user names, TOML and JSON, within bounds
errors.py          what a user can cause, one class a kind, each with its exit code
files.py           every file operation, behind one object that tests can make fail
kernels.py         numba, set up once: where compiled kernels are kept
machine.py         cores and memory that a process may use, of a machine or a part of it
names.py           names of artifacts, and several names in one word
plugins.py         folders of plugins, whose fault an error is, and their contracts
registry.py        a public name is a file name; spec strings with settings
reports.py         what eval writes and compare reads: a report, its predictions
row.py             a row of data, and the names that its fields have in all stages
seeds.py           random generators as a pure function of a key
sklearn.py         a fitted table as a regressor of scikit-learn
stored_json.py     JSON read back from a disk, by a type that says what it may be
version.py         the version
__main__.py        python -m numtok
"""

import pkgutil
from typing import Any

from numtok.version import __version__ as __version__

#: The public names, and where each is found when it is first used.
_PUBLIC = {
    "Codec": "codec:TextCodec",
    "batch": "batch:batch",
    "check_visibility": "batch:check_visibility",
    "compare": "commands:compare",
    "embedder": "embedder:embedder",
    "encode": "commands:encode",
    "error_analysis": "commands:error_analysis",
    "eval": "commands:eval",
    "explain": "commands:explain",
    "export": "commands:export",
    "fetch": "commands:fetch",
    "figure": "commands:figure",
    "gen": "commands:gen",
    "head": "head:head",
    "load": "stored:load",
    "nupa": "commands:nupa",
    "predict": "commands:predict",
    "probe": "commands:probe",
    "profile": "commands:profile",
    "race": "commands:race",
    "sweep": "commands:sweep",
    "table": "commands:table",
    "train": "commands:train",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'numtok' has no attribute {name!r}")
    found = globals()[name] = pkgutil.resolve_name(f"numtok.library.{_PUBLIC[name]}")
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
