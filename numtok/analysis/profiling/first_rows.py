"""Reads the first rows of the data, for what a profile measures on a sample of texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from numtok.analysis.profiling.unit import Counted
from numtok.data.reading.batches import RowBatch
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.encoding.fit_codec import Unfitted
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.encoding.row_numbers import numbers_in
from numtok.encoding.schema import SPECIALS
from numtok.encoding.schemes.base import Scheme
from numtok.encoding.segments import cut
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts, joined
from numtok.encoding.unit import Screening
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import spec_of
from numtok.store.engines.local import Workers

_POLICY_SAMPLE = 1 << 20  # bytes of texts on which numeral policies are compared, about
_TEXT_SAMPLE = 4 << 20  # approximate bytes of rows whose text is tokenized
_TEXT_TOKENIZER = "words"  # the default of encode


@dataclass(frozen=True)
class TextCost:
    """Token cost of the text between numbers with the default text tokenizer. Unless ``exact`` is
    True, the cost is estimated from the first rows."""

    tokenizer: str
    tokens_per_row: float
    vocabulary: int  # including special tokens
    exact: bool


def _unchecked(screening: Screening) -> Screening:
    """Return the screening without the check that files are as planned, which the last pass over
    them makes."""
    return replace(screening, reading=replace(screening.reading, checked=False))


def _batches(units: Sequence[Unit], screening: Screening) -> Iterator[RowBatch]:
    """Yield the rows of all units in batches."""
    for unit in units:
        for batch, _ in screening.batches(unit):
            yield batch


def first_texts(units: Sequence[Unit], screening: Screening) -> Texts:
    """Return the first texts, about 1 MiB."""
    chosen, size = [], 0
    for batch in _batches(units, _unchecked(screening)):
        texts = Texts.of(batch.rows.texts)
        rows = 1 + int(np.searchsorted(texts.rows, int(texts.rows[0]) + _POLICY_SAMPLE))
        chosen.append(texts._replace(rows=texts.rows[:rows]))
        size += int(chosen[-1].rows[-1] - chosen[-1].rows[0])
        if size >= _POLICY_SAMPLE:
            break
    return joined(chosen)


def text_cost(
    units: Sequence[Unit],
    screening: Screening,
    policy: NumeralPolicy,
    scheme: Scheme,
    counts: Counted,
) -> TextCost | None:
    """Fit the default text tokenizer as ``encode`` does, and tokenize the first rows.

    None if there is no train split to fit it on, or rows have no numbers.
    """
    if not counts.splits[TRAIN] or not counts.rows_with_numbers:
        return None
    unchecked = _unchecked(screening)
    tokenizer = TEXT_TOKENIZERS.build(_TEXT_TOKENIZER)
    unfitted = Unfitted(
        scheme=scheme,
        policy=policy,
        normalizer=NORMALIZERS.build("none"),
        text_tokenizer=tokenizer,
        text=None,
    )
    codec, _, _ = unfitted.fit(units, unchecked, Workers(1), lambda what: lambda size, rows: None)
    tokens = rows = size = 0
    for batch in _batches(units, unchecked):
        texts, spans = numbers_in(batch.rows, policy)
        pieces = cut(texts, spans)
        tokens += len(codec.text.encode(pieces).ids)
        rows += len(batch)
        size += len(texts.data)
        if size >= _TEXT_SAMPLE:
            break
    vocabulary = len(codec.text.vocabulary()) + len(SPECIALS)
    return TextCost(spec_of(tokenizer), tokens / rows, vocabulary, rows == counts.rows)
