"""``numtok.load``: artifacts in a store as Python objects, with one class per kind."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok.cli.output.printing import Format
from numtok.encoding.splits import check_split, splits
from numtok.encoding.stored_codec import read_codec
from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.library.arguments import (
    as_arguments,
    check_type,
    open_store,
    settings_of,
    store_root,
)
from numtok.library.codec import TextCodec
from numtok.library.view import as_html, printed
from numtok.reports import REPORT, Figure, Report
from numtok.settings.predict import Config
from numtok.store.artifact import ENCODED, MODEL, Artifact

if TYPE_CHECKING:
    import polars as pl

    from numtok.evaluation.text_rows import RowPrediction


class StoredArtifact:
    """An artifact in a store. numtok functions accept it wherever they accept its REF.

    ``store`` is the store's folder.
    """

    def __init__(self, artifact: Artifact, store: Path) -> None:
        self._artifact = artifact
        self.store = store

    @property
    def ref(self) -> str:
        """REF of the artifact, ``name@version``."""
        return self._artifact.ref

    @property
    def kind(self) -> str:
        """Kind of the artifact, such as ``encoded``, ``model`` or ``report``."""
        return self._artifact.kind

    @property
    def path(self) -> Path:
        """Folder that contains the files of the artifact. The files are read-only."""
        return self._artifact.path

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts stored with the artifact, keyed by name, such as ``rows``, ``tokens`` and
        ``steps``."""
        return self._artifact.manifest.counts

    def __repr__(self) -> str:
        return f"<numtok {self.kind} {self.ref}>"


class EncodedData(StoredArtifact):
    """Encoded data: rows of tokens in splits, and the codec that encoded them."""

    @cached_property
    def codec(self) -> TextCodec:
        """Codec that encoded the data."""
        return TextCodec(read_codec(self._artifact))

    @property
    def splits(self) -> list[str]:
        """Names of the splits, such as ``train`` and ``test``."""
        return list(splits(self._artifact))

    @as_arguments()
    def to_arrow(self, split: str = "train") -> pa.Table:
        """Return the rows of a split as an Arrow table.

        Its columns include ``id``, ``text``, ``tokens`` and ``numbers``. Raises UsageError if the
        split is unknown, and StoreError if a file is damaged.
        """
        check_split(self._artifact, split)
        shards = splits(self._artifact)[split]
        parts = [pq.read_table(shard, page_checksum_verification=True) for shard in shards]
        return pa.concat_tables(parts)

    def to_polars(self, split: str = "train") -> "pl.DataFrame":
        """Return the rows of a split as a polars data frame, with the same columns as
        :meth:`to_arrow`.
        """
        return _frame(self.to_arrow(split))


class TextModel(StoredArtifact):
    """A trained model, for texts or for tables.

    Models that read texts predict with :meth:`predict`, including those trained on
    :func:`numtok.features`. Other table models predict with :func:`numtok.predict`.
    """

    #: The predictor in memory, with its settings.
    _loaded: "tuple[Config, Callable[..., list[RowPrediction]]] | None" = None

    @cached_property
    def codec(self) -> TextCodec:
        """Codec of the model. Raises UsageError for a table model, which has no codec."""
        from numtok.training.model_json import TextModelFile, read_model_file

        if not isinstance(read_model_file(self._artifact), TextModelFile):
            raise UsageError(f"{self.ref} is a table model, which has no codec")
        return TextCodec(read_codec(self._artifact))

    @as_arguments()
    def predict(self, texts: Any, **settings: Any) -> "list[RowPrediction]":
        """Predict what is missing in each text: numbers written ``[?]``, a label, or the
        continuation.

        Models trained on labels predict the label. With ``fill="answers"``, the continuation is
        predicted.

        Parameters
        ----------
        texts : sequence of str, NumPy array, Arrow array, or polars or pandas column
            Texts to fill in.
        **settings
            Settings of :func:`numtok.predict`, such as ``point``, ``interval`` and ``device``.

        Returns
        -------
        list of RowPrediction
            One prediction per text, in the order of the texts. If numbers are predicted, it has
            ``text``, the text with its numbers filled in, and ``numbers``, a list of dicts with
            ``literal``, ``value``, quantiles (``q05`` ... ``q95``) and, if set, ``interval`` in raw
            units. Otherwise, it has ``label`` and ``probability``, or ``answer`` and ``ended``.

        Raises
        ------
        DataError
            If ``texts`` is not a column of texts, or if a text is too long, contains a character
            that the model cannot read, contains no ``[?]`` although numbers are predicted, or
            contains ``[?]`` although its continuation is predicted.
        UsageError
            If the model does not support a setting.
        TrainingFailed
            If memory runs out.

        Examples
        --------
        >>> model = numtok.load("rooms-xval-nano")
        >>> model.predict(["A room of 3 m by 4.5 m has an area of [?] square metres."])[0].text
        'A room of 3 m by 4.5 m has an area of 13.52871 square metres.'
        """
        from numtok.evaluation.text_rows import Query

        column = Texts.of(texts).strings()
        if not column:
            return []
        named = {"model": self.ref, "text": column[:1]} | settings
        predict = self._predictor(settings_of(Config, (), named))
        rows = [Query(f"text {index}", b"", text) for index, text in enumerate(column)]
        return predict(rows, lambda note: None)

    def _predictor(self, config: Config) -> "Callable[..., list[RowPrediction]]":
        """Return the function that predicts with these settings, kept in memory."""
        from numtok.stages.predict import text_predictor

        key = replace(config, text=("",))
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = key, text_predictor(config, self._artifact, open_store(self.store))
        return self._loaded[1]


class StoredReport(StoredArtifact):
    """A report: metrics with confidence intervals, baselines, and predictions."""

    @cached_property
    def evaluation(self) -> Evaluation:
        """The report with its timings. Raises StoreError if a file is damaged."""
        return read(self._artifact)

    @property
    def report(self) -> Report:
        """The full report, including baselines, costs and metrics per field and group."""
        return self.evaluation.report

    @property
    def metrics(self) -> Mapping[str, Figure]:
        """Metrics by name, each with its ``value``, 95% interval (``low``, ``high``) and sample
        size ``n``.
        """
        return self.report.metrics

    @cached_property
    def _predictions(self) -> ReportPredictions:
        return ReportPredictions.read(self.evaluation)

    def to_arrow(self) -> pa.Table:
        """Return the scored predictions as an Arrow table, sorted by ID, target and position.

        Its columns include ``truth``, ``prediction``, ``valid``, densities and quantiles, in raw
        units.
        """
        return self._predictions.table

    def to_polars(self) -> "pl.DataFrame":
        """Return the scored predictions as a polars data frame, with the same rows and columns as
        :meth:`to_arrow`.
        """
        return _frame(self.to_arrow())

    def __str__(self) -> str:
        return printed(self._show, Format.TABLE)

    def _repr_html_(self) -> str:
        """Return the tables of ``numtok report`` as HTML."""
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
def load(ref: Any, *, store: str | Path | None = None) -> Any:
    """Load an artifact from a store.

    Parameters
    ----------
    ref : str, path or artifact
        REF of the artifact: ``name`` or ``name@version``; or its folder.
    store : str or path, optional
        Folder of the store. Default: that of the artifact, else ``NUMTOK_STORE``, else
        ``artifacts``.

    Returns
    -------
    EncodedData, TextModel, StoredReport or StoredArtifact
        The artifact, as an instance of the class for its kind.

    Raises
    ------
    UsageError
        If no artifact matches, or if several do.

    Examples
    --------
    >>> numtok.load("rooms-xval", store="artifacts").metrics["r2"].value
    0.999949
    """
    if isinstance(ref, StoredArtifact):
        ref, store = ref.ref, ref.store if store is None else store
    check_type("ref", ref, str | Path)
    return stored(open_store(store).resolve(str(ref)), store_root(store))


def stored(artifact: Artifact, store: Path) -> Any:
    """Return an artifact as an instance of the class for its kind."""
    return KINDS.get(artifact.kind, StoredArtifact)(artifact, store)


def _frame(table: pa.Table) -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
