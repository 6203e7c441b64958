"""Hugging Face's tokenizers: run once for each distinct text, and their panics as exceptions.

Their patterns are matched by an engine that goes back as often as it must, up to ten million times;
then the library panics, and writes a report to standard error.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from numtok.arrays import Int32s, UInt8s, UInt32s, ranges

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOGETHER = 1 << 12  # texts cut at a time: what comes back of one is large


class Panicked(Exception):
    """The library could not go on."""


@contextmanager
def panics() -> Iterator[None]:
    """Raise Panicked where the library panics within the block, and keep its report to itself."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    except BaseException as error:
        # Of no class that can be imported, and no Exception, so as not to be caught by chance.
        if type(error).__name__ != "PanicException":
            raise
        raise Panicked(" ".join(str(error).split())) from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def encode_texts(tokenizer: "Tokenizer", data: UInt8s, bounds: Int32s) -> tuple[UInt32s, Int32s]:
    """The tokens of texts ``data[bounds[k]:bounds[k + 1]]``, text after text, and how many each
    has. Raises Panicked."""
    column = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data))
    distinct = column.dictionary_encode()
    ids = [np.empty(0, np.uint32)]
    with panics():
        for first in range(0, len(distinct.dictionary), _TOGETHER):
            some = distinct.dictionary[first : first + _TOGETHER].to_pylist()
            encoded = tokenizer.encode_batch_fast(some, add_special_tokens=False)
            ids += [np.array(one.ids, np.uint32) for one in encoded]
    sizes = np.array([len(one) for one in ids[1:]], np.int32)
    which = distinct.indices.to_numpy()
    lengths, firsts = sizes[which], (np.cumsum(sizes) - sizes)[which]
    return np.concatenate(ids)[ranges(firsts, lengths)], lengths
