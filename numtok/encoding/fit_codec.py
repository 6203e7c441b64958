"""Fit a codec on the train split: the text tokenizer's words, the normaliser's constants, what the
scheme learns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from numtok.data.reading.batches import RowBatch
from numtok.data.reading.rows import Categories
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.encoding.channel import normalized
from numtok.encoding.codec import Codec
from numtok.encoding.model_folder import PREFIX
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Moments, Normalizer, fit
from numtok.encoding.number_sizes import NumberSizes
from numtok.encoding.row_keys import number_keys, row_codes
from numtok.encoding.schemes.base import Scheme, needs_sample
from numtok.encoding.segments import cut
from numtok.encoding.text_tokenizers.base import (
    TEXT_TOKENIZERS,
    FittedTokenizer,
    TextTokenizer,
)
from numtok.encoding.texts import Spans, Texts
from numtok.encoding.train_numbers import MeasureUnit, NumberSample, SampleUnit, in_train
from numtok.encoding.unit import Screening
from numtok.encoding.whole_text import TextScheme, among_text
from numtok.errors import DataError, UsageError
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import settings_of, spec_of
from numtok.store.engines.engine import Engine

Advance = Callable[[int, int], None]  # told the bytes and the rows of each unit done

SAMPLE = 16 << 20  # bytes of train text that a text tokenizer is fitted on


def text_tokenizer_of(chosen: str) -> tuple[TextTokenizer, FittedTokenizer | None]:
    """That of a spec; or of the path of a ``tokenizer.json``, or ``hf:`` and a pretrained model,
    with its vocabulary. Raises as :meth:`Unfitted.of`."""
    is_model = chosen.startswith(PREFIX)
    if not is_model and "/" not in chosen and not chosen.endswith(".json"):
        return TEXT_TOKENIZERS.build(chosen), None
    from numtok.encoding.text_tokenizers.file import File  # imports their library

    return File.of_model(chosen.removeprefix(PREFIX)) if is_model else File.read(Path(chosen))


class FittedCodec(NamedTuple):
    """A codec, the columns of groups and floors that rows of the sample have, and from how many
    of the train split's numbers the scheme learnt (nothing where it did not)."""

    codec: Codec
    columns: list[str]
    learnt_from: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Unfitted:
    """A codec as it is asked for. ``text`` is set where the text tokenizer needs no fit."""

    scheme: Scheme
    policy: NumeralPolicy
    normalizer: Normalizer
    text_tokenizer: TextTokenizer
    text: FittedTokenizer | None

    @classmethod
    def of(
        cls,
        scheme: Scheme,
        *,
        numerals: str | None = None,
        normalize: str | None = None,
        text_tokenizer: str | None = None,
    ) -> "Unfitted":
        """By specs, or as :func:`text_tokenizer_of`; the defaults where they are None.

        Raises UsageError for what does not exist, StoreError for a file that cannot be read.
        """
        normalizer = NORMALIZERS.build(normalize or scheme.defaults.normalizer)
        policy = NumeralPolicy.parse(numerals or "default")
        if isinstance(scheme, TextScheme) and not normalizer.identity:
            raise UsageError(
                f"--normalize {spec_of(normalizer)} does not go with --scheme {spec_of(scheme)}, "
                "which leaves numbers as they are written; leave --normalize out"
            )
        settings, text = text_tokenizer_of(text_tokenizer or "words")
        return cls(
            scheme=scheme, policy=policy, normalizer=normalizer, text_tokenizer=settings, text=text
        )

    def suited(self, sizes: NumberSizes) -> "Unfitted":
        """The same with its scheme sized to numbers, which a normalization would change."""
        if not self.normalizer.identity:
            return self
        return replace(self, scheme=self.scheme.suited(*sizes))

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
        workers: Engine,
        advance: Callable[[str], Advance],
    ) -> "FittedCodec":
        """A pure function of the input: texts are learnt from the first 16 MiB of train text, what
        is measured is merged in the order of the units, and numbers are sampled by their rows.
        ``advance`` begins a pass over all units, by its name, which is told the bytes and the rows
        of each unit done.
        """
        scheme = self.scheme
        if self.text_tokenizer.needs_sample or self.normalizer.fitted or needs_sample(scheme):
            pieces, more = _sample(units, screening, self.policy)
        else:
            pieces, more = Texts.of([]), first_columns(units, screening)
        text = self.text or self.text_tokenizer.fit(pieces)
        screening = replace(screening, reading=replace(screening.reading, checked=False))
        moments = Moments()
        if self.normalizer.fitted:
            measure = MeasureUnit(screening, self.policy)
            moments = _moments(measure, units, workers, advance("measuring"))
        normalizer = fit(self.normalizer, moments)
        learnt_from: dict[str, int] = {}
        if needs_sample(scheme):
            sample = NumberSample()
            work, done = SampleUnit(screening, self.policy, normalizer), advance("sampling")
            for unit, part, rows in workers.run(work, units):  # in any order
                sample.merge(part)
                done(units[unit].size, rows)
            scheme = scheme.fit(sample.literals())
            learnt_from = {"numbers_train": sample.count, "numbers_learnt_from": sample.sampled}
        return FittedCodec(self._fitted(scheme, normalizer, text), more, learnt_from)

    def fit_texts(self, texts: Texts) -> Codec:
        """As :meth:`fit`, of texts in memory, each of the train split, whose ids are 1, 2, ...

        Raises DataError where a normaliser or a scheme has no number to learn from.
        """
        spans = texts.find(self.policy)
        text = self.text or self.text_tokenizer.fit(cut(*_beginning(texts, spans)))
        numerals = texts.numerals(spans)
        normalizer = fit(self.normalizer, Moments.of(numerals.values))
        scheme = self.scheme
        if needs_sample(scheme):
            ids = Texts.of([str(row) for row in range(1, len(spans.counts) + 1)])
            sample = NumberSample()
            hashes = number_keys(row_codes(ids, texts, spans, numerals), spans)
            sample.add(hashes, normalized(numerals, normalizer).literals)
            scheme = scheme.fit(sample.literals())
        return self._fitted(scheme, normalizer, text)

    def _fitted(self, scheme: Scheme, normalizer: FittedNormalizer, text: FittedTokenizer) -> Codec:
        return Codec(
            scheme=among_text(scheme, text),
            policy=self.policy,
            normalizer=normalizer,
            text_tokenizer=self.text_tokenizer,
            text=text,
        )


def _beginning(texts: Texts, spans: Spans) -> tuple[Texts, Spans]:
    """The first texts, some 16 MiB, with their numbers."""
    rows = 1 + int(np.searchsorted(texts.rows, int(texts.rows[0]) + SAMPLE))
    numbers = int(spans.counts[: rows - 1].sum())
    first = Spans(spans.starts[:numbers], spans.ends[:numbers], spans.counts[: rows - 1])
    return texts._replace(rows=texts.rows[:rows]), first


def _moments(
    work: MeasureUnit, units: Sequence[Unit], workers: Engine, advance: Advance
) -> Moments:
    """Those of all units, merged in their order, whatever the order they are done in."""
    found: dict[int, Moments] = {}
    for unit, part, rows in workers.run(work, units):
        found[unit] = part
        advance(units[unit].size, rows)
    return reduce(Moments.merged, (found[unit] for unit in sorted(found)), Moments())


def _sample(
    units: Sequence[Unit], screening: Screening, policy: NumeralPolicy
) -> tuple[Texts, list[str]]:
    """The pieces of text of the first train rows, some 16 MiB."""
    chosen: list[pa.Array[Any]] = []
    more: set[str] = set()
    size = rows = rejected = 0
    for batch, splits in _batches(units, screening):
        rows, rejected = rows + len(batch), rejected + len(batch.rejected)
        more |= batch.rows.more_columns
        # Whole batches, so that the sample depends on the bytes of the input alone.
        chosen.append(in_train(batch.rows.texts, splits))
        size += chosen[-1].nbytes
        if size >= SAMPLE:
            break
    if not rows:
        raise no_rows(rejected)
    texts = pa.concat_arrays(chosen)
    if not len(texts):
        raise DataError(
            f"no row is in the split {TRAIN!r}, so there is nothing to fit the encoding on; "
            "give train data as well, or --reuse-encoding REF to use an earlier encoding"
        )
    sample = Texts.of(texts)
    return cut(sample, sample.find(policy)), sorted(more)


@dataclass(frozen=True)
class Reused:
    """The codec of an earlier artifact, in place of an :class:`Unfitted` one."""

    codec: Codec

    @property
    def scheme(self) -> Scheme:
        """The scheme that numbers are written in."""
        return self.codec.scheme

    def settings(self) -> dict[str, Any]:
        """Return what versions depend on."""
        return {"like": self.codec.digest}

    def fit(
        self,
        units: Sequence[Unit],
        screening: Screening,
        workers: Engine,
        advance: Callable[[str], Advance],
    ) -> FittedCodec:
        """Return the codec unchanged, with the columns of the first rows."""
        return FittedCodec(self.codec, first_columns(units, screening), {})


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


def _batches(units: Sequence[Unit], screening: Screening) -> Iterator[tuple[RowBatch, Categories]]:
    for unit in units:
        yield from screening.batches(unit)
