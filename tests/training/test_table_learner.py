"""Fitting a table model: early stopping, the weights it keeps, and resuming."""

import math
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import TrainingFailed, UsageError
from numtok.models.heads.base import HEADS, ValueHead
from numtok.models.heads.pointwise import Pointwise
from numtok.models.regressor import Regressor
from numtok.models.trunks.mlp import Mlp
from numtok.training.features import Features
from numtok.training.trained_table import (
    FittedTable,
    FittingRecipe,
    LearntFrom,
    Preparation,
    TableLearner,
    TableRows,
    held_back,
)
from tests.cases import each
from tests.fakeheads import Floats
from tests.fakemodels import CPU, one_thread
from tests.messages import Says

pytestmark = pytest.mark.integration

__all__ = ["one_thread"]

HEAD_SPECS = ["pointwise", "riemann:8", "mdn:2", "decoder:nd,base=2,length=4,width=8"]
RECIPE = FittingRecipe(epochs=12, patience=0, batch=16, learning_rate=0.01)


def table(rows: int, seed: int = 0) -> tuple[Features, Floats]:
    """Return numbers and a category as features, and a target that depends on both."""
    random = np.random.default_rng(seed)
    numbers, names = random.standard_normal((rows, 2)), random.choice(["a", "b"], rows)
    target = numbers[:, 0] + 3 * (names == "a") + 0.1 * random.standard_normal(rows)
    return Features(numbers, [pa.array(names.tolist())]), np.asarray(target, np.float64)


def preparation(
    spec: str = "pointwise", recipe: FittingRecipe = RECIPE, rows: int = 70, **data: Any
) -> Preparation:
    """Return a small model for that table, before its first epoch."""
    head = HEADS.build(spec)
    assert isinstance(head, ValueHead)
    columns, target = data.get("train") or table(rows)
    return Preparation.of(
        columns,
        target,
        data.get("validation"),
        head=head,
        trunk=Mlp(1, 8),
        normalizer=NORMALIZERS.build(head.normalizer),
        recipe=recipe,
        device=CPU,
    )


def test_targets_outside_the_range_of_a_head_ask_for_another_normalization() -> None:
    columns, target = table(70)
    far = np.append(target[:-1], 1e6)
    with pytest.raises(UsageError) as refused:
        preparation("decoder:chronos", train=(columns, far))
    assert "--normalize mean-scale maps 1 of 70" in str(refused.value)
    assert str(refused.value).endswith("Use --normalize unit")


def weights(model: torch.nn.Module) -> list[bytes]:
    return [weight.detach().numpy().tobytes() for weight in model.parameters()]


class Scripted(TableLearner):
    """A fit with scripted validation losses."""

    script: list[float]

    def validation_loss(self) -> float:
        return self.script[self.epoch - 1]


def scripted(script: list[float], patience: int) -> Scripted:
    head = Pointwise()
    torch.manual_seed(0)
    model = Regressor(2, Mlp(1, 4), head)
    random = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    rows = TableRows(random[:, :2], random[:, 2:])
    recipe = FittingRecipe(epochs=len(script), patience=patience, batch=8, learning_rate=0.01)
    fitting = Scripted(model, rows, rows, recipe, CPU)
    fitting.script = script
    return fitting


# --- early stopping --------------------------------------------------------------------------


UNEVEN = [5.0, 3.0, 4.0, 3.0, 2.9, 3.5, 1.0]


@each(
    ("script", "patience", "epochs", "best"),
    [
        *((UNEVEN, *ends) for ends in ((1, 3, 2), (2, 4, 2), (3, 7, 7), (5, 7, 7), (0, 7, 7))),
        ([2.0, 2.0, 2.0, 2.0], 2, 3, 1),  # an equal loss is not better
        ([1.0, 9.0, 9.0], 0, 3, 1),
    ],
)
def test_it_ends_when_the_validation_loss_has_not_fallen_for_so_many_epochs(
    script: list[float], patience: int, epochs: int, best: int
) -> None:
    """Training stops after ``patience`` such epochs and restores the weights of the best epoch."""
    fitting = scripted(script, patience)
    kept = {}
    while not fitting.done:
        fitting.advance()
        kept[fitting.epoch] = weights(fitting.model)
    assert (fitting.epoch, fitting.best_epoch) == (epochs, best)
    assert fitting.best_loss == script[best - 1]
    assert len({*map(tuple, kept.values())}) == epochs
    assert weights(fitting.finish()) == kept[best]
    assert not fitting.model.training


@each("broken", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_the_fit(broken: float, says: Says) -> None:
    fitting = scripted([1.0, broken], 0)
    fitting.advance()
    with says.raises(TrainingFailed, "epoch 2", "--lr (it was 0.01)", "--normalize affine"):
        fitting.advance()


def test_every_row_is_learnt_once_an_epoch_each_time_in_another_order() -> None:
    batches: list[Tensor] = []
    fitting = scripted([3.0, 2.0, 1.0], 0)
    plain = fitting.model.losses

    def losses(x_NI: Tensor, target_NW: Tensor) -> Tensor:
        batches.append(target_NW[:, 0])
        return plain(x_NI, target_NW)

    object.__setattr__(fitting.model, "losses", losses)
    while not fitting.done:
        fitting.advance()
    assert [len(batch) for batch in batches] == [8, 8, 4] * 3
    epochs = [torch.cat(batches[at : at + 3]).tolist() for at in (0, 3, 6)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2])
    assert epochs[0] != epochs[1] != epochs[2]
    assert fitting.step == 9


def test_the_losses_of_an_epoch_are_means_over_rows() -> None:
    prepared = preparation(recipe=FittingRecipe(epochs=1, batch=1000, learning_rate=1e-9))
    train, held = prepared.fitting._train, prepared.fitting._validation
    with torch.no_grad():
        expected = [float(prepared.fitting.model.losses(*rows).mean()) for rows in (train, held)]
    epoch = prepared.fitting.advance()
    assert [epoch.train, epoch.validation] == pytest.approx(expected, rel=1e-5)


@each(
    ("settings", "parts"),
    [
        ({"epochs": 0}, ("--epochs must be at least 1 (got ",)),
        ({"patience": -1}, ("--patience must be at least 0 (got ",)),
        ({"validation": 1.0}, ("--validation must be above 0 and below 1",)),
        ({"batch": 0}, ("--batch must be above 0",)),
        ({"learning_rate": 0.0}, ("--lr must be above 0 and below 1",)),
        ({"weight_decay": math.nan}, ("--weight-decay must be at least 0 and finite",)),
    ],
)
def test_an_impossible_recipe_is_refused(
    settings: dict[str, float], parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        FittingRecipe(**settings)  # type: ignore[arg-type]


# --- a fit that was stopped -----------------------------------------------------------------------


def run(fitting: TableLearner) -> list[tuple[float, ...]]:
    losses = []
    while not fitting.done:
        losses.append(tuple(fitting.advance()))
    return losses


@pytest.mark.parametrize("spec", HEAD_SPECS)
def test_a_fit_that_was_stopped_after_any_epoch_ends_in_the_same_bytes(spec: str) -> None:
    recipe = FittingRecipe(epochs=5, patience=0, batch=16, learning_rate=0.01, weight_decay=0.1)
    whole = preparation(spec, recipe)
    states = [whole.fitting.state()]
    losses = []
    while not whole.fitting.done:
        losses.append(tuple(whole.fitting.advance()))
        states.append(whole.fitting.state())
    expected = whole.finished()
    for epoch, state in enumerate(states):
        again = preparation(spec, recipe)
        again.fitting.load(*state)
        assert run(again.fitting) == losses[epoch:]
        fitted = again.finished()
        assert weights(fitted.model) == weights(expected.model)
        assert (fitted.fit, fitted.calibration) == (expected.fit, expected.calibration)


def test_a_state_is_not_changed_by_the_epochs_that_follow() -> None:
    fitting = preparation().fitting
    fitting.advance()
    tensors, plain = fitting.state()
    before = (
        {name: saved.clone() for name, saved in tensors.items()},
        msgspec.structs.replace(plain),
    )
    fitting.advance()
    assert plain == before[1]
    assert all(torch.equal(saved, before[0][name]) for name, saved in tensors.items())


def test_of_a_fit_that_is_done_only_the_best_weights_are_kept() -> None:
    fitting = preparation(recipe=FittingRecipe(epochs=2, batch=16)).fitting
    unfinished = len(fitting.state()[0])
    run(fitting)
    tensors, plain = fitting.state()
    assert len(tensors) < unfinished and all(name.startswith("best.") for name in tensors)
    assert plain.epoch == 2


def test_the_same_seed_gives_the_same_model_and_another_one_another() -> None:
    def weights_of(seed: int) -> list[bytes]:
        prepared = preparation("mdn:2", FittingRecipe(epochs=3, seed=seed))
        run(prepared.fitting)
        return weights(prepared.finished().model)

    assert weights_of(0) == weights_of(0) != weights_of(1)


def test_a_small_fit_does_not_depend_on_the_number_of_threads() -> None:
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)  # the fixture one_thread resets it
        prepared = preparation(recipe=FittingRecipe(epochs=2, batch=16))
        run(prepared.fitting)
        assert torch.get_num_threads() == threads
        results.append(weights(prepared.finished().model))
    assert results[0] == results[1]


# --- validation rows -----------------------------------------------------------------------------


@each(
    ("rows", "share", "count"),
    [(100, 0.1, 10), (2, 0.1, 1), (2, 0.9, 1), (5, 0.5, 2), (3, 0.01, 1)],
)
def test_a_share_of_the_rows_is_held_back_and_none_is_learnt(
    rows: int, share: float, count: int
) -> None:
    trained, held = held_back(rows, share, seed=0)
    assert len(held) == count
    assert sorted([*trained.tolist(), *held.tolist()]) == list(range(rows))
    assert trained.tolist() == sorted(trained.tolist()) and held.tolist() == sorted(held.tolist())
    again = held_back(rows, share, seed=0)
    np.testing.assert_array_equal(again[1], held)


def test_another_seed_holds_other_rows_back() -> None:
    assert held_back(1000, 0.1, 0)[1].tolist() != held_back(1000, 0.1, 1)[1].tolist()


def test_a_validation_split_is_looked_at_and_all_of_the_others_are_learnt() -> None:
    other = table(9, seed=1)
    prepared = preparation(validation=other)
    assert prepared.fitting.rows == 70 and len(prepared.validation.inputs) == 9
    np.testing.assert_array_equal(prepared.validation_values, prepared.scaling.forward(other[1]))
    alone = preparation()
    assert alone.fitting.rows == 63 and len(alone.validation.inputs) == 7


# --- from a table to distributions ---------------------------------------------------------------


def finished(spec: str, recipe: FittingRecipe = RECIPE, **data: Any) -> FittedTable:
    return preparation(spec, recipe, **data).finished()


@pytest.mark.parametrize("spec", HEAD_SPECS)
def test_predictions_are_in_raw_units(spec: str) -> None:
    columns, target = table(300)
    recipe = FittingRecipe(epochs=75, patience=30, batch=32, learning_rate=0.01)
    fitted = finished(spec, recipe, train=(columns, 1e5 + 1e3 * target))
    medians = fitted.predictive(columns).median()
    errors = (medians - (1e5 + 1e3 * target)) / 1e3
    assert float(np.sqrt(np.mean(errors**2))) < 0.35 * target.std()


def test_the_deviation_is_that_of_the_rows_that_were_looked_at() -> None:
    prepared = preparation("pointwise")
    run(prepared.fitting)
    fitted = prepared.finished()
    with torch.no_grad():
        points = fitted.model.reader.point(fitted.parameters(prepared.validation.inputs))
    error = float(np.sqrt(np.mean((points - prepared.validation_values) ** 2)))
    assert fitted.calibration == {"deviation": pytest.approx(error)}


def test_the_resolution_of_targets_is_no_gap_of_arithmetic() -> None:
    assert LearntFrom.of(np.array([0.3, 0.1 + 0.2, 0.4, 0.7])).resolution == pytest.approx(0.1)
    assert LearntFrom.of(np.array([0.3, 0.1 + 0.2])).resolution == 0


@each("spec", HEAD_SPECS)
def test_a_constant_target_and_two_rows_can_be_fitted(spec: str) -> None:
    columns, _ = table(2)
    fitted = finished(spec, FittingRecipe(epochs=2), train=(columns, np.array([7.0, 7.0])))
    assert np.isfinite(fitted.predictive(columns).median()).all()
    assert (fitted.learnt_from.low, fitted.learnt_from.high, fitted.learnt_from.resolution) == (
        7,
        7,
        0,
    )


@each("spec", HEAD_SPECS)
def test_huge_and_missing_features_of_other_rows_give_finite_predictions(spec: str) -> None:
    fitted = finished(spec, FittingRecipe(epochs=2))
    odd = Features(np.array([[1e308, np.nan], [-1e308, 1e300]]), [pa.array(["zebra", None])])
    assert np.isfinite(fitted.predictive(odd).median()).all()


def test_what_was_learnt_from_is_said_in_raw_units() -> None:
    statistics = LearntFrom.of(np.array([3.0, 1.0, 1.5, 1.0]))
    assert statistics == LearntFrom(rows=4, low=1.0, high=3.0, mean=1.625, resolution=0.5)
    assert statistics.outside(np.array([0.999, 1.0, 3.0, 3.1])).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_how_it_went_is_counted() -> None:
    fit = finished("pointwise", FittingRecipe(epochs=3, patience=0, batch=16)).fit
    assert (fit.epochs, fit.steps, fit.samples) == (3, 12, 189)
    assert 1 <= fit.best_epoch <= 3 and math.isfinite(fit.best_loss)
