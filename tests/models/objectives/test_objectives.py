"""What a model sees and what it must predict, number by number and token by token."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.contracts import results
from numtok.encoding.schema import SPECIALS
from numtok.errors import UsageError
from numtok.models.batches import PAD, Batch
from numtok.models.objectives import _contract as contract
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import (
    END,
    MASK,
    TrainingBatch,
    autoregressive_batch,
    masked_batch,
    row_end_batch,
    shift_right,
)
from numtok.seeds import generator
from tests.cases import each
from tests.fakemodels import batch
from tests.known import unlisted
from tests.messages import Says

TEXTS = ["(2 * 3.5) = -7", "", "no number", "8", "x 0 y 12.25 z 1e400"]
MANY = ["the sum of 12.5 and -3 is 9.5, of 7 and 8 it is 15"] * 400


def example(of: Batch, spec: str, seed: int = 0) -> TrainingBatch:
    return OBJECTIVES.build(spec).example(of, generator(seed))


def asked(of: Batch, one: TrainingBatch) -> NDArray[np.bool_]:
    """Return which numbers of a masked batch have their first token predicted: bool[M]."""
    first = of.number_row * of.tokens.shape[1] + of.number_start
    chosen = np.isin(first, one.where)
    valued = ~np.isnan(of.number_value)
    assert np.isin(first, one.number_where).tolist() == (chosen & valued).tolist()
    return chosen


# --- numbers without a value -------------------------------------------------------------------


@each("spec", ["mlm,rate=1", "mlm:targets", "ar", "ar:answer", "numvalue"])
@each("scheme", ["p1000", "xval"])
def test_the_tokens_of_an_overflow_are_learnt_and_no_value(scheme: str, spec: str) -> None:
    of = batch(scheme, ["at 1e400 and 7", "at -1e400"], answers=[3, 3], targets=[0, 1, 2])
    assert np.isnan(of.number_value).tolist() == [True, False, True]
    one = example(of, spec)
    causal = spec not in ("mlm,rate=1", "mlm:targets")
    places = of.number_row * (of.tokens.shape[1] + causal) + of.number_start
    assert set(places) <= set(one.where)
    assert (one.number_where.tolist(), one.number_values.tolist()) == ([places[1]], [7])
    assert set(one.values.flat) <= {1.0, 7.0}


def test_an_underflow_of_float32_is_a_token_of_xval_and_a_number_elsewhere() -> None:
    texts = ["x 1e-300 y"]
    assert np.isnan(batch("xval", texts).number_value).all()
    assert batch("fp15", texts).number_value.astype(np.float32).tolist() == [0]


def test_where_evaluation_asks_tokens_and_values_are_told_apart() -> None:
    of = batch("xval", ["1e400 2 3"])
    one = autoregressive_batch(of, np.array([True, True, False]))
    assert (one.where.tolist(), one.number_where.tolist()) == ([0, 2], [2])
    assert one.number_values.tolist() == [2]


# --- any objective -----------------------------------------------------------------------------

# Objectives that require labels predict a label instead of tokens.
SPECS = [name for name in OBJECTIVES if OBJECTIVES.build(name).requires() != "label"]
SPECS += ["ar:answer", "mlm:tokens", "mlm:targets", "numvalue:answer"]
LABELS = ["classify", "classify,causal=yes"]


@pytest.mark.parametrize("spec", ["ar:answer", "mlm:tokens", "mlm:targets", "numvalue:answer"])
def test_every_setting_keeps_the_contract_of_objectives(spec: str) -> None:
    broken = [one for one in results(contract.CHECKS, OBJECTIVES.build(spec), 0) if not one.passed]
    assert broken == []


def test_special_tokens_have_the_ids_of_the_codec() -> None:
    assert (SPECIALS[PAD], SPECIALS[MASK], SPECIALS[END]) == ("[PAD]", "[MASK]", "[END]")


@each("scheme", ["digits", "p1000", "xval"])
@each("spec", SPECS)
def test_places_asked_for_are_those_where_something_is_predicted(spec: str, scheme: str) -> None:
    one = example(batch(scheme, TEXTS, answers=[11, 0, 2, 0, 4], targets=[2, 5]), spec)
    asked, where, number_where = one.asked
    length = one.tokens.shape[1]
    assert list(one.where) == sorted(set(one.where))
    assert set(one.number_where) <= set(one.where)
    if asked is None:
        assert 2 * np.bincount(one.where // length).max() > length
        assert (where is one.where) and (number_where is one.number_where)
        return
    assert 2 * asked.shape[1] <= length
    places = (np.arange(len(asked))[:, None] * length + asked).flatten()
    assert places[where].tolist() == one.where.tolist()
    assert places[number_where].tolist() == one.number_where.tolist()


def test_of_rows_of_which_nothing_is_asked_one_place_is_asked_for() -> None:
    one = example(batch("p1000", ["ab", "cd"]), "mlm:targets")
    asked, where, number_where = one.asked
    assert asked is not None and asked.tolist() == [[0], [0]]
    assert (len(where), len(number_where)) == (0, 0)


@each("count", [1, 2, 3, 5, 9])
@each("scheme", ["digits", "p1000", "xval"])
@each("spec", SPECS)
def test_parts_are_the_rows_in_order_with_what_is_asked_of_them(
    spec: str, scheme: str, count: int
) -> None:
    one = example(batch(scheme, TEXTS, answers=[11, 0, 2, 0, 4], targets=[2, 5]), spec)
    parts = list(one.parts(count))
    sizes = [len(part.tokens) for part in parts]
    assert len(parts) == min(count, len(TEXTS)) and max(sizes) - min(sizes) <= 1
    rows = 0
    where: list[int] = []
    number_where: list[int] = []
    labels: list[int] = []
    values: list[float] = []
    for part in parts:
        size, length = part.tokens.shape
        assert part.real[:, -1].any()
        inside = slice(rows, rows + size), slice(length)
        assert np.array_equal(part.tokens, one.tokens[inside])
        assert np.array_equal(part.values, one.values[inside])
        assert np.array_equal(part.real, one.real[inside])
        assert part.real.sum() == one.real[rows : rows + size].sum()
        for flat, into in ((part.where, where), (part.number_where, number_where)):
            into += ((rows + flat // length) * one.tokens.shape[1] + flat % length).tolist()
        labels += part.labels.tolist()
        values += part.number_values.tolist()
        rows += size
    assert (where, labels) == (one.where.tolist(), one.labels.tolist())
    assert (number_where, values) == (one.number_where.tolist(), one.number_values.tolist())


@each(
    ("spec", "parts"),
    [
        ("mlm:words", ("mask must be", "numbers, tokens or targets")),
        ("mlm,rate=0", ("rate must be above 0 and at most 1",)),
        ("mlm,rate=1.5", ("rate must be above 0 and at most 1",)),
        ("mlm,rate=nan", ("rate must be above 0 and at most 1",)),
        ("ar:prompt", ("loss must be", "all or answer")),
        ("ml", ("'ml'", "'mlm'", "Known: every objective")),
        ("classify,causal=maybe", ("causal must be yes or no (got 'maybe')", "yes or no")),
    ],
)
def test_a_setting_that_cannot_be_is_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with pytest.raises(UsageError) as found:
        OBJECTIVES.build(spec)
    says(unlisted(found, "objective"), *parts)
    assert found.value.exit_code == 2


@each("scheme", ["digits", "p1000", "xval"])
@each("spec", SPECS)
def test_hidden_state_j_predicts_token_j_of_the_row(spec: str, scheme: str) -> None:
    of = batch(scheme, TEXTS, answers=[11, 0, 2, 0, 4], targets=[2, 5])
    one = example(of, spec)
    rows, columns = np.divmod(one.where, one.tokens.shape[1])
    assert len(one.where) == len(one.labels) > 0
    for row, column, label in zip(rows, columns, one.labels, strict=True):
        ends = column == of.lengths[row]
        assert label == (END if ends else of.tokens[row, column])
        assert column <= of.lengths[row]


@each("scheme", ["digits", "p1000", "xval"])
@each("spec", SPECS)
def test_a_number_is_asked_for_at_its_first_token_with_its_value(spec: str, scheme: str) -> None:
    of = batch(scheme, TEXTS, answers=[11, 0, 2, 0, 4], targets=[2, 5])
    one = example(of, spec)
    rows, columns = np.divmod(one.number_where, one.tokens.shape[1])
    known = {
        (row, start): value
        for row, start, value in zip(of.number_row, of.number_start, of.number_value, strict=True)
    }
    assert len(one.number_where) > 0
    for row, column, value in zip(rows, columns, one.number_values, strict=True):
        assert known[row, column] == value
    assert set(one.number_where) <= set(one.where)  # the token is also predicted


# --- masks -------------------------------------------------------------------------------------


@each("scheme", ["digits", "p1000", "xval"])
@each("spec", ["mlm", "mlm:tokens", "mlm:targets"])
def test_what_is_asked_for_is_masked_and_nothing_else_is_changed(spec: str, scheme: str) -> None:
    of = batch(scheme, TEXTS, targets=[2, 5])
    one = example(of, spec)
    hidden = np.isin(np.arange(one.tokens.size), one.where).reshape(one.tokens.shape)
    assert (one.tokens[hidden] == MASK).all()
    assert (one.tokens[~hidden] == of.tokens[~hidden]).all()
    assert (one.values[hidden] == 1).all()
    assert (one.values[~hidden] == of.values()[~hidden]).all()
    assert np.array_equal(one.real, of.real)


@each("spec", ["mlm,rate=1", "mlm:tokens,rate=1"])
def test_at_a_rate_of_one_all_but_the_pads_is_masked(spec: str) -> None:
    of = batch("p1000", TEXTS)
    one = example(of, spec)
    masks = [[MASK] * length for length in of.lengths]
    width = of.tokens.shape[1]
    assert one.tokens.tolist() == [row + [PAD] * (width - len(row)) for row in masks]
    assert len(one.where) == of.lengths.sum()
    assert asked(of, one).all()


@each("spec", ["mlm,rate=1", "mlm:tokens,rate=1"])
def test_of_empty_rows_nothing_is_asked(spec: str) -> None:
    assert len(example(batch("p1000", ["", ""]), spec).where) == 0


@pytest.mark.parametrize("scheme", ["digits", "p10"])
@given(st.integers(0, 1000))
def test_a_number_is_masked_as_a_whole_or_not_at_all(scheme: str, seed: int) -> None:
    of = batch(scheme, TEXTS)
    one = example(of, "mlm,rate=0.5", seed)
    chosen = asked(of, one)
    for number, is_asked in enumerate(chosen.tolist()):
        start, length = of.number_start[number], of.number_length[number]
        seen = one.tokens[of.number_row[number], start : start + length]
        assert set((seen == MASK).tolist()) == {is_asked}


def share(part: int, whole: int, rate: float) -> bool:
    """Return whether a fraction is within five standard deviations of its expectation."""
    return abs(part - rate * whole) < 5 * math.sqrt(whole * rate * (1 - rate))


@each("rate", [0.15, 0.3, 0.8])
def test_numbers_and_other_tokens_are_masked_at_the_rate(rate: float) -> None:
    of = batch("digits", MANY)
    one = example(of, f"mlm,rate={rate}")
    inside = of.number_tokens(np.ones(len(of.number), np.bool_))
    hidden = one.tokens == MASK
    assert share(int(asked(of, one).sum()), len(of.number), rate)
    assert share(int((hidden & ~inside).sum()), int((of.real & ~inside).sum()), rate)


@each("rate", [0.15, 0.3])
def test_tokens_alone_are_masked_at_the_rate_and_leave_sibling_digits_in_sight(rate: float) -> None:
    of = batch("p10", MANY)
    one = example(of, f"mlm:tokens,rate={rate}")
    assert share(len(one.where), int(of.real.sum()), rate)
    whole = of.number_tokens(asked(of, one))
    others = int(whole.sum() - asked(of, one).sum())  # after the first token, which is masked
    hidden = int((one.tokens[whole] == MASK).sum() - asked(of, one).sum())
    assert share(hidden, others, rate)


def test_the_rate_of_the_public_code_is_the_default() -> None:
    assert OBJECTIVES.build("mlm") == OBJECTIVES.build("mlm:numbers,rate=0.3")


def test_targets_are_masked_and_nothing_else() -> None:
    of = batch("p1000", ["(2 * 3) = 6", "1 and 4"], targets=[2, 3])
    one = example(of, "mlm:targets")
    hidden = of.number_tokens(np.array([False, False, True, True, False]))
    assert np.array_equal(one.tokens == MASK, hidden)
    assert one.number_values.tolist() == [6, 1]


def test_a_masked_value_is_one_and_others_stay() -> None:
    of = batch("xval", ["(2 * 3) = 6"], targets=[2])
    assert of.values()[0].tolist() == [1, 2, 1, 1, 1, 3, 1, 1, 1, 1, 6]
    assert example(of, "mlm:targets").values[0].tolist() == [1, 2, 1, 1, 1, 3, 1, 1, 1, 1, 1]


def test_a_number_with_only_a_later_token_masked_is_not_asked_for() -> None:
    of = batch("p1000", ["5"])
    one = masked_batch(of, np.array([[False, True, False]]))
    assert (one.where.tolist(), one.number_where.tolist()) == ([1], [])


# --- autoregressive ----------------------------------------------------------------------------


@each("spec", ["ar", "ar:answer"])
def test_a_row_is_seen_moved_by_one_with_end_before_it(spec: str) -> None:
    of = batch("xval", TEXTS, answers=[11, 0, 2, 0, 4])
    one = example(of, spec)
    rows = len(TEXTS)
    assert one.tokens.tolist() == [[END, *row] for row in of.tokens.tolist()]
    assert one.values.tolist() == [[1.0, *row] for row in of.values().tolist()]
    tokens, values = shift_right(of)
    assert np.array_equal(one.tokens, tokens)
    assert np.array_equal(one.values, values)
    assert one.real.sum(axis=1).tolist() == [length + 1 for length in of.lengths]
    assert one.real.shape == (rows, of.tokens.shape[1] + 1)


def test_every_token_is_learnt_and_the_end_behind_it() -> None:
    of = batch("digits", TEXTS)
    one = example(of, "ar")
    expected = [
        token
        for row, length in zip(of.tokens.tolist(), of.lengths.tolist(), strict=True)
        for token in [*row[:length], END]
    ]
    assert one.labels.tolist() == expected
    *known, overflow = of.number_value.tolist()
    assert one.number_values.tolist() == known and math.isnan(overflow)


def test_of_an_answer_all_is_learnt_and_of_what_is_before_it_nothing() -> None:
    of = batch("p1000", ["2 + 3 = 5!", "8"], answers=[8, 0])
    one = example(of, "ar:answer")
    start = of.answer_start[0]
    assert one.labels.tolist() == [
        *of.tokens[0, start : of.lengths[0]].tolist(),
        END,
        *of.tokens[1, : of.lengths[1]].tolist(),
        END,
    ]
    assert one.number_values.tolist() == [5, 8]


def test_of_a_row_without_an_answer_nothing_is_learnt() -> None:
    of = batch("p1000", ["2 + 3 = 5", "7"], answers=[-1, 0])
    one = example(of, "ar:answer")
    assert one.labels.tolist() == [*of.tokens[1, : of.lengths[1]].tolist(), END]
    assert one.number_values.tolist() == [7]


# --- classify ----------------------------------------------------------------------------------


@each("scheme", ["digits", "p1000", "xval"])
@each("spec", LABELS)
def test_a_label_is_read_at_the_last_real_place_and_never_at_a_pad(spec: str, scheme: str) -> None:
    of = replace(batch(scheme, TEXTS), label=np.array([2, 0, 1, 0, 1]))
    one = example(of, spec)
    causal = OBJECTIVES.build(spec).causal
    rows, columns = np.divmod(one.where, one.tokens.shape[1])
    assert rows.tolist() == [0, 1, 2, 3, 4]
    assert one.labels.tolist() == [2, 0, 1, 0, 1]
    # Causal rows begin with [END]; a row without tokens is only [END].
    assert columns.tolist() == [max(0, length - 1 + causal) for length in of.lengths.tolist()]
    last = one.tokens[rows, columns]
    expected = [of.tokens[row, length - 1] for row, length in enumerate(of.lengths.tolist())]
    expected[TEXTS.index("")] = END
    assert last.tolist() == expected
    assert one.real.sum(axis=1).tolist() == (columns + 1).tolist()
    assert not (one.tokens[one.real] == PAD).any()


@each("spec", LABELS)
def test_a_model_of_labels_sees_all_numbers_and_is_asked_for_none(spec: str) -> None:
    of = replace(batch("xval", TEXTS, targets=[2]), label=np.zeros(5, np.int64))
    one = example(of, spec)
    causal = int(OBJECTIVES.build(spec).causal)
    inside = np.arange(of.tokens.shape[1]) < of.lengths[:, None]
    np.testing.assert_array_equal(one.tokens[:, causal:][inside], of.tokens[inside])
    np.testing.assert_array_equal(one.values[:, causal:], of.values())
    assert not len(one.number_where) and MASK not in one.tokens


@each("spec", LABELS)
def test_a_row_without_a_label_teaches_nothing(spec: str) -> None:
    of = replace(batch("p1000", TEXTS), label=np.array([2, -1, 1, -1, -1]))
    one = example(of, spec)
    assert (one.where // one.tokens.shape[1]).tolist() == [0, 2]
    assert one.labels.tolist() == [2, 1]
    assert example(batch("p1000", TEXTS), spec).where.tolist() == []


def test_rows_without_any_token_can_be_read() -> None:
    one = row_end_batch(batch("p1000", ["", ""]), causal=False)
    assert (one.tokens.tolist(), one.where.tolist()) == ([[END], [END]], [0, 1])
