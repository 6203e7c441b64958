"""numtok.check_visibility: states of causal batches that depend on later tokens."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import numtok
from numtok.errors import UsageError
from numtok.library.batch import NumberBatch
from numtok.library.codec import TextCodec
from tests.cases import case

TEXTS = ("2.5 + 13 = 15.5", "7 times -8 is -56", "41.5 - 0.4 = 41.1 of 3")
WIDTH = 16


def states_of(
    codec: TextCodec, causal: bool, scale: float = 1.0
) -> Callable[[NumberBatch], Tensor]:
    """Return a recurrent network with dropout that reads rows from one end or from both."""
    torch.manual_seed(0)
    embed = numtok.embedder("lookup", codec, width=WIDTH)
    reader = nn.GRU(WIDTH, WIDTH, bidirectional=not causal, batch_first=True)
    dropout = nn.Dropout(0.5)
    with torch.no_grad():
        for parameter in reader.parameters():
            parameter.mul_(scale)
    return lambda batch: dropout(reader(embed(batch))[0])[batch.where]


@pytest.mark.parametrize("scheme", ["xval", "p1000", "digits"])
def test_a_model_that_sees_later_tokens_is_refused_on_causal_batches(scheme: str) -> None:
    codec = TextCodec.fit(TEXTS, scheme=scheme, text_tokenizer="bytes")
    rows = numtok.batch(codec, TEXTS, mask="random", rate=0.8, causal=True, seed=1)
    for scale in (1.0, 0.05):
        with case(scale), pytest.raises(UsageError, match="later tokens"):
            numtok.check_visibility(states_of(codec, causal=False, scale=scale), rows)
    numtok.check_visibility(states_of(codec, causal=True), rows)


def test_batches_with_masks_and_without_numbers_are_not_checked() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    states = states_of(codec, causal=False)
    numtok.check_visibility(states, numtok.batch(codec, TEXTS))
    numtok.check_visibility(states, numtok.batch(codec, TEXTS, mask="none", causal=True))


def test_random_state_and_gradients_are_left_alone() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    states, before = states_of(codec, causal=True), torch.get_rng_state()
    numtok.check_visibility(states, numtok.batch(codec, TEXTS, causal=True))
    assert torch.equal(torch.get_rng_state(), before)
    assert states(numtok.batch(codec, TEXTS, causal=True)).requires_grad
