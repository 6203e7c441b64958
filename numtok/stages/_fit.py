"""Fit a codec on the train split: the text tokenizer's words, the normaliser's constants."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from numtok.codec import Codec, Spans, Texts, cut
from numtok.engines.local import Workers
from numtok.errors import DataError
from numtok.normalizers.base import FittedNormalizer, Moments, Normalizer, fit
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.records import TRAIN
from numtok.registry import settings_of
from numtok.schemes.base import Scheme
from numtok.stages._arrow import column
from numtok.stages._batches import Batch
from numtok.stages._encode_unit import Screening
from numtok.stages._inputs import Unit
from numtok.stages._rows import Categories
from numtok.text_tokenizers.base import NO_PIECES, Fitted, Pieces, TextTokenizer

SAMPLE = 16 << 20  # bytes of train text that a text tokenizer is fitted on


@dataclass(frozen=True)
class Unfitted:
    """A codec as it is asked for. ``text`` is set where the text tokenizer needs no fit."""

    scheme: Scheme
    policy: NumeralPolicy
    normalizer: Normalizer
    text_tokenizer: TextTokenizer
    text: Fitted | None

    def settings(self) -> dict[str, Any]:
        """What versions are taken over."""
        return {
            "scheme": settings_of(self.scheme),
            "numerals": self.policy.settings(),
            "normalize": settings_of(self.normalizer),
            "text_tokenizer": settings_of(self.text_tokenizer),
        }

    def fit(
        self,
        units: Sequence[Unit],
        screening: Screening,
        workers: Workers,
        progress: Callable[[int, int], None],
    ) -> tuple[Codec, list[str]]:
        """The codec, and the columns of groups and floors that rows of the sample have.

        A pure function of the input: the sample is the first 16 MiB of train text, and moments
        are merged in the order of the units. ``progress`` is told the bytes and the rows of each
        unit measured.
        """
        if self.text_tokenizer.needs_sample or self.normalizer.fitted:
            pieces, more = _sample(units, screening, self.policy)
        else:
            pieces, more = NO_PIECES, first_columns(units, screening)
        text = self.text or self.text_tokenizer.fit(pieces)
        moments = Moments()
        if self.normalizer.fitted:
            measured: dict[int, Moments] = {}
            measuring = replace(screening, reading=replace(screening.reading, checked=False))
            for unit, found, rows in workers.run(MeasureUnit(measuring, self.policy), units):
                measured[unit] = found
                progress(units[unit].size, rows)
            for unit in sorted(measured):
                moments = moments.merged(measured[unit])
        normalizer: FittedNormalizer = fit(self.normalizer, moments)
        return Codec(self.scheme, self.policy, normalizer, self.text_tokenizer, text), more


@dataclass(frozen=True)
class MeasureUnit:
    """Called with a unit, in any process: its index, the moments of its train numbers, its rows."""

    screening: Screening
    policy: NumeralPolicy

    def __call__(self, unit: Unit) -> tuple[int, Moments, int]:
        moments = Moments()
        rows = 0
        for batch, splits in self.screening.batches(unit):
            texts = Texts.of(_train(batch, splits))
            starts, ends, _ = scan(texts.data, texts.rows, self.policy)
            numerals = Numerals.read(Literals(texts.data, starts, ends))
            moments = moments.merged(Moments.of(numerals.values))
            rows += len(batch)
        return unit.index, moments, rows


def _train(batch: Batch, splits: Categories) -> "pa.Array[Any]":
    keep = dict(splits.places()).get(TRAIN, np.empty(0, np.int64))
    return batch.rows.texts if len(keep) == len(batch) else batch.rows.texts.take(column(keep))


def _sample(
    units: Sequence[Unit], screening: Screening, policy: NumeralPolicy
) -> tuple[Pieces, list[str]]:
    """The pieces of text of the first train rows, some 16 MiB."""
    chosen: list[pa.Array[Any]] = []
    more: set[str] = set()
    size = rows = rejected = 0
    for batch, splits in _batches(units, screening):
        rows, rejected = rows + len(batch), rejected + len(batch.rejected)
        more |= batch.rows.more_columns
        # Whole batches, so that the sample depends on the bytes of the input alone.
        chosen.append(_train(batch, splits))
        size += chosen[-1].nbytes
        if size >= SAMPLE:
            break
    if not rows:
        raise no_rows(rejected)
    texts = pa.concat_arrays(chosen)
    if not len(texts):
        raise DataError(
            f"no row is in the split {TRAIN!r}, so there is nothing to fit the encoding on; "
            "give train data as well, or --like REF to use an earlier encoding"
        )
    sample = Texts.of(texts)
    return cut(sample, Spans(*scan(sample.data, sample.rows, policy))), sorted(more)


def first_columns(units: Sequence[Unit], screening: Screening) -> list[str]:
    """The columns of groups and floors that the first rows have: nearly always all."""
    for batch, _ in _batches(units, screening):
        return sorted(batch.rows.more_columns)
    return []


def no_rows(rejected: int) -> DataError:
    """The error of a run that has nothing to work on."""
    if not rejected:
        return DataError("the input has no rows, only blank lines; give a file with at least one")
    return DataError(
        f"none of the {rejected} rows can be used; run with --on-error fail to see what is wrong "
        "with the first"
    )


def _batches(units: Sequence[Unit], screening: Screening) -> Iterator[tuple[Batch, Categories]]:
    for unit in units:
        yield from screening.batches(unit)
