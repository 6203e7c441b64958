"""Commands as functions: the same settings, by name, and the same artifact.

Each takes ``store``, the folder of artifacts (None: that of an artifact among the arguments, else
``NUMTOK_STORE``, else ``artifacts``), and ``quiet``: unless False, nothing is drawn on standard
error. ``numtok.toml`` is not read: its defaults and plugins are for the command line.

They raise UsageError, DataError, StoreError and TrainingFailed (``numtok.errors``) where the
command would end with such an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numtok.cli.output.printing import Format
from numtok.errors import UsageError
from numtok.library.arguments import as_arguments, described, open_store, settings_of
from numtok.library.stored import StoredArtifact, stored
from numtok.library.view import Shown
from numtok.settings.compare import Config as CompareConfig
from numtok.settings.diagnose import Config as ErrorsConfig
from numtok.settings.encode import Config as EncodeConfig
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
Result = TypeVar("Result")


def _command(work: Callable[[Config, Store, bool], Result]) -> Callable[..., Result]:
    """Make a command of a function of its settings, the opened store, and ``quiet``."""
    config: type[Config] = work.__annotations__["config"]

    def call(
        *arguments: Any, store: str | Path | None = None, quiet: bool = True, **settings: Any
    ) -> Result:
        return work(*_begun(config, arguments, settings, store, quiet), quiet)

    update_wrapper(call, work)
    del call.__wrapped__  # type: ignore[attr-defined]  # its signature is not the command's
    return described(config)(as_arguments()(call))


def _begun(
    config: type[Config],
    arguments: Sequence[Any],
    settings: Mapping[str, Any],
    store: str | Path | None,
    quiet: bool,
) -> tuple[Config, Store]:
    """Return the settings and the store; check first whether a page can be written."""
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


@_command
def gen(config: GenConfig, store: Store, quiet: bool) -> Any:
    """Make data of a task from a seed; what is no setting of the command is one of the task.

    >>> numtok.gen("arithmetic", operands=3, rows=100000)
    <numtok data arithmetic@...>
    """
    from numtok.cli.output.progress import Bar
    from numtok.stages.gen import run

    with Bar(quiet) as progress:
        result = run(config, store, progress)
    return _made(result.artifact, result.estimate, store)


@_command
def fetch(config: FetchConfig, store: Store, quiet: bool) -> list[Any]:
    """Bring public data sets: a list of what was made."""
    from numtok.cli.output.progress import Bar
    from numtok.stages.fetch import run

    with Bar(quiet) as progress:
        results = list(run(config, store, partial(progress, rows=0)))
    return [_made(one.artifact, one.estimate, store) for one in results]


@_command
def table(config: TableConfig, store: Store, quiet: bool) -> Any:
    """Make a table artifact of a CSV or Parquet file of your own."""
    from numtok.stages.table import run

    return stored(run(config, store).artifact, store.root)


@_command
def encode(config: EncodeConfig, store: Store, quiet: bool) -> Any:
    """Encode files of texts, or data of a store, into shards of tokens and numbers.

    >>> data = numtok.encode("rooms.jsonl", scheme="xval", split="validation=0.1,test=0.1")
    """
    from numtok.cli.output.progress import Bar
    from numtok.stages.encode import run

    with Bar(quiet) as progress:
        result = run(config, store, progress)
    return _made(result.artifact, result.estimate, store)


@_command
def train(config: TrainConfig, store: Store, quiet: bool) -> Any:
    """Train a model on encoded data or on a table.

    >>> model = numtok.train(data, preset="nano", steps=1000)
    """
    from numtok.cli.output.train import TrainingBar
    from numtok.stages.table import table_of
    from numtok.stages.train import run

    if config.target is not None:
        config = replace(config, data=table_of(config.data, config.target, store).ref)
    with TrainingBar(quiet) as progress:
        return stored(run(config, store, progress).artifact, store.root)


@_command
def eval(config: EvalConfig, store: Store, quiet: bool) -> Any:
    """Predict a split and report on it.

    >>> report = numtok.eval(model, split="test")
    >>> report.metrics["r2"].value
    0.9999
    """
    from numtok.cli.output.progress import Count
    from numtok.stages.eval import run

    if config.against is not None:
        raise UsageError(
            "against is what the command prints beside its report; leave it out, and give it to "
            "numtok.compare(report, against=...)"
        )
    with Count(quiet) as progress:
        return stored(run(config, store, progress).artifact, store.root)


@_command
def predict(config: PredictConfig, store: Store, quiet: bool) -> Any:
    """What a model says of rows in a file: of texts a list of these rows, each with a field
    ``predicted``; of tables an Arrow table with columns more.

    ``numtok.load(MODEL).predict(TEXTS)`` takes texts from memory, and keeps the model there.
    """
    import msgspec
    import pyarrow.csv

    from numtok.stages.predict import run
    from numtok.store.artifact import MODEL
    from numtok.training.model_json import TableModelFile, read_model_file

    of_table = isinstance(read_model_file(store.resolve(config.model, {MODEL})), TableModelFile)
    lines = list(run(config, store))
    if of_table:
        return pyarrow.csv.read_csv(BytesIO(b"".join(lines)))
    return list(map(msgspec.json.decode, lines))


@_command
def probe(config: ProbeConfig, store: Store, quiet: bool) -> Any:
    """Measure how a model follows the numbers that it reads."""
    from numtok.cli.output.progress import Count
    from numtok.stages.probe import run

    with Count(quiet) as progress:
        return stored(run(config, store, progress).artifact, store.root)


@_command
def export(config: ExportConfig, store: Store, quiet: bool) -> Path:
    """Encoded data, or a model, as a folder that datasets or transformers opens; its path."""
    from numtok.stages.export import run

    run(config, store)
    return config.to


@_command
def figure(config: FigureConfig, store: Store, quiet: bool) -> Path:
    """Draw reports, probes or models into a file: its path."""
    from numtok.stages.figure import run

    run(config, store)
    return config.out


@_command
def profile(config: ProfileConfig, store: Store, quiet: bool) -> Shown:
    """What the numbers of some data are like, and what each scheme costs and loses on them."""
    from numtok.analysis.panels.slots import SlotPictures
    from numtok.cli.output.pages.profile import profile_page
    from numtok.cli.output.profile import print_profile
    from numtok.cli.output.progress import Bar
    from numtok.declaration import command_line
    from numtok.stages.profile import run

    pictures = None if config.html is None else SlotPictures()
    with Bar(quiet) as progress:
        found = run(config, store, progress, pictures)
    if config.html is not None and pictures is not None:
        _write_page(config.html, profile_page(found, pictures.found), store)
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


@_command
def compare(config: CompareConfig, store: Store, quiet: bool) -> Shown:
    """Reports of one test set, paired sample by sample.

    >>> numtok.compare(report, other, metrics=["r2"]).result.parts
    """
    from numtok.cli.output.comparison import print_comparison
    from numtok.cli.output.pages.comparison import compare_page
    from numtok.stages.compare import run

    found = run(config, store)
    if config.html is not None:
        _write_page(config.html, compare_page(found, store.resolve), store)
    return Shown(found, partial(print_comparison, found))


@_command
def error_analysis(config: ErrorsConfig, store: Store, quiet: bool) -> Shown:
    """Where predictions go wrong: in sign, mantissa or exponent (``numtok diagnose``)."""
    from numtok.cli.output.errors import print_errors
    from numtok.stages.errors import run

    found = run(config, store)
    return Shown(found, partial(print_errors, found))


@_command
def nupa(config: NupaConfig, store: Store, quiet: bool) -> Shown:
    """The tables of NUPA, from a report or from any model's answers."""
    from numtok.cli.output.nupa import print_tables
    from numtok.stages.nupa import run

    found = run(config, store)
    return Shown(found, partial(print_tables, found))


@_command
def sweep(config: SweepConfig, store: Store, quiet: bool) -> Shown:
    """Train and evaluate every combination that a file names, and compare them."""
    from numtok.cli.output.pages.sweep import sweep_page
    from numtok.cli.output.sweep import Runs, print_sweep
    from numtok.sweeps.sweep import run

    with Runs(quiet) as progress:
        found = run(config, store, progress)
    if config.html is not None:
        _write_page(config.html, sweep_page(found, config.file, store.resolve), store)
    return Shown(found, partial(print_sweep, found))


@_command
def race(config: RaceConfig, store: Store, quiet: bool) -> Shown:
    """Which encoding predicts the numbers of some data best, in the time there is."""
    from numtok.cli.output.pages.race import race_page
    from numtok.cli.output.race import Watching, print_race
    from numtok.sweeps.race.race import run

    with Watching(quiet, config.seconds) as watching:
        found = run(config, store, watching, watching.introduce)
    if config.html is not None:
        _write_page(config.html, race_page(found, store.resolve), store)
    return Shown(found, partial(print_race, found, quiet=True), Format.MD)
