"""Fit a codec on the train split: the text tokenizer's words, the normaliser's constants, what the
scheme learns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from numtok.codec import Codec, Spans, Texts, cut
from numtok.engines.local import Workers
from numtok.errors import DataError
from numtok.normalizers.base import Moments, Normalizer, fit
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.records import TRAIN
from numtok.registry import settings_of
from numtok.schemes.base import Scheme
from numtok.stages._batches import Batch
from numtok.stages._encode_unit import Screening
from numtok.stages._inputs import Unit
from numtok.stages._rows import Categories
from numtok.stages._train_numbers import CountUnit, LiteralCounts, MeasureUnit, train_texts
from numtok.text_tokenizers.base import NO_PIECES, Fitted, Pieces, TextTokenizer

T = TypeVar("T")
Advance = Callable[[int, int], None]  # told the bytes and the rows of each unit done

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
        advance: Callable[[str], Advance],
    ) -> tuple[Codec, list[str]]:
        """The codec, and the columns of groups and floors that rows of the sample have.

        A pure function of the input: the sample is the first 16 MiB of train text, and what is
        measured is merged in the order of the units. ``advance`` begins a pass over all units, by
        its name, which is told the bytes and the rows of each unit done.
        """
        scheme = self.scheme
        if self.text_tokenizer.needs_sample or self.normalizer.fitted or scheme.needs_sample:
            pieces, more = _sample(units, screening, self.policy)
        else:
            pieces, more = NO_PIECES, first_columns(units, screening)
        text = self.text or self.text_tokenizer.fit(pieces)
        screening = replace(screening, reading=replace(screening.reading, checked=False))
        moments = Moments()
        if self.normalizer.fitted:
            measure = MeasureUnit(screening, self.policy)
            for found in _in_order(measure, units, workers, advance("measuring")):
                moments = moments.merged(found)
        normalizer = fit(self.normalizer, moments)
        if scheme.needs_sample:
            counts = LiteralCounts()
            count = CountUnit(screening, self.policy, normalizer)
            for literals in _in_order(count, units, workers, advance("counting")):
                counts.merge(literals)
            scheme = scheme.fit(counts.smallest())
        return Codec(scheme, self.policy, normalizer, self.text_tokenizer, text), more


def _in_order(
    work: Callable[[Unit], tuple[int, T, int]],
    units: Sequence[Unit],
    workers: Workers,
    advance: Advance,
) -> list[T]:
    """What is found in each unit, whatever the order they are done in."""
    found: dict[int, T] = {}
    for unit, part, rows in workers.run(work, units):
        found[unit] = part
        advance(units[unit].size, rows)
    return [found[unit] for unit in sorted(found)]


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
        chosen.append(train_texts(batch, splits))
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
