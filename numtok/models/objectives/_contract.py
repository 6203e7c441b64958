"""Checks that every objective must pass: ``numtok check objective NAME``.

Training batches are built from synthetic rows: empty rows, rows with and without numbers, and rows
with answers and targets. One scheme uses only tokens, another has values in a channel.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import nn

from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    described,
    expect,
    expect_array,
    expect_kind,
    expect_tensor,
    require,
    wrong,
)
from numtok.models.batches import Batch
from numtok.models.made_up import made_up, vocabularies
from numtok.models.number_terms.base import NumberTerm
from numtok.models.objectives.base import (
    OBJECTIVES,
    FirstPass,
    LoggedFigure,
    Objective,
    OwnLosses,
    weighted,
)
from numtok.models.training_batch import END, MASK, TrainingBatch
from numtok.seeds import generator

_WIDTH = 8
_COLUMNS = ("targets", "answer_start", "label", None)


def _batches() -> Iterator[tuple[str, Batch]]:
    """Yield the rows for one scheme of tokens, one with a channel, and one that splits numbers into
    token and value; each row has a label."""
    kinds = {
        (len(vocabulary.numbers) > 0, vocabulary.splits): name
        for name, vocabulary in vocabularies().items()
    }
    for scheme in sorted(kinds.values()):
        batch = made_up(scheme)
        yield scheme, replace(batch, label=np.arange(len(batch.tokens)) % 3 - 1)


def _examples(objective: Objective, seed: int) -> Iterator[tuple[str, Batch, TrainingBatch]]:
    """Yield the training batch of each scheme, with columns of the right types and sizes."""
    for scheme, batch in _batches():
        example = objective.example(batch, generator(seed))
        expect_kind(objective, "example", example, TrainingBatch)
        _expect_columns(objective, example, len(batch.tokens))
        yield scheme, batch, example


def _expect_columns(objective: Objective, example: TrainingBatch, rows: int) -> None:
    tokens_BL = expect_array(
        objective, "example, tokens", example.tokens, (rows, None), dtype="int64"
    )
    length = tokens_BL.shape[1]
    count, numbers = np.size(example.where), np.size(example.number_where)
    for name, shape, dtype in (
        ("values", (rows, length), "float32|float64"),
        ("real", (rows, length), "bool"),
        ("where", (count,), "int64"),
        ("labels", (count,), "int64"),
        ("number_where", (numbers,), "int64"),
        ("number_values", (numbers,), "float32|float64"),
        ("number_raw", (numbers,), "float64"),
        ("own_from", (rows,), "int64"),
    ):
        column = getattr(example, name)
        if column is not None or name not in ("number_raw", "own_from"):
            expect_array(objective, f"example, {name}", column, shape, dtype=dtype)
    for name in ("where", "number_where"):
        if (np.diff(getattr(example, name), prepend=-1, append=rows * length) < 1).any():
            expected = f"positions that rise from 0 to below {rows * length}"
            wrong(objective, f"example, {name}", "positions that do not rise", expected)
    if not np.isin(example.number_where, example.where).all():
        wrong(objective, "example, number_where", "positions outside of where", "some of where")
    if example.own_from is None and isinstance(objective, OwnLosses):
        wrong(objective, "example", "no own_from", "own_from, because it has losses of its own")


def check_declarations(objective: Objective, seed: int) -> None:
    """All declarations exist, and each property has its type."""
    check_declared(objective, "declarations", revision=int, source=str)
    expect_kind(objective, "causal", objective.causal, bool)
    expect_kind(objective, "number_term", objective.number_term, NumberTerm, type(None))
    if isinstance(objective, OwnLosses):
        expect_kind(objective, "rates", objective.rates(), dict)
        for figure in expect_kind(objective, "figures", objective.figures, tuple):
            expect_kind(objective, "figures", figure, LoggedFigure)
    if (column := objective.requires()) not in _COLUMNS:
        wrong(objective, "requires", described(column), " or ".join(map(repr, _COLUMNS)))
    check_settings(OBJECTIVES, objective, "declarations")


def check_example(objective: Objective, seed: int) -> None:
    """Columns have the right types and sizes; predicted positions are not padding."""
    for scheme, batch, example in _examples(objective, seed):
        places = example.real.reshape(-1)[example.where]
        require(objective, "example", places.all(), f"{scheme}: got a position that is padding")
        require(objective, "example", len(example.where), f"{scheme}: got nothing to predict")
        size = vocabularies()[scheme].size
        inside = bool(((example.tokens >= 0) & (example.tokens < size)).all())
        require(objective, "example", inside, f"{scheme}: got ids beyond its {size} tokens")
        expect(objective, "example", f"{scheme}: rows", len(example.tokens), len(batch.tokens))


def check_labels(objective: Objective, seed: int) -> None:
    """Hidden state j predicts token j of the row, or [END] after it; or the label of the row."""
    for scheme, batch, example in _examples(objective, seed):
        rows, columns = np.divmod(example.where, example.tokens.shape[1])
        if objective.requires() == "label":
            wanted = batch.label[rows]
        else:
            padded = np.pad(batch.tokens, ((0, 0), (0, example.tokens.shape[1])))
            ends = columns == batch.lengths[rows]
            wanted = np.where(ends, END, padded[rows, columns])
        what = f"{scheme}: got labels {example.labels.tolist()}, expected {wanted.tolist()}"
        require(objective, "labels", np.array_equal(example.labels, wanted), what)


def check_sight(objective: Objective, seed: int) -> None:
    """Predicted tokens are not visible: a causal model sees the row shifted by one, [END] first;
    any other model sees [MASK] at predicted tokens, and 1 as their value."""
    for scheme, batch, example in _examples(objective, seed):
        if objective.causal:
            moved = (example.tokens[:, 0] == END).all() and np.array_equal(
                example.tokens[:, 1:][example.real[:, 1:]],
                batch.tokens[:, : example.tokens.shape[1] - 1][example.real[:, 1:]],
            )
            require(objective, "sight", moved, f"{scheme}: got rows that are not shifted by one")
        elif objective.requires() != "label":
            visible = example.tokens.reshape(-1)[example.where]
            hidden = bool((visible == MASK).all())
            require(objective, "sight", hidden, f"{scheme}: got {visible.tolist()}, expected masks")
            values = example.values.reshape(-1)[example.where]
            require(
                objective, "sight", (values == 1).all(), f"{scheme}: got visible values of masks"
            )


def check_numbers(objective: Objective, seed: int) -> None:
    """Values of numbers are predicted at their first tokens; numbers without a value are not
    predicted."""
    for scheme, batch, example in _examples(objective, seed):
        starts = zip(batch.number_row.tolist(), batch.number_start.tolist(), strict=True)
        value_at = dict(zip(starts, batch.number_value.tolist(), strict=True))
        rows, columns = np.divmod(example.number_where, example.tokens.shape[1])
        places = zip(rows.tolist(), columns.tolist(), strict=True)
        wanted = [value_at.get(position) for position in places]
        what = f"{scheme}: got values {example.number_values.tolist()}, expected {wanted}"
        require(objective, "numbers", example.number_values.tolist() == wanted, what)


def check_seeds(objective: Objective, seed: int) -> None:
    """A batch depends only on the rows and the generator, and the rows are not modified."""
    for scheme, batch in _batches():
        before = {name: np.copy(value) for name, value in vars(batch).items()}
        example, again = (objective.example(batch, generator(seed)) for _ in range(2))
        for name, value in vars(example).items():
            same = np.array_equal(value, vars(again)[name])
            require(objective, "seeds", same, f"{scheme}: got different {name} for the same seed")
        for name, value in vars(batch).items():
            same = (
                np.array_equal(value, before[name], equal_nan=value.dtype.kind == "f")
                if (isinstance(value, np.ndarray))
                else value == before[name]
            )
            require(objective, "seeds", same, f"{scheme}: example changed {name} of the batch")


def check_own(objective: Objective, seed: int) -> None:
    """The additional losses are finite, even without positions, and train all weights of the
    objective's module."""
    if not isinstance(objective, OwnLosses):
        return
    torch.default_generator.manual_seed(seed)
    watched = cast(OwnLosses, objective)
    module, output = watched.build(_WIDTH), nn.Linear(_WIDTH, 1)
    expect_kind(objective, "build", module, nn.Module)
    names = [figure.name for figure in watched.figures]
    expect(objective, "own", "number of distinct figure names", len({*names}), len(names))
    stand_in = module(torch.randn(3, _WIDTH))
    expect(objective, "own", "shape of the replacement", tuple(stand_in.shape), (3, _WIDTH))
    for places in (torch.tensor([2, 5, 9]), torch.zeros(0, dtype=torch.int64)):
        vectors = torch.randn(2, 6, _WIDTH, requires_grad=True)
        first_pass = FirstPass(
            embedded=vectors,
            hidden=vectors.cumsum(1),
            places=places,
            trunk=lambda other_BLD: other_BLD.cumsum(1),
            token_loss=lambda states_BLD: output(states_BLD).square().mean(),
        )
        losses = expect_kind(objective, "losses", watched.losses(module, first_pass), tuple)
        expect(objective, "own", "number of losses, one per figure", len(losses), len(names))
        for loss in losses:
            expect_tensor(objective, "losses", loss, ())
        rounded = [round(loss.item(), 3) for loss in losses]
        require(objective, "own", torch.stack(losses).isfinite().all(), f"got the losses {rounded}")
        weighted(watched.figures, losses).backward()
        lost = sum(weight.grad is None for weight in module.parameters())
        require(objective, "own", not lost, f"got no gradient for {lost} of its weights")


CHECKS = checks_of(__name__)
