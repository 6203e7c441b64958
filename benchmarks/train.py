"""Training speed of numtok, compared with a plain GPT loop and with matrix products.

    python benchmarks/train.py
    python benchmarks/train.py --preset gpt2 --tokens 1024 --batch 16    # on a GPU, in bfloat16
    python benchmarks/train.py --devices 2 --threads 1                   # ranks versus one rank

Rows are random tokens, all of one length, with four numbers each; the last number is the target:

- *numtok*: numtok's trainer, which makes examples from batches as in training.
- *plain*: a GPT of the same size, written simply in this file and modeled on nanoGPT (pre-norm, one
  projection for queries, keys and values, SDPA; fused AdamW, clipping). It uses prepared tensors,
  has its loss at the same tokens, and no values.

Columns are tokens per second, and the fraction of the measured rate of matrix products. For both
models, this fraction uses the operations that each of them needs. numtok computes the last block
only where tokens are predicted, and is not credited for the rest.

The ratio compares tokens per second, as the median over alternating rounds. For models with a value
head, the last column compares the time per step with that of the same model without value channel
and value head.

``--devices N`` compares numtok's trainer on N ranks with a single rank, on the same rows in the
same batches. *apart* is the speed of N ranks without any communication, compared with one, which is
an upper limit. *memory* is that of a rank's weights, gradients and moments, relative to a single
rank.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import numpy as np
import torch
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F

from numtok.cli.output.printing import Size
from numtok.models.batches import Batch
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.flops import ModelFlops, counted
from numtok.models.heads.base import HEADS, projection
from numtok.models.model import build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.presets import preset
from numtok.models.settings import ModelSettings
from numtok.models.training_batch import TrainingBatch
from numtok.models.trunks.transformer import TransformerTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.seeds import generator
from numtok.training.device import device_of, measured_matmul_rate, peak_memory, tune_malloc, wait
from numtok.training.launch import launch
from numtok.training.ranks import ALONE, Ranks, joined
from numtok.training.trainer import WHOLE_STEP, Execution, Recipe, Trainer

VOCABULARY = {"p1000": 1189, "xval": 271}  # for arithmetic, with text as words
NUMBER = {"p1000": 3, "xval": 1}  # tokens per number
NUMBERS = 4  # per row
VALUED, TOKENS = ("scaled", "scalar"), ("lookup", "token")  # embedder and head
CASES = (("p1000", "ar"), ("p1000", "mlm:targets"), ("xval", "mlm:targets"), ("xval", "ar"))


class Block(nn.Module):
    """One layer of the plain GPT."""

    def __init__(self, width: int, heads: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.first(x)).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
        y = y.transpose(1, 2).contiguous().view(rows, length, width)
        x = x + self.drop(self.out(y))
        return x + self.drop(self.mlp(self.second(x)))  # type: ignore[no-any-return]


class Plain(nn.Module):
    """A simple GPT, of the same size as another model."""

    def __init__(self, size: ModelSettings, causal: bool) -> None:
        super().__init__()
        shape = size.of_trunk
        assert isinstance(shape, TransformerTrunk)
        self.tokens = nn.Embedding(size.vocabulary, shape.width)
        self.places = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.Sequential(
            *(Block(shape.width, shape.heads, causal, shape.dropout) for _ in range(shape.layers))
        )
        self.norm = nn.LayerNorm(shape.width)
        self.head = projection(shape.width, size.vocabulary, size.head_layers, bias=False)
        if size.tied:
            self.head.weight = self.tokens.weight
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)

    def forward(self, x: Tensor, where: Tensor | None, labels: Tensor) -> Tensor:
        """Return the loss; ``where`` has the flat indices of predicted tokens, None for all."""
        x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        states = self.norm(self.blocks(x)).flatten(0, 1)
        return F.cross_entropy(self.head(states if where is None else states[where]), labels)


@dataclass
class Loop:
    """The plain training loop, as in nanoGPT."""

    model: nn.Module
    batches: list[tuple[Tensor, Tensor | None, Tensor]]  # arguments of the model
    bfloat16: bool

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), 1e-3, (0.9, 0.95), weight_decay=0.01, fused=True
        )

    def __call__(self) -> None:
        for one in self.batches:
            with torch.autocast(one[0].device.type, torch.bfloat16, enabled=self.bfloat16):
                loss = self.model(*one)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)


def batch(scheme: str, rows: int, length: int, step: int) -> Batch:
    """Return rows of random tokens with evenly spaced numbers, the last one at the end."""
    random, width = generator(scheme, step), NUMBER[scheme]
    starts = np.linspace(1, length - width, NUMBERS).astype(np.int64)
    count = rows * NUMBERS
    return Batch(
        tokens=random.integers(3, VOCABULARY[scheme], (rows, length)),
        lengths=np.full(rows, length),
        answer_start=np.full(rows, length - width),
        label=np.full(rows, -1),
        number=np.arange(count),
        number_row=np.repeat(np.arange(rows), NUMBERS),
        number_start=np.tile(starts, rows),
        number_length=np.full(count, width),
        number_value=random.uniform(-5, 5, count).astype(np.float32),
        number_raw=np.zeros(count),  # no head here uses them
        channel=scheme == "xval",
        is_target=np.tile(np.arange(NUMBERS) == NUMBERS - 1, rows),
    )


def plainly(example: TrainingBatch, device: torch.device) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return the arguments of the plain model."""
    everything = len(example.where) == example.tokens.size
    tokens, where, labels = (
        torch.from_numpy(one).to(device) for one in (example.tokens, example.where, example.labels)
    )
    return tokens, None if everything else where, labels


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the time of a function, including work on the device."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def examples(
    scheme: str, objective: str, options: argparse.Namespace
) -> Callable[[], Iterator[TrainingBatch]]:
    """Return a function that yields the example of each step, from prepared batches."""
    made = OBJECTIVES.build(objective)
    length = options.tokens - int(made.causal)  # shifting a causal row adds one token
    rows = [batch(scheme, options.batch, length, step) for step in range(options.steps)]
    return lambda: (made.example(one, generator("masks", step)) for step, one in enumerate(rows))


def trainer(
    scheme: str,
    objective: str,
    options: argparse.Namespace,
    parts: tuple[str, str],
    ranks: Ranks = ALONE,
) -> Trainer:
    """Return a trainer for a model of the given size, with an embedder and a head."""
    device = device_of(options.device)
    settings = ModelSettings.of(
        preset(options.preset),
        vocabulary=options.vocabulary or VOCABULARY[scheme],
        context=options.tokens,
        embedder=EMBEDDERS.build(parts[0]),
        head=HEADS.build(parts[1]),
        objective=OBJECTIVES.build(objective),
    )
    model = build_model(settings, Vocabulary(size=settings.vocabulary))
    how = Execution(device=device, bfloat16=device.type == "cuda", ranks=ranks, shard=options.shard)
    return Trainer(model, Recipe(learning_rate=1e-3), how, steps=1 << 30)


def measure(scheme: str, objective: str, options: argparse.Namespace) -> list[str]:
    """Return the row of the table for one case."""
    device = device_of(options.device)
    bfloat16 = device.type == "cuda"
    made, learnt = OBJECTIVES.build(objective), examples(scheme, objective, options)

    def steps(of: Trainer) -> None:
        for example in learnt():
            of.advance(example)

    valued = scheme == "xval"
    full = trainer(scheme, objective, options, VALUED if valued else TOKENS)
    plain = Plain(full.model.settings, made.causal).to(device)
    works: list[Callable[[], None]] = [
        Loop(plain, [plainly(example, device) for example in learnt()], bfloat16),
        partial(steps, full),
    ]
    if valued:
        works.append(partial(steps, trainer(scheme, objective, options, TOKENS)))
    for work in works:
        work()
    rates, rounds = [], []
    for _ in range(options.rounds):
        rates.append(measured_matmul_rate(device, bfloat16))
        rounds.append([seconds(work, device) for work in works])

    one, model = next(learnt()), full.model
    rows, places = one.tokens.shape[0], one.tokens.size
    head = 2 * len(one.where) * sum(weight.numel() for weight in plain.head.parameters())
    row = torch.zeros(1, options.tokens, full.model.settings.width, device=device)
    of_trunk = rows * counted(model.trunk, row, None)
    needed = (of_trunk + head, ModelFlops(model)(model.on_host(one)).total)
    best = median(rates) / options.steps / WHOLE_STEP
    shown = [f"{median(rates) / 1e9:,.0f}"]
    for index, flops in enumerate(needed):
        took = median(times[index] for times in rounds)
        shown += [f"{options.steps * places / took:,.0f}", f"{flops / took / best:.0%}"]
    ratio = f"{median(times[0] / times[1] for times in rounds):.2f}"
    more = f"{median(times[1] / times[2] for times in rounds) - 1:+.1%}" if valued else ""
    return [scheme, objective, *shown, ratio, more]


def beside_one(tell: Callable[[object], None], options: argparse.Namespace) -> list[list[str]]:
    """Return the rows of all cases; runs in each rank."""
    torch.set_num_threads(options.threads)
    device = device_of(options.device)
    with joined(device) as ranks:
        return [_beside_one(*case, options, device, ranks) for case in CASES]


def _beside_one(
    scheme: str, objective: str, options: argparse.Namespace, device: torch.device, ranks: Ranks
) -> list[str]:
    parts = VALUED if scheme == "xval" else TOKENS
    learnt = examples(scheme, objective, options)
    alone = trainer(scheme, objective, options, parts)
    together = trainer(scheme, objective, options, parts, ranks)

    def took(of: Trainer, take_part: bool = True) -> float:
        ranks.any()  # all start together

        def steps() -> None:
            for example in learnt() if take_part else ():
                of.advance(example)

        return max(ranks.gathered(seconds(steps, device)))

    took(alone), took(together)
    rounds = [
        (took(alone, ranks.first), took(together), took(alone)) for _ in range(options.rounds)
    ]
    tokens = sum(example.tokens.size for example in learnt())
    of_one, of_all, _ = (median(times) for times in zip(*rounds, strict=True))
    return [
        scheme,
        objective,
        f"{tokens / of_one:,.0f}",
        f"{tokens / of_all:,.0f}",
        f"{median(first / second for first, second, _ in rounds):.2f}",
        f"{median(ranks.count * first / third for first, _, third in rounds):.2f}",
        f"{held(together) / held(alone):.2f}",
    ]


def held(of: Trainer) -> int:
    """Return the bytes of the weights, gradients and moments in this rank."""
    weights = [*of.model.parameters()]
    both = [of._optimizer.state[one][key] for one in weights for key in ("exp_avg", "exp_avg_sq")]
    tensors = [*weights, *(one.grad for one in weights if one.grad is not None), *both]
    here = [one.to_local() if isinstance(one, DTensor) else one for one in tensors]
    return sum(one.numel() * one.element_size() for one in here)


def main() -> None:
    """Measure with the given options and print the table."""
    parser = argparse.ArgumentParser(description="Measure training beside a plain GPT loop.")
    parser.add_argument("--preset", default="nano")
    parser.add_argument("--tokens", type=int, default=24, help="of a row")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, help="instead of that of arithmetic")
    parser.add_argument("--steps", type=int, default=2, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="auto")
    parser.add_argument("--devices", type=int, help="ranks, beside one of them")
    parser.add_argument("--shard", action="store_true", help="with --devices")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = device_of(options.device)
    if device.type == "cpu":  # as in `numtok train`, for both models
        tune_malloc()
    title = f"{options.preset}, {options.batch} rows of {options.tokens} tokens"
    if options.devices:
        shown = table(title, ("scheme", "objective"), ("one", "ranks", "ratio", "apart", "memory"))
        with TemporaryDirectory() as folder:
            for row in launch(options.devices, beside_one, [options], print, Path(folder)):
                shown.add_row(*row)
        Console().print(shown)
        print(f"tokens a second of one rank and of {options.devices}, threads: {options.threads}")
        return
    columns = ("GFLOP/s", "plain", "share", "numtok", "share", "ratio", "value")
    shown = table(title, ("scheme", "objective"), columns)
    for scheme, objective in CASES:
        shown.add_row(*measure(scheme, objective, options))
    Console().print(shown)
    print(
        "GFLOP/s of matrix products; tokens a second and their share of it; numtok beside plain;\n"
        f"a step with value channel and head beside one without; peak {Size(peak_memory(device))}"
    )


if __name__ == "__main__":
    main()
