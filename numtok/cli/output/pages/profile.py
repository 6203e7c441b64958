"""HTML page of a profile: the numbers in data, and the costs and losses of each scheme."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from numtok.analysis.panels.fields import VALUES, FieldPicture
from numtok.cli.output.pages.charts import chart
from numtok.cli.output.pages.page import Headline, Page, PageChart, Section
from numtok.cli.output.profile import fields_sheet, schemes_sheet
from numtok.stages.profile import Profile


def profile_page(profile: Profile, pictures: Sequence[FieldPicture]) -> Page:
    """Return the HTML page of a profile: fields, schemes, and the values that schemes can
    distinguish."""
    inputs = ", ".join(profile.inputs)
    fields, schemes = (sheet(profile).without_empty() for sheet in (fields_sheet, schemes_sheet))
    marks = pictures[0].grids.marks if pictures else []
    return Page(
        kicker="numtok profile",
        title=f"The numbers of {inputs}: {profile.numbers:,} in {profile.rows:,} rows",
        lead=(
            "Each position in the text that holds numbers (a field), the distribution of its "
            "numbers, and which values each scheme can distinguish. Nothing was trained for this."
        ),
        headlines=[
            Headline("rows", f"{profile.rows:,}", "", "rows that were read"),
            Headline("numbers", f"{profile.numbers:,}", "", "numbers in all rows"),
            Headline("fields", f"{len(profile.fields)}", "", "positions that hold numbers"),
            Headline("to try first", _first(profile), "", "loses least, best rank in benchmarks"),
        ],
        sections=[
            Section("fields", "Fields", "", [replace(fields, title="All fields")]),
            Section("schemes", "What each scheme costs and loses", "", [schemes]),
            *_values(profile, pictures),
        ],
        legend=[(mark.label, place) for place, mark in enumerate(marks)],
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


def _values(profile: Profile, pictures: Sequence[FieldPicture]) -> Iterator[Section]:
    charts: list[PageChart] = []
    for place, one in enumerate(pictures):
        text = f"Distribution of {one.numbers:,} numbers of the sample."
        charts += chart(f"field-{place}", one.field, text, one.histogram, height=260)
        if one.grids.marks:
            text = (
                f"The {one.distinct:,} values as each scheme reads them back, and how many remain "
                f"distinct. Close values are drawn as one ({VALUES} parts of the axis)."
            )
            charts += chart(f"grid-{place}", "Values that schemes distinguish", text, one.grids)
    if charts:
        text = " ".join(_left_out(profile, pictures))
        yield Section("values", "Values and grids of schemes", text, charts)


def _left_out(profile: Profile, pictures: Sequence[FieldPicture]) -> Iterator[str]:
    """Return notes on fields and schemes that are not drawn."""
    if len(pictures) < (every := len(profile.fields)):
        yield (
            f"{len(pictures)} of {every} fields are drawn: the largest ones with finite numbers."
        )
    writable = sum(not one.problem for one in profile.schemes)
    if (drawn := len(pictures[0].grids.y.names)) < writable:
        yield f"{drawn} of {writable} schemes that can write these numbers are drawn."
