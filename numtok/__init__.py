"""Compare number encodings for language models: how models read numbers and how they write them.

The names of ``dir(numtok)`` are the public API. The folders and modules of the package:

analysis/          profiles of data; probes, figures and panels of models and reports
cli/               the command line: one thin file per command
data/              data before encoding: rows of files, tables, generators and downloads.
                   No torch
encoding/          texts to tokens and values and back: schemes, tokenizers, shards. No torch
evaluation/        predictions, baselines and reports
hf/                integration with transformers: Trainer and from_pretrained
library/           the Python library: the names below, each imported on first use
metrics/           metrics: pure functions of true values and predictions. One file each, no torch
models/            models: a trunk, an embedder, heads, an objective; decoding of numbers
numerals/          numbers in text: from bytes to spans, values and exactly rounded decimals
settings/          the settings of each command, each declared once
stages/            the stages: each reads artifacts or files and writes one artifact
store/             artifacts, complete or absent, and engines that run independent work
sweeps/            sweeps and races: many experiments, run through the stages
training/          from rows to a model: steps, checkpoints, curricula, and model files
arrays.py          names of array types
config.py          numtok.toml, environment variables, and their precedence
contracts.py       contract suites: checks of registry parts, each up to its first failure
declaration.py     a setting of a command or a part: declared, read, checked, written
documents.py       small files that a user names, TOML and JSON, with size limits
errors.py          errors that a user can cause, one class per kind, each with its exit code
files.py           every file operation, behind one object that tests can make fail
kernels.py         numba, set up once, and its cache of compiled kernels
machine.py         cores and memory available to a process
names.py           names of artifacts, and several names in one word
plugins.py         plugin folders, attribution of their errors, and their contracts
part_class.py      checks of what the class of a part declares
registry.py        a public name is a file name; spec strings with settings
reports.py         a report and its predictions, as eval writes and compare reads them
row.py             a row of data, and the names of its fields in all stages
seeds.py           random generators as a pure function of a key
setting_names.py   names of settings, also earlier ones
setting_values.py  types of settings, and how values are written
sklearn.py         a scikit-learn regressor
stored_json.py     typed JSON read back from disk
version.py         the version
__main__.py        python -m numtok
"""

import pkgutil
from typing import Any

from numtok.version import __version__ as __version__

#: The public names, and the object in ``numtok.library`` that each is imported from on first use.
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
    "predict": "commands:predict",
    "probe": "commands:probe",
    "profile": "commands:profile",
    "race": "commands:race",
    "read_answer": "answers:read_answer",
    "score": "commands:score",
    "score_answers": "answers:score_answers",
    "sweep": "commands:sweep",
    "table": "commands:table",
    "train": "commands:train",
}
#: Earlier names, which still work; ``dir(numtok)`` does not list them.
_FORMER = {"nupa": "commands:nupa"}


def __getattr__(name: str) -> Any:
    where = _PUBLIC.get(name) or _FORMER.get(name)
    if where is None:
        raise AttributeError(f"module 'numtok' has no attribute {name!r}")
    public = globals()[name] = pkgutil.resolve_name(f"numtok.library.{where}")
    return public


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__"])
