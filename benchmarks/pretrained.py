"""How much each number encoding gains from pretraining.

    python benchmarks/pretrained.py --folder runs/pretrained              # three hours of two cores
    python benchmarks/pretrained.py --folder runs/quick --quick           # a test run of minutes

A small GPT-2 trains for an hour on English text with many numbers: the documentation in this Python
and in libraries that numtok needs. It is saved with transformers and then used as a trunk.

`native`, `p1000`, `xval`, `numgpt` and `digits` are fine-tuned on one task: sums, differences and
products in words. All weights train (`full`); for `native` and `xval`, there are also runs with
only `lora` or only `heads`. `random` has the same trunk with random weights. The last column is the
gain from pretraining, `full` minus `random`, seed by seed.

The same command resumes an interrupted run: pretraining from its last checkpoint, everything else
from the store.
"""

import argparse
import ast
import json
import os
import sysconfig
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional as F

import numtok
from numtok.evaluation.comparison.seeds import seed_statistics
from numtok.reports import Figure

SCHEMES = ("native", "p1000", "xval", "numgpt", "digits")
ALSO_KEPT = ("native", "xval")  # also with lora, and with heads only
WHOLE = 5e-4  # learning rate if all weights train, close to that of pretraining
METRICS = ("signed-log-r2", "median-relative-error", "exact-match,digits=3")
LIBRARIES = ("numpy", "pandas", "scipy", "sklearn", "torch", "transformers", "xarray")
_END = "<|endoftext|>"
_CHECKPOINT = 60.0  # seconds


@dataclass(frozen=True)
class Size:
    """All sizes of the benchmark; ``minutes`` is the time of pretraining."""

    layers: int = 4
    width: int = 256
    context: int = 128
    words: int = 8192
    minutes: float = 60.0
    batch: int = 16
    rows: int = 20_000
    steps: int = 800
    seeds: int = 3


QUICK = Size(2, 64, 64, 600, 0.25, 8, 600, 30, 1)


# --- the model ---------------------------------------------------------------------------------


def documentation() -> Iterator[str]:
    """Yield the docstrings of the standard library and of :data:`LIBRARIES`, file by file, without
    repeats.
    """
    places, seen = sysconfig.get_paths(), set[str]()
    own = (
        path for path in Path(places["stdlib"]).rglob("*.py") if "site-packages" not in path.parts
    )
    others = (path for name in LIBRARIES for path in (Path(places["purelib"]) / name).rglob("*.py"))
    for path in sorted((*own, *others)):
        if {"test", "tests", "idlelib"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef
        found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
        texts = [text for text in dict.fromkeys(found) if text and text not in seen]
        seen.update(texts)
        if texts:
            yield "\n\n".join(texts)


def tokenizer(texts: list[str], folder: Path, size: Size) -> Tokenizer:
    """Return a byte-level BPE trained on the texts, as in GPT-2, or the stored one."""
    path = folder / "tokenizer.json"
    if path.is_file():
        return Tokenizer.from_file(str(path))
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size.words,
        special_tokens=[_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(path))
    return made


def pretrained(folder: Path, size: Size, console: Console) -> None:
    """Train the model and save it with transformers, unless it exists."""
    from transformers import GPT2Config, GPT2LMHeadModel

    if (folder / "model.safetensors").is_file():
        return
    texts = [*documentation()]
    words = tokenizer(texts, folder, size)
    ids = [one.ids for one in words.encode_batch([text + _END for text in texts])]
    tokens = torch.tensor([token for one in ids for token in one])
    held = len(tokens) // 20
    learnt, looked_at = tokens[held:], tokens[:held]
    torch.manual_seed(0)
    end = words.token_to_id(_END)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=words.get_vocab_size(),
            n_positions=size.context,
            n_embd=size.width,
            n_layer=size.layers,
            n_head=max(2, size.width // 64),
            bos_token_id=end,
            eos_token_id=end,
            resid_pdrop=0.0,  # few rows repeat
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), 6e-4, weight_decay=0.1)
    checkpoint, spent, step = folder / "checkpoint.pt", 0.0, 0
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        spent, step = state["spent"], state["step"]
    saved = began = time.monotonic() - spent
    saved += spent
    while (spent := time.monotonic() - began) < 60 * size.minutes:
        random = np.random.default_rng((0, step))
        loss = _loss(model, learnt, random.integers(0, len(learnt) - size.context, size.batch))
        # The learning rate falls with the remaining time.
        for group in optimizer.param_groups:
            group["lr"] = 6e-4 * min(1, (step + 1) / 100) * (1 - spent / (60 * size.minutes))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if time.monotonic() - saved > _CHECKPOINT:
            _save(checkpoint, model, optimizer, spent, step)
            saved = time.monotonic()
            console.print(f"step {step}, loss {loss.item():.3f}")
    model.eval()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        places = np.arange(0, len(looked_at) - size.context, size.context)[:200]
        console.print(
            f"pretrained: {step} steps over {len(learnt):,} tokens, held-out loss "
            f"{_loss(model, looked_at, places).item():.3f}"
        )
    model.save_pretrained(folder)
    checkpoint.unlink(missing_ok=True)


def _loss(model: Any, tokens: torch.Tensor, places: Any) -> torch.Tensor:
    context = model.config.n_positions
    rows = torch.stack([tokens[place : place + context] for place in places.tolist()])
    with torch.autocast("cpu", torch.bfloat16):  # nearly twice as fast if the CPU has it
        logits = model(rows).logits[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())


def _save(path: Path, model: Any, optimizer: Any, spent: float, step: int) -> None:
    """Save a checkpoint atomically."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state | {"spent": spent, "step": step}, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


# --- the task ----------------------------------------------------------------------------------

#: Stories with the operation that gives the answer; only the words show which one it is.
STORIES = (
    ("A crate of {x} kg and a sack of {y} kg are on the scales, which together show", "+"),
    ("The file had {x} lines, and after {y} more were added its number of lines is", "+"),
    ("The first call takes {x} seconds and the second one {y} seconds, in total", "+"),
    ("From a rod of {x} cm a piece of {y} cm was cut off, so what is left measures", "-"),
    ("The buffer held {x} bytes until {y} of them were removed, and now it holds", "-"),
    ("It was {x} degrees at noon and {y} degrees less at night, which is", "-"),
    ("Each of the {y} boxes weighs {x} kg, so that all of them weigh", "*"),
    ("A loop of {y} rounds takes {x} ms for every round, which is altogether", "*"),
)


def story(random: np.random.Generator, split: str) -> dict[str, Any]:
    """Return one row: ``... which together show 12.5``."""
    words, operation = STORIES[int(random.integers(len(STORIES)))]
    x = round(float(random.uniform(1, 100)), 1)
    y = float(random.integers(2, 10)) if operation == "*" else round(float(random.uniform(1, x)), 1)
    answer = {"+": x + y, "-": x - y, "*": x * y}[operation]
    shown = f"{y:.0f}" if operation == "*" else f"{y}"
    before = words.format(x=x, y=shown) + " "
    literal = f"{answer:.1f}"
    return {
        "text": before + literal,
        "split": split,
        "targets": {"answer": [[len(before), len(before) + len(literal)]]},
        "answer_start": len(before),
        "group": {"operation": {"+": "sum", "-": "difference", "*": "product"}[operation]},
    }


def rows(path: Path, size: Size) -> Path:
    """Write the task as JSON Lines. All texts are different, within and between splits."""
    if path.is_file():
        return path
    random, seen, made = np.random.default_rng(1), set[str](), list[dict[str, Any]]()
    shares = {"test": size.rows // 10, "validation": size.rows // 20, "train": size.rows}
    for split, count in shares.items():
        while count:
            row = story(random, split)
            if row["text"] not in seen:
                seen.add(row["text"])
                made.append(row)
                count -= 1
    path.write_text("".join(json.dumps(row) + "\n" for row in made), "utf-8")
    return path


# --- the table ---------------------------------------------------------------------------------


def presets(model: Path, scheme: str) -> dict[str, str]:
    """Return the presets, by how the trunk is trained."""
    kept = ("lora", "heads") if scheme in ALSO_KEPT else ()
    whole = {"full": f"hf:{model}", "random": f"hf:{model},random=yes"}
    return whole | {tune: f"hf:{model},tune={tune}" for tune in kept}


def figures(data: Any, preset: str, seed: int, size: Size, store: Path) -> dict[str, float | None]:
    """Return the metrics of one run on the test split."""
    trained = numtok.train(
        data,
        preset=preset,
        objective="ar:answer",
        learning_rate=None if "tune=" in preset else WHOLE,
        steps=size.steps,
        batch=2 * size.batch,
        seed=seed,
        store=store,
    )
    report = numtok.eval(trained, data, split="test", metrics=METRICS, store=store)
    return {name: report.metrics[name].value for name in METRICS}


def spread(values: list[float | None]) -> str:
    """Return the mean and standard deviation over seeds."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{mean(known):.3f}" + (f" ± {stdev(known):.3f}" if len(known) > 1 else "")


def gain(full: list[float | None], random: list[float | None]) -> str:
    """Return the mean gain from pretraining over seeds; with several seeds, also Student's
    interval."""
    pairs = [(a, b) for a, b in zip(full, random, strict=True) if a is not None and b is not None]
    if not pairs:
        return "-"
    found = seed_statistics([Figure(a - b, None, None, 0) for a, b in pairs])
    if found.low is None or found.high is None:
        return f"{found.value:+.3f}"
    return f"{found.value:+.3f} [{found.low:.3f}, {found.high:.3f}]"


def main() -> None:
    """Build or reuse everything, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where all of it is kept")
    parser.add_argument("--jobs", type=int, default=2, help="models that learn side by side")
    parser.add_argument("--quick", action="store_true", help="tiny, to see that it works")
    given = parser.parse_args()
    size, console = QUICK if given.quick else Size(), Console(width=140)
    model, store = given.folder / "gpt2", given.folder / "artifacts"
    pretrained(model, size, console)
    path = rows(given.folder / "stories.jsonl", size)
    data = {
        scheme: numtok.encode(
            path, scheme=scheme, text_tokenizer=f"hf:{model}", name=f"stories-{scheme}", store=store
        )
        for scheme in SCHEMES
    }
    found: dict[tuple[str, str], list[dict[str, float | None]]] = {}
    os.environ["NUMTOK_THREADS"] = str(max(1, (os.cpu_count() or 1) // given.jobs))
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as jobs:
        # One seed after the other, so that results of the first seed come before those of all.
        runs = {
            (scheme, tune, seed): jobs.submit(figures, data[scheme], preset, seed, size, store)
            for seed in range(size.seeds)
            for scheme in SCHEMES
            for tune, preset in presets(model, scheme).items()
        }
        for (scheme, tune, seed), run in runs.items():
            found.setdefault((scheme, tune), []).append(run.result())
            console.print(scheme, tune, seed, run.result())
    (given.folder / "figures.json").write_text(
        json.dumps({" ".join(key): values for key, values in found.items()}, indent=1)
    )
    for metric in METRICS:
        of = {key: [one[metric] for one in runs] for key, runs in found.items()}
        made = table(metric, ["scheme"], ["full", "lora", "heads", "random", "pretraining gives"])
        for scheme in SCHEMES:
            cells = [
                spread(of[scheme, tune]) if (scheme, tune) in of else ""
                for tune in ("full", "lora", "heads", "random")
            ]
            made.add_row(scheme, *cells, gain(of[scheme, "full"], of[scheme, "random"]))
        console.print(made)


if __name__ == "__main__":
    main()
