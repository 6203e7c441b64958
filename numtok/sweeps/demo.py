"""demo: encodes the shipped sample with every scheme, then compares three schemes on arithmetic.

Everything runs in this process. Each step is an ordinary artifact, so a repeated demo reuses what
exists, and an interrupted one resumes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from numtok.encoding.schemes.base import SCHEMES
from numtok.stages import compare, encode, eval, gen, train
from numtok.stages.compare import Comparison
from numtok.store.store import Store

#: Schemes that are trained: a value channel, triples of digits, and single digits.
TRAINED = ("xval", "p1000", "digits")
#: First the metric by which the leaderboard is sorted.
METRICS = ("r2", "median-relative-error")
_SAMPLE = Path(__file__).parents[1] / "data" / "sample" / "era5-uk.jsonl"
_TASK = "arithmetic,operands=2,low=1.00,high=9.99"
_ROWS, _SPLIT = 20_000, "validation=0.01,test=0.05"
_PRESET = "nano,layers=2,width=64"

#: Called before each step with the words of its command, and after it with the REF.
Announce = Callable[[Sequence[str]], None]


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """Result of ``numtok demo``.

    sample
        REFs of the encoded sample, keyed by scheme.
    models
        REFs of the models, keyed by scheme.
    """

    sample: dict[str, str]
    models: dict[str, str]
    comparison: Comparison


def run(steps: int, store: Store, announce: Announce, made: Callable[[str], None]) -> DemoResult:
    """Run the demo, or return the existing results. Raises the errors of the stages."""
    shown = _SAMPLE
    if shown.is_relative_to(Path.cwd()):
        shown = shown.relative_to(Path.cwd())
    schemes = [name for name in SCHEMES if not SCHEMES.required(name)]
    announce(["encode", "--scheme", "SCHEME", str(shown)])
    sample = {
        name: encode.run(encode.Config((str(shown),), scheme=name), store, _ignore).ref
        for name in schemes
    }
    made(f"{len(sample)} encodings of {_SAMPLE.stem}; numtok ls lists them")
    announce(["gen", _TASK, "--rows", str(_ROWS), "--split", _SPLIT, "--name", "demo"])
    config = gen.Config(_TASK, samples=_ROWS, split=_SPLIT, name="demo")
    data = gen.run(config, store, _ignore).ref
    made(data)
    models, reports = {}, []
    for scheme in TRAINED:
        announce(["encode", "--scheme", scheme, data])
        encoded = encode.run(encode.Config((data,), scheme=scheme), store, _ignore).ref
        made(encoded)
        announce(["train", encoded, "--preset", _PRESET, "--steps", str(steps)])
        training = train.Config(encoded, preset=_PRESET, steps=steps)
        models[scheme] = train.run(training, store, _ignore).artifact.ref
        made(models[scheme])
        announce(["eval", models[scheme], encoded, "--intervals", "no"])
        evaluation = eval.Config(models[scheme], encoded, intervals="no")
        reports.append(eval.run(evaluation, store, _ignore).artifact.ref)
        made(reports[-1])
    announce(["compare", *reports])
    comparison = compare.run(compare.Config(tuple(reports), metrics=METRICS), store)
    return DemoResult(sample=sample, models=models, comparison=comparison)


def _ignore(*progress: object) -> None:
    """Show no progress: each step takes seconds."""
