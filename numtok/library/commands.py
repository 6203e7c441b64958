"""numtok commands as Python functions, with the same settings and the same artifacts.

They raise the exceptions defined in ``numtok.errors``: UsageError, DataError, StoreError and
TrainingFailed. ``numtok.toml`` is not read, because its defaults and plugins only apply to the
command line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numtok.cli.output.printing import Format
from numtok.cli.output.progress import Bar, Count
from numtok.data.tables.file import FORMATS, parsed, read_file
from numtok.errors import UsageError
from numtok.library.arguments import as_arguments, described, open_store, settings_of
from numtok.library.frames import frame_named, frames_as_files
from numtok.library.stored import StoredArtifact, stored
from numtok.library.view import Shown
from numtok.setting_names import note_renamed
from numtok.setting_scope import settings_check
from numtok.settings.compare import Config as CompareConfig
from numtok.settings.diagnose import Config as ErrorsConfig
from numtok.settings.encode import Config as EncodeConfig
from numtok.settings.eval import Config as EvalConfig
from numtok.settings.explain import Config as ExplainConfig
from numtok.settings.export import Config as ExportConfig
from numtok.settings.features import Config as FeaturesConfig
from numtok.settings.fetch import Config as FetchConfig
from numtok.settings.fidelity import Config as FidelityConfig
from numtok.settings.figure import Config as FigureConfig
from numtok.settings.gen import Config as GenConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.settings.probe import Config as ProbeConfig
from numtok.settings.profile import Config as ProfileConfig
from numtok.settings.race import Config as RaceConfig
from numtok.settings.score import Config as ScoreConfig
from numtok.settings.sweep import Config as SweepConfig
from numtok.settings.table import Config as TableConfig
from numtok.settings.train import Config as TrainConfig
from numtok.store.store import Store

if TYPE_CHECKING:
    from numtok.cli.output.pages.page import Page

Config = TypeVar("Config")
Result = TypeVar("Result")


def _command(work: Callable[[Config, Store, bool], Result]) -> Callable[..., Result]:
    """Make a public function from a function of settings, an open store, and ``quiet``."""
    config: type[Config] = work.__annotations__["config"]

    def call(
        *arguments: Any, store: str | Path | None = None, quiet: bool = True, **settings: Any
    ) -> Result:
        opened = _opened(store, [*arguments, *settings.values()], quiet)
        with frames_as_files(config, arguments, settings, opened) as (given, named):
            return work(_settings(config, given, named), opened, quiet)

    annotations = call.__annotations__
    update_wrapper(call, work)
    call.__annotations__ = annotations
    del call.__wrapped__  # type: ignore[attr-defined]  # its signature is not the command's
    return described(config)(as_arguments(config)(call))


def _settings(
    config: type[Config], arguments: Sequence[Any], settings: Mapping[str, Any]
) -> Config:
    """Return the settings, and check whether an HTML page can be written if one is wanted."""
    parsed = settings_of(config, arguments, settings)
    if (page := getattr(parsed, "html", None)) is not None:
        from numtok.cli.output.pages.write import check_page

        check_page(page)
    return parsed


def _opened(store: str | Path | None, arguments: Sequence[Any], quiet: bool) -> Store:
    """Open a store: by default, that of the first artifact among the arguments."""
    if store is None:
        nested = [item for value in arguments if isinstance(value, list | tuple) for item in value]
        artifacts = [item for item in [*arguments, *nested] if isinstance(item, StoredArtifact)]
        store = artifacts[0].store if artifacts else None
    return open_store(store, quiet=quiet)


def _result(result: Any, store: Store) -> Any:
    """Return the artifact of a result as an object of its kind, or the estimate of a dry run."""
    return result.estimate if result.artifact is None else stored(result.artifact, store.root)


def _write_page(path: Path, page: "Page", store: Store) -> None:
    from numtok.cli.output.pages.write import write_page

    write_page(path, page, store.note)


@_command
def gen(config: GenConfig, store: Store, quiet: bool) -> Any:
    """Generate data for a task from a seed.

    Pass the task's settings as further keyword arguments.

    Returns
    -------
    StoredArtifact
        The data, with ``ref``, ``path`` and ``counts``. If ``dry_run`` is True, an estimate
        instead.

    Examples
    --------
    >>> numtok.gen("arithmetic", operands=3, rows=100000)
    <numtok data arithmetic@...>
    """
    from numtok.stages.gen import run

    with Bar(quiet) as progress:
        return _result(run(config, store, progress), store)


@_command
def fetch(config: FetchConfig, store: Store, quiet: bool) -> list[Any]:
    """Download public data sets.

    Pass the source's settings as further keyword arguments.

    Returns
    -------
    list of StoredArtifact
        The data sets. If ``dry_run`` is True, estimates instead.
    """
    from numtok.stages.fetch import run

    with Bar(quiet) as progress:
        return [_result(made, store) for made in run(config, store, partial(progress, rows=0))]


@_command
def table(config: TableConfig, store: Store, quiet: bool) -> Any:
    """Store a CSV or Parquet file as a table artifact.

    Returns
    -------
    StoredArtifact
        The table.
    """
    from numtok.stages.table import run

    return stored(run(config, store).artifact, store.root)


@_command
def features(config: FeaturesConfig, store: Store, quiet: bool) -> Any:
    """Store the hidden states of a frozen pretrained model for texts as a table artifact.

    Returns
    -------
    StoredArtifact
        The table.

    Examples
    --------
    >>> table = numtok.features("rooms.jsonl", model="models/minilm", split="test=0.2")
    """
    from numtok.stages.features import run

    with Count(quiet) as progress:
        return stored(run(config, store, progress).artifact, store.root)


@_command
def encode(config: EncodeConfig, store: Store, quiet: bool) -> Any:
    """Encode text files or stored data into shards of tokens and numbers.

    Returns
    -------
    EncodedData
        The encoded data. If ``dry_run`` is True, an estimate instead.

    Examples
    --------
    >>> data = numtok.encode("rooms.jsonl", scheme="xval", split="validation=0.1,test=0.1")
    """
    from numtok.stages.encode import run

    with Bar(quiet) as progress:
        return _result(run(config, store, progress), store)


@_command
def train(config: TrainConfig, store: Store, quiet: bool) -> Any:
    """Train a model on encoded data or on a table.

    Returns
    -------
    TextModel
        The trained model. Table models have the same class.

    Examples
    --------
    >>> model = numtok.train(data, preset="nano", steps=1000)
    """
    from numtok.cli.output.train import TrainingBar
    from numtok.stages.table import table_of
    from numtok.stages.train import run

    if config.target is not None:
        config = replace(config, data=table_of(config.data, config.target, store).ref)
    with TrainingBar(quiet) as progress:
        trained = run(config, store, progress, settings_check(config))
    return stored(trained.artifact, store.root)


@_command
def eval(config: EvalConfig, store: Store, quiet: bool) -> Any:
    """Evaluate a model on one split of a data set, and return the report.

    Returns
    -------
    StoredReport
        The report: metrics, baselines and predictions.

    Examples
    --------
    >>> report = numtok.eval(model, split="test")
    >>> report.metrics["r2"].value
    0.9999
    """
    from numtok.stages.eval import run

    if config.against is not None:
        raise UsageError(
            "against is not available in numtok.eval. Use numtok.compare(report, against=...)"
        )
    with Count(quiet) as progress:
        report = run(config, store, progress, settings_check(config))
    return stored(report.artifact, store.root)


@_command
def predict(config: PredictConfig, store: Store, quiet: bool) -> Any:
    """Return the rows of a file or a data frame with predictions. For texts in memory, use
    ``numtok.load(MODEL).predict(TEXTS)``.

    Returns
    -------
    pyarrow.Table or list of dict
        For CSV and Parquet files and data frames, a table of the rows with prediction columns
        added. For JSON Lines, the rows, each with a field ``predicted``.

    Examples
    --------
    >>> numtok.predict(model, frame)["predicted"]
    >>> numtok.predict(table, "new.csv", baseline="boosted", interval=0.9)
    """
    import msgspec

    if config.baseline is None:
        from numtok.stages.predict import run

        lines = run(config, store, settings_check(config))
    else:
        from numtok.sweeps import baseline_rows

        lines = baseline_rows.run(config, store)
    if config.file is None or not config.file.endswith(FORMATS):
        return list(map(msgspec.json.decode, lines))
    table = parsed("predictions.csv", b"".join(lines))
    if not config.file.endswith(".parquet"):
        return table
    rows = parsed(config.file, read_file(Path(config.file)))  # with its own types
    for name in table.column_names[rows.num_columns :]:
        rows = rows.append_column(name, table[name])
    return rows


@_command
def probe(config: ProbeConfig, store: Store, quiet: bool) -> Any:
    """Measure how a model responds to the numbers that it reads.

    Pass the probe's settings as further keyword arguments.

    Returns
    -------
    StoredArtifact
        The measurements. Draw them with :func:`numtok.figure`.
    """
    from numtok.stages.probe import run

    with Count(quiet) as progress:
        return stored(run(config, store, progress).artifact, store.root)


@_command
def export(config: ExportConfig, store: Store, quiet: bool) -> Path:
    """Export encoded data or a model to a folder that the datasets or transformers library can
    load.

    Returns
    -------
    pathlib.Path
        Path of the folder.
    """
    from numtok.stages.export import run

    run(config, store)
    return config.to


@_command
def figure(config: FigureConfig, store: Store, quiet: bool) -> Path:
    """Draw reports, probes or models, and write the figure to a file.

    Pass the figure's settings as further keyword arguments.

    Returns
    -------
    pathlib.Path
        Path of the file.
    """
    from numtok.stages.figure import run

    run(config, store)
    return config.out


@_command
def profile(config: ProfileConfig, store: Store, quiet: bool) -> Shown:
    """Describe the numbers in a data set, and measure the token cost and the information loss of
    each scheme on them.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok profile``. Its ``result`` contains the values.
    """
    from numtok.analysis.panels.fields import FieldPictures
    from numtok.cli.output.pages.profile import profile_page
    from numtok.cli.output.profile import print_profile
    from numtok.setting_words import command_line
    from numtok.stages.profile import run

    pictures = None if config.html is None else FieldPictures()
    with Bar(quiet) as progress:
        profiled = run(config, store, progress, pictures)
    profiled = frame_named(profiled, config.inputs)
    config = frame_named(config, config.inputs)
    if config.html is not None and pictures is not None:
        _write_page(config.html, profile_page(profiled, pictures.found), store)
    return Shown(profiled, partial(print_profile, profiled, command_line(config)))


@described(ExplainConfig)
@as_arguments(ExplainConfig)
def explain(number: str | float | None = None, /, **settings: Any) -> Shown:
    """Show how each scheme writes a number, or which numbers a text contains.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok explain``. Its ``result`` contains the values: one
        object per scheme or, with ``text``, the numbers and the words whose digits are not part of
        any number.

    Examples
    --------
    >>> numtok.explain("-60.2", schemes="p1000")
    -60.2
    ...
    """
    from numtok.cli.output.reading import print_readings
    from numtok.cli.output.schemes import print_explained
    from numtok.numerals.policy import NumeralPolicy
    from numtok.numerals.reading import read_text
    from numtok.stages.explain import run

    config = settings_of(ExplainConfig, () if number is None else (str(number),), settings)
    policy = NumeralPolicy.parse(config.numerals or "default", config.not_numbers)
    if config.text is not None:
        reading = read_text(config.text, policy)
        return Shown(reading, partial(print_readings, [reading]))
    written = str(config.number)
    explained = run(written, config.schemes, policy)
    return Shown(explained, partial(print_explained, written, explained))


@_command
def compare(config: CompareConfig, store: Store, quiet: bool) -> Shown:
    """Compare reports on the same test set, sample by sample.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok compare``. Its ``result`` contains the values.

    Examples
    --------
    >>> numtok.compare(report, other, metrics=["r2"]).result.parts
    """
    from numtok.cli.output.comparison import print_comparison
    from numtok.cli.output.pages.comparison import compare_page
    from numtok.stages.compare import run

    comparison = run(config, store)
    if config.html is not None:
        _write_page(config.html, compare_page(comparison, store.resolve), store)
    return Shown.of(comparison, print_comparison)


@_command
def error_analysis(config: ErrorsConfig, store: Store, quiet: bool) -> Shown:
    """Show where predictions go wrong: in the sign, mantissa or exponent (``numtok diagnose``).

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok diagnose``. Its ``result`` contains the values.
    """
    from numtok.cli.output.errors import print_errors
    from numtok.stages.errors import run

    return Shown.of(run(config, store), print_errors)


@_command
def fidelity(config: FidelityConfig, store: Store, quiet: bool) -> Shown:
    """Count which results of the papers are reproduced.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok fidelity``. Its ``result`` contains the verdicts.

    Examples
    --------
    >>> numtok.fidelity("docs/results").result.total.printed
    612
    """
    from numtok.cli.output.fidelity import print_fidelity
    from numtok.evaluation.fidelity.counts import read_fidelity

    return Shown.of(read_fidelity(Path(config.folder)), print_fidelity)


@_command
def score(config: ScoreConfig, store: Store, quiet: bool) -> Shown:
    """Score the numbers in any model's answers.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok score``. Its ``result`` contains the values.

    Examples
    --------
    >>> scores = numtok.score("answers.jsonl", truth="gold.jsonl", rules="last-number").result
    >>> scores.models[0].rules[0].metrics["exact-match"].value
    0.717
    """
    if config.benchmark == "nupa":
        from numtok.cli.output.nupa import print_tables
        from numtok.stages import nupa as benchmark

        return Shown.of(benchmark.run(config, store), print_tables)
    from numtok.cli.output.score import print_scores
    from numtok.stages.score import run

    return Shown.of(run(config), print_scores)


def nupa(ref: Any, *, rule: str | None = None, **settings: Any) -> Shown:
    """Score a report or answers on NUPA. Earlier name of ``numtok.score(..., benchmark="nupa")``.

    Returns
    -------
    Shown
        Object that prints the tables. Its ``result`` contains the values.
    """
    note_renamed("numtok.nupa", "numtok.score(..., benchmark='nupa')")
    rules = () if rule is None else (rule,)
    scored: Shown = score(ref, benchmark="nupa", rules=rules, **settings)
    return scored


@_command
def sweep(config: SweepConfig, store: Store, quiet: bool) -> Shown:
    """Train and evaluate every combination of settings in a sweep file, and compare the results.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok sweep``. Its ``result`` contains the values.
    """
    from numtok.cli.output.pages.sweep import sweep_page
    from numtok.cli.output.sweep import Runs, print_sweep
    from numtok.sweeps.sweep import run

    with Runs(quiet) as progress:
        swept = run(config, store, progress)
    if config.html is not None:
        _write_page(config.html, sweep_page(swept, config.file, store.resolve), store)
    return Shown.of(swept, print_sweep)


@_command
def race(config: RaceConfig, store: Store, quiet: bool) -> Shown:
    """Find the number encoding that best predicts the numbers in a data set, within a time budget.

    Returns
    -------
    Shown
        Object that prints the leaderboard of ``numtok race``. Its ``result`` contains the values.
    """
    from numtok.cli.output.pages.race import race_page
    from numtok.cli.output.race import Watching, print_race
    from numtok.sweeps.race.race import run

    with Watching(quiet, config.seconds) as watching:
        finished = run(config, store, watching, watching.introduce)
    finished = frame_named(finished, config.inputs)
    if config.html is not None:
        _write_page(config.html, race_page(finished, store.resolve), store)
    return Shown(finished, partial(print_race, finished, quiet=True), Format.MD)
