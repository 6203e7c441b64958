"""Compare number encodings for language models: how models read numbers and how they write them.

The public API consists of the names in ``dir(numtok)``. Folders and modules of the package:

analysis/            data profiles; probes, figures and panels for models and reports
cli/                 the command line, with one thin module per command
data/                data before encoding: row files, tables, generators and downloads.
                     Does not import torch
encoding/            conversion of texts to tokens and values, and back: schemes, tokenizers,
                     shards. Does not import torch
evaluation/          predictions, baselines and reports
hf/                  integration with transformers: Trainer and from_pretrained
library/             implementation of the public API; each name is imported on first use
metrics/             metrics, one per file: pure functions of true values and predictions.
                     Does not import torch
models/              models (trunk, embedder, heads, objective), and decoding of numbers
numerals/            numbers in text: their spans, values and exactly rounded decimals
settings/            command settings, each declared once
stages/              stages, each of which reads artifacts or files, then writes or returns a result
store/               artifacts, and engines that run independent units of work
sweeps/              sweeps and races: many experiments, run through the stages
training/            training: steps, checkpoints, curricula, and model files
arrays.py            type aliases for NumPy arrays
config.py            numtok.toml, environment variables, and their precedence
contracts.py         contract suites: checks that every registered class must pass
declaration.py       declaration of settings, for commands and registered parts
documents.py         safe reading of small TOML and JSON files from the user
errors.py            errors that users can cause: one class per kind, each with its exit code
files.py             all file operations, behind one object that tests can replace
interrupts.py        a context in which interrupts are blocked
kernels.py           compiled functions: how they are declared, loaded and called
kernel_numba.py      compilation of a kernel with numba, to object code that runs without it
kernel_files.py      files of compiled kernels
kernel_types.py      types of the arguments and results of kernels
machine.py           CPU cores and memory that this process may use
names.py             valid artifact names, lists of names in one string, and nouns with counts
plugin_checks.py     contract suites of plugins, run by check and on first use
plugins.py           plugin folders, and the attribution of errors to plugins
part_class.py        checks on the declarations in a registered class
registry.py          registries: lookup by file name, and spec strings with settings
reports.py           report artifacts, which eval writes and compare reads
row.py               one row of input data, and the column names for its fields
seeds.py             random numbers as a pure function of a key
setting_names.py     earlier names of settings, and names of options and arguments in messages
setting_scope.py     rejection of settings that do not apply, such as settings of tables for texts
setting_values.py    types of setting values, and how they are written
setting_versions.py  settings that are part of an artifact's version
setting_words.py     command-line words that reproduce settings
sklearn.py           a scikit-learn regressor
stored_json.py       typed reading of JSON files that numtok stored
version.py           the version
__main__.py          entry point of python -m numtok
"""

import pkgutil
from typing import Any

from numtok.version import __version__ as __version__

#: The public names, and the object in ``numtok.library`` that is imported when one is first used.
_PUBLIC = {
    "Codec": "codec:TextCodec",
    "TextRegressor": "text_regressor:TextRegressor",
    "batch": "batch:batch",
    "check_visibility": "batch:check_visibility",
    "compare": "commands:compare",
    "embedder": "embedder:embedder",
    "encode": "commands:encode",
    "error_analysis": "commands:error_analysis",
    "eval": "commands:eval",
    "explain": "commands:explain",
    "export": "commands:export",
    "features": "commands:features",
    "fetch": "commands:fetch",
    "figure": "commands:figure",
    "gen": "commands:gen",
    "head": "head:head",
    "load": "stored:load",
    "number_loss": "number_loss:number_loss",
    "predict": "commands:predict",
    "probe": "commands:probe",
    "profile": "commands:profile",
    "race": "commands:race",
    "read_answer": "answers:read_answer",
    "fidelity": "commands:fidelity",
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
