"""Probe: a model as a function of its numbers, measured.

Is it continuous, or does it say only values that it has seen (xVal, Sections 2.1 and 3.3)? Five
forms: over the samples of a split or over one input number (``probing.numbers``), how sure it is of
a text along one of its numbers (``confidence``), and without data the embedding of a number
(``embedding``) and of number tokens (``tokens``).
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from numtok.analysis.probing.confidence import ConfidenceQuery, confidence
from numtok.analysis.probing.embedding import embedding
from numtok.analysis.probing.numbers import (
    LEAST,
    NumberSweep,
    ProbedRows,
    ProbeOptions,
    over_number,
    over_samples,
    row_index,
)
from numtok.analysis.probing.probe_files import publish
from numtok.analysis.probing.probes import (
    CONFIDENCE,
    EMBEDDING,
    PCA,
    PROBE,
    SAMPLES,
    SWEEP,
    Along,
    Confidence,
    Embedding,
    Probe,
    TokenComponents,
)
from numtok.analysis.probing.tokens import tokens
from numtok.encoding.in_memory import row_of
from numtok.encoding.splits import check_codec, read_learnt, read_split, splits
from numtok.errors import UsageError
from numtok.evaluation.scoring import Progress
from numtok.records import ENCODED, MODEL, TRAIN
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import LoadedModel, read_model, says_labels
from numtok.training.regressor_files import is_regressor
from numtok.training.trainer import device_of

REVISION = 1
_FLAGS = {
    "split": "--split",
    "target": "--target",
    "top": "--top",
    "digits": "--digits",
    "text": "--text",
    "row": "--row",
    "sweep": "--sweep",
    "low": "--from",
    "high": "--to",
    "points": "--points",
    "label": "--label",
}
_NUMBERS = frozenset({"split", "target", "top", "digits"})
_RANGE = frozenset({"low", "high", "points"})
#: What each form takes.
_TAKES = {
    SAMPLES: _NUMBERS,
    SWEEP: _NUMBERS | _RANGE | {"row", "sweep"},
    CONFIDENCE: _RANGE | {"split", "text", "row", "sweep", "label"},
    EMBEDDING: _RANGE,
    PCA: frozenset[str](),
}
_TOLD = {
    SAMPLES: "a probe without --sweep, which is over all rows of a split",
    SWEEP: "a probe with --sweep",
    CONFIDENCE: "a probe with --confidence",
    EMBEDDING: "a probe with --embedding",
    PCA: "a probe with --pca",
}
#: For what is None in the configuration.
_DEFAULTS: Mapping[str, Any] = {"split": "test", "top": 5, "digits": 3, "points": 201}
_EMBEDDED = 10.0  # numbers that go into the embedding, to both sides, unless --from or --to says


@dataclass(frozen=True)
class Config:
    """What ``numtok probe`` was asked for; None is the default of the form.

    sweep, row, low, high, points
        The number of the row that is swept, the id of the row, from where to where, and in how
        many points.
    top, digits
        As in ``probing.numbers.ProbeOptions``.
    embedding, pca
        The forms that need no data; with ``encoded``, ``pca`` is of the tokens of its train split.
    confidence, text, label
        The form that asks how sure the model is, of a row or of a text that is given, which says
        the form as well; of a model of labels, of which. ``sweep`` None is the last number then.
    """

    model: str
    encoded: str | None = None
    split: str | None = None
    target: str | None = None
    row: str | None = None
    sweep: int | None = None
    low: float | None = None
    high: float | None = None
    points: int | None = None
    top: int | None = None
    digits: int | None = None
    embedding: bool = False
    pca: bool = False
    confidence: bool = False
    text: str | None = None
    label: str | None = None
    device: str = "auto"
    name: str | None = None
    restart: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        self._check_form()
        for option, least in (("sweep", 0), ("points", LEAST), ("top", 0), ("digits", 1)):
            value = getattr(self, option)
            if value is not None and value < least:
                raise UsageError(f"{_FLAGS[option]} {value} is not possible; at least {least}")
        for option in ("low", "high"):
            value = getattr(self, option)
            if value is not None and not math.isfinite(value):
                raise UsageError(f"{_FLAGS[option]} {value} is not possible; a finite number is")
        low, high = self.low, self.high
        if self.form == EMBEDDING:
            low, high = self.ends
        if low is not None and high is not None and not low < high:
            raise UsageError(
                f"--from {low:g} --to {high:g} is not possible: --from is less than --to"
            )

    def _check_form(self) -> None:
        given = [flag for flag in ("embedding", "pca", "confidence") if getattr(self, flag)]
        if len(given) > 1:
            raise UsageError(f"--{given[0]} and --{given[1]} exclude each other; give one of them")
        if self.embedding and self.encoded is not None:
            raise UsageError(f"--embedding looks at the model alone; leave {self.encoded} out")
        for option, flag in _FLAGS.items():
            if getattr(self, option) is not None and option not in _TAKES[self.form]:
                raise UsageError(f"{flag} means nothing for {_TOLD[self.form]}; leave it out")
        if self.text is not None:
            given_too = {"split": self.split, "row": self.row, "encoded data": self.encoded}
            for what, value in given_too.items():
                if value is not None:
                    told = _FLAGS.get(what, what)
                    raise UsageError(f"--text is what is asked; leave {told} {value!r} out")
        elif self.form not in (EMBEDDING, PCA) and self.encoded is None:
            raise UsageError(
                "probe needs encoded data beside the model, or --text; or --embedding or --pca, "
                "which look at the model alone"
            )

    @property
    def form(self) -> str:
        """One of ``probes.SAMPLES``, ``SWEEP``, ``EMBEDDING``, ``PCA``, ``CONFIDENCE``."""
        if self.embedding or self.pca:
            return EMBEDDING if self.embedding else PCA
        if self.confidence or self.text is not None:
            return CONFIDENCE
        return SAMPLES if self.sweep is None else SWEEP

    def of(self, option: str) -> Any:
        """An option, or its default."""
        value = getattr(self, option)
        return _DEFAULTS.get(option) if value is None else value

    @property
    def ends(self) -> tuple[float, float]:
        """From where to where, for the embedding."""
        low = -_EMBEDDED if self.low is None else self.low
        return low, _EMBEDDED if self.high is None else self.high


@dataclass(frozen=True)
class Result:
    """The probe, and whether this call made it."""

    artifact: Artifact
    made: bool


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Probe a model, or find the probe that is there.

    Raises UsageError (also where model and data do not belong together), DataError, StoreError,
    TrainingFailed (no memory).
    """
    model = store.resolve(config.model, kinds={MODEL})
    if is_regressor(model):
        raise UsageError(
            f"{model.ref} is a model of tables, and a probe is of one of texts; `numtok eval` "
            "predicts the rows of its table, and `numtok figure curve` draws them"
        )
    if config.form in (SAMPLES, SWEEP) and says_labels(model):
        raise UsageError(
            f"{model.ref} predicts labels, and this probe is of predicted numbers; `numtok eval` "
            "predicts the labels of a split"
        )
    encoded = None if config.encoded is None else store.resolve(config.encoded, kinds={ENCODED})
    device = device_of(config.device)
    if encoded is not None:
        check_codec(model, encoded)
    if encoded is not None and not config.pca and config.of("split") not in splits(encoded):
        read_split(encoded, config.of("split"))  # says which splits there are
    of_rows = () if config.text is None else ("split", "row")
    takes = [option for option in _FLAGS if option in _TAKES[config.form] - {*of_rows}]
    asked = {option: config.of(option) for option in takes}
    settings = {"stage": "probe", "revision": REVISION, "form": config.form, "device": device.type}
    parents = [model, *([encoded] if encoded else [])]
    with store.draft(
        PROBE,
        config.name or _name(config, model),
        settings | asked,
        [parent.as_parent() for parent in parents],
        _command(config, [parent.ref for parent in parents], asked, device.type),
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return Result(draft, made=False)
        started = time.monotonic()
        loaded = read_model(model, device)
        found = _found(config, loaded, encoded, store, progress)
        probe = Probe(
            model=model.ref,
            name=model.name,
            scheme=loaded.codec.scheme.title,
            configuration=loaded.trained.configuration,
            seed=loaded.trained.seed,
            form=config.form,
            found=found.summary,
            notes=found.notes,
        )
        seconds = time.monotonic() - started
        return Result(publish(draft, probe, found.points, found.seen, seconds), made=True)


@dataclass(frozen=True, eq=False)
class _ProbeInputs:
    summary: Along | Embedding | TokenComponents | Confidence
    points: "pa.Table"
    seen: "pa.Table | None"
    notes: list[str]


def _found(
    config: Config,
    loaded: LoadedModel,
    encoded: Artifact | None,
    store: Store,
    progress: Progress,
) -> _ProbeInputs:
    if config.pca:
        learnt = None if encoded is None else read_split(encoded, TRAIN)
        summary, points, notes = tokens(loaded, learnt)
        return _ProbeInputs(summary, points, None, notes)
    if config.form == CONFIDENCE:
        sure = confidence(loaded, _asked(config, loaded, encoded), progress)
        return _ProbeInputs(sure.found, sure.points, None, sure.notes)
    if encoded is None:
        return _ProbeInputs(*embedding(loaded, *config.ends, config.of("points")), None, [])
    split = ProbedRows(
        encoded.ref,
        config.of("split"),
        read_split(encoded, config.of("split")),
        read_learnt(loaded.artifact, encoded, store.find),
    )
    wanted = ProbeOptions(config.target, config.of("top"), config.of("digits"))
    if config.sweep is None:
        return _ProbeInputs(*over_samples(loaded, split, wanted, progress, store.note))
    sweep = NumberSweep(config.row, config.sweep, config.low, config.high, config.of("points"))
    return _ProbeInputs(*over_number(loaded, split, wanted, sweep, progress, store.note))


def _asked(config: Config, loaded: LoadedModel, encoded: Artifact | None) -> ConfidenceQuery:
    """The row or the text, and how its number changes."""
    if encoded is None:
        text = str(config.text)
        samples, row, told = row_of(text, loaded.codec), 0, text
    else:
        split = config.of("split")
        samples = read_split(encoded, split)
        row = row_index(config.row, ProbedRows(encoded.ref, split, samples, None))
        told = f"row {samples.ids[row].as_py()!r} of split {split!r}"
    how = (config.sweep, config.low, config.high, config.of("points"), config.label)
    return ConfidenceQuery(samples, row, told, *how)


def _name(config: Config, model: Artifact) -> str:
    """Of the artifact, unless it is given."""
    what = {SAMPLES: config.of("split"), SWEEP: f"sweep{config.sweep}"}
    return f"{model.name}-{what.get(config.form, config.form)}"


def _command(config: Config, refs: list[str], asked: dict[str, Any], device: str) -> list[str]:
    words = ["numtok", "probe", *refs]
    words += [f"--{config.form}"] if config.form in (EMBEDDING, PCA, CONFIDENCE) else []
    for option, value in asked.items():
        words += [] if value is None else [_FLAGS[option], str(value)]
    words += ["--device", device]
    return words + (["--name", config.name] if config.name else [])
