"""fit_codec: fits a codec on the train split.

Fitting determines the vocabulary of the text tokenizer, the constants of the normalizer, and the
state of the scheme.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.data.records.row_template import RowTemplate
from numtok.encoding.channel import normalized
from numtok.encoding.codec import Codec
from numtok.encoding.model_folder import PREFIX
from numtok.encoding.normalizers.base import (
    NORMALIZERS,
    FittedNormalizer,
    Moments,
    Normalizer,
    fit,
    splits_answers,
)
from numtok.encoding.number_sizes import NumberSizes
from numtok.encoding.row_keys import number_keys, row_codes
from numtok.encoding.row_numbers import numbers_in
from numtok.encoding.schemes.base import ChannelScheme, Scheme, needs_sample
from numtok.encoding.segments import cut
from numtok.encoding.text_tokenizers.base import (
    TEXT_TOKENIZERS,
    FittedTokenizer,
    TextTokenizer,
)
from numtok.encoding.texts import Texts, joined
from numtok.encoding.train_numbers import MeasureUnit, NumberSample, SampleUnit, in_train
from numtok.encoding.unit import Screening
from numtok.encoding.whole_text import TextScheme, among_text
from numtok.errors import DataError, UsageError
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import settings_of, spec_of
from numtok.store.engines.engine import Engine

Advance = Callable[[int, int], None]  # called with the bytes and rows of each finished unit

SAMPLE = 16 << 20  # bytes of train text for fitting a text tokenizer


def text_tokenizer_of(chosen: str) -> tuple[TextTokenizer, FittedTokenizer | None]:
    """Build a text tokenizer from a spec, from the path of a ``tokenizer.json``, or from ``hf:``
    followed by the folder or hub id of a pretrained model.

    Returns the tokenizer's settings and the tokenizer with its vocabulary. The tokenizer is None
    unless it comes from a file or a model. Raises the same errors as :meth:`Unfitted.of`.
    """
    is_model = chosen.startswith(PREFIX)
    if not is_model and "/" not in chosen and not chosen.endswith(".json"):
        return TEXT_TOKENIZERS.build(chosen), None
    from numtok.encoding.text_tokenizers.file import File  # imports their library

    return File.of_model(chosen.removeprefix(PREFIX)) if is_model else File.read(Path(chosen))


class FittedCodec(NamedTuple):
    """Result of fitting a codec.

    columns
        Names of the optional columns (:attr:`RowColumns.more_columns`) in the rows that were read
        for fitting.
    learnt_from
        Counts of the numbers in the train split and of the numbers that the scheme was fitted on.
        Empty if the scheme was not fitted.
    """

    codec: Codec
    columns: list[str]
    learnt_from: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Unfitted:
    """Codec settings before fitting.

    ``text`` is None unless the text tokenizer was read from a file or a model, and therefore
    already has a vocabulary. ``template`` is None unless the texts were rendered from records.
    """

    scheme: Scheme
    policy: NumeralPolicy
    normalizer: Normalizer
    text_tokenizer: TextTokenizer
    text: FittedTokenizer | None
    template: RowTemplate | None = None

    @classmethod
    def of(
        cls,
        scheme: Scheme,
        *,
        numerals: str | None = None,
        not_numbers: Sequence[str] = (),
        normalize: str | None = None,
        text_tokenizer: str | None = None,
    ) -> "Unfitted":
        """Create the settings from a scheme and the specs of the other parts. If a spec is None,
        the default is used.

        ``text_tokenizer`` may be anything that :func:`text_tokenizer_of` accepts.

        Raises UsageError if a part is unknown or cannot be combined with the others, and StoreError
        if a file cannot be read.
        """
        normalizer = NORMALIZERS.build(normalize or scheme.defaults.normalizer)
        policy = NumeralPolicy.parse(numerals or "default", not_numbers)
        if isinstance(scheme, TextScheme) and not normalizer.identity:
            raise UsageError(
                f"--normalize {spec_of(normalizer)} cannot be combined with --scheme "
                f"{spec_of(scheme)}, which keeps numbers as written. Leave out --normalize"
            )
        if splits_answers(normalizer) and not isinstance(scheme, ChannelScheme):
            raise UsageError(
                f"--normalize {spec_of(normalizer)} needs a scheme with a value for each number "
                f"(got {spec_of(scheme)}). Use --scheme xval, or leave out by=answer"
            )
        settings, text = text_tokenizer_of(text_tokenizer or "words")
        return cls(
            scheme=scheme, policy=policy, normalizer=normalizer, text_tokenizer=settings, text=text
        )

    def suited(self, sizes: NumberSizes) -> "Unfitted":
        """Return the settings with the scheme sized to the numbers in the data (see
        :meth:`Scheme.suited`). If numbers are normalized, the settings are unchanged."""
        if not self.normalizer.identity:
            return self
        return replace(self, scheme=self.scheme.suited(*sizes))

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the version of the encoded data."""
        return {
            "scheme": settings_of(self.scheme),
            "numerals": self.policy.settings(),
            "normalize": settings_of(self.normalizer),
            "text_tokenizer": settings_of(self.text_tokenizer),
        } | ({} if self.template is None else {"template": msgspec.to_builtins(self.template)})

    def fit(
        self,
        units: Sequence[Unit],
        screening: Screening,
        workers: Engine,
        advance: Callable[[str], Advance],
    ) -> FittedCodec:
        """Fit the codec on the train split.

        The result is a pure function of the input: the text tokenizer is fitted on the first 16 MiB
        of train text, moments are merged in the order of the units, and numbers are sampled by
        hashes of their rows.

        advance
            Function that starts a named pass over all units. It returns a function to be called
            with the number of bytes and rows of each finished unit.
        """
        scheme = self.scheme
        if self.text_tokenizer.needs_sample or self.normalizer.fitted or needs_sample(scheme):
            pieces, more = _sample(units, screening, self.policy)
        else:
            pieces, more = Texts.of([]), first_columns(units, screening)
        text = self.text or self.text_tokenizer.fit(pieces)
        screening = replace(screening, reading=replace(screening.reading, checked=False))
        moments = [Moments()]
        if self.normalizer.fitted:
            measure = MeasureUnit(screening, self.policy, text, splits_answers(self.normalizer))
            moments = _moments(measure, units, workers, advance("measuring"))
        normalizer = fit(self.normalizer, *moments)
        fitted_on: dict[str, int] = {}
        if needs_sample(scheme):
            sample = NumberSample()
            work, done = SampleUnit(screening, self.policy, text, normalizer), advance("sampling")
            for unit, part, rows in workers.run(work, units):  # in any order
                sample.merge(part)
                done(units[unit].size, rows)
            scheme = scheme.fit(sample.literals())
            fitted_on = {"numbers_train": sample.count, "numbers_learnt_from": sample.sampled}
        return FittedCodec(self._fitted(scheme, normalizer, text), more, fitted_on)

    def fit_texts(self, texts: Texts) -> Codec:
        """Fit the codec on texts in memory, in the same way as :meth:`fit`. The texts are assigned
        the ids 1, 2, ...

        Raises DataError if a normalizer or a scheme needs numbers and there are none.
        """
        spans = texts.find(self.policy)
        text = self.text or self.text_tokenizer.fit(cut(*_beginning(texts, spans)))
        numerals = spans.numerals()
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
            template=self.template,
        )


def _beginning(texts: Texts, spans: Spans) -> tuple[Texts, Spans]:
    """Return the first texts, about 16 MiB, with the spans of their numbers."""
    rows = 1 + int(np.searchsorted(texts.rows, int(texts.rows[0]) + SAMPLE))
    return texts._replace(rows=texts.rows[:rows]), spans.first(rows - 1)


def _moments(
    work: MeasureUnit, units: Sequence[Unit], workers: Engine, advance: Advance
) -> list[Moments]:
    """Compute the moments of all units, merged in the order of the units, not of completion."""
    by_unit: dict[int, tuple[Moments, ...]] = {}
    for unit, part, rows in workers.run(work, units):
        by_unit[unit] = part
        advance(units[unit].size, rows)
    kinds = zip(*(by_unit[unit] for unit in sorted(by_unit)), strict=True)
    return [reduce(Moments.merged, parts, Moments()) for parts in kinds] or [Moments()]


def _sample(
    units: Sequence[Unit], screening: Screening, policy: NumeralPolicy
) -> tuple[Texts, list[str]]:
    """Return the pieces of text of the first train rows, about 16 MiB, and the names of the
    optional columns in these rows."""
    chosen: list[Texts] = []
    more: set[str] = set()
    size = rows = train_rows = rejected = 0
    for batch, splits in chain.from_iterable(screening.accepted(unit, policy) for unit in units):
        rows, rejected = rows + len(batch), rejected + len(batch.rejected)
        more |= batch.rows.more_columns
        # Whole batches, so that the sample depends only on the bytes of the input.
        train = in_train(batch.rows, splits)
        chosen.append(cut(*numbers_in(train, policy)))
        train_rows += len(train)
        size += train.texts.nbytes
        if size >= SAMPLE:
            break
    if not rows:
        raise no_rows(rejected)
    if not train_rows:
        raise DataError(
            f"the split {TRAIN!r} has no rows to fit the encoding on. "
            "Add train data, or reuse an earlier encoding: --reuse-encoding REF"
        )
    return joined(chosen), sorted(more)


@dataclass(frozen=True)
class Reused:
    """Codec from an earlier artifact, used instead of fitting an :class:`Unfitted` codec."""

    codec: Codec

    @property
    def scheme(self) -> Scheme:
        """Scheme of the codec."""
        return self.codec.scheme

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the version of the encoded data: the digest of the
        codec."""
        return {"like": self.codec.digest}

    def fit(
        self,
        units: Sequence[Unit],
        screening: Screening,
        workers: Engine,
        advance: Callable[[str], Advance],
    ) -> FittedCodec:
        """Return the codec unchanged, with the names of the optional columns in the first rows."""
        return FittedCodec(self.codec, first_columns(units, screening), {})


def first_columns(units: Sequence[Unit], screening: Screening) -> list[str]:
    """Return the names of the optional columns (:attr:`RowColumns.more_columns`) in the first batch
    of rows. Later rows rarely contain additional columns."""
    for batch, _ in chain.from_iterable(map(screening.batches, units)):
        return sorted(batch.rows.more_columns)
    return []


def no_rows(rejected: int) -> DataError:
    """Return the error for an input without usable rows. ``rejected`` is the number of rejected
    rows."""
    if not rejected:
        return DataError("the input has no rows, only blank lines")
    return DataError(
        f"no row can be used ({rejected} rejected). Show the first error: --on-error fail"
    )
