"""Speed of predicting numbers with eval, compared with simpler implementations.

    python benchmarks/eval.py

A `nano` model with random weights predicts the targets of two sets of rows. *arithmetic* has rows
of one length. In *mixed*, half of the rows are lists of varying length (a few numbers to a
hundred), and every fourth number is a target. There are up to five methods, each in a separate
process:

- `eval`: `Predictor.run` of numtok, with numbers, densities, CRPS and quantiles.
- `reading`: the same without densities, CRPS and quantiles, which no other method computes.
- `plain`: rows in their order, --batch at a time, padded to the longest, with logits of the whole
  vocabulary at all positions. Causal models have no cache: each further token takes a pass, until
  all numbers of a batch have ended. They have a copy of a row for each of its targets, and use only
  the first --plain rows.
- `cached` (causal models): a simple cache. The text before each number is a separate prompt.
  Prompts of similar length, --batch at a time, are padded on the left. One pass over them is
  followed by one per further token, until all numbers of a batch have ended. `torch.cat` appends
  keys and values, and only the last position has logits.
- `naive`: one pass per token of each number, one number at a time, for some of the numbers.

All methods decode greedily with the scheme's grammar. `same` is the fraction of numbers that the
simpler implementations predict as eval does. It is close to 1, because rounding can change the
order of nearly equal logits.

Speeds are numbers per second of one core (CPU seconds, one thread), which other work on the machine
affects less. MiB are the peak memory of a method beyond model and data. Nothing is asserted;
compare only columns of one run.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from _shared import table  # type: ignore[import-not-found]
from numpy.typing import NDArray
from rich.console import Console
from torch.nn import functional as F

from numtok.encoding.codec import Codec
from numtok.encoding.schemes.base import Next
from numtok.encoding.splits import read_split
from numtok.encoding.stored_codec import read_codec
from numtok.evaluation.predict import AUTOREGRESSIVE, PARALLEL, Options, Predictor
from numtok.models.attention import Transformer
from numtok.models.batches import Batch
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.models.inputs import single
from numtok.models.model import Model, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.presets import preset
from numtok.models.settings import ModelSettings
from numtok.models.steps import DecodingStates
from numtok.models.training_batch import TrainingBatch, masked_batch, shift_right
from numtok.models.vocabulary import Vocabulary
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config as GenConfig
from numtok.stages.gen import run as gen
from numtok.store.store import Store
from numtok.training.model_files import LoadedModel
from numtok.training.model_json import Trained

TASK = "arithmetic,operands=4,decimals=2,low=-99.99,high=99.99"
MODELS = (
    ("p1000", "mlm:targets"),
    ("xval", "mlm:targets"),
    ("p1000", "ar"),
    ("digits", "ar"),
)
WAYS = ("eval", "reading", "plain", "cached", "naive")
BY_HAND = WAYS[2:]
Past = list[tuple[torch.Tensor, torch.Tensor]]  # keys and values [B, H, T, E] of each block
WORDS = ("depth", "at", "and", "then", "mean of the last", "rises to", "was", "over")


@dataclass(frozen=True)
class Job:
    """A method for one model and one set of rows."""

    store: Path
    data: str
    scheme: str
    objective: str
    way: str
    batch: int
    plain: int  # rows of the method plain, if causal
    few: int  # numbers of the method naive


class Measured(NamedTuple):
    """Measurements of a method; ``literals`` has the predictions by index of the target."""

    numbers: int
    seconds: float
    bytes: int
    literals: dict[int, str]


# --- the rows ----------------------------------------------------------------------------------


def mixed(rows: int) -> list[str]:
    """Return lists of varying length as lines of JSONL. Every fourth number and the last are
    targets."""
    random = np.random.default_rng(0)
    lines = []
    for row in range(rows):
        text, targets = "", {}
        count = int(np.clip(np.exp(random.normal(np.log(8), 0.8)), 2, 100))
        for number in range(count):
            text += f"{random.choice(WORDS)} "
            literal = f"{random.normal() * 10.0 ** random.integers(-2, 4):.4g}"
            if number % 4 == 3 or number == count - 1:
                targets[f"y{number}"] = [[len(text), len(text) + len(literal)]]
            text += f"{literal} "
        lines.append(json.dumps({"id": f"mixed {row}", "text": text, "targets": targets}))
    return lines


def prepare(store: Store, rows: int) -> dict[str, tuple[str, ...]]:
    """Return the inputs of each set of rows."""
    made = gen(GenConfig(TASK, samples=rows), store, quiet).artifact
    assert made is not None
    path = store.root / "mixed.jsonl"
    half = [line for part in made.path.glob("train-*.jsonl") for line in part.open()][: rows // 2]
    lines = [*map(str.strip, half), *mixed(rows - len(half))]
    order = np.random.default_rng(1).permutation(len(lines))
    path.write_text("".join(lines[place] + "\n" for place in order))
    return {"arithmetic": (made.ref,), "mixed": (str(path),)}


def quiet(*_: object) -> None:
    """Discard progress and notes."""


# --- the ways ----------------------------------------------------------------------------------


class Plain:
    """Predicts the numbers of a batch with full passes; the scheme sets the allowed tokens."""

    def __init__(self, model: Model, codec: Codec, longest: int) -> None:
        self.model, self.codec, self.longest = model, codec, longest
        self.next: Callable[[tuple[int, ...]], Next] = cache(codec.scheme.next)

    @torch.no_grad()
    def read(self, batch: Batch, chosen: NDArray[np.bool_]) -> list[str]:
        """Return the literals of the chosen numbers."""
        rows, starts = batch.number_row[chosen], batch.number_start[chosen]
        if not self.model.objective.causal:
            lengths = batch.number_length[chosen]
            hidden = self._hidden(masked_batch(batch, batch.number_tokens(chosen)))
            logits = self.model.token_head(hidden).numpy()
            paths: list[tuple[int, ...]] = [()] * len(rows)
            for place in range(int(lengths.max())):
                for which in np.flatnonzero(place < lengths).tolist():
                    scores = logits[rows[which], starts[which] + place]
                    paths[which] = self._longer(paths[which], scores)[0]
            return self._literals(paths, hidden, rows, starts)
        tokens, values = shift_right(batch)
        room = self.codec.scheme.tokens_per_number or self.longest
        tokens = np.pad(tokens, ((0, 0), (0, room)))[rows]
        values = np.pad(single(values), ((0, 0), (0, room)), constant_values=1)[rows]
        paths, going = [()] * len(rows), np.ones(len(rows), np.bool_)
        for place in range(room):
            end = int(starts[going].max()) + place + 1
            if end > self.model.settings.context:
                break
            hidden = self._hidden(seen(tokens[:, :end], values[:, :end]))
            logits = self.model.token_head(hidden).numpy()
            for which in np.flatnonzero(going).tolist():
                at = starts[which] + place
                paths[which], going[which] = self._longer(paths[which], logits[which, at])
                if going[which]:
                    tokens[which, at + 1] = paths[which][-1] + self.codec.number_first
                    values[which, at + 1] = 1
            if place == 0:
                first = hidden
            if not going.any():
                break
        if self.codec.scheme.tokens_per_number is None:
            paths = [() if open_ else path for path, open_ in zip(paths, going, strict=True)]
        return self._literals(paths, first, np.arange(len(rows)), starts)

    def read_slowly(self, batch: Batch, chosen: NDArray[np.bool_]) -> list[str]:
        """Return the single chosen number of a batch of one row, with one pass per token."""
        if not self.model.objective.causal:
            for _ in range(int(batch.number_length[chosen][0]) - 1):
                self.read(batch, chosen)  # nothing is cached between tokens
        return self.read(batch, chosen)

    def _hidden(self, example: TrainingBatch) -> torch.Tensor:
        given = self.model.given(example)
        return self.model.hidden(given.tokens, given.values, given.real)

    def _longer(
        self, path: tuple[int, ...], scores: NDArray[np.float32]
    ) -> tuple[tuple[int, ...], bool]:
        """Return the path with the next token, and whether the number continues."""
        allowed, may_end, _ = self.next(path)
        every = np.full(len(scores), may_end)
        first, end = self.codec.number_first, self.codec.text_first
        every[first:end] = allowed
        chosen = int(np.where(every, scores, -np.inf).argmax())
        if not first <= chosen < end:
            return path, False
        width = self.codec.scheme.tokens_per_number
        return (*path, chosen - first), width is None or len(path) + 1 < width

    def _literals(
        self,
        paths: list[tuple[int, ...]],
        hidden: torch.Tensor,
        rows: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> list[str]:
        channel = None
        if self.model.value_head is not None:
            states = hidden[torch.from_numpy(rows), torch.from_numpy(starts)]
            parameters = self.model.value_head(states)
            channel = self.model.value_point(parameters).astype(np.float32)
        tokens = np.array([token for path in paths for token in path], np.uint32)
        lengths = np.array([len(path) for path in paths], np.int32)
        decoded = self.codec.decode_numbers(tokens, lengths, channel)
        return [decoded.literal(index) for index in range(len(paths))]


class Cached(Plain):
    """Predicts the numbers of a causal model with a cache that grows by ``torch.cat``."""

    @torch.no_grad()
    def read(self, batch: Batch, chosen: NDArray[np.bool_]) -> list[str]:
        """Return the literals of the chosen numbers, one per row, with the text before it as
        prompt."""
        before = batch.number_start[chosen] + 1  # tokens of each prompt, with [END] first
        rows, longest = len(before), int(before.max())
        at = np.arange(longest) - (longest - before)[:, None]
        tokens, values = (
            torch.from_numpy(np.take_along_axis(one, np.maximum(at, 0), 1))
            for one in shift_right(batch)
        )
        real, last = torch.from_numpy(at >= 0), torch.from_numpy(before - 1)[:, None]
        mask = torch.ones(longest, longest, dtype=torch.bool).tril() & real[:, None]
        mask |= torch.eye(longest, dtype=torch.bool)  # padding attends to itself, which avoids NaN
        places = torch.from_numpy(at).clamp(min=0)
        past: Past = []
        paths: list[tuple[int, ...]] = [()] * rows
        going = np.ones(rows, np.bool_)
        room = self.codec.scheme.tokens_per_number or self.longest
        for place in range(room):
            state, past = self._extended(tokens, values, places, mask, past)
            if place == 0:
                first = state
            logits = self.model.token_head(state)[:, 0].numpy()
            for which in np.flatnonzero(going).tolist():
                paths[which], going[which] = self._longer(paths[which], logits[which])
            if not going.any():
                break
            local = [path[-1] if path else 0 for path in paths]
            tokens = torch.tensor(local)[:, None] + self.codec.number_first
            values = torch.ones(rows, 1)
            last = last + 1
            places = last.clamp(max=self.model.settings.context - 1)
            real = torch.cat([real, torch.ones(rows, 1, dtype=torch.bool)], dim=1)
            mask = real[:, None]
        if self.codec.scheme.tokens_per_number is None:
            paths = [() if open_ else path for path, open_ in zip(paths, going, strict=True)]
        return self._literals(paths, first, np.arange(rows), np.zeros(rows, np.int64))

    def _extended(
        self,
        tokens_BL: torch.Tensor,
        values_BL: torch.Tensor,
        places_BL: torch.Tensor,
        mask_BLT: torch.Tensor,
        past: Past,
    ) -> tuple[torch.Tensor, Past]:
        """Return the state [B, 1, D] at the last position, and the extended keys and values of each
        block."""
        trunk, grown = cast(Transformer, self.model.trunk), []
        x_BLD = self.model.embedder(tokens_BL, values_BL) + trunk.positions[places_BL]
        blocks: Any = trunk.blocks
        for layer, block in enumerate(blocks):
            q, k, v = (
                part.unflatten(2, (block.heads, -1)).transpose(1, 2)
                for part in block.qkv(block.norm_attention(x_BLD)).chunk(3, dim=2)
            )
            if past:
                k, v = (torch.cat(pair, dim=2) for pair in zip(past[layer], (k, v), strict=True))
            grown.append((k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask_BLT[:, None])
            x_BLD = x_BLD + block.out(y.transpose(1, 2).flatten(2))
            x_BLD = x_BLD + block.down(F.gelu(block.up(block.norm_mlp(x_BLD))))
        return trunk.norm(x_BLD[:, -1:]), grown


def seen(tokens: NDArray[np.int64], values: NDArray[np.float32]) -> TrainingBatch:
    """Return an example in which nothing is masked or predicted."""
    none = np.zeros(0, np.int64)
    real = np.ones(tokens.shape, np.bool_)
    return TrainingBatch(
        tokens=tokens,
        values=values,
        real=real,
        where=none,
        labels=none,
        number_where=none,
        number_values=np.zeros(0, np.float32),
    )


def by_hand(job: Job, predictor: Predictor) -> tuple[list[int], list[str]]:
    """Predict with the methods plain and naive; return indices of targets and their literals."""
    plain = Plain(predictor.loaded.model, predictor.loaded.codec, predictor.longest)
    asked, queries = predictor.asked, np.unique(predictor.asked.queries)
    slow = job.way == "naive"
    places = np.arange(len(asked.numbers))
    if slow:  # some of the numbers, from all rows
        places = places[:: max(1, len(places) // job.few)]
        parts = [places[k : k + 1] for k in range(len(places))]
    else:
        parts = np.split(places, np.searchsorted(asked.queries, queries[job.batch :: job.batch]))
    literals: list[str] = []
    for part in parts:
        # All targets of a row are masked, even if only some of them are predicted.
        of = np.unique(asked.queries[part])
        batch = predictor.batches.of(asked.rows[of])
        hidden = np.isin(asked.queries, of)
        chosen = np.isin(batch.number, asked.numbers[hidden])
        found = (plain.read_slowly if slow else plain.read)(batch, chosen)
        read = batch.number[chosen].tolist()
        literals += [found[read.index(number)] for number in asked.numbers[part].tolist()]
    return places.tolist(), literals


def by_prompts(job: Job, predictor: Predictor) -> tuple[list[int], list[str]]:
    """Predict like :func:`by_hand`, with a prompt per number, grouped by similar length."""
    cached = Cached(predictor.loaded.model, predictor.loaded.codec, predictor.longest)
    asked = predictor.asked
    places = np.argsort(predictor.samples.number_start[asked.numbers], kind="stable")
    literals: list[str] = []
    for part in np.split(places, range(job.batch, len(places), job.batch)):
        batch = predictor.batches.of(asked.rows[asked.queries[part]])
        literals += cached.read(batch, batch.number == asked.numbers[part][batch.number_row])
    return places.tolist(), literals


def without_score(steps: DecodingStates, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return NaN instead of the probability of each number."""
    return np.full(len(tokens), np.nan)


def measure(job: Job) -> Measured:
    """Run one method in its own process."""
    torch.set_num_threads(1)
    store = Store(job.store)
    encoded = store.resolve(f"{job.data}-{job.scheme}", kinds={"encoded"})
    codec, samples = read_codec(encoded), read_split(encoded, "train")
    causal = job.objective == "ar"
    settings = ModelSettings.of(
        preset("nano"),
        vocabulary=codec.vocabulary_size,
        context=samples.longest + 80,
        embedder=EMBEDDERS.build(codec.scheme.defaults.embedder),
        head=HEADS.build(codec.scheme.defaults.head),
        objective=OBJECTIVES.build(job.objective),
    )
    torch.manual_seed(0)
    model = build_model(settings, Vocabulary.of(codec)).eval()
    with torch.no_grad():
        model.get_parameter("token_head.weight").mul_(10)  # so that few logits are nearly equal
        if causal and codec.scheme.tokens_per_number is None:
            # Give numbers about six tokens, as in real text: without training, most never end.
            cast(Transformer, model.trunk).norm.bias[0] = 1.0
            model.get_parameter("token_head.weight")[codec.text_first :, 0] += 0.8
    trained = Trained(
        configuration={},
        seed=0,
        calibration={"deviation": 0.5},
        calibrated_on="train",
        train_mean=0.0,
        samples=0,
        tokens=0,
        steps=0,
        flops=0.0,
    )
    loaded = LoadedModel(artifact=encoded, model=model, codec=codec, trained=trained)
    fill = AUTOREGRESSIVE if causal else PARALLEL
    options = Options(fill=fill, constrained=True, point="mode", draws=0, batch=job.batch)

    def run(predictor: Predictor) -> tuple[list[int], list[str]]:
        if job.way in BY_HAND:
            return (by_prompts if job.way == "cached" else by_hand)(job, predictor)
        if job.way == "reading":
            # Both objects are frozen.
            object.__setattr__(predictor.raw, "distributions", lambda *_: iter(()))
            object.__setattr__(predictor.reader, "score", without_score)
        literals = predictor.run(quiet, quiet).literals.tolist()
        return list(range(len(literals))), literals

    some = samples.sample(job.plain if causal and job.way == "plain" else None)
    run(Predictor(loaded, some.sample(4), options))
    predictor = Predictor(loaded, some, options)  # lists the numbers of the scheme once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    places, literals = run(predictor)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return Measured(len(places), seconds, peak * 1024, dict(zip(places, literals, strict=True)))


# --- the table ---------------------------------------------------------------------------------


def main() -> None:
    """Measure with the given options and print the table."""
    parser = argparse.ArgumentParser(
        description="Measure how fast eval predicts numbers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--plain", type=int, default=256, help="rows of the plain way, if causal")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--few", type=int, default=200, help="numbers of the naive way")
    options = parser.parse_args()
    columns = [*(f"{way}/s" for way in WAYS), *(f"reading : {way}" for way in BY_HAND)]
    columns += ["MiB eval", "MiB plain", "same"]
    title = f"nano, {options.rows:,} rows, batches of {options.batch}"
    shown = table(title, ("rows", "scheme", "objective"), columns)
    os.environ["OMP_NUM_THREADS"] = "1"
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone,
    ):
        store = Store(Path(folder))
        for data, inputs in prepare(store, options.rows).items():
            for scheme in dict.fromkeys(scheme for scheme, _ in MODELS):
                config = EncodeConfig(inputs, scheme=scheme, name=f"{data}-{scheme}", workers=1)
                encode(config, store, quiet)
            for scheme, objective in MODELS:
                sizes = options.batch, options.plain, options.few
                found = {
                    way: alone.submit(
                        measure, Job(store.root, data, scheme, objective, way, *sizes)
                    ).result()
                    for way in WAYS
                    if objective == "ar" or way != "cached"
                }
                shown.add_row(data, scheme, objective, *figures(found))
    Console(width=150).print(shown)


def figures(found: dict[str, Measured]) -> list[str]:
    """Return a row of the table: speeds, ratios, memory and agreement."""
    speed = {way: one.numbers / one.seconds for way, one in found.items()}
    ratio = {way: f"{speed['reading'] / speed[way]:.2f}" for way in BY_HAND if way in found}
    pairs = [
        (found["eval"].literals[place], literal)
        for way in ratio
        for place, literal in found[way].literals.items()
    ]
    return [
        *(f"{speed[way]:,.0f}" if way in found else "" for way in WAYS),
        *(ratio.get(way, "") for way in BY_HAND),
        f"{found['eval'].bytes / 2**20:.0f}",
        f"{found['plain'].bytes / 2**20:.0f}",
        f"{np.mean([same(*pair) for pair in pairs]):.4f}",
    ]


def same(one: str | None, other: str) -> bool:
    """Return whether literals are equal, up to the last bits of a float32."""
    if one is None or one == other:
        return one == other or not np.isfinite(value(other))
    return abs(value(one) - value(other)) <= 1e-4 * (1 + abs(value(one)))


def value(literal: str) -> float:
    """Return the value of a literal; NaN if it is not a number."""
    try:
        return float(literal)
    except ValueError:
        return float("nan")


if __name__ == "__main__":
    main()
