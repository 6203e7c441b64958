"""Training steps: learning rate, AdamW by hand, and resumed runs."""

import copy
import math
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from numtok.errors import TrainingFailed, UsageError
from numtok.models.flops import ModelFlops
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import TrainingBatch
from numtok.seeds import generator
from numtok.training.adamw import AdamW, Group
from numtok.training.loop import prefetched
from numtok.training.trainer import Execution, Recipe, Trainer, TrainerState
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import CPU, batches, model, samples, transformer
from tests.messages import Says

one_thread = fakemodels.one_thread

TEXTS = ["(2 * 3.5) = -7", "a 4 b", "no number", "8", "x 0 y 12.25 z", "", "-1 -2 -3"] * 3
TINY = "nano,layers=1,heads=2,width=16"
STEPS = 6
PLAINLY = Execution(device=CPU)
RECIPE = Recipe(learning_rate=0.01, warmup=0.3, weight_decay=0.1)


def examples(objective: str = "mlm") -> list[TrainingBatch]:
    rows = batches(samples("xval", TEXTS, targets=range(3)), 4)
    built = OBJECTIVES.build(objective)
    return [built.example(rows.at(0, step), generator(0, step)) for step in range(STEPS)]


def trainer(
    recipe: Recipe = RECIPE, *, how: Execution = PLAINLY, steps: int = STEPS, **options: Any
) -> Trainer:
    network = model(
        "xval", options.pop("objective", "mlm"), size=options.pop("size", TINY), **options
    )
    return Trainer(network, recipe, how, steps=steps)


def weights(network: Model) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in network.named_parameters()}


# --- the rate ----------------------------------------------------------------------------------


def test_the_rate_rises_and_then_falls_along_a_cosine_to_zero() -> None:
    recipe = Recipe(learning_rate=0.8, warmup=0.4)
    rising = [0.2, 0.4, 0.6, 0.8]
    falling = [0.4 * (1 + math.cos(math.pi * k / 6)) for k in range(6)]
    assert [recipe.rate(step, 10) for step in range(10)] == pytest.approx(rising + falling)
    assert recipe.rate(10, 10) == pytest.approx(0, abs=1e-12)


@given(st.integers(1, 300), st.floats(0, 0.99), st.floats(1e-6, 0.9))
def test_no_rate_is_zero_or_above_the_learning_rate(steps: int, warmup: float, lr: float) -> None:
    recipe = Recipe(learning_rate=lr, warmup=warmup)
    rates = [recipe.rate(step, steps) for step in range(steps)]
    assert 0 < min(rates) <= max(rates) <= lr * (1 + 1e-15)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[0] == pytest.approx(lr / max(1, round(warmup * steps)))


@each(
    ("settings", "parts"),
    [
        ({"weight_decay": 1.0}, ("--weight-decay", "below 1 (got 1.0)")),
        ({"clip": math.inf}, ("--grad-clip", "0 for no limit (got inf)")),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(
    settings: dict[str, Any], parts: tuple[str, ...], says: Says
) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe(**{"learning_rate": 0.1} | settings)
    says(caught, *parts)
    assert caught.value.exit_code == 2


# --- one step ----------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [0.0, 0.05, 1e6])
def test_steps_are_those_of_plain_adamw(clip: float) -> None:
    recipe = Recipe(learning_rate=0.01, warmup=0.3, weight_decay=0.1, clip=clip)
    trained = trainer(recipe)
    plain = copy.deepcopy(trained.model).train()
    named = list(plain.named_parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for _, p in named if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for _, p in named if p.dim() < 2], "weight_decay": 0.0},
        ],
        lr=0.01,
        betas=(0.9, 0.95),
        foreach=False,
        fused=False,
    )
    norms = []
    for step, batch in enumerate(examples()):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step, STEPS)
        optimizer.zero_grad()
        plain.total(plain.losses(plain.given(batch))).backward()  # type: ignore[no-untyped-call]
        gradients = [p.grad for _, p in named if p.grad is not None]
        norms.append(math.sqrt(sum(float(g.double().square().sum()) for g in gradients)))
        if clip and norms[-1] > clip:
            torch._foreach_mul_(gradients, clip / norms[-1])
        optimizer.step()
        trained.advance(batch)
        for name, parameter in named:
            weight = trained.model.get_parameter(name).detach()
            torch.testing.assert_close(weight, parameter.detach(), rtol=0, atol=1e-6, msg=name)
        # Continue from the same weights: AdamW amplifies rounding errors of gradients near 0, such
        # as those of the bias of keys.
        plain.load_state_dict(trained.model.state_dict())
    assert trained.means()["gradient_norm"] == pytest.approx(sum(norms) / STEPS, rel=1e-5)
    assert (max(norms) > clip) == (clip < 1)


def test_only_tables_decay() -> None:
    """Without a gradient, a step is only weight decay."""
    rows = batches(samples("xval", ["a", "bc"]), 2)
    nothing = OBJECTIVES.build("mlm:targets").example(rows.at(0, 0), generator(0))
    trained = trainer(Recipe(learning_rate=0.5, warmup=0, weight_decay=0.1), steps=1)
    before = weights(trained.model)
    trained.advance(nothing)
    for name, after in weights(trained.model).items():
        kept = 1 - 0.5 * 0.1 if after.dim() > 1 else 1.0
        torch.testing.assert_close(after, before[name] * kept, rtol=1e-6, atol=0, msg=name)


def test_a_step_counts_itself_its_tokens_and_its_operations() -> None:
    trained, data = trainer(), examples()
    count = ModelFlops(trained.model)
    for batch in data:
        trained.advance(batch)
    assert trained.step == STEPS
    assert trained.tokens == sum(int(batch.real.sum()) for batch in data)
    assert trained.flops == sum(count(trained.model.on_host(batch)).total for batch in data) > 0


def test_means_are_of_the_steps_since_the_last_ones() -> None:
    trained = trainer()
    single, data = [], examples()
    alone = trainer()
    for batch in data:
        alone.advance(batch)
        single.append(alone.means())
    for count in (2, 1, 3):
        part, single = single[:count], single[count:]
        for batch in data[:count]:
            trained.advance(batch)
        data = data[count:]
        expected = {key: sum(means[key] for means in part) / count for key in part[0]}
        assert trained.means() == pytest.approx(expected)
        assert expected["loss"] == pytest.approx(expected["token_loss"] + expected["value_loss"])


def test_a_model_learns_a_batch_by_heart() -> None:
    trained = trainer(Recipe(learning_rate=0.01, warmup=0.1), steps=60, spread=0.1)
    batch = examples()[0]
    first = trained.validate([batch])
    for _ in range(60):
        trained.advance(batch)
    last = trained.validate([batch])
    assert last["token_loss"] < 0.1 * first["token_loss"]
    assert last["value_loss"] < 0.1 * first["value_loss"]


def test_validation_changes_nothing_and_drops_nothing_out() -> None:
    trained, batch = trainer(size=f"{TINY},dropout=0.5"), examples()[0]
    before = weights(trained.model.train())
    first = trained.validate([batch])
    assert trained.validate([batch]) == first
    expected = trained.model.eval().losses(trained.model.given(batch))
    means = [expected.token.item(), expected.value.item()]
    assert list(first.values()) == pytest.approx([sum(means), *means])
    assert all(torch.equal(after, before[name]) for name, after in weights(trained.model).items())
    assert (trained.step, trained.tokens) == (0, 0)


def test_bfloat16_is_near_and_its_weights_stay_float32() -> None:
    data = examples()
    both = [trainer(how=Execution(device=CPU, bfloat16=bfloat16)) for bfloat16 in (False, True)]
    for batch in data:
        for trained in both:
            trained.advance(batch)
    exact, rounded = (trained.means()["loss"] for trained in both)
    assert rounded == pytest.approx(exact, rel=0.05)
    assert rounded != exact
    assert {weight.dtype for weight in weights(both[1].model).values()} == {torch.float32}


# --- a batch in parts --------------------------------------------------------------------------


@each("accumulate", [3, 9])
@each("objective", ["mlm", "mlm:targets", "ar"])
def test_a_batch_that_is_learnt_in_parts_is_the_same_step(objective: str, accumulate: int) -> None:
    """Rows differ in length and in the number of predictions; some have none."""
    data = examples(objective)
    whole, parts = (
        trainer(objective=objective, how=Execution(device=CPU, accumulate=count))
        for count in (1, accumulate)
    )
    for batch in data:
        for trained in (whole, parts):
            trained.advance(batch)
        for weight, expected in zip(
            parts.model.parameters(), whole.model.parameters(), strict=True
        ):
            assert weight.grad is not None and expected.grad is not None
            torch.testing.assert_close(weight.grad, expected.grad, rtol=1e-4, atol=1e-6)
        expected_means = pytest.approx(whole.validate([batch]), rel=1e-4, nan_ok=True)
        assert parts.validate([batch]) == expected_means
        assert parts.means() == pytest.approx(whole.means(), rel=1e-4)
        # AdamW amplifies rounding errors of gradients near 0, so continue from the same weights.
        parts.model.load_state_dict(whole.model.state_dict())
    assert (parts.step, parts.tokens) == (whole.step, whole.tokens)


@each("objective", ["mlm", "mlm:targets", "ar"])
def test_what_is_worked_out_again_for_the_gradient_is_the_same_to_the_bit(objective: str) -> None:
    size = "nano,layers=3,heads=2,width=16,dropout=0.2"
    kept, again = (
        trainer(objective=objective, size=size, how=Execution(device=CPU, recompute=recompute))
        for recompute in (False, True)
    )
    blocks = list(transformer(again.model).blocks)
    calls: list[int] = []
    for block in blocks:
        block.register_forward_pre_hook(lambda block, _given: calls.append(blocks.index(block)))
    for batch in examples(objective):
        for trained in (kept, again):
            trained.advance(batch)
    expected = kept.state()[0]
    assert all(torch.equal(tensor, expected[name]) for name, tensor in again.state()[0].items())
    assert calls == [0, 1, 2, 1, 0] * STEPS
    again.validate(examples(objective)[:1])
    assert calls[5 * STEPS :] == [0, 1, 2]


# --- pinned memory -----------------------------------------------------------------------------


def test_what_a_gpu_learns_is_pinned_by_the_thread_that_prepares_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []

    def pin_memory(tensor: Tensor) -> Tensor:
        threads.append(threading.current_thread().name.partition("_")[0])
        return tensor

    monkeypatch.setattr(Tensor, "pin_memory", pin_memory)
    trained, data = trainer(), examples()
    list(prefetched(lambda step: trained.prepare(data[step]), 0, STEPS, workers=1))
    assert not threads  # nothing is pinned on a CPU
    trained.device = torch.device("cuda")
    batches = list(prefetched(lambda step: trained.prepare(data[step]), 0, STEPS, workers=1))
    fields = [field for batch in batches for inputs, *_ in batch.parts for field in inputs]
    assert threads == ["prefetch"] * sum(isinstance(field, Tensor) for field in fields)


# --- stopping and resuming ---------------------------------------------------------------------


def saved(trained: Trainer, path: Path) -> tuple[dict[str, Tensor], TrainerState]:
    """Return the state after a round trip through a file."""
    tensors, plain = trained.state()
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    return load_file(path), plain


WAYS = [
    PLAINLY,
    Execution(device=CPU, accumulate=3, recompute=True),
    pytest.param(
        Execution(device=CPU, accumulate=2, compiled=True),
        marks=[
            pytest.mark.slow,
            pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # from PyTorch's compiler
            pytest.mark.skipif(
                not shutil.which(os.environ.get("CXX", "g++")), reason="no C++ compiler"
            ),
        ],
    ),
]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    ("objective", "dropout"), [("mlm", 0.0), ("mlm", 0.1), ("mlm:targets", 0.1), ("ar", 0.1)]
)
def test_a_run_that_was_stopped_goes_on_bit_for_bit(
    tmp_path: Path, objective: str, dropout: float, how: Execution
) -> None:
    data = examples(objective=objective)
    size = f"{TINY},dropout={dropout}"
    settings: dict[str, Any] = {"size": size, "objective": objective, "how": how}
    straight, first = trainer(**settings), trainer(**settings)
    for batch in data:
        straight.advance(batch)
    expected, means = saved(straight, tmp_path / "straight"), straight.means()
    for step, batch in enumerate(data[:-1], 1):
        first.advance(batch)
        if step not in (1, 3, STEPS - 1):
            continue
        second = trainer(**settings, seed=1)
        second.load(*saved(first, tmp_path / f"state-{step}"))
        torch.rand(3)  # the state of the global generator must not matter
        for further in data[step:]:
            second.advance(further)
        state = second.state()
        assert state[1] == expected[1]
        assert state[0].keys() == expected[0].keys()
        assert all(torch.equal(state[0][name], tensor) for name, tensor in expected[0].items())
        assert second.means() == means


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_a_run_goes_on_where_some_batches_have_no_numbers(tmp_path: Path, stop: int) -> None:
    """The number head has no targets in the first two steps and in the fourth."""
    rows = batches(samples("xval", ["a", "b", "1 2", "c", "3", "4"]), 1)
    objective = OBJECTIVES.build("ar")
    data = [objective.example(rows.of(np.array([row])), generator(row)) for row in range(6)]
    straight, first, second = (trainer(objective="ar", seed=seed) for seed in (0, 0, 1))
    for batch in data:
        straight.advance(batch)
    for batch in data[:stop]:
        first.advance(batch)
    second.load(*saved(first, tmp_path / "state"))
    for batch in data[stop:]:
        second.advance(batch)
    expected = weights(straight.model)
    assert all(torch.equal(after, expected[name]) for name, after in weights(second.model).items())


def test_dropout_is_a_pure_function_of_seed_and_step() -> None:
    batch = examples()[0]

    def losses_of(seed: int) -> list[float]:
        torch.rand(seed + 1)  # the state of the global generator must not matter
        trained = trainer(
            Recipe(learning_rate=1e-9, seed=seed), steps=3, size=f"{TINY},dropout=0.5"
        )
        losses = []
        for _ in range(3):
            trained.advance(batch)
            losses.append(trained.means()["loss"])
        return losses

    assert losses_of(0) == losses_of(0)
    assert len({*losses_of(0), *losses_of(1)}) == 6


# --- failures ----------------------------------------------------------------------------------


@each("broken", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_the_training(broken: float, says: Says) -> None:
    trained, batch = trainer(), examples()[0]
    trained.advance(batch)
    with torch.no_grad():
        trained.model.get_parameter("trunk.norm.bias")[0] = broken
    trained.advance(batch)
    with pytest.raises(TrainingFailed) as caught:
        trained.means()
    says(caught, "step 2", "--lr (it was 0.01)", "--warmup")
    assert caught.value.exit_code == 5


# --- the optimizer ------------------------------------------------------------------------------


def test_steps_are_those_of_pytorch_for_every_group() -> None:
    """Steps are equal bit for bit, with changing rates, a group with its own rate and decay, and a
    parameter that has a gradient only in some steps."""
    torch.default_generator.manual_seed(0)
    ours = [nn.Parameter(torch.randn(size)) for size in ((3, 4), (5,), (2, 2))]
    theirs = copy.deepcopy(ours)
    optimizer = AdamW([Group(ours[:2], 0.1), Group(ours[2:], 0.0, times=4.0)], (0.9, 0.95))
    groups = [
        {"params": theirs[:2], "weight_decay": 0.1},
        {"params": theirs[2:], "weight_decay": 0.0},
    ]
    wanted = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)
    for step in range(6):
        rate = 0.1 / (1 + step)
        for group, times in zip(wanted.param_groups, (1.0, 4.0), strict=True):
            group["lr"] = rate * times
        for own, other in zip(ours, theirs, strict=True):
            if other is not theirs[1] or step % 2:
                other.grad = torch.randn_like(other)
                own.grad = other.grad.clone()
        optimizer.step(rate)
        wanted.step()
        optimizer.zero_grad()
        wanted.zero_grad()
        assert all(own.grad is None for own in ours)
        for own, other in zip(ours, theirs, strict=True):
            assert torch.equal(own, other)
    for own, other in zip(ours, theirs, strict=True):
        for name, tensor in wanted.state[other].items():
            assert torch.equal(optimizer.state[own][name], tensor), name
