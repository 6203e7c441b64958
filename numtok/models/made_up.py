"""Small synthetic batches and a simulated device, used to check model parts."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from numtok.contracts import require
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.in_memory import rows_of
from numtok.encoding.normalizers.base import no_scaling
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.splits import learnt_values
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.models.batches import Batch, Batches
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.policy import NumeralPolicy

#: Texts with and without numbers; the answer is after the ``=``.
TEXTS = ("(2 * 3.5) = -7", "", "no number", "8", "x 0 y 12.25 z 1e400")
ANSWERS = (11, 0, 2, 0, 4)  # offset of each answer
TARGETS = (2, 5)  # indices of numbers, counted over all texts


@cache
def codec(scheme: str) -> Codec:
    """Return a codec that uses the given scheme, encodes text as bytes and does not normalize
    numbers."""
    tokenizer = TEXT_TOKENIZERS.build("bytes")
    return Codec(
        scheme=SCHEMES.build(scheme),
        policy=NumeralPolicy(),
        normalizer=no_scaling(),
        text_tokenizer=tokenizer,
        text=tokenizer.load({}),
    )


def samples(
    scheme: str,
    texts: Sequence[str],
    *,
    answers: Sequence[int] | None = None,
    targets: Sequence[int] = (),
    labels: Sequence[str | None] | None = None,
) -> EncodedSplit:
    """Encode ASCII texts in the same way as ``numtok encode``.

    ``answers`` contains the offset of the answer in each text, or -1 for texts without an answer.
    ``targets`` contains the indices of the target numbers, counted over all texts.
    """
    column = Texts.of(pa.array(texts, pa.string()))
    marks = np.array(answers or [-1] * len(texts), np.int32)
    marks = np.where(marks < 0, -1, marks + column.rows[:-1])
    encoder = codec(scheme)
    encoded = encoder.encode(column, encoder.find(column), marks)
    rows = rows_of(encoded, np.array(targets, np.int64))
    return rows if labels is None else replace(rows, labels=pa.array(labels, pa.string()))


def batch(
    scheme: str,
    texts: Sequence[str],
    *,
    answers: Sequence[int] | None = None,
    targets: Sequence[int] = (),
) -> Batch:
    """Encode texts as in :func:`samples`, and return all of them as one batch in the same order."""
    of = samples(scheme, texts, answers=answers, targets=targets)
    targets_of = learnt_values(of, codec(scheme))
    return Batches(of, targets_of, len(texts)).of(np.arange(len(texts)))


def made_up(scheme: str) -> Batch:
    """Return the example texts :data:`TEXTS` as one batch, with answers and targets."""
    return batch(scheme, TEXTS, answers=ANSWERS, targets=TARGETS)


@cache
def vocabularies() -> dict[str, Vocabulary]:
    """Return the vocabulary of every scheme without required settings, keyed by the scheme's
    name."""
    names = [name for name in SCHEMES if not SCHEMES.required(name)]
    return {name: Vocabulary.of(codec(name)) for name in names}


T = TypeVar("T")
M = TypeVar("M", bound=nn.Module)


def accepted(
    thing: object, member: str, make: Callable[[Vocabulary], T]
) -> Iterator[tuple[str, Vocabulary, T]]:
    """Call ``make`` with the vocabulary of each scheme, and yield the name of the scheme, the
    vocabulary and the result.

    Schemes for which ``make`` raises UsageError are skipped. If every scheme is skipped,
    ContractBreak is raised, with a message that names ``member`` of ``thing``.
    """
    some = False
    for scheme, vocabulary in vocabularies().items():
        try:
            part = make(vocabulary)
        except UsageError as error:
            if type(error) is not UsageError:  # an error in a plugin
                raise
            continue
        some = True
        yield scheme, vocabulary, part
    require(thing, member, some, "rejected the tokens of every scheme, expected a module")


def on_another_device(module: M, run: Callable[[M, str], object]) -> None:
    """Run a module on a simulated device, to detect CPU tensors that it would combine with GPU
    tensors.

    ``run`` is called with a copy of the module on that device, and with the name of the device.
    Tensors on it have shapes but no values. Raises RuntimeError, at the line in question, if a CPU
    tensor is combined with a tensor on the device; other errors of the module propagate. A module
    that depends on the values of tensors cannot run on the device and is not checked.
    """
    moved = copy.deepcopy(module).to("meta")
    # PyTorch has no autocast for this device.
    no_autocast = patch.multiple(
        torch.autocast, __init__=_ignore, __enter__=_ignore, __exit__=_ignore
    )
    with torch.no_grad(), no_autocast, FakeTensorMode(allow_non_fake_inputs=True):
        try:
            run(moved, "meta")
        except (DataDependentOutputException, DynamicOutputShapeException):
            return
        except RuntimeError as error:
            message = str(error)
            if "supported for tensor subclasses" in message:  # ``numpy()``, ``tolist()``
                return
            if "same device" not in message and "different devices" not in message:
                raise
            what = "on a GPU, a CPU tensor would be combined with a GPU tensor"
            raise RuntimeError(
                f"{what}. Create it with device=, or store it with register_buffer"
            ).with_traceback(error.__traceback__) from None


def _ignore(*arguments: object, **options: object) -> None:
    """Do nothing."""
