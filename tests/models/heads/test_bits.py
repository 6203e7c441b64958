"""The head ``bits``: every float64, and bit patterns that are not finite numbers."""

import numpy as np
import pytest
import torch

from numtok.encoding.schemes.base import SCHEMES, Failure
from numtok.models.heads.base import ValueReader
from numtok.numerals.column import Numerals
from tests.fakeheads import PLAIN, value_head

BITS = value_head("bits")


@pytest.mark.parametrize("millions", [0.01, pytest.param(10, marks=pytest.mark.slow)])
def test_every_float64_is_written_learnt_and_said_as_it_is(millions: float) -> None:
    random, scheme, count = np.random.default_rng(0), SCHEMES.build("bits"), int(1e6 * millions)
    for first in range(0, count, 100_000):
        size = min(100_000, count - first)
        patterns = random.integers(0, 2**64, size, np.uint64, endpoint=False)
        values = patterns.view(np.float64)[np.isfinite(patterns.view(np.float64))]
        encoded = scheme.encode(Numerals.of_literals([repr(one) for one in values.tolist()]))
        assert encoded.channel is not None and encoded.channel.dtype == np.float64
        exact = encoded.channel.astype(np.float64)
        logits = torch.from_numpy(BITS.targets(exact) * 60 - 30)
        said = BITS.build(8).point(logits)
        back = scheme.decode(encoded.tokens, encoded.lengths, said).values
        assert np.array_equal(back.view(np.int64), values.view(np.int64))


def test_losses_are_ten_times_the_mean_over_all_bits() -> None:
    reader: ValueReader = BITS.build(8)
    targets = torch.from_numpy(BITS.targets(np.array([-60.2, 0.0])))
    assert reader.losses(torch.zeros(2, 64), targets).tolist() == pytest.approx(
        [10 * np.log(2)] * 2
    )


def test_what_is_said_and_is_no_number_is_a_named_failure() -> None:
    """An exponent of all ones is an infinity of either sign or NaN."""
    logits = torch.full((4, 64), -30.0)
    logits[:3, 1:12] = 30.0
    logits[1, 0] = logits[2, 63] = 30.0
    said = BITS.build(8).point(logits)
    assert said[:2].tolist() == [np.inf, -np.inf] and np.isnan(said[2]) and said[3] == 0
    four = np.ones(4, np.int32)
    for scheme in ("bits", "fone", "xval"):
        read = SCHEMES.build(scheme).decode(np.zeros(4, np.uint32), four, said)
        told = [Failure.OVERFLOW, Failure.OVERFLOW, Failure.MALFORMED, Failure.NONE]
        assert read.failures.tolist() == told, scheme
        assert np.isnan(read.values).tolist() == [True, True, True, False]


def test_a_distribution_of_sure_bits_is_that_number() -> None:
    values = np.array([-60.2, 17.5, 1e-300, -0.0])
    logits = torch.from_numpy(BITS.targets(values) * 4000 - 2000)
    sure = BITS.build(8).predictive(logits, {}, PLAIN)
    for told in (sure.mode(), sure.median(), sure.mean()):
        assert told.tolist() == values.tolist()
    assert sure.crps(values) == pytest.approx([0, 0, 0, 0], abs=1e-13)
    assert sure.cdf(values).tolist() == [1, 1, 1, 1]
