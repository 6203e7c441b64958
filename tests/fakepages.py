"""Pages of each command, of reports without a model and of the sample data."""

from pathlib import Path

from numtok.analysis.panels.slots import SlotPictures
from numtok.cli.output.pages.comparison import compare_page
from numtok.cli.output.pages.page import Page, PageChart, Part, RowList
from numtok.cli.output.pages.profile import profile_page
from numtok.cli.output.pages.report import report_page
from numtok.cli.output.pages.sweep import sweep_page
from numtok.evaluation.report_files import read
from numtok.stages import compare, profile
from numtok.store.store import Store
from numtok.sweeps.sweep import Result, SweepTable
from tests.fakereports import Fake, make

EVIL = "</script><img src=http://example.com/x onerror=alert(1)>"
SAMPLE = Path(__file__).resolve().parents[1] / "numtok/data/sample/era5-uk.jsonl"
SLOTS = (EVIL, "width")
#: Three experiments on one test set, one of them with two seeds.
FAKES = (
    *(Fake("p1000", seed, 20, later=True, others=SLOTS, settings={"lr": 1}) for seed in (0, 1)),
    Fake("xval", 0, 10, noise_seed=3, invalid=2, later=True, others=SLOTS),
    Fake("fp15", 0, 30, noise_seed=4, later=True, others=SLOTS),
)


def parts(page: Page) -> list[Part]:
    """All of a page, in order."""
    return [part for section in page.sections for part in section.parts]


def charts(page: Page) -> dict[str, PageChart]:
    """By their names."""
    return {part.name: part for part in parts(page) if isinstance(part, PageChart)}


def rows(page: Page) -> RowList:
    """The rows that it holds."""
    [found] = [part for part in parts(page) if isinstance(part, RowList)]
    return found


def of_report(root: Path, fake: Fake) -> Page:
    """The page of one report."""
    store = Store(root)
    return report_page(read(make(store, fake)), store.resolve)


def compared(store: Store, fakes: tuple[Fake, ...] = FAKES, name: str = "report") -> list[str]:
    """REFs of reports of some fakes."""
    return [make(store, fake, f"{name}-{place}").ref for place, fake in enumerate(fakes)]


def comparison(store: Store, *refs: str) -> compare.Comparison:
    """What ``compare`` says of some reports."""
    return compare.run(compare.Config(refs), store)


def of_comparison(root: Path, fakes: tuple[Fake, ...] = FAKES) -> Page:
    """The page of a comparison."""
    store = Store(root)
    return compare_page(comparison(store, *compared(store, fakes)), store.resolve)


def of_sweep(root: Path, sets: int = 2) -> Page:
    """The page of a sweep on some test sets."""
    store = Store(root)
    tables = []
    for place in range(sets):
        fakes = (Fake("p1000", noise_seed=place), Fake("xval", noise=5, noise_seed=place + 10))
        refs = compared(store, fakes, f"set-{place}")
        tables.append(SweepTable(f"set {place} {EVIL}", comparison(store, *refs)))
    return sweep_page(Result(None, [], tables, [], []), "schemes.toml", store.resolve)


def of_profile(root: Path, source: Path = SAMPLE, schemes: tuple[str, ...] = ()) -> Page:
    """The page of a profile."""
    pictures = SlotPictures()
    config = profile.Config((str(source),), schemes=schemes)
    found = profile.run(config, Store(root), lambda *_: None, pictures)
    return profile_page(found, pictures.found)
