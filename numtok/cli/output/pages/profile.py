"""The page of a profile: the numbers of some data, and what schemes cost and lose on them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from numtok.analysis.panels.slots import VALUES, SlotPicture
from numtok.cli.output.pages.page import Headline, Page, PageChart, Section
from numtok.cli.output.profile import schemes_sheet, slots_sheet
from numtok.stages.profile import Profile


def profile_page(profile: Profile, pictures: Sequence[SlotPicture]) -> Page:
    """Return the page that shows slots, schemes and their grids."""
    inputs = ", ".join(profile.inputs)
    slots, schemes = (sheet(profile).without_empty() for sheet in (slots_sheet, schemes_sheet))
    return Page(
        kicker="numtok profile",
        title=f"The numbers of {inputs}: {profile.numbers:,} in {profile.rows:,} rows",
        lead=(
            "Each position in the text that holds numbers (a slot), the distribution of its "
            "numbers, and which values each scheme can distinguish. Nothing was trained for this."
        ),
        headlines=[
            Headline("rows", f"{profile.rows:,}", "", "rows that were read"),
            Headline("numbers", f"{profile.numbers:,}", "", "numbers in all rows"),
            Headline("slots", f"{len(profile.slots)}", "", "positions that hold numbers"),
            Headline("to try first", _first(profile), "", "loses least, best rank in benchmarks"),
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
        text = f"Distribution of {one.numbers:,} numbers of the sample."
        charts.append(
            PageChart(
                name=f"slot-{place}", heading=one.slot, text=text, panel=one.histogram, height=260
            )
        )
        if one.grids.marks:
            text = (
                f"The {one.distinct:,} values as each scheme reads them back, and how many remain "
                f"distinct. Close values are drawn as one ({VALUES} parts of the axis)."
            )
            charts.append(
                PageChart(
                    name=f"grid-{place}",
                    heading="Values that schemes distinguish",
                    text=text,
                    panel=one.grids,
                )
            )
    if charts:
        text = " ".join(_left_out(profile, pictures))
        yield Section("values", "Values and grids of schemes", text, charts)


def _left_out(profile: Profile, pictures: Sequence[SlotPicture]) -> Iterator[str]:
    """Return notes on slots and schemes that are not drawn."""
    if len(pictures) < (every := len(profile.slots)):
        yield (f"{len(pictures)} of {every} slots are drawn: the largest ones with finite numbers.")
    writable = sum(not one.problem for one in profile.schemes)
    if (drawn := len(pictures[0].grids.y.names)) < writable:
        yield f"{drawn} of {writable} schemes that can write these numbers are drawn."
