"""Texts encoded in memory, and small models of random weights, for the tests of ``nn``."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.splits import learnt_values
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts
from numtok.models.batches import Batch, Batches
from numtok.models.model import Model
from numtok.models.presets import preset
from numtok.models.settings import ModelSettings
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.policy import NumeralPolicy

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """For such small models more threads are only slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def codec(scheme: str) -> Codec:
    """A scheme, and text as bytes; numbers are not normalised."""
    tokenizer = TEXT_TOKENIZERS.build("bytes")
    return Codec(
        SCHEMES.build(scheme),
        NumeralPolicy(),
        FittedNormalizer(NORMALIZERS.build("none"), {}),
        tokenizer,
        tokenizer.load({}),
    )


def samples(
    scheme: str,
    texts: Sequence[str],
    *,
    answers: Sequence[int] | None = None,
    targets: Sequence[int] = (),
    labels: Sequence[str | None] | None = None,
) -> EncodedSplit:
    """Texts of ASCII as ``encode`` would write them.

    ``answers`` are where each answer begins in its text, -1 if nowhere; ``targets`` are numbers,
    counted over all texts.
    """
    column = Texts.of(pa.array(texts, pa.string()))
    marks = np.array(answers or [-1] * len(texts), np.int32)
    marks = np.where(marks < 0, -1, marks + column.rows[:-1])
    one = codec(scheme)
    encoded = one.encode(column, one.find(column), marks)
    number_rows = encoded.number_rows.astype(np.int64)
    wanted = np.array(targets, np.int64)
    return EncodedSplit(
        ids=pa.array(list(map(str, range(len(texts))))),
        tokens=encoded.tokens,
        token_rows=encoded.token_rows.astype(np.int64),
        number_rows=number_rows,
        numbers=encoded.numbers,
        number_start=encoded.number_start,
        number_length=encoded.number_length,
        channel=encoded.channel,
        targets=wanted,
        target_row=np.searchsorted(number_rows, wanted, side="right") - 1,
        target_name=pa.array(["number"] * len(wanted), pa.string()),
        target_literal=pa.array([str(encoded.numbers[index]) for index in wanted], pa.string()),
        answer_start=encoded.marks,
        labels=pa.array(labels or [None] * len(texts), pa.string()),
        groups={},
    )


def batches(of: EncodedSplit, size: int, classes: Sequence[str] = ()) -> Batches:
    """A value head learns the channel where there is one, and else the numbers themselves."""
    values = of.numbers.astype(np.float32) if of.channel is None else of.channel
    return Batches(of, lambda numbers: values[numbers], size, classes)


def batch(
    scheme: str,
    texts: Sequence[str],
    *,
    answers: Sequence[int] | None = None,
    targets: Sequence[int] = (),
) -> Batch:
    """All texts as one batch, in order."""
    of = samples(scheme, texts, answers=answers, targets=targets)
    learnt = learnt_values(of, codec(scheme))
    return Batches(of, learnt, len(texts)).of(np.arange(len(texts)))


def model(
    scheme: str,
    objective: str,
    *,
    size: str = "nano,layers=2,heads=2,width=16",
    context: int = 64,
    embedder: str | None = None,
    head: str | None = None,
    seed: int = 0,
    spread: float = 0.3,
    classes: Sequence[str] = (),
) -> Model:
    """A model that has learnt nothing, ready to be evaluated.

    Its weights have the standard deviation ``spread``, many times the usual one, so that it has
    strong opinions, which differ from token to token.
    """
    one = codec(scheme)
    settings = ModelSettings.of(
        preset(size),
        vocabulary=one.vocabulary_size,
        context=context,
        embedder=embedder or one.scheme.embedder,
        head=None if classes else head or one.scheme.head,
        objective=objective,
        classes=classes,
    )
    torch.manual_seed(seed)
    made = Model(settings, Vocabulary.of(one))
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=spread)
    return made.eval()


def numbers_of(of: Batch) -> NDArray[np.bool_]:
    """Every number of a batch chosen."""
    return np.ones(len(of.number), np.bool_)
