"""``numtok.load``: what is in a store, as an object of its kind."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok.cli.output.printing import Format
from numtok.encoding.splits import check_split, read_codec, splits
from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.library.arguments import as_arguments, open_store, store_root
from numtok.library.view import as_html, printed
from numtok.reports import REPORT, Figure, Report
from numtok.store.artifact import ENCODED, MODEL, Artifact

if TYPE_CHECKING:
    import polars as pl

    from numtok.evaluation.report_files import Evaluation, ReportPredictions
    from numtok.evaluation.text_rows import RowPrediction, TextPredictor
    from numtok.library.codec import TextCodec
    from numtok.settings.predict import Config


class StoredArtifact:
    """Something in a store: its ``ref``, its ``kind`` and the folder ``path`` that it lies in.

    It stands for its REF wherever a function of numtok takes one.
    """

    def __init__(self, artifact: Artifact, store: Path) -> None:
        self._artifact = artifact
        self.store = store

    @property
    def ref(self) -> str:
        """``name@version``."""
        return self._artifact.ref

    @property
    def kind(self) -> str:
        """Such as ``encoded``, ``model`` or ``report``."""
        return self._artifact.kind

    @property
    def path(self) -> Path:
        """The folder of its files, which are read only."""
        return self._artifact.path

    @property
    def counts(self) -> Mapping[str, int]:
        """How much of what there is: rows, tokens, steps and the like."""
        return self._artifact.manifest.counts

    def __repr__(self) -> str:
        return f"<numtok {self.kind} {self.ref}>"


class EncodedData(StoredArtifact):
    """Encoded data: a codec, and rows of tokens in splits."""

    @cached_property
    def codec(self) -> "TextCodec":
        """What it was encoded with."""
        from numtok.library.codec import TextCodec

        return TextCodec(read_codec(self._artifact))

    @property
    def splits(self) -> list[str]:
        """Their names."""
        return list(splits(self._artifact))

    @as_arguments()
    def to_arrow(self, split: str = "train") -> "pa.Table":
        """The rows of a split: ``id``, ``text``, ``tokens``, ``numbers`` and the columns besides.

        Raises UsageError for a split that is not there, StoreError for a damaged file.
        """
        check_split(self._artifact, split)
        shards = splits(self._artifact)[split]
        parts = [pq.read_table(one, page_checksum_verification=True) for one in shards]
        return pa.concat_tables(parts)

    def to_polars(self, split: str = "train") -> "pl.DataFrame":
        """As :meth:`to_arrow`, a data frame."""
        return _frame(self.to_arrow(split))


class TextModel(StoredArtifact):
    """A trained model; of texts it can be asked here, of tables by ``numtok.predict``."""

    #: In memory, for the settings that it was asked with last.
    _known: "tuple[Config, TextPredictor] | None" = None

    @cached_property
    def codec(self) -> "TextCodec":
        """What it reads; UsageError for a model of tables."""
        from numtok.library.codec import TextCodec

        self._file()
        return TextCodec(read_codec(self._artifact))

    @as_arguments()
    def predict(self, texts: Any, **settings: Any) -> "list[RowPrediction]":
        """What the model says of each text, in order: for the numbers written ``[?]``, or its
        label, or how it goes on (``fill="answers"``).

        ``settings`` are those of ``numtok predict``: ``point``, ``decode``, ``device`` and so on.
        Each answer has ``text`` with the numbers filled in, and ``numbers``, dicts of ``literal``,
        ``value`` and quantiles (``q05`` ... ``q95``) in raw units; or ``label`` and
        ``probability``; or ``answer``.

        >>> model = numtok.load("rooms-xval-nano")
        >>> model.predict(["A room of 3 m by 4.5 m has an area of [?] square metres."])[0].text
        'A room of 3 m by 4.5 m has an area of 13.52871 square metres.'

        Raises DataError for what is no column of texts, a text without ``[?]`` and one that is too
        long, UsageError for what the model cannot be asked, TrainingFailed where memory is out.
        """
        from numtok.evaluation.text_rows import Query
        from numtok.library.arguments import settings_of
        from numtok.settings.predict import Config

        column = Texts.of(texts).strings()
        if not column:
            return []
        given = {"model": self.ref, "text": column[:1]} | settings
        predictor = self._predictor(settings_of(Config, (), given))
        rows = [Query(f"text {place}", b"", text) for place, text in enumerate(column)]
        return predictor.predict(rows, lambda note: None)

    def _predictor(self, config: "Config") -> "TextPredictor":
        """The model in memory."""
        from dataclasses import replace

        from numtok.evaluation.text_rows import TextPredictor
        from numtok.training.device import device_of

        asked = replace(config, text=("",))
        if self._known is None or self._known[0] != asked:
            device = device_of(config.device)
            made = TextPredictor.of(config, self._artifact, self._file(), device)
            self._known = asked, made
        return self._known[1]

    def _file(self) -> Any:
        from numtok.training.model_json import TextModelFile, read_model_file

        file = read_model_file(self._artifact)
        if not isinstance(file, TextModelFile):
            raise UsageError(
                f"{self.ref} is a model of tables, which has no texts to read; ask it by "
                "numtok.predict(MODEL, FILE)"
            )
        return file


class StoredReport(StoredArtifact):
    """A report: metrics with intervals beside baselines, and the predictions that they are of."""

    @cached_property
    def evaluation(self) -> "Evaluation":
        """The report and its clocks; StoreError for a damaged file."""
        from numtok.evaluation.report_files import read

        return read(self._artifact)

    @property
    def report(self) -> Report:
        """All that it says."""
        return self.evaluation.report

    @property
    def metrics(self) -> Mapping[str, Figure]:
        """By name: ``value``, ``low`` and ``high`` of the 95% interval, ``n``."""
        return self.report.metrics

    @cached_property
    def _predictions(self) -> "ReportPredictions":
        from numtok.evaluation.report_files import ReportPredictions

        return ReportPredictions.read(self.evaluation)

    def to_arrow(self) -> "pa.Table":
        """The predictions that are scored, sorted by id, target and position: ``truth``,
        ``prediction``, ``valid``, densities and quantiles, in raw units."""
        return self._predictions.table

    def to_polars(self) -> "pl.DataFrame":
        """As :meth:`to_arrow`, a data frame."""
        return _frame(self.to_arrow())

    def __str__(self) -> str:
        return printed(self._show, Format.TABLE)

    def _repr_html_(self) -> str:
        """The tables that ``numtok report`` prints."""
        return as_html(printed(self._show, Format.MD))

    def _show(self, format: Format) -> None:
        from numtok.cli.output.report import print_report

        print_report(self.evaluation, format)


KINDS: Mapping[str, type[StoredArtifact]] = {
    ENCODED: EncodedData,
    MODEL: TextModel,
    REPORT: StoredReport,
}


@as_arguments()
def load(ref: str, *, store: str | Path | None = None) -> Any:
    """The artifact that a REF stands for: an :class:`EncodedData`, a :class:`TextModel`, a
    :class:`StoredReport`, or of another kind a :class:`StoredArtifact`.

    ``store`` is its folder; None: ``NUMTOK_STORE``, or ``artifacts``.

    >>> numtok.load("rooms-xval", store="artifacts").metrics["r2"].value
    0.999949

    Raises UsageError for what is not there, or stands for several.
    """
    return stored(open_store(store).resolve(str(ref)), store_root(store))


def stored(artifact: Artifact, store: Path) -> Any:
    """An artifact as an object of its kind."""
    return KINDS.get(artifact.kind, StoredArtifact)(artifact, store)


def _frame(table: "pa.Table") -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
