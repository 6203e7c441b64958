"""The page of a sweep: the sections of a comparison for each data set, what was chosen, and the
averages over data sets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from numtok.cli.output.comparison import deviating
from numtok.cli.output.figures import number
from numtok.cli.output.pages.compared import Compared, colours_of
from numtok.cli.output.pages.comparison import board_sections, comparison_sections
from numtok.cli.output.pages.differences import differences_section
from numtok.cli.output.pages.page import Page, PageCell, PageTable, Section
from numtok.cli.output.printing import counted
from numtok.cli.output.sweep import ranks_told
from numtok.store.artifact import Resolve
from numtok.sweeps.sweep import Result

_DRAWN = 6  # test sets that have charts and rows, so that pages stay small


def sweep_page(result: Result, file: str, resolve: Resolve) -> Page:
    """What the page of a sweep holds; ``file`` is what says what was tried."""
    legends = {tuple(colours_of(one.comparison).items()) for one in result.tables}
    count = len(result.tables)
    drawn = f" Of {count} test sets the first {_DRAWN} have charts and rows." * (count > _DRAWN)
    runs = sum(len(one.seeds) for table in result.tables for one in table.comparison.experiments)
    return Page(
        kicker="numtok sweep",
        title=f"{Path(file).name}: {runs} runs on {counted(count, 'test set')}",
        lead=f"All combinations that the file names, trained and compared on each test set.{drawn}",
        headlines=[],
        sections=list(_sections(result, resolve)),
        notes=[
            *dict.fromkeys(note for one in result.tables for note in one.comparison.notes),
            *(f"{label or 'The data'} failed: {problem}" for label, problem in result.failed),
            *([f"{result.left} runs of other parts are not there yet."] if result.left else []),
        ],
        made_by=f"numtok sweep {file} --html FILE",
        legend=list(legends.pop()) if len(legends) == 1 else (),
    )


def _sections(result: Result, resolve: Resolve) -> Iterator[Section]:
    if result.select is not None:
        rows: list[Sequence[PageCell | str]] = [
            [one.group or "all", one.chosen or "-", PageCell(number(one.figure), one.figure)]
            for one in result.choices
        ]
        caption = "The best by the validation split"
        table = PageTable(
            caption=caption, columns=["of", "chosen", result.select.metric], rows=rows
        )
        yield Section("choices", "What was chosen", "", [table])
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
    if result.averages:
        metrics = list(result.averages[0].metrics)
        averages: list[Sequence[PageCell | str]] = [
            [
                one.label or "all",
                *(PageCell(deviating(one.metrics[key]), one.metrics[key].mean) for key in metrics),
            ]
            for one in result.averages
        ]
        caption = "Mean and standard deviation over the data sets"
        table = PageTable(caption=caption, columns=["way", *metrics], rows=averages)
        tables = [table]
        if (ranks := result.ranks) is not None:
            ranked: list[Sequence[PageCell | str]] = [
                [label or "all", PageCell(deviating(over), over.mean)]
                for label, over in ranks.ways.items()
            ]
            told = f"Ranks by {ranks.metric}: {ranks_told(ranks)}"
            tables.append(PageTable(caption=told, columns=["way", "rank"], rows=ranked))
        yield Section("averages", "Over the data sets", "", tables)
    yield from differences_section(compared, resolve)
