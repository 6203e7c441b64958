"""The page of a profile: the numbers of some data, and what schemes cost and lose on them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from numtok.analysis.panels.slots import VALUES, SlotPicture
from numtok.cli.output.pages.page import Headline, Page, PageChart, Section
from numtok.cli.output.profile import schemes_sheet, slots_sheet
from numtok.stages.profile import Profile


def profile_page(profile: Profile, pictures: Sequence[SlotPicture]) -> Page:
    """What the page of a profile holds."""
    told = ", ".join(profile.inputs)
    slots, schemes = (sheet(profile).without_empty() for sheet in (slots_sheet, schemes_sheet))
    return Page(
        kicker="numtok profile",
        title=f"The numbers of {told}: {profile.numbers:,} in {profile.rows:,} rows",
        lead=(
            "Each place in the text where numbers stand (a slot), how its numbers lie, and which "
            "values each scheme can still tell apart. Nothing was trained for this."
        ),
        headlines=[
            Headline("rows", f"{profile.rows:,}", "", "that could be read"),
            Headline("numbers", f"{profile.numbers:,}", "", "in all of them"),
            Headline("slots", f"{len(profile.slots)}", "", "places where numbers stand"),
            Headline("to try first", _first(profile), "", "keeps the numbers, best measured rank"),
        ],
        sections=[
            Section("slots", "Slots", "", [replace(slots, title="All slots")]),
            Section("schemes", "What each scheme costs and loses", "", [schemes]),
            *_values(profile, pictures),
        ],
        legend=[
            (mark.label, place)
            for one in pictures[:1]
            for place, mark in enumerate(one.grids.marks)
        ],
        notes=[
            *(one.text for one in profile.warnings),
            *profile.notes,
            *(f"{k}: {text}" for k, text in profile.templates.items()),
        ],
        made_by="numtok profile INPUT... --html FILE",
    )


def _first(profile: Profile) -> str:
    parts = (profile.recommended or "-", profile.recommended_normalize)
    return ", ".join(part for part in parts if part)


def _values(profile: Profile, pictures: Sequence[SlotPicture]) -> Iterator[Section]:
    charts = []
    for place, one in enumerate(pictures):
        text = f"How {one.numbers:,} numbers of the sample lie."
        charts.append(
            PageChart(
                name=f"slot-{place}", heading=one.slot, text=text, panel=one.histogram, height=260
            )
        )
        if one.grids.marks:
            text = (
                f"The {one.distinct:,} values as each scheme reads them back, and how many are "
                f"left; of those close to each other one is drawn ({VALUES} parts of the axis)."
            )
            charts.append(
                PageChart(
                    name=f"grid-{place}",
                    heading="What schemes tell apart",
                    text=text,
                    panel=one.grids,
                )
            )
    if charts:
        text = " ".join(_left_out(profile, pictures))
        yield Section("values", "Values, and the grids of schemes", text, charts)


def _left_out(profile: Profile, pictures: Sequence[SlotPicture]) -> Iterator[str]:
    """What there is and is not drawn."""
    if len(pictures) < (every := len(profile.slots)):
        yield (
            f"{len(pictures)} of {every} slots are drawn: of those with finite numbers the ones "
            "with the most."
        )
    writable = sum(not one.problem for one in profile.schemes)
    if (drawn := len(pictures[0].grids.y.names)) < writable:
        yield f"Of the {writable} schemes that can write these numbers the first {drawn} are drawn."
