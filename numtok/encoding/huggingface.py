"""huggingface: runs Hugging Face's tokenizers once per distinct text, and handles their panics.

The tokenizers match patterns with a backtracking engine. After ten million steps, the library
panics and writes a report to standard error. This module turns a panic into an exception.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from numtok.arrays import Int32s, UInt8s, UInt32s, ranges

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOGETHER = 1 << 12  # texts per batch: the library returns large objects


class Panicked(Exception):
    """Error raised when Hugging Face's tokenizers library panics."""


@contextmanager
def panics() -> Iterator[None]:
    """Return a context manager that raises :class:`Panicked` if Hugging Face's library panics
    within the block, and suppresses the library's report."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    except BaseException as error:
        # The class cannot be imported, and is not an Exception, so that it is not caught by
        # accident.
        if type(error).__name__ != "PanicException":
            raise
        raise Panicked(" ".join(str(error).split())) from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def encode_texts(tokenizer: "Tokenizer", data: UInt8s, bounds: Int32s) -> tuple[UInt32s, Int32s]:
    """Tokenize the texts ``data[bounds[k]:bounds[k + 1]]``. Returns the concatenated ids,
    uint32[tokens], and the number of tokens of each text, int32[n].

    Raises :class:`Panicked` if the library panics.
    """
    import pyarrow as pa  # schemes and tokenizers are described without it

    column = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data))
    distinct = column.dictionary_encode()
    ids = [np.empty(0, np.uint32)]
    with panics():
        for first in range(0, len(distinct.dictionary), _TOGETHER):
            some = distinct.dictionary[first : first + _TOGETHER].to_pylist()
            encoded = tokenizer.encode_batch_fast(some, add_special_tokens=False)
            ids += [np.array(encoding.ids, np.uint32) for encoding in encoded]
    sizes = np.array([len(tokens) for tokens in ids[1:]], np.int32)
    which = distinct.indices.to_numpy()
    lengths, firsts = sizes[which], (np.cumsum(sizes) - sizes)[which]
    return np.concatenate(ids)[ranges(firsts, lengths)], lengths
