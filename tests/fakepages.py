"""Pages of each command, from reports without a model and from the sample data."""

from pathlib import Path

from numtok.analysis.panels.fields import FieldPictures
from numtok.cli.output.pages.comparison import compare_page
from numtok.cli.output.pages.page import Page, PageChart, Part, RowList
from numtok.cli.output.pages.profile import profile_page
from numtok.cli.output.pages.race import race_page
from numtok.cli.output.pages.report import report_page
from numtok.cli.output.pages.sweep import sweep_page
from numtok.evaluation.prediction_table import TARGET
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.evaluation.rivals import Rivals
from numtok.stages import compare, profile
from numtok.store.store import Store
from numtok.sweeps.race.candidates import Verdict
from numtok.sweeps.race.leaderboard import Finalist, accuracies, leaderboard
from numtok.sweeps.race.plan import Candidate, Plan, Round
from numtok.sweeps.race.race import RaceResult
from numtok.sweeps.race.reasons import reasons_of
from numtok.sweeps.race.rounds import RoundResult
from numtok.sweeps.race.words import FieldSummary
from numtok.sweeps.sweep import Result, SweepTable
from tests.fakereports import Fake, make

EVIL = "</script><img src=http://example.com/x onerror=alert(1)>"
SAMPLE = Path(__file__).resolve().parents[1] / "numtok/data/sample/era5-uk.jsonl"
FIELDS = (EVIL, "width")
#: Three experiments on one test set, one of them with two seeds.
FAKES = (
    *(Fake("p1000", seed, 20, later=True, others=FIELDS, settings={"lr": 1}) for seed in (0, 1)),
    Fake("xval", 0, 10, noise_seed=3, invalid=2, later=True, others=FIELDS),
    Fake("fp15", 0, 30, noise_seed=4, later=True, others=FIELDS),
)


def parts(page: Page) -> list[Part]:
    """Return all parts of a page, in order."""
    return [part for section in page.sections for part in section.parts]


def charts(page: Page) -> dict[str, PageChart]:
    """Return the charts of a page, by name."""
    return {part.name: part for part in parts(page) if isinstance(part, PageChart)}


def rows(page: Page) -> RowList:
    """Return the rows on a page."""
    [found] = [part for part in parts(page) if isinstance(part, RowList)]
    return found


def of_report(root: Path, fake: Fake) -> Page:
    """Return the page of one report."""
    store = Store(root)
    return report_page(read(make(store, fake)), store.resolve)


def compared(store: Store, fakes: tuple[Fake, ...] = FAKES, name: str = "report") -> list[str]:
    """Write reports and return their REFs."""
    return [make(store, fake, f"{name}-{place}").ref for place, fake in enumerate(fakes)]


def comparison(store: Store, *refs: str) -> compare.Comparison:
    """Return the comparison of some reports."""
    return compare.run(compare.Config(refs), store)


def of_comparison(root: Path, fakes: tuple[Fake, ...] = FAKES) -> Page:
    """Return the page of a comparison."""
    store = Store(root)
    return compare_page(comparison(store, *compared(store, fakes)), store.resolve)


def of_sweep(root: Path, sets: int = 2) -> Page:
    """Return the page of a sweep over some test sets."""
    store = Store(root)
    tables = []
    for place in range(sets):
        fakes = (Fake("p1000", noise_seed=place), Fake("xval", noise=5, noise_seed=place + 10))
        refs = compared(store, fakes, f"set-{place}")
        tables.append(SweepTable(f"set {place} {EVIL}", comparison(store, *refs)))
    return sweep_page(Result(None, [], tables, [], []), "schemes.toml", store.resolve)


def of_race(root: Path) -> Page:
    """Return the page of a race of three schemes, two of them in the last round with two seeds."""
    store = Store(root)
    return race_page(race_result(store), store.resolve)


def race_result(store: Store) -> RaceResult:
    """Return the result that :func:`of_race` shows."""
    names, noises = ("p1000", "xval", "fp15"), (20, 10, 60)
    finalists = [
        Finalist(name, 0.01, 0.002, [
            read(make(store, Fake(name, seed, noise, later=True, others=FIELDS, invalid=place)))
            for seed in (2 * place, 2 * place + 1)
        ], [0.5, 0.7])
        for place, (name, noise) in enumerate(zip(names[:2], noises, strict=False))
    ]  # fmt: skip
    predictions = ReportPredictions.read(finalists[0].evaluations[0])
    columns = (predictions.table[name].to_pylist() for name in ("id", TARGET, "position"))
    rivals = Rivals(list(zip(*columns, strict=True)), {"mean": predictions.answers.truth + 50}, [])
    first = [
        make(store, Fake(name, 0, noise, split="validation"), f"first-{name}")
        for name, noise in zip(names, noises, strict=True)
    ]
    plan = Plan(
        candidates=[
            Candidate(
                label=name,
                data="encoded@0123456789abcdef",
                scheme=name,
                options={},
                preset="nano",
                batch=16,
                unit="steps",
                pace=0.01,
                rates=[0.002, 0.006],
            )
            for name in names
        ],
        rounds=[Round(3, 1.0, [100] * 3)],
        last=Round(2, 3.0, [300] * 3),
        seeds=2,
        threads=1,
        beside=0.0,
        test="test",
        rows=(None, None),
        guesses={"": 0.0},
        unfit={"bpe": "what it needs is not there"},
        left_out=1,
    )
    verdicts = [
        Verdict("p10", False, f"rounds {EVIL} so that 30% of its spread is lost"),
        *(Verdict(name, True, "loses nothing") for name in (*names, "nd")),
    ]
    board = leaderboard(finalists, rivals, plan.guesses, ReportPredictions.read)
    return RaceResult(
        data=["rooms.jsonl"],
        of_table=False,
        kind="rows of text",
        columns=[],
        target=None,
        minutes=0.5,
        rows=(700, 150, 150),
        fields=[
            FieldSummary.of_column(name, predictions.answers.truth) for name in ("answer", *FIELDS)
        ],
        verdicts=verdicts,
        entered=[*names, "bpe", "nd"],
        expected=[],
        notes=["Rows are split by time."],
        plan="rooms-race@0123456789abcdef",
        planned=plan,
        rounds=[
            RoundResult(
                seconds=1.0,
                steps=dict.fromkeys(names, 100),
                tried={
                    "p1000": {"0.002": 0.5},
                    "xval": {"0.002": 0.7, "0.006": 0.2},
                    "fp15": {"0.006": 0.1},
                },
                rates={"p1000": 0.002, "xval": 0.002, "fp15": 0.006},
                skills={"p1000": 0.5, "xval": 0.7, "fp15": 0.1},
                reports={name: one.ref for name, one in zip(names, first, strict=True)},
            )
        ],
        leaderboard=board,
        winner=board.winner,
        model=board.place(board.winner).models[0],
        accuracy=list(accuracies(board, predictions.answers, 0)),
        reasons=reasons_of(board, board, plan, verdicts),
        commands=["numtok race rooms.jsonl", "numtok predict MODEL --text '[?]'"],
    )


def of_profile(root: Path, source: Path = SAMPLE, schemes: tuple[str, ...] = ()) -> Page:
    """Return the page of a profile."""
    pictures = FieldPictures()
    config = profile.Config((str(source),), schemes=schemes)
    found = profile.run(config, Store(root), lambda *_: None, pictures)
    return profile_page(found, pictures.found)
