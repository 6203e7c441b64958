"""Batches, compared with plain Python; their order is a pure function of seed, epoch and step."""

import sys
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok import seeds
from numtok.arrays import ranges
from numtok.models.batches import PAD, Batch, Batches, positions
from numtok.seeds import generator, seed_of, uniforms
from numtok.training.loop import prefetched
from tests.cases import each
from tests.fakemodels import batch, batches, codec, samples

SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(0, 5)), max_size=12)
TEXT = st.lists(
    st.sampled_from(["a", " of ", "-7", "60.2", " 0.125 ", " + ", "1e400", ""]), max_size=6
).map("".join)


def rows_of(one: Batch) -> list[int]:
    """Return the row indices of a batch of `lines`, in which row k contains only number k."""
    assert one.number_row.tolist() == list(range(len(one.number)))
    rows: list[int] = one.number.tolist()
    return rows


def lines(count: int, longest: int = 30) -> list[str]:
    """Return texts of various lengths with one number each."""
    lengths = np.random.default_rng(0).integers(0, longest, count).tolist()
    return ["a" * length + " 7" for length in lengths]


def epoch(of: Batches, seed: int, number: int) -> list[list[int]]:
    first = number * len(of)
    return [rows_of(of.at(seed, step)) for step in range(first, first + len(of))]


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(getattr(one, name), value) for name, value in vars(other).items())


# --- keys and spans ----------------------------------------------------------------------------


def test_uniforms_are_those_of_splitmix64(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first outputs for this seed are those printed for many implementations."""
    monkeypatch.setattr(seeds, "seed_of", lambda *key: 1234567)
    printed = [
        *(6457827717110365317, 3203168211198807973, 9817491932198370423),
        *(4593380528125082431, 16408922859458223821),
    ]
    expected = [output / 2**64 for output in printed]
    np.testing.assert_allclose(uniforms(np.arange(5)), expected, rtol=1e-15)


def test_uniforms_are_a_pure_function_of_key_and_number() -> None:
    whole = uniforms(np.arange(10_000), 0, "draws", 1)
    some = np.random.default_rng(0).integers(0, len(whole), 50)
    np.testing.assert_array_equal(uniforms(some, 0, "draws", 1), whole[some])
    other = uniforms(np.arange(10_000), 0, "draws", 2)
    assert whole.min() >= 0 and whole.max() < 1 and len(np.unique(whole)) == len(whole)
    # Values are uniform, and independent between keys and between neighbors.
    tenths, _ = np.histogram(whole, 10, (0, 1))
    assert (np.abs(tenths - 1000) < 5 * 30).all()
    assert abs(np.corrcoef(whole, other)[0, 1]) < 0.05
    assert abs(np.corrcoef(whole[1:], whole[:-1])[0, 1]) < 0.05


def test_a_seed_is_the_same_in_every_version() -> None:
    assert seed_of(0, "masks", 1) == 3366564210631351182
    assert all(0 <= seed_of(0, "order", epoch) < 1 << 63 for epoch in range(100))


def test_keys_that_read_alike_when_joined_are_not_taken_for_one_another() -> None:
    keys = [(1, "a", 23), (12, "a", 3), (1, "a2", 3), ("1a", 23), (1, "a", 2, 3)]
    assert len({seed_of(*key) for key in keys}) == len(keys)


def test_a_generator_is_a_pure_function_of_its_key() -> None:
    assert generator(3, "x").random() == generator(3, "x").random() != generator(3, "y").random()


@given(SPANS)
def test_ranges_and_positions_are_those_of_plain_python(spans: list[tuple[int, int, int]]) -> None:
    rows, starts, lengths = np.array(spans, np.int64).reshape(-1, 3).T
    expected = [(row, start + k) for row, start, length in spans for k in range(length)]
    found = positions(rows, starts, lengths)
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == expected
    assert ranges(starts, lengths).tolist() == [column for _, column in expected]


# --- one batch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["digits", "p1000", "xval"])
@given(st.lists(TEXT, min_size=1, max_size=5))
def test_a_batch_is_its_rows_padded(scheme: str, texts: list[str]) -> None:
    of = samples(scheme, texts)
    order = np.random.default_rng(len(of.tokens)).permutation(len(texts))
    one = batches(of, 1).of(order)
    assert one.tokens.shape == (len(texts), of.longest)
    numbers = 0
    for place, row in enumerate(order.tolist()):
        tokens = of.tokens[of.token_rows[row] : of.token_rows[row + 1]].tolist()
        pads = of.longest - len(tokens)
        assert one.tokens[place].tolist() == tokens + [PAD] * pads
        assert one.lengths[place] == len(tokens)
        real = one.real[place].tolist()
        assert real[1:] == [column < len(tokens) for column in range(1, of.longest)]
        assert all(real[:1])  # also for an empty row
        for number in range(*of.number_rows[row : row + 2].tolist()):
            assert one.number[numbers] == number
            assert one.number_row[numbers] == place
            assert one.number_start[numbers] == of.number_start[number]
            assert one.number_length[numbers] == of.number_length[number]
            numbers += 1
    assert len(one.number) == numbers


def plain_values(one: Batch) -> list[list[float]]:
    values = [[1.0] * one.tokens.shape[1] for _ in one.tokens]
    for row, start, value in zip(one.number_row, one.number_start, one.number_value, strict=True):
        values[row][start] = float(value)
    return values


def test_values_are_the_channel_where_a_number_begins_and_one_elsewhere() -> None:
    one = batch("xval", ["-2.5 of 8", "", "a 0 b"])
    assert one.values().dtype == np.float64  # the numbers of the text, not normalized
    assert one.values().tolist() == plain_values(one)
    assert one.values()[0].tolist() == [-2.5, 1, 1, 1, 1, 8]
    assert one.values()[2].tolist() == [1, 1, 0, 1, 1, 1]


def test_without_a_channel_all_values_are_one_and_numbers_are_known_all_the_same() -> None:
    one = batch("p1000", ["-2.5 of 8"])
    assert not one.channel
    assert (one.values() == 1).all()
    assert one.number_value.tolist() == [-2.5, 8]


def test_the_tokens_of_chosen_numbers_are_all_of_theirs_and_no_others() -> None:
    one = batch("digits", ["12.5 a 345", "-7"])
    inside = one.number_tokens(np.array([False, True, True]))
    written = [codec("digits").number_first + token for token in (3, 4, 5)]
    assert one.tokens[0][inside[0]].tolist() == written
    assert inside[1].tolist() == [True, True, *[False] * (one.tokens.shape[1] - 2)]
    assert not one.number_tokens(np.zeros(3, np.bool_)).any()


def test_targets_are_known_in_every_order_of_rows() -> None:
    of = samples("p1000", ["1 2", "3", "4 5 6"], targets=[1, 3, 5])
    one = batches(of, 3).of(np.array([2, 0, 1]))
    assert one.number.tolist() == [3, 4, 5, 0, 1, 2]
    assert one.is_target.tolist() == [True, False, True, False, True, False]


def test_answers_begin_where_the_data_says() -> None:
    of = samples("p1000", ["a 1 = 2", "b", "c = 3"], answers=[6, -1, 4])
    one = batches(of, 3).of(np.array([2, 1, 0]))
    assert one.answer_start.tolist() == [4, -1, 2 + 3 + 3]


# --- order -------------------------------------------------------------------------------------


@each(("rows", "size"), [(1, 1), (1, 4), (7, 3), (12, 4), (700, 3), (130, 200)])
def test_every_row_comes_exactly_once_an_epoch(rows: int, size: int) -> None:
    of = batches(samples("fp15", lines(rows)), size)
    assert len(of) == -(-rows // size)
    for number in range(3):
        found = epoch(of, 0, number)
        assert sorted(row for part in found for row in part) == list(range(rows))
        assert [len(part) for part in found[:-1]] == [size] * (len(of) - 1)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    of = batches(samples("fp15", lines(40)), 4)
    orders = [epoch(of, seed, number) for seed in (0, 1) for number in (0, 1, 2)]
    assert all(one != other for k, one in enumerate(orders) for other in orders[:k])


@given(st.lists(st.integers(0, 29), max_size=12), st.integers(0, 29))
def test_a_step_does_not_depend_on_the_steps_that_were_asked_for_before(
    asked: list[int], step: int
) -> None:
    of, texts = samples("fp15", lines(30)), 4
    used = batches(of, texts)
    for before in asked:
        used.at(before % 3, before)
    assert same(used.at(1, step), batches(of, texts).at(1, step))


def test_rows_of_like_length_come_together() -> None:
    of = samples("fp15", lines(3000, 200))
    found = batches(of, 8)

    def pads(rows: Sequence[NDArray[np.int64]]) -> int:
        return sum(
            int(of.lengths[part].max() * len(part) - of.lengths[part].sum()) for part in rows
        )

    unsorted = np.split(np.random.default_rng(0).permutation(3000), 3000 // 8)
    assert pads([np.array(part) for part in epoch(found, 0, 0)]) < 0.1 * pads(unsorted)


def test_long_rows_do_not_all_come_at_one_end_of_an_epoch() -> None:
    of = samples("fp15", lines(400, 200))
    longest = [int(of.lengths[part].max()) for part in epoch(batches(of, 4), 0, 0)]
    halves = np.split(np.array(longest), 2)
    assert abs(halves[0].mean() - halves[1].mean()) < 0.2 * np.mean(longest)


def test_which_rows_are_in_the_smaller_batch_is_left_to_chance() -> None:
    of = batches(samples("fp15", ["a" * length + " 7" for length in range(5)]), 4)
    last = [epoch(of, 0, number)[-1] for number in range(40)]
    assert {len(part) for part in last} == {1}
    assert {row for part in last for row in part} == set(range(5))


# --- prefetching -------------------------------------------------------------------------------


@each("workers", [0, 1, 3])
def test_the_data_order_does_not_depend_on_batch_workers(workers: int) -> None:
    of = samples("fp15", lines(30))
    alone = batches(of, 8)
    expected = [alone.at(0, step) for step in range(5, 60)]
    shared = batches(of, 8)
    found = list(prefetched(lambda step: shared.at(0, step), 5, 60, workers))
    assert len(found) == len(expected)
    assert all(map(same, found, expected))


def test_a_thread_is_not_given_the_order_that_another_asked_for() -> None:
    """Threads that switch often request batches of different epochs at the same time."""
    of = samples("fp15", lines(6))
    expected = [rows_of(batches(of, 3).at(0, step)) for step in range(400)]
    shared = batches(of, 3)
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        found = [rows_of(one) for one in prefetched(lambda s: shared.at(0, s), 0, 400, 4)]
    finally:
        sys.setswitchinterval(often)
    assert found == expected


def slow(index: int) -> int:
    """Return the index, with a longer delay for earlier items, so that they finish last."""
    time.sleep(0.002 * (8 - index % 8))
    return index


@each("workers", [0, 1, 4])
@each(("first", "end"), [(0, 17), (3, 4), (5, 5)])
def test_results_come_in_order_whichever_is_done_first(workers: int, first: int, end: int) -> None:
    assert list(prefetched(slow, first, end, workers)) == list(range(first, end))


@each("workers", [0, 1, 3])
def test_an_error_is_raised_where_its_result_would_have_come(workers: int) -> None:
    def make(index: int) -> int:
        if index == 4:
            raise ValueError("of index 4")
        return index

    found: list[int] = []
    with pytest.raises(ValueError, match="of index 4"):
        for one in prefetched(make, 0, 20, workers):
            found.append(one)
    assert found == [0, 1, 2, 3]


@each("workers", [0, 1, 3])
def test_closing_early_ends_the_work(workers: int) -> None:
    before = threading.active_count()
    made: list[int] = []

    def make(index: int) -> int:
        made.append(index)
        return index

    results = prefetched(make, 0, 10_000, workers)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    results.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert len(made) < 20
    with pytest.raises(StopIteration):
        next(results)


def test_what_waits_when_it_is_closed_is_never_made() -> None:
    begun, release = threading.Event(), threading.Event()
    made: list[int] = []

    def make(index: int) -> None:
        made.append(index)
        if index == 1:
            begun.set()
            assert release.wait(30)

    results = prefetched(make, 0, 10_000, 1)
    next(results)
    assert begun.wait(30)
    threading.Timer(0.3, release.set).start()  # closing waits for the item in progress
    results.close()  # type: ignore[attr-defined]
    assert made == [0, 1]


def test_no_more_is_prepared_than_will_soon_be_asked_for() -> None:
    made: list[int] = []
    results = prefetched(made.append, 0, 10_000, 2)
    next(results)
    time.sleep(0.05)
    assert len(made) <= 2 * 2 + 1
    results.close()  # type: ignore[attr-defined]
