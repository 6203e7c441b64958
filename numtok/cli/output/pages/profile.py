"""The page of a profile: the numbers of some data, and what schemes cost and lose on them."""

from collections.abc import Iterator, Sequence

from numtok.analysis.panels.slots import VALUES, SlotPicture
from numtok.analysis.profiling.short_values import short_value
from numtok.cli.output.figures import Told
from numtok.cli.output.pages.page import Headline, Page, PageChart, Section
from numtok.cli.output.printing import Sheet
from numtok.stages.profile import Profile


def profile_page(profile: Profile, pictures: Sequence[SlotPicture]) -> Page:
    """What the page of a profile holds."""
    told = ", ".join(profile.inputs)
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
            Section("slots", "Slots", "", [_slots(profile)]),
            Section("schemes", "What each scheme costs and loses", "", [_schemes(profile)]),
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


def _value(value: float | None) -> Told:
    return Told("-" if value is None else short_value(value), value)


def _slots(profile: Profile) -> Sheet:
    columns = ["slot", "numbers", "from", "to", "mean", "deviation", "distinct", "digits at most"]
    rows = [
        [
            slot.name,
            slot.numbers,
            *map(_value, (slot.low, slot.high, slot.mean, slot.deviation)),
            slot.distinct,
            slot.digits_most or 0,
        ]
        for slot in profile.slots
    ]
    return Sheet("All slots, in the order of the text", columns, rows)


def _schemes(profile: Profile) -> Sheet:
    columns = ["scheme", "tokens a number", "tokens a row", "vocabulary", "clipped"]
    rows: list[list[object]] = []
    for one in profile.schemes:
        errors = [loss.error_of_spread for loss in one.slots if loss.error_of_spread is not None]
        tokens = map(_value, (one.tokens_per_number, one.tokens_per_row))
        lost = _value(max(errors, default=None))
        rows.append([one.scheme, *tokens, one.vocabulary, one.clipped, lost])
    note = "Loses: the error of writing and reading back, in standard deviations of the worst slot."
    picks = [f"label:{one.scheme}" for one in profile.schemes]
    return Sheet("Schemes", [*columns, "loses at most"], rows, picks=picks, note=note)


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
