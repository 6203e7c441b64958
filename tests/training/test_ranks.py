"""Several ranks train like a single one: the same rows, losses and weights, for every objective."""

import math
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from numtok.errors import DataError, TrainingFailed
from numtok.models.flops import ModelFlops
from numtok.models.made_up import ANSWERS, TEXTS
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import TrainingBatch
from numtok.seeds import generator
from numtok.training.launch import Send, launch
from numtok.training.ranks import ALONE, Ranks, joined
from numtok.training.trainer import Execution, Recipe, Trainer
from tests.ending_rank import ends, threads_left
from tests.fakemodels import CPU, batches, model, samples

BATCH = 5
#: Scheme, objective, embedder, head: every objective, and heads of tokens, values and densities.
GRID = (
    ("p1000", "mlm", "lookup", "token"),
    ("xval", "mlm:targets", "scaled", "scalar"),
    ("xval", "mlm:numbers,rate=0.5", "fourier", "mdn:2"),
    ("digits", "mlm:tokens", "lookup", "riemann:8"),
    ("xval", "ar", "scaled", "decoder:ud"),
    ("p1000", "ar:answer", "lookup", "token"),
    ("numgpt", "ar", "numgpt", "numgpt"),
    ("numvalue", "numvalue", "numvalue:mlp", "token"),
    ("xval", "classify", "scaled", None),
)
#: This metric depends on which numbers share a part of a batch. It is only logged.
BY_PARTS = "reconstruction_of_others"
Figures = list[dict[str, float]]


class How(NamedTuple):
    """Execution of ``steps`` steps, in float64 if ``double``, on every ``every``-th entry of
    GRID."""

    steps: int = 4
    double: bool = False
    shard: bool = False
    accumulate: int = 1
    every: int = 1


def examples(
    scheme: str, objective: str, classes: tuple[str, ...], steps: int = 1
) -> list[TrainingBatch]:
    texts, starts = TEXTS * 3, ANSWERS * 3
    labels = ["no", "yes", None] * len(TEXTS) if classes else None
    split = samples(scheme, texts, answers=starts, targets=range(0, 15, 2), labels=labels)
    built, rows = OBJECTIVES.build(objective), batches(split, BATCH, classes)
    return [built.example(rows.at(0, step), generator(0, step)) for step in range(steps)]


def metrics_of(kind: tuple[str, str, str, str | None], ranks: Ranks, how: How) -> Figures:
    """Train a model, and return the means of each step followed by the validation metrics."""
    scheme, objective, embedder, head = kind
    classes = ("no", "yes") if objective == "classify" else ()
    size = "nano,layers=2,heads=2,width=16,dropout=0"
    network = model(
        scheme, objective, size=size, embedder=embedder, head=head, classes=classes, spread=0.1
    )
    wanted, flops = {name: p.shape for name, p in network.named_parameters()}, ModelFlops(network)
    execution = Execution(device=CPU, accumulate=how.accumulate, ranks=ranks, shard=how.shard)
    network = network.double() if how.double else network
    trainer = Trainer(network, Recipe(learning_rate=1e-3), execution, steps=how.steps)
    run_examples, metrics = examples(scheme, objective, classes, how.steps), []
    for example in run_examples:
        trainer.advance(example)
        metrics.append(trainer.means())
    metrics.append(trainer.validate(run_examples[:3]))
    assert trainer.tokens == sum(int(example.real.sum()) for example in run_examples)
    if ranks.count == 1:
        parts = [part for example in run_examples for part in example.parts(how.accumulate)]
        assert trainer.all_flops()[0] == sum(flops(network.on_host(part)).total for part in parts)
    tensors = trainer.state().tensors
    if ranks.first:  # checkpoints contain full weights
        assert {name: tensors[f"weight.{name}"].shape for name in wanted} == wanted
        assert {name: tensors[f"exp_avg_sq.{name}"].shape for name in wanted} == wanted
    if how.shard and ranks.count > 1:
        assert 0 < held(trainer.model) < 1.2 * sum(map(math.prod, wanted.values())) / ranks.count
    return metrics


def held(model: nn.Module) -> int:
    """Return the mean number of elements of weights and of gradients on this rank."""
    from torch.distributed.tensor import DTensor

    both = [tensor for weight in model.parameters() for tensor in (weight, weight.grad)]
    return sum(part.to_local().numel() for part in both if isinstance(part, DTensor)) // 2


@contextmanager
def in_double(double: bool) -> Iterator[None]:
    """Use float64 instead of float32 within the block, also for conversions by ``float()``."""
    to_float = Tensor.float
    if double:
        torch.set_default_dtype(torch.float64)
        Tensor.float = Tensor.double  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.float = to_float  # type: ignore[method-assign]
        torch.set_default_dtype(torch.float32)


def grid(send: Send, ways: Sequence[How]) -> list[list[Figures]]:
    torch.set_num_threads(1)
    with joined(CPU) as ranks:
        return [metrics_of_grid(how, ranks) for how in ways]


def metrics_of_grid(how: How, ranks: Ranks = ALONE) -> list[Figures]:
    with in_double(how.double):
        return [metrics_of(kind, ranks, how) for kind in GRID[:: how.every]]


alone = cache(metrics_of_grid)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("count", "ways"),
    [
        (2, [How(2, double=True, shard=True, every=2)]),
        *(
            pytest.param(count, [How(50, double, shard, parts)], marks=pytest.mark.slow)
            for count, parts in ((2, 1), (4, 2))
            for double in (False, True)
            for shard in (False, True)
        ),
    ],
)
def test_ranks_learn_what_one_process_learns(tmp_path: Path, count: int, ways: list[How]) -> None:
    learned = launch(count, grid, [ways], lambda _: None, tmp_path)
    for how, together in zip(ways, learned, strict=True):
        bound = 1e-10 if how.double else 1e-4
        single = alone(How(how.steps, how.double, every=how.every))
        for kind, metrics, wanted in zip(GRID[:: how.every], together, single, strict=True):
            for step, pair in enumerate(zip(metrics, wanted, strict=True)):
                actual, expected = (
                    {name: value for name, value in row.items() if name != BY_PARTS} for row in pair
                )
                same = pytest.approx(expected, rel=bound, abs=bound / 100, nan_ok=True)
                assert actual == same, (how, kind, step)


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_every_row_is_dealt_to_one_rank(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    kind = GRID[int(random.integers(len(GRID) - 1))]
    whole = examples(kind[0], kind[1], ())[0]
    hands = whole.dealt(count)
    assert sorted(row for hand in hands for row in hand.tolist()) == list(range(len(whole.tokens)))
    assert max(map(len, hands)) - min(map(len, hands)) <= 1
    parts = [(hand, whole.of_rows(hand)) for hand in hands if len(hand)]
    for hand, part in parts:
        for row, own in zip(hand.tolist(), part.tokens, strict=True):
            real = whole.real[row]
            assert own[: real.sum()].tolist() == whole.tokens[row][real].tolist()
    labels = np.concatenate([part.labels for _, part in parts])
    assert sorted(labels.tolist()) == sorted(whole.labels.tolist())
    values = np.concatenate([part.number_values for _, part in parts])
    assert sorted(values.tolist()) == sorted(whole.number_values.tolist())


# --- ends --------------------------------------------------------------------------------------


def gone(folder: Path) -> bool:
    """Return whether both ranks have ended."""
    return not any(Path(f"/proc/{(folder / rank).read_text()}").exists() for rank in ("0", "1"))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        pytest.param("error", DataError, "row 7 is damaged", marks=pytest.mark.slow),
        pytest.param("bug", RuntimeError, "(?s)rank 1 failed.*of nothing", marks=pytest.mark.slow),
        ("killed", TrainingFailed, r"rank 1 died \(SIGKILL\)\. To resume"),
    ],
)
def test_a_rank_that_ends_ends_all_and_is_named(
    tmp_path: Path, capfd: Any, how: str, kind: type[Exception], message: str
) -> None:
    messages: list[Any] = []
    with pytest.raises(kind, match=message):
        launch(2, ends, [tmp_path, how], messages.append, tmp_path)
    assert messages == ["2 ranks"]
    assert gone(tmp_path)
    assert capfd.readouterr().err == ""


@pytest.mark.integration
def test_threads_of_the_group_end_before_python_does(tmp_path: Path) -> None:
    # A thread that still had to release a tensor used to abort the process, in 1 of 15 runs.
    left = launch(2, threads_left, [], lambda _: None, tmp_path)
    assert left and not any("gloo" in name for name in left)


@pytest.mark.slow
def test_ranks_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    arguments = (2, ends, [tmp_path, "waits"], print, tmp_path)
    parent = multiprocessing.get_context("spawn").Process(target=launch, args=arguments)
    parent.start()
    while not (tmp_path / "1").exists() or not (tmp_path / "0").exists():
        time.sleep(0.1)
    parent.kill()
    parent.join()
    until = time.monotonic() + 20
    while not gone(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert gone(tmp_path)
