"""HTML page of a sweep: a comparison for each data set, the selected runs, and averages."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from numtok.cli.output.pages.compared import Compared, colours_of
from numtok.cli.output.pages.comparison import board_sections, comparison_sections
from numtok.cli.output.pages.differences import differences_section
from numtok.cli.output.pages.page import Page, Section
from numtok.cli.output.sweep import averages, choices
from numtok.names import counted
from numtok.store.artifact import Resolve
from numtok.sweeps.sweep import Result

_DRAWN = 6  # test sets that have charts and rows, so that pages stay small


def sweep_page(result: Result, file: str, resolve: Resolve) -> Page:
    """Return the HTML page of a sweep. ``file`` is the path of the sweep file."""
    legends = {tuple(colours_of(one.comparison).items()) for one in result.tables}
    count = len(result.tables)
    drawn = f" The first {_DRAWN} of {count} test sets have charts and rows." * (count > _DRAWN)
    runs = sum(len(one.seeds) for table in result.tables for one in table.comparison.experiments)
    return Page(
        kicker="numtok sweep",
        title=f"{Path(file).name}: {runs} runs on {counted(count, 'test set')}",
        lead=f"All combinations of the sweep file, trained and compared on each test set.{drawn}",
        headlines=[],
        sections=list(_sections(result, resolve)),
        notes=[
            *dict.fromkeys(note for one in result.tables for note in one.comparison.notes),
            *(f"{label or 'The data'} failed: {problem}" for label, problem in result.failed),
            *([f"Other parts lack {counted(result.left, 'run')}."] if result.left else []),
        ],
        made_by=f"numtok sweep {file} --html FILE",
        legend=list(legends.pop()) if len(legends) == 1 else (),
    )


def _sections(result: Result, resolve: Resolve) -> Iterator[Section]:
    if tables := list(choices(result)):
        yield Section("choices", "Selected runs", "", tables)
    compared = []
    for place, (label, comparison) in enumerate(result.tables):
        name, heading = f"set-{place}", label if len(result.tables) > 1 else ""
        if place < _DRAWN:
            compared.append(one := Compared.of_comparison(comparison, resolve, name, heading))
            sections = comparison_sections(comparison, one, resolve)
        else:
            sections = board_sections(comparison, name)
        for section in sections:
            yield replace(section, heading=f"{heading}: {section.heading}".removeprefix(": "))
    if tables := list(averages(result)):
        yield Section("averages", "Over the data sets", "", tables)
    yield from differences_section(compared, resolve)
