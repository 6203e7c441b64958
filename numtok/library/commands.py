"""Commands as functions: the same settings, by name, and the same artifact.

Each takes ``store``, the folder of artifacts (None: that of an artifact among the arguments, else
``NUMTOK_STORE``, else ``artifacts``), and ``quiet``: unless False, nothing is drawn on standard
error. ``numtok.toml`` is not read: its defaults and plugins are for the command line.

They raise UsageError, DataError, StoreError and TrainingFailed (``numtok.errors``) where the
command would end with such an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numtok.cli.output.printing import Format
from numtok.errors import UsageError
from numtok.library.opened import open_store
from numtok.library.settings import described, settings_of
from numtok.library.stored import StoredArtifact, stored
from numtok.library.view import Shown
from numtok.library.wording import as_arguments
from numtok.settings.compare import Config as CompareConfig
from numtok.settings.encode import Config as EncodeConfig
from numtok.settings.errors import Config as ErrorsConfig
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.explain import Config as ExplainConfig
from numtok.settings.export import Config as ExportConfig
from numtok.settings.fetch import Config as FetchConfig
from numtok.settings.figure import Config as FigureConfig
from numtok.settings.gen import Config as GenConfig
from numtok.settings.nupa import Config as NupaConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.settings.probe import Config as ProbeConfig
from numtok.settings.profile import Config as ProfileConfig
from numtok.settings.race import Config as RaceConfig
from numtok.settings.sweep import Config as SweepConfig
from numtok.settings.table import Config as TableConfig
from numtok.settings.train import Config as TrainConfig
from numtok.store.artifact import Artifact
from numtok.store.store import Store

if TYPE_CHECKING:
    from numtok.cli.output.pages.page import Page

Config = TypeVar("Config")
Where = str | Path | None


def _begun(
    config: type[Config],
    arguments: Sequence[Any],
    settings: Mapping[str, Any],
    store: Where,
    quiet: bool,
) -> tuple[Config, Store]:
    """The settings that were given, and the store. Whether a page can be written is seen first of
    all, so that nothing is done in vain."""
    given = settings_of(config, arguments, settings)
    if (page := getattr(given, "html", None)) is not None:
        from numtok.cli.output.pages.write import check_page

        check_page(page)
    if store is None:
        every = [*arguments, *settings.values()]
        nested = [one for several in every if isinstance(several, list | tuple) for one in several]
        found = [one for one in [*every, *nested] if isinstance(one, StoredArtifact)]
        store = found[0].store if found else None
    return given, open_store(store, quiet=quiet)


def _made(artifact: Artifact | None, estimate: Any, store: Store) -> Any:
    """What a command made, as an object of its kind; of a dry run what it expects."""
    return estimate if artifact is None else stored(artifact, store.root)


def _write_page(path: Path, page: "Page", store: Store) -> None:
    from numtok.cli.output.pages.write import write_page

    write_page(path, page, store.note)


@described(GenConfig)
@as_arguments()
def gen(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """Make data of a task from a seed; what is no setting of the command is one of the task.

    >>> numtok.gen("arithmetic", operands=3, samples=100000)
    <numtok data arithmetic@...>
    """
    from numtok.cli.output.progress import Bar
    from numtok.stages.gen import run

    config, opened = _begun(GenConfig, arguments, settings, store, quiet)
    with Bar(quiet) as progress:
        result = run(config, opened, progress)
    return _made(result.artifact, result.estimate, opened)


@described(FetchConfig)
@as_arguments()
def fetch(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> list[Any]:
    """Bring public data sets: a list of what was made."""
    from numtok.cli.output.progress import Bar
    from numtok.stages.fetch import run

    config, opened = _begun(FetchConfig, arguments, settings, store, quiet)
    with Bar(quiet) as progress:
        results = list(run(config, opened, partial(progress, rows=0)))
    return [_made(one.artifact, one.estimate, opened) for one in results]


@described(TableConfig)
@as_arguments()
def table(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """Make a table artifact of a CSV or Parquet file of your own."""
    from numtok.stages.table import run

    config, opened = _begun(TableConfig, arguments, settings, store, quiet)
    return stored(run(config, opened).artifact, opened.root)


@described(EncodeConfig)
@as_arguments()
def encode(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """Encode files of texts, or data of a store, into shards of tokens and numbers.

    >>> data = numtok.encode("rooms.jsonl", scheme="xval", split="validation=0.1,test=0.1")
    """
    from numtok.cli.output.progress import Bar
    from numtok.stages.encode import run

    config, opened = _begun(EncodeConfig, arguments, settings, store, quiet)
    with Bar(quiet) as progress:
        result = run(config, opened, progress)
    return _made(result.artifact, result.estimate, opened)


@described(TrainConfig)
@as_arguments()
def train(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """Train a model on encoded data or on a table.

    >>> model = numtok.train(data, preset="nano", steps=1000)
    """
    from numtok.cli.output.train import TrainingBar
    from numtok.stages.table import table_of
    from numtok.stages.train import run

    config, opened = _begun(TrainConfig, arguments, settings, store, quiet)
    if config.target is not None:
        config = replace(config, data=table_of(config.data, config.target, opened).ref)
    with TrainingBar(quiet) as progress:
        return stored(run(config, opened, progress).artifact, opened.root)


@described(EvalConfig)
@as_arguments()
def eval(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """Predict a split and report on it.

    >>> report = numtok.eval(model, split="test")
    >>> report.metrics["r2"].value
    0.9999
    """
    from numtok.cli.output.progress import Count
    from numtok.stages.eval import run

    config, opened = _begun(EvalConfig, arguments, settings, store, quiet)
    if config.against is not None:
        raise UsageError(
            "against is what the command prints beside its report; leave it out, and give it to "
            "numtok.compare(report, against=...)"
        )
    with Count(quiet) as progress:
        return stored(run(config, opened, progress).artifact, opened.root)


@described(PredictConfig)
@as_arguments()
def predict(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """What a model says of rows in a file: of texts a list of these rows, each with a field
    ``predicted``; of tables an Arrow table with columns more.

    ``numtok.load(MODEL).predict(TEXTS)`` takes texts from memory, and keeps the model there.
    """
    import msgspec
    import pyarrow.csv

    from numtok.stages.predict import run
    from numtok.store.artifact import MODEL
    from numtok.training.model_json import TableModelFile, read_model_file

    config, opened = _begun(PredictConfig, arguments, settings, store, quiet)
    of_table = isinstance(read_model_file(opened.resolve(config.model, {MODEL})), TableModelFile)
    lines = list(run(config, opened))
    if of_table:
        return pyarrow.csv.read_csv(BytesIO(b"".join(lines)))
    return list(map(msgspec.json.decode, lines))


@described(ProbeConfig)
@as_arguments()
def probe(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Any:
    """Measure how a model follows the numbers that it reads."""
    from numtok.cli.output.progress import Count
    from numtok.stages.probe import run

    config, opened = _begun(ProbeConfig, arguments, settings, store, quiet)
    with Count(quiet) as progress:
        return stored(run(config, opened, progress).artifact, opened.root)


@described(ExportConfig)
@as_arguments()
def export(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Path:
    """Encoded data, or a model, as a folder that datasets or transformers opens; its path."""
    from numtok.stages.export import run

    config, opened = _begun(ExportConfig, arguments, settings, store, quiet)
    run(config, opened)
    return config.to


@described(FigureConfig)
@as_arguments()
def figure(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Path:
    """Draw reports, probes or models into a file: its path."""
    from numtok.stages.figure import run

    config, opened = _begun(FigureConfig, arguments, settings, store, quiet)
    run(config, opened)
    return config.out


@described(ProfileConfig)
@as_arguments()
def profile(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Shown:
    """What the numbers of some data are like, and what each scheme costs and loses on them."""
    from numtok.analysis.panels.slots import SlotPictures
    from numtok.cli.output.pages.profile import profile_page
    from numtok.cli.output.profile import print_profile
    from numtok.cli.output.progress import Bar
    from numtok.declaration import command_line
    from numtok.stages.profile import run

    config, opened = _begun(ProfileConfig, arguments, settings, store, quiet)
    pictures = None if config.html is None else SlotPictures()
    with Bar(quiet) as progress:
        found = run(config, opened, progress, pictures)
    if config.html is not None and pictures is not None:
        _write_page(config.html, profile_page(found, pictures.found), opened)
    return Shown(found, partial(print_profile, found, command_line(config)))


@described(ExplainConfig)
@as_arguments()
def explain(number: str | float, /, **settings: Any) -> Shown:
    """How schemes write a number, and what is read back.

    >>> numtok.explain("-60.2", schemes="p1000")
    -60.2
    ...
    """
    from numtok.cli.output.explain import print_explained
    from numtok.numerals.policy import NumeralPolicy
    from numtok.stages.explain import run

    config = settings_of(ExplainConfig, (str(number),), settings)
    policy = NumeralPolicy.parse(config.numerals or "default")
    found = run(config.number, config.schemes, policy)
    return Shown(found, partial(print_explained, config.number, found))


@described(CompareConfig)
@as_arguments()
def compare(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Shown:
    """Reports of one test set, paired sample by sample.

    >>> numtok.compare(report, other, metrics=["r2"]).result.parts
    """
    from numtok.cli.output.comparison import print_comparison
    from numtok.cli.output.pages.comparison import compare_page
    from numtok.stages.compare import run

    config, opened = _begun(CompareConfig, arguments, settings, store, quiet)
    found = run(config, opened)
    if config.html is not None:
        _write_page(config.html, compare_page(found, opened.resolve), opened)
    return Shown(found, partial(print_comparison, found))


@described(ErrorsConfig)
@as_arguments()
def error_analysis(
    *arguments: Any, store: Where = None, quiet: bool = True, **settings: Any
) -> Shown:
    """Where predictions go wrong: in sign, mantissa or exponent (``numtok errors``)."""
    from numtok.cli.output.errors import print_errors
    from numtok.stages.errors import run

    config, opened = _begun(ErrorsConfig, arguments, settings, store, quiet)
    found = run(config, opened)
    return Shown(found, partial(print_errors, found))


@described(NupaConfig)
@as_arguments()
def nupa(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Shown:
    """The tables of NUPA, from a report or from any model's answers."""
    from numtok.cli.output.nupa import print_tables
    from numtok.stages.nupa import run

    config, opened = _begun(NupaConfig, arguments, settings, store, quiet)
    found = run(config, opened)
    return Shown(found, partial(print_tables, found))


@described(SweepConfig)
@as_arguments()
def sweep(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Shown:
    """Train and evaluate every combination that a file names, and compare them."""
    from numtok.cli.output.pages.sweep import sweep_page
    from numtok.cli.output.sweep import Runs, print_sweep
    from numtok.sweeps.sweep import run

    config, opened = _begun(SweepConfig, arguments, settings, store, quiet)
    with Runs(quiet) as progress:
        found = run(config, opened, progress)
    if config.html is not None:
        _write_page(config.html, sweep_page(found, config.file, opened.resolve), opened)
    return Shown(found, partial(print_sweep, found))


@described(RaceConfig)
@as_arguments()
def race(*arguments: Any, store: Where = None, quiet: bool = True, **settings: Any) -> Shown:
    """Which encoding predicts the numbers of some data best, in the time there is."""
    from numtok.cli.output.pages.race import race_page
    from numtok.cli.output.race import Watching, print_race
    from numtok.sweeps.race.race import run

    config, opened = _begun(RaceConfig, arguments, settings, store, quiet)
    with Watching(quiet, config.seconds) as watching:
        found = run(config, opened, watching, watching.introduce)
    if config.html is not None:
        _write_page(config.html, race_page(found, opened.resolve), opened)
    return Shown(found, partial(print_race, found, quiet=True), Format.MD)
